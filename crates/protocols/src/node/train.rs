//! Trains: quick jobs of an array that share one place, one after the other.
//!
//! To find a place, promise it and give it back takes longer than a job that does next to nothing. So once the jobs of an
//! array have proved quick, one of them *leads*, and some of the next indexes *ride*: they have no place of their own, and
//! run in that of their leader, each when the one before it has ended ([`super::ride`] is the run node's side). All else
//! of them is as of any job: each has an id, outputs, retries and an end of its own, and can be cancelled.
//!
//! Who rides is on disk with the leader before a place is looked for. When the leader's place is lost, or one of them
//! has to run again, it gets off and looks for a place of its own, with placements numbered on from the train's: no task
//! is ever two. That a leader has ended is noted only after all that rode with it have.
//!
//! A train lasts about a second, by how long the last jobs took. Towards the end of an array trains get shorter, so that
//! all places are done at about the same time, but never so short that it takes longer to find their places. Those that
//! have not begun after [`RIDES_MOST`], because one before them is slow for once, get off. Who got off before its turn and
//! comes right after another that did so too may ride with that one: very many would otherwise look for places one by one.
//!
//! What is on disk tells who rides with whom: each leader names its riders, and who got off is [numbered](super::owned::Owned::numbered)
//! beyond the leader that it left, as are all placements of a train beyond all who ride in it.

use shoal_model::job::Mode;
use shoal_model::{Epoch, Job, JobId, NodeId, Span, Time};

use super::Node;
use super::message::{Brief, End, Event, Exit, JobMessage, Message, Task};
use super::owned::Phase;
use crate::commit::two_phase::{self, Placement};
use crate::protocol::Ctx;

/// The most jobs that ride with one.
pub const RIDERS_MAX: usize = 1_023;
/// Those that have not begun this long after their leader get off.
pub const RIDES_MOST: Span = Span::from_secs(2);
/// How long a train is meant to take.
const TAKES: Span = Span::from_secs(1);
/// No train is shorter only because it comes towards the end: to find its place takes half as long.
const TAKES_LEAST: Span = Span::from_millis(100);
/// A job that takes no longer is quick.
pub(super) const QUICK: Span = Span::from_millis(100);
/// A train has at most so many times as many jobs as were quick in a row: the first ones are short.
const GROWS: u32 = 4;
/// A train has at most the part of one place of those that are left, or this part.
const PART_OF_LEFT: u32 = 4;

/// Whether a job of an array shares its place with others of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Train {
    /// It has a place for itself.
    #[default]
    Alone,
    /// The jobs for these indexes run after it, in its place.
    Leads(Vec<u32>),
    /// It runs in the place of this job.
    Rides(JobId),
}

impl Train {
    /// For which indexes jobs run after it; none if it is alone.
    pub fn riders(&self) -> Option<&[u32]> {
        match self {
            Train::Leads(riders) => Some(riders),
            Train::Alone | Train::Rides(_) => None,
        }
    }

    /// In whose place it runs, if not in its own.
    pub fn leader(&self) -> Option<JobId> {
        match self {
            Train::Rides(leader) => Some(*leader),
            Train::Alone | Train::Leads(_) => None,
        }
    }
}

/// How quick the jobs of an array have been lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Pace {
    /// How many were quick, one after the other.
    quick: u32,
    /// How long one of them takes.
    each: Span,
}

impl Pace {
    /// Whether no quick job has ended yet.
    pub fn is_unknown(&self) -> bool {
        self.quick == 0
    }

    /// So many jobs took so long together.
    pub fn note(&mut self, took: Span, jobs: u32) {
        let each = Span::from_micros(took.as_micros() / u64::from(jobs));
        if each > QUICK {
            *self = Pace::default();
            return;
        }
        let before = if self.quick == 0 { each } else { self.each };
        self.each = Span::from_micros((3 * before.as_micros() + each.as_micros()) / 4);
        self.quick = self.quick.saturating_add(jobs);
    }

