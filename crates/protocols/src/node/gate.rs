//! Who may run here: asked before this node promises its machine to a job, and again before a task of it starts.
//!
//! ```text
//! owner                     host
//!     │── Commit, Assign ───▶│  the gate says no: nothing is saved, no time is kept
//!     │◀───────────── Denied │  and why; the owner leaves this host out for a while, and plans anew
//!     │                      │  … or it said yes, and says no when the task is to start: it never does
//! ```
//!
//! Signatures, certificates and rules are no business of this crate: a [`Judge`] that the driver gives at the node's
//! making knows them. It sees all that the host itself was told, so whoever forwards a job changes nothing. What a host
//! denies may be allowed a minute later (rules, hours and certificates change), so a denial counts for [`DENIED_FOR`].

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{Envelope, Epoch, JobId, Machine, NodeId, Resources, Span, Time};

use super::message::{Brief, Event, JobMessage, Message, Task};
use super::{Node, Work};
use crate::commit::two_phase::{self, Stage};
use crate::protocol::{Ctx, Input};
use crate::scheduling::{Stuck, aria};

/// How long a node that has denied a job is left out of the search for a place.
pub const DENIED_FOR: Span = Span::from_mins(1);
/// Nodes that an owner remembers to have denied one job, at most.
pub const DENIED_MAX: usize = 256;

/// What is asked of the gate.
pub struct Ask<'a> {
    /// The job, as it was signed.
    pub envelope: &'a Envelope,
    /// When it would start, or starts.
    pub start: Time,
    /// How long it may run.
    pub limit: Span,
    /// When this is asked.
    pub now: Time,
    /// What this node is.
    pub machine: &'a Machine,
    /// The nodes that would start it together with this one, before that is promised; empty when it starts, since who
    /// starts with others does not stop for what was known before.
    pub nodes: &'a [NodeId],
    /// The other jobs that have a place here; empty unless the gate [counts](Judge::counts).
    pub beside: &'a [&'a Envelope],
}

/// Says whether a job may run here; the same answer to the same question, as long as nobody changes the rules.
pub trait Judge: fmt::Debug + Send + Sync {
    /// Whether it may, or why not.
    fn judge(&self, ask: &Ask<'_>) -> Result<(), Denial>;

    /// Whether it must know what else is here.
    fn counts(&self) -> bool {
        false
    }
}

/// Why a host does not run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen, thiserror::Error)]
pub enum Denial {
    /// Nobody has signed it.
    #[n(0)]
    #[error("it is not signed")]
    Unsigned,
    /// The signature does not fit.
    #[n(1)]
    #[error("its signature does not fit: it was changed on its way, or signed by somebody else")]
    Forged,
    /// Nothing shows who the signer is.
    #[n(2)]
    #[error("it has no pass that says who signed it")]
    NoPass,
    /// The pass is of no use.
    #[n(3)]
    #[error("its pass cannot be read, or is not signed by who it should be")]
    BadPass,
    /// The pass is of another grid.
    #[n(4)]
    #[error("its pass is for another grid")]
    OtherGrid,
    /// The pass is for another key, user or organisation than the job says.
    #[n(5)]
    #[error("its pass is for another key, user or organisation than the job names")]
    OtherUser,
    /// The pass is too old.
    #[n(6)]
    #[error("its pass has expired")]
    Expired,
    /// Nobody whom the host trusts has signed the pass.
    #[n(7)]
    #[error("its pass is signed by an organisation that is not trusted there")]
    Untrusted,
    /// The pass or its owner was revoked.
    #[n(8)]
    #[error("its user or pass was revoked")]
    Revoked,
    /// A rule of the host's policy says no.
    #[n(9)]
    #[error("the rule in line {0} of its policy.toml denies it")]
    Rule(#[n(0)] u32),
    /// No rule of the host's policy says yes.
    #[n(10)]
    #[error("no rule of its policy allows it")]
    NoRule,
    /// Whoever placed it asks for something else than its user has signed.
    #[n(11)]
    #[error("what was asked of it is not what the job's user has signed")]
    NotAsSigned,
    /// The job was signed for another grid, or for none.
    #[n(12)]
    #[error("it was not signed for this grid")]
    ForeignJob,
    /// The job was signed too long ago.
    #[n(13)]
    #[error("it was signed too long ago, or by a clock that is far ahead")]
    Stale,
    /// The host's owner wants it isolated, and its machine cannot.
    #[n(14)]
    #[error("it is to be isolated there, and that machine cannot do it")]
    NoCell,
    /// The host took it, and could not start it.
    #[n(15)]
    #[error("it could not be started there; the log of that node says why")]
    CannotStart,
    /// Its nodes could not start it together.
    #[n(16)]
    #[error(
        "the clocks of its nodes are more than 5 s apart, so that they would not start together: set them right (NTP)"
    )]
    ClocksApart,
    /// The host is about to leave the grid.
    #[n(17)]
    #[error("it is about to leave the grid")]
    Leaves,
}

