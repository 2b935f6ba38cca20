//! Vivaldi: a node finds its network coordinates from the round trips to others, as if springs pulled it into place.
//!
//! Paper: Dabek, Cox, Kaashoek, Morris, 2004, with heights. In whole numbers: places in ticks of a tenth of a
//! microsecond, errors and weights in millionths. Done otherwise: a sample of nothing or of more than
//! [`RTT_MAX`] is dropped, and no sample moves a node by more than [`STEP_MAX`], so that a liar can drag it only slowly.

use rand::RngExt;
use shoal_model::coordinates::{self, Coordinates, DIMENSIONS};
use shoal_model::{Span, Time};

use crate::protocol::Chance;

/// One: errors and weights are millionths.
pub const ONE: u32 = 1_000_000;
/// What a node that knows nothing takes its error to be (e_0), and the largest that there is (e_max).
pub const ERROR_MAX: u32 = 1_500_000;
/// The part of a sample's error that an error takes on (c_e), and of a sample's force that a place follows (c_c): a
/// quarter.
const SHARE: u64 = 4;
/// The least height (h_min), 10 µs.
const HEIGHT_MIN: i64 = 100;
/// No sample moves a node further.
pub const STEP_MAX: Span = Span::from_millis(100);
/// A longer round trip says more about a queue than about a way.
pub const RTT_MAX: Span = Span::from_secs(10);

/// Where a node thinks it is, and how sure it is of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vivaldi {
    coordinates: Coordinates,
    /// In millionths; 0 is certain.
    error: u32,
}

impl Default for Vivaldi {
    fn default() -> Vivaldi {
        Vivaldi { coordinates: Coordinates::new([0; DIMENSIONS], HEIGHT_MIN), error: ERROR_MAX }
    }
}

impl Vivaldi {
    /// Where this node thinks it is.
    pub fn coordinates(&self) -> Coordinates {
        self.coordinates
    }

    /// How far off its distances are, as a part of them, in millionths.
    pub fn error(&self) -> u32 {
        self.error
    }

    /// A message to a node there, so sure of itself, took so long there and back; tells whether that was of use.
    pub fn sample(&mut self, rtt: Span, there: &Coordinates, their_error: u32, chance: &mut Chance) -> bool {
        if rtt == Span::ZERO || rtt > RTT_MAX {
            return false;
        }
        let rtt = coordinates::ticks(rtt);
        let their_error = their_error.min(ERROR_MAX);
        let distance = self.coordinates.distance(there);
        let weight = match u64::from(self.error) + u64::from(their_error) {
            0 => u64::from(ONE) / 2,
            both => u64::from(self.error) * u64::from(ONE) / both,
        };
        let taken = weight / SHARE;
        let off = distance.abs_diff(rtt).saturating_mul(u64::from(ONE)) / rtt;
        let kept = u64::from(self.error) * (u64::from(ONE) - taken);
        let error = (off.min(1 << 40) * taken + kept) / u64::from(ONE);
        self.error = error.min(u64::from(ERROR_MAX)) as u32;

        let pull = (rtt as i64 - distance as i64) * taken as i64 / i64::from(ONE);
        self.shift(pull, there, chance);
        true
    }

    /// Moves away from there by so much, or nearer, and its height in proportion; both together by the clip at most.
    fn shift(&mut self, by: i64, there: &Coordinates, chance: &mut Chance) {
        let step = coordinates::ticks(STEP_MAX) as i64;
        let heights = i64::from(self.coordinates.height()) + i64::from(there.height());
        let way = self.coordinates.way(there) as i64;
        let mut along = by;
        let mut up = if heights == 0 { 0 } else { by * heights / (way + heights) };
        let both = along.abs() + up.abs();
        if both > step {
            along = along * step / both;
            up = up * step / both;
        }
        let mut apart = [0_i64; DIMENSIONS];
        for (place, part) in apart.iter_mut().enumerate() {
            *part = i64::from(self.coordinates.at()[place]) - i64::from(there.at()[place]);
        }
        let mut norm = way;
        if norm == 0 {
            // In one place: any direction is as good as another.
            apart = std::array::from_fn(|_| chance.random_range(-1_000..=1_000));
            norm = coordinates::root(apart.iter().map(|part| (part * part) as u64).sum()) as i64;
        }
        let mut at = self.coordinates.at().map(i64::from);
        if norm > 0 {
            for (part, apart) in at.iter_mut().zip(apart) {
                *part += along * apart / norm;
            }
        }
        let height = (i64::from(self.coordinates.height()) + up).max(HEIGHT_MIN);
        self.coordinates = Coordinates::new(at, height);
    }
}

/// The quickest of several round trips to one node: what is slower stood in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quickest {
    /// When the question left that is still open.
    asked_at: Option<Time>,
    least: Option<Span>,
}

impl Quickest {
    /// Nothing measured yet.
    pub fn new() -> Quickest {
        Quickest { asked_at: None, least: None }
    }

    /// A question leaves.
    pub fn ask(&mut self, now: Time) {
        self.asked_at = Some(now);
    }

