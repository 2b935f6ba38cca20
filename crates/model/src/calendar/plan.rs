//! The reservations themselves: by start, by key, and holds by expiry.
//!
//! Persistent trees rather than `BTreeMap`s: a node with three reservations pays for four, not for the eleven
//! that a B-tree's first leaf has room for, and a copy of the whole plan is three pointers.

use std::hash::{Hash, Hasher};

use crate::amount::Amount;
use crate::calendar::reservation::{Key, Reservation, State};
use crate::calendar::tree::{Item, Iter, Node, Tree};
use crate::id::{Epoch, JobId};
use crate::time::Time;

/// Every reservation of a calendar, found by start, key or expiry.
#[derive(Clone, Debug)]
pub(super) struct Plan<A: Amount> {
    by_start: Tree<Reservation<A>>,
    starts: Tree<StartOf>,
    expiries: Tree<Expiry>,
    /// How many reservations count differently in the two views of use.
    apart: u32,
}

/// Where a key's reservation is among those by start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StartOf {
    key: Key,
    start: Time,
}

/// When a hold ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Expiry {
    until: Time,
    key: Key,
}

/// The least key there can be.
const FIRST: Key = Key { job: JobId([0; 16]), epoch: Epoch(0) };

/// What is known of the reservations of a subtree.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// When the first of them is over.
    first: Time,
    /// When the last soft one among them is over; zero without one.
    last_soft: Time,
}

impl<A: Amount> Item for Reservation<A> {
    type Key = (Time, Key);
    type Summary = Ends;

    fn key(&self) -> (Time, Key) {
        (self.interval.start(), self.key)
    }

    fn summary(items: &[Reservation<A>]) -> Ends {
        let none = Ends { first: Time::NEVER, last_soft: Time::ZERO };
        items.iter().fold(none, |all, item| Ends {
            first: all.first.min(item.last_end()),
            last_soft: all.last_soft.max(if item.state == State::Soft {
                item.interval.end()
            } else {
                Time::ZERO
            }),
        })
    }

    fn join(first: &Ends, then: &Ends) -> Ends {
        Ends { first: first.first.min(then.first), last_soft: first.last_soft.max(then.last_soft) }
    }
}

impl Item for StartOf {
    type Key = Key;
    type Summary = ();

    fn key(&self) -> Key {
        self.key
    }

    fn summary(_: &[StartOf]) {}

    fn join((): &(), (): &()) {}
}

impl Item for Expiry {
    type Key = (Time, Key);
    type Summary = ();

    fn key(&self) -> (Time, Key) {
        (self.until, self.key)
    }

    fn summary(_: &[Expiry]) {}

    fn join((): &(), (): &()) {}
}

impl<A: Amount> Default for Plan<A> {
    fn default() -> Plan<A> {
        Plan { by_start: Tree::default(), starts: Tree::default(), expiries: Tree::default(), apart: 0 }
    }
}

/// The indexes follow from the reservations.
impl<A: Amount> PartialEq for Plan<A> {
    fn eq(&self, other: &Plan<A>) -> bool {
        self.by_start == other.by_start
    }
}

impl<A: Amount> Eq for Plan<A> {}

impl<A: Amount> Hash for Plan<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.by_start.hash(state);
    }
}

impl<A: Amount> Plan<A> {
    pub(super) fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Whether any reservation counts differently in the two views of use.
    pub(super) fn has_views_apart(&self) -> bool {
        self.apart > 0
    }

    pub(super) fn get(&self, key: Key) -> Option<&Reservation<A>> {
        let start = self.starts.get(&key)?.start;
        self.by_start.get(&(start, key))
    }

    /// The reservations of a job, by epoch.
    pub(super) fn of_job(&self, job: JobId) -> impl Iterator<Item = &Reservation<A>> {
        // Lookups rather than an iterator, which has its path on the heap: there is hardly ever more than one.
        let mut next = Some(Epoch(0));
        std::iter::from_fn(move || {
            let epoch = next.take()?;
            let found = self.starts.first_from(&Key { job, epoch }).filter(|found| found.key.job == job)?;
            next = found.key.epoch.0.checked_add(1).map(Epoch);
            self.by_start.get(&(found.start, found.key))
        })
    }

