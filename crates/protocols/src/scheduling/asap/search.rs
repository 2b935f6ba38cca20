//! Algorithm B, the searcher: its own neighbours first, then theirs, until enough are free; else the earliest time at
//! which enough of all those found are.
//!
//! ```text
//! entry node A      searcher B       its neighbours, one after the other
//!     │── Search ─────▶│                  │
//!     │                │── CacheRequest ─▶│  unless enough of B's own neighbours are free at once
//!     │                │◀──── CacheReply ─│  … until they are, or all have been asked
//!     │◀─ SearchReply ─│
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rand::RngExt;
use shoal_model::calendar::{Against, Interval};
use shoal_model::matching::matches;
use shoal_model::{JobId, Needs, NodeId, Span, Time};

use super::Asap;
use super::config::Config;
use super::message::{self, Answer, Message, Purpose, Ticket, Timer};
use super::pace::Pace;
use super::policy::Source;
use super::schedule::Schedule;
use crate::choose::earliest::{Request, earliest_by};
use crate::overlay::cyclon::CACHE_MAX;
use crate::protocol::{Chance, Ctx};
use crate::scheduling::{Event, Here};

/// The most tasks that a node has for others at once; beyond, it does not answer.
pub(super) const TASKS_MAX: usize = 65_536;

/// What this node does for others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Searcher {
    last: Ticket,
    /// Of whoever is asked for a cache or a schedule.
    pace: Pace,
    tasks: BTreeMap<Ticket, Task>,
}

/// Something that takes more than one exchange.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Task {
    /// A search, for an entry node.
    Search(Box<Search>),
    /// Schedules of all neighbours, for a searcher.
    Gather { asker: NodeId, theirs: Ticket, awaited: BTreeSet<NodeId>, got: Vec<(NodeId, Schedule)> },
}

/// A search under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Search {
    asker: NodeId,
    request: message::Search,
    /// Candidates in the order of discovery (C), with whether each is free at once.
    candidates: Vec<Candidate>,
    /// Everybody met so far; candidates with their place.
    met: BTreeMap<NodeId, Option<usize>>,
    /// How many candidates are free at once.
    free: u32,
    /// Whom to ask next, with their distance from here.
    frontier: VecDeque<(NodeId, u16)>,
    asking: Asking,
    asked_at: Time,
    step: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Candidate {
    node: NodeId,
    schedule: Schedule,
    free: bool,
}

/// Whose answer a search waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Asking {
    Nobody,
    /// All neighbours, for their own schedules.
    Schedules(BTreeSet<NodeId>),
    /// A node at this distance, for its cache.
    Cache(NodeId, u16),
}

impl Searcher {
    /// How much is under way for others.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    fn open(&mut self, task: Task) -> Ticket {
        self.last = Ticket(self.last.0 + 1);
        self.tasks.insert(self.last, task);
        self.last
    }

    fn search(&mut self, ticket: Ticket) -> Option<&mut Search> {
        match self.tasks.get_mut(&ticket)? {
            Task::Search(search) => Some(search),
            Task::Gather { .. } => None,
        }
    }
}

impl Asap {
    /// Steps 1 and 2.
    pub(super) fn on_search(
        &mut self,
        asker: NodeId,
        request: message::Search,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Asap>,
    ) {
        if self.searcher.tasks.len() >= TASKS_MAX {
            return;
        }
        let (patience, job) = (request.patience, request.job);
        let mut search = Search::new(asker, request);
        let mut neighbours: Vec<NodeId> = here.overlay.neighbours().collect();
        shuffle(&mut neighbours, ctx.chance);
        if self.config.include_self {
            let own = self.own_without(search.request.job, here);
            search.meet(ctx.me, own);
        }
        let awaited = match self.sharing.source() {
            Source::Cache(cache) => {
                cache.schedules().for_each(|(node, schedule)| search.meet(node, schedule.clone()));
                None
            }
            Source::Ask { searching, .. } => Some(searching),
        };
        search.frontier = neighbours.iter().map(|&node| (node, 1)).collect();
        let Some(purpose) = awaited else {
            let ticket = self.searcher.open(Task::Search(Box::new(search)));
            self.stop_later(ticket, patience, ctx);
            self.advance(ticket, ctx);
            return;
        };
        search.asking = Asking::Schedules(neighbours.iter().copied().collect());
        search.asked_at = ctx.now;
        let ticket = self.searcher.open(Task::Search(Box::new(search)));
        self.stop_later(ticket, patience, ctx);
        if neighbours.is_empty() {
            self.advance(ticket, ctx);
            return;
        }
        for node in neighbours {
            ctx.send(node, Message::ScheduleRequest(ticket, purpose, Some(job)));
        }
        let wait = self.config.step_timeout(patience, self.searcher.pace);
        ctx.wake_after(wait, Timer::Silent(ticket, 0));
    }

