//! Shows how far long work is: a bar on stderr, and only where somebody watches.

use indicatif::{ProgressBar, ProgressStyle};
use shoal_simulator::checks::Violation;
use shoal_simulator::grid::{Grid, NodeLike};
use shoal_simulator::reproduce;
use shoal_simulator::run::{Progress, Watch};

/// A bar that counts jobs as they end; a clone is the same bar.
#[derive(Clone)]
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar with nothing on it yet; hidden where stderr is no terminal.
    pub fn new() -> Bar {
        let bar = ProgressBar::new(1);
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} jobs ended  {msg}  {elapsed}");
        bar.set_style(style.expect("a template that makes sense"));
        Bar(bar)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl<P: NodeLike> Watch<P> for Bar {
    fn pause(&mut self, _grid: &mut Grid<P>, progress: Progress) -> Result<(), Violation> {
        self.0.set_length(progress.jobs as u64);
        self.0.set_position(progress.ended as u64);
        self.0.set_message(format!("{} of at most {}", progress.now, progress.until));
        Ok(())
    }
}

/// A bar over many runs.
pub struct Runs(ProgressBar);

impl Runs {
    /// A bar with nothing on it yet; hidden where stderr is no terminal.
    pub fn new() -> Runs {
        let bar = ProgressBar::new(1_000);
        let style = ProgressStyle::with_template("{bar:40} {percent} %  {msg}  {elapsed}");
        bar.set_style(style.expect("a template that makes sense"));
        Runs(bar)
    }

    /// Shows how far they are.
    pub fn tell(&self, progress: reproduce::Progress) {
        self.0.set_position((progress.share * 1_000.0) as u64);
        self.0.set_message(format!("{} of {} runs", progress.done, progress.runs));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A bar that counts bytes.
pub struct Transfer(ProgressBar);

impl Transfer {
    /// A bar with nothing on it yet; hidden where stderr is no terminal.
    pub fn new(what: &'static str) -> Transfer {
        let bar = ProgressBar::new(0);
        let style =
            ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes}  {bytes_per_sec}  {elapsed}");
        bar.set_style(style.expect("a template that makes sense"));
        bar.set_message(what);
        Transfer(bar)
    }

    /// One that nobody sees.
    #[cfg(test)]
    pub fn hidden() -> Transfer {
        Transfer(ProgressBar::hidden())
    }

    /// How many there are to move.
    pub fn of(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    /// Some were read, of nobody knows how many.
    pub fn read(&self, bytes: u64) {
        self.0.inc_length(bytes);
        self.0.inc(bytes);
    }

    /// Some were moved.
    pub fn moved(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Some were there already.
    pub fn at_least(&self, bytes: u64) {
        if self.0.position() < bytes {
            self.0.set_position(bytes);
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
