//! What every run says about its jobs, so that results can be judged by what they were measured on.

use std::fmt;

use serde::Serialize;

use super::{Cleaning, Provenance, Shape, Workload};

const DAY_MICROS: u64 = 86_400_000_000;
/// Bins of a day; a trace of more than 270 years has a broken clock, and is shown without bins.
const DAYS_MAX: u64 = 100_000;

/// A workload in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Where the jobs come from and what was done to them.
    pub provenance: Provenance,
    /// Jobs.
    pub jobs: usize,
    /// Nodes of the grid they are for.
    pub nodes: u32,
    /// Days from start to end.
    pub span_days: f64,
    /// Nodes wanted.
    pub width: Quantiles,
    /// Requested time, seconds.
    pub length_secs: Quantiles,
    /// Run time, seconds.
    pub run_secs: Quantiles,
    /// Share of jobs wider than 110, the reach of two hops at degree 10.
    pub wider_than_110: f64,
    /// Share of jobs wider than 400, the reach of two hops at degree 20.
    pub wider_than_400: f64,
    /// Requested utilisation over the whole span, none if the span is empty.
    pub utilisation: Option<f64>,
    /// Requested utilisation of each day, booked at submission; the last day may be a shorter one.
    pub utilisation_by_day: Vec<f64>,
    /// The highest of them.
    pub utilisation_day_max: f64,
    /// Share of days above 60 %.
    pub days_above_60_percent: f64,
    /// Share of days above 100 %.
    pub days_above_100_percent: f64,
    /// How the jobs are spread.
    pub shape: Shape,
    /// What the cleaning rules met.
    pub cleaning: Cleaning,
    /// Jobs dropped by all rules together.
    pub dropped: u64,
}

/// Mean and order statistics of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// A quarter is at most this.
    pub p25: f64,
    /// The median.
    pub p50: f64,
    /// Three quarters are at most this.
    pub p75: f64,
    /// Nine tenths are at most this.
    pub p90: f64,
    /// All but a hundredth are at most this.
    pub p99: f64,
    /// The most.
    pub max: f64,
}

impl Workload {
    /// The workload in figures.
    pub fn describe(&self) -> Description {
        let share_wider =
            |width| share(self.jobs.iter().filter(|job| job.width > width).count(), self.jobs.len());
        let by_day = self.utilisation_by_day();
        let days_above = |level| share(by_day.iter().filter(|&&day| day > level).count(), by_day.len());
        Description {
            provenance: self.provenance.clone(),
            jobs: self.jobs.len(),
            nodes: self.nodes,
            span_days: self.span.as_micros() as f64 / DAY_MICROS as f64,
            width: Quantiles::of(self.jobs.iter().map(|job| f64::from(job.width))),
            length_secs: Quantiles::of(self.jobs.iter().map(|job| job.requested.as_secs_f64())),
            run_secs: Quantiles::of(self.jobs.iter().map(|job| job.run.as_secs_f64())),
            wider_than_110: share_wider(110),
            wider_than_400: share_wider(400),
            utilisation: self.requested_utilisation(),
            utilisation_day_max: by_day.iter().copied().fold(0.0, f64::max),
            days_above_60_percent: days_above(0.6),
            days_above_100_percent: days_above(1.0),
            utilisation_by_day: by_day,
            shape: self.shape(),
            dropped: self.cleaning.dropped(),
            cleaning: self.cleaning.clone(),
        }
    }

    /// Requested utilisation of each day, booked at submission.
    pub fn utilisation_by_day(&self) -> Vec<f64> {
        let span = self.span.as_micros();
        let days = span.div_ceil(DAY_MICROS);
        if days == 0 || days > DAYS_MAX {
            return Vec::new();
        }
        let mut asked = vec![0.0; days as usize];
        for job in &self.jobs {
            // The last submission ends the span, and may fall on the border.
            let day = (job.submit.as_micros() / DAY_MICROS).min(days - 1);
            asked[day as usize] += job.area() as f64;
        }
        let room = |day: u64| f64::from(self.nodes) * (span - day * DAY_MICROS).min(DAY_MICROS) as f64;
        asked.into_iter().zip(0..).map(|(asked, day)| asked / room(day)).collect()
    }
}

impl Cleaning {
    /// What was odd about the trace without costing it a job, in words.
    pub fn oddities(&self) -> [(&'static str, u64); 12] {
        [
            ("width taken from processors allocated", self.width_from_allocated),
            ("length taken from the other time", self.length_from_other),
            ("negative wait", self.negative_wait),
            ("cut to the grid's width", self.capped),
            ("ran longer than requested", self.overran),
            ("out of order, sorted", self.out_of_order),
            ("more columns than the format has", self.extra_columns),
            ("lines ended by CR LF", self.crlf),
            ("partial executions", self.partial),
            ("without run time", self.without_run),
            ("without requested time", self.without_requested),
            ("without allocated processors", self.without_allocated),
        ]
    }
}

impl Quantiles {
    /// Takes the figures in; all zero if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Quantiles {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else { return Quantiles::default() };
        // The nearest rank: always a figure that occurs.
        let at =
            |share: f64| values[((share * values.len() as f64).ceil() as usize).saturating_sub(1).min(last)];
        Quantiles {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values[0],
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p99: at(0.99),
            max: values[last],
        }
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantiles { mean, min, p25, p50, p75, p90, p99, max } = self;
        write!(
            f,
            "mean {mean:.1}, min {min:.0}, 25 % {p25:.0}, 50 % {p50:.0}, 75 % {p75:.0}, 90 % {p90:.0}, 99 % {p99:.0}, max {max:.0}"
        )
    }
}

