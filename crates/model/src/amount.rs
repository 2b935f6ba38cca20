//! What reservations take and give back: a plain count, or a vector of resources.

use std::fmt::Debug;
use std::hash::Hash;

/// A quantity with one or several components, compared component by component.
///
/// A calendar keeps differences of amounts, and a difference may be below zero on the way to a sum that is not.
/// A difference is the same machine word read with a sign, as two's complement has it: sums wrap, [`most`] and
/// [`least`] read the sign, [`fits_in`] does not. This is exact while amounts are [`in_range`]; whoever takes an
/// amount from outside asks that first, or that it fits in one which is.
///
/// [`most`]: Amount::most
/// [`least`]: Amount::least
/// [`fits_in`]: Amount::fits_in
/// [`in_range`]: Amount::in_range
pub trait Amount: Clone + Debug + Default + Eq + Hash + Send + Sync {
    /// The sum, component by component.
    fn plus(&self, other: &Self) -> Self;

    /// The difference, component by component.
    fn minus(&self, other: &Self) -> Self;

    /// Whether each component is at most the one of `room`, both read without a sign.
    fn fits_in(&self, room: &Self) -> bool;

    /// The larger of each component, read with a sign.
    fn most(&self, other: &Self) -> Self;

    /// The smaller of each component, read with a sign.
    fn least(&self, other: &Self) -> Self;

    /// Whether each component is below half of its word's range, so that differences keep their sign.
    fn in_range(&self) -> bool;
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
        self.cast_signed().max(other.cast_signed()).cast_unsigned()
    }

    fn least(&self, other: &u32) -> u32 {
        self.cast_signed().min(other.cast_signed()).cast_unsigned()
    }

    fn in_range(&self) -> bool {
        self.cast_signed() >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_keep_their_sign_and_amounts_do_not_gain_one() {
        let below = 3u32.minus(&5);
        assert_eq!(below.most(&1), 1);
        assert_eq!(below.least(&1), below);
        assert_eq!(below.plus(&5), 3);
        assert!(!below.fits_in(&7), "a difference below zero is no small amount");
        assert!(!below.in_range() && 5u32.in_range());
    }
}
