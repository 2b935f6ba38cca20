//! Fingerprints: 128 bits that stand for a value, the same in every run.
//!
//! Two lanes of 64 bits take every word, each folded with a key of its own (a 64 × 64 bit product, its halves
//! xored), and mix at the end. Prints of the parts of a state are *added*: the sum knows no order but does know
//! how many there are of each, which is what a multiset is, and a change costs one subtraction and one addition.
//! Among n states, two share a print with a probability of about n²/2¹²⁹: for 10⁸ states one in 10²².

use std::hash::{BuildHasherDefault, Hash, Hasher};

/// What stands for a value.
pub(super) type Print = u128;

/// Makes a std map of prints look no further than the print itself.
///
/// Such maps have no order that means anything; the explorer looks things up in them and never walks them.
pub(super) type Pass = BuildHasherDefault<Passed>;

/// The print of a value; `salt` keeps values of different kinds apart.
pub(super) fn print<T: Hash + ?Sized>(salt: u64, value: &T) -> Print {
    let mut printer = Printer { left: KEYS[0] ^ salt, right: KEYS[1] ^ salt.rotate_left(32) };
    value.hash(&mut printer);
    printer.print()
}

/// Digits of the fraction of π.
const KEYS: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];

struct Printer {
    left: u64,
    right: u64,
}

impl Printer {
    fn word(&mut self, word: u64) {
        self.left = fold(self.left ^ word, KEYS[2]);
        self.right = fold(self.right ^ word.rotate_left(29), KEYS[3]);
    }

    fn print(&self) -> Print {
        let high = fold(self.left ^ self.right.rotate_left(17), KEYS[1]);
        let low = fold(self.right ^ high, KEYS[0]);
        u128::from(high) << 64 | u128::from(low)
    }
}

impl Hasher for Printer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        // Without the length, a padded tail would look like zeros that were written.
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, word: u8) {
        self.word(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.word(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.word(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.word(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.word(word as u64);
    }

    fn write_u128(&mut self, word: u128) {
        self.word(word as u64);
        self.word((word >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.print() as u64
    }
}

fn fold(word: u64, key: u64) -> u64 {
    let product = u128::from(word) * u128::from(key);
    product as u64 ^ (product >> 64) as u64
}

/// The hasher of [`Pass`].
#[derive(Default)]
pub(super) struct Passed(u64);

impl Hasher for Passed {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only prints are looked up");
    }

    fn write_u128(&mut self, print: u128) {
        self.0 = print as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sums_know_how_many_but_not_in_which_order() {
        let [a, b] = [print(0, "a"), print(0, "b")];
        let sum = |prints: &[Print]| prints.iter().fold(0, |sum: Print, print| sum.wrapping_add(*print));
        assert_eq!(sum(&[a, b, a]), sum(&[a, a, b]));
        assert_ne!(sum(&[a, b, a]), sum(&[a, b]));
        assert_ne!(sum(&[a, a]), 0);
    }

    #[test]
    fn kinds_are_kept_apart() {
        assert_ne!(print(0, &7u64), print(1, &7u64));
    }

    #[test]
    fn near_values_share_no_half_of_their_prints() {
        let mut halves = BTreeSet::new();
        for value in 0u64..100_000 {
            let print = print(3, &(value, value % 7));
            halves.insert((0, print as u64));
            halves.insert((1, (print >> 64) as u64));
        }
        assert_eq!(halves.len(), 200_000);
    }

    #[test]
    fn texts_and_tails_are_told_apart() {
        assert_ne!(print(0, &[1u8, 0][..]), print(0, &[1u8][..]));
        assert_ne!(print(0, &("ab", "c")), print(0, &("a", "bc")));
    }
}
