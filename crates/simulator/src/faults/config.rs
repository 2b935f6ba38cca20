//! Faults as a scenario describes them: `faults = "light"`, or a table.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Disk;
use crate::network::partition::{Direction, Group};

/// How much goes wrong, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Nothing.
    #[default]
    None,
    /// What a well-kept grid sees: a crash here and there, now and then a cut or a lost message.
    Light,
    /// What no grid should see: everything at once, often.
    Heavy,
}

/// What goes wrong: a preset, its parts replaced by those given here, and single faults.
///
/// The random parts keep to the window from `from_s` to `until_s`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Config {
    /// What holds where nothing else is said.
    #[serde(default)]
    pub preset: Preset,
    /// When random faults begin, in seconds; 60 if not given.
    pub from_s: Option<f64>,
    /// When random faults end and the world heals, in seconds; 3600 if not given.
    pub until_s: Option<f64>,
    /// Messages lost, repeated and held back.
    pub noise: Option<NoiseLevel>,
    /// Nodes that crash one by one.
    pub churn: Option<Churn>,
    /// Many nodes that crash at once.
    pub bursts: Option<Bursts>,
    /// Cuts of the network.
    pub partitions: Option<Partitions>,
    /// Nodes that are slow for a while.
    pub slow: Option<Slowness>,
    /// Disks that are slow for a while.
    pub disks: Option<Disks>,
    /// Clocks that are off.
    pub clocks: Option<Clocks>,
    /// Nodes that are new.
    pub joins: Option<Joins>,
    /// Single faults, inside the window or not.
    #[serde(default)]
    pub events: Vec<Listed>,
}

/// Noise of the network on top of its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoiseLevel {
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message arrives twice.
    pub duplication: f64,
    /// The probability that a message is held back.
    pub reorder: f64,
    /// The longest that a message is held back, in milliseconds.
    pub reorder_ms: f64,
}

/// Each node crashes at random times, all instants alike, and is repaired at random.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Churn {
    /// How long a node is up on average, in seconds.
    pub mean_time_to_failure_s: f64,
    /// How long a node is down on average, in seconds.
    pub mean_time_to_repair_s: f64,
    /// The share of crashes after which the node never comes back.
    #[serde(default)]
    pub gone: f64,
    /// The share of crashes that cost the node its disk.
    #[serde(default)]
    pub disk_lost: f64,
    /// The share of crashes in the middle of the effects of an input.
    #[serde(default)]
    pub midway: f64,
}

/// A share of all nodes crashes at once, at random times; each is repaired at random.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// How long it is from one to the next on average, in seconds.
    pub every_s: f64,
    /// The share of nodes that crash.
    pub share: f64,
    /// How long each is down on average, in seconds.
    pub mean_time_to_repair_s: f64,
}

/// The network is cut at random times into two random sides.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partitions {
    /// How long it is from one to the next on average, in seconds.
    pub every_s: f64,
    /// How long each lasts on average, in seconds.
    pub length_s: f64,
    /// The largest share of nodes on the smaller side; all shares up to it are alike.
    #[serde(default = "half")]
    pub share_max: f64,
    /// The share of cuts that stop messages one way only.
    #[serde(default)]
    pub one_way: f64,
}

/// Each node is slow at random times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slowness {
    /// How long a node is as quick as ever on average, in seconds.
    pub every_s: f64,
    /// How long it is slow on average, in seconds.
    pub length_s: f64,
    /// How much longer its messages take then.
    pub factor: f64,
}

/// Each node's disk is slow at random times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disks {
    /// How long a disk is as quick as ever on average, in seconds.
    pub every_s: f64,
    /// How long it is slow on average, in seconds.
    pub length_s: f64,
    /// How much longer a save takes then, in milliseconds.
    pub fsync_ms: f64,
}

/// Clocks differ from the start, drift in the window, and are set at random times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// How far ahead a clock is at most from the start, in milliseconds; all offsets up to it are alike.
    #[serde(default)]
    pub offset_ms: f64,
    /// How fast a clock drifts at most, either way, in parts per million; all drifts up to it are alike.
    #[serde(default)]
    pub drift_ppm: u32,
    /// How long it is from one jump of a clock to the next on average, in seconds; no jumps if not given.
    pub jump_every_s: Option<f64>,
    /// How far a clock jumps at most, either way, in milliseconds; all jumps up to it are alike.
    #[serde(default)]
    pub jump_ms: f64,
}

/// New nodes join at random times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joins {
    /// How long it is from one to the next on average, in seconds.
    pub every_s: f64,
    /// Whether it is always that long.
    #[serde(default)]
    pub regular: bool,
}

