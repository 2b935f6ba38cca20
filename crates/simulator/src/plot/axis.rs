//! Axes: where a value stands, and which values are written beside it.

/// One direction of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// How values are written.
    pub unit: Unit,
    /// The least and the greatest value shown; as the data has it where none are given.
    pub bounds: Option<(f64, f64)>,
}

/// How values are spread along an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm; what has none stands at the lower end.
    Log10,
    /// Things by name: the first stands at 0, the next at 1.
    Names(Vec<String>),
}

/// How values are written beside an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As numbers: `12 k`, `3 M`.
    Plain,
    /// Shares as percent.
    Share,
    /// Seconds as what people count in: minutes, hours, days, months.
    Time,
    /// Bytes: `12 kB`.
    Bytes,
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;
const MONTH: f64 = YEAR / 12.0;

/// Steps of an axis of time from a second on; below and above, steps are round.
const TIME_STEPS: [f64; 27] = [
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    15.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    5.0 * DAY,
    10.0 * DAY,
    MONTH,
    2.0 * MONTH,
    3.0 * MONTH,
    6.0 * MONTH,
    YEAR,
    2.0 * YEAR,
];

/// Landmarks of a logarithmic axis of time from a second on.
const TIME_LANDMARKS: [f64; 10] =
    [1.0, 10.0, MINUTE, 10.0 * MINUTE, HOUR, 10.0 * HOUR, DAY, 10.0 * DAY, 100.0 * DAY, 3.0 * YEAR];

/// The most marks of a logarithmic axis.
const LANDMARKS_MAX: usize = 9;

