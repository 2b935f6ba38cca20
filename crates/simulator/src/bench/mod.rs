//! How fast the simulator is: the work of a gossip overlay through nodes in a world, beside the same as a bare loop;
//! and a published simulation at its full size.

pub mod asap;
mod bare;
pub mod cyclon;
mod events;
pub mod memory;
mod tuned;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shoal_model::Time;

    use super::bare::Bare;
    use super::cyclon::{CACHE, PERIOD};
    use super::events::Events;
    use super::tuned::Tuned;

    const NODES: usize = 300;
    const CYCLES: usize = 50;

    /// The loops after a while, from a ring; each as the lists of whom each node knows.
    fn loops() -> [Vec<Vec<usize>>; 3] {
        let ring = |node| std::array::from_fn(|place| (node + 1 + place as u32) % NODES as u32);
        let mut bare = Bare::new(NODES as u32, 1, ring);
        let mut tuned = Tuned::new(NODES as u32, 1, ring);
        let mut events = Events::new(NODES as u32, 1, ring);
        events.run_before(Time::ZERO + PERIOD * CYCLES as u64);
        for _ in 0..CYCLES {
            bare.cycle();
            tuned.cycle();
        }
        [bare.known().collect(), tuned.known().collect(), events.known().collect()]
    }

    #[test]
    fn caches_stay_full_of_different_others() {
        for caches in loops() {
            assert_eq!(caches.len(), NODES);
            for (me, cache) in caches.iter().enumerate() {
                let known: BTreeSet<usize> = cache.iter().copied().collect();
                assert_eq!(known.len(), cache.len());
                assert!(known.len() >= CACHE - 1 && !known.contains(&me));
                assert!(known.iter().all(|&node| node < NODES));
            }
        }
    }

    #[test]
    fn in_degrees_become_those_of_a_random_graph() {
        for caches in loops() {
            let mut known_by = [0u32; NODES];
            for &node in caches.iter().flatten() {
                known_by[node] += 1;
            }
            let most = known_by.iter().max().unwrap();
            assert!(known_by.iter().all(|&count| count > 5) && *most < 40, "{most}");
            // The ring that it started from is forgotten: by chance alone 400 of 6000 entries are near.
            let near = |me: usize, node: usize| (node + NODES - me) % NODES <= CACHE;
            let still =
                |(me, cache): (usize, &Vec<usize>)| cache.iter().filter(|&&node| near(me, node)).count();
            let still: usize = caches.iter().enumerate().map(still).sum();
            assert!(still < 800, "{still}");
        }
    }
}
