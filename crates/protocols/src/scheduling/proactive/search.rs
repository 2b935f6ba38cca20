//! The entry node's search: iterations that collect candidates, a choice after each, and a better placement each time
//! there is one.

mod weigh;

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use shoal_model::criterion::{Cost, Criterion, Measure};
use shoal_model::{Coordinates, JobId, Name, Needs, NodeId, Span, Time};

use super::config::Config;
use super::message::{Ask, KNOWN_MAX, Known, LABELS_MAX, Message, Tell, Timer};
use super::round::Round;
use super::{Proactive, offer};
use crate::commit::two_phase::{Failure, Placement};
use crate::overlay::helpers::Kind;
use crate::protocol::Ctx;
use crate::scheduling::{CLOCKS_APART_MOST, Event, Here, STAYS_WITHIN, Stuck};

/// A commit takes three exchanges: so many times the slowest answer lets it end before the job begins.
const LEAD_ANSWERS: u64 = 4;
/// Iterations without any set after which there is none.
const FRUITLESS_MAX: u8 = 3;
/// Nodes that an iteration asks for each candidate that it wants, at most: some will not do.
const ASKS_PER_CANDIDATE: usize = 4;
/// And so many more.
const ASKS_MORE: usize = 64;
/// Nodes that a criterion may name.
const PLACES_MAX: usize = 8;
/// The round of questions to the nodes that the criterion names.
const PLACES_ROUND: u32 = 0;
/// A node that comes back meets others before it looks for better places.
const RESUMES_AFTER: Span = Span::from_secs(10);
/// And does so for one job after the other.
const RESUMES_EACH: Span = Span::from_millis(200);

/// The search for a place for one job, and for better ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Search {
    needs: Needs,
    criterion: Criterion,
    labels: Vec<Name>,
    overlay: Option<Kind>,
    /// Where the nodes are that the criterion names, as far as they have answered.
    places: Vec<(NodeId, Option<Coordinates>)>,
    /// The wait is counted from here, so that costs can be compared.
    began: Time,
    /// Iterations begun.
    begun: u32,
    began_at: BTreeSet<NodeId>,
    rounds: BTreeMap<u32, Round>,
    course: Vec<Option<Cost>>,
    least: Option<Cost>,
    /// What is committed.
    placed: Option<Plan>,
    /// What that costs was forgotten in a crash.
    unpriced: bool,
    /// What is being committed.
    pending: Option<Plan>,
    /// What is to be committed after that.
    next: Option<Plan>,
    failures: u8,
    fruitless: u8,
    /// How far the clocks of others seem to be ahead of ours.
    ahead: Span,
    /// The slowest answer so far.
    slowest: Span,
    /// Those of a lost placement that may still be had: they are asked first.
    survivors: Vec<NodeId>,
    /// Who has denied the job.
    avoid: BTreeSet<NodeId>,
    /// Nothing more is looked for.
    rests: bool,
}

/// A set of nodes and a start, with what they cost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Plan {
    cost: Cost,
    start: Time,
    nodes: Vec<NodeId>,
}

/// What follows once an iteration has been seen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The next may begin.
    GoOn,
    /// Something else has to happen first.
    Wait,
}

impl Search {
    pub(super) fn course(&self) -> &[Option<Cost>] {
        &self.course
    }

    /// How many nodes each open iteration has met.
    pub(super) fn met(&self) -> impl Iterator<Item = usize> {
        self.rounds.values().map(|round| round.met.len())
    }