    /// A searcher wants to know our neighbours.
    pub(super) fn on_cache_request(
        &mut self,
        asker: NodeId,
        (theirs, wait): (Ticket, Span),
        job: JobId,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Asap>,
    ) {
        let purpose = match self.sharing.source() {
            Source::Cache(cache) => {
                let entries: Box<[_]> =
                    cache.schedules().map(|(node, schedule)| (node, schedule.clone())).collect();
                self.tally.fetched += entries.len() as u64;
                ctx.send(asker, Message::CacheReply(theirs, entries));
                return;
            }
            Source::Ask { answering, .. } => answering,
        };
        if self.searcher.tasks.len() >= TASKS_MAX {
            return;
        }
        let awaited: BTreeSet<NodeId> = here.overlay.neighbours().collect();
        let empty = awaited.is_empty();
        let got = Vec::with_capacity(awaited.len());
        let ticket = self.searcher.open(Task::Gather { asker, theirs, awaited, got });
        for node in here.overlay.neighbours() {
            ctx.send(node, Message::ScheduleRequest(ticket, purpose, Some(job)));
        }
        if empty {
            self.give_gathered(ticket, ctx);
        } else {
            // Half of the time is for the way there and back.
            ctx.wake_after(Span::from_micros(wait.as_micros() / 2), Timer::Silent(ticket, 0));
        }
    }

    /// A neighbour's schedule that was asked for.
    pub(super) fn on_schedule(
        &mut self,
        from: NodeId,
        ticket: Ticket,
        schedule: Schedule,
        ctx: &mut Ctx<'_, Asap>,
    ) {
        match self.searcher.tasks.get_mut(&ticket) {
            Some(Task::Search(search)) => {
                let Asking::Schedules(awaited) = &mut search.asking else { return };
                if !awaited.remove(&from) {
                    return;
                }
                let (last, waited) = (awaited.is_empty(), ctx.now.since(search.asked_at));
                search.meet(from, schedule);
                self.searcher.pace.answered_after(waited);
                if last {
                    self.advance(ticket, ctx);
                }
            }
            Some(Task::Gather { awaited, got, .. }) => {
                if !awaited.remove(&from) {
                    return;
                }
                got.push((from, schedule));
                if awaited.is_empty() {
                    self.give_gathered(ticket, ctx);
                }
            }
            None if ticket == Ticket::NONE => self.sharing.on_schedule(from, schedule),
            // Too late, or twice.
            None => {}
        }
    }

    /// Step 3: what a node knows.
    pub(super) fn on_cache(
        &mut self,
        from: NodeId,
        ticket: Ticket,
        entries: Box<[(NodeId, Schedule)]>,
        ctx: &mut Ctx<'_, Asap>,
    ) {
        let Some(search) = self.searcher.search(ticket) else { return };
        let Asking::Cache(asked, hop) = search.asking else { return };
        if asked != from {
            return;
        }
        let waited = ctx.now.since(search.asked_at);
        for (node, schedule) in entries.into_iter().take(CACHE_MAX) {
            if node == ctx.me {
                continue;
            }
            if !search.met.contains_key(&node) {
                search.frontier.push_back((node, hop + 1));
            }
            search.meet(node, schedule);
        }
        self.searcher.pace.answered_after(waited);
        self.advance(ticket, ctx);
    }

    /// Who was asked in this step and has not answered is taken for dead.
    pub(super) fn on_silent(&mut self, ticket: Ticket, step: u32, ctx: &mut Ctx<'_, Asap>) {
        match self.searcher.tasks.get_mut(&ticket) {
            Some(Task::Search(search)) if search.step == step => {
                let silent: Vec<NodeId> = match &search.asking {
                    Asking::Nobody => Vec::new(),
                    Asking::Schedules(awaited) => awaited.iter().copied().collect(),
                    Asking::Cache(node, _) => vec![*node],
                };
                for node in silent {
                    search.dismiss(node);
                    ctx.report(Event::Silent(node));
                }
                self.advance(ticket, ctx);
            }
            Some(Task::Gather { awaited, .. }) => {
                for &node in awaited.iter() {
                    ctx.report(Event::Silent(node));
                }
                self.give_gathered(ticket, ctx);
            }
            Some(Task::Search(_)) | None => {}
        }
    }

    /// Answers with what is known by now.
    pub(super) fn on_stop(&mut self, ticket: Ticket, ctx: &mut Ctx<'_, Asap>) {
        if self.searcher.search(ticket).is_some() {
            self.conclude(ticket, ctx);
        }
    }

    /// Steps 3 and 4: asks the next one, unless enough are free at once or nobody is left to ask.
    fn advance(&mut self, ticket: Ticket, ctx: &mut Ctx<'_, Asap>) {
        let (config, pace) = (self.config, self.searcher.pace);
        let Some(search) = self.searcher.search(ticket) else { return };
        search.step += 1;
        match search.next_to_ask(&config) {
            None => self.conclude(ticket, ctx),
            Some((node, hop)) => {
                search.asking = Asking::Cache(node, hop);
                search.asked_at = ctx.now;
                let wait = config.step_timeout(search.request.patience, pace);
                let (step, job) = (search.step, search.request.job);
                ctx.send(node, Message::CacheRequest(ticket, wait, job));
                ctx.wake_after(wait, Timer::Silent(ticket, step));
            }
        }
    }