/// One figure a line, as a run prints it.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        write!(f, "workload     {}", self.provenance.source)?;
        if let Some(seed) = self.provenance.seed {
            write!(f, " (seed {seed})")?;
        }
        for step in &self.provenance.steps {
            write!(f, "\nchange       {}: {} -> {} jobs", step.what, step.before, step.after)?;
        }
        write!(f, "\njobs         {} over {:.2} days for {} nodes", self.jobs, self.span_days, self.nodes)?;
        write!(f, "\nwidth        {}", self.width)?;
        let (wide, wider) = (percent(self.wider_than_110), percent(self.wider_than_400));
        write!(f, "\nwide jobs    {wide:.2} % above 110 nodes, {wider:.2} % above 400")?;
        write!(f, "\nrequested s  {}", self.length_secs)?;
        write!(f, "\nrun s        {}", self.run_secs)?;
        match self.utilisation {
            Some(utilisation) => write!(f, "\nutilisation  {:.1} % requested", percent(utilisation))?,
            None => write!(f, "\nutilisation  unknown: all jobs are submitted at one instant")?,
        }
        let (above_60, above_100) =
            (percent(self.days_above_60_percent), percent(self.days_above_100_percent));
        write!(
            f,
            "\nby day       max {:.1} %, {above_60:.1} % of days above 60 %, {above_100:.1} % above 100 %",
            percent(self.utilisation_day_max)
        )?;
        write!(f, "\ndropped      {}", self.dropped)?;
        for (rule, count) in self.cleaning.dropped_by_rule().into_iter().filter(|&(_, count)| count > 0) {
            write!(f, ", {rule} {count}")?;
        }
        for (oddity, count) in self.cleaning.oddities().into_iter().filter(|&(_, count)| count > 0) {
            write!(f, "\nodd          {oddity}: {count}")?;
        }
        if let Some(promised) = self.cleaning.promised.filter(|&promised| promised != self.cleaning.records) {
            write!(
                f,
                "\nodd          header promises {promised} jobs, the file has {}",
                self.cleaning.records
            )?;
        }
        for line in &self.cleaning.bad_lines {
            write!(f, "\nbad line     {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Span, Time};

    use super::*;
    use crate::workload::{Label, Names, TraceJob};

    fn job(day: u64, width: u32, requested_days: u64) -> TraceJob {
        let requested = Span::from_hours(24 * requested_days);
        TraceJob {
            submit: Time::ZERO + Span::from_hours(24 * day),
            run: Span::from_hours(1),
            requested,
            id: 1,
            memory_kib: None,
            width,
            user: Label::UNKNOWN,
            group: Label::UNKNOWN,
            partition: Label::UNKNOWN,
        }
    }

    fn workload(jobs: Vec<TraceJob>, span: Span) -> Workload {
        let (names, cleaning) = (Names::default(), Cleaning::default());
        let provenance = Provenance { source: "made up".into(), seed: Some(5), ..Provenance::default() };
        Workload { jobs, nodes: 1_000, span, names, provenance, cleaning, profiles: Vec::new() }
    }

    #[test]
    fn utilisation_is_booked_on_the_day_of_submission() {
        let jobs = vec![job(0, 500, 1), job(1, 401, 3), job(2, 110, 1), job(2, 111, 1)];
        let description = workload(jobs, Span::from_hours(60)).describe();
        assert_eq!(description.utilisation_by_day, [0.5, 1.203, 0.442], "the last day has 12 hours");
        assert!((description.utilisation.unwrap() - (500.0 + 1203.0 + 221.0) / 2_500.0).abs() < 1e-12);
        assert_eq!(description.utilisation_day_max, 1.203);
        assert_eq!(
            (description.days_above_60_percent, description.days_above_100_percent),
            (1.0 / 3.0, 1.0 / 3.0)
        );
        assert_eq!((description.wider_than_110, description.wider_than_400), (0.75, 0.5));
    }

    #[test]
    fn quantiles_are_figures_that_occur() {
        let quantiles = Quantiles::of((1..=100).rev().map(f64::from));
        let Quantiles { mean, min, p25, p50, p75, p90, p99, max } = quantiles;
        assert_eq!((mean, min, max), (50.5, 1.0, 100.0));
        assert_eq!((p25, p50, p75, p90, p99), (25.0, 50.0, 75.0, 90.0, 99.0));
        assert_eq!(Quantiles::of([7.0]).p99, 7.0);
        assert_eq!(Quantiles::of([]), Quantiles::default());
    }

    #[test]
    fn jobs_of_one_instant_have_no_utilisation() {
        let description = workload(vec![job(0, 1, 1)], Span::ZERO).describe();
        assert_eq!((description.utilisation, description.utilisation_by_day.len()), (None, 0));
        assert!(description.to_string().contains("unknown"));
    }

    #[test]
    fn text_says_what_every_run_must_say() {
        let mut workload = workload(vec![job(0, 500, 1), job(1, 111, 1)], Span::from_hours(48));
        workload.cleaning.too_short = 3;
        workload.cleaning.overran = 4;
        workload.cleaning.promised = Some(9);
        let text = workload.describe().to_string();
        for piece in [
            "made up (seed 5)",
            "2 over 2.00 days",
            "mean 305.5",
            "30.6 % requested",
            "max 50.0 %",
            "100.00 % above 110",
            "dropped      3, shorter than a second 3",
            "ran longer than requested: 4",
            "header promises 9 jobs, the file has 0",
        ] {
            assert!(text.contains(piece), "{piece} missing in:\n{text}");
        }
    }
}