/// The gate of a node; without a judge it is open, as in simulations that are not about it.
#[derive(Clone, Debug, Default)]
pub struct Gate(Option<Arc<dyn Judge>>);

impl Gate {
    /// No job is denied.
    pub const OPEN: Gate = Gate(None);

    /// A gate with a judge.
    pub fn with(judge: Arc<dyn Judge>) -> Gate {
        Gate(Some(judge))
    }
}

/// Two gates are the same if one judge keeps both.
impl PartialEq for Gate {
    fn eq(&self, other: &Gate) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

impl Eq for Gate {}

impl Hash for Gate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.is_some().hash(state);
    }
}

/// What a host is to promise to a job.
#[derive(Clone, Copy, Debug)]
struct Planned<'a> {
    start: Time,
    /// After which it is stopped.
    limit: Span,
    /// What is kept for it, where that does not follow from the job.
    amount: Option<&'a Resources>,
    /// Who is to start it together, where that is still to be promised.
    nodes: &'a [NodeId],
}

impl Planned<'_> {
    /// Whether this is what the job's user has signed: who places it could ask for more, or for what nobody wants.
    fn is_as_signed(&self, brief: &Brief) -> bool {
        let job = brief.envelope.job();
        let index = match (&job.array, brief.index) {
            (Some(array), Some(index)) => array.contains(index),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let nodes = brief.nodes.len() == job.nodes.get() as usize;
        let limit = job.limit.is_none_or(|most| self.limit <= most);
        index && nodes && limit && self.amount.is_none_or(|amount| *amount == job.resources)
    }
}

impl Work {
    /// Whether a job may run here as planned.
    fn verdict(&self, brief: &Brief, planned: Planned<'_>, now: Time) -> Result<(), Denial> {
        let Some(judge) = &self.gate.0 else { return Ok(()) };
        if !planned.is_as_signed(brief) {
            return Err(Denial::NotAsSigned);
        }
        let Planned { start, limit, amount: _, nodes } = planned;
        let job = brief.job();
        let mut beside: Vec<&Envelope> = Vec::new();
        if judge.counts() {
            let locks = self.commit.locks().filter(|(lock, _)| lock.job != job);
            beside.extend(locks.filter_map(|(lock, _)| lock.brief.as_ref()).map(|brief| &*brief.envelope));
            let seats = self.recipe.aria().into_iter().flat_map(aria::Aria::briefs);
            beside.extend(seats.filter(|brief| brief.job() != job).map(|brief| &*brief.envelope));
        }
        let machine = &self.machine;
        judge.judge(&Ask { envelope: &brief.envelope, start, limit, now, machine, nodes, beside: &beside })
    }
}

impl Work {
    /// Whether a task that waits here could start at once.
    pub(super) fn may_start_now(&self, brief: &Brief, limit: Span, now: Time) -> bool {
        self.verdict(brief, Planned { start: now, limit, amount: None, nodes: &[] }, now).is_ok()
    }
}

impl Node {
    /// Whether this would make a promise that the gate forbids; then it was answered.
    pub(super) fn denies(&mut self, from: NodeId, message: &Message, ctx: &mut Ctx<'_, Node>) -> bool {
        let Some(work) = &self.work else { return false };
        let (job, epoch, brief, planned) = match message {
            Message::Commit(two_phase::Message::Commit { job, epoch, brief }) => {
                // What is committed already was judged; what is not held is refused in any case.
                let Some((lock, Stage::Held)) = work.commit.lock(*job, *epoch) else { return false };
                let (amount, nodes) = (Some(&lock.amount), &*brief.nodes);
                let planned = Planned { start: lock.start, limit: lock.time(), amount, nodes };
                (*job, *epoch, brief, planned)
            }
            Message::Aria(aria::Message::Assign { job, epoch, brief, limit }) => {
                if work.recipe.aria().is_none_or(|aria| aria.holds(*job, *epoch)) {
                    return false;
                }
                let nodes = &*brief.nodes;
                (*job, *epoch, brief, Planned { start: ctx.now, limit: *limit, amount: None, nodes })
            }
            Message::Overlay(_)
            | Message::BlatantS(_)
            | Message::Can(_)
            | Message::Secondary(_)
            | Message::TriPronged(_)
            | Message::Proactive(_)
            | Message::Aria(_)
            | Message::Commit(_)
            | Message::Heartbeat(_)
            | Message::Sample(_)
            | Message::Asap(_)
            | Message::HandOver(_)
            | Message::Job(_) => return false,
        };
        let Err(why) = work.verdict(brief, planned, ctx.now) else { return false };
        if matches!(message, Message::Commit(_)) {
            let abort = two_phase::Message::Abort { job, epoch };
            self.tell_commit(Input::Message { from, message: abort }, ctx);
        }
        self.deny(from, job, epoch, why, ctx);
        true
    }

