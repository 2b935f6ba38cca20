//! Shows a run to the checkers: what is seen, and from time to time the machines.

use std::collections::BTreeMap;

use shoal_model::{Machine, NodeId, Time};
use shoal_protocols::node::Node;

use super::aftermath::Stir;
use super::exempt::Exempt;
use super::lasting::Lasting;
use super::sabotage::{Plant, Saboteur};
use super::{Bounds, Broken, Checks, Known, View, Violation, as_node};
use crate::clock::Clock;
use crate::grid::{Grid, NodeLike};
use crate::run::{Ending, Progress, Watch};
use crate::world::Sight;

/// The most machines that are looked at in one pause of a run; in a larger grid all have their turn.
const LOOKED_AT_MOST: usize = 512;
/// The fewest. In between, as many as things have happened since the last pause: quiet months cost next to nothing.
const LOOKED_AT_LEAST: usize = 16;

/// All checkers, with what they know of the grid that they watch.
pub struct Watcher {
    checks: Checks,
    machines: BTreeMap<NodeId, Machine>,
    clocks: BTreeMap<NodeId, Clock>,
    exempt: Exempt,
    lasting: Lasting,
    pub(super) stir: Stir,
    pub(super) bounds: Bounds,
    pub(super) healed_from: Time,
    seed: u64,
    replay: String,
    facts: u64,
    /// Whose turn it is to be looked at.
    turn: usize,
    /// How much has happened since the last pause.
    news: usize,
}

impl Watcher {
    /// Checkers of a grid with this seed; `replay` is the command that runs it again.
    ///
    /// # Panics
    /// If the grid was built without `watch`.
    pub fn new<P: NodeLike>(
        grid: &Grid<P>,
        checks: Checks,
        bounds: Bounds,
        seed: u64,
        replay: String,
    ) -> Watcher {
        let world = grid.look();
        assert!(world.is_watched(), "checkers see nothing of a grid that is not watched");
        Watcher {
            checks,
            machines: world.nodes().map(|node| (node, grid.machine(node).clone())).collect(),
            clocks: grid.clocks(),
            exempt: Exempt::default(),
            lasting: Lasting::default(),
            stir: Stir::default(),
            bounds,
            healed_from: grid.healed_from(),
            seed,
            replay,
            facts: 0,
            turn: 0,
            news: 0,
        }
    }

    /// How many facts were checked: things that happened, and machines looked at.
    pub fn facts(&self) -> u64 {
        self.facts
    }

    /// Shows something that happened.
    pub fn show(&mut self, sight: &Sight<Node>) -> Result<(), Violation> {
        self.facts += 1;
        self.news += 1;
        self.exempt.see(sight);
        self.lasting.see(sight);
        self.stir.see(sight);
        let Watcher { checks, machines, clocks, exempt, bounds, healed_from, .. } = self;
        let known = Known { machines, clocks, exempt, bounds, healed_from: *healed_from };
        let found = checks.each(|check| check.see(sight, &known));
        found.map_err(|found| self.violation(found))
    }

    /// Shows all machines.
    pub fn show_all<P: NodeLike>(&mut self, grid: &Grid<P>) -> Result<(), Violation> {
        self.look(grid, 0, grid.look().nodes().count(), Checks::look)
    }

    /// Shows all machines at the end, when everything should be at rest.
    pub fn show_end<P: NodeLike>(&mut self, grid: &Grid<P>) -> Result<(), Violation> {
        self.look(grid, 0, grid.look().nodes().count(), Checks::end)
    }

    /// Shows the machines whose turn it is.
    pub(crate) fn show_some<P: NodeLike>(&mut self, grid: &Grid<P>) -> Result<(), Violation> {
        let (all, from) = (grid.look().nodes().count(), self.turn);
        let count = std::mem::take(&mut self.news).clamp(LOOKED_AT_LEAST, LOOKED_AT_MOST);
        let to = (from + count).min(all);
        self.turn = if to == all { 0 } else { to };
        self.look(grid, from, to, Checks::look)
    }

    pub(super) fn look<P: NodeLike>(
        &mut self,
        grid: &Grid<P>,
        from: usize,
        to: usize,
        judge: impl FnOnce(&mut Checks, &View<'_>) -> Result<(), (&'static str, Broken)>,
    ) -> Result<(), Violation> {
        self.facts += (to - from) as u64;
        let Watcher { checks, machines, clocks, exempt, bounds, healed_from, .. } = self;
        let known = Known { machines, clocks, exempt, bounds, healed_from: *healed_from };
        let nodes: Vec<NodeId> = grid.look().nodes().skip(from).take(to - from).collect();
        let found = judge(checks, &View::of(grid, &nodes, known));
        found.map_err(|found| self.violation(found))?;
        while let Some(job) = self.lasting.next(grid.look().now()) {
            self.exempt.forget(job);
            self.checks.forget(job);
        }
        Ok(())
    }

    fn violation(&self, (check, broken): (&'static str, Broken)) -> Violation {
        Violation { check, broken, seed: self.seed, replay: self.replay.clone() }
    }
}

impl Watch for Watcher {
    fn see(&mut self, sight: &Sight<Node>) -> Result<(), Violation> {
        self.show(sight)
    }

    fn pause(&mut self, grid: &mut Grid, _progress: Progress) -> Result<(), Violation> {
        self.show_some(grid)
    }

    fn end(&mut self, grid: &mut Grid, ending: &Ending) -> Result<(), Violation> {
        self.see_out(grid, ending)
    }

    fn facts(&self) -> u64 {
        self.facts
    }
}

/// What is seen of a node with a planted fault is judged as if it were sound.
impl<F: Plant> Watch<Saboteur<F>> for Watcher {
    fn see(&mut self, sight: &Sight<Saboteur<F>>) -> Result<(), Violation> {
        self.show(&as_node(sight.clone()))
    }

    fn pause(&mut self, grid: &mut Grid<Saboteur<F>>, _progress: Progress) -> Result<(), Violation> {
        self.show_some(grid)
    }

    fn end(&mut self, grid: &mut Grid<Saboteur<F>>, ending: &Ending) -> Result<(), Violation> {
        self.see_out(grid, ending)
    }

    fn facts(&self) -> u64 {
        self.facts
    }
}