impl Axis {
    /// An axis of plain numbers.
    pub fn new(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, unit: Unit::Plain, bounds: None }
    }

    /// The same with values spread by their logarithm.
    pub fn log(self) -> Axis {
        Axis { scale: Scale::Log10, ..self }
    }

    /// The same for things with names.
    pub fn names(self, names: impl IntoIterator<Item = impl Into<String>>) -> Axis {
        Axis { scale: Scale::Names(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// The same with values written otherwise.
    pub fn unit(self, unit: Unit) -> Axis {
        Axis { unit, ..self }
    }

    /// The same from one value to another.
    pub fn bounds(self, low: f64, high: f64) -> Axis {
        Axis { bounds: Some((low, high)), ..self }
    }
}

/// A figure as it is written in a table or on an axis: `950`, `12.5 k`, `85 %`, `3 h`.
pub fn human(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Plain => plain(value, None),
        Unit::Share => format!("{} %", trimmed(value * 100.0, 1)),
        Unit::Time if value == 0.0 => "0 s".to_owned(),
        // Days say more than months where there is no row of them.
        Unit::Time if (MONTH..YEAR).contains(&value.abs()) => time(value, DAY),
        Unit::Time => time(value, value.abs()),
        Unit::Bytes => bytes(value, None),
    }
}

/// An axis with its place in a picture.
#[derive(Clone, Debug)]
pub struct Ruler {
    low: f64,
    high: f64,
    log: bool,
    /// Where the lower and the upper end stand.
    from: f64,
    to: f64,
    marks: Vec<(f64, String)>,
    minor: Vec<f64>,
}

impl Ruler {
    /// A ruler for values from `low` to `high`, which is drawn with about so many marks.
    ///
    /// An end that was not given is moved outwards to a round value if `round`.
    pub fn new(axis: &Axis, data: Option<(f64, f64)>, round: bool, marks: usize) -> Ruler {
        let given = axis.bounds.filter(|(low, high)| low.is_finite() && high.is_finite() && low < high);
        let log = axis.scale == Scale::Log10 && given.is_none_or(|(low, _)| low > 0.0);
        let mut ruler =
            Ruler { low: 0.0, high: 1.0, log, from: 0.0, to: 1.0, marks: Vec::new(), minor: Vec::new() };
        if let Scale::Names(names) = &axis.scale {
            (ruler.low, ruler.high) = given.unwrap_or((-0.5, (names.len() as f64 - 0.5).max(0.5)));
            let inside = |place: &f64| (ruler.low..=ruler.high).contains(place);
            let places = (0..names.len()).map(|place| place as f64);
            ruler.marks = places.zip(names.iter().cloned()).filter(|(place, _)| inside(place)).collect();
            return ruler;
        }
        let (low, high) = given.or(data).unwrap_or(if log { (1.0, 10.0) } else { (0.0, 1.0) });
        (ruler.low, ruler.high) = match (high > low, log) {
            (true, _) => (low, high),
            (false, true) => (low / 2.0, low * 2.0),
            (false, false) if low == 0.0 => (0.0, 1.0),
            (false, false) => (low.min(low * 2.0).min(0.0), low.max(0.0) * 2.0),
        };
        if log {
            ruler.mark_log(axis.unit, given.is_none() && round);
        } else {
            ruler.mark_linear(axis.unit, given.is_none() && round, marks);
        }
        ruler
    }

    /// The same from this place of a picture to that one.
    pub fn between(self, from: f64, to: f64) -> Ruler {
        Ruler { from, to, ..self }
    }

    /// Where a value stands; never beyond the ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            let (low, high) = (self.low.log10(), self.high.log10());
            if value <= self.low { 0.0 } else { (value.log10() - low) / (high - low) }
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Whether a value is on it.
    pub fn holds(&self, value: f64) -> bool {
        let slack = (self.high - self.low) * 1e-9;
        value <= self.high + slack && (self.log || value >= self.low - slack)
    }

    /// Where bars stand.
    pub fn ground(&self) -> f64 {
        self.at(0.0)
    }

    /// Values and what is written beside them.
    pub fn marks(&self) -> &[(f64, String)] {
        &self.marks
    }

    /// Values between them that get a line only.
    pub fn minor(&self) -> &[f64] {
        &self.minor
    }

    fn mark_linear(&mut self, unit: Unit, round: bool, marks: usize) {
        let step = step(self.high - self.low, unit, marks.max(2));
        if round {
            self.low = (self.low / step + 1e-9).floor() * step;
            self.high = (self.high / step - 1e-9).ceil() * step;
        }
        self.marks = self.even_marks(unit, step);
    }

    /// A mark at each multiple of a step.
    fn even_marks(&self, unit: Unit, step: f64) -> Vec<(f64, String)> {
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let greatest = self.low.abs().max(self.high.abs());
        let written = |value: f64| match unit {
            Unit::Plain => plain(value, Some((step, greatest))),
            Unit::Share => format!("{} %", fixed(value * 100.0, decimals(step * 100.0))),
            Unit::Time if value == 0.0 => "0".to_owned(),
            Unit::Time if step < 1.0 && greatest >= 1.0 => format!("{} s", fixed(value, decimals(step))),
            Unit::Time => time(value, step),
            Unit::Bytes => bytes(value, Some((step, greatest))),
        };
        let values = (first..=last).map(|count| count as f64 * step);
        values.map(|value| (value, written(value))).collect()
    }

    fn mark_log(&mut self, unit: Unit, round: bool) {
        let landmarks = landmarks(unit);
        if round {
            let below = landmarks.iter().rev().find(|&&mark| mark <= self.low * 1.000_001);
            let above = landmarks.iter().find(|&&mark| mark >= self.high * 0.999_999);
            (self.low, self.high) = (below.copied().unwrap_or(self.low), above.copied().unwrap_or(self.high));
        }
        let (low, high) = (self.low * 0.999_999, self.high * 1.000_001);
        let inside = |value: &f64| (low..=high).contains(value);
        let all: Vec<f64> = landmarks.iter().copied().filter(inside).collect();
        let stride = all.len().div_ceil(LANDMARKS_MAX).max(1);
        let mut marks: Vec<f64> = all.iter().copied().step_by(stride).collect();
        if unit != Unit::Time && stride == 1 {
            let multiples = |times: &[u32]| -> Vec<f64> {
                let of = |&decade: &f64| times.iter().map(move |&times| decade * f64::from(times));
                landmarks.iter().flat_map(of).filter(inside).collect()
            };
            self.minor = multiples(&[2, 3, 4, 5, 6, 7, 8, 9]);
            if all.len() <= 2 {
                marks.extend(multiples(&[2, 5]));
            }
        } else if all.len() <= 2 {
            marks.extend(TIME_STEPS.into_iter().filter(inside));
        }
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        self.marks = match marks.len() {
            // Too few landmarks to read a value by.
            ..3 => self.even_marks(unit, step(self.high - self.low, unit, 6)),
            _ => marks.into_iter().map(|value| (value, human(value, unit))).collect(),
        };
    }
}

/// The round step that gives at most so many marks.
fn step(range: f64, unit: Unit, marks: usize) -> f64 {
    let least = range / marks as f64;
    if unit == Unit::Time
        && (0.5..=2.0 * YEAR).contains(&least)
        && let Some(step) = TIME_STEPS.into_iter().find(|step| *step >= least * 0.999_999)
    {
        return step;
    }
    let scale = if unit == Unit::Time && least > YEAR { YEAR } else { 1.0 };
    let least = least / scale;
    let decade = 10f64.powf(least.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0].into_iter().find(|times| times * decade >= least * 0.999_999);
    times.unwrap_or(10.0) * decade * scale
}

fn landmarks(unit: Unit) -> Vec<f64> {
    let decades = |from: i32, to: i32| (from..=to).map(|power| 10f64.powi(power));
    match unit {
        Unit::Plain | Unit::Share | Unit::Bytes => decades(-12, 24).collect(),
        Unit::Time => decades(-6, -1).chain(TIME_LANDMARKS).collect(),
    }
}

/// A number with a letter for its thousands; those of an axis share one, by its step and its greatest.
fn plain(value: f64, axis: Option<(f64, f64)>) -> String {
    let (step, greatest) = axis.unwrap_or((f64::NAN, value.abs()));
    let (scale, letter) = match greatest {
        ..9_999.5 => (1.0, ""),
        ..999_500.0 => (1e3, " k"),
        ..999.5e6 => (1e6, " M"),
        ..999.5e9 => (1e9, " G"),
        _ => (1.0, ""),
    };
    if greatest > 0.0 && !(1e-4..999.5e9).contains(&greatest) {
        return if value == 0.0 { "0".to_owned() } else { format!("{value:.0e}") };
    }
    match axis {
        Some(_) if value == 0.0 => "0".to_owned(),
        Some(_) => format!("{}{letter}", fixed(value / scale, decimals(step / scale))),
        None if scale == 1.0 && greatest < 1.0 => trimmed(value, 4),
        None => format!("{}{letter}", trimmed(value / scale, if greatest / scale < 100.0 { 2 } else { 0 })),
    }
}

fn bytes(value: f64, axis: Option<(f64, f64)>) -> String {
    let (step, greatest) = axis.unwrap_or((f64::NAN, value.abs()));
    let (scale, letter) = match greatest {
        ..999.5 => (1.0, "B"),
        ..999.5e3 => (1e3, "kB"),
        ..999.5e6 => (1e6, "MB"),
        ..999.5e9 => (1e9, "GB"),
        _ => (1e12, "TB"),
    };
    match axis {
        Some(_) if value == 0.0 => "0".to_owned(),
        Some(_) => format!("{} {letter}", fixed(value / scale, decimals(step / scale))),
        None => format!("{} {letter}", trimmed(value / scale, 1)),
    }
}

/// Seconds in the unit that fits a step of this size.
fn time(seconds: f64, size: f64) -> String {
    let (scale, name) = match size * 1.000_001 {
        ..1e-3 => (1e-6, "µs"),
        ..1.0 => (1e-3, "ms"),
        ..MINUTE => (1.0, "s"),
        ..HOUR => (MINUTE, "min"),
        ..DAY => (HOUR, "h"),
        ..MONTH => (DAY, "d"),
        ..YEAR => (MONTH, "mo"),
        _ => (YEAR, "y"),
    };
    format!("{} {name}", trimmed(seconds / scale, 1))
}

/// How many decimals tell values so far apart.
fn decimals(step: f64) -> usize {
    (0..9).find(|&places| (step * 10f64.powi(places) + 1e-6).fract() < 2e-6).unwrap_or(9) as usize
}

fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    // A zero has no sign.
    if text.trim_start_matches(['-', '0', '.']).is_empty() { text.replace('-', "") } else { text }
}

fn trimmed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}
