//! Sample: asks a few random nodes when they are free, and takes the earliest time at which enough of them are.
//!
//! ```text
//! entry node        some neighbours
//!     │── Probe ─────▶│  when could you run this?
//!     │◀────── Offer ─│  my calendar, as if the job had no place in it; or not at all
//!     │               │  … all have answered, or the time is up: the earliest common start is proposed
//! ```
//!
//! The power of few choices: the plainest recipe that plans, and the yardstick for the others. It moves nothing once
//! placed, and knows no more of the grid than its neighbours and itself. A job for which these are too few waits for
//! the overlay to bring others.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{CborLen, Decode, Encode};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use shoal_model::calendar::{Against, Snapshot, View};
use shoal_model::honours::FieldSet;
use shoal_model::matching::{Needs, matches};
use shoal_model::{JobId, NodeId, Resources, Span, Time};

use super::{CLOCKS_APART_MOST, Command, Event, Here, IN_CALENDARS, Recipe, Stuck};
use crate::choose::earliest::earliest;
use crate::commit::two_phase::Failure;
use crate::protocol::{self, Ctx, Input, Layer, Never};

/// What the recipe can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Nodes asked for each node wanted, this one not counted.
    pub probes_per_node: u8,
    /// Nodes asked at least.
    pub probes_min: u8,
    /// How long to wait for offers, in milliseconds.
    pub wait_ms: u32,
    /// How often to look for another place when one could not be committed.
    pub retries: u8,
}

impl Default for Config {
    fn default() -> Config {
        Config { probes_per_node: 2, probes_min: 4, wait_ms: 1_000, retries: 5 }
    }
}

/// A commit takes three exchanges: a start so many answer times ahead lets it end before the job begins.
const LEAD_ANSWERS: u64 = 5;
/// What is added to that for disks and for turns that others take; doubles with each attempt that came too late.
const LEAD_LEAST: Span = Span::from_millis(5);
/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// When could you run this? Answered by [`Message::Offer`].
    #[n(0)]
    Probe {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which round of questions.
        #[n(1)]
        round: u32,
        /// What it needs.
        #[n(2)]
        needs: Box<Needs>,
    },
    /// My calendar without what I may have promised to this job before, if I will do at all.
    #[n(1)]
    Offer {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which round of questions.
        #[n(1)]
        round: u32,
        /// When I am free.
        #[n(2)]
        calendar: Option<Box<Snapshot<Resources>>>,
    },
}

/// What a probe is accounted for: job, round, needs and headers.
const PROBE_BYTES: u64 = 160;
/// What an offer is accounted for besides its calendar.
const OFFER_BYTES: u64 = 64;
/// What each step of a calendar is accounted for: a time and what is used from then on.
const STEP_BYTES: u64 = 24;

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &["probe", "offer"];

    fn kind(&self) -> usize {
        match self {
            Message::Probe { .. } => 0,
            Message::Offer { .. } => 1,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Probe { .. } => PROBE_BYTES,
            Message::Offer { calendar, .. } => {
                let steps = calendar.as_ref().map_or(0, |calendar| calendar.steps(View::Firm).count());
                OFFER_BYTES + STEP_BYTES * steps as u64
            }
        }
    }
}

/// Time to choose among the offers of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Close {
    job: JobId,
    round: u32,
}

/// The jobs that this node looks for a place for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sample {
    config: Config,
    open: BTreeMap<JobId, Search>,
}

/// The search for a place for one job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Search {
    needs: Needs,
    /// Who has denied the job.
    avoid: BTreeSet<NodeId>,
    round: u32,
    asked_at: Time,
    awaited: BTreeSet<NodeId>,
    asked: u32,
    /// In the order in which they came.
    offers: Vec<(NodeId, Snapshot<Resources>)>,
    /// Whether the offers of this round have been looked at.
    closed: bool,
    failures: u8,
    /// How far the clocks of others seem to be ahead of ours.
    ahead: Span,
}

impl Layer for Sample {
    type Command = Command;
    type Message = Message;
    type Timer = Close;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl Recipe for Sample {
    const HONOURS: FieldSet = IN_CALENDARS;

    fn handle(&mut self, input: Input<Sample>, here: &Here<'_>, ctx: &mut Ctx<'_, Sample>) {
        match input {
            Input::Boot => {}
            Input::Command(Command::Plan { job, needs, avoid }) => {
                self.open.insert(job, Search::new(needs, avoid));
                self.ask(job, here, ctx);
            }
            Input::Command(Command::Failed { job, why }) => self.on_failed(job, &why, here, ctx),
            Input::Command(Command::Leave(job)) => {
                self.open.remove(&job);
            }
            Input::Message { from, message } => match message {
                Message::Probe { job, round, needs } => {
                    let calendar =
                        matches(&needs, here.machine).then(|| Box::new(here.calendar.snapshot_without(job)));
                    ctx.send(from, Message::Offer { job, round, calendar });
                }
                Message::Offer { job, round, calendar } => {
                    self.on_offer(from, job, round, calendar.map(|calendar| *calendar), here, ctx)
                }
            },
            Input::Timer(Close { job, round }) => self.close(job, round, here, ctx),
            Input::Done(never) => match never {},
        }
    }
}

impl Sample {
    /// A recipe with nothing to do yet.
    pub fn new(config: Config) -> Sample {
        Sample { config, open: BTreeMap::new() }
    }

