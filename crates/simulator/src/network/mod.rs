//! The simulated network: when, how often and whether at all a message arrives.
//!
//! A latency model gives the delay; noise loses, repeats and holds back; cuts stop what crosses them; slow nodes
//! stretch. All of it is known from the start, as a function of the sending time, the two ends and the sender's own
//! stream of chance: any number of threads may ask, in any order, and get the same answers.

mod error;
mod file;
pub mod latency;
pub mod partition;
mod placement;
pub mod quantity;

use rand::Rng;
use serde::Deserialize;
use shoal_model::{Span, Time};

pub use error::Error;

use latency::Latency;
use partition::{Cut, Cuts};
use quantity::{Factor, Odds};

use crate::timetable::Timetable;

/// A network as a scenario describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How long messages take.
    pub latency: latency::Config,
    /// The probability that a message is lost.
    #[serde(default)]
    pub loss: f64,
    /// The probability that a message arrives twice.
    #[serde(default)]
    pub duplication: f64,
    /// The probability that a message is held back, so that later ones overtake it.
    #[serde(default)]
    pub reorder: f64,
    /// The longest that a message is held back, in milliseconds.
    #[serde(default)]
    pub reorder_ms: f64,
    /// Cuts at known times.
    #[serde(default)]
    pub partitions: Vec<partition::Config>,
}

impl Config {
    /// A network that loses, doubles and holds back nothing.
    pub fn calm(latency: latency::Config) -> Config {
        Config { latency, loss: 0.0, duplication: 0.0, reorder: 0.0, reorder_ms: 0.0, partitions: Vec::new() }
    }
}

/// Decides the fate of every message.
#[derive(Clone, Debug)]
pub struct Network {
    nodes: usize,
    latency: Latency,
    noise: Noise,
    /// Noise for a while, in place of the usual.
    storm: Option<Storm>,
    cuts: Cuts,
    slow: Timetable<Factor>,
}

/// What becomes of a message: the delay of each copy that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// It never arrives.
    Lost,
    /// It arrives after this.
    Once(Span),
    /// It arrives twice, in this order or the other.
    Twice(Span, Span),
}

impl Carried {
    /// The delay of each copy.
    pub fn delays(self) -> impl Iterator<Item = Span> {
        let (first, second) = match self {
            Carried::Lost => (None, None),
            Carried::Once(delay) => (Some(delay), None),
            Carried::Twice(first, second) => (Some(first), Some(second)),
        };
        first.into_iter().chain(second)
    }
}

/// What happens to messages by bad luck alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Noise {
    /// The odds that a message is lost.
    pub loss: Odds,
    /// The odds that it arrives twice.
    pub duplication: Odds,
    /// The odds that it is held back.
    pub reorder: Odds,
    /// The longest that it is held back, in microseconds.
    pub reorder_us: u32,
}

impl Noise {
    /// The noise of both at once.
    pub fn and(self, other: Noise) -> Noise {
        Noise {
            loss: self.loss.or(other.loss),
            duplication: self.duplication.or(other.duplication),
            reorder: self.reorder.or(other.reorder),
            reorder_us: self.reorder_us.max(other.reorder_us),
        }
    }

    pub(crate) fn parse(
        fields: &str,
        loss: f64,
        duplication: f64,
        reorder: f64,
        reorder_ms: f64,
    ) -> Result<Noise, Error> {
        let field = |name: &str| format!("{fields}.{name}");
        let noise = Noise {
            loss: Odds::parse(&field("loss"), loss)?,
            duplication: Odds::parse(&field("duplication"), duplication)?,
            reorder: Odds::parse(&field("reorder"), reorder)?,
            reorder_us: quantity::delay(&field("reorder_ms"), reorder_ms)?,
        };
        if (noise.reorder == Odds::NEVER) != (noise.reorder_us == 0) {
            let what = "goes with `reorder`: set both, or neither";
            return Err(Error::field(field("reorder_ms"), what));
        }
        Ok(noise)
    }
}

