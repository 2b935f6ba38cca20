//! CENT: one queue, one scheduler that knows everything, free of cost.
//!
//! On each arrival and each end the queue is looked through in order; a job that fits somewhere starts there, on the node
//! with the least BM·FM over speed; others are passed over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use shoal_model::machine::Machine;
use shoal_model::{Amount, Resources, Span};
use shoal_protocols::queue::backfill::{Shares, misfit, used_with};

use super::case::Drawn;

/// When each job starts, after the first has come, and on which node.
pub fn run(jobs: &[Drawn], machines: &[Machine]) -> Vec<(Span, usize)> {
    let mut free: Vec<Resources> = machines.iter().map(|machine| machine.capacity.clone()).collect();
    let mut ends: BinaryHeap<Reverse<(Span, usize, usize)>> = BinaryHeap::new();
    let mut starts = vec![(Span::ZERO, 0); jobs.len()];
    let mut waiting: Vec<usize> = Vec::new();
    let mut next = 0;
    loop {
        let end = ends.peek().map(|Reverse((end, ..))| *end);
        let arrival = jobs.get(next).map(|job| job.at);
        let Some(now) = [end, arrival].into_iter().flatten().min() else { break };
        while let Some(Reverse((end, node, job))) = ends.peek().copied()
            && end == now
        {
            ends.pop();
            free[node] = free[node].plus(&jobs[job].needs);
        }
        while jobs.get(next).is_some_and(|job| job.at == now) {
            waiting.push(next);
            next += 1;
        }
        waiting.retain(|&job| {
            let needs = &jobs[job].needs;
            let best = (0..machines.len())
                .filter(|&node| needs.fits_in(&free[node]))
                .min_by_key(|&node| fit(needs, &free[node], &machines[node]));
            let Some(node) = best else { return true };
            free[node] = free[node].minus(needs);
            ends.push(Reverse((now + machines[node].speed.time_for(jobs[job].takes), node, job)));
            starts[job] = (now, node);
            false
        });
    }
    starts
}

fn fit(needs: &Resources, free: &Resources, machine: &Machine) -> u64 {
    let used = used_with(&machine.capacity, free, needs);
    misfit(&used, machine.capacity.components()) * 1_000 / u64::from(machine.speed.thousandths())
}
