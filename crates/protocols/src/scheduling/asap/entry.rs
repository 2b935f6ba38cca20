//! Algorithm A, the entry node: has a few neighbours search, and proposes what they found, the earliest first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use shoal_model::{JobId, Needs, NodeId, Span, Time};

use super::Asap;
use super::config::Config;
use super::message::{Answer, Message, Search, Timer};
use super::pace::Pace;
use crate::choose::earliest::round_up;
use crate::commit::two_phase::Failure;
use crate::protocol::Ctx;
use crate::scheduling::{CLOCKS_APART_MOST, Event, Here, Stuck};

/// A search and a commit take several exchanges: a start so many answer times ahead lets both end before the job begins.
const LEAD_ANSWERS: u64 = 5;
/// The most nodes that searchers are told to avoid.
const AVOID_MAX: usize = 256;

/// The jobs that this node looks for a place for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    open: BTreeMap<JobId, Seeking>,
    /// Of searchers.
    pace: Pace,
}

/// The search for a place for one job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seeking {
    needs: Needs,
    round: u32,
    asked_at: Time,
    asked: u32,
    awaited: BTreeSet<NodeId>,
    /// What was found: while answers come in, in the order in which they came; then the best one last.
    found: Vec<(Time, Vec<NodeId>)>,
    /// Why some found nothing: of the known and fitting nodes, the most; or nothing that fits is ever free.
    nothing: Option<Stuck>,
    /// Whether the answers of this round have been looked at.
    closed: bool,
    /// Rounds that came to nothing because others were quicker, or silent.
    failures: u8,
    /// How far the clocks of others seem to be ahead of ours.
    ahead: Span,
    /// Who has denied the job: no place for it, but may search.
    denied: BTreeSet<NodeId>,
    /// Who did not answer.
    avoid: BTreeSet<NodeId>,
}

impl Seeking {
    fn new(needs: Needs, denied: BTreeSet<NodeId>) -> Seeking {
        Seeking {
            needs,
            denied,
            round: 0,
            asked_at: Time::ZERO,
            asked: 0,
            awaited: BTreeSet::new(),
            found: Vec::new(),
            nothing: None,
            closed: true,
            failures: 0,
            ahead: Span::ZERO,
            avoid: BTreeSet::new(),
        }
    }
}

impl Entry {
    /// How many jobs this node looks for a place for.
    pub fn searches(&self) -> usize {
        self.open.len()
    }

    /// How far ahead a start must lie, more with each failure: an answer or a commit may have come too late.
    fn lead(&self, config: &Config, failures: u8) -> Span {
        let least = config.lead();
        let lead = match self.pace.slowest() {
            Some(slowest) if config.adaptive => least.max(slowest * LEAD_ANSWERS),
            Some(_) | None => least,
        };
        lead * (1 << failures.min(10))
    }
}

impl Asap {
    pub(super) fn plan(
        &mut self,
        job: JobId,
        needs: Needs,
        denied: BTreeSet<NodeId>,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Asap>,
    ) {
        self.entry.open.insert(job, Seeking::new(needs, denied));
        self.ask(job, here, ctx);
    }

    pub(super) fn leave(&mut self, job: JobId) {
        self.entry.open.remove(&job);
    }

    /// Step 1: a few neighbours at random search at once.
    fn ask(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        let Asap { config, entry, .. } = self;
        let patience = config.search_timeout(entry.pace);
        let Some(failures) = entry.open.get(&job).map(|seeking| seeking.failures) else { return };
        let lead = entry.lead(config, failures);
        let Some(seeking) = entry.open.get_mut(&job) else { return };
        let mut searchers: Vec<NodeId> =
            here.overlay.neighbours().filter(|node| !seeking.avoid.contains(node)).collect();
        let count = usize::from(config.fwd).min(searchers.len());
        for drawn in 0..count {
            let pick = ctx.chance.random_range(drawn..searchers.len());
            searchers.swap(drawn, pick);
        }
        searchers.truncate(count);
        if config.include_self {
            searchers.push(ctx.me);
        }
        seeking.round += 1;
        seeking.closed = false;
        seeking.asked_at = ctx.now;
        seeking.asked = searchers.len() as u32;
        seeking.awaited = searchers.iter().copied().collect();
        seeking.found.clear();
        seeking.nothing = None;
        let from = (ctx.now + seeking.ahead + lead).max(seeking.needs.begin.unwrap_or_default());
        let round = seeking.round;
        for searcher in searchers {
            let search = Search {
                job,
                round,
                needs: seeking.needs.clone(),
                from: round_up(from, config.slot()),
                patience,
                avoid: seeking.avoid.union(&seeking.denied).copied().collect(),
            };
            ctx.send(searcher, Message::Search(Box::new(search)));
        }
        if seeking.awaited.is_empty() {
            let needed = seeking.needs.nodes.get();
            self.give_up(job, Stuck::TooFew { needed, asked: 0, fit: 0 }, ctx);
        } else {
            ctx.wake_after(patience, Timer::Close(job, round));
        }
    }

