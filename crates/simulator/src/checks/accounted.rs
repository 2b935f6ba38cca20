//! I3, I4, I13, I16: every job that was accepted is known to its owner, ends once and for all, and does end.

use std::collections::BTreeMap;

use shoal_model::{JobId, NodeId, Time};
use shoal_protocols::node::{End, Event, Node, Phase, Record};

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Keeps the books.
#[derive(Default)]
pub struct Accounted {
    accounts: BTreeMap<JobId, Account>,
}

/// What has been seen of a job.
#[derive(Debug)]
struct Account {
    owner: NodeId,
    accepted: bool,
    /// As it is on the owner's disk.
    end: Option<End>,
    /// Whether the end has been told.
    told: bool,
    /// Since when it has been without a place and without a reason.
    mute_since: Option<Time>,
}

/// Where the jobs stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    pending: usize,
    running: usize,
    ended: usize,
}

impl Check for Accounted {
    fn name(&self) -> &'static str {
        "accounted"
    }

    fn see(&mut self, sight: &Sight<Node>, _known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Save(Record::Owned(owned)) => {
                let job = owned.envelope.id();
                let account = self.accounts.entry(job).or_insert(Account {
                    owner: node,
                    accepted: false,
                    end: None,
                    told: false,
                    mute_since: None,
                });
                if account.end.is_some() && account.end != owned.end {
                    let what = format!("ended as {:?}, and then {:?}", account.end, owned.end);
                    return Err(Broken::new(at, what).on(node).of(job));
                }
                account.end = owned.end;
            }
            Saw::Event(Event::Accepted(job)) => {
                let Some(account) = self.accounts.get_mut(job).filter(|account| account.owner == node) else {
                    return Err(Broken::new(at, "accepted, and not on disk").on(node).of(*job));
                };
                account.accepted = true;
            }
            Saw::Event(Event::Ended(job, end)) => {
                let account = self.accounts.get_mut(job);
                let durable = account.as_ref().and_then(|account| account.end);
                if durable != Some(*end) {
                    let what = format!("ended as {end:?} in words, as {durable:?} on disk");
                    return Err(Broken::new(at, what).on(node).of(*job));
                }
                if account.is_some_and(|account| std::mem::replace(&mut account.told, true)) {
                    return Err(Broken::new(at, "ended twice").on(node).of(*job));
                }
            }
            Saw::DiskLost => self.accounts.retain(|_, account| account.owner != node),
            Saw::Event(_)
            | Saw::Act(_)
            | Saw::Done(_)
            | Saw::Save(_)
            | Saw::Erase(_)
            | Saw::Send(..)
            | Saw::Crash
            | Saw::Restart => {}
        }
        Ok(())
    }

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        let owned: BTreeMap<NodeId, BTreeMap<JobId, &shoal_protocols::node::Owned>> =
            view.up.iter().map(|(&id, node)| (id, node.owned().collect())).collect();
        let mut tally = Tally::default();
        for (&job, account) in &mut self.accounts {
            // While the owner is down, its disk speaks for it.
            let Some(owned) = owned.get(&account.owner) else {
                match account.end {
                    Some(_) => tally.ended += 1,
                    None => tally.pending += 1,
                }
                continue;
            };
            let broken = |what: String| Err(Broken::new(view.now, what).on(account.owner).of(job));
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
                (Phase::Ended(_), _) => tally.ended += 1,
                (Phase::Placed { .. }, None) => tally.running += 1,
                (Phase::Seeking, None) => tally.pending += 1,
            }
            let mute = *owned.phase() == Phase::Seeking && owned.why().is_none();
            account.mute_since = mute.then(|| account.mute_since.unwrap_or(view.now));
            if account.mute_since.is_some_and(|since| view.now.since(since) > view.known.bounds.reason) {
                return broken("waits for a place, and does not say why".to_owned());
            }
        }
        let Tally { pending, running, ended } = tally;
        if pending + running + ended != self.accounts.len() {
            let what = format!("{} jobs are on disks: {tally:?}", self.accounts.len());
            return Err(Broken::new(view.now, what));
        }
        Ok(())
    }

    fn end(&mut self, view: &View<'_>) -> Result<(), Broken> {
        self.look(view)?;
        let open = self.accounts.iter().find(|(job, account)| {
            account.end.is_none() && account.accepted && !view.known.exempt.is_exempt(**job)
        });
        let Some((&job, account)) = open else { return Ok(()) };
        let owned =
            view.up.get(&account.owner).and_then(|node| node.owned().find(|(other, _)| *other == job));
        let state = owned.map(|(_, owned)| (owned.phase().clone(), owned.why()));
        let what = format!("has not ended, though all is well again: {state:?}");
        Err(Broken::new(view.now, what).on(account.owner).of(job))
    }
}
