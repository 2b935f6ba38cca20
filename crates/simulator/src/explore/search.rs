//! Looks at one state after the other, remembers which were seen, and finds the way back to each.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use super::moves::{Move, Moves};
use super::print::{Pass, Print};
use super::report::{Cut, Flaw, Leg, Report, Violation, tell};
use super::state::Point;
use super::step::Stepper;
use super::{Explorable, Explorer, Monitor, Order};

/// Looks at every state, up to the first violation or the limits.
pub(super) fn run<P: Explorable, M: Monitor<P>>(explorer: &Explorer<P, M>) -> Report {
    let began = Instant::now();
    let mut search = Search {
        explorer,
        stepper: Stepper::new(explorer),
        seen: HashSet::default(),
        trail: Vec::new(),
        waiting: VecDeque::new(),
        depth: 0,
        frontier: 0,
        transitions: 0,
        rests: 0,
        cut: Cut::default(),
    };
    let found = search.run().err();
    let seconds = began.elapsed().as_secs_f64();
    Report {
        states: search.trail.len() as u32,
        transitions: search.transitions,
        rests: search.rests,
        depth: search.depth,
        frontier: search.frontier,
        sites: search.stepper.tables.sites.len() as u32,
        cut: search.cut,
        violation: found.map(|found| search.story(found)),
        seconds,
    }
}

struct Search<'e, P: Explorable, M> {
    explorer: &'e Explorer<P, M>,
    stepper: Stepper<'e, P, M>,
    /// The prints of all states; only ever asked for one, so that its order means nothing.
    seen: HashSet<Print, Pass>,
    /// How each state was come to, by its number.
    trail: Vec<Origin>,
    /// States still to be looked at, with their numbers and depths.
    waiting: VecDeque<(Point, u32, u32)>,
    depth: u32,
    frontier: u32,
    transitions: u64,
    rests: u32,
    cut: Cut,
}

/// How a state was come to.
#[derive(Clone, Copy)]
struct Origin {
    /// The number of the state before; of the first state, its own.
    parent: u32,
    step: Step,
}

/// A move by its place among those that the state before had.
#[derive(Clone, Copy)]
struct Step {
    place: u16,
    /// Which crash cuts it short; [`WHOLE`] for none.
    cut: u16,
}

const WHOLE: u16 = u16::MAX;

impl Step {
    fn new(place: usize, cut: Option<usize>) -> Step {
        let short = |number: usize| u16::try_from(number).expect("a small world has few moves");
        Step { place: short(place), cut: cut.map_or(WHOLE, short) }
    }

    fn cut(self) -> Option<usize> {
        (self.cut != WHOLE).then_some(usize::from(self.cut))
    }
}

/// Where a rule was broken.
struct Found {
    flaw: Flaw,
    /// The state that was looked at; none if the nodes had not all started.
    at: Option<u32>,
    /// The move from it that showed the flaw; none if the state itself has it.
    step: Option<Step>,
}

impl<P: Explorable, M: Monitor<P>> Search<'_, P, M> {
    fn run(&mut self) -> Result<(), Found> {
        let mut first = self.stepper.blank();
        for made in self.stepper.starts() {
            let reaction = self.stepper.reaction(&first, made);
            let made = self.stepper.make(&mut first, made, reaction, None);
            made.map_err(|flaw| Found { flaw, at: None, step: None })?;
        }
        self.meet(&first, 0, Origin { parent: 0, step: Step::new(0, None) })?;

        let mut moves = Moves::default();
        let mut next = Point::default();
        while let Some((point, number, depth)) = self.take() {
            self.stepper.moves(&point, &mut moves);
            self.cut.horizon |= moves.beyond;
            if !moves.busy {
                self.rests += 1;
                let rested = self.stepper.at_rest(&point);
                rested.map_err(|flaw| Found { flaw, at: Some(number), step: None })?;
            }
            if depth == self.explorer.limits.depth {
                self.cut.depth |= !moves.list.is_empty();
                continue;
            }
            for (place, &made) in moves.list.iter().enumerate() {
                let reaction = self.stepper.reaction(&point, made);
                let cuts = self.stepper.cuts(&point, reaction);
                for cut in std::iter::once(None).chain((0..cuts).map(Some)) {
                    next.copy_from(&point);
                    let step = Step::new(place, cut);
                    let made = self.stepper.make(&mut next, made, reaction, cut);
                    made.map_err(|flaw| Found { flaw, at: Some(number), step: Some(step) })?;
                    self.transitions += 1;
                    self.meet(&next, depth + 1, Origin { parent: number, step })?;
                    if self.cut.states {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Option<(Point, u32, u32)> {
        match self.explorer.order {
            Order::Nearest => self.waiting.pop_front(),
            Order::Latest => self.waiting.pop_back(),
        }
    }

    /// Takes note of a state, unless it was seen before.
    fn meet(&mut self, point: &Point, depth: u32, origin: Origin) -> Result<(), Found> {
        let print = point.print(&self.stepper.tables);
        let number = self.trail.len() as u32;
        if number == self.explorer.limits.states {
            self.cut.states |= !self.seen.contains(&print);
            return Ok(());
        }
        if !self.seen.insert(print) {
            return Ok(());
        }
        self.trail.push(origin);
        self.depth = self.depth.max(depth);
        let obeyed = self.stepper.always(point);
        obeyed.map_err(|flaw| Found { flaw, at: Some(number), step: None })?;
        self.waiting.push_back((point.clone(), number, depth));
        self.frontier = self.frontier.max(self.waiting.len() as u32);
        Ok(())
    }

    /// Goes the way to a violation once more, and tells what happens.
    fn story(&mut self, found: Found) -> Violation {
        let mut steps: Vec<Step> = found.step.into_iter().collect();
        let mut number = found.at.unwrap_or(0);
        while number != 0 {
            let Origin { parent, step } = self.trail[number as usize];
            steps.push(step);
            number = parent;
        }

        let mut point = self.stepper.blank();
        let mut path = Vec::new();
        // Only the last move can show a flaw, so whether there is one does not matter here.
        for made in self.stepper.starts() {
            path.push(self.stepper.retrace(&mut point, made, None));
        }
        let mut moves = Moves::default();
        for step in steps.into_iter().rev() {
            self.stepper.moves(&point, &mut moves);
            path.push(self.stepper.retrace(&mut point, moves.list[usize::from(step.place)], step.cut()));
        }
        let Flaw { rule, why } = found.flaw;
        Violation { rule, why, path }
    }
}

impl<P: Explorable, M: Monitor<P>> Stepper<'_, P, M> {
    /// Makes a move that was made before, and tells of it.
    fn retrace(&mut self, point: &mut Point, made: Move, cut: Option<usize>) -> Leg {
        let reaction = self.reaction(point, made);
        let happened = self.snap(reaction, cut).map(|snap| snap.happened);
        let leg = tell(self, point, made, happened);
        let _ = self.make(point, made, reaction, cut);
        leg
    }
}