    /// Whether a task may not start here after all; then its owner was told why.
    pub(super) fn denies_start(
        &mut self,
        task: Task,
        owner: NodeId,
        brief: &Brief,
        limit: Span,
        ctx: &mut Ctx<'_, Node>,
    ) -> bool {
        let Some(work) = &self.work else { return false };
        let planned = Planned { start: ctx.now, limit, amount: None, nodes: &[] };
        let Err(why) = work.verdict(brief, planned, ctx.now) else { return false };
        self.deny(owner, task.job, task.epoch, why, ctx);
        true
    }

    pub(super) fn deny(&self, owner: NodeId, job: JobId, epoch: Epoch, why: Denial, ctx: &mut Ctx<'_, Node>) {
        ctx.report(Event::Denied { job, by: ctx.me, why });
        ctx.send(owner, Message::Job(JobMessage::Denied(job, epoch, why)));
    }

    /// A host does not run a job of ours: it is left out for a while, and what was asked of it is refused.
    pub(super) fn on_denied(
        &mut self,
        from: NodeId,
        job: JobId,
        epoch: Epoch,
        why: Denial,
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(owned) = self.unended(job) else { return };
        owned.note_denied(from, ctx.now, why);
        if from != ctx.me {
            ctx.report(Event::Denied { job, by: from, why });
        }
        if self.aria().is_some() {
            let refused = aria::Message::Refused { job, epoch };
            self.tell_aria(|aria, _, _| aria.avoid(job, from), ctx);
            self.tell_aria(
                |aria, here, ctx| aria.handle(Input::Message { from, message: refused }, here, ctx),
                ctx,
            );
        } else {
            let refuse = two_phase::Message::Refuse { job, epoch };
            self.tell_commit(Input::Message { from, message: refuse }, ctx);
        }
    }

    /// Who has denied a job of ours lately.
    pub(super) fn avoided(&mut self, job: JobId, now: Time) -> BTreeSet<NodeId> {
        let Some(owned) = self.unended(job) else { return BTreeSet::new() };
        // Nearly always nobody has: not to be written to, or every job would take room for it.
        if owned.denied.is_empty() {
            return BTreeSet::new();
        }
        owned.denied.retain(|_, (at, _)| now.since(*at) < DENIED_FOR);
        owned.denied.keys().copied().collect()
    }

    /// Why a job has no place: that hosts have denied it says more than that there are too few of them.
    pub(super) fn why_stuck(&mut self, job: JobId, why: Stuck) -> Stuck {
        let Some(owned) = self.unended(job) else { return why };
        let last = owned.denied.values().max_by_key(|(at, _)| *at);
        match (why, last) {
            (
                Stuck::TooFew { .. }
                | Stuck::NeverFree
                | Stuck::Excluded { .. }
                | Stuck::Infeasible { .. }
                | Stuck::Outrun
                | Stuck::Alone
                | Stuck::NoOffer { .. },
                Some(&(_, why)),
            ) => Stuck::Denied { nodes: owned.denied.len() as u32, why },
            (why, _) => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Job, Nonce};

    use super::*;
    use crate::shared::Shared;

    const HOUR: Span = Span::from_hours(1);

    fn brief(job: Job, index: Option<u32>, nodes: &[u64]) -> Brief {
        let envelope = Shared::new(Envelope::new(job, Nonce([7; 16])).unwrap());
        Brief { envelope, index, nodes: nodes.iter().map(|&node| NodeId(node)).collect(), riders: None }
    }

    fn is_as_signed(brief: &Brief, limit: Span, amount: Option<&Resources>) -> bool {
        Planned { start: Time::ZERO, limit, amount, nodes: &[] }.is_as_signed(brief)
    }

    #[test]
    fn who_places_a_job_cannot_give_it_more_time_or_room_than_its_user_signed() {
        let job = Job { limit: Some(HOUR), ..Job::command(["true"]) };
        let brief = brief(job.clone(), None, &[1]);
        assert!(is_as_signed(&brief, HOUR, Some(&job.resources)));
        assert!(!is_as_signed(&brief, HOUR + Span::from_secs(1), None));
        assert!(!is_as_signed(&brief, HOUR, Some(&Resources::cores(64))));
        // Where the user names no time, the owner's default counts, and is judged as it is.
        let unlimited = Job { limit: None, ..job };
        assert!(is_as_signed(&self::brief(unlimited, None, &[1]), HOUR + HOUR, None));
    }

    #[test]
    fn who_places_a_job_cannot_make_it_many_or_wide() {
        let job = Job::command(["true"]);
        assert!(!is_as_signed(&brief(job.clone(), Some(0), &[1]), HOUR, None));
        assert!(!is_as_signed(&brief(job.clone(), None, &[1, 2]), HOUR, None));
        let array = Job { array: "3-5".parse().ok().map(Box::new), ..job };
        assert!(is_as_signed(&brief(array.clone(), Some(4), &[1]), HOUR, None));
        assert!(!is_as_signed(&brief(array.clone(), Some(6), &[1]), HOUR, None));
        assert!(!is_as_signed(&brief(array, None, &[1]), HOUR, None));
    }
}
