//! Conservative backfilling (Mu'alem and Feitelson 2001): a later job may start first if that delays nobody before it.
//!
//! On arrival a job gets a reservation for its limit at the earliest hole among all reservations and running jobs.
//! It starts when its reservation does. When a job ends before its limit, or one that waits is withdrawn, the plan is
//! *compressed*: once through the queue in the order of arrival, each reservation moves to the earliest place that
//! it finds, its own included, with all others where they are by then. So no reservation ever moves later; one may
//! stay behind a place that a later job leaves in the same pass, up to the next pass or its planned start, whichever
//! comes first. A job that ends exactly at its limit leaves the plan as it is.
//!
//! A job that outlives its limit breaks the plan: it is counted on for [`OVERSTAY`] more, again and again, and every
//! reservation is made anew in the order of arrival. Only then do reservations move later.
//!
//! With *advance reservation* a job that names its begin is reserved from there on, never earlier, and comes first when
//! the plan is made anew.

use shoal_model::{Amount, Span, Time};

use super::Task;
use super::profile::Profile;
use super::running::Running;

/// How much longer a job is thought to run that has outlived its limit.
const OVERSTAY: Span = Span::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Conservative<K, A> {
    capacity: A,
    /// Whether jobs that name their begin are reserved from there on.
    in_advance: bool,
    pub(super) running: Running<K, A>,
    reserved: Vec<Reserved<K, A>>,
    /// What neither running jobs nor reservations take.
    profile: Profile<A>,
    /// The earliest start of a reservation.
    next: Time,
    /// Whether room was given back since the last compression.
    loose: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reserved<K, A> {
    task: Task<K, A>,
    start: Time,
}

impl<K, A> Reserved<K, A> {
    fn end(&self) -> Time {
        self.start + self.task.limit
    }
}

impl<K: Copy + Ord, A: Amount> Conservative<K, A> {
    pub(super) fn new(capacity: A, in_advance: bool) -> Conservative<K, A> {
        Conservative {
            in_advance,
            running: Running::new(capacity.clone()),
            reserved: Vec::new(),
            profile: Profile::new(capacity.clone()),
            next: Time::NEVER,
            loose: false,
            capacity,
        }
    }

    pub(super) fn arrive(&mut self, now: Time, task: Task<K, A>) {
        self.settle(now);
        self.reserve(now, task);
    }

    pub(super) fn finish(&mut self, now: Time, id: K) -> bool {
        let Some((end, amount)) = self.running.finish(id) else { return false };
        if now < end {
            self.profile.give(now, end, &amount);
            self.loose = true;
        }
        true
    }

    pub(super) fn withdraw(&mut self, id: K) -> bool {
        let Some(place) = self.reserved.iter().position(|reserved| reserved.task.id == id) else {
            return false;
        };
        let reserved = self.reserved.remove(place);
        self.profile.give(reserved.start, reserved.end(), &reserved.task.amount);
        self.next = self.first_start();
        self.loose = true;
        true
    }

    pub(super) fn start(&mut self, now: Time, started: &mut Vec<K>) {
        self.settle(now);
        if now < self.next {
            return;
        }
        let running = &mut self.running;
        self.reserved.retain(|reserved| {
            let waits = now < reserved.start;
            if !waits {
                let Task { id, amount, .. } = &reserved.task;
                started.push(*id);
                running.start(*id, amount.clone(), reserved.end());
            }
            waits
        });
        self.next = self.first_start();
    }

    pub(super) fn wake(&self) -> Option<Time> {
        (self.next < Time::NEVER).then_some(self.next)
    }

    pub(super) fn planned_start(&self, id: K) -> Option<Time> {
        self.reserved.iter().find(|reserved| reserved.task.id == id).map(|reserved| reserved.start)
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &Task<K, A>> {
        self.reserved.iter().map(|reserved| &reserved.task)
    }

    /// Brings the plan up to what has happened.
    fn settle(&mut self, now: Time) {
        self.profile.forget(now);
        // A reservation that missed its start did so because of a job that overstayed and has ended since.
        if self.running.overstays(now) || self.next < now {
            self.plan_anew(now);
        } else if self.loose {
            self.compress(now);
        }
        self.loose = false;
    }

    fn compress(&mut self, now: Time) {
        for reserved in &mut self.reserved {
            let Task { limit, amount, wish, .. } = &reserved.task;
            let from = if self.in_advance { wish.begin.unwrap_or(now).max(now) } else { now };
            if let Some(start) = self.profile.earliest(from, *limit, amount, reserved.start) {
                self.profile.give(reserved.start, reserved.end(), amount);
                self.profile.take(start, start + *limit, amount);
                reserved.start = start;
                self.next = self.next.min(start);
            }
        }
    }

    fn plan_anew(&mut self, now: Time) {
        self.running.extend_overstaying(now, now + OVERSTAY);
        self.profile = Profile::new(self.capacity.clone());
        for (end, amount) in self.running.by_end() {
            self.profile.take(now, end, amount);
        }
        self.profile.forget(now);
        self.next = Time::NEVER;
        let mut reserved = std::mem::take(&mut self.reserved);
        if self.in_advance {
            // Stable: otherwise by arrival.
            reserved.sort_by_key(|reserved| reserved.task.wish.begin.is_none());
        }
        for reserved in reserved {
            self.reserve(now, reserved.task);
        }
    }

    fn reserve(&mut self, now: Time, task: Task<K, A>) {
        // What no end of time leaves room for waits without a start, until something ends early.
        let from = if self.in_advance { task.wish.begin.unwrap_or(now).max(now) } else { now };
        let start = self.profile.earliest(from, task.limit, &task.amount, Time::NEVER).unwrap_or(Time::NEVER);
        let reserved = Reserved { task, start };
        self.profile.take(start, reserved.end(), &reserved.task.amount);
        self.next = self.next.min(start);
        self.reserved.push(reserved);
    }

    fn first_start(&self) -> Time {
        self.reserved.iter().map(|reserved| reserved.start).min().unwrap_or(Time::NEVER)
    }
}
