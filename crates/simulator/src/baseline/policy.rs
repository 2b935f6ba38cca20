//! A queue policy over all nodes as one big node.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use shoal_model::Time;
use shoal_protocols::queue::{Policy, Queue, Task};

use super::length;
use crate::workload::Workload;

/// When each job starts; jobs are in order and none is wider than the grid.
pub(super) fn starts(policy: Policy, workload: &Workload) -> Vec<Time> {
    let jobs = &workload.jobs;
    let mut queue: Queue<u32, u32> = Queue::new(policy, workload.nodes);
    let mut starts = vec![Time::NEVER; jobs.len()];
    let mut ends: BinaryHeap<Reverse<(Time, u32)>> = BinaryHeap::new();
    let mut started = Vec::new();
    let mut arrived = 0;
    loop {
        let end = ends.peek().map(|&Reverse((end, _))| end);
        let arrival = jobs.get(arrived).map(|job| job.submit);
        let Some(now) = [end, arrival, queue.wake()].into_iter().flatten().min() else { return starts };
        while let Some(&Reverse((end, id))) = ends.peek()
            && end == now
        {
            ends.pop();
            queue.finish(now, id);
        }
        while let Some(job) = jobs.get(arrived).filter(|job| job.submit == now) {
            let task = Task::new(arrived as u32, job.width, job.requested);
            queue.arrive(now, task).expect("no job is wider than the grid");
            arrived += 1;
        }
        queue.start(now, &mut started);
        for id in started.drain(..) {
            starts[id as usize] = now;
            ends.push(Reverse((now + length(&jobs[id as usize]), id)));
        }
    }
}