/// A single fault at a known time, in seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of `Fault`, with their units")]
pub enum Listed {
    /// A node crashes and is restarted after a while.
    Crash {
        at_s: f64,
        node: usize,
        for_s: f64,
        #[serde(default)]
        disk: Disk,
        after_effects: Option<u32>,
    },
    /// A node leaves for good.
    Leave { at_s: f64, node: usize },
    /// A new node joins; it has the next free index.
    Join { at_s: f64 },
    /// A node is slow for a while.
    Slow { at_s: f64, node: usize, for_s: f64, factor: f64 },
    /// A disk is slow for a while.
    SlowDisk { at_s: f64, node: usize, for_s: f64, fsync_ms: f64 },
    /// A clock drifts for a while.
    Drift { at_s: f64, node: usize, for_s: f64, ppm: i32 },
    /// A clock is set forward, or back.
    Jump { at_s: f64, node: usize, by_ms: f64 },
    /// The network is cut for a while.
    Cut {
        at_s: f64,
        for_s: f64,
        name: String,
        group: Group,
        #[serde(default)]
        direction: Direction,
    },
}

impl From<Preset> for Config {
    fn from(preset: Preset) -> Config {
        Config { preset, ..Config::default() }
    }
}

impl Config {
    /// The configuration with its preset spelt out.
    ///
    /// No preset loses nodes or disks for good: what a grid promises, it promises within the disks that it may lose.
    pub fn spelt_out(&self) -> Config {
        let base = match self.preset {
            Preset::None => Config::default(),
            Preset::Light => light(),
            Preset::Heavy => heavy(),
        };
        let own = self.clone();
        Config {
            preset: Preset::None,
            from_s: own.from_s.or(Some(60.0)),
            until_s: own.until_s.or(Some(3_600.0)),
            noise: own.noise.or(base.noise),
            churn: own.churn.or(base.churn),
            bursts: own.bursts.or(base.bursts),
            partitions: own.partitions.or(base.partitions),
            slow: own.slow.or(base.slow),
            disks: own.disks.or(base.disks),
            clocks: own.clocks.or(base.clocks),
            joins: own.joins.or(base.joins),
            events: own.events,
        }
    }
}

fn light() -> Config {
    Config {
        noise: Some(NoiseLevel { loss: 0.005, duplication: 0.001, reorder: 0.005, reorder_ms: 200.0 }),
        churn: Some(Churn {
            mean_time_to_failure_s: 4.0 * 3_600.0,
            mean_time_to_repair_s: 120.0,
            gone: 0.0,
            disk_lost: 0.0,
            midway: 0.5,
        }),
        partitions: Some(Partitions { every_s: 1_200.0, length_s: 30.0, share_max: 0.5, one_way: 0.0 }),
        clocks: Some(Clocks { offset_ms: 50.0, drift_ppm: 50, jump_every_s: None, jump_ms: 0.0 }),
        ..Config::default()
    }
}

fn heavy() -> Config {
    Config {
        noise: Some(NoiseLevel { loss: 0.05, duplication: 0.02, reorder: 0.05, reorder_ms: 2_000.0 }),
        churn: Some(Churn {
            mean_time_to_failure_s: 600.0,
            mean_time_to_repair_s: 60.0,
            gone: 0.0,
            disk_lost: 0.0,
            midway: 0.5,
        }),
        bursts: Some(Bursts { every_s: 900.0, share: 0.2, mean_time_to_repair_s: 60.0 }),
        partitions: Some(Partitions { every_s: 300.0, length_s: 60.0, share_max: 0.5, one_way: 0.3 }),
        slow: Some(Slowness { every_s: 1_800.0, length_s: 60.0, factor: 20.0 }),
        disks: Some(Disks { every_s: 1_800.0, length_s: 60.0, fsync_ms: 500.0 }),
        clocks: Some(Clocks {
            offset_ms: 1_000.0,
            drift_ppm: 200,
            jump_every_s: Some(1_800.0),
            jump_ms: 3_000.0,
        }),
        joins: None,
        ..Config::default()
    }
}

fn half() -> f64 {
    0.5
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Config, D::Error> {
        struct NameOrTable;

        impl<'de> Visitor<'de> for NameOrTable {
            type Value = Config;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of faults, or one of \"none\", \"light\", \"heavy\"")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Config, E> {
                let name: StrDeserializer<'_, E> = name.into_deserializer();
                Preset::deserialize(name).map(Config::from)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Config, A::Error> {
                Config::deserialize(MapAccessDeserializer::new(table))
            }
        }

        deserializer.deserialize_any(NameOrTable)
    }
}