    fn new(needs: Needs, now: Time) -> Search {
        // It was refused where it came in if it makes no sense.
        let criterion = needs.criterion().and_then(|text| text.as_str().parse().ok());
        let criterion: Criterion = criterion.unwrap_or(Criterion::SOONEST);
        let (mut labels, mut places) = (Vec::new(), Vec::new());
        for measure in criterion.measures() {
            match measure {
                Measure::Domains(Some(label)) if !labels.contains(label) => labels.push(label.clone()),
                Measure::Near(Some(node)) if !places.contains(&(*node, None)) => places.push((*node, None)),
                _ => {}
            }
        }
        labels.truncate(LABELS_MAX);
        places.truncate(PLACES_MAX);
        Search {
            needs,
            criterion,
            labels,
            overlay: None,
            places,
            began: now,
            begun: 0,
            began_at: BTreeSet::new(),
            rounds: BTreeMap::new(),
            course: Vec::new(),
            least: None,
            placed: None,
            unpriced: false,
            pending: None,
            next: None,
            failures: 0,
            fruitless: 0,
            ahead: Span::ZERO,
            slowest: Span::ZERO,
            survivors: Vec::new(),
            avoid: BTreeSet::new(),
            rests: false,
        }
    }

    /// Whether there is nothing left to look for.
    fn is_done(&self, config: &Config, now: Time) -> bool {
        let late = self.placed.as_ref().is_some_and(|placed| placed.start <= now + STAYS_WITHIN);
        let enough = self.begun >= u32::from(config.iterations) && self.placed.is_some();
        self.rests || late || enough
    }

    /// Whether a plan is better than all that are committed or about to be.
    fn is_better(&self, plan: &Plan) -> bool {
        let known = [&self.placed, &self.pending, &self.next];
        !self.unpriced && known.into_iter().flatten().all(|other| plan.cost < other.cost)
    }

    /// When the job could start at the earliest, as far as its commit is concerned.
    fn lead(&self, config: &Config) -> Span {
        let least = Span::from_millis(u64::from(config.lead_ms)) * (1 << self.failures.min(8));
        if config.adaptive { least + self.slowest * LEAD_ANSWERS } else { least }
    }

    fn ask(&self, job: JobId, round: u32) -> Message {
        Message::Ask(Box::new(Ask {
            job,
            round,
            needs: self.needs.clone(),
            overlay: self.overlay,
            labels: self.labels.clone(),
        }))
    }
}

impl Proactive {
    pub(super) fn plan(
        &mut self,
        job: JobId,
        needs: Needs,
        avoid: BTreeSet<NodeId>,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Proactive>,
    ) {
        let before = self.open.remove(&job);
        let mut search = Search::new(needs, ctx.now);
        search.avoid = avoid;
        search.survivors =
            before.and_then(|before| before.placed).map(|placed| placed.nodes).unwrap_or_default();
        search.overlay = self.overlay_for(search.criterion.first());
        self.open.insert(job, search);
        self.ask_places(job, here, ctx);
    }

    /// Asks the nodes that the criterion names where they are, and then begins.
    fn ask_places(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) {
        let Some(search) = self.open.get(&job) else { return };
        if search.places.is_empty() {
            self.begin(job, here, ctx);
            return;
        }
        let ask = search.ask(job, PLACES_ROUND);
        for &(node, _) in &search.places {
            ctx.send(node, ask.clone());
        }
        ctx.wake_after(self.config.wait(), Timer::Patience(job, PLACES_ROUND));
    }

    /// Goes on to better sets for a job that was placed before this node went down.
    pub fn resume(&mut self, job: JobId, needs: Needs, stands: &Placement, ctx: &mut Ctx<'_, Proactive>) {
        let mut search = Search::new(needs, ctx.now);
        search.overlay = self.overlay_for(search.criterion.first());
        let Placement { start, nodes, .. } = stands.clone();
        search.placed = Some(Plan { cost: Cost::IMPOSSIBLE, start, nodes: nodes.into() });
        search.unpriced = true;
        let after = RESUMES_AFTER + RESUMES_EACH * self.open.len() as u64;
        self.open.insert(job, search);
        ctx.wake_after(after, Timer::Next(job, 0));
    }

