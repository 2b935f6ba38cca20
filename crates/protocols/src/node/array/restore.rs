//! The jobs of arrays, found again after a restart: by their own records, by their places, and by who leads them.
//!
//! A job of an array may have left a record of its own (it led others, got off, was tried again, has ended), only a place,
//! or nothing: then it rode with one that has a record, or was looking for a place. All up to the last that has left
//! anything had been launched.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{Epoch, JobId};

use super::Progress;
use crate::node::Work;
use crate::node::owned::{Owned, Phase};
use crate::node::train::Train;

impl Work {
    /// Finds the jobs of all arrays again, those of held ones too: some may run.
    pub(in crate::node) fn restore_arrays(&mut self) {
        let open = self.owned.iter().filter(|(_, owned)| !matches!(owned.phase, Phase::Ended(_)));
        let arrays: Vec<JobId> =
            open.filter(|(_, owned)| owned.array().is_some()).map(|(&job, _)| job).collect();
        if arrays.is_empty() {
            return;
        }
        let recorded = self.last_recorded();
        let mut placed = self.placed_without_record();
        for array in arrays {
            let last = self.last_placed(array, &mut placed).max(recorded.get(&array).copied());
            self.restore_array(array, last);
        }
    }

    /// Of each array the last index that is on disk, of its own or as one that rides.
    fn last_recorded(&self) -> BTreeMap<JobId, u32> {
        let mut last: BTreeMap<JobId, u32> = BTreeMap::new();
        for owned in self.owned.values() {
            let Some((array, index)) = owned.of else { continue };
            let rider = owned.train.riders().and_then(<[u32]>::last).copied().unwrap_or(index);
            let last = last.entry(array).or_default();
            *last = rider.max(index).max(*last);
        }
        last
    }

    /// Those that have places and nothing else; of which array they are, and for which index, has yet to be found out.
    fn placed_without_record(&self) -> BTreeSet<JobId> {
        let unknown = |job: &JobId| !self.owned.contains_key(job);
        match self.recipe.aria() {
            Some(aria) => aria.tenures().filter(unknown).collect(),
            None => self.commit.jobs().filter(unknown).collect(),
        }
    }

    /// The last index of an array whose job is among those that have a place only; takes all of them out.
    fn last_placed(&self, array: JobId, placed: &mut BTreeSet<JobId>) -> Option<u32> {
        let mut last = None;
        let indexes = self.owned.get(&array)?.array()?.indexes();
        for index in indexes {
            if placed.is_empty() {
                break;
            }
            if placed.remove(&array.of_index(index)) {
                last = Some(index);
            }
        }
        last
    }

