//! Made-up coordinates: sites scattered over a square, nodes scattered about their site.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::Deserialize;

use super::plane::{Plane, Point};
use super::{Spread, least_ms};
use crate::network::error::Error;
use crate::network::quantity;
use crate::streams::{Purpose, Stream, stream};

/// The most sites that can be asked for.
const SITES_MAX: u32 = 1_000_000;

/// A world of sites, when there is no file of hosts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clustered {
    /// How many sites there are; each node belongs to one, all equally likely.
    pub sites: u32,
    /// One-way delay along a side of the square, in milliseconds.
    pub side_ms: f64,
    /// Standard deviation of a node's distance from its site along each axis, in milliseconds.
    pub spread_ms: f64,
    /// No message is quicker than this, in milliseconds.
    #[serde(default = "least_ms")]
    pub least_ms: f64,
    /// The largest random addition to a delay, as a part of it.
    #[serde(default)]
    pub jitter: f64,
}

impl Clustered {
    pub(super) fn place(&self, nodes: usize, seed: u64) -> Result<Plane, Error> {
        if !(1..=SITES_MAX).contains(&self.sites) {
            let what = format!("must be from 1 to {SITES_MAX}, not {}", self.sites);
            return Err(Error::field("network.latency.sites", what));
        }
        let side = quantity::delay("network.latency.side_ms", self.side_ms)? as f32;
        let deviation = quantity::delay("network.latency.spread_ms", self.spread_ms)? as f32;
        let spread = Spread::parse(self.least_ms, self.jitter)?;

        let scatter = |chance: &mut Stream| Point {
            x: chance.random::<f32>() * side,
            y: chance.random::<f32>() * side,
        };
        // Stream 0 draws the sites, so that nodes have streams from 1 on.
        let mut chance = stream(seed, Purpose::Placement, 0);
        let sites: Vec<Point> = (0..self.sites).map(|_| scatter(&mut chance)).collect();
        let points = (1..=nodes as u64)
            .map(|node| {
                let mut chance = stream(seed, Purpose::Placement, node);
                let site = sites[quantity::up_to(self.sites - 1, &mut chance) as usize];
                let mut stray = || -> f32 { StandardNormal.sample(&mut chance) };
                Point { x: site.x + stray() * deviation, y: site.y + stray() * deviation }
            })
            .collect();
        Ok(Plane::new(points, spread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Clustered {
        Clustered { sites: 5, side_ms: 100.0, spread_ms: 1.0, least_ms: 0.1, jitter: 0.0 }
    }

    fn distances(plane: &Plane, nodes: usize) -> Vec<u64> {
        let mut chance = stream(0, Purpose::Carriage, 0);
        let pairs = (0..nodes).flat_map(|from| (0..from).map(move |to| (from, to)));
        pairs.map(|(from, to)| plane.draw(from, to, &mut chance)).collect()
    }

    #[test]
    fn a_fifth_of_all_pairs_shares_one_of_five_sites() {
        let plane = config().place(300, 1).unwrap();
        let distances = distances(&plane, 300);
        let near = distances.iter().filter(|&&delay| delay < 6_000).count() as f64 / distances.len() as f64;
        assert!((0.17..0.23).contains(&near), "{near} of the pairs are near");
    }

    #[test]
    fn one_more_node_moves_no_other() {
        let (few, more) = (config().place(30, 1).unwrap(), config().place(31, 1).unwrap());
        assert_eq!(distances(&few, 30), distances(&more, 30));
    }

    #[test]
    fn no_sites_are_refused() {
        let error = Clustered { sites: 0, ..config() }.place(3, 1).unwrap_err();
        assert_eq!(error.to_string(), "network.latency.sites: must be from 1 to 1000000, not 0");
    }
}
