//! Jobs that this node has found places for: until those nodes tell of them, they are counted here.
//!
//! What neighbours say is as old as their last heartbeat. Without this, all jobs that stop at a node between two heartbeats
//! would go to the same neighbour.

use std::borrow::Cow;

use shoal_model::{Amount, NodeId, Resources, Time};

use crate::overlay::can::Vitals;

/// So many are counted at a time.
pub(super) const GIVEN_MAX: usize = 256;

/// Jobs that this node has found places for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Given(Vec<One>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct One {
    node: NodeId,
    resources: Resources,
    until: Time,
}

impl Given {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A job goes to a node, which will have told of it by then.
    pub fn note(&mut self, node: NodeId, resources: Resources, now: Time, until: Time) {
        self.0.retain(|one| one.until > now);
        if self.0.len() == GIVEN_MAX {
            self.0.remove(0);
        }
        self.0.push(One { node, resources, until });
    }

    /// What a node said, with the jobs that have gone to it since.
    pub fn counted<'a>(&self, node: NodeId, said: &'a Vitals, now: Time) -> Cow<'a, Vitals> {
        let mut vitals = Cow::Borrowed(said);
        for one in self.0.iter().filter(|one| one.node == node && one.until > now) {
            let vitals = vitals.to_mut();
            if vitals.waiting == 0 && one.resources.fits_in(&vitals.residual) {
                vitals.residual = vitals.residual.minus(&one.resources);
                vitals.running = vitals.running.saturating_add(1);
            } else {
                vitals.waiting = vitals.waiting.saturating_add(1);
            }
            vitals.required = vitals.required.saturating_add(u64::from(one.resources.cores.get()));
        }
        vitals
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::Machine;

    use super::*;
    use crate::shared::Shared;

    fn idle(cores: u32) -> Vitals {
        let machine = Machine::with_capacity(Resources::cores(cores));
        Vitals {
            residual: machine.capacity.clone(),
            machine: Shared::new(machine),
            running: 0,
            waiting: 0,
            bar: 0,
            load: [0; 4],
            required: 0,
            backlog: None,
        }
    }

    #[test]
    fn jobs_count_where_they_went_until_that_node_has_told_of_them() {
        let (now, then) = (Time::from_secs(10), Time::from_secs(70));
        let mut given = Given::default();
        for _ in 0..3 {
            given.note(NodeId(1), Resources::cores(2), now, then);
        }
        let said = idle(4);
        assert_eq!(*given.counted(NodeId(2), &said, now), said, "somebody else");
        let counted = given.counted(NodeId(1), &said, now);
        assert_eq!((counted.running, counted.waiting), (2, 1), "two fit, the third waits");
        assert_eq!((counted.residual.clone(), counted.required), (Resources::NONE, 6_000));
        assert_eq!(*given.counted(NodeId(1), &said, then), said, "it has told of them since");
    }

    #[test]
    fn the_oldest_are_forgotten_where_there_are_too_many() {
        let mut given = Given::default();
        for number in 0..=GIVEN_MAX as u64 {
            given.note(NodeId(number), Resources::cores(1), Time::ZERO, Time::from_secs(1));
        }
        assert_eq!(given.len(), GIVEN_MAX);
        let said = idle(1);
        assert_eq!(*given.counted(NodeId(0), &said, Time::ZERO), said);
        given.note(NodeId(7), Resources::cores(1), Time::from_secs(1), Time::from_secs(2));
        assert_eq!(given.len(), 1, "what nobody looks at any more is not kept");
    }
}