    /// How many may ride with the next, if so many are left and run in so many places.
    pub fn riders(&self, left: u32, places: usize) -> usize {
        let in_time = |time: Span| time.as_micros() / self.each.as_micros().max(1);
        let places = u32::try_from(places).unwrap_or(u32::MAX).max(PART_OF_LEFT);
        let part = u64::from(left / places).max(in_time(TAKES_LEAST));
        let jobs = part.min(in_time(TAKES)).min(u64::from(self.quick.saturating_mul(GROWS)));
        (jobs as usize).saturating_sub(1).min(RIDERS_MAX)
    }
}

/// Whether jobs of this array may share a place: not those that must not run twice, bring something along or are
/// counted.
pub(super) fn may_share(job: &Job) -> bool {
    let counted = job.array.as_ref().is_none_or(|array| array.at_once().is_some());
    let brings = job.files.is_some() || job.secrets.is_some();
    !counted && !brings && job.nodes.get() == 1 && job.mode() != Mode::AtMostOnce && job.deadline.is_none()
}

/// Whether those that ride with a job, as a peer says, can.
pub(super) fn is_sound(brief: &Brief) -> bool {
    let Some(riders) = &brief.riders else { return true };
    let (Some(index), Some(array)) = (brief.index, &brief.envelope.job().array) else { return false };
    let rising = std::iter::once(&index).chain(riders).is_sorted_by(|one, next| one < next);
    let known = riders.iter().all(|&rider| array.contains(rider));
    rising && known && riders.len() <= RIDERS_MAX && may_share(brief.envelope.job())
}

impl Node {
    /// Those that ride with a job and have not ended.
    fn riders(&self, leader: JobId) -> Vec<JobId> {
        let Some(work) = &self.work else { return Vec::new() };
        let Some(owned) = work.owned.get(&leader) else { return Vec::new() };
        let Some((array, _)) = owned.of else { return Vec::new() };
        let riders = owned.train.riders().unwrap_or_default().iter().map(|&index| array.of_index(index));
        let rides = |rider: &JobId| {
            let open = work.owned.get(rider).filter(|owned| !matches!(owned.phase, Phase::Ended(_)));
            open.is_some_and(|owned| owned.train.leader() == Some(leader))
        };
        riders.filter(rides).collect()
    }

    /// A job has a place: so have those that ride with it.
    pub(super) fn seat_riders(&mut self, leader: JobId, placement: &Placement, ctx: &mut Ctx<'_, Node>) {
        for rider in self.riders(leader) {
            let Some(owned) = self.unended(rider) else { continue };
            owned.phase = Phase::Placed { epoch: placement.epoch, exits: Default::default() };
            owned.started.clear();
            ctx.report(Event::Placed(rider, placement.clone()));
        }
    }

    /// Whether a leader has ended and not all that rode with it, as far as is known here: words were lost. They are asked
    /// after, and the leader's end is heard again.
    pub(super) fn misses_riders(
        &self,
        from: NodeId,
        task: Task,
        exit: Exit,
        ctx: &mut Ctx<'_, Node>,
    ) -> bool {
        let ended = exit.has_run() || exit == Exit::Stopped;
        let riders = if ended { self.riders(task.job) } else { Vec::new() };
        for &job in &riders {
            ctx.send(from, Message::Job(JobMessage::Inquire(Task { job, ..task })));
        }
        !riders.is_empty()
    }

    /// A task has ended: from this the length of trains follows.
    pub(super) fn note_pace(&mut self, task: Task, exit: Exit, now: Time) {
        let Some(work) = self.work.as_mut().filter(|_| exit.has_run()) else { return };
        let Some(owned) = work.owned.get(&task.job) else { return };
        let (Some((array, index)), None) = (owned.of, owned.train.leader()) else { return };
        // With those that got off: that one was slow for once says little of the others.
        let riders = owned.train.riders().map_or(0, <[u32]>::len) as u32;
        let Some(progress) = work.arrays.get_mut(&array) else { return };
        // Not when it was last heard of: what ends right after that was not quick.
        if let Some(since) = progress.since(index) {
            progress.pace.note(now.since(since), 1 + riders);
        }
    }

