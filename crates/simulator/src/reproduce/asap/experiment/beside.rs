//! What the paper does not have: other schedulers on the same jobs, and jobs that end before their users said.
//!
//! With early ends the plan of asap never moves: what becomes free is there for later jobs only. EASY and conservative
//! backfilling move up what waits; both know everything at once. Flooding plans nothing.

use shoal_protocols::queue;

use super::{Runs, of};
use crate::baseline::Baseline;
use crate::reproduce::asap::case::{Asap, Case, Ends, Jobs, Scheduler};
use crate::reproduce::asap::seen::Seen;
use crate::reproduce::asap::size::Size;
use crate::reproduce::finding::Findings;

const TRACES: [(Jobs, &str); 2] = [(Jobs::Original, "grid5000"), (Jobs::Compressed, "compressed")];
const SCHEDULERS: [Scheduler; 5] = [
    Scheduler::Asap(Asap::PAPER),
    Scheduler::Central(Baseline::Queue(queue::Policy::Easy)),
    Scheduler::Central(Baseline::Queue(queue::Policy::Conservative)),
    Scheduler::Central(Baseline::CentralAsap),
    Scheduler::Flood,
];

pub fn baseline_cases(size: &Size) -> Vec<Case> {
    cases(Ends::AsAsked, size)
}

pub fn estimate_cases(size: &Size) -> Vec<Case> {
    cases(Ends::Early, size)
}

/// Jobs that end as asked.
pub fn baselines(runs: &Runs, findings: &mut Findings) {
    judge(runs, Ends::AsAsked, "baselines", findings);
}

/// Jobs that end when they really did.
pub fn estimates(runs: &Runs, findings: &mut Findings) {
    judge(runs, Ends::Early, "estimates", findings);
}

fn cases(ends: Ends, size: &Size) -> Vec<Case> {
    let mut cases = Vec::new();
    for (jobs, _) in TRACES {
        for by in SCHEDULERS {
            cases.extend((1..=seeds(ends, by, size)).map(|seed| Case { jobs, ends, by, seed }));
        }
    }
    cases
}

fn judge(runs: &Runs, ends: Ends, group: &str, findings: &mut Findings) {
    for (jobs, trace) in TRACES {
        for by in SCHEDULERS {
            let seen = runs.each(seeds(ends, by, &runs.size), |seed| Case { jobs, ends, by, seed });
            let id = |name: &str| format!("asap/{group}/{trace}/{}/{name}", by.name());
            findings.figure(&id("wt"), &of(&seen, Seen::wait));
            match (by, ends) {
                (Scheduler::Asap(_), Ends::Early) => {
                    findings.figure(&id("failures"), &of(&seen, Seen::failures));
                }
                (Scheduler::Flood, _) => {
                    let per_job = |seen: &Seen| seen.messages as f64 / seen.jobs.len() as f64;
                    findings.figure(&id("messages_per_job"), &of(&seen, per_job));
                }
                (Scheduler::Asap(_) | Scheduler::Central(_), _) => {}
            }
        }
    }
}

/// Runs of the recipe on months of jobs take long; those that others need anyway do not count.
fn seeds(ends: Ends, by: Scheduler, size: &Size) -> u64 {
    match (ends, by) {
        (Ends::Early, Scheduler::Asap(_)) => size.seeds_long,
        _ => size.seeds,
    }
}
