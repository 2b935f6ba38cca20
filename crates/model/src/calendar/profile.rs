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
//! A change takes 64 bytes on the heap for `u32` (Arc header included), 48 + 4 amounts in general.

use crate::amount::Amount;
use crate::calendar::finger::Finger;
use crate::calendar::reservation::Interval;
use crate::calendar::tree::{Item, Iter, Node, Tree};
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

    fn summary(left: Option<&Prefixes<A>>, item: &Change<A>, right: Option<&Prefixes<A>>) -> Prefixes<A> {
        let (mut sum, mut most, mut least) = match left {
            Some(left) => {
                let here = left.sum.plus(&item.difference);
                (here.clone(), left.most.most(&here), left.least.least(&here))
            }
            None => (item.difference.clone(), item.difference.clone(), item.difference.clone()),
        };
        if let Some(right) = right {
            most = most.most(&sum.plus(&right.most));
            least = least.least(&sum.plus(&right.least));
            sum = sum.plus(&right.sum);
        }
        Prefixes { sum, most, least }
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
        let mut used = A::default();
        let mut at = self.changes.root();
        while let Some(node) = at {
            at = if node.item().time <= time {
                used = through(&used, node);
                node.right()
            } else {
                node.left()
            };
        }
        used
    }

    /// A finger before all changes.
    pub(super) fn finger(&self) -> Finger<'_, A> {
        Finger::new(self.changes.root())
    }
}

/// The use after a node's own change, `before` being the use before its subtree.
fn through<A: Amount>(before: &A, node: &Node<Change<A>>) -> A {
    let left = node.left().map_or_else(|| before.clone(), |left| before.plus(&left.summary().sum));
    left.plus(&node.item().difference)
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

/// What a change of use takes on the heap, `Arc` header included.
#[cfg(test)]
pub(super) fn bytes_per_change<A: Amount>() -> usize {
    2 * size_of::<usize>() + size_of::<Node<Change<A>>>()
}