    /// Begins as many iterations as may run at once, or rests.
    fn begin(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) {
        let config = self.config;
        loop {
            let Some(search) = self.open.get_mut(&job) else { return };
            if search.is_done(&config, ctx.now) {
                return;
            }
            // While a set is being committed the next iterations may begin, but no more than there are; where a small
            // gain makes them wait, what the gain is must be known.
            let spent = search.begun >= u32::from(config.iterations);
            let waits = search.pending.is_some() && (spent || config.gain_per_mille > 0);
            if search.rounds.len() >= usize::from(config.at_once) || waits {
                return;
            }
            search.begun += 1;
            let number = search.begun;
            // Who has denied the job counts as met, and is not asked again.
            let mut round = Round { met: search.avoid.clone(), ..Round::default() };
            let mut known: Vec<NodeId> = self.helpers.random().neighbours().collect();
            if known.is_empty() {
                known = here.overlay.neighbours().collect();
            }
            known.retain(|node| *node != ctx.me && !search.avoid.contains(node));
            if (config.include_self || known.is_empty()) && !search.avoid.contains(&ctx.me) {
                round.met.insert(ctx.me);
                round.asked += 1;
                let answer = offer(job, &search.needs, &search.labels, here);
                round.hear(ctx.me, *self.helpers.profile(), answer);
            }
            // What stands is among the candidates until it is known what it costs.
            for &node in search.placed.iter().filter(|_| search.unpriced).flat_map(|placed| &placed.nodes) {
                round.meet(0, node);
            }
            let fresh: Vec<NodeId> =
                known.iter().copied().filter(|node| !search.began_at.contains(node)).collect();
            // All were used: begin anywhere.
            let among = if fresh.is_empty() { &known } else { &fresh };
            if !among.is_empty() {
                let start = among[ctx.chance.random_range(0..among.len())];
                search.began_at.insert(start);
                round.start = Some(start);
                round.meet(0, start);
            }
            for node in std::mem::take(&mut search.survivors) {
                round.meet(0, node);
            }
            search.rounds.insert(number, round);
            if self.pump(job, number, here, ctx) == Then::Wait {
                return;
            }
        }
    }

    /// Asks as many as may be asked at once; chooses once there is nobody left to ask or to wait for.
    fn pump(&mut self, job: JobId, number: u32, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) -> Then {
        let config = self.config;
        let Some(search) = self.open.get_mut(&job) else { return Then::Wait };
        // What stands comes on top.
        let stands =
            search.placed.as_ref().filter(|_| search.unpriced).map_or(0, |placed| placed.nodes.len());
        let target = config.candidates(search.needs.nodes.get()) + stands;
        let ask = search.ask(job, number);
        let Some(round) = search.rounds.get_mut(&number) else { return Then::Wait };
        let waited = round.awaited.len();
        loop {
            // Who is near can be told only once it is known where the first is.
            let blind = search.overlay.is_some()
                && round.start.is_some_and(|start| round.awaited.contains_key(&start));
            let enough = round.offers.len() + round.awaited.len() >= target;
            let most = target.saturating_mul(ASKS_PER_CANDIDATE).saturating_add(ASKS_MORE);
            let full = round.awaited.len() >= usize::from(config.questions);
            if blind || enough || full || round.asked as usize >= most {
                break;
            }
            let Some((_, _, node)) = round.frontier.pop_first() else { break };
            round.asked += 1;
            if node == ctx.me {
                let answer = offer(job, &search.needs, &search.labels, here);
                round.hear(node, *self.helpers.profile(), answer);
            } else {
                round.awaited.insert(node, ctx.now);
                ctx.send(node, ask.clone());
            }
        }
        if round.awaited.is_empty() {
            return self.finish(job, number, here, ctx);
        }
        if waited == 0 {
            ctx.wake_after(config.wait(), Timer::Patience(job, number));
        }
        Then::GoOn
    }

    /// Goes on with an iteration, and with the next ones once it is over.
    fn go_on(&mut self, job: JobId, number: u32, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) {
        if self.pump(job, number, here, ctx) == Then::GoOn {
            self.begin(job, here, ctx);
        }
    }

