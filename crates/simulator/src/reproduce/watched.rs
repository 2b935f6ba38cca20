//! A grid whose runs are not those of a scenario, under the eyes of the checkers.

use shoal_model::Time;
use shoal_protocols::node::Node;

use crate::checks::{Bounds, Checks, Violation, Watcher, as_node};
use crate::grid::{Grid, NodeLike};
use crate::run::Ending;
use crate::world::Sight;

/// Machines are looked at once in so many steps; what happens is judged always. At every step this would cost a quarter of
/// the time of a run with little to do.
const STEPS: u32 = 4;

/// A grid, and who watches it.
pub(super) struct Watched<P: NodeLike = Node> {
    pub grid: Grid<P>,
    checkers: Watcher,
    steps: u32,
}

impl<P: NodeLike> Watched<P> {
    /// A grid with the usual commit, built from this seed; `replay` is the command that runs it again.
    pub fn new(grid: Grid<P>, seed: u64, replay: String) -> Watched<P> {
        let checkers = Watcher::new(&grid, Checks::all(), Bounds::default(), seed, replay);
        Watched { grid, checkers, steps: 0 }
    }

    /// Lets everything happen that is due before a time, and hands out what was seen.
    pub fn run_before(&mut self, until: Time) -> Result<Vec<Sight<Node>>, Violation> {
        self.grid.world().run_before(until);
        let sights: Vec<Sight<Node>> = self.grid.world().sights().into_iter().map(as_node).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sabotage::{DoubleBooking, HalfStarted, Honest, Plant};
    use crate::checks::tests::planted::{busy, gang};

    fn verdict<F: Plant>(nodes: u32) -> Option<&'static str> {
        let jobs: Vec<_> = (0..12).map(|_| gang(nodes, 60)).collect();
        let mut watched = Watched::new(busy::<F>(&[], &jobs), 7, "this test".to_owned());
        let steps = (60..1_200).step_by(5);
        let found = steps.map(|secs| watched.run_before(Time::from_secs(secs))).find_map(Result::err);
        found.or_else(|| watched.end().err()).map(|violation| violation.check)
    }

    #[test]
    fn faults_are_found_and_honest_runs_are_clean() {
        assert_eq!([verdict::<Honest>(1), verdict::<Honest>(2)], [None, None]);
        assert_eq!(verdict::<DoubleBooking>(1), Some("overbooked"));
        assert_eq!(verdict::<HalfStarted>(2), Some("gang"));
    }
}
