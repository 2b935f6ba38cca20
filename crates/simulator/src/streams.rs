//! Where chance comes from: one seed, and out of it a stream of its own for every purpose and index.
//!
//! Streams do not share draws: one more node, thread or fault leaves the luck of all others as it was.

use rand_xoshiro::Xoshiro128PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// A stream of random numbers: 16 bytes of state, so that a million nodes can have two each.
pub type Stream = Xoshiro128PlusPlus;

/// What a stream is for. The numbers are part of what a seed means: give a new purpose a new one, reuse none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// What a node's own core draws; index: the node.
    Node = 1,
    /// Delay and loss of what a node sends; index: the node.
    Carriage = 2,
    /// Which host of a latency model a node sits on; index: the node, or 0 for a draw over all hosts.
    Placement = 3,
    /// Which jobs come when; index: the user or source.
    Workload = 4,
    /// Crashes and repairs; index: the node.
    Churn = 5,
    /// Failures of many nodes at once; index: 0 for their times, then the failure.
    Bursts = 6,
    /// Cuts of the network; index: 0 for their times, then the cut.
    Partitions = 7,
    /// Spells of slowness; index: the node.
    Slowness = 8,
    /// Spells of a slow disk; index: the node.
    Disks = 9,
    /// Offsets, drifts and jumps of clocks; index: the node.
    Clocks = 10,
    /// Arrivals of new nodes; index: 0.
    Joins = 11,
    /// Through which node a job enters the grid; index: the job.
    Entry = 12,
    /// Whom a node knows from the start; index: the node.
    Acquaintance = 13,
    /// The size, the faults and the jobs of a storm; index: 0.
    Storm = 14,
    /// What a machine is like; index: the node.
    Machines = 15,
}

/// The stream of this purpose and index under this seed.
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Stream {
    let key = key(seed, purpose, index);
    let mut state = [0; 16];
    state[..8].copy_from_slice(&mix(key).to_le_bytes());
    state[8..].copy_from_slice(&mix(!key).to_le_bytes());
    Stream::from_seed(state)
}

/// A number that stands for this purpose and index under this seed, where one draw is all that is needed.
pub fn key(seed: u64, purpose: Purpose, index: u64) -> u64 {
    mix(mix(mix(seed) ^ purpose as u64) ^ index)
}

/// One step of SplitMix64: a bijection whose every output bit depends on every input bit.
pub fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::Rng;

    use super::*;

    #[test]
    fn mix_is_the_published_splitmix64() {
        // First outputs for seed 0 of the reference implementation.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn what_a_seed_means_does_not_change() {
        // Worked out apart from this code, from the definitions of SplitMix64 and xoshiro128++.
        let mut stream = stream(42, Purpose::Node, 7);
        let drawn = [stream.next_u32(), stream.next_u32(), stream.next_u32()];
        assert_eq!(drawn, [3_431_771_615, 4_268_938_160, 9_799_970]);
    }

    #[test]
    fn neighbouring_seeds_purposes_and_indices_share_no_stream() {
        let purposes = [Purpose::Node, Purpose::Carriage, Purpose::Placement, Purpose::Churn];
        let mut firsts = BTreeSet::new();
        for seed in 0..10 {
            for purpose in purposes {
                for index in 0..1_000 {
                    firsts.insert(stream(seed, purpose, index).next_u64());
                }
            }
        }
        assert_eq!(firsts.len(), 10 * purposes.len() * 1_000);
    }

    #[test]
    fn first_draws_of_neighbouring_streams_look_independent() {
        let ones: u32 = (0..10_000)
            .map(|index| {
                let here = stream(1, Purpose::Node, index).next_u64();
                let next = stream(1, Purpose::Node, index + 1).next_u64();
                (here ^ next).count_ones()
            })
            .sum();
        let mean = f64::from(ones) / 10_000.0;
        assert!((mean - 32.0).abs() < 0.2, "neighbours differ in {mean} bits of 64, not 32");
    }
}
