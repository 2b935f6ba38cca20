//! What lies ahead along each dimension: sums that heartbeats carry from the far edge inwards.

use shoal_model::NodeId;

use super::message::{Ahead, Vitals};
use super::zone::{Face, Zone};
use super::{Can, Neighbour};

impl Can {
    /// What is known to lie ahead along a dimension.
    pub fn ahead(&self, dimension: usize) -> Option<&Ahead> {
        self.ahead.get(dimension)
    }

    /// The neighbours with larger coordinates along a dimension, with what lies ahead of them, themselves included.
    pub fn upper(&self, dimension: usize) -> impl Iterator<Item = (NodeId, &Vitals, Ahead)> {
        let face = Face { dimension, upper: true };
        self.neighbours.iter().filter_map(move |(&node, neighbour)| {
            self.share_of(neighbour, face)?;
            let about = neighbour.about.as_ref()?;
            let vitals = about.vitals.as_ref()?;
            Some((node, vitals, about.ahead.get(dimension)?.plus(&own(vitals))))
        })
    }

    /// The neighbours with smaller coordinates along a dimension.
    pub fn lower(&self, dimension: usize) -> impl Iterator<Item = (NodeId, &Vitals)> {
        let face = Face { dimension, upper: false };
        self.neighbours.iter().filter_map(move |(&node, neighbour)| {
            self.share_of(neighbour, face)?;
            Some((node, neighbour.about.as_ref()?.vitals.as_ref()?))
        })
    }

    /// Adds up what the upper neighbours last said. Several share an upper neighbour, each by its part of the face.
    pub(super) fn look_ahead(&mut self) {
        let mut ahead = self.ahead;
        for (dimension, ahead) in ahead.iter_mut().enumerate().take(self.space.dimensions) {
            *ahead = Ahead::default();
            let face = Face { dimension, upper: true };
            for neighbour in self.neighbours.values() {
                let Some(share) = self.share_of(neighbour, face) else { continue };
                let Some(about) = &neighbour.about else { continue };
                let Some(vitals) = &about.vitals else { continue };
                let beyond = about.ahead[dimension].plus(&own(vitals));
                *ahead = ahead.plus(&beyond.part(share));
            }
        }
        self.ahead = ahead;
    }

    /// How much of a neighbour's opposite face we cover, if it lies behind ours; never around the end of a torus.
    fn share_of(&self, neighbour: &Neighbour, face: Face) -> Option<u64> {
        let plain = super::Space { torus: false, ..self.space };
        let mine = self.claims.first()?;
        let theirs = neighbour.claims.first()?;
        mine.zone.faces(face, &theirs.zone, plain).then(|| mine.zone.share_of_face(face, &theirs.zone))
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