#[derive(Clone, Copy, Debug)]
struct Storm {
    from: Time,
    until: Time,
    noise: Noise,
}

impl Network {
    /// The network of so many nodes, those that join later included.
    pub fn build(config: &Config, nodes: usize, seed: u64) -> Result<Network, Error> {
        let Config { latency, loss, duplication, reorder, reorder_ms, partitions } = config;
        let cuts = (0..).zip(partitions).map(|(index, cut)| cut.build(index, nodes, seed));
        Ok(Network {
            nodes,
            latency: Latency::build(latency, nodes, seed)?,
            noise: Noise::parse("network", *loss, *duplication, *reorder, *reorder_ms)?,
            storm: None,
            cuts: Cuts::new(cuts.collect::<Result<_, _>>()?),
            slow: Timetable::default(),
        })
    }

    /// Cuts it in these places too.
    pub fn with_cuts(mut self, more: impl IntoIterator<Item = Cut>) -> Network {
        let mut cuts = self.cuts.into_vec();
        cuts.extend(more);
        self.cuts = Cuts::new(cuts);
        self
    }

    /// Slows nodes down: what they send and are sent takes longer by the factor; the last timetable given counts.
    pub fn with_slow(mut self, slow: Timetable<Factor>) -> Network {
        self.slow = slow;
        self
    }

    /// Adds this noise to the usual in the time from `from` to `until`; the last one given counts.
    pub fn with_storm(mut self, from: Time, until: Time, noise: Noise) -> Network {
        self.storm = Some(Storm { from, until, noise: self.noise.and(noise) });
        self
    }

    /// How many nodes it joins.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Where a node is, if this network knows places: its distance to another is then the round trip between them, but
    /// for the least delay and for chance.
    pub fn place(&self, node: usize) -> Option<shoal_model::Coordinates> {
        let (x_us, y_us) = self.latency.place(node)?;
        Some(shoal_model::Coordinates::in_plane(2 * x_us, 2 * y_us))
    }

    /// No message between two nodes is quicker: how far threads may run ahead of each other.
    pub fn least_delay(&self) -> Span {
        Span::from_micros(u64::from(self.latency.least()))
    }

    /// From when on there are no cuts, slow nodes or storms any more.
    pub fn calm_from(&self) -> Time {
        let storm = self.storm.map_or(Time::ZERO, |storm| storm.until);
        self.cuts.end().max(self.slow.end()).max(storm)
    }

    /// The fate of a message sent now; `chance` is the sender's stream for what it sends.
    ///
    /// # Panics
    /// If there is no such node.
    #[inline]
    pub fn carry(&self, now: Time, from: usize, to: usize, chance: &mut impl Rng) -> Carried {
        if self.cuts.stop(now, from, to) {
            return Carried::Lost;
        }
        let noise = match &self.storm {
            Some(storm) if storm.from <= now && now < storm.until => &storm.noise,
            _ => &self.noise,
        };
        if noise.loss.hit(chance) {
            return Carried::Lost;
        }
        let first = self.delay(now, from, to, noise, chance);
        if noise.duplication.hit(chance) {
            return Carried::Twice(first, self.delay(now, from, to, noise, chance));
        }
        Carried::Once(first)
    }

    #[inline]
    fn delay(&self, now: Time, from: usize, to: usize, noise: &Noise, chance: &mut impl Rng) -> Span {
        let mut micros = self.latency.draw(from, to, chance);
        if noise.reorder.hit(chance) {
            micros += u64::from(quantity::up_to(noise.reorder_us, chance));
        }
        let delay = Span::from_micros(micros);
        if now >= self.slow.end() {
            return delay;
        }
        // The slower end sets the pace.
        self.slow.at(from, now).max(self.slow.at(to, now)).map_or(delay, |factor| factor.of(delay))
    }
}

#[cfg(test)]
mod tests;
