//! A persistent balanced tree of ordered items, some to each node, with a summary of every subtree.
//!
//! Cloning shares; a change copies the path to it only where it is shared, and works in place where it is not.
//! Balanced by weight (Hirai and Yamamoto, "Balancing weight-balanced trees", 2011, parameters 3 and 2), so its
//! depth is logarithmic whatever keys a peer invents, which a treap with a known hash could not promise. The
//! price: its shape depends on its history, so it is compared and hashed item by item.
//!
//! A node with several items makes a small tree as quick as a sorted `Vec`, and a long walk one along arrays. Full
//! nodes are split; nodes are not joined until they are empty. So keys that come and go at random may leave few in
//! each, which costs what a tree with one item per node costs, and new ones fill them again.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a tree holds: something with a key, and with a summary of many.
pub(super) trait Item: Clone + Debug + Eq + Hash {
    /// What items are ordered by.
    type Key: Ord;
    /// What is known of items that follow each other.
    type Summary: Clone + Debug;

    /// The item's place in the order.
    fn key(&self) -> Self::Key;

    /// The summary of one item or more, in order.
    fn summary(items: &[Self]) -> Self::Summary;

    /// The summary of some items and of those that follow them.
    fn join(first: &Self::Summary, then: &Self::Summary) -> Self::Summary;
}

/// Items in the order of their keys.
#[derive(Clone, Debug)]
pub(super) struct Tree<T: Item> {
    root: Link<T>,
}

/// Some items with what is left and right of them.
#[derive(Clone, Debug)]
pub(super) struct Node<T: Item> {
    left: Link<T>,
    right: Link<T>,
    /// How many nodes there are in the subtree.
    nodes: u32,
    /// How many items there are in the subtree.
    count: u32,
    /// At least one, at most [`ITEMS_MAX`].
    items: Vec<T>,
    /// Of the items.
    own: T::Summary,
    /// Of the subtree.
    summary: T::Summary,
}

type Link<T> = Option<Arc<Node<T>>>;

/// A node has so many items, at most.
const ITEMS_MAX: usize = 64;

/// Nodes made from sorted items have so many, to leave room for more.
const ITEMS_USUAL: usize = 48;

impl<T: Item> Default for Tree<T> {
    fn default() -> Tree<T> {
        Tree { root: None }
    }
}

impl<T: Item> Tree<T> {
    /// A tree of items that are already in strictly rising order.
    pub(super) fn from_sorted(items: Vec<T>) -> Tree<T> {
        debug_assert!(items.is_sorted_by(|a, b| a.key() < b.key()));
        let count = items.len().div_ceil(ITEMS_USUAL);
        Tree { root: build(&mut items.into_iter(), count) }
    }

    pub(super) fn len(&self) -> usize {
        count(&self.root) as usize
    }

    pub(super) fn root(&self) -> Option<&Node<T>> {
        self.root.as_deref()
    }

    pub(super) fn get(&self, key: &T::Key) -> Option<&T> {
        self.first_from(key).filter(|found| found.key() == *key)
    }

    /// The first item whose key is `first` or later.
    pub(super) fn first_from(&self, first: &T::Key) -> Option<&T> {
        let mut found = None;
        let mut at = self.root();
        while let Some(node) = at {
            at = if node.last().key() < *first {
                node.right()
            } else {
                found = Some(node);
                node.left().filter(|_| *first < node.first().key())
            };
        }
        found.and_then(|node: &Node<T>| node.items.get(node.place(first)))
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
        let mut iter = Iter { items: [].iter(), stack: Vec::new() };
        iter.descend(self.root());
        iter
    }

    /// The items whose key is `first` or later, in order.
    pub(super) fn iter_from(&self, first: &T::Key) -> Iter<'_, T> {
        let mut iter = Iter { items: [].iter(), stack: Vec::new() };
        let mut at = self.root();
        while let Some(node) = at {
            if node.last().key() < *first {
                at = node.right();
            } else if node.first().key() < *first {
                iter.items = node.items[node.place(first)..].iter();
                iter.descend(node.right());
                break;
            } else {
                iter.stack.push(node);
                at = node.left();
            }
        }
        iter
    }
}

impl<T: Item> Node<T> {
    pub(super) fn left(&self) -> Option<&Node<T>> {
        self.left.as_deref()
    }

    pub(super) fn right(&self) -> Option<&Node<T>> {
        self.right.as_deref()
    }

    /// The items between what is left and what is right; at least one.
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    pub(super) fn first(&self) -> &T {
        &self.items[0]
    }

    pub(super) fn last(&self) -> &T {
        &self.items[self.items.len() - 1]
    }

    /// The summary of the items.
    pub(super) fn own(&self) -> &T::Summary {
        &self.own
    }

    /// The summary of the subtree.
    pub(super) fn summary(&self) -> &T::Summary {
        &self.summary
    }

    /// Where in the items the first is whose key is `key` or later.
    fn place(&self, key: &T::Key) -> usize {
        self.items.partition_point(|item| item.key() < *key)
    }

    fn refresh(&mut self) {
        self.nodes = 1 + nodes(&self.left) + nodes(&self.right);
        self.count = self.items.len() as u32 + count(&self.left) + count(&self.right);
        self.summary = match self.left() {
            Some(left) => T::join(&left.summary, &self.own),
            None => self.own.clone(),
        };
        if let Some(right) = self.right() {
            self.summary = T::join(&self.summary, &right.summary);
        }
    }