    /// Launches all up to an index anew, each as it was.
    fn restore_array(&mut self, array: JobId, last: Option<u32>) {
        let Some(parent) = self.owned.get(&array).cloned() else { return };
        let Some(indexes) = parent.array() else { return };
        let mut progress = Progress::default();
        let mut made = Vec::new();
        // Who is yet to come and rides, as whoever leads it says; and how placements of that one are numbered.
        let mut claimed: BTreeMap<u32, (Epoch, JobId)> = BTreeMap::new();
        while let Some(index) = indexes.next(progress.last).filter(|&index| Some(index) <= last) {
            progress.last = Some(index);
            let id = array.of_index(index);
            let claim = claimed.remove(&index);
            let known = self.owned.get_mut(&id);
            if let Some(Phase::Ended(end)) = known.as_ref().map(|known| &known.phase) {
                progress.note(*end);
                continue;
            }
            progress.open.insert(index, id);
            // Who got off is numbered on from that train.
            let numbered = known.as_ref().map_or(Epoch(0), |known| known.numbered);
            let leader = claim.filter(|&(of_train, _)| numbered <= of_train).map(|(_, leader)| leader);
            match leader {
                Some(_) => progress.riding += 1,
                None => progress.looking.push(id),
            }
            match (known, leader) {
                (Some(known), Some(leader)) => known.train = Train::Rides(leader),
                (Some(known), None) => {
                    for &rider in known.train.riders().unwrap_or_default() {
                        let claim = claimed.entry(rider).or_insert((numbered, id));
                        *claim = (*claim).max((numbered, id));
                    }
                }
                (None, Some(leader)) => {
                    made.push(Owned::riding(&parent, array, index, leader, self.limit_default));
                }
                (None, None) => made.push(Owned::of_array(&parent, array, index, self.limit_default)),
            }
        }
        self.owned.extend(made.into_iter().map(|job| (job.id, Box::new(job))));
        self.arrays.insert(array, progress);
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::job::Array;
    use shoal_model::{Envelope, Job, Machine, NodeId, Nonce, Resources, Span};

    use super::*;
    use crate::commit::two_phase::{self, Tenure};
    use crate::node::config;
    use crate::node::message::{End, Record};
    use crate::shared::Shared;

    fn array(indexes: &str) -> Owned {
        let indexes: Array = indexes.parse().expect("indexes");
        let job = Job { array: Some(Box::new(indexes)), ..Job::command(["true"]) };
        Owned::new(
            Shared::new(Envelope::new(job, Nonce([1; 16])).expect("it makes sense")),
            Span::from_secs(1),
        )
    }

    fn one(parent: &Owned, index: u32, change: impl FnOnce(&mut Owned)) -> Record {
        let mut owned = Owned::of_array(parent, parent.id, index, Span::from_secs(1));
        change(&mut owned);
        owned.record()
    }

    fn place(parent: &Owned, index: u32, last: u32) -> Record {
        let job = parent.id.of_index(index);
        let last = Epoch(last);
        Record::Commit(two_phase::Record::Tenure(Tenure {
            job,
            last,
            asked: Vec::new(),
            placed: None,
            releasing: vec![(NodeId(1), last)],
            over: false,
        }))
    }

    fn work(records: Vec<Record>) -> Work {
        let config = config::Work {
            machine: Machine::with_capacity(Resources::cores(1)),
            recipe: config::Recipe::Sample(Default::default()),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_secs(1),
            eager: false,
            gate: Default::default(),
        };
        Work::restore(&config, NodeId(1), records.into_iter())
    }

    #[test]
    fn all_up_to_the_last_that_left_anything_are_found_however_many_wait_before_them() {
        let parent = array("1-5000");
        let off = |owned: &mut Owned| owned.numbered = Epoch(1);
        let mut records = vec![parent.record()];
        records.extend((2..=600).map(|index| one(&parent, index, off)));
        records.push(place(&parent, 601, 1));
        records.push(one(&parent, 602, |owned| owned.train = Train::Leads(vec![603, 604, 606])));
        records.push(place(&parent, 602, 1));
        records.push(one(&parent, 604, |owned| owned.phase = Phase::Ended(End::Finished)));
        records.push(place(&parent, 610, 3));
        let work = work(records);
        let progress = &work.arrays[&parent.id];
        assert_eq!(progress.last, Some(610), "what comes later may be launched as if for the first time");
        assert_eq!((progress.open.len(), progress.ended, progress.riding), (609, 1, 2));
        let leader = |index| work.owned[&parent.id.of_index(index)].train.leader();
        assert_eq!(
            (leader(603), leader(606)),
            (Some(parent.id.of_index(602)), Some(parent.id.of_index(602)))
        );
        assert_eq!((leader(601), leader(605), leader(610)), (None, None, None));
        assert_eq!(progress.looking.len(), 607);
    }

    #[test]
    fn who_got_off_one_train_and_rides_in_another_is_found_in_that_one() {
        let parent = array("1-9");
        let leads = |riders: &[u32], numbered| {
            let riders = riders.to_vec();
            move |owned: &mut Owned| (owned.train, owned.numbered) = (Train::Leads(riders), Epoch(numbered))
        };
        let off = |owned: &mut Owned| owned.numbered = Epoch(2);
        let records = vec![
            parent.record(),
            one(&parent, 1, leads(&[2, 3, 4, 5], 1)),
            one(&parent, 3, leads(&[4], 2)),
            one(&parent, 4, off),
            one(&parent, 5, off),
        ];
        let work = work(records);
        let leader = |index: u32| work.owned[&parent.id.of_index(index)].train.leader();
        let [one, three] = [1, 3].map(|index| parent.id.of_index(index));
        assert_eq!([2, 3, 4, 5].map(leader), [Some(one), None, Some(three), None]);
        assert_eq!(work.arrays[&parent.id].open.len(), 5);
    }

    #[test]
    fn array_of_which_nothing_was_launched_begins_anew() {
        let parent = array("3-9:2");
        let work = work(vec![parent.record()]);
        assert_eq!(work.arrays[&parent.id], Progress::default());
    }
}
