//! What lies ahead along each dimension: sums that heartbeats carry from the far edge inwards.

use shoal_model::NodeId;

use super::Can;
use super::around::share_of;
use super::message::{Ahead, Vitals};
use super::zone::{Face, Zone};

impl Can {
    /// What is known to lie ahead along a dimension.
    pub fn ahead(&self, dimension: usize) -> Option<&Ahead> {
        self.ahead.get(dimension)
    }

    /// The neighbours with larger coordinates along a dimension, with what lies ahead of them, themselves included.
    pub fn upper(&self, dimension: usize) -> impl Iterator<Item = (NodeId, &Vitals, Ahead)> {
        let face = Face { dimension, upper: true };
        self.neighbours.iter().filter_map(move |(node, neighbour)| {
            share_of(&self.claims, neighbour, face, self.space)?;
            let about = neighbour.about.as_ref()?;
            let vitals = about.vitals.as_ref()?;
            Some((node, vitals, about.ahead.get(dimension)?.plus(&own(vitals))))
        })
    }

    /// The neighbours with smaller coordinates along a dimension.
    pub fn lower(&self, dimension: usize) -> impl Iterator<Item = (NodeId, &Vitals)> {
        let face = Face { dimension, upper: false };
        self.neighbours.iter().filter_map(move |(node, neighbour)| {
            share_of(&self.claims, neighbour, face, self.space)?;
            Some((node, neighbour.about.as_ref()?.vitals.as_ref()?))
        })
    }

    /// Adds up what the upper neighbours last said. Several share an upper neighbour, each by its part of the face.
    pub(super) fn look_ahead(&mut self) {
        self.ahead = Default::default();
        for (dimension, share, neighbour) in self.neighbours.uppers(&self.claims, self.space) {
            let Some(about) = &neighbour.about else { continue };
            let Some(vitals) = &about.vitals else { continue };
            let beyond = about.ahead[dimension].plus(&own(vitals));
            self.ahead[dimension] = self.ahead[dimension].plus(&beyond.part(share));
        }
    }
}

/// A node by itself.
fn own(vitals: &Vitals) -> Ahead {
    Ahead {
        nodes: 1_000,
        cores: u64::from(vitals.machine.capacity.cores.get()),
        required: vitals.required,
        free: if vitals.running == 0 { 1_000 } else { 0 },
    }
}

impl Ahead {
    /// The sum; what peers claim cannot overflow it.
    pub fn plus(&self, other: &Ahead) -> Ahead {
        Ahead {
            nodes: self.nodes.saturating_add(other.nodes),
            cores: self.cores.saturating_add(other.cores),
            required: self.required.saturating_add(other.required),
            free: self.free.saturating_add(other.free),
        }
    }

    fn part(&self, share: u64) -> Ahead {
        let part = |value: u64| (u128::from(value) * u128::from(share) / u128::from(Zone::SHARE)) as u64;
        Ahead {
            nodes: part(self.nodes),
            cores: part(self.cores),
            required: part(self.required),
            free: part(self.free),
        }
    }
}