    /// Changes one of the items; there may be none left, or a node more on the right.
    fn alter(&mut self, key: &T::Key, change: impl FnOnce(Option<&T>) -> Option<T>) {
        let place = self.place(key);
        let there = self.items.get(place).filter(|there| there.key() == *key);
        match (there.is_some(), change(there)) {
            (true, Some(item)) => self.items[place] = item,
            (true, None) => drop(self.items.remove(place)),
            (false, Some(item)) => self.insert(place, item),
            (false, None) => return,
        }
        if !self.items.is_empty() {
            self.own = T::summary(&self.items);
        }
    }

    fn insert(&mut self, place: usize, item: T) {
        if self.items.len() < ITEMS_MAX {
            self.items.insert(place, item);
            return;
        }
        // Keys that keep rising leave full nodes behind.
        let keep = if place == ITEMS_MAX { ITEMS_MAX } else { ITEMS_MAX / 2 };
        let mut rest = self.items.split_off(keep);
        if place < keep {
            self.items.insert(place, item);
        } else {
            rest.insert(place - keep, item);
        }
        put_first(&mut self.right, node(None, rest, None));
    }
}

impl<T: Item> PartialEq for Tree<T> {
    fn eq(&self, other: &Tree<T>) -> bool {
        match (&self.root, &other.root) {
            (None, None) => true,
            (Some(mine), Some(theirs)) => {
                Arc::ptr_eq(mine, theirs) || mine.count == theirs.count && self.iter().eq(other.iter())
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
    /// The next ones.
    items: std::slice::Iter<'a, T>,
    /// The nodes after them, each with its right subtree; the next one last.
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
        if let Some(item) = self.items.next() {
            return Some(item);
        }
        let node = self.stack.pop()?;
        self.descend(node.right());
        self.items = node.items.iter();
        self.items.next()
    }
}

fn nodes<T: Item>(link: &Link<T>) -> u32 {
    link.as_ref().map_or(0, |node| node.nodes)
}

fn count<T: Item>(link: &Link<T>) -> u32 {
    link.as_ref().map_or(0, |node| node.count)
}

fn weight<T: Item>(link: &Link<T>) -> u32 {
    nodes(link) + 1
}

fn node<T: Item>(left: Link<T>, items: Vec<T>, right: Link<T>) -> Arc<Node<T>> {
    let own = T::summary(&items);
    let mut node = Node { left, right, nodes: 1, count: 0, items, summary: own.clone(), own };
    node.refresh();
    Arc::new(node)
}

fn build<T: Item>(items: &mut impl Iterator<Item = T>, count: usize) -> Link<T> {
    if count == 0 {
        return None;
    }
    let left = build(items, count / 2);
    let own = items.by_ref().take(ITEMS_USUAL).collect();
    let right = build(items, count - count / 2 - 1);
    Some(node(left, own, right))
}

fn alter<T: Item>(link: &mut Link<T>, key: &T::Key, change: impl FnOnce(Option<&T>) -> Option<T>) {
    let Some(shared) = link else {
        *link = change(None).map(|item| node(None, vec![item], None));
        return;
    };
    let here = Arc::make_mut(shared);
    if here.left.is_some() && *key < here.first().key() {
        alter(&mut here.left, key, change);
    } else if here.right.is_some() && here.last().key() < *key {
        alter(&mut here.right, key, change);
    } else {
        here.alter(key, change);
        if here.items.is_empty() {
            *link = join(here.left.take(), here.right.take());
            return;
        }
    }
    rebalance(here);
}

/// Adds a node whose items come before all others.
fn put_first<T: Item>(link: &mut Link<T>, first: Arc<Node<T>>) {
    let Some(shared) = link else {
        *link = Some(first);
        return;
    };
    let here = Arc::make_mut(shared);
    put_first(&mut here.left, first);
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

/// Restores balance and summary of a node one of whose subtrees gained or lost one node.
///
/// It works on the node, not on the link to it: to ask anew whether a link is shared would cost more than the rest.
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

        fn summary(items: &[u16]) -> u64 {
            items.iter().map(|&item| u64::from(item)).sum()
        }

        fn join(first: &u64, then: &u64) -> u64 {
            first + then
        }
    }

    /// Sizes, sums, balance and the limit of items hold at every node.
    fn check(link: &Link<u16>) -> (u32, u32, u64) {
        let Some(node) = link else { return (0, 0, 0) };
        let (left, right) = (check(&node.left), check(&node.right));
        assert!((1..=ITEMS_MAX).contains(&node.items.len()), "{} items", node.items.len());
        assert_eq!(node.nodes, left.0 + right.0 + 1);
        assert_eq!(node.count, left.1 + right.1 + node.items.len() as u32);
        assert_eq!(node.own, u16::summary(&node.items));
        assert_eq!(node.summary, left.2 + right.2 + node.own);
        assert!(left.0 < 3 * (right.0 + 1) && right.0 < 3 * (left.0 + 1), "out of balance");
        (node.nodes, node.count, node.summary)
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn tree_is_an_ordered_set_and_stays_balanced(
            changes in prop::collection::vec((0u8..5, 0u16..2_000), 0..4_000),
            from in 0u16..2_000,
        ) {
            let (mut tree, mut set) = (Tree::default(), BTreeSet::new());
            let mut kept = Vec::new();
            for (step, (dice, item)) in changes.into_iter().enumerate() {
                // First it mostly grows, then it mostly shrinks.
                if (dice < 4) == (step < 2_000) { tree.insert(item); set.insert(item); } else { tree.remove(&item); set.remove(&item); }
                if step % 397 == 0 {
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
        let (nodes, ..) = check(&tree.root);
        assert_eq!(nodes, u32::from(u16::MAX).div_ceil(ITEMS_MAX as u32), "they are full");
    }
}
