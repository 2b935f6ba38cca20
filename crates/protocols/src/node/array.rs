//! Arrays: one envelope, a job for each index, of which a few at a time look for places.
//!
//! A job of an array is a job like any other, with an id of its own and its array's envelope. It exists for its owner
//! from when it is *launched*, in the order of the indexes, as long as fewer than the array's window have not begun. So
//! those that have been launched and have not ended are the first of all that have not: after a restart the
//! array, the places of its jobs and their ends tell the rest, and nothing is saved at a launch but who shares a place with
//! whom ([`super::train`]). An array of a million jobs is accepted with one write.

mod restore;

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::job::Array;
use shoal_model::{Epoch, JobId, Span, Time};

use super::message::{End, Event, Timer};
use super::owned::{Owned, Phase};
use super::train::{Pace, Train, may_share};
use super::{Node, Work};
use crate::protocol::Ctx;
use crate::scheduling::{CLOCKS_APART_MOST, Stuck};

/// How many jobs of an array are planned ahead, at most, besides those that run. More would fill the calendars for no good:
/// who starts first is known, and when the last starts is a guess.
const WINDOW: usize = 256;

/// How many jobs of an array are under way at once, at most: an owner knows all of them.
const OPEN_MAX: usize = 16_384;

/// The same of an array whose jobs share places, and until it is known whether they are quick enough for that; more where more
/// run. Who is planned early, when few or none may ride with it, would be behind all the trains that come later.
const WINDOW_OF_QUICK: usize = 16;
/// How long it is waited for whether they are quick.
const AT_FIRST: Span = Span::from_millis(250);

/// How many jobs of an array look for places at once: more would see the same room, and all but one be refused.
const SEEKING_MAX: usize = 8;

/// The same of an array whose jobs share places: it needs few of them.
const SEEKING_SHARED_MAX: usize = 2;

/// How far an array has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// The last index that was launched.
    last: Option<u32>,
    /// Those that were launched and have not ended, with their ids: an id is a hash, and all of them are looked at often.
    open: BTreeMap<u32, JobId>,
    /// How many of those ride with another, and need no place of their own.
    riding: usize,
    /// Those that run in places of their own, as far as is known, and since when.
    begun: BTreeMap<u32, Time>,
    /// How quick they are.
    pub(super) pace: Pace,
    /// Until when only a few are launched, since it shows soon whether they are quick.
    few_until: Option<Time>,
    /// Those launched that had no place when they were last looked at: few, where all that are open are many.
    looking: Vec<JobId>,
    /// Those that rode with another and got off before they had begun: nobody looks for a place for them yet.
    got_off: BTreeSet<u32>,
    /// How many have ended.
    ended: u32,
    /// How the first of them ended that did not finish.
    bad: Option<End>,
}

impl Progress {
    /// Since when a job runs that has a place of its own, as far as is known.
    pub(super) fn since(&self, index: u32) -> Option<Time> {
        self.begun.get(&index).copied()
    }

    /// How many are planned ahead, if so many have begun.
    fn ahead(&self, begun: usize) -> usize {
        self.open.len().saturating_sub(self.riding + begun)
    }

    /// How many may ride with the next, if so many are left: not so many that none are under way for other places.
    fn riders(&self, left: u32) -> usize {
        let places = self.begun.len();
        self.pace.riders(left, places).min(OPEN_MAX / (2 * places.max(1)))
    }

    /// How many may be planned ahead, at most, if so many have begun.
    fn window(&self, begun: usize, now: Time) -> usize {
        match self.few_until {
            Some(until) if now < until || !self.pace.is_unknown() => begun.clamp(WINDOW_OF_QUICK, WINDOW),
            _ => WINDOW,
        }
    }

    /// One that rode with another looks for a place of its own.
    pub(super) fn note_alone(&mut self, job: JobId) {
        self.riding = self.riding.saturating_sub(1);
        self.looking.push(job);
    }

    fn note(&mut self, end: End) {
        self.ended += 1;
        if end != End::Finished {
            self.bad = self.bad.or(Some(end));
        }
    }
}

impl Work {
    /// Jobs that are yet to be launched.
    pub(super) fn unlaunched(&self) -> usize {
        let rest = |(job, progress): (&JobId, &Progress)| {
            let jobs = self.array(*job).map_or(0, Array::tasks);
            (jobs as usize).saturating_sub(progress.open.len() + progress.ended as usize)
        };
        self.arrays.iter().map(rest).sum()
    }

