//! Arrays: one envelope, a job for each index, of which a few at a time look for places.
//!
//! A job of an array is a job like any other, with an id of its own and its array's envelope. It exists for its owner
//! from when it is *launched*, in the order of the indexes, as long as fewer than the array's window have not ended. So
//! those that have been launched and have not ended are the first of all that have not: after a restart the
//! array and the ends of its jobs tell the rest, and nothing is saved at a launch but who shares a place with whom
//! ([`super::train`]). An array of a million jobs is accepted with one write.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use shoal_model::job::Array;
use shoal_model::{JobId, Span, Time};

use super::message::{End, Timer};
use super::owned::{Owned, Phase};
use super::train::{Pace, Train, may_share};
use super::{Node, Work};
use crate::protocol::Ctx;
use crate::scheduling::Stuck;

/// How many jobs of an array are planned ahead, at most. More would fill the calendars for no good: who starts first is
/// known, and when the last starts is a guess.
const WINDOW: u32 = 256;

/// How many of an array whose jobs could share places are planned until it is known whether they are quick.
const WINDOW_AT_FIRST: u32 = 16;
/// How long that is waited for.
const AT_FIRST: Span = Span::from_millis(250);

/// How many jobs of an array look for places at once: more would see the same room, and all but one be refused.
const SEEKING_MAX: usize = 8;

/// How far an array has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// The last index that was launched.
    last: Option<u32>,
    /// Those that were launched and have not ended, with their ids: an id is a hash, and all of them are looked at often.
    open: BTreeMap<u32, JobId>,
    /// How many of those ride with another, and need no place of their own.
    riding: usize,
    /// How quick they are.
    pub(super) pace: Pace,
    /// Until when only a few are launched, since it shows soon whether they are quick.
    few_until: Option<Time>,
    /// Those launched that had no place when they were last looked at: few, where all that are open are many.
    looking: Vec<JobId>,
    /// How many have ended.
    ended: u32,
    /// How the first of them ended that did not finish.
    bad: Option<End>,
}

impl Progress {
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

    /// How many jobs of an array look for their first place. Those that look for another one do so anyway.
    fn seeking(&mut self, array: JobId) -> usize {
        let Some(progress) = self.arrays.get_mut(&array) else { return 0 };
        let mut looking = std::mem::take(&mut progress.looking);
        looking.retain(|&job| self.is_seeking(job));
        let seeking = looking.len();
        if let Some(progress) = self.arrays.get_mut(&array) {
            progress.looking = looking;
        }
        seeking
    }

    fn is_seeking(&self, job: JobId) -> bool {
        self.owned.get(&job).is_some_and(|owned| owned.phase == Phase::Seeking && owned.may_seek())
    }

    /// Has an array begin with a few of its jobs, if they could share places; says until when.
    fn begin_with_few(&mut self, array: JobId, now: Time) -> Option<Time> {
        let shares = self.recipe.has_trains() && may_share(self.owned.get(&array)?.envelope.job());
        let progress = self.arrays.get_mut(&array)?;
        if !shares || progress.few_until.is_some() || progress.last.is_some() {
            return None;
        }
        Some(*progress.few_until.insert(now + AT_FIRST))
    }

    /// Makes the next job of an array, if it is time for one.
    fn launch_next(&mut self, array: JobId, now: Time) -> Option<JobId> {
        let parent = self.owned.get(&array).filter(|parent| parent.after.is_empty())?;
        let progress = self.arrays.get_mut(&array)?;
        let indexes = parent.array()?;
        let few = progress.pace.is_unknown() && progress.few_until.is_some_and(|until| now < until);
        let most = if few { WINDOW_AT_FIRST } else { WINDOW };
        let window = indexes.at_once().map_or(most, NonZeroU32::get).min(most);
        if progress.open.len() - progress.riding >= window as usize {
            return None;
        }
        let index = indexes.next(progress.last)?;
        progress.last = Some(index);
        let job = Owned::of_array(parent, array, index, self.limit_default);
        let id = array.of_index(index);
        // After a restart it may be known already, with how often it was tried, or how it ended.
        match &self.owned.entry(id).or_insert_with(|| Box::new(job)).phase {
            Phase::Ended(end) => progress.note(*end),
            Phase::Seeking | Phase::Placed { .. } => {
                progress.open.insert(index, id);
                progress.looking.push(id);
            }
        }
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
        let most = if fresh && self.recipe.has_trains() { progress.pace.riders(left) } else { 0 };
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

    /// Finds those again that ride with a job: they come right after it.
    fn restore_train(&mut self, array: JobId, leader: JobId) {
        let Some(riders) =
            self.owned.get(&leader).and_then(|owned| owned.train.riders()).map(<[u32]>::to_vec)
        else {
            return;
        };
        let (Some(parent), Some(progress)) = (self.owned.get(&array), self.arrays.get_mut(&array)) else {
            return;
        };
        let mut made = Vec::new();
        for index in riders {
            let id = array.of_index(index);
            progress.last = progress.last.max(Some(index));
            match self.owned.get(&id).map(|known| &known.phase) {
                Some(Phase::Ended(end)) => {
                    progress.note(*end);
                    continue;
                }
                // It had got off.
                Some(Phase::Seeking | Phase::Placed { .. }) => progress.looking.push(id),
                None => {
                    made.push(Owned::riding(parent, array, index, leader, self.limit_default));
                    progress.riding += 1;
                }
            }
            progress.open.insert(index, id);
        }
        self.owned.extend(made.into_iter().map(|rider| (rider.id, Box::new(rider))));
    }

    /// Finds the jobs of all arrays again, those of held ones too: some may run.
    pub(super) fn restore_arrays(&mut self) {
        let open = self.owned.iter().filter(|(_, owned)| !matches!(owned.phase, Phase::Ended(_)));
        let arrays = open.filter_map(|(&job, owned)| owned.array().map(|_| job));
        let arrays: Vec<JobId> = arrays.collect();
        for array in arrays {
            self.arrays.insert(array, Progress::default());
            while let Some(job) = self.launch_next(array, Time::NEVER) {
                self.restore_train(array, job);
            }
        }
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
        while self.work.as_mut().is_some_and(|work| work.seeking(array) < SEEKING_MAX)
            && let Some(work) = &mut self.work
            && let Some(job) = work.launch_next(array, ctx.now)
        {
            if work.fill_train(array, job)
                && let Some(leader) = work.owned.get(&job)
            {
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
