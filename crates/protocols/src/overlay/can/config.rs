//! What CAN can be told, and where in the space a machine or a job lies.

use serde::{Deserialize, Serialize};
use shoal_model::machine::Speed;
use shoal_model::{Resources, Span};

use super::zone::{DIMENSIONS_MAX, Point, SIDE, Space};

/// What CAN can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What the dimensions mean.
    pub space: Kind,
    /// The time between two heartbeats, in milliseconds.
    pub period_ms: u32,
    /// So many heartbeats missed in a row mean dead.
    pub misses: u8,
    /// Where what is left of a machine can be found.
    pub residue: Residue,
    /// Whether nodes keep shortcuts along the virtual dimension: for grids of thousands, many of them equal.
    pub shortcuts: bool,
    /// The fastest machine, in thousandths of the baseline: what is faster lies at the edge with it.
    pub speed_most: u32,
    /// The most memory of a machine, in GiB.
    pub memory_most_gib: u32,
    /// The most disk of a machine, in GiB.
    pub disk_most_gib: u32,
    /// The most cores of a machine.
    pub cores_most: u32,
    /// The most GPUs of a machine.
    pub gpus_most: u32,
    /// How many times each of these can be halved before the scale is no longer one of ratios.
    pub octaves: u8,
}

/// What the dimensions of the space mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing: so many dimensions, each of which ends where it begins; nodes lie anywhere.
    Torus(u8),
    /// Speed, memory, disk, cores, GPUs, and one virtual dimension that keeps equal machines apart.
    Resources,
}

/// Where what is left of a machine that runs jobs can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Residue {
    /// Nowhere: only neighbours know.
    Off,
    /// As a balloon, at the node in whose zone it lies.
    Balloon,
    /// As a node of a second CAN, with a zone there (Dual-CAN); for the recipe `tri-pronged`.
    Dual,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            space: Kind::Resources,
            period_ms: 60_000,
            misses: 3,
            residue: Residue::Balloon,
            shortcuts: false,
            speed_most: 2_000,
            memory_most_gib: 8,
            disk_most_gib: 500,
            cores_most: 8,
            gpus_most: 8,
            octaves: 3,
        }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A torus without dimensions, or with more than there can be.
    #[error("space = torus({0}): must have 1 to {DIMENSIONS_MAX} dimensions")]
    Dimensions(u8),
    /// Something that must not be nothing.
    #[error("{0} = 0: must be at least 1")]
    Zero(&'static str),
    /// More octaves than numbers have bits.
    #[error("octaves = {0}: must be at most 20")]
    Octaves(u8),
    /// A second CAN of what is left, where nothing is said of what there is.
    #[error("residue = \"dual\": must be \"balloon\" or \"off\" on a torus, whose dimensions mean nothing")]
    Residue,
    /// Shortcuts where no dimension is virtual.
    #[error("shortcuts = true: must be false on a torus, which has no virtual dimension")]
    Shortcuts,
}

/// The dimensions of the resource CAN, in order; the last is virtual.
pub const RESOURCE_DIMENSIONS: [&str; 6] = ["speed", "memory", "disk", "cores", "gpus", "virtual"];
/// The place of the virtual dimension.
pub const VIRTUAL: usize = 5;

