//! A finger on a profile: looks for changes of use ahead of where it is, and goes there.
//!
//! From one change to one near by it takes a few steps, however large the tree (O(log d) for d changes between, and
//! O(1) each when many are visited in a row); what holds nothing that is looked for it leaps over, subtree by subtree.

use crate::amount::Amount;
use crate::calendar::profile::{Change, Prefixes};
use crate::calendar::tree::Node;
use crate::time::Time;

/// Where a search is in a profile; it only ever goes on.
#[derive(Clone, Debug)]
pub(super) struct Finger<'a, A: Amount> {
    /// All changes up to here are passed, and no later one is; none before the first.
    at: Option<Time>,
    /// The use here.
    used: A,
    /// What comes next: this subtree, then `above` from its last to its first, each with what is right of it.
    below: Option<&'a Node<Change<A>>>,
    above: Vec<&'a Node<Change<A>>>,
}

/// Room for the path to any change of a few hundred thousand.
const DEPTH_USUAL: usize = 24;

impl<'a, A: Amount> Finger<'a, A> {
    /// A finger before all changes.
    pub(super) fn new(root: Option<&'a Node<Change<A>>>) -> Finger<'a, A> {
        Finger { at: None, used: A::default(), below: root, above: Vec::new() }
    }

    /// Goes where another finger is.
    pub(super) fn copy(&mut self, other: &Finger<'a, A>) {
        self.at = other.at;
        self.used.clone_from(&other.used);
        self.below = other.below;
        self.above.clone_from(&other.above);
    }

    /// The first instant from `from`, before `until`, where use does not fit in `room`; `from` is not behind.
    pub(super) fn first_over(&mut self, from: Time, until: Time, room: &A) -> Option<Time> {
        let ahead = |used: &A, ahead: &Prefixes<A>| !used.plus(&ahead.most).fits_in(room);
        self.first(from, until, ahead, |used| !used.fits_in(room))
    }

    /// The first instant from `from`, before `until`, where use fits in `room`; `from` is not behind.
    pub(super) fn first_within(&mut self, from: Time, until: Time, room: &A) -> Option<Time> {
        let ahead = |used: &A, ahead: &Prefixes<A>| used.plus(&ahead.least).fits_in(room);
        self.first(from, until, ahead, |used| used.fits_in(room))
    }

    /// The first instant after `time` where use changes; `time` is not behind.
    pub(super) fn next_change(&mut self, time: Time) -> Option<Time> {
        self.pass(time);
        while let Some(tree) = self.below {
            self.descend(tree);
        }
        self.above.last().map(|next| next.item().time)
    }

    /// The first instant from `from`, before `until`, whose use passes the test `here`; whatever lies in a subtree
    /// that does not pass the test `ahead` does not.
    #[inline]
    fn first(
        &mut self,
        from: Time,
        until: Time,
        ahead: impl Fn(&A, &Prefixes<A>) -> bool,
        here: impl Fn(&A) -> bool,
    ) -> Option<Time> {
        if from >= until {
            return None;
        }
        self.pass(from);
        if here(&self.used) {
            return Some(from);
        }
        loop {
            while let Some(tree) = self.below {
                if tree.item().time >= until || ahead(&self.used, tree.summary()) {
                    self.descend(tree);
                } else if self.ends_by(until) {
                    self.leap(tree);
                } else {
                    self.leap_left(tree);
                }
            }
            let next = *self.above.last()?;
            if next.item().time >= until {
                return None;
            }
            self.step(next);
            if here(&self.used) {
                return self.at;
            }
        }
    }

    /// Passes all changes up to `time`.
    fn pass(&mut self, time: Time) {
        debug_assert!(self.at <= Some(time), "a finger does not go back");
        if self.at == Some(time) {
            return;
        }
        loop {
            while let Some(tree) = self.below {
                if self.ends_by(time) {
                    self.leap(tree);
                } else if tree.item().time <= time {
                    self.leap_left(tree);
                } else {
                    self.descend(tree);
                }
            }
            match self.above.last() {
                Some(&next) if next.item().time <= time => self.step(next),
                _ => break,
            }
        }
        self.at = Some(time);
    }

    /// Whether all of the subtree below lies before `time`, as far as can be told from outside.
    fn ends_by(&self, time: Time) -> bool {
        self.above.last().map_or(Time::NEVER, |next| next.item().time) <= time
    }

    /// Leaves the subtree's root and what is right of it for later.
    fn descend(&mut self, tree: &'a Node<Change<A>>) {
        if self.above.capacity() == 0 {
            self.above.reserve(DEPTH_USUAL);
        }
        self.above.push(tree);
        self.below = tree.left();
    }

    /// Passes the whole subtree.
    fn leap(&mut self, tree: &Node<Change<A>>) {
        self.used = self.used.plus(&tree.summary().sum);
        self.below = None;
    }

    /// Passes the subtree's root and what is left of it.
    fn leap_left(&mut self, tree: &'a Node<Change<A>>) {
        if let Some(left) = tree.left() {
            self.used = self.used.plus(&left.summary().sum);
        }
        self.used = self.used.plus(&tree.item().difference);
        self.below = tree.right();
    }

    /// Passes the last of `above`, with nothing left below.
    fn step(&mut self, next: &'a Node<Change<A>>) {
        self.above.pop();
        self.used = self.used.plus(&next.item().difference);
        self.below = next.right();
        self.at = Some(next.item().time);
    }
}
