//! A finger on a profile: looks for changes of use ahead of where it is, and goes there.
//!
//! Along the changes of a node it walks, and from node to node it takes a few steps, however large the tree; what
//! holds nothing that is looked for it leaps over, node by node and subtree by subtree.

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
    /// What comes next: these changes, then this subtree, then `above` from its last to its first, each with what
    /// is right of it.
    items: &'a [Change<A>],
    below: Option<&'a Node<Change<A>>>,
    above: Vec<&'a Node<Change<A>>>,
}

/// Room for the path to any of many thousand nodes.
const DEPTH_USUAL: usize = 16;

impl<'a, A: Amount> Finger<'a, A> {
    /// A finger before all changes.
    pub(super) fn new(root: Option<&'a Node<Change<A>>>) -> Finger<'a, A> {
        Finger { at: None, used: A::default(), items: &[], below: root, above: Vec::new() }
    }

    /// Goes where another finger is.
    pub(super) fn copy(&mut self, other: &Finger<'a, A>) {
        self.at = other.at;
        self.used.clone_from(&other.used);
        self.items = other.items;
        self.below = other.below;
        self.above.clone_from(&other.above);
    }

    /// The first instant from `from`, before `until`, where use does not fit in `room`; `from` is not behind.
    #[inline]
    pub(super) fn first_over(&mut self, from: Time, until: Time, room: &A) -> Option<Time> {
        let ahead = |used: &A, ahead: &Prefixes<A>| !used.plus(&ahead.most).fits_in(room);
        self.first(from, until, ahead, |used| !used.fits_in(room))
    }

    /// The first instant from `from`, before `until`, where use fits in `room`; `from` is not behind.
    #[inline]
    pub(super) fn first_within(&mut self, from: Time, until: Time, room: &A) -> Option<Time> {
        let ahead = |used: &A, ahead: &Prefixes<A>| used.plus(&ahead.least).fits_in(room);
        self.first(from, until, ahead, |used| used.fits_in(room))
    }

    /// The first instant after `time` where use changes; `time` is not behind.
    pub(super) fn next_change(&mut self, time: Time) -> Option<Time> {
        self.pass(time);
        if let Some(next) = self.items.first() {
            return Some(next.time);
        }
        while let Some(tree) = self.below {
            self.descend(tree);
        }
        self.above.last().map(|next| next.first().time)
    }

    /// The use at `time`, which is not behind.
    pub(super) fn used_at(mut self, time: Time) -> A {
        self.pass(time);
        self.used
    }

    /// The first instant from `from`, before `until`, whose use passes the test `here`; whatever lies in changes
    /// that do not pass the test `ahead` does not.
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
            let items = self.items;
            for (place, next) in items.iter().enumerate() {
                if next.time >= until {
                    self.items = &items[place..];
                    return None;
                }
                self.used = self.used.plus(&next.difference);
                if here(&self.used) {
                    self.items = &items[place + 1..];
                    self.at = Some(next.time);
                    return self.at;
                }
            }
            self.items = &[];
            while let Some(tree) = self.below {
                if tree.last().time >= until || ahead(&self.used, tree.summary()) {
                    self.descend(tree);
                } else if self.ends_by(until) {
                    self.leap(tree);
                } else {
                    self.leap_left(tree);
                }
            }
            let next = *self.above.last()?;
            let leaps = next.last().time < until && !ahead(&self.used, next.own());
            self.step(next);
            if leaps {
                self.leap_items(next);
            }
        }
    }

    /// Passes all changes up to `time`.
    #[inline]
    fn pass(&mut self, time: Time) {
        debug_assert!(self.at <= Some(time), "a finger does not go back");
        if self.at != Some(time) {
            self.at = Some(time);
            self.pass_more(time);
        }
    }

    fn pass_more(&mut self, time: Time) {
        loop {
            while let [next, rest @ ..] = self.items {
                if next.time > time {
                    return;
                }
                self.used = self.used.plus(&next.difference);
                self.items = rest;
            }
            while let Some(tree) = self.below {
                if self.ends_by(time) {
                    self.leap(tree);
                } else if tree.last().time <= time {
                    self.leap_left(tree);
                } else {
                    self.descend(tree);
                }
            }
            let Some(&next) = self.above.last().filter(|next| next.first().time <= time) else { return };
            let leaps = next.last().time <= time;
            self.step(next);
            if leaps {
                self.leap_items(next);
            }
        }
    }

    /// Whether all of the subtree below lies before `time`, as far as can be told from outside.
    fn ends_by(&self, time: Time) -> bool {
        self.above.last().map_or(Time::NEVER, |next| next.first().time) <= time
    }

    /// Leaves the subtree's root and what is right of it for later.
    fn descend(&mut self, tree: &'a Node<Change<A>>) {
        if self.above.capacity() == 0 {
            self.above.reserve(DEPTH_USUAL);
        }
        self.above.push(tree);
        self.below = tree.left();
    }

    /// Goes to the last of `above`, with nothing left before it.
    fn step(&mut self, next: &'a Node<Change<A>>) {
        self.above.pop();
        self.items = next.items();
        self.below = next.right();
    }

    /// Passes the changes of the node that it has just come to.
    fn leap_items(&mut self, node: &Node<Change<A>>) {
        self.used = self.used.plus(&node.own().sum);
        self.items = &[];
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
        self.used = self.used.plus(&tree.own().sum);
        self.below = tree.right();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use crate::calendar::profile::Profile;
    use crate::resources::Resources;
    use crate::time::Span;
    use crate::units::Size;

    use super::*;

    fn amount((cores, memory): (u32, u64)) -> Resources {
        Resources::cores(cores).with_memory(Size::from_bytes(memory))
    }

    /// The first instant from `from`, before `until`, whose use passes: step by step.
    fn linear(
        steps: &[(Time, Resources)],
        from: Time,
        until: Time,
        test: impl Fn(&Resources) -> bool,
    ) -> Option<Time> {
        let before = steps
            .iter()
            .rev()
            .find(|(time, _)| *time <= from)
            .map_or(Resources::NONE, |(_, used)| used.clone());
        let after = steps.iter().filter(|(time, _)| *time > from).cloned();
        let mut all = std::iter::once((from, before)).chain(after);
        all.find(|(time, used)| *time < until && test(used)).map(|(time, _)| time)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 96,
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn finger_finds_what_a_walk_step_by_step_finds(
            used in prop::collection::vec((1u64..4, (0u32..9, 0u64..9)), 0..600),
            first in 0u64..3,
            questions in prop::collection::vec((0u8..3, 0u64..40, prop_oneof![4 => 0u64..60, 1 => 0u64..2_000], (0u32..9, 0u64..9)), 1..60),
        ) {
            let mut time = first;
            let steps: Vec<(Time, Resources)> = used.into_iter().map(|(gap, used)| {
                time += gap;
                (Time::from_micros(time - 1), amount(used))
            }).collect();
            let profile = Profile::from_steps(steps.iter().cloned());
            let changes: Vec<Time> = profile.steps().map(|(time, _)| time).collect();
            let mut finger = profile.finger();
            let mut at = Time::ZERO;
            for (kind, wait, span, room) in questions {
                let from = at + Span::from_micros(wait);
                let until = from + Span::from_micros(span);
                let room = amount(room);
                let found = match kind {
                    0 => {
                        let found = finger.first_over(from, until, &room);
                        prop_assert_eq!(found, linear(&steps, from, until, |used| !used.fits_in(&room)));
                        found
                    }
                    1 => {
                        let found = finger.first_within(from, until, &room);
                        prop_assert_eq!(found, linear(&steps, from, until, |used| used.fits_in(&room)));
                        found
                    }
                    _ => {
                        let next = finger.next_change(from);
                        prop_assert_eq!(next, changes.iter().copied().find(|&change| change > from));
                        Some(from)
                    }
                };
                at = found.unwrap_or(until);
            }
            prop_assert_eq!(finger.used_at(at), steps.iter().rev().find(|(time, _)| *time <= at).map_or(Resources::NONE, |(_, used)| used.clone()));
        }
    }
}