impl Config {
    /// For real grids: larger machines, quicker heartbeats.
    pub fn real() -> Config {
        Config {
            period_ms: 5_000,
            shortcuts: true,
            speed_most: 8_000,
            memory_most_gib: 1_024,
            disk_most_gib: 16_384,
            cores_most: 256,
            gpus_most: 16,
            octaves: 8,
            ..Config::default()
        }
    }

    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.space {
            Kind::Torus(dimensions) if dimensions == 0 || usize::from(dimensions) > DIMENSIONS_MAX => {
                return Err(ConfigError::Dimensions(dimensions));
            }
            Kind::Torus(_) | Kind::Resources => {}
        }
        let least = [
            ("period_ms", self.period_ms),
            ("misses", u32::from(self.misses)),
            ("speed_most", self.speed_most),
            ("memory_most_gib", self.memory_most_gib),
            ("disk_most_gib", self.disk_most_gib),
            ("cores_most", self.cores_most),
            ("gpus_most", self.gpus_most),
        ];
        if let Some(&(field, _)) = least.iter().find(|(_, value)| *value == 0) {
            return Err(ConfigError::Zero(field));
        }
        if self.octaves > 20 {
            return Err(ConfigError::Octaves(self.octaves));
        }
        if matches!((self.space, self.residue), (Kind::Torus(_), Residue::Dual)) {
            return Err(ConfigError::Residue);
        }
        if self.shortcuts && matches!(self.space, Kind::Torus(_)) {
            return Err(ConfigError::Shortcuts);
        }
        Ok(())
    }

    /// The space.
    pub fn space(&self) -> Space {
        match self.space {
            Kind::Torus(dimensions) => Space { dimensions: usize::from(dimensions), torus: true },
            Kind::Resources => Space { dimensions: RESOURCE_DIMENSIONS.len(), torus: false },
        }
    }

    /// Where what has, or needs, this much lies in the resource CAN.
    pub fn place(&self, resources: &Resources, speed: Option<Speed>, virtual_at: u32) -> Point {
        let gib = |count: u32| u64::from(count) << 30;
        let whole = |count: u32| u64::from(count) * 1_000;
        let along = |value: u64, most: u64| scaled(value, most, self.octaves);
        [
            along(speed.map_or(0, |speed| u64::from(speed.thousandths())), u64::from(self.speed_most)),
            along(resources.memory.as_bytes(), gib(self.memory_most_gib)),
            along(resources.disk.as_bytes(), gib(self.disk_most_gib)),
            along(u64::from(resources.cores.get()), whole(self.cores_most)),
            along(u64::from(resources.gpus.get()), whole(self.gpus_most)),
            virtual_at % SIDE,
        ]
    }

    /// The time between two heartbeats.
    pub fn period(&self) -> Span {
        Span::from_millis(u64::from(self.period_ms))
    }

    /// After so much silence a neighbour is dead: what it missed, and something for the way.
    pub(super) fn silence(&self) -> Span {
        self.period() * u64::from(self.misses) + Span::from_millis(u64::from(self.period_ms / 4))
    }
}

/// The cell of a value between nothing and `most`: doubling it moves it by the same from some `octaves` below `most` on.
fn scaled(value: u64, most: u64, octaves: u8) -> u32 {
    let unit = (most >> octaves).max(1);
    let at = |value: u64| log2(u128::from(value) + u128::from(unit)) - log2(u128::from(unit));
    let (here, all) = (at(value.min(most)), at(most).max(1));
    (u64::from(SIDE - 1) * u64::from(here) / u64::from(all)) as u32
}

/// The logarithm to the base of two, in 2^16ths, straight between powers: good enough to keep order.
fn log2(value: u128) -> u32 {
    let whole = value.max(1).ilog2();
    let rest = ((value << 16) >> whole) as u32 & 0xffff;
    whole << 16 | rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_model::units::{Size, Thousandths};

    #[test]
    fn more_lies_further_and_twice_as_much_as_far_again() {
        let config = Config::default();
        let cores = |count| config.place(&Resources::cores(count), None, 0)[3];
        assert_eq!(cores(0), 0);
        assert!((0..8).all(|count| cores(count) < cores(count + 1)));
        assert_eq!(cores(9), cores(8), "what is beyond the scale lies at its edge");
        assert!(cores(8) < SIDE);
        let wide = Config { cores_most: 256, octaves: 8, ..config };
        let steps: Vec<u32> = [8, 16, 32, 64, 128, 256]
            .map(|count| wide.place(&Resources::cores(count), None, 0)[3])
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        assert!(steps.iter().all(|step| step.abs_diff(steps[4]) < steps[4] / 8), "{steps:?}");
    }

    #[test]
    fn each_resource_has_a_dimension_of_its_own() {
        let config = Config::default();
        let all = Resources::cores(1)
            .with_memory(Size::from_gib(1))
            .with_disk(Size::from_gib(1))
            .with_gpus(Thousandths::whole(1));
        let point = config.place(&all, Some(Speed::BASELINE), 7);
        assert!(point.iter().all(|&at| at > 0));
        assert_eq!(point[VIRTUAL], 7);
        assert_eq!(config.place(&Resources::NONE, None, 0), [0; 6]);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(Config::real().check(), Ok(()));
        let usual = Config::default();
        let told = |config: Config| config.check().unwrap_err().to_string();
        assert_eq!(told(Config { misses: 0, ..usual }), "misses = 0: must be at least 1");
        assert_eq!(told(Config { memory_most_gib: 0, ..usual }), "memory_most_gib = 0: must be at least 1");
        assert!(told(Config { space: Kind::Torus(7), ..usual }).contains("1 to 6 dimensions"));
        assert!(told(Config { octaves: 21, ..usual }).contains("at most 20"));
        let dual = Config { residue: Residue::Dual, ..usual };
        assert_eq!(dual.check(), Ok(()));
        assert!(told(Config { space: Kind::Torus(2), ..dual }).starts_with("residue = \"dual\""));
        let torus = Config { space: Kind::Torus(2), residue: Residue::Off, ..Config::real() };
        assert!(told(torus).starts_with("shortcuts = true"));
    }
}
