//! Central ASAP: each job gets, on arrival, the earliest slot at which enough nodes of the whole grid are free
//! together for its requested time, and keeps it.
//!
//! What DGS_ASAP would do with full knowledge (`search B over all N calendars`). It differs from conservative
//! backfilling in two ways. Nothing is compressed: when a job ends early, its nodes are free at once for jobs that
//! arrive later, and no plan moves. And nodes have identity: n nodes must each be free for the whole time, where a
//! big node only has to have n to spare at every instant. Among the nodes free at the earliest start, those of lowest
//! number are taken.
//!
//! A search looks at all nodes once for a start right now; failing that, it goes through the planned ends in order
//! and looks only at the nodes they set free: O(log) for each, up to the slot found.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use shoal_model::{Span, Time};

use super::length;
use crate::workload::Workload;

/// The shortest reservation.
const INSTANT: Span = Span::from_micros(1);

/// When each job starts; jobs are in order and none is wider than the grid.
pub(super) fn starts(workload: &Workload) -> Vec<Time> {
    let mut plan = Plan::new(workload.nodes);
    let mut ends: BinaryHeap<Reverse<(Time, u32)>> = BinaryHeap::new();
    let mut slots: Vec<Slot> = Vec::with_capacity(workload.jobs.len());
    for (number, job) in workload.jobs.iter().enumerate() {
        let number = number as u32;
        while let Some(&Reverse((end, ended))) = ends.peek()
            && end <= job.submit
        {
            ends.pop();
            plan.release(ended, slots[ended as usize]);
        }
        let slot = plan.place(job.submit, job.requested.max(INSTANT), job.width as usize);
        plan.reserve(number, slot, job.width as usize);
        slots.push(slot);
        ends.push(Reverse((slot.start + length(job), number)));
    }
    slots.into_iter().map(|slot| slot.start).collect()
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    start: Time,
    end: Time,
}

struct Plan {
    /// What each node is reserved for, by time.
    nodes: Vec<Vec<Slot>>,
    /// The nodes of each reservation, by its end and its job.
    by_end: BTreeMap<(Time, u32), Vec<u32>>,
}

impl Plan {
    fn new(nodes: u32) -> Plan {
        Plan { nodes: vec![Vec::new(); nodes as usize], by_end: BTreeMap::new() }
    }

    /// The earliest slot of this length, from `now` on, that `count` nodes have free.
    fn place(&self, now: Time, span: Span, count: usize) -> Slot {
        let slot = |start: Time| Slot { start, end: start + span };
        let mut open = 0;
        // The latest starts of the windows that are open, those with an end only.
        let mut lasts = Vec::new();
        for node in &self.nodes {
            let next = next_start(node, now);
            if now + span <= next {
                open += 1;
                if open >= count {
                    return slot(now);
                }
                if next < Time::NEVER {
                    lasts.push(Reverse(next - span));
                }
            }
        }
        let mut lasts = BinaryHeap::from(lasts);
        let mut ends = self.by_end.range((now, u32::MAX)..).peekable();
        while let Some((&(start, _), nodes)) = ends.next() {
            while lasts.peek().is_some_and(|&Reverse(last)| last < start) {
                lasts.pop();
                open -= 1;
            }
            for &node in nodes {
                let next = next_start(&self.nodes[node as usize], start);
                if start + span <= next {
                    open += 1;
                    if next < Time::NEVER {
                        lasts.push(Reverse(next - span));
                    }
                }
            }
            let all_of_this_instant = ends.peek().is_none_or(|&(&(next, _), _)| next > start);
            if all_of_this_instant && open >= count {
                return slot(start);
            }
        }
        unreachable!("once every reservation has ended, all nodes are free")
    }

    /// Reserves a slot for a job on the first `count` nodes that have it free.
    fn reserve(&mut self, job: u32, slot: Slot, count: usize) {
        let mut chosen = Vec::with_capacity(count);
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if chosen.len() == count {
                break;
            }
            let place = node.partition_point(|other| other.end <= slot.start);
            if node.get(place).is_none_or(|next| slot.end <= next.start) {
                node.insert(place, slot);
                chosen.push(number as u32);
            }
        }
        assert_eq!(chosen.len(), count, "a slot was found that its nodes do not have");
        self.by_end.insert((slot.end, job), chosen);
    }

    /// Gives back what is left of a reservation whose job has ended.
    fn release(&mut self, job: u32, slot: Slot) {
        for number in self.by_end.remove(&(slot.end, job)).expect("a job ends once") {
            let node = &mut self.nodes[number as usize];
            let place = node.partition_point(|other| other.start < slot.start);
            node.remove(place);
        }
    }
}

/// Where the node's first reservation that ends after `time` starts; never if there is none.
fn next_start(node: &[Slot], time: Time) -> Time {
    let place = node.partition_point(|slot| slot.end <= time);
    node.get(place).map_or(Time::NEVER, |slot| slot.start)
}