    /// Those that ride with a job need places of their own; gives them back.
    #[must_use]
    pub(super) fn dissolve(&mut self, leader: JobId, ctx: &mut Ctx<'_, Node>) -> Vec<JobId> {
        let riders = self.riders(leader);
        for &rider in &riders {
            self.get_off(rider, ctx);
        }
        if let Some(owned) = self.work.as_mut().and_then(|work| work.owned.get_mut(&leader))
            && owned.train.riders().is_some()
        {
            owned.train = Train::Alone;
            // Last: until then it says that they are with it. And if none is left: it would say so of those that are with another
            // since.
            ctx.save(owned.record());
        }
        riders
    }

    /// Before a job has a place promised, its train is as long as there are some that ride: others have ended, or have got
    /// off since.
    pub(super) fn refresh_train(&mut self, leader: JobId, ctx: &mut Ctx<'_, Node>) {
        let noted = self.job(leader).and_then(|owned| owned.train.riders()).map_or(0, <[u32]>::len);
        let riders = self.riders(leader);
        if riders.len() == noted {
            return;
        }
        let index = |rider: &JobId| self.job(*rider)?.of.map(|(_, index)| index);
        let riders: Vec<u32> = riders.iter().filter_map(index).collect();
        if let Some(owned) = self.unended(leader) {
            owned.train = if riders.is_empty() { Train::Alone } else { Train::Leads(riders) };
            ctx.save(owned.record());
        }
    }

    /// The node of a train is told once more whom it is not to run: those that rode with a job and were taken back. It may not
    /// have known them when it was told, or not have heard it.
    pub(super) fn stop_ended_riders(
        &mut self,
        node: NodeId,
        leader: JobId,
        epoch: Epoch,
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(owned) = self.job(leader) else { return };
        let (Some((array, _)), Some(riders)) = (owned.of, owned.train.riders()) else { return };
        for job in riders.iter().map(|&index| array.of_index(index)) {
            // What it says of an end that was heard is nothing new.
            if let Some(Phase::Ended(End::Cancelled)) = self.job(job).map(|owned| &owned.phase) {
                ctx.send(node, Message::Commit(two_phase::Message::Release { job, upto: epoch }));
            }
        }
    }

    /// A job that rides with another does so no longer.
    pub(super) fn get_off(&mut self, rider: JobId, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let Some(leader) = work.owned.get(&rider).and_then(|owned| owned.train.leader()) else { return };
        let numbered = work.owned.get(&leader).map_or(Epoch(0), |owned| owned.numbered);
        let numbered = numbered.max(work.commit.last_epoch(leader));
        let Some(owned) = work.owned.get_mut(&rider) else { return };
        let Some((array, _)) = owned.of else { return };
        owned.train = Train::Alone;
        owned.phase = Phase::Seeking;
        owned.started.clear();
        // Whatever the train was called where it ran, this one's next task is called otherwise.
        owned.numbered = owned.numbered.max(numbered);
        ctx.save(owned.record());
        if let Some(progress) = work.arrays.get_mut(&array) {
            progress.note_alone(rider);
        }
    }

    /// A job that rides with one for which no place has been asked yet does so no longer.
    pub(super) fn get_off_before_it_starts(&mut self, rider: JobId, ctx: &mut Ctx<'_, Node>) {
        let Some(leader) = self.job(rider).and_then(|owned| owned.train.leader()) else { return };
        let is_sought = self.unended(leader).is_some_and(|owned| owned.phase == Phase::Seeking);
        if is_sought && !self.is_placing(leader) {
            self.get_off(rider, ctx);
            self.refresh_train(leader, ctx);
        }
    }

