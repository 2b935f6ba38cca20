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
    let all: Vec<usize> = (0..machines.len()).collect();
    let mut freed: Vec<usize> = Vec::new();
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
            freed.push(node);
        }
        freed.sort_unstable();
        freed.dedup();
        let first_new = next;
        while jobs.get(next).is_some_and(|job| job.at == now) {
            waiting.push(next);
            next += 1;
        }
        waiting.retain(|&job| {
            let needs = &jobs[job].needs;
            // Whoever has waited fitted nowhere when it was last looked at: only where something has ended since may it now.
            let nodes = if job < first_new { &freed } else { &all };
            let fits = nodes.iter().copied().filter(|&node| needs.fits_in(&free[node]));
            let best = fits.min_by_key(|&node| fit(needs, &free[node], &machines[node]));
            let Some(node) = best else { return true };
            free[node] = free[node].minus(needs);
            ends.push(Reverse((now + machines[node].speed.time_for(jobs[job].takes), node, job)));
            starts[job] = (now, node);
            false
        });
        freed.clear();
    }
    starts
}

fn fit(needs: &Resources, free: &Resources, machine: &Machine) -> u64 {
    let used = used_with(&machine.capacity, free, needs);
    misfit(&used, machine.capacity.components()) * 1_000 / u64::from(machine.speed.thousandths())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::super::case::{Case, Mix, Who};
    use super::*;

    /// The same by its definition: whoever waits is looked for a place everywhere, second by second where anything happens.
    fn by_definition(jobs: &[Drawn], machines: &[Machine]) -> Vec<(Span, usize)> {
        let mut starts: Vec<Option<(Span, usize)>> = vec![None; jobs.len()];
        let end =
            |job: usize, start: Span, node: usize| start + machines[node].speed.time_for(jobs[job].takes);
        let mut now = Span::ZERO;
        loop {
            for job in (0..jobs.len()).filter(|&job| jobs[job].at <= now) {
                if starts[job].is_some() {
                    continue;
                }
                let free = |node: usize, starts: &[Option<(Span, usize)>]| {
                    let used = (0..jobs.len()).filter(|&other| {
                        starts[other].is_some_and(|(start, at)| at == node && end(other, start, at) > now)
                    });
                    used.fold(machines[node].capacity.clone(), |free, other| free.minus(&jobs[other].needs))
                };
                let best = (0..machines.len())
                    .map(|node| (node, free(node, &starts)))
                    .filter(|(_, free)| jobs[job].needs.fits_in(free))
                    .min_by_key(|(node, free)| fit(&jobs[job].needs, free, &machines[*node]));
                starts[job] = best.map(|(node, _)| (now, node));
            }
            let ends =
                (0..jobs.len()).filter_map(|job| starts[job].map(|(start, node)| end(job, start, node)));
            let later = jobs.iter().map(|job| job.at).chain(ends).filter(|&at| at > now).min();
            let Some(later) = later else { break };
            now = later;
        }
        starts.into_iter().map(|start| start.expect("each job fits an idle machine")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 12,
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn what_has_waited_is_looked_for_a_place_only_where_something_ended(seed in 0u64..1_000, mixed in any::<bool>()) {
            let mix = if mixed { Mix::Mixed } else { Mix::Clustered };
            let case = Case { who: Who::Cent, mix, gap_ms: 2_000, ratio: 40, seed };
            let machines = case.machines(12);
            let jobs = case.jobs(60, &machines);
            prop_assert_eq!(run(&jobs, &machines), by_definition(&jobs, &machines));
        }
    }
}
