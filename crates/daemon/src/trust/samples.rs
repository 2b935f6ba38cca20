//! A small grid for tests: a root, and a node of lab-a that it has appointed.

use std::sync::Arc;

use shoal_model::envelope::{Origin, Pass};
use shoal_model::{Envelope, Job, Nonce, Time};

use super::Trust;
use super::pass::{self, Statement};
use crate::cabinet::{Cabinet, MemoryCabinet};
use crate::clock::Clock;
use crate::identity::Identity;
use crate::membership::{Appointment, Chain, Grid, GridId};

pub const NOW: Time = Time::from_secs(1_000);

pub fn key(number: u8) -> Identity {
    Identity::from_bytes(&[number; 32])
}

/// When everything has expired.
pub fn later() -> Time {
    Time::from_secs(2_000)
}

/// Keys and certificates.
pub struct Grids {
    pub root: Identity,
    pub node: Identity,
}

impl Grids {
    pub fn new() -> Grids {
        Grids { root: key(1), node: key(2) }
    }

    pub fn id(&self) -> GridId {
        GridId(self.root.public())
    }

    pub fn chain(&self) -> Chain {
        let appointment = Appointment::new(&self.root, self.node.public(), Time::NEVER);
        let (by, organisation) = (&self.node, "lab-a".parse().ok());
        Chain::new(&appointment, by, self.id(), self.node.public(), organisation, Time::NEVER)
    }

    pub fn statement(&self, name: &str, user: &Identity) -> Statement {
        let organisation = "lab-a".parse().ok();
        Statement::new(self.id(), user.public(), name.parse().unwrap(), organisation, later())
    }

    pub fn vouched(&self, name: &str, user: &Identity) -> Pass {
        pass::by_member(&self.node, &self.chain(), &self.statement(name, user))
    }
}

/// A grid of one node of lab-a, as it would be found on a disk.
pub fn trust() -> (Arc<Trust>, Arc<dyn Cabinet>) {
    let cabinet: Arc<dyn Cabinet> = Arc::new(MemoryCabinet::new());
    let (clock, node) = (Clock::new(), key(2));
    let (organisation, name) = ("lab-a".parse().ok(), "grid".parse().unwrap());
    let grid = Grid::create_of(organisation, &node, name, vec![], Arc::clone(&cabinet), clock.now()).unwrap();
    (Arc::new(Trust::open(Arc::new(grid), Arc::clone(&cabinet), clock).unwrap()), cabinet)
}

/// A job that this user has signed for a grid.
pub fn signed(grid: GridId, user: &Identity, job: Job) -> Envelope {
    let origin = Origin { grid: grid.0, made: Clock::new().now() };
    let envelope = Envelope::new(job, Nonce([3; 16])).unwrap().made_for(origin);
    envelope.sealed(user.public(), |digest| user.sign(digest))
}
