//! A persistent balanced tree of ordered items with a summary of every subtree.
//!
//! Cloning shares; a change copies the path to it only where it is shared, and works in place where it is not.
//! Balanced by weight (Hirai and Yamamoto, "Balancing weight-balanced trees", 2011, parameters 3 and 2), so its
//! depth is logarithmic whatever keys a peer invents, which a treap with a known hash could not promise. The
//! price: its shape depends on its history, so it is compared and hashed item by item.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a tree holds: something with a key, and with a summary of many.
pub(super) trait Item: Clone + Debug + Eq + Hash {
    /// What items are ordered by.
    type Key: Ord;
    /// What is known of all items of a subtree together.
    type Summary: Clone + Debug;

    /// The item's place in the order.
    fn key(&self) -> Self::Key;

    /// The summary of a subtree: of what is left of its root, the root's item, and what is right of it.
    fn summary(left: Option<&Self::Summary>, item: &Self, right: Option<&Self::Summary>) -> Self::Summary;
}

/// Items in the order of their keys.
#[derive(Clone, Debug)]
pub(super) struct Tree<T: Item> {
    root: Link<T>,
}

/// An item with what is left and right of it.
#[derive(Clone, Debug)]
pub(super) struct Node<T: Item> {
    left: Link<T>,
    right: Link<T>,
    size: u32,
    item: T,
    summary: T::Summary,
}

type Link<T> = Option<Arc<Node<T>>>;

impl<T: Item> Default for Tree<T> {
    fn default() -> Tree<T> {
        Tree { root: None }
    }
}

impl<T: Item> Tree<T> {
    /// A tree of items that are already in strictly rising order.
    pub(super) fn from_sorted(items: Vec<T>) -> Tree<T> {
        debug_assert!(items.is_sorted_by(|a, b| a.key() < b.key()));
        let count = items.len();
        Tree { root: build(&mut items.into_iter(), count) }
    }

    pub(super) fn len(&self) -> usize {
        size(&self.root) as usize
    }

    pub(super) fn root(&self) -> Option<&Node<T>> {
        self.root.as_deref()
    }

    pub(super) fn get(&self, key: &T::Key) -> Option<&T> {
        let mut at = self.root();
        while let Some(node) = at {
            at = match key.cmp(&node.item.key()) {
                Ordering::Less => node.left(),
                Ordering::Greater => node.right(),
                Ordering::Equal => return Some(&node.item),
            };
        }
        None
    }

    /// The first item whose key is `first` or later.
    pub(super) fn first_from(&self, first: &T::Key) -> Option<&T> {
        let mut found = None;
        let mut at = self.root();
        while let Some(node) = at {
            at = if node.item.key() < *first {
                node.right()
            } else {
                found = Some(&node.item);
                node.left()
            };
        }
        found
    }

    /// Puts what `change` makes of the item with this key (if any) in its place; nothing removes it.
    pub(super) fn alter(&mut self, key: &T::Key, change: impl FnOnce(Option<&T>) -> Option<T>) {
        alter(&mut self.root, key, change);
    }

    /// Adds an item, in place of one with the same key.
    pub(super) fn insert(&mut self, item: T) {
        self.alter(&item.key(), |_| Some(item));
    }

    /// Removes the item with this key, if there is one.
    pub(super) fn remove(&mut self, key: &T::Key) {
        self.alter(key, |_| None);
    }

    /// All items in order.
    pub(super) fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter { stack: Vec::new() };
        iter.descend(self.root());
        iter
    }

    /// The items whose key is `first` or later, in order.
    pub(super) fn iter_from(&self, first: &T::Key) -> Iter<'_, T> {
        let mut stack = Vec::new();
        let mut at = self.root();
        while let Some(node) = at {
            if node.item.key() < *first {
                at = node.right();
            } else {
                stack.push(node);
                at = node.left();
            }
        }
        Iter { stack }
    }
}

