//! Puts nodes on the hosts of a latency model, by seed.

use rand::RngExt;

use crate::streams::{Purpose, stream};

/// The host of each node, drawn without replacement; once all are taken, all are drawn again.
///
/// The hosts of the first nodes do not depend on how many more there are.
pub(crate) fn draw(hosts: usize, nodes: usize, seed: u64) -> Vec<u32> {
    let mut chance = stream(seed, Purpose::Placement, 0);
    let mut free: Vec<u32> = (0..hosts as u32).collect();
    (0..nodes)
        .map(|node| {
            let taken = node % hosts;
            let drawn = chance.random_range(taken..hosts);
            free.swap(taken, drawn);
            free[taken]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_host_is_taken_twice_before_all_are_taken_once() {
        let mut drawn = draw(100, 250, 1);
        let (mut twice, mut third) = (drawn.split_off(100), Vec::new());
        third.append(&mut twice.split_off(100));
        for round in [&mut drawn, &mut twice] {
            round.sort_unstable();
            assert!(round.iter().copied().eq(0..100));
        }
        third.sort_unstable();
        third.dedup();
        assert_eq!(third.len(), 50);
    }

    #[test]
    fn one_more_node_moves_no_other() {
        assert_eq!(draw(100, 31, 1)[..30], draw(100, 30, 1));
    }

    #[test]
    fn seeds_draw_different_hosts() {
        assert_ne!(draw(100, 30, 1), draw(100, 30, 2));
    }
}