    fn array(&self, job: JobId) -> Option<&Array> {
        self.owned.get(&job)?.array()
    }

    /// How many jobs of an array have ended, and how many there are.
    pub(super) fn progress(&self, job: JobId) -> Option<(u32, u32)> {
        Some((self.arrays.get(&job)?.ended, self.array(job)?.tasks()))
    }

    /// Whether as many jobs of an array look for their first place as may. Those that look for another one do so anyway.
    fn seeks_enough(&mut self, array: JobId) -> bool {
        let Some(progress) = self.arrays.get_mut(&array) else { return true };
        let most = if progress.riding > 0 { SEEKING_SHARED_MAX } else { SEEKING_MAX };
        let mut looking = std::mem::take(&mut progress.looking);
        // Who looks no longer is met once: very many may have lost their places together.
        let mut seeking = 0;
        while seeking < most && seeking < looking.len() {
            let job = looking[seeking];
            if self.is_seeking(job) && !self.has_got_off(job) {
                seeking += 1;
            } else {
                looking.swap_remove(seeking);
            }
        }
        if let Some(progress) = self.arrays.get_mut(&array) {
            progress.looking = looking;
        }
        seeking >= most
    }

    /// How many jobs of an array run in places of their own.
    fn begun(&self, array: JobId) -> usize {
        self.arrays.get(&array).map_or(0, |progress| progress.begun.len())
    }

    fn is_seeking(&self, job: JobId) -> bool {
        self.owned.get(&job).is_some_and(|owned| owned.phase == Phase::Seeking && owned.may_seek())
    }

    /// Whether a job is of an array that is not held, has no place, and may share one with others. One that is yet to be
    /// launched may not, nor one that has had a place of its own: what becomes of that goes by its own numbers.
    pub(super) fn may_board(&self, job: JobId) -> bool {
        let Some(owned) = self.owned.get(&job).filter(|owned| owned.may_board()) else { return false };
        let Some((array, index)) = owned.of else { return false };
        if !self.recipe.has_trains() {
            return false;
        }
        let goes_on = self.owned.get(&array).is_some_and(|array| array.may_seek());
        let launched = self.arrays.get(&array).is_some_and(|progress| progress.open.contains_key(&index));
        goes_on && launched && self.commit.last_epoch(job) == Epoch(0)
    }

    /// Whether a job waits to share a place anew.
    fn has_got_off(&self, job: JobId) -> bool {
        let of = self.owned.get(&job).and_then(|owned| owned.of);
        let progress = of.and_then(|(array, index)| Some((self.arrays.get(&array)?, index)));
        progress.is_some_and(|(progress, index)| progress.got_off.contains(&index))
    }

    /// Has an array begin with a few of its jobs, if they could share places; says until when.
    fn begin_with_few(&mut self, array: JobId, now: Time) -> Option<Time> {
        let shares = self.recipe.has_trains() && may_share(self.owned.get(&array)?.envelope.job());
        let progress = self.arrays.get_mut(&array)?;
        if !shares || progress.few_until.is_some() {
            return None;
        }
        Some(*progress.few_until.insert(now + AT_FIRST))
    }

    /// Makes the next job of an array, if it is time for one and so many have begun.
    fn launch_next(&mut self, array: JobId, begun: usize, now: Time) -> Option<JobId> {
        let parent = self.owned.get(&array).filter(|parent| parent.after.is_empty())?;
        let progress = self.arrays.get_mut(&array)?;
        let indexes = parent.array()?;
        let window = progress.window(begun, now);
        let most = indexes.at_once().map_or(OPEN_MAX, |most| OPEN_MAX.min(most.get() as usize));
        if progress.ahead(begun) >= window || progress.open.len() >= most {
            return None;
        }
        let index = indexes.next(progress.last)?;
        let job = Owned::of_array(parent, array, index, self.limit_default);
        let id = job.id;
        progress.last = Some(index);
        progress.open.insert(index, id);
        progress.looking.push(id);
        self.owned.insert(id, Box::new(job));
        Some(id)
    }