    /// How many jobs it looks for a place for.
    pub fn searches(&self) -> usize {
        self.open.len()
    }

    fn ask(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Sample>) {
        let Config { probes_per_node, probes_min, wait_ms, .. } = self.config;
        let Some(search) = self.open.get_mut(&job) else { return };
        let wanted = search.needs.nodes.get() as usize * usize::from(probes_per_node);
        let mut known: Vec<NodeId> =
            here.overlay.neighbours().filter(|node| !search.avoid.contains(node)).collect();
        let count = wanted.max(usize::from(probes_min)).min(known.len());
        for drawn in 0..count {
            let pick = ctx.chance.random_range(drawn..known.len());
            known.swap(drawn, pick);
        }
        known.truncate(count);
        search.round += 1;
        search.closed = false;
        search.asked_at = ctx.now;
        search.asked = count as u32 + 1;
        search.awaited = known.iter().copied().collect();
        search.offers.clear();
        if !search.avoid.contains(&ctx.me) && matches(&search.needs, here.machine) {
            search.offers.push((ctx.me, here.calendar.snapshot_without(job)));
        }
        let round = search.round;
        for node in known {
            ctx.send(node, Message::Probe { job, round, needs: Box::new(search.needs.clone()) });
        }
        if search.awaited.is_empty() {
            self.close(job, round, here, ctx);
        } else {
            ctx.wake_after(Span::from_millis(u64::from(wait_ms)), Close { job, round });
        }
    }

    fn on_offer(
        &mut self,
        from: NodeId,
        job: JobId,
        round: u32,
        calendar: Option<Snapshot<Resources>>,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Sample>,
    ) {
        let Some(search) = self.open.get_mut(&job).filter(|search| search.round == round && !search.closed)
        else {
            return;
        };
        // Only who was asked is heard, and once.
        if !search.awaited.remove(&from) {
            return;
        }
        search.offers.extend(calendar.map(|calendar| (from, calendar)));
        if search.awaited.is_empty() {
            self.close(job, round, here, ctx);
        }
    }

    /// Chooses among the offers that have come.
    fn close(&mut self, job: JobId, round: u32, here: &Here<'_>, ctx: &mut Ctx<'_, Sample>) {
        let Some(search) = self.open.get_mut(&job).filter(|search| search.round == round && !search.closed)
        else {
            return;
        };
        search.closed = true;
        // Our own calendar may have changed while the others answered.
        for (node, calendar) in &mut search.offers {
            if *node == ctx.me {
                *calendar = here.calendar.snapshot_without(job);
            }
        }
        let Needs { nodes, limit, begin, deadline, ref resources, .. } = search.needs;
        let (needed, fit) = (nodes.get(), search.offers.len() as u32);
        if fit < needed {
            ctx.report(Event::Stuck { job, why: Stuck::TooFew { needed, asked: search.asked, fit } });
            return;
        }
        let answers =
            if search.asked > 1 { ctx.now.since(search.asked_at) * LEAD_ANSWERS } else { Span::ZERO };
        let lead = answers + LEAD_LEAST * (1 << search.failures.min(10));
        let from = (ctx.now + search.ahead + lead).max(begin.unwrap_or_default());
        let lines: Vec<_> = search.offers.iter().map(|(_, calendar)| calendar.timeline()).collect();
        let Some(slot) = earliest(&lines, needed as usize, from, limit, resources, Against::Firm) else {
            ctx.report(Event::Stuck { job, why: Stuck::NeverFree });
            return;
        };
        if deadline.is_some_and(|deadline| slot.start + limit > deadline) {
            ctx.report(Event::Stuck { job, why: Stuck::TooLate { start: slot.start } });
            return;
        }
        let nodes = slot.chosen.iter().map(|&place| search.offers[place].0).collect();
        ctx.report(Event::Propose { job, start: slot.start, nodes });
    }

    fn on_failed(&mut self, job: JobId, why: &Failure, here: &Here<'_>, ctx: &mut Ctx<'_, Sample>) {
        let Some(search) = self.open.get_mut(&job) else { return };
        if let Failure::Refused { next: Some(next), .. } = why {
            let ahead = next.since(ctx.now);
            if ahead <= CLOCKS_APART_MOST {
                search.ahead = search.ahead.max(ahead);
            }
        }
        if search.failures >= self.config.retries {
            search.failures = 0;
            ctx.report(Event::Stuck { job, why: Stuck::Outrun });
        } else {
            search.failures += 1;
            self.ask(job, here, ctx);
        }
    }
}

impl Search {
    fn new(needs: Needs, avoid: BTreeSet<NodeId>) -> Search {
        Search {
            needs,
            avoid,
            round: 0,
            asked_at: Time::ZERO,
            awaited: BTreeSet::new(),
            asked: 0,
            offers: Vec::new(),
            closed: true,
            failures: 0,
            ahead: Span::ZERO,
        }
    }
}
