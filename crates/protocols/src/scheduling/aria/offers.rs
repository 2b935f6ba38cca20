//! The initiator's search: a REQUEST goes round, offers come in, the lowest gets the job (III-B).

use std::collections::BTreeSet;

use shoal_model::{JobId, Needs, NodeId, Span, Time};

use super::cost::Cost;
use super::message::{Ask, Message, Tenure, Timer};
use super::tenure::{Held, Wanted};
use super::{Aria, Event, Here, Stuck};
use crate::overlay::flood::spread;
use crate::protocol::Ctx;
use crate::shared::Shared;

/// The best offers that are kept: the next one is asked when the best does not answer.
const OFFERS_MAX: usize = 16;
/// Nodes that a search leaves out, at most.
const AVOID_MAX: usize = crate::node::gate::DENIED_MAX;
/// Rounds in which nothing was heard from those who look for a place do not say that there is none; but no more of them
/// than so many times the rounds that do are made.
const SILENT_TIMES: u32 = 10;
/// Offers that close early do so after so many times as long as the first one took, and nothing better came.
const QUIET_TIMES: u64 = 2;
/// But not before this: nodes take turns on a busy machine.
const QUIET_LEAST: Span = Span::from_millis(3);

/// The search for a place for one job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Search {
    needs: Needs,
    priority: i16,
    round: u32,
    /// The rounds in which nothing was heard from those who look for a place.
    silent: BTreeSet<u32>,
    asked_at: Time,
    /// How long the first offer from elsewhere took.
    first: Option<Span>,
    /// When the best offer came.
    best_at: Time,
    /// The lowest first; of equals, in the order in which they came.
    offers: Vec<(Cost, NodeId)>,
    /// Whether offers are still taken.
    open: bool,
    /// Whether there was nobody to ask in this round, not even this node itself.
    alone: bool,
    /// Whether one that came late was taken in this round.
    had_late: bool,
    /// When the next round begins, while nobody is asked.
    again_at: Time,
    /// Who has denied the job.
    avoid: BTreeSet<NodeId>,
}

impl Search {
    /// Whether offers of this round are still taken.
    pub fn takes(&self, round: u32) -> bool {
        self.open && self.round == round
    }

    /// Keeps an offer though its round is over, if it is the first such in this one: so nobody can have us ask for ever.
    pub fn keep_late(&mut self, round: u32, offer: Option<(Cost, NodeId)>) -> bool {
        let takes = (1..=self.round).contains(&round) && !self.had_late;
        let kept = takes && self.keep(offer);
        self.had_late |= kept;
        kept
    }

    /// Word that there is no place has come, though its round is over; perhaps once more.
    pub fn hear_late_of_none(&mut self, round: u32) {
        self.silent.remove(&round);
    }

    /// Whether so many rounds were to no avail, those aside in which nothing was heard.
    fn is_over(&self, rounds: u32) -> bool {
        self.round as usize - self.silent.len() >= rounds as usize
            || self.round >= rounds.saturating_mul(SILENT_TIMES)
    }

    /// Whether it waits for the next round, and has somebody to ask all the same.
    pub fn pauses(&self) -> bool {
        !self.open && !self.offers.is_empty()
    }

    /// An offer more, which is asked before one that came late; false if it is none, or of somebody who has refused.
    pub fn keep(&mut self, offer: Option<(Cost, NodeId)>) -> bool {
        let offer = offer.filter(|(_, node)| !self.avoid.contains(node));
        offer.map(|offer| self.offers.insert(0, offer)).is_some()
    }
}