    pub(super) fn on_tell(
        &mut self,
        from: NodeId,
        tell: Tell,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Proactive>,
    ) {
        let Tell { job, round: number, profile, answer, known } = tell;
        if number == PLACES_ROUND {
            self.on_place(from, job, profile.coordinates, here, ctx);
            return;
        }
        let random = self.helpers.profiled();
        let Some(search) = self.open.get_mut(&job) else { return };
        let overlay = search.overlay;
        let Some(round) = search.rounds.get_mut(&number) else { return };
        // Only who was asked is heard, and once.
        let Some(asked_at) = round.awaited.remove(&from) else { return };
        search.slowest = search.slowest.max(ctx.now.since(asked_at));
        if round.start == Some(from) {
            round.origin = Some(profile);
            // Those near it may be too few, and know nobody else: then others that are known have their turn.
            if overlay.is_some() {
                random.iter().for_each(|entry| round.meet_near(overlay, entry));
            }
        }
        match &known {
            Known::Random(nodes) => nodes.iter().take(KNOWN_MAX).for_each(|&node| round.meet(0, node)),
            Known::Near(entries) => {
                entries.iter().take(KNOWN_MAX).for_each(|entry| round.meet_near(overlay, entry));
            }
        }
        round.hear(from, profile, answer);
        self.go_on(job, number, here, ctx);
    }

    /// A node that the criterion names has said where it is.
    fn on_place(
        &mut self,
        from: NodeId,
        job: JobId,
        coordinates: Coordinates,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Proactive>,
    ) {
        let Some(search) = self.open.get_mut(&job) else { return };
        let Some((_, place)) =
            search.places.iter_mut().find(|(node, place)| *node == from && place.is_none())
        else {
            return;
        };
        *place = Some(coordinates);
        if search.begun == 0 && search.places.iter().all(|(_, place)| place.is_some()) {
            self.begin(job, here, ctx);
        }
    }

    pub(super) fn on_patience(
        &mut self,
        job: JobId,
        number: u32,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Proactive>,
    ) {
        let wait = self.config.wait();
        let Some(search) = self.open.get_mut(&job) else { return };
        if number == PLACES_ROUND {
            if search.begun == 0 {
                self.begin(job, here, ctx);
            }
            return;
        }
        let Some(round) = search.rounds.get_mut(&number) else { return };
        let late = |&(_, &asked_at): &(&NodeId, &Time)| asked_at + wait <= ctx.now;
        let silent: Vec<NodeId> = round.awaited.iter().filter(late).map(|(&node, _)| node).collect();
        for node in &silent {
            round.awaited.remove(node);
            self.helpers.forget(*node);
            ctx.report(Event::Silent(*node));
        }
        if let Some(first) = round.awaited.values().min() {
            ctx.wake_at(*first + wait, Timer::Patience(job, number));
        }
        // Its first node is silent: the order is that in which they were met.
        if round.start.is_some_and(|start| silent.contains(&start)) {
            round.origin.get_or_insert(*self.helpers.profile());
            let random = self.helpers.profiled();
            if let Some(search) = self.open.get_mut(&job) {
                let overlay = search.overlay;
                if let Some(round) = search.rounds.get_mut(&number) {
                    random.iter().for_each(|entry| round.meet_near(overlay, entry));
                }
            }
        }
        self.go_on(job, number, here, ctx);
    }

