//! What reservations take and give back: a plain count, or a vector of resources.

use std::fmt::Debug;
use std::hash::Hash;

/// A quantity with one or several components, compared component by component.
///
/// Sums wrap, as those of machine words do: a calendar keeps differences of amounts, and a difference may be
/// below zero on the way to a sum that is not. Whoever adds amounts that came from outside checks them first.
pub trait Amount: Clone + Debug + Default + Eq + Hash + Send + Sync {
    /// The sum, component by component.
    fn plus(&self, other: &Self) -> Self;

    /// The difference, component by component.
    fn minus(&self, other: &Self) -> Self;

    /// Whether each component is at most the one of `room`.
    fn fits_in(&self, room: &Self) -> bool;

    /// The larger of each component.
    fn most(&self, other: &Self) -> Self;

    /// The smaller of each component.
    fn least(&self, other: &Self) -> Self;
}

/// A count of things that are all alike: the nodes of a machine room seen as one.
impl Amount for u32 {
    fn plus(&self, other: &u32) -> u32 {
        self.wrapping_add(*other)
    }

    fn minus(&self, other: &u32) -> u32 {
        self.wrapping_sub(*other)
    }

    fn fits_in(&self, room: &u32) -> bool {
        self <= room
    }

    fn most(&self, other: &u32) -> u32 {
        *self.max(other)
    }

    fn least(&self, other: &u32) -> u32 {
        *self.min(other)
    }
}