impl Aria {
    /// Looks for a place for a job.
    pub fn plan(
        &mut self,
        job: JobId,
        wanted: Wanted,
        needs: Needs,
        avoid: BTreeSet<NodeId>,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        if needs.deadline.is_some_and(|deadline| deadline <= ctx.now) {
            ctx.report(Event::Expired(job));
            return;
        }
        let fresh = Tenure {
            job,
            last: wanted.numbered,
            asked: None,
            placed: None,
            turn: 0,
            leaving: Vec::new(),
            over: false,
        };
        let held = self.tenures.entry(job).or_insert_with(|| Held::restore(fresh));
        let priority = wanted.envelope.job().priority.unwrap_or(0);
        held.wanted = Some(wanted);
        let begin = needs.begin;
        let search = Search {
            needs,
            priority,
            round: 0,
            silent: BTreeSet::new(),
            asked_at: ctx.now,
            first: None,
            best_at: ctx.now,
            offers: Vec::new(),
            open: false,
            alone: false,
            had_late: false,
            again_at: begin.unwrap_or(ctx.now),
            avoid,
        };
        self.searches.insert(job, search);
        match begin {
            // Who cannot plan ahead is asked when it is time.
            Some(begin) if begin > ctx.now && !self.local.reserves() => {
                ctx.report(Event::Waits { job, why: Stuck::NotYet { begin } });
                ctx.wake_at(begin, Timer::Round(job));
            }
            Some(_) | None => self.request(job, here, ctx),
        }
    }

    /// After a crash the initiator knows what its assignee may run; the job itself is its owner's.
    pub fn take_up(&mut self, job: JobId, wanted: Wanted) {
        if let Some(held) = self.tenures.get_mut(&job) {
            held.wanted = Some(wanted);
        }
    }

    /// A node has denied a job: its offers do not count.
    pub fn avoid(&mut self, job: JobId, node: NodeId) {
        if let Some(search) = self.searches.get_mut(&job)
            && search.avoid.len() < AVOID_MAX
        {
            search.avoid.insert(node);
            search.offers.retain(|&(_, other)| other != node);
        }
    }

    pub(super) fn on_round(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Aria>) {
        let Some(search) = self.searches.get(&job).filter(|search| !search.open) else { return };
        if self.is_asking(job) {
            return;
        }
        if search.again_at > ctx.now {
            ctx.wake_at(search.again_at, Timer::Round(job));
        } else {
            self.request(job, here, ctx);
        }
    }

    pub(super) fn is_asking(&self, job: JobId) -> bool {
        self.tenures.get(&job).is_some_and(|held| held.tenure.asked.is_some())
    }

    fn request(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Aria>) {
        let Some(search) = self.searches.get_mut(&job) else { return };
        search.round += 1;
        search.open = true;
        search.had_late = false;
        search.offers.clear();
        search.first = None;
        (search.asked_at, search.best_at) = (ctx.now, ctx.now);
        let (round, needs, priority) = (search.round, search.needs.clone(), search.priority);
        if self.found_outside {
            let avoid = search.avoid.clone();
            self.ask_outside(job, round, needs, avoid, ctx);
            return;
        }
        let own = here.matches(&needs).then(|| self.local.cost_of(ctx.now, job, &needs, priority)).flatten();
        let ask = Shared::new(Ask { from: ctx.me, job, round, needs, priority, cost: None });
        self.seen.note(ask.flood());
        let mut told = Vec::new();
        let fan_out = usize::from(self.config.request_fan_out);
        spread(here.overlay.neighbours(), [ctx.me; 2], fan_out, ctx.chance, &mut told);
        for &node in &told {
            ctx.send(node, Message::Request(ask.clone(), 1));
        }
        if let Some(search) = self.searches.get_mut(&job) {
            search.keep(own.map(|cost| (cost, ctx.me)));
            search.alone =
                told.is_empty() && own.is_none() && here.overlay.neighbours_and_partner().is_empty();
        }
        if told.is_empty() {
            self.close(job, round, ctx);
        } else {
            ctx.wake_after(self.config.accept_wait(), Timer::Close(job, round));
        }
    }

