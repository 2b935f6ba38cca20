//! What an exploration found, and the story of how it came to a violation.

use std::fmt;

use shoal_model::Time;

use super::moves::Move;
use super::react::{Asked, Stimulus, waits};
use super::state::{Effect, Letter, Point};
use super::step::Stepper;
use super::{Explorable, Monitor, node_id};

/// What an exploration found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Distinct states.
    pub states: u32,
    /// Moves made, also to states seen before.
    pub transitions: u64,
    /// States in which nothing happens any more, unless by a fault or a restart.
    pub rests: u32,
    /// Moves on the longest path.
    pub depth: u32,
    /// The most states that waited to be looked at.
    pub frontier: u32,
    /// Distinct states of single nodes, over all nodes.
    pub sites: u32,
    /// What was left unexplored.
    pub cut: Cut,
    /// What was found to be wrong.
    pub violation: Option<Violation>,
    /// How long it took; no part of equality.
    pub seconds: f64,
}

/// What was left unexplored, by the limit that says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// There are more states.
    pub states: bool,
    /// There are longer paths.
    pub depth: bool,
    /// There are timers due beyond the horizon.
    pub horizon: bool,
}

impl Report {
    /// Whether every state up to the horizon was looked at, and nothing was wrong.
    pub fn holds(&self) -> bool {
        self.violation.is_none() && !self.cut.states && !self.cut.depth
    }
}

impl PartialEq for Report {
    fn eq(&self, other: &Report) -> bool {
        let facts = |report: &Report| {
            let Report { states, transitions, rests, depth, frontier, sites, cut, .. } = *report;
            (states, transitions, rests, depth, frontier, sites, cut)
        };
        facts(self) == facts(other) && self.violation == other.violation
    }
}

impl Eq for Report {}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { states, transitions, rests, depth, frontier, sites, seconds, .. } = self;
        writeln!(f, "{states} states ({rests} at rest, {sites} of single nodes), {transitions} transitions")?;
        writeln!(f, "depth {depth}, frontier {frontier}, {seconds:.1} s")?;
        let Cut { states, depth, horizon } = self.cut;
        for (cut, what) in [(states, "states"), (depth, "depth"), (horizon, "horizon")] {
            if cut {
                writeln!(f, "cut: there is more beyond the limit of {what}")?;
            }
        }
        match &self.violation {
            Some(violation) => write!(f, "{violation}"),
            None if self.holds() => f.write_str("complete, no violation"),
            None => f.write_str("not complete, no violation so far"),
        }
    }
}

/// What was found to be wrong, and how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that was broken: its name, `monitor`, or `cores do not panic`.
    pub rule: String,
    /// What was wrong.
    pub why: String,
    /// How it came about, from the start of the first node on.
    pub path: Vec<Leg>,
}

/// One move on the way to a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// When, by the clock of the node concerned.
    pub at: Time,
    /// What happened: `n1 -> n2 Prepare(7)`.
    pub what: String,
    /// What followed, in order: `sends n1 Yes(7)`.
    pub then: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for leg in &self.path {
            writeln!(f, "{} {}", leg.at, leg.what)?;
            for then in &leg.then {
                writeln!(f, "    {then}")?;
            }
        }
        write!(f, "violated: {}: {}", self.rule, self.why)
    }
}

/// A broken rule, before its story is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub rule: String,
    pub why: String,
}

impl Flaw {
    pub fn new(rule: &str, why: &str) -> Flaw {
        Flaw { rule: rule.to_owned(), why: why.to_owned() }
    }
}

/// Tells what a move does in a state; `happened` counts the effects before the crash that cuts it short.
pub(super) fn tell<P: Explorable, M: Monitor<P>>(
    stepper: &Stepper<'_, P, M>,
    point: &Point,
    made: Move,
    happened: Option<u16>,
) -> Leg {
    let letter = |letter: u32, fate: &str| {
        let Letter { from, to, message } = stepper.tables.letters.get(letter);
        format!("{} -> {} {message:?}{fate}", node_id(*from), node_id(*to))
    };
    let fate = |number: u32, fate: &str| {
        let to = node_id(stepper.tables.letters.get(number).to);
        Leg { at: stepper.state(point).now(to), what: letter(number, fate), then: Vec::new() }
    };
    match made {
        Move::Miss(number) => fate(number, " finds nobody"),
        Move::Lose(number) => fate(number, " is lost"),
        Move::Double(number) => fate(number, " is doubled"),
        Move::Pass(now) => Leg { at: now, what: "time has passed".to_owned(), then: Vec::new() },
        Move::Befall { node, stimulus, now } => {
            let site = stepper.tables.sites.get(point.ids[node]);
            let me = node_id(node);
            let what = match stimulus {
                Stimulus::Start => format!("{me} starts"),
                Stimulus::Crash => format!("{me} crashes"),
                Stimulus::Letter(read) => letter(read, ""),
                Stimulus::Timer => format!("{me} is reminded of {:?}", site.timers[0].1),
                Stimulus::Wait => format!("{me} has waited"),
                Stimulus::Done { errand, outcome } => {
                    let action = &site.errands[usize::from(errand)].action;
                    let outcomes = (stepper.explorer.outcomes)(me, action);
                    format!("{me} is done with {action:?}: {:?}", outcomes[usize::from(outcome)])
                }
                Stimulus::Command(command) => {
                    format!("{me} is told {:?}", stepper.explorer.script[usize::from(command)].1)
                }
                Stimulus::Durable => format!("{me} has written"),
            };
            Leg { at: now, what, then: consequences(stepper, point, node, stimulus, now, happened) }
        }
    }
}

fn consequences<P: Explorable, M: Monitor<P>>(
    stepper: &Stepper<'_, P, M>,
    point: &Point,
    node: usize,
    stimulus: Stimulus,
    now: Time,
    happened: Option<u16>,
) -> Vec<String> {
    let Stepper { explorer, tables, reactions, .. } = stepper;
    let asked = reactions.ask(explorer, tables, point.ids[node], stimulus, now);
    let Asked { mut site, effects } = match asked {
        Ok(asked) => asked,
        Err(panic) => return vec![panic],
    };
    let mut told = Vec::new();
    for effect in effects.into_iter().take(happened.map_or(usize::MAX, usize::from)) {
        let text = match &effect {
            Effect::Send(to, message) => format!("sends {to} {message:?}"),
            Effect::Save(record) => format!("saves {record:?}"),
            Effect::Erase(key) => format!("erases {key:?}"),
            Effect::Act(action) => format!("does {action:?}"),
            Effect::Report(event) => format!("reports {event:?}"),
        };
        let waits = waits(explorer.disks, stimulus, &site, &effect);
        told.push(if waits { format!("{text}, once written") } else { text });
        if waits {
            site.waiting.push_back(effect);
        }
    }
    if happened.is_some() {
        told.push("crashes".to_owned());
    }
    told
}