impl<T: Item> Node<T> {
    pub(super) fn left(&self) -> Option<&Node<T>> {
        self.left.as_deref()
    }

    pub(super) fn right(&self) -> Option<&Node<T>> {
        self.right.as_deref()
    }

    pub(super) fn item(&self) -> &T {
        &self.item
    }

    pub(super) fn summary(&self) -> &T::Summary {
        &self.summary
    }

    fn refresh(&mut self) {
        self.size = 1 + size(&self.left) + size(&self.right);
        self.summary =
            T::summary(self.left().map(Node::summary), &self.item, self.right().map(Node::summary));
    }
}

impl<T: Item> PartialEq for Tree<T> {
    fn eq(&self, other: &Tree<T>) -> bool {
        match (&self.root, &other.root) {
            (None, None) => true,
            (Some(mine), Some(theirs)) => {
                Arc::ptr_eq(mine, theirs) || mine.size == theirs.size && self.iter().eq(other.iter())
            }
            _ => false,
        }
    }
}

impl<T: Item> Eq for Tree<T> {}

impl<T: Item> Hash for Tree<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        self.iter().for_each(|item| item.hash(state));
    }
}

/// Items of a tree, in order.
#[derive(Clone, Debug)]
pub(super) struct Iter<'a, T: Item> {
    /// The nodes still to be given, each with its right subtree; the next one last.
    stack: Vec<&'a Node<T>>,
}

impl<'a, T: Item> Iter<'a, T> {
    fn descend(&mut self, mut at: Option<&'a Node<T>>) {
        while let Some(node) = at {
            self.stack.push(node);
            at = node.left();
        }
    }
}

impl<'a, T: Item> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        let node = self.stack.pop()?;
        self.descend(node.right());
        Some(&node.item)
    }
}

fn size<T: Item>(link: &Link<T>) -> u32 {
    link.as_ref().map_or(0, |node| node.size)
}

fn weight<T: Item>(link: &Link<T>) -> u32 {
    size(link) + 1
}

fn node<T: Item>(left: Link<T>, item: T, right: Link<T>) -> Arc<Node<T>> {
    let size = 1 + size(&left) + size(&right);
    let summary = T::summary(left.as_ref().map(|l| &l.summary), &item, right.as_ref().map(|r| &r.summary));
    Arc::new(Node { left, right, size, item, summary })
}

fn build<T: Item>(items: &mut impl Iterator<Item = T>, count: usize) -> Link<T> {
    if count == 0 {
        return None;
    }
    let left = build(items, count / 2);
    let item = items.next()?;
    let right = build(items, count - count / 2 - 1);
    Some(node(left, item, right))
}

fn alter<T: Item>(link: &mut Link<T>, key: &T::Key, change: impl FnOnce(Option<&T>) -> Option<T>) {
    let Some(shared) = link else {
        *link = change(None).map(|item| node(None, item, None));
        return;
    };
    let here = Arc::make_mut(shared);
    match key.cmp(&here.item.key()) {
        Ordering::Less => alter(&mut here.left, key, change),
        Ordering::Greater => alter(&mut here.right, key, change),
        Ordering::Equal => match change(Some(&here.item)) {
            Some(item) => here.item = item,
            None => {
                *link = join(here.left.take(), here.right.take());
                return;
            }
        },
    }
    rebalance(here);
}

/// One tree of two that were siblings.
fn join<T: Item>(left: Link<T>, mut right: Link<T>) -> Link<T> {
    if right.is_none() {
        return left;
    }
    let mut root = take_first(&mut right)?;
    let top = Arc::make_mut(&mut root);
    top.left = left;
    top.right = right;
    rebalance(top);
    Some(root)
}