    pub(super) fn on_offer(
        &mut self,
        from: NodeId,
        job: JobId,
        round: u32,
        cost: Cost,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        let search = self.searches.get_mut(&job).filter(|search| search.open && search.round == round);
        let Some(search) = search else { return };
        // Doubled by the network.
        if search.avoid.contains(&from) || search.offers.iter().any(|&(_, node)| node == from) {
            return;
        }
        let first = *search.first.get_or_insert(ctx.now.since(search.asked_at));
        let place = search.offers.partition_point(|&(other, _)| other <= cost);
        if place == 0 {
            search.best_at = ctx.now;
        }
        search.offers.insert(place, (cost, from));
        search.offers.truncate(OFFERS_MAX);
        if self.config.adaptive {
            let quiet = (first * QUIET_TIMES).max(QUIET_LEAST);
            ctx.wake_after(quiet, Timer::Close(job, round));
        }
    }

    pub(super) fn on_close(&mut self, job: JobId, round: u32, ctx: &mut Ctx<'_, Aria>) {
        let Some(search) = self.searches.get(&job) else { return };
        let over = search.asked_at + self.config.accept_wait() <= ctx.now;
        let quiet = search.first.is_some_and(|first| {
            let quiet = (first * QUIET_TIMES).max(QUIET_LEAST);
            self.config.adaptive && search.best_at + quiet <= ctx.now
        });
        if over || quiet {
            self.note_silence(job, round);
            self.close(job, round, ctx);
        }
    }

    /// Who looks for a place says so if there is none; without a word, the search was lost on its way.
    fn note_silence(&mut self, job: JobId, round: u32) {
        let search = self.searches.get_mut(&job).filter(|search| search.takes(round));
        if let Some(search) = search.filter(|_| self.found_outside) {
            search.silent.insert(round);
        }
    }

    pub(super) fn close(&mut self, job: JobId, round: u32, ctx: &mut Ctx<'_, Aria>) {
        let search = self.searches.get_mut(&job).filter(|search| search.open && search.round == round);
        let Some(search) = search else { return };
        search.open = false;
        self.next_offer(job, ctx);
    }

    /// The lowest offer that is left gets the job; if there is none, all is asked again later.
    pub(super) fn next_offer(&mut self, job: JobId, ctx: &mut Ctx<'_, Aria>) {
        let Some(search) = self.searches.get_mut(&job) else { return };
        if search.offers.is_empty() {
            let why = match search.alone {
                true => Stuck::Alone,
                false => Stuck::NoOffer { rounds: search.round },
            };
            if search.is_over(u32::from(self.config.rounds)) {
                self.searches.remove(&job);
                ctx.report(Event::GiveUp { job, why });
            } else {
                search.again_at = ctx.now + self.config.round_pause();
                ctx.report(Event::Waits { job, why });
                ctx.wake_at(search.again_at, Timer::Round(job));
            }
            return;
        }
        let (_, node) = search.offers.remove(0);
        self.assign(job, node, ctx);
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::Resources;

    use super::*;

    #[test]
    fn rounds_in_which_nothing_was_heard_do_not_end_a_search_until_there_are_too_many() {
        let mut search = Search {
            needs: Needs::new(Resources::cores(1), Span::from_secs(1)),
            priority: 0,
            round: 10,
            silent: BTreeSet::new(),
            asked_at: Time::ZERO,
            first: None,
            best_at: Time::ZERO,
            offers: Vec::new(),
            open: false,
            alone: false,
            had_late: false,
            again_at: Time::ZERO,
            avoid: BTreeSet::new(),
        };
        assert!(search.is_over(10), "ten times it was said that there is no place");
        search.silent = [3, 7].into();
        assert!(!search.is_over(9));
        search.hear_late_of_none(7);
        assert!(search.is_over(9), "it was said late");
        search.hear_late_of_none(7);
        search.hear_late_of_none(8);
        assert!(!search.is_over(10), "doubled by the network, and of a round in which it was said in time");
        (search.round, search.silent) = (99, (1..=99).collect());
        assert!(!search.is_over(10));
        (search.round, search.silent) = (100, (1..=100).collect());
        assert!(search.is_over(10), "nobody is asked for ever");
    }
}