    pub(super) fn iter(&self) -> Iter<'_, Reservation<A>> {
        self.by_start.iter()
    }

    /// The reservations that start at `time` or later, by start.
    pub(super) fn iter_from(&self, time: Time) -> Iter<'_, Reservation<A>> {
        self.by_start.iter_from(&(time, FIRST))
    }

    /// The first of those.
    pub(super) fn first_from(&self, time: Time) -> Option<&Reservation<A>> {
        self.by_start.first_from(&(time, FIRST))
    }

    /// Adds a reservation, or puts it in the place of the one with its key.
    pub(super) fn put(&mut self, reservation: Reservation<A>) {
        self.remove(reservation.key);
        let key = reservation.key;
        self.starts.insert(StartOf { key, start: reservation.interval.start() });
        if let State::Held { until } = reservation.state {
            self.expiries.insert(Expiry { until, key });
        }
        self.apart += u32::from(is_apart(&reservation));
        self.by_start.insert(reservation);
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Reservation<A>> {
        let start = self.starts.get(&key)?.start;
        let reservation = self.by_start.get(&(start, key))?.clone();
        self.starts.remove(&key);
        self.by_start.remove(&(start, key));
        if let State::Held { until } = reservation.state {
            self.expiries.remove(&(until, key));
        }
        self.apart -= u32::from(is_apart(&reservation));
        Some(reservation)
    }

    /// The hold that expires first, and when.
    pub(super) fn first_expiry(&self) -> Option<(Time, Key)> {
        self.expiries.first_from(&(Time::ZERO, FIRST)).map(|expiry| (expiry.until, expiry.key))
    }

    /// A reservation that is over by `time`.
    pub(super) fn any_over(&self, time: Time) -> Option<Key> {
        let mut node = self.by_start.root().filter(|root| root.summary().first <= time)?;
        loop {
            let below = [node.left(), node.right()].into_iter().flatten();
            match below.into_iter().find(|child| child.summary().first <= time) {
                Some(child) => node = child,
                None => return node.items().iter().find(|item| item.last_end() <= time).map(|item| item.key),
            }
        }
    }

    /// The last to start of the soft reservations that take place at `time` and pass a test.
    pub(super) fn last_soft_at(&self, time: Time, test: impl Fn(&Reservation<A>) -> bool) -> Option<Key> {
        last_soft_at(self.by_start.root(), time, &test)
    }
}

fn is_apart<A>(reservation: &Reservation<A>) -> bool {
    reservation.firm_interval() != Some(reservation.interval)
}

fn last_soft_at<A: Amount>(
    node: Option<&Node<Reservation<A>>>,
    time: Time,
    test: &impl Fn(&Reservation<A>) -> bool,
) -> Option<Key> {
    let node = node.filter(|node| node.summary().last_soft > time)?;
    if node.first().interval.start() <= time {
        if let Some(later) = last_soft_at(node.right(), time, test) {
            return Some(later);
        }
        let fits =
            |item: &&Reservation<A>| item.state == State::Soft && item.interval.contains(time) && test(item);
        if let Some(here) = node.items().iter().rev().find(fits) {
            return Some(here.key);
        }
    }
    last_soft_at(node.left(), time, test)
}

/// What a reservation takes on the heap, and what more a hold does; then what nodes of both take besides, `Arc`
/// headers included.
#[cfg(test)]
pub(super) fn bytes_per_reservation<A: Amount>() -> (usize, usize, usize, usize) {
    let header = 2 * size_of::<usize>();
    let reservation = size_of::<Reservation<A>>() + size_of::<StartOf>();
    let nodes = size_of::<Node<Reservation<A>>>() + size_of::<Node<StartOf>>() + 2 * header;
    (reservation, size_of::<Expiry>(), nodes, size_of::<Node<Expiry>>() + header)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use crate::calendar::reservation::Interval;

    use super::*;

    fn reservation((number, start, span, kind): (u64, u64, u64, u8)) -> Reservation<u32> {
        let interval = Interval::new(Time::from_secs(start), Time::from_secs(start + span)).unwrap();
        let state = match kind {
            0 => State::Held { until: Time::from_secs(span) },
            1 => State::Firm,
            2 => State::Running { hard_end: Time::from_secs(start + 2 * span) },
            _ => State::Soft,
        };
        let key = Key { job: JobId::from_number(number), epoch: Epoch(0) };
        Reservation { key, interval, amount: number as u32, state }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 64,
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn plan_of_many_finds_what_a_look_at_each_finds(
            put in prop::collection::vec((0u64..400, 0u64..300, 1u64..40, 0u8..6), 0..500),
            time in 0u64..350,
            divisor in 1u32..5,
        ) {
            let mut plan = Plan::default();
            let mut each = std::collections::BTreeMap::new();
            for reservation in put.into_iter().map(reservation) {
                each.insert(reservation.key, reservation.clone());
                plan.put(reservation);
            }
            let time = Time::from_secs(time);
            let test = |one: &Reservation<u32>| one.amount.is_multiple_of(divisor);

            let soft = each.values().filter(|one| one.state == State::Soft && one.interval.contains(time));
            let last = soft.filter(|one| test(one)).max_by_key(|one| (one.interval.start(), one.key));
            prop_assert_eq!(plan.last_soft_at(time, test), last.map(|one| one.key));

            let over = |one: &Reservation<u32>| one.last_end() <= time;
            let found = plan.any_over(time);
            prop_assert_eq!(found.is_some(), each.values().any(over));
            prop_assert!(found.is_none_or(|key| over(&each[&key])));

            let expiries = each.values().filter_map(|one| match one.state {
                State::Held { until } => Some((until, one.key)),
                _ => None,
            });
            prop_assert_eq!(plan.first_expiry(), expiries.min());
            let from = each.values().filter(|one| one.interval.start() >= time);
            let first = from.min_by_key(|one| (one.interval.start(), one.key));
            prop_assert_eq!(plan.first_from(time), first);
            prop_assert_eq!(plan.len(), each.len());
        }
    }
}
