//! What goes wrong in a world, and when: a plan made from the seed before the world starts.
//!
//! Faults come from a list in the scenario, from random processes, or from both. The random ones keep to a window of
//! time; at its end the world heals, so that from [`Plan::healed_from`] on checkers may demand progress. Each node's
//! luck has a stream of its own: one more node leaves that of the others as it was.
//!
//! Some faults are for the driver to carry out as their time comes (crash, restart, leave, join). The rest is told to
//! those that they concern before the start: [`Plan::disturb`] for the network, [`Plan::clocks`], [`Plan::disks`].

mod config;
mod draft;
mod outage;

use std::collections::BTreeMap;

use serde::Deserialize;
use shoal_model::{Span, Time};

pub use config::{
    Bursts, Churn, Clocks, Config, Disks, Joins, Listed, NoiseLevel, Partitions, Preset, Slowness,
};

use crate::clock::{Change, Clock};
use crate::network::partition::Cut;
use crate::network::quantity::Factor;
use crate::network::{Error, Network, Noise};
use crate::timetable::{Spell, Timetable};

/// Something that goes wrong, or right again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The node stops dead and forgets what it has not saved.
    Crash {
        /// The node.
        node: usize,
        /// Not at once, but while it carries out its next input: after so many effects of it. A node that gets no
        /// input before its restart is crashed by that.
        after_effects: Option<u32>,
        /// What becomes of what it has saved.
        disk: Disk,
    },
    /// The node starts again from what its disk holds.
    Restart {
        /// The node.
        node: usize,
    },
    /// The node stops dead and never comes back.
    Leave {
        /// The node.
        node: usize,
    },
    /// A node that was not there before starts; it has the next free index.
    Join {
        /// The node.
        node: usize,
    },
    /// What the node sends and is sent takes longer.
    Slow(Spell<Factor>),
    /// The node's saves take this much longer.
    SlowDisk(Spell<Span>),
    /// Something happens to the node's clock.
    Clock {
        /// The node.
        node: usize,
        /// What happens to it.
        change: Change,
    },
    /// The network is cut in two.
    Cut(Cut),
    /// The network loses, repeats and holds back more than usual.
    Storm {
        /// When it is over.
        until: Time,
        /// What it adds to the usual.
        noise: Noise,
    },
}

/// What a crash does to a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disk {
    /// What was saved is there after the restart.
    #[default]
    Kept,
    /// The node restarts with an empty disk.
    Lost,
}

/// A fault and its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// When it happens.
    pub at: Time,
    /// What happens.
    pub fault: Fault,
}

/// All that goes wrong in a world's life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    nodes: usize,
    events: Vec<Event>,
    /// How far the clocks of some nodes are ahead from the start.
    offsets_us: BTreeMap<usize, i64>,
}

impl Plan {
    /// The plan of this configuration for a world that starts with so many nodes.
    pub fn generate(config: &Config, nodes: usize, seed: u64) -> Result<Plan, Error> {
        draft::generate(config, nodes, seed)
    }

    /// How many nodes there are, those that join later included.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// All faults by time; at equal times, in the order in which they are to happen.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// From when on nothing goes wrong any more: every node is up that ever will be, every cut is mended.
    pub fn healed_from(&self) -> Time {
        self.events.iter().map(Event::over).max().unwrap_or_default()
    }

    /// The network with the cuts, storms and slow nodes of this plan.
    pub fn disturb(&self, mut network: Network) -> Network {
        let mut cuts = Vec::new();
        let mut slow = Vec::new();
        for Event { at, fault } in &self.events {
            match fault {
                Fault::Cut(cut) => cuts.push(cut.clone()),
                Fault::Slow(spell) => slow.push(*spell),
                Fault::Storm { until, noise } => network = network.with_storm(*at, *until, *noise),
                Fault::Crash { .. }
                | Fault::Restart { .. }
                | Fault::Leave { .. }
                | Fault::Join { .. }
                | Fault::SlowDisk(_)
                | Fault::Clock { .. } => {}
            }
        }
        network.with_cuts(cuts).with_slow(Timetable::new(slow))
    }

    /// The clocks of the nodes whose clocks do not show world time.
    pub fn clocks(&self) -> BTreeMap<usize, Clock> {
        let mut changes: BTreeMap<usize, Vec<(Time, Change)>> = BTreeMap::new();
        for node in self.offsets_us.keys() {
            changes.entry(*node).or_default();
        }
        for event in &self.events {
            if let Fault::Clock { node, change } = event.fault {
                changes.entry(node).or_default().push((event.at, change));
            }
        }
        let offset_us = |node| self.offsets_us.get(node).copied().unwrap_or_default();
        changes.iter().map(|(node, changes)| (*node, Clock::new(offset_us(node), changes))).collect()
    }

    /// How much longer saves take, by node and time.
    pub fn disks(&self) -> Timetable<Span> {
        Timetable::new(self.events.iter().filter_map(|event| match event.fault {
            Fault::SlowDisk(spell) => Some(spell),
            _ => None,
        }))
    }
}

impl Event {
    /// When it is over: for what does not last, when it happens.
    fn over(&self) -> Time {
        match &self.fault {
            Fault::Slow(spell) => spell.until,
            Fault::SlowDisk(spell) => spell.until,
            Fault::Cut(cut) => cut.until,
            Fault::Storm { until, .. } => *until,
            Fault::Crash { .. }
            | Fault::Restart { .. }
            | Fault::Leave { .. }
            | Fault::Join { .. }
            | Fault::Clock { .. } => self.at,
        }
    }
}

#[cfg(test)]
mod tests;