    /// Step 5.
    fn conclude(&mut self, ticket: Ticket, ctx: &mut Ctx<'_, Asap>) {
        let Some(Task::Search(search)) = self.searcher.tasks.remove(&ticket) else { return };
        let answer = search.answer(&self.config, ctx.chance);
        let message::Search { job, round, .. } = search.request;
        ctx.send(search.asker, Message::SearchReply { job, round, answer });
    }

    fn give_gathered(&mut self, ticket: Ticket, ctx: &mut Ctx<'_, Asap>) {
        let Some(Task::Gather { asker, theirs, got, .. }) = self.searcher.tasks.remove(&ticket) else {
            return;
        };
        match self.sharing.source() {
            Source::Ask { searching: Purpose::Search, .. } => self.tally.pulled += got.len() as u64,
            Source::Ask { .. } | Source::Cache(_) => {}
        }
        ctx.send(asker, Message::CacheReply(theirs, got.into_boxed_slice()));
    }

    /// An answer must be back before the entry node's patience ends.
    fn stop_later(&self, ticket: Ticket, patience: Span, ctx: &mut Ctx<'_, Asap>) {
        ctx.wake_after(Span::from_micros(patience.as_micros() / 4 * 3), Timer::Stop(ticket));
    }
}

impl Search {
    fn new(asker: NodeId, request: message::Search) -> Search {
        Search {
            asker,
            request,
            candidates: Vec::new(),
            met: BTreeMap::new(),
            free: 0,
            frontier: VecDeque::new(),
            asking: Asking::Nobody,
            asked_at: Time::ZERO,
            step: 0,
        }
    }

    /// Takes note of a node; of two schedules the later one counts.
    fn meet(&mut self, node: NodeId, schedule: Schedule) {
        let message::Search { needs, from, avoid, .. } = &self.request;
        let place = match self.met.get(&node) {
            Some(None) => return,
            Some(&Some(place)) if self.candidates[place].schedule.version() >= schedule.version() => return,
            Some(&Some(place)) => Some(place),
            None => {
                let fits = !avoid.contains(&node) && matches(needs, schedule.machine());
                self.met.insert(node, fits.then_some(self.candidates.len()));
                if !fits {
                    return;
                }
                None
            }
        };
        let free = Interval::starting(*from, needs.limit).is_some_and(|interval| {
            schedule.timeline().free_during(interval, &needs.resources, Against::Firm)
        });
        self.free += u32::from(free);
        let candidate = Candidate { node, schedule, free };
        match place {
            None => self.candidates.push(candidate),
            Some(place) => {
                self.free -= u32::from(self.candidates[place].free);
                self.candidates[place] = candidate;
            }
        }
    }

    /// A node that does not answer is no candidate.
    fn dismiss(&mut self, node: NodeId) {
        let Some(Some(place)) = self.met.insert(node, None) else { return };
        let dropped = self.candidates.remove(place);
        self.free -= u32::from(dropped.free);
        for (place, candidate) in self.candidates.iter().enumerate().skip(place) {
            self.met.insert(candidate.node, Some(place));
        }
    }

    /// Whom to ask next; nobody if enough are free at once, or if those farther off are not needed.
    fn next_to_ask(&mut self, config: &Config) -> Option<(NodeId, u16)> {
        let Needs { nodes, .. } = self.request.needs;
        if self.free >= nodes.get() {
            return None;
        }
        let (_, hop) = self.frontier.front()?;
        let enough = self.candidates.len() >= nodes.get() as usize;
        if !config.asks_at(*hop) || *hop > 1 && enough {
            return None;
        }
        self.frontier.pop_front()
    }

    fn answer(&self, config: &Config, chance: &mut Chance) -> Answer {
        let message::Search { ref needs, from, .. } = self.request;
        let count = needs.nodes.get() as usize;
        if self.candidates.len() < count {
            return Answer::TooFew { known: self.met.len() as u32, fit: self.candidates.len() as u32 };
        }
        let request = Request {
            count,
            from,
            span: needs.limit,
            amount: &needs.resources,
            against: Against::Firm,
            slot: config.slot(),
        };
        // Where enough are free at once, the others need no look.
        let at_once = self.free >= needs.nodes.get();
        let pool: Vec<&Candidate> = self.candidates.iter().filter(|one| one.free || !at_once).collect();
        let lines: Vec<_> = pool.iter().map(|candidate| candidate.schedule.timeline()).collect();
        match earliest_by(&lines, &request, config.pick, chance) {
            None => Answer::NeverFree,
            Some(slot) => {
                let nodes = slot.chosen.iter().map(|&place| pool[place].node).collect();
                Answer::Found { start: slot.start, nodes }
            }
        }
    }
}

fn shuffle(nodes: &mut [NodeId], chance: &mut Chance) {
    for drawn in 0..nodes.len() {
        let pick = chance.random_range(drawn..nodes.len());
        nodes.swap(drawn, pick);
    }
}
