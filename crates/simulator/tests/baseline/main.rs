//! The baselines against naive ones, against each other, and against examples worked out by hand.

mod naive;

use naive::Job;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use shoal_model::{Span, Time};
use shoal_protocols::queue::Policy;
use shoal_simulator::baseline::{Baseline, BaselineError, Outcome};
use shoal_simulator::workload::{Change, Uniform, Workload};

const EASY: Baseline = Baseline::Queue(Policy::Easy);
const CONSERVATIVE: Baseline = Baseline::Queue(Policy::Conservative);

/// A workload of these jobs.
fn workload(nodes: u32, jobs: &[Job]) -> Workload {
    let any = Uniform {
        nodes,
        jobs: jobs.len(),
        first_secs: 0.0,
        gap_secs: [1.0, 1.0],
        width: [1, 1],
        length_secs: [1.0, 1.0],
        overestimate: 1.0,
        change: Change::default(),
    };
    let mut workload = any.generate(1).expect("valid settings");
    for (job, wanted) in workload.jobs.iter_mut().zip(jobs) {
        job.submit = Time::from_secs(wanted.submit);
        job.width = wanted.width;
        job.requested = Span::from_secs(wanted.requested);
        job.run = Span::from_secs(wanted.run);
    }
    workload
}

fn run(baseline: Baseline, nodes: u32, jobs: &[Job]) -> Outcome {
    baseline.run(&workload(nodes, jobs)).expect("jobs fit and are in order")
}

fn starts(baseline: Baseline, nodes: u32, jobs: &[Job]) -> Vec<u64> {
    run(baseline, nodes, jobs).jobs.iter().map(|job| job.start.as_secs()).collect()
}

fn job(submit: u64, width: u32, requested: u64, run: u64) -> Job {
    Job { submit, width, requested, run }
}

#[test]
fn job_is_stopped_at_its_request() {
    let outcome = run(EASY, 4, &[job(0, 4, 10, 25), job(1, 4, 10, 5)]);
    let ends: Vec<u64> = outcome.jobs.iter().map(|job| job.end.as_secs()).collect();
    assert_eq!(ends, [10, 15]);
    assert_eq!(outcome.summary.mean_wait_secs, 4.5);
}

#[test]
fn central_asap_needs_the_same_nodes_throughout_and_moves_no_plan() {
    // From 1 on the first node is free until 10, where the third job is planned, and the second from there.
    let jobs = [job(0, 1, 10, 1), job(0, 1, 10, 10), job(0, 1, 10, 10), job(2, 1, 12, 12)];
    assert_eq!(starts(Baseline::CentralAsap, 2, &jobs), [0, 0, 10, 10]);
    assert_eq!(
        starts(CONSERVATIVE, 2, &jobs),
        [0, 0, 1, 10],
        "compression moves the third job to the early end"
    );
}

#[test]
fn central_asap_gives_what_an_early_end_leaves_to_later_jobs_only() {
    let jobs = [job(0, 2, 100, 10), job(0, 2, 50, 50), job(20, 2, 60, 60), job(20, 1, 90, 90)];
    assert_eq!(starts(Baseline::CentralAsap, 2, &jobs), [0, 100, 20, 150]);
}

#[test]
fn workload_that_cannot_be_run_is_refused() {
    let wide = workload(4, &[job(0, 4, 1, 1), job(0, 5, 1, 1)]);
    let late = workload(4, &[job(5, 1, 1, 1), job(4, 1, 1, 1)]);
    for baseline in Baseline::ALL {
        assert_eq!(baseline.run(&wide), Err(BaselineError::TooWide { id: 2, width: 5, nodes: 4 }));
        assert_eq!(baseline.run(&late), Err(BaselineError::OutOfOrder { id: 2 }));
        assert_eq!(baseline.name().parse(), Ok(baseline));
    }
    let error = "eazy".parse::<Baseline>().unwrap_err().to_string();
    assert_eq!(error, "no baseline is called `eazy`: take one of fcfs, easy, conservative, central-asap");
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::with_cases(count)
    }
}

type Drawn = (u64, u32, u64, u64);

/// Jobs in order of submission.
fn in_order(mut jobs: Vec<Drawn>) -> Vec<Job> {
    jobs.sort_by_key(|&(submit, ..)| submit);
    jobs.into_iter().map(|(submit, width, requested, run)| job(submit, width, requested, run)).collect()
}

/// Few jobs at few instants, so that many things happen together.
fn few_jobs() -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec((0u64..40, 1u32..=8, 1u64..16, 0u64..20), 1..24).prop_map(in_order)
}

/// Many jobs at once, most of them small and a few large, most of which end early: long queues with many holes.
fn many_jobs() -> impl Strategy<Value = Vec<Job>> {
    let width = prop_oneof![3 => 1u32..4, 1 => 4u32..=8];
    let requested = prop_oneof![3 => 1u64..12, 1 => 12u64..60];
    prop::collection::vec((0u64..40, width, requested, 1u64..30), 60..80).prop_map(in_order)
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn baselines_start_every_job_when_the_naive_ones_do(nodes in 1u32..9, jobs in few_jobs()) {
        let jobs: Vec<Job> = jobs.iter().map(|job| Job { width: job.width.min(nodes), ..*job }).collect();
        for baseline in Baseline::ALL {
            let expected = naive::starts(baseline, nodes, &jobs);
            prop_assert_eq!(starts(baseline, nodes, &jobs), expected, "{}", baseline);
        }
    }

    #[test]
    fn single_node_jobs_with_exact_requests_start_alike_under_every_baseline_that_backfills(
        jobs in prop::collection::vec((0u64..40, 1u64..16), 1..24),
    ) {
        let mut jobs: Vec<Job> = jobs.into_iter().map(|(submit, run)| job(submit, 1, run, run)).collect();
        jobs.sort_by_key(|job| job.submit);
        let fcfs = starts(Baseline::ALL[0], 3, &jobs);
        for baseline in Baseline::ALL {
            prop_assert_eq!(&starts(baseline, 3, &jobs), &fcfs, "{}", baseline);
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn baselines_agree_with_the_naive_ones_when_many_wait(nodes in 8u32..12, jobs in many_jobs()) {
        for baseline in Baseline::ALL {
            let expected = naive::starts(baseline, nodes, &jobs);
            prop_assert_eq!(starts(baseline, nodes, &jobs), expected, "{}", baseline);
        }
    }
}