    /// An iteration has all its candidates: chooses among them.
    fn finish(&mut self, job: JobId, number: u32, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) -> Then {
        let config = self.config;
        let Some(search) = self.open.get_mut(&job) else { return Then::Wait };
        let Some(mut round) = search.rounds.remove(&number) else { return Then::Wait };
        // Our own calendar may have changed while the others answered.
        for found in &mut round.offers {
            if found.node == ctx.me {
                found.offer.calendar = here.calendar.snapshot_without(job);
            }
        }
        if search.unpriced {
            search.price(&round, &config, self.helpers.profile(), ctx.now);
        }
        let before = search.placed.as_ref().filter(|_| !search.unpriced).map(|placed| placed.cost);
        let found = search.choose(&round, &config, self.helpers.profile(), ctx);
        if let Ok(plan) = &found {
            search.least = Some(search.least.map_or(plan.cost, |least| least.min(plan.cost)));
        }
        search.course.push(search.least);
        match found {
            Ok(plan) => {
                search.fruitless = 0;
                let gain = before.map(|before| before.value.saturating_sub(plan.cost.value));
                let least = i128::from(config.gain_per_mille);
                let small = |gain: i128, of: i128| least > 0 && gain * 1_000 < of.abs() * least;
                let pauses = matches!((gain, before), (Some(gain), Some(of)) if small(gain, of.value));
                if search.is_better(&plan) {
                    search.next = Some(plan);
                }
                self.propose(job, ctx);
                if pauses && let Some(search) = self.open.get(&job) {
                    ctx.wake_after(config.pause(), Timer::Next(job, search.begun));
                    return Then::Wait;
                }
                Then::GoOn
            }
            Err(why) => {
                search.fruitless = search.fruitless.saturating_add(1);
                let hopeless = search.fruitless >= FRUITLESS_MAX.min(config.iterations);
                let without = search.placed.is_none() && search.pending.is_none();
                if !hopeless || !without {
                    return Then::GoOn;
                }
                // Others may still be luckier.
                if search.rounds.is_empty() {
                    search.rests = true;
                    ctx.report(Event::Stuck { job, why });
                }
                Then::Wait
            }
        }
    }

    /// Has the next plan committed, unless another is being committed.
    fn propose(&mut self, job: JobId, ctx: &mut Ctx<'_, Proactive>) {
        let Some(search) = self.open.get_mut(&job) else { return };
        if search.pending.is_some() {
            return;
        }
        let Some(plan) = search.next.take() else { return };
        let (start, nodes) = (plan.start, plan.nodes.clone());
        search.pending = Some(plan);
        ctx.report(Event::Propose { job, start, nodes });
    }

    /// What was proposed is committed: from now on there is something to fall back on.
    pub fn placed(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) {
        let Some(search) = self.open.get_mut(&job) else { return };
        if let Some(plan) = search.pending.take() {
            search.placed = Some(plan);
        }
        search.failures = 0;
        self.propose(job, ctx);
        self.begin(job, here, ctx);
    }

    /// The job stays where it is: it is about to start, or has been told to.
    pub fn stay(&mut self, job: JobId) {
        if let Some(search) = self.open.get_mut(&job) {
            (search.pending, search.next) = (None, None);
            search.rests = true;
            search.rounds.clear();
        }
    }

    /// The job has lost its place; a new plan follows, unless it is held.
    pub fn unplaced(&mut self, job: JobId) {
        self.stay(job);
    }

    pub(super) fn on_failed(
        &mut self,
        job: JobId,
        why: &Failure,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Proactive>,
    ) {
        let retries = self.config.retries;
        let Some(search) = self.open.get_mut(&job) else { return };
        search.pending = None;
        if let Failure::Refused { next: Some(next), .. } = why {
            let ahead = next.since(ctx.now);
            if ahead <= CLOCKS_APART_MOST {
                search.ahead = search.ahead.max(ahead);
            }
        }
        if search.next.is_some() {
            self.propose(job, ctx);
            return;
        }
        if search.placed.is_none() && search.rounds.is_empty() {
            if search.failures >= retries {
                search.rests = true;
                ctx.report(Event::Stuck { job, why: Stuck::Outrun });
                return;
            }
            search.failures += 1;
        }
        self.begin(job, here, ctx);
    }

    pub(super) fn on_next(&mut self, job: JobId, begun: u32, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) {
        match self.open.get(&job) {
            Some(search) if search.begun != begun => {}
            Some(_) if begun == 0 => self.ask_places(job, here, ctx),
            Some(_) => self.begin(job, here, ctx),
            None => {}
        }
    }
}