    /// After a restart: who leads a train without a place does not know whether its nodes have begun it.
    pub(super) fn dissolve_unplaced(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        let leads = work.owned.iter().filter(|(_, owned)| owned.train.riders().is_some());
        let leaders: Vec<JobId> = leads.map(|(&job, _)| job).collect();
        for leader in leaders {
            if self.placement(leader).is_none() {
                // All jobs are about to be looked after.
                let _ = self.dissolve(leader, ctx);
            }
        }
    }

    /// A job is taken back: if it rides with another, its node is told not to run it.
    pub(super) fn stop_riding(&self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.job(job).filter(|owned| owned.train.leader().is_some()) else { return };
        let (Phase::Placed { epoch, .. }, Some(placement)) = (&owned.phase, self.placement(job)) else {
            return;
        };
        for node in placement.nodes {
            let release = two_phase::Message::Release { job, upto: *epoch };
            ctx.send(node, Message::Commit(release));
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Envelope, Nonce};

    use super::*;
    use crate::shared::Shared;

    fn brief(job: Job, index: u32, riders: &[u32]) -> Brief {
        let envelope = Shared::new(Envelope::new(job, Nonce([1; 16])).expect("the job makes sense"));
        Brief { envelope, nodes: vec![NodeId(1)].into(), index: Some(index), riders: Some(riders.into()) }
    }

    fn array(indexes: &str) -> Job {
        Job { array: Some(Box::new(indexes.parse().unwrap())), ..Job::command(["true"]) }
    }

    #[test]
    fn trains_grow_with_quick_jobs_and_are_short_at_the_end_of_an_array_and_after_a_slow_one() {
        let mut pace = Pace::default();
        assert_eq!(pace.riders(10_000, 2), 0, "nothing is known yet");
        pace.note(Span::from_millis(1), 1);
        assert_eq!(pace.riders(10_000, 2), 3, "four in all");
        pace.note(Span::from_millis(9), 9);
        assert_eq!(pace.riders(10_000, 2), 39);
        pace.note(Span::from_secs(10), 10_000);
        assert_eq!(pace.riders(1_000_000, 2), 999, "a second");
        assert_eq!((pace.riders(800, 2), pace.riders(800, 8)), (199, 99), "in all places until the end");
        assert_eq!(pace.riders(32, 2), 99, "no shorter than 100 ms");
        pace.note(Span::from_millis(80), 1);
        assert_eq!(pace.riders(1_000_000, 2), 47, "no longer than a second");
        assert_eq!((pace.riders(32, 2), pace.riders(7, 2)), (7, 3));
        pace.note(Span::from_secs(1), 1);
        assert_eq!(pace.riders(1_000_000, 2), 0);
        pace.note(Span::from_millis(10), 1_000);
        assert_eq!(pace.riders(1_000_000, 2), RIDERS_MAX);
    }

    #[test]
    fn who_rides_is_of_the_same_array_and_comes_after_its_leader() {
        assert!(is_sound(&brief(array("1-100"), 3, &[4, 5, 90])));
        let many: Vec<u32> = (2..=2 + RIDERS_MAX as u32).collect();
        let wrong: [(&str, &[u32]); 5] =
            [("1-100", &[2]), ("1-100", &[3]), ("1-100", &[5, 4]), ("1-100", &[101]), ("1-100%7", &[4])];
        for (indexes, riders) in wrong {
            assert!(!is_sound(&brief(array(indexes), 3, riders)), "{indexes} {riders:?}");
        }
        assert!(!is_sound(&brief(array("1-1000"), 1, &many)), "{} are too many", many.len());
        let once = Job { mode: Some(Mode::AtMostOnce), ..array("1-100") };
        assert!(!is_sound(&brief(once, 3, &[4])));
        assert!(!is_sound(&brief(Job::command(["true"]), 3, &[4])), "no array");
    }
}