    /// Its answer is there; one that nobody asked for counts for nothing.
    pub fn answer(&mut self, now: Time) {
        if let Some(asked_at) = self.asked_at.take() {
            let took = now.since(asked_at);
            self.least = Some(self.least.map_or(took, |least| least.min(took)));
        }
    }

    /// The least of them.
    pub fn least(&self) -> Option<Span> {
        self.least
    }
}

impl Default for Quickest {
    fn default() -> Quickest {
        Quickest::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;
    use crate::testing::cases;

    /// Nodes with true places in the plane sample each other at random; the median relative error of all pairs after.
    fn median_error(places: &[Coordinates], samples: usize, seed: u64) -> f64 {
        let mut chance = Chance::seed_from_u64(seed);
        let mut nodes = vec![Vivaldi::default(); places.len()];
        for _ in 0..samples {
            for me in 0..nodes.len() {
                let other = chance.random_range(0..nodes.len());
                if other != me {
                    let rtt = coordinates::span(places[me].distance(&places[other]));
                    let Vivaldi { coordinates, error } = nodes[other];
                    nodes[me].sample(rtt, &coordinates, error, &mut chance);
                }
            }
        }
        let mut errors = Vec::new();
        for a in 0..nodes.len() {
            for b in 0..a {
                let truth = places[a].distance(&places[b]) as f64;
                let guess = nodes[a].coordinates.distance(&nodes[b].coordinates) as f64;
                if truth > 0.0 {
                    errors.push((guess - truth).abs() / truth);
                }
            }
        }
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    }

    /// W2.
    #[test]
    fn in_a_flat_world_the_median_error_falls_below_a_twentieth() {
        for seed in 1..=3 {
            let mut chance = Chance::seed_from_u64(100 + seed);
            let mut part = || chance.random_range(0..100_000);
            let places: Vec<_> = (0..150).map(|_| Coordinates::in_plane(part(), part())).collect();
            let error = median_error(&places, 200, seed);
            assert!(error < 0.05, "{error}");
        }
    }

    /// W3 in kind: a world with last links of its own, which no point in the plane can show.
    #[test]
    fn last_links_are_learnt_as_heights() {
        let mut chance = Chance::seed_from_u64(5);
        let places: Vec<_> = (0..150)
            .map(|_| {
                let part = |chance: &mut Chance| chance.random_range(0..500_000);
                Coordinates::new([part(&mut chance), part(&mut chance), 0, 0], part(&mut chance) / 2)
            })
            .collect();
        let error = median_error(&places, 200, 1);
        assert!(error < 0.10, "{error}");
    }

    #[test]
    fn two_nodes_in_one_place_part() {
        let mut chance = Chance::seed_from_u64(1);
        let mut node = Vivaldi::default();
        let other = Vivaldi::default();
        for _ in 0..100 {
            assert!(node.sample(Span::from_millis(20), &other.coordinates, ONE / 10, &mut chance));
        }
        let found = coordinates::span(node.coordinates.distance(&other.coordinates));
        assert!((19_000..21_000).contains(&found.as_micros()), "{found:?}");
    }

    #[test]
    fn nonsense_is_no_sample() {
        let mut chance = Chance::seed_from_u64(1);
        let mut node = Vivaldi::default();
        for rtt in [Span::ZERO, RTT_MAX + Span::from_micros(1), Span::MAX] {
            assert!(!node.sample(rtt, &Coordinates::ORIGIN, 0, &mut chance));
        }
        assert_eq!(node, Vivaldi::default());
    }

    proptest! {
        #![proptest_config(cases(500))]

        /// W1 and W4: whatever others say, a node stays in the world, and moves by the clip at most.
        #[test]
        fn no_sample_moves_a_node_by_more_than_the_clip(
            samples in prop::collection::vec(
                (any::<u64>(), prop::array::uniform4(any::<i32>()), any::<u32>(), any::<u32>()),
                1..20,
            ),
        ) {
            let mut chance = Chance::seed_from_u64(1);
            let mut node = Vivaldi::default();
            for (rtt, at, height, error) in samples {
                let before = node.coordinates;
                let there = Coordinates::new(at.map(i64::from), i64::from(height));
                node.sample(Span::from_micros(rtt % 12_000_000), &there, error, &mut chance);
                let moved = before.way(&node.coordinates)
                    + u64::from(before.height().abs_diff(node.coordinates.height()));
                prop_assert!(moved <= coordinates::ticks(STEP_MAX) + 4, "{moved}");
                prop_assert!(node.error <= ERROR_MAX);
                prop_assert!(i64::from(node.coordinates.height()) >= HEIGHT_MIN);
            }
        }
    }

    #[test]
    fn the_quickest_answer_counts_and_only_one_that_was_asked_for() {
        let mut quickest = Quickest::new();
        quickest.answer(Time::from_secs(1));
        assert_eq!(quickest.least(), None);
        for (asked, answered) in [(10, 15), (20, 22), (30, 39)] {
            quickest.ask(Time::from_secs(asked));
            quickest.answer(Time::from_secs(answered));
            quickest.answer(Time::from_secs(answered));
        }
        assert_eq!(quickest.least(), Some(Span::from_secs(2)));
    }
}