    /// Has the next jobs of an array ride with this one, if they have proved quick; says whether some do.
    fn fill_train(&mut self, array: JobId, leader: JobId) -> bool {
        let (Some(parent), Some(progress)) = (self.owned.get(&array), self.arrays.get_mut(&array)) else {
            return false;
        };
        let Some(indexes) = parent.array().filter(|_| may_share(parent.envelope.job())) else { return false };
        // What was tried before goes on by itself.
        let fresh = self.owned.get(&leader).is_some_and(|owned| owned.is_untried());
        let left = indexes.tasks().saturating_sub(progress.ended + progress.open.len() as u32);
        let most = if fresh && self.recipe.has_trains() { progress.riders(left) } else { 0 };
        let mut riders = Vec::new();
        while riders.len() < most
            && let Some(index) = indexes.next(progress.last)
            && let id = array.of_index(index)
            && !self.owned.contains_key(&id)
        {
            riders.push((index, Owned::riding(parent, array, index, leader, self.limit_default)));
            progress.last = Some(index);
            progress.open.insert(index, id);
        }
        progress.riding += riders.len();
        let indexes: Vec<u32> = riders.iter().map(|&(index, _)| index).collect();
        self.owned.extend(riders.into_iter().map(|(_, rider)| (rider.id, Box::new(rider))));
        match self.owned.get_mut(&leader).filter(|_| !indexes.is_empty()) {
            Some(owned) => owned.train = Train::Leads(indexes),
            None => return false,
        }
        true
    }

    /// Has those that got off and come right after the first of them ride with that one; says which one, and whether some
    /// do.
    fn board_again(&mut self, array: JobId) -> Option<(JobId, bool)> {
        let progress = self.arrays.get_mut(&array).filter(|progress| !progress.got_off.is_empty())?;
        let indexes = self.owned.get(&array)?.array()?.clone();
        let owned = &mut self.owned;
        let take = |progress: &mut Progress, index: u32| {
            let may = owned.get(&array.of_index(index)).is_some_and(|owned| owned.may_board());
            progress.got_off.remove(&index) && may
        };
        let first = loop {
            let index = *progress.got_off.first()?;
            if take(progress, index) {
                break index;
            }
        };
        let open = progress.open.len().saturating_sub(progress.got_off.len() + 1);
        let left = indexes.tasks().saturating_sub(progress.ended + open as u32);
        let most = progress.riders(left);
        let mut riders = Vec::new();
        while riders.len() < most
            && let Some(next) = indexes.next(Some(riders.last().copied().unwrap_or(first)))
            && take(progress, next)
        {
            riders.push(next);
        }
        let leader = array.of_index(first);
        progress.looking.push(leader);
        progress.riding += riders.len();
        let mut numbered = owned.get(&leader)?.numbered;
        for &rider in &riders {
            let rider = owned.get_mut(&array.of_index(rider))?;
            rider.train = Train::Rides(leader);
            numbered = numbered.max(rider.numbered);
        }
        let leads = !riders.is_empty();
        if leads {
            let owned = owned.get_mut(&leader)?;
            (owned.train, owned.numbered) = (Train::Leads(riders), numbered);
        }
        Some((leader, leads))
    }
}

impl Node {
    /// Launches as many jobs of an array as may be under way, and ends it when all have ended.
    pub(super) fn launch(&mut self, array: JobId, ctx: &mut Ctx<'_, Node>) {
        if !self.unended(array).is_some_and(|owned| owned.may_seek()) {
            return;
        }
        if let Some(until) = self.work.as_mut().and_then(|work| work.begin_with_few(array, ctx.now)) {
            ctx.wake_at(until, Timer::Launch(array));
        }
        while let Some(work) = &mut self.work
            && !work.seeks_enough(array)
        {
            let (job, leads) = match work.board_again(array) {
                Some(first) => first,
                None => match work.launch_next(array, work.begun(array), ctx.now) {
                    Some(job) => (job, work.fill_train(array, job)),
                    None => break,
                },
            };
            if leads && let Some(leader) = work.owned.get(&job) {
                ctx.save(leader.record());
            }
            self.seek(job, ctx);
        }
        let Some(work) = &self.work else { return };
        let Some((ended, jobs)) = work.progress(array) else { return };
        if ended == jobs {
            let bad = work.arrays.get(&array).and_then(|progress| progress.bad);
            self.end(array, bad.unwrap_or(End::Finished), ctx);
        } else if let Some(owned) = self.unended(array) {
            owned.why = Some(Stuck::Array { ended, jobs });
        }
    }

