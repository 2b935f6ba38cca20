//! Jobs that this node has found places for: they count there until those nodes say something new of their work.
//!
//! What neighbours say is as old as their last heartbeat. Without this, all jobs that stop at a node between two heartbeats
//! would go to the same neighbour.

use std::borrow::Cow;

use shoal_model::matching::Needs;
use shoal_model::{Amount, JobId, NodeId, Resources, Span, Time};

use crate::overlay::can::Vitals;

/// So many are counted at a time.
pub(super) const GIVEN_MAX: usize = 256;

/// Jobs that this node has found places for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Given(Vec<One>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct One {
    job: JobId,
    node: NodeId,
    resources: Resources,
    /// How long it will take on the baseline machine, or may.
    takes: Span,
    /// What the node had said.
    said: Said,
    until: Time,
}

/// By this it is told whether a node has said something new: running, waiting, cores that they ask for.
type Said = (u32, u32, u64);

fn said(vitals: &Vitals) -> Said {
    (vitals.running, vitals.waiting, vitals.required)
}

impl Given {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A job goes to a node that has said this, and will have said something new by then.
    pub fn note(
        &mut self,
        job: JobId,
        needs: &Needs,
        (node, vitals): (NodeId, &Vitals),
        until: Time,
        now: Time,
    ) {
        // A search that is made again, or heard twice, counts once.
        self.0.retain(|one| one.until > now && one.job != job);
        if self.0.len() == GIVEN_MAX {
            self.0.remove(0);
        }
        let (resources, takes) = (needs.resources.clone(), needs.estimate.unwrap_or(needs.limit));
        self.0.push(One { job, node, resources, takes, said: said(vitals), until });
    }

    /// What a node said, with the jobs that have gone to it since.
    pub fn counted<'a>(&self, node: NodeId, vitals: &'a Vitals, now: Time) -> Cow<'a, Vitals> {
        let as_then = said(vitals);
        let mut vitals = Cow::Borrowed(vitals);
        let since = self.0.iter().filter(|one| one.node == node && one.said == as_then && one.until > now);
        for one in since {
            let vitals = vitals.to_mut();
            if vitals.waiting == 0 && one.resources.fits_in(&vitals.residual) {
                vitals.residual = vitals.residual.minus(&one.resources);
                vitals.running = vitals.running.saturating_add(1);
            } else {
                vitals.waiting = vitals.waiting.saturating_add(1);
            }
            let cores = u64::from(one.resources.cores.get());
            vitals.required = vitals.required.saturating_add(cores);
            let machine = &vitals.machine;
            let takes = u128::from(machine.speed.time_for(one.takes).as_micros());
            let more = takes * u128::from(cores) / u128::from(machine.capacity.cores.get().max(1));
            let more = u64::try_from(more).unwrap_or(u64::MAX);
            vitals.backlog =
                vitals.backlog.map(|backlog| Span::from_micros(backlog.as_micros().saturating_add(more)));
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

    fn needs(cores: u32) -> Needs {
        Needs::new(Resources::cores(cores), Span::from_secs(60))
    }

    fn job(number: u8) -> JobId {
        JobId([number; 16])
    }

    #[test]
    fn jobs_count_where_they_went_until_that_node_says_something_new() {
        let (now, then) = (Time::from_secs(10), Time::from_secs(70));
        let mut given = Given::default();
        let said = idle(4);
        for number in [1, 2, 3, 3] {
            given.note(job(number), &needs(2), (NodeId(1), &said), then, now);
        }
        assert_eq!(*given.counted(NodeId(2), &said, now), said, "somebody else");
        let counted = given.counted(NodeId(1), &said, now);
        assert_eq!((counted.running, counted.waiting), (2, 1), "two fit, the third waits, and counts once");
        assert_eq!((counted.residual.clone(), counted.required), (Resources::NONE, 6_000));
        assert_eq!(counted.backlog, None, "where running times do not count");
        let with_times = Vitals { backlog: Some(Span::from_secs(10)), ..said.clone() };
        let counted = given.counted(NodeId(1), &with_times, now);
        assert_eq!(counted.backlog, Some(Span::from_secs(100)), "three of a minute on half of the cores");
        let told = Vitals { running: 1, required: 2_000, residual: Resources::cores(2), ..said.clone() };
        assert_eq!(*given.counted(NodeId(1), &told, now), told, "it has told of them since");
        assert_eq!(*given.counted(NodeId(1), &said, then), said, "they have not come");
    }

    #[test]
    fn the_oldest_are_forgotten_where_there_are_too_many() {
        let mut given = Given::default();
        let said = idle(1);
        for number in 0..=u8::MAX {
            let node = NodeId(u64::from(number));
            given.note(job(number), &needs(1), (node, &said), Time::from_secs(1), Time::ZERO);
        }
        let last = JobId(u128::MAX.wrapping_sub(1).to_be_bytes());
        given.note(last, &needs(1), (NodeId(999), &said), Time::from_secs(1), Time::ZERO);
        assert_eq!(given.len(), GIVEN_MAX);
        assert_eq!(*given.counted(NodeId(0), &said, Time::ZERO), said);
        let (then, later) = (Time::from_secs(1), Time::from_secs(2));
        given.note(job(1), &needs(1), (NodeId(7), &said), later, then);
        assert_eq!(given.len(), 1, "what nobody looks at any more is not kept");
    }
}
