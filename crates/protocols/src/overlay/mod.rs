//! Overlays: how a node comes to know some of the others, and how a word gets round among them.

pub mod blatant_s;
pub mod can;
pub mod cyclon;
pub mod flood;
pub mod helpers;
pub mod vicinity;
pub mod vivaldi;

use serde::{Deserialize, Serialize};
use shoal_model::NodeId;

use blatant_s::BlatantS;
use can::Can;
use cyclon::Cyclon;

/// How a node comes to know others, with the settings of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Config {
    /// See [`cyclon`].
    Cyclon(cyclon::Config),
    /// See [`blatant_s`].
    BlatantS(blatant_s::Config),
    /// See [`can`].
    Can(can::Config),
}

impl Config {
    /// The names of all overlays.
    pub const NAMES: &'static [&'static str] = &["cyclon", "blatant-s", "can"];

    /// The overlay's name.
    pub fn name(&self) -> &'static str {
        match self {
            Config::Cyclon(_) => "cyclon",
            Config::BlatantS(_) => "blatant-s",
            Config::Can(_) => "can",
        }
    }

    /// The settings of CYCLON, if it is that.
    pub fn as_cyclon(&self) -> Option<&cyclon::Config> {
        match self {
            Config::Cyclon(config) => Some(config),
            Config::BlatantS(_) | Config::Can(_) => None,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::Cyclon(cyclon::Config::default())
    }
}

impl From<cyclon::Config> for Config {
    fn from(config: cyclon::Config) -> Config {
        Config::Cyclon(config)
    }
}

impl From<blatant_s::Config> for Config {
    fn from(config: blatant_s::Config) -> Config {
        Config::BlatantS(config)
    }
}

impl From<can::Config> for Config {
    fn from(config: can::Config) -> Config {
        Config::Can(config)
    }
}

/// Whom a node knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Overlay {
    /// A random sample of the grid.
    Cyclon(Cyclon),
    /// Links that ants keep; apart, so that the other stays small.
    BlatantS(Box<BlatantS>),
    /// Those whose zones touch its own.
    Can(Box<Can>),
}

impl Overlay {
    /// The neighbours, in no particular order.
    pub fn neighbours(
        &self,
    ) -> Neighbours<
        impl Iterator<Item = NodeId> + '_,
        impl Iterator<Item = NodeId> + '_,
        impl Iterator<Item = NodeId> + '_,
    > {
        match self {
            Overlay::Cyclon(cyclon) => Neighbours::Cyclon(cyclon.neighbours()),
            Overlay::BlatantS(blatant) => Neighbours::BlatantS(blatant.neighbours()),
            Overlay::Can(can) => Neighbours::Can(can.neighbours()),
        }
    }

    /// How many neighbours there are.
    pub fn degree(&self) -> usize {
        match self {
            Overlay::Cyclon(cyclon) => cyclon.degree(),
            Overlay::BlatantS(blatant) => blatant.degree(),
            Overlay::Can(can) => can.degree(),
        }
    }

    /// The neighbours, and the one that an open exchange of CYCLON has taken out of its cache.
    pub fn neighbours_and_partner(&self) -> Vec<NodeId> {
        match self {
            Overlay::Cyclon(cyclon) => cyclon.neighbours_and_partner().collect(),
            Overlay::BlatantS(blatant) => blatant.neighbours().collect(),
            Overlay::Can(can) => can.neighbours().collect(),
        }
    }

    /// How many hold this node, if that is known: links of BLATANT-S are undirected.
    pub fn holders(&self) -> Option<u32> {
        match self {
            Overlay::Cyclon(cyclon) => cyclon.holders(),
            Overlay::BlatantS(blatant) => Some(blatant.degree() as u32),
            Overlay::Can(can) => Some(can.degree() as u32),
        }
    }

    /// Counts from now on who holds this node, where that takes counting.
    pub fn count_holders(&mut self) {
        match self {
            Overlay::Cyclon(cyclon) => cyclon.count_holders(),
            Overlay::BlatantS(_) | Overlay::Can(_) => {}
        }
    }

    /// It as CYCLON, if it is that.
    pub fn as_cyclon(&self) -> Option<&Cyclon> {
        match self {
            Overlay::Cyclon(cyclon) => Some(cyclon),
            Overlay::BlatantS(_) | Overlay::Can(_) => None,
        }
    }

    /// It as CAN, if it is that.
    pub fn as_can(&self) -> Option<&Can> {
        match self {
            Overlay::Cyclon(_) | Overlay::BlatantS(_) => None,
            Overlay::Can(can) => Some(can),
        }
    }

    /// It as BLATANT-S, if it is that.
    pub fn as_blatant_s(&self) -> Option<&BlatantS> {
        match self {
            Overlay::Cyclon(_) | Overlay::Can(_) => None,
            Overlay::BlatantS(blatant) => Some(blatant),
        }
    }
}

/// The neighbours in either overlay.
pub enum Neighbours<C, B, Z> {
    /// Of CYCLON.
    Cyclon(C),
    /// Of BLATANT-S.
    BlatantS(B),
    /// Of CAN.
    Can(Z),
}

impl<C, B, Z> Iterator for Neighbours<C, B, Z>
where
    C: Iterator<Item = NodeId>,
    B: Iterator<Item = NodeId>,
    Z: Iterator<Item = NodeId>,
{
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        match self {
            Neighbours::Cyclon(cyclon) => cyclon.next(),
            Neighbours::BlatantS(blatant) => blatant.next(),
            Neighbours::Can(can) => can.next(),
        }
    }
}
