//! Use over time: how much is taken at every instant, and where that first passes or drops below a bound.
//!
//! Kept as the *difference* at each instant where use changes, so a reservation is two point updates, however much
//! lies between. Each subtree knows its sum and the largest and smallest prefix sum, component by component.
//!
//! Finding the first instant where use does not fit is O(log n) (see [`Finger`]): one component too large is enough,
//! and the largest prefix tells exactly. Finding the first where it fits is O(log n) for scalars; for vectors the
//! smallest prefix, taken component by component, may be attained by no instant: then it only prunes, and the search
//! may look at every change of one busy stretch.
//!
//! A change takes its time and its amount on the heap: 16 bytes for `u32`.

use crate::amount::Amount;
use crate::calendar::finger::Finger;
use crate::calendar::reservation::Interval;
#[cfg(test)]
use crate::calendar::tree::Node;
use crate::calendar::tree::{Item, Iter, Tree};
use crate::time::Time;

/// How much is used at every instant; nothing before the first change and after the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Profile<A: Amount> {
    changes: Tree<Change<A>>,
}

/// By how much use differs from the instant before; never by nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Change<A> {
    pub(super) time: Time,
    pub(super) difference: A,
}

/// What is known of the changes of a subtree, relative to the use before it.
#[derive(Clone, Debug)]
pub(super) struct Prefixes<A> {
    pub(super) sum: A,
    pub(super) most: A,
    pub(super) least: A,
}

impl<A: Amount> Item for Change<A> {
    type Key = Time;
    type Summary = Prefixes<A>;

    fn key(&self) -> Time {
        self.time
    }

    fn summary(items: &[Change<A>]) -> Prefixes<A> {
        let first = &items[0].difference;
        let mut all = Prefixes { sum: first.clone(), most: first.clone(), least: first.clone() };
        for item in &items[1..] {
            all.sum = all.sum.plus(&item.difference);
            all.most = all.most.most(&all.sum);
            all.least = all.least.least(&all.sum);
        }
        all
    }

    fn join(first: &Prefixes<A>, then: &Prefixes<A>) -> Prefixes<A> {
        Prefixes {
            sum: first.sum.plus(&then.sum),
            most: first.most.most(&first.sum.plus(&then.most)),
            least: first.least.least(&first.sum.plus(&then.least)),
        }
    }
}

impl<A: Amount> Default for Profile<A> {
    fn default() -> Profile<A> {
        Profile { changes: Tree::default() }
    }
}

impl<A: Amount> Profile<A> {
    /// The profile that takes on each value at its time; values rise in time and begin from nothing.
    pub(super) fn from_steps(steps: impl Iterator<Item = (Time, A)>) -> Profile<A> {
        let mut before = A::default();
        let changes = steps.filter_map(|(time, used)| {
            let difference = used.minus(&before);
            before = used;
            (difference != A::default()).then_some(Change { time, difference })
        });
        Profile { changes: Tree::from_sorted(changes.collect()) }
    }

    /// Each instant where use changes, with the use from there on.
    pub(super) fn steps(&self) -> Steps<'_, A> {
        Steps { changes: self.changes.iter(), used: A::default() }
    }

    /// Takes `amount` during `interval`.
    pub(super) fn take(&mut self, interval: Interval, amount: &A) {
        self.change(interval.start(), |difference| difference.plus(amount));
        self.change(interval.end(), |difference| difference.minus(amount));
    }

    /// Gives `amount` back during `interval`.
    pub(super) fn give(&mut self, interval: Interval, amount: &A) {
        self.change(interval.start(), |difference| difference.minus(amount));
        self.change(interval.end(), |difference| difference.plus(amount));
    }

    fn change(&mut self, time: Time, change: impl FnOnce(&A) -> A) {
        self.changes.alter(&time, |there| {
            let difference = change(there.map_or(&A::default(), |there| &there.difference));
            (difference != A::default()).then_some(Change { time, difference })
        });
    }

    /// What is used at an instant.
    pub(super) fn used_at(&self, time: Time) -> A {
        self.finger().used_at(time)
    }

    /// A finger before all changes.
    pub(super) fn finger(&self) -> Finger<'_, A> {
        Finger::new(self.changes.root())
    }
}

/// The steps of a profile: each instant where use changes, with the use from there on.
#[derive(Clone, Debug)]
pub struct Steps<'a, A: Amount> {
    changes: Iter<'a, Change<A>>,
    used: A,
}

impl<A: Amount> Iterator for Steps<'_, A> {
    type Item = (Time, A);

    fn next(&mut self) -> Option<(Time, A)> {
        let change = self.changes.next()?;
        self.used = self.used.plus(&change.difference);
        Some((change.time, self.used.clone()))
    }
}

/// What a change of use takes on the heap, and what a node of them takes besides, `Arc` header included.
#[cfg(test)]
pub(super) fn bytes_per_change<A: Amount>() -> (usize, usize) {
    (size_of::<Change<A>>(), 2 * size_of::<usize>() + size_of::<Node<Change<A>>>())
}
