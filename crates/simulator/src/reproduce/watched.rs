//! A grid whose runs are not those of a scenario, under the eyes of the checkers.

use shoal_model::Time;
use shoal_protocols::node::Node;

use crate::checks::{Bounds, Checks, Violation, Watcher};
use crate::grid::Grid;
use crate::run::Ending;
use crate::world::Sight;

/// Machines are looked at once in so many steps; what happens is judged always. At every step this would cost a quarter of
/// the time of a run with little to do.
const STEPS: u32 = 4;

/// A grid, and who watches it.
pub(super) struct Watched {
    pub grid: Grid<Node>,
    checkers: Watcher,
    steps: u32,
}

impl Watched {
    /// A grid with the usual commit, built from this seed; `replay` is the command that runs it again.
    pub fn new(grid: Grid<Node>, seed: u64, replay: String) -> Watched {
        let checkers = Watcher::new(&grid, Checks::all(), Bounds::default(), seed, replay);
        Watched { grid, checkers, steps: 0 }
    }

    /// Lets everything happen that is due before a time, and hands out what was seen.
    pub fn run_before(&mut self, until: Time) -> Result<Vec<Sight<Node>>, Violation> {
        self.grid.world().run_before(until);
        let sights = self.grid.world().sights();
        for sight in &sights {
            self.checkers.show(sight)?;
        }
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) {
            self.checkers.show_some(&self.grid)?;
        }
        Ok(sights)
    }

    /// Looks at all machines when what was to be seen has been seen, whatever may still be on its way.
    pub fn end(&mut self) -> Result<(), Violation> {
        self.checkers.see_out(&mut self.grid, &Ending::CutShort { begin: Time::NEVER })
    }
}
