//! I3, I4, I13, I16: every job that was accepted is known to its owner, ends once and for all, and does end; and
//! at any time as many were accepted as are open or have ended.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{JobId, NodeId, Time};
use shoal_protocols::node::{End, Event, Key, Node, Owned, Phase, Record};

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Keeps the books.
#[derive(Default)]
pub struct Accounted {
    books: BTreeMap<NodeId, Book>,
    /// In whose books a job is.
    owners: BTreeMap<JobId, BTreeSet<NodeId>>,
    /// Those that have ended, whoever had them last.
    over: BTreeSet<JobId>,
}

/// What has been seen of the jobs of an owner.
#[derive(Debug, Default)]
struct Book {
    /// Those that are not forgotten.
    accounts: BTreeMap<JobId, Account>,
    /// Those that are: they have all ended.
    forgotten: u64,
}

/// What has been seen of a job.
#[derive(Debug, Default)]
struct Account {
    accepted: bool,
    /// As it is on the owner's disk.
    end: Option<End>,
    /// Whether the end has been told.
    told: bool,
    /// Since when it has been without a place and without a reason.
    mute_since: Option<Time>,
}

/// Where the jobs of an owner stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    open: u64,
    ended: u64,
}

impl Count {
    fn of(ends: impl Iterator<Item = bool>) -> Count {
        ends.fold(Count::default(), |Count { open, ended }, end| match end {
            false => Count { open: open + 1, ended },
            true => Count { open, ended: ended + 1 },
        })
    }
}

impl Check for Accounted {
    fn name(&self) -> &'static str {
        "accounted"
    }

    fn see(&mut self, sight: &Sight<Node>, _known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            // About to be handed over to it, and not its own yet.
            Saw::Save(Record::Owned(owned)) if owned.from.is_some() => {}
            Saw::Save(Record::Owned(owned)) => {
                let job = owned.id();
                self.owners.entry(job).or_default().insert(node);
                let account = self.books.entry(node).or_default().accounts.entry(job).or_default();
                if account.end.is_some() && account.end != owned.end {
                    let what = format!("ended as {:?}, and then {:?}", account.end, owned.end);
                    return Err(Broken::new(at, what).on(node).of(job));
                }
                account.end = owned.end;
                if owned.over().is_some() {
                    self.over.insert(job);
                }
            }
            Saw::Event(Event::Accepted(job)) => {
                let Some(account) = self.account(node, *job) else {
                    return Err(Broken::new(at, "accepted, and not on disk").on(node).of(*job));
                };
                account.accepted = true;
            }
            Saw::Event(Event::Ended(job, end)) => {
                let account = self.account(node, *job);
                let durable = account.as_ref().and_then(|account| account.end);
                if durable != Some(*end) {
                    let what = format!("ended as {end:?} in words, as {durable:?} on disk");
                    return Err(Broken::new(at, what).on(node).of(*job));
                }
                if account.is_some_and(|account| std::mem::replace(&mut account.told, true)) {
                    return Err(Broken::new(at, "ended twice").on(node).of(*job));
                }
            }
            Saw::Event(Event::Placed(job, _)) => {
                if let Some(account) = self.account(node, *job) {
                    account.mute_since = None;
                }
            }
            // Nobody can say why while the owner is down.
            Saw::Crash => {
                let accounts =
                    self.books.get_mut(&node).into_iter().flat_map(|book| book.accounts.values_mut());
                accounts.for_each(|account| account.mute_since = None);
            }
            Saw::DiskLost => {
                self.books.remove(&node);
            }
            Saw::Event(_)
            | Saw::Act(_)
            | Saw::Done(_)
            | Saw::Save(_)
            | Saw::Erase(_)
            | Saw::Send(..)
            | Saw::Restart => {}
        }
        Ok(())
    }

    fn forget(&mut self, job: JobId) {
        self.over.remove(&job);
        for owner in self.owners.remove(&job).unwrap_or_default() {
            // Whoever lost its disk has a new book.
            if let Some(book) = self.books.get_mut(&owner) {
                book.forgotten += u64::from(book.accounts.remove(&job).is_some());
            }
        }
    }

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        for (&id, disk) in &view.disks {
            let book = self.books.entry(id).or_default();
            book.compare(id, disk, view)?;
            if let Some(node) = view.up.get(&id) {
                book.ask(id, node, view)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, view: &View<'_>) -> Result<(), Broken> {
        let in_vain = waiting_in_vain(view);
        for (&id, book) in &self.books {
            let open = book.accounts.iter().find(|(job, account)| {
                let exempt = view.known.exempt.is_exempt(**job) || in_vain.contains(job);
                let handed = matches!(account.end, Some(End::HandedOver(_))) && !self.over.contains(job);
                (account.end.is_none() && account.accepted || handed) && !exempt
            });
            let Some((&job, _)) = open else { continue };
            let owned = view.up.get(&id).and_then(|node| node.owned().find(|(other, _)| *other == job));
            let state = owned.map(|(_, owned)| (owned.phase().clone(), owned.why()));
            let what = format!("has not ended, though all is well again: {state:?}");
            return Err(Broken::new(view.now, what).on(id).of(job));
        }
        Ok(())
    }

    fn ends_early(&self) -> bool {
        false
    }
}

