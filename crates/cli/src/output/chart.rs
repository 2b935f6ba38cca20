//! Small pictures for a terminal: made of characters alone, so that they need no colour and survive a pipe.

use std::fmt;

/// The width where there is no terminal to ask.
const WIDTH_DEFAULT: usize = 80;
/// Wider pictures are not easier to read.
const WIDTH_MAX: usize = 120;
/// Room for a picture that is left however narrow the terminal is.
const WIDTH_LEAST: usize = 10;

const EIGHTHS_UP: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const EIGHTHS_RIGHT: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// How many characters fit in a line.
pub fn terminal_width() -> usize {
    let width = terminal_size::terminal_size().map_or(WIDTH_DEFAULT, |(width, _)| width.0.into());
    width.min(WIDTH_MAX)
}

/// Bars with a title each, from the left.
pub struct Bars {
    /// What they show.
    pub title: String,
    /// Their titles, lengths and what is written after them.
    pub rows: Vec<(String, u64, String)>,
    /// How wide all of it may be.
    pub width: usize,
}

/// Heights in one line.
pub struct Spark {
    /// What they show.
    pub title: String,
    /// The heights; neighbours share a character where there are too many.
    pub values: Vec<f64>,
    /// What the highest stands for.
    pub highest: String,
    /// How wide all of it may be.
    pub width: usize,
}

impl fmt::Display for Bars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.title)?;
        let widest = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max();
        let titles = widest(&mut self.rows.iter().map(|row| &row.0)).unwrap_or(0);
        let ends = widest(&mut self.rows.iter().map(|row| &row.2)).unwrap_or(0);
        let room = self.width.saturating_sub(titles + ends + 4).max(WIDTH_LEAST);
        let longest = self.rows.iter().map(|row| row.1).max().unwrap_or(0).max(1);
        for (title, length, end) in &self.rows {
            let eighths = (*length as u128 * room as u128 * 8).div_ceil(longest.into()) as usize;
            let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
            // The last one alone may be a part of a character; of none there is nothing to see.
            bar.extend(Some(EIGHTHS_RIGHT[eighths % 8]).filter(|part| *part != ' '));
            let line = format!("{title:>titles$} {bar} {end}");
            write!(f, "\n {}", line.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Display for Spark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (highest {})", self.title, self.highest)?;
        let room = self.width.saturating_sub(1).max(WIDTH_LEAST);
        let values = highest_of_each(&self.values, room);
        let most = values.iter().copied().fold(0.0, f64::max);
        let level =
            |value: f64| if most > 0.0 { (value / most * 8.0).ceil().clamp(0.0, 8.0) as usize } else { 0 };
        let line: String = values.iter().map(|&value| EIGHTHS_UP[level(value)]).collect();
        write!(f, " {}", line.trim_end())
    }
}

/// At most so many values, the highest of those that share a place.
fn highest_of_each(values: &[f64], places: usize) -> Vec<f64> {
    if values.len() <= places {
        return values.to_vec();
    }
    let edge = |place: usize| place * values.len() / places;
    (0..places)
        .map(|place| values[edge(place)..edge(place + 1)].iter().copied().fold(0.0, f64::max))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_fit_their_width() {
        for width in [24, 40, 80, 119] {
            let rows = (0..20).map(|row| (format!("{row}"), row * 977, format!("{row} jobs"))).collect();
            let bars = Bars { title: "t".to_owned(), rows, width }.to_string();
            let values = (0..10_000).map(f64::from).collect();
            let highest = "9".to_owned();
            let spark = Spark { title: "t".to_owned(), values, highest, width }.to_string();
            for line in bars.lines().chain(spark.lines().skip(1)) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn what_is_there_is_seen_and_what_is_not_is_empty() {
        let row = |title: &str, length: u64| (title.to_owned(), length, length.to_string());
        let bars = Bars {
            title: "jobs".to_owned(),
            rows: vec![row("a", 100_000), row("b", 1), row("c", 0)],
            width: 20,
        };
        assert_eq!(bars.to_string(), "jobs\n a ██████████ 100000\n b ▏ 1\n c  0");
        let highest = "8".to_owned();
        let spark = Spark { title: "s".to_owned(), values: vec![0.0, 0.001, 4.0, 8.0], highest, width: 20 };
        assert_eq!(spark.to_string(), "s (highest 8)\n  ▁▄█");
    }

    #[test]
    fn nothing_is_fine() {
        assert_eq!(Bars { title: "t".to_owned(), rows: vec![], width: 0 }.to_string(), "t");
        let highest = "0".to_owned();
        let spark = Spark { title: "t".to_owned(), values: vec![0.0; 500], highest, width: 0 };
        assert_eq!(spark.to_string(), "t (highest 0)\n ");
    }

    #[test]
    fn many_values_keep_their_highest() {
        let mut values = vec![1.0; 1_000];
        values[617] = 9.0;
        let kept = highest_of_each(&values, 30);
        assert_eq!(kept.len(), 30);
        assert_eq!(kept.iter().filter(|&&value| value == 9.0).count(), 1);
    }
}
