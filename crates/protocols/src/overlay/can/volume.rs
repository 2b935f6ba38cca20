//! Volumes of zones: exact, and larger than any machine word.

/// Words enough for [`super::zone::DIMENSIONS_MAX`] sides of 31 bits.
const WORDS: usize = 3;

/// So many cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Volume([u64; WORDS]);

impl Volume {
    /// A single cell.
    pub const ONE: Volume = Volume([1, 0, 0]);
    /// Nothing.
    pub const ZERO: Volume = Volume([0; WORDS]);

    /// So many times as much.
    pub fn times(self, factor: u32) -> Volume {
        let mut carry = 0u128;
        Volume(self.0.map(|word| {
            let product = u128::from(word) * u128::from(factor) + carry;
            carry = product >> 64;
            product as u64
        }))
    }

    /// The sum.
    pub fn plus(self, other: Volume) -> Volume {
        let mut sum = [0; WORDS];
        let mut carry = false;
        for ((sum, a), b) in sum.iter_mut().zip(self.0).zip(other.0) {
            let (once, first) = a.overflowing_add(b);
            let (twice, second) = once.overflowing_add(u64::from(carry));
            (*sum, carry) = (twice, first || second);
        }
        Volume(sum)
    }

    /// How many bits it takes to write it down: a logarithm.
    pub fn bits(self) -> u32 {
        let used = self.0.iter().rposition(|&word| word != 0);
        used.map_or(0, |at| at as u32 * 64 + (64 - self.0[at].leading_zeros()))
    }
}

impl Ord for Volume {
    fn cmp(&self, other: &Volume) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for Volume {
    fn partial_cmp(&self, other: &Volume) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::iter::Sum for Volume {
    fn sum<I: Iterator<Item = Volume>>(volumes: I) -> Volume {
        volumes.fold(Volume::ZERO, Volume::plus)
    }
}
