//! How long a message takes from node to node: one file per model.

mod clustered;
mod constant;
mod coordinates;
mod matrix;
mod plane;
mod uniform;

use rand::Rng;
use serde::Deserialize;

pub use clustered::Clustered;
pub use constant::Constant;
pub use coordinates::Coordinates;
pub use matrix::Matrix;
pub use uniform::Uniform;

use super::error::Error;
use super::quantity;

/// Which latency model, and its parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Config {
    /// Every message takes the same time.
    Constant(Constant),
    /// Every time between two bounds is equally likely, for every pair.
    Uniform(Uniform),
    /// Distance between the coordinates of hosts in a file.
    Coordinates(Coordinates),
    /// Distance between made-up coordinates that lie in clusters.
    Clustered(Clustered),
    /// Half the round-trip time of hosts in a file.
    Matrix(Matrix),
}

/// Reads the text of a file of coordinates and says how many hosts it has, for who tries what can be read.
#[doc(hidden)]
pub fn read_coordinates(text: &str) -> Result<usize, Error> {
    coordinates::parse(text, "coordinates".as_ref(), 1.0).map(|hosts| hosts.len())
}

/// The same of a file with a matrix of times.
#[doc(hidden)]
pub fn read_matrix(text: &str) -> Result<usize, Error> {
    matrix::parse(text, "matrix".as_ref()).map(|table| table.hosts)
}

/// A latency model with its nodes in place.
#[derive(Clone, Debug)]
pub(crate) enum Latency {
    Constant(u32),
    Uniform { least: u32, width: u32 },
    Plane(plane::Plane),
    Matrix(matrix::Placed),
}

impl Latency {
    pub(crate) fn build(config: &Config, nodes: usize, seed: u64) -> Result<Latency, Error> {
        Ok(match config {
            Config::Constant(constant) => Latency::Constant(constant.delay()?),
            Config::Uniform(uniform) => {
                let (least, width) = uniform.bounds()?;
                Latency::Uniform { least, width }
            }
            Config::Coordinates(coordinates) => Latency::Plane(coordinates.place(nodes, seed)?),
            Config::Clustered(clustered) => Latency::Plane(clustered.place(nodes, seed)?),
            Config::Matrix(matrix) => Latency::Matrix(matrix.place(nodes, seed)?),
        })
    }

    /// One-way delay in microseconds; at most [`quantity::DELAY_MAX`] and its jitter.
    #[inline]
    pub(crate) fn draw(&self, from: usize, to: usize, chance: &mut impl Rng) -> u64 {
        match self {
            Latency::Constant(delay) => u64::from(*delay),
            Latency::Uniform { least, width } => u64::from(least + quantity::up_to(*width, chance)),
            Latency::Plane(plane) => plane.draw(from, to, chance),
            Latency::Matrix(matrix) => matrix.draw(from, to, chance),
        }
    }

    /// Where a node is, in microseconds of one-way delay, if the model knows places.
    pub(crate) fn place(&self, node: usize) -> Option<(i64, i64)> {
        match self {
            Latency::Plane(plane) => plane.place(node),
            Latency::Constant(_) | Latency::Uniform { .. } | Latency::Matrix(_) => None,
        }
    }

    /// A lower bound of the delays between any two nodes, in microseconds.
    pub(crate) fn least(&self) -> u32 {
        match self {
            Latency::Constant(delay) => *delay,
            Latency::Uniform { least, .. } => *least,
            Latency::Plane(plane) => plane.least(),
            Latency::Matrix(matrix) => matrix.least(),
        }
    }
}

/// What is shared by the models that know a distance for each pair.
#[derive(Clone, Copy, Debug)]
struct Spread {
    /// No message is quicker, however close the hosts.
    floor: u32,
    /// The largest addition, as a part of the distance in steps of 2⁻¹⁶.
    jitter: u32,
}

/// The largest jitter that can be configured: ten times the distance on top.
const JITTER_MAX: f64 = 10.0;

impl Spread {
    fn parse(least_ms: f64, jitter: f64) -> Result<Spread, Error> {
        if !(0.0..=JITTER_MAX).contains(&jitter) {
            let what = format!("must be a part of the delay from 0 to {JITTER_MAX}, not {jitter}");
            return Err(Error::field("network.latency.jitter", what));
        }
        let floor = quantity::delay("network.latency.least_ms", least_ms)?;
        Ok(Spread { floor, jitter: (jitter * f64::from(1 << 16)).round() as u32 })
    }

    #[inline]
    fn draw(self, distance: u32, chance: &mut impl Rng) -> u64 {
        let base = u64::from(distance.max(self.floor));
        if self.jitter == 0 {
            return base;
        }
        let most = (base * u64::from(self.jitter)) >> 16;
        base + ((u128::from(most) * u128::from(chance.next_u32())) >> 32) as u64
    }
}

fn least_ms() -> f64 {
    0.1
}

fn too_few_hosts(hosts: usize, nodes: usize) -> String {
    format!(
        "has {hosts} hosts, too few for {nodes} nodes: set `share_hosts = true` to put several on each, or `nodes` to {hosts} or less"
    )
}