    /// Step 2: an answer; the last one closes the round.
    pub(super) fn on_answer(
        &mut self,
        from: NodeId,
        job: JobId,
        round: u32,
        answer: Answer,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Asap>,
    ) {
        let Some(seeking) = self.entry.open.get_mut(&job).filter(|seeking| seeking.round == round) else {
            return;
        };
        // Only who was asked is heard, and once; a late answer still tells how slow answers are.
        if !seeking.awaited.remove(&from) {
            return;
        }
        let (waited, closed) = (ctx.now.since(seeking.asked_at), seeking.closed);
        let needed = seeking.needs.nodes.get();
        if !closed {
            match answer {
                Answer::Found { start, nodes } => {
                    // A peer's nonsense: as many nodes as needed, each once, and not before it was asked for.
                    let distinct: BTreeSet<&NodeId> = nodes.iter().collect();
                    let in_time = seeking.needs.begin.is_none_or(|begin| start >= begin);
                    if distinct.len() == nodes.len() && nodes.len() == needed as usize && in_time {
                        seeking.found.push((start, nodes.into_vec()));
                    }
                }
                Answer::TooFew { known, fit } => {
                    let more = match seeking.nothing {
                        Some(Stuck::TooFew { fit: most, .. }) => fit > most,
                        Some(_) => false,
                        None => true,
                    };
                    if more {
                        seeking.nothing = Some(Stuck::TooFew { needed, asked: known, fit });
                    }
                }
                Answer::NeverFree => seeking.nothing = Some(Stuck::NeverFree),
            }
        }
        let last = seeking.awaited.is_empty();
        self.entry.pace.answered_after(waited);
        if last && !closed {
            self.close(job, here, ctx);
        }
    }

    /// The time is up: who has not answered by now is taken for dead.
    pub(super) fn on_close(&mut self, job: JobId, round: u32, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        let Some(seeking) = self.entry.open.get(&job) else { return };
        if seeking.round != round || seeking.closed {
            return;
        }
        for &silent in &seeking.awaited {
            ctx.report(Event::Silent(silent));
        }
        self.close(job, here, ctx);
    }

    /// What was proposed could not be committed.
    pub(super) fn on_failed(&mut self, job: JobId, why: Failure, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        let Some(seeking) = self.entry.open.get_mut(&job) else { return };
        match why {
            // One that could start soon, but not when it was to, may have a clock that is ahead of ours.
            Failure::Refused { next: Some(next), .. } if self.config.adaptive => {
                let ahead = next.since(ctx.now);
                if ahead <= CLOCKS_APART_MOST {
                    seeking.ahead = seeking.ahead.max(ahead);
                }
            }
            Failure::Refused { .. } => {}
            Failure::Silent(nodes) => {
                for node in nodes {
                    ctx.report(Event::Silent(node));
                    if seeking.avoid.len() < AVOID_MAX {
                        seeking.avoid.insert(node);
                    }
                }
            }
        }
        if !self.config.alternatives {
            seeking.found.clear();
        }
        self.propose(job, here, ctx);
    }

    /// Step 3: the earliest answer is the best; of equal ones the first that came.
    fn close(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        let Some(seeking) = self.entry.open.get_mut(&job) else { return };
        seeking.closed = true;
        // The best is taken from the end: reversed before a stable sort, the first of equals is last.
        seeking.found.reverse();
        seeking.found.sort_by_key(|&(start, _)| Reverse(start));
        match seeking.nothing {
            Some(why) if seeking.found.is_empty() => self.give_up(job, why, ctx),
            Some(_) | None => self.propose(job, here, ctx),
        }
    }

    /// Steps 4 and 5: the best answer that is left is to be committed; if there is none, all begins again.
    fn propose(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        let Some(seeking) = self.entry.open.get_mut(&job) else { return };
        while let Some((start, nodes)) = seeking.found.pop() {
            let avoided = |node| seeking.avoid.contains(node) || seeking.denied.contains(node);
            if start < ctx.now || nodes.iter().any(avoided) {
                continue;
            }
            let Needs { deadline, limit, .. } = seeking.needs;
            if deadline.is_some_and(|deadline| start + limit > deadline) {
                self.give_up(job, Stuck::TooLate { start }, ctx);
                return;
            }
            ctx.report(Event::Propose { job, start, nodes });
            return;
        }
        seeking.failures = seeking.failures.saturating_add(1);
        if seeking.failures > self.config.retries {
            self.give_up(job, Stuck::Outrun, ctx);
        } else {
            self.ask(job, here, ctx);
        }
    }

    fn give_up(&mut self, job: JobId, why: Stuck, ctx: &mut Ctx<'_, Asap>) {
        self.entry.open.remove(&job);
        ctx.report(if self.config.give_up { Event::GiveUp { job, why } } else { Event::Stuck { job, why } });
    }
}

#[cfg(test)]
mod tests;