/// Takes the first node out of a tree; its links are left empty.
fn take_first<T: Item>(link: &mut Link<T>) -> Link<T> {
    let shared = link.as_mut()?;
    let here = Arc::make_mut(shared);
    if here.left.is_some() {
        let first = take_first(&mut here.left);
        rebalance(here);
        return first;
    }
    let rest = here.right.take();
    std::mem::replace(link, rest)
}

/// Restores balance and summary of a node one of whose subtrees gained or lost one item.
///
/// It works on the node, not on the link to it: to ask whether a link is shared is what costs most in a small tree.
fn rebalance<T: Item>(here: &mut Node<T>) {
    let (left, right) = (weight(&here.left), weight(&here.right));
    if right > 3 * left {
        let heavy = Arc::make_mut(here.right.as_mut().expect("the heavier side is not empty"));
        if weight(&heavy.left) >= 2 * weight(&heavy.right) {
            rotate_right(heavy);
        }
        rotate_left(here);
    } else if left > 3 * right {
        let heavy = Arc::make_mut(here.left.as_mut().expect("the heavier side is not empty"));
        if weight(&heavy.right) >= 2 * weight(&heavy.left) {
            rotate_left(heavy);
        }
        rotate_right(here);
    } else {
        here.refresh();
    }
}

fn rotate_left<T: Item>(here: &mut Node<T>) {
    let mut raised = here.right.take().expect("a rotation raises an existing child");
    let top = Arc::make_mut(&mut raised);
    here.right = top.left.take();
    here.refresh();
    std::mem::swap(here, top);
    here.left = Some(raised);
    here.refresh();
}

fn rotate_right<T: Item>(here: &mut Node<T>) {
    let mut raised = here.left.take().expect("a rotation raises an existing child");
    let top = Arc::make_mut(&mut raised);
    here.left = top.right.take();
    here.refresh();
    std::mem::swap(here, top);
    here.right = Some(raised);
    here.refresh();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    impl Item for u16 {
        type Key = u16;
        type Summary = u64;

        fn key(&self) -> u16 {
            *self
        }

        fn summary(left: Option<&u64>, item: &u16, right: Option<&u64>) -> u64 {
            left.unwrap_or(&0) + u64::from(*item) + right.unwrap_or(&0)
        }
    }

    /// Size, sum and balance hold at every node.
    fn check(link: &Link<u16>) -> (u32, u64) {
        let Some(node) = link else { return (0, 0) };
        let (left, right) = (check(&node.left), check(&node.right));
        assert_eq!(node.size, left.0 + right.0 + 1);
        assert_eq!(node.summary, left.1 + right.1 + u64::from(node.item));
        assert!(left.0 < 3 * (right.0 + 1) && right.0 < 3 * (left.0 + 1), "out of balance");
        (node.size, node.summary)
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn tree_is_an_ordered_set_and_stays_balanced(
            changes in prop::collection::vec((any::<bool>(), 0u16..300), 0..600),
            from in 0u16..300,
        ) {
            let (mut tree, mut set) = (Tree::default(), BTreeSet::new());
            let mut kept = Vec::new();
            for (step, (add, item)) in changes.into_iter().enumerate() {
                if add { tree.insert(item); set.insert(item); } else { tree.remove(&item); set.remove(&item); }
                if step % 37 == 0 {
                    kept.push((tree.clone(), set.clone()));
                }
            }
            kept.push((tree, set));
            for (tree, set) in kept {
                check(&tree.root);
                prop_assert!(tree.iter().eq(set.iter()));
                prop_assert!(tree.iter_from(&from).eq(set.range(from..)));
                prop_assert_eq!(tree.first_from(&from), set.range(from..).next());
                prop_assert_eq!(tree.get(&from), set.get(&from));
                prop_assert_eq!(&tree, &Tree::from_sorted(set.into_iter().collect()));
            }
        }
    }

    #[test]
    fn rising_keys_do_not_make_a_list() {
        let mut tree = Tree::default();
        (0..u16::MAX).for_each(|item| tree.insert(item));
        check(&tree.root);
    }
}