    /// Has those that got off a train look for places: as a train again, if nothing else has happened to them. If their array
    /// is held, so are they: none of them runs any more.
    pub(super) fn seek_all(&mut self, jobs: &[JobId], ctx: &mut Ctx<'_, Node>) {
        for &job in jobs {
            let Some(of) = self.unended(job).map(|owned| owned.of) else { continue };
            let array = of.and_then(|(array, _)| self.job(array));
            if array.is_some_and(Owned::is_held) {
                self.hold(job, ctx);
                continue;
            }
            let Some((array, index)) =
                of.filter(|_| self.work.as_ref().is_some_and(|work| work.may_board(job)))
            else {
                self.seek(job, ctx);
                continue;
            };
            if let Some(progress) = self.work.as_mut().and_then(|work| work.arrays.get_mut(&array)) {
                progress.got_off.insert(index);
            }
            if let Some(owned) = self.unended(job) {
                owned.why = Some(Stuck::InTurn);
            }
            ctx.report(Event::Waiting(job, Stuck::InTurn));
            ctx.wake_at(ctx.now, Timer::Launch(array));
        }
    }

    /// A job of an array runs: if so many are planned ahead as may be, one more is from now on.
    /// Since when, by its node's clock, counts where that is longer ago than clocks are apart.
    pub(super) fn note_begun(&mut self, array: JobId, index: u32, at: Time, ctx: &mut Ctx<'_, Node>) {
        let Some(progress) = self.work.as_mut().and_then(|work| work.arrays.get_mut(&array)) else { return };
        let begun = progress.begun.len();
        let full = progress.ahead(begun) >= progress.window(begun, ctx.now);
        let since = if at + CLOCKS_APART_MOST < ctx.now { at } else { ctx.now };
        if progress.begun.insert(index, since).is_none() && full {
            ctx.wake_at(ctx.now, Timer::Launch(array));
        }
    }

    /// A job of an array runs no more, or not yet again.
    pub(super) fn note_not_begun(&mut self, array: JobId, index: u32) {
        if let Some(progress) = self.work.as_mut().and_then(|work| work.arrays.get_mut(&array)) {
            progress.begun.remove(&index);
        }
    }

    /// A place is looked for for this job, which needs to wait for others no more.
    pub(super) fn note_sought(&mut self, job: JobId) {
        let Some(work) = &mut self.work else { return };
        let Some(owned) = work.owned.get_mut(&job) else { return };
        if owned.why == Some(Stuck::InTurn) {
            owned.why = None;
        }
        if let Some((array, index)) = owned.of
            && let Some(progress) = work.arrays.get_mut(&array)
        {
            progress.got_off.remove(&index);
        }
    }

    /// A job of an array has ended: another takes its turn. Not at once, because that one may end at once too, and so on.
    /// One that rode with another leaves no room for one more.
    pub(super) fn on_element_ended(
        &mut self,
        array: JobId,
        index: u32,
        end: End,
        rode: bool,
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(progress) = self.work.as_mut().and_then(|work| work.arrays.get_mut(&array)) else { return };
        progress.got_off.remove(&index);
        progress.begun.remove(&index);
        if progress.open.remove(&index).is_some() {
            progress.note(end);
            if rode {
                progress.riding = progress.riding.saturating_sub(1);
            } else {
                ctx.wake_at(ctx.now, Timer::Launch(array));
            }
        }
    }

    /// The jobs of an array that are under way.
    pub(super) fn elements(&self, array: JobId) -> Vec<JobId> {
        let progress = self.work.as_ref().and_then(|work| work.arrays.get(&array));
        progress.iter().flat_map(|progress| progress.open.values()).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wherever_trains_run_there_are_jobs_for_as_many_places_again() {
        let mut progress = Progress::default();
        progress.pace.note(Span::from_millis(1), 1_000);
        for places in [1, 8, 16, 64, 1_000] {
            progress.begun = (0..places).map(|index| (index, Time::ZERO)).collect();
            let riders = progress.riders(10_000_000);
            assert!(riders > 0 && 2 * riders * places as usize <= OPEN_MAX, "{riders} in {places}");
        }
    }
}