/// The jobs that wait for jobs that nobody sees to any more, or for others that do.
fn waiting_in_vain(view: &View<'_>) -> BTreeSet<JobId> {
    let all = view.up.values().flat_map(|node| node.owned());
    let all = all.filter(|(_, owned)| !matches!(owned.phase(), Phase::Ended(_)));
    let waiting: Vec<(JobId, Vec<JobId>)> =
        all.map(|(job, owned)| (job, owned.waits_for().map(|(other, _)| other).collect())).collect();
    let mut in_vain = BTreeSet::new();
    loop {
        let vain = |other: &JobId| view.known.exempt.is_exempt(*other) || in_vain.contains(other);
        let more = waiting.iter().filter(|(job, others)| !in_vain.contains(job) && others.iter().any(vain));
        let more: Vec<JobId> = more.map(|(job, _)| *job).collect();
        if more.is_empty() {
            return in_vain;
        }
        in_vain.extend(more);
    }
}

impl Accounted {
    fn account(&mut self, owner: NodeId, job: JobId) -> Option<&mut Account> {
        self.books.get_mut(&owner)?.accounts.get_mut(&job)
    }
}

impl Book {
    /// I16: who counts what is on the disk, finds what was seen to be saved.
    fn compare(&self, id: NodeId, disk: &BTreeMap<Key, Record>, view: &View<'_>) -> Result<(), Broken> {
        let on_disk = Count::of(disk.values().filter_map(|record| match record {
            Record::Owned(owned) => owned.from.is_none().then_some(owned.end.is_some()),
            Record::Commit(_) | Record::Exits(..) | Record::Task(..) | Record::Aria(_) => None,
        }));
        let seen = Count::of(self.accounts.values().map(|account| account.end.is_some()));
        let seen = Count { ended: seen.ended + self.forgotten, ..seen };
        if on_disk != seen {
            let what = format!("{on_disk:?} jobs are on disk, and {seen:?} were seen to be saved");
            return Err(Broken::new(view.now, what).on(id));
        }
        Ok(())
    }

    /// What a node that is up says of each job is what its disk says; it may be ahead of its disk, never behind.
    fn ask(&mut self, id: NodeId, node: &Node, view: &View<'_>) -> Result<(), Broken> {
        let owned: BTreeMap<JobId, &Owned> = node.owned().filter(|(_, owned)| !owned.is_pending()).collect();
        let told = Count::of(owned.values().map(|owned| matches!(owned.phase(), Phase::Ended(_))));
        let known = self.accounts.len() as u64 + self.forgotten;
        if told.open + told.ended < known {
            let what = format!("{known} jobs are on disk, and the node knows of {told:?}");
            let forgotten = self.accounts.keys().find(|job| !owned.contains_key(job));
            let broken = Broken::new(view.now, format!("the owner has forgotten it: {what}")).on(id);
            return Err(forgotten.map_or(broken.clone(), |job| broken.of(*job)));
        }
        for (&job, account) in &mut self.accounts {
            let broken = |what: String| Err(Broken::new(view.now, what).on(id).of(job));
            let Some(owned) = owned.get(&job) else {
                return broken("the owner has forgotten it".to_owned());
            };
            match (owned.phase(), account.end) {
                (Phase::Ended(end), Some(durable)) if *end != durable => {
                    return broken(format!("ended as {end:?}, as {durable:?} on disk"));
                }
                (Phase::Seeking | Phase::Placed { .. }, Some(durable)) => {
                    return broken(format!("ended as {durable:?}, and yet goes on"));
                }
                (Phase::Ended(_) | Phase::Placed { .. } | Phase::Seeking, _) => {}
            }
            let mute = *owned.phase() == Phase::Seeking && owned.why().is_none();
            account.mute_since = mute.then(|| account.mute_since.unwrap_or(view.now));
            if account.mute_since.is_some_and(|since| view.now.since(since) > view.known.bounds.reason) {
                return broken("waits for a place, and does not say why".to_owned());
            }
        }
        Ok(())
    }
}
