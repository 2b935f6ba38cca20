//! Each planted fault is found by the checker that is meant to find it; without the fault the same run is clean.

use shoal_model::{Envelope, Job, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Action, Record, config};

use crate::checks::sabotage::{
    DeafToTheEnd, DoubleBooking, ForgottenJob, HalfStarted, Honest, IgnoredEpoch, LongHold, Plant, Saboteur,
    SwallowedEnd, UnsavedPlacement, UnsavedPromise, UnsavedStart,
};
use crate::checks::{Bounds, Checks, Run, Violation, run_checked};
use crate::faults::{self, Disk, Listed};
use crate::grid::{Config, Grid};
use crate::network::partition::{Direction, Group};
use crate::network::{self, latency};
use crate::processes::command_taking;
use crate::world::Saw;

/// Four machines with one core each, and what goes wrong.
fn grid<F: Plant>(events: Vec<Listed>) -> Grid<Saboteur<F>> {
    let machine = Machine::with_capacity(Resources::cores(1));
    let config = Config {
        seed: 7,
        nodes: 4,
        network: network::Config::calm(latency::Config::Uniform(latency::Uniform {
            min_ms: 10.0,
            max_ms: 100.0,
        })),
        faults: faults::Config { events, ..faults::Config::default() },
        fsync: Span::from_millis(5),
        overlay: Default::default(),
        start: crate::grid::Start::Join,
        work: config::Work {
            machine: machine.clone(),
            recipe: config::Recipe::Sample(Default::default()),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_hours(1),
            eager: false,
            gate: Default::default(),
        },
        machines: vec![machine],
        threads: 1,
        watch: true,
        story: false,
    };
    Grid::build(config).expect("the faults make sense")
}

pub(crate) fn gang(nodes: u32, takes_s: u64) -> Job {
    let takes = Span::from_secs(takes_s);
    let limit = Some(takes + Span::from_secs(10));
    Job { nodes: nodes.try_into().expect("at least one"), limit, ..command_taking(takes) }
}

/// The grid to which these jobs come, all to node 1, the first at 60 s and one a second.
pub(crate) fn busy<F: Plant>(events: &[Listed], jobs: &[Job]) -> Grid<Saboteur<F>> {
    let mut grid = grid::<F>(events.to_vec());
    for (number, job) in (0u8..).zip(jobs) {
        let envelope = Envelope::new(job.clone(), Nonce([number; 16])).expect("the job makes sense");
        grid.submit(Time::from_secs(60 + u64::from(number)), NodeId(1), envelope);
    }
    grid
}

/// The indices of the nodes that tasks are started on when nothing goes wrong, in the order of their starts.
fn runners(jobs: &[Job]) -> Vec<usize> {
    let mut grid = busy::<Honest>(&[], jobs);
    grid.world().run_before(Time::from_secs(70));
    let sights = grid.world().sights();
    let starts = sights.iter().filter(|sight| matches!(sight.saw, Saw::Act(Action::Start { .. })));
    starts.map(|start| start.node.0 as usize - 1).collect()
}

/// What the checkers say.
fn verdict<F: Plant>(events: &[Listed], jobs: &[Job]) -> Option<Violation> {
    let mut grid = busy::<F>(events, jobs);
    let run = Run {
        seed: 7,
        replay: "this test".to_owned(),
        step: Span::from_secs(1),
        bounds: Bounds::default(),
        until: Time::from_secs(3_600),
        stop_at_rest: false,
    };
    run_checked(&mut grid, Checks::all(), &run).err()
}

/// Runs the same with and without the fault: the one must be found by this checker, in these words, the other clean.
fn found<F: Plant>(check: &str, words: &str, events: &[Listed], jobs: &[Job]) {
    assert_eq!(verdict::<Honest>(events, jobs), None, "the honest run");
    let violation = verdict::<F>(events, jobs).expect("the fault is found");
    assert_eq!(violation.check, check, "{violation}");
    assert!(violation.broken.what.contains(words), "{violation}");
    assert!(violation.to_string().ends_with("; seed 7; replay with `this test`"), "{violation}");
}

fn crash(at_s: f64, node: usize, for_s: f64) -> Listed {
    Listed::Crash { at_s, node, for_s, disk: Disk::Kept, after_effects: None }
}

#[test]
fn node_that_thinks_it_is_twice_its_machine_is_overbooked() {
    let jobs: Vec<Job> = (0..12).map(|_| gang(1, 60)).collect();
    found::<DoubleBooking>("overbooked", "of a machine with 1 core", &[], &jobs);
}

#[test]
fn owner_that_never_takes_its_job_up_again_is_found_after_its_restart() {
    found::<ForgottenJob>("accounted", "forgotten", &[crash(90.0, 0, 10.0)], &[gang(3, 60)]);
}

#[test]
fn node_that_swallows_how_its_task_ended_leaves_its_job_open() {
    found::<SwallowedEnd>("accounted", "has not ended", &[], &[gang(2, 30)]);
}

#[test]
fn gang_of_which_a_rank_never_started_has_not_finished() {
    found::<HalfStarted>("gang", "rank 1 of epoch 1 never started", &[], &[gang(3, 30)]);
}

#[test]
fn start_that_was_not_saved_happens_again_after_a_crash() {
    // Everybody crashes, so that nobody takes the job away from whoever runs it.
    let events: Vec<Listed> = (0..4).map(|node| crash(62.0, node, 1.0)).collect();
    found::<UnsavedStart>("once", "started twice", &events, &[gang(1, 60)]);
}

#[test]
fn end_of_an_older_placement_is_not_the_result() {
    // The node that runs the second job is out of sight until it has ended, when the job runs again elsewhere.
    let jobs = [gang(1, 300), gang(1, 30)];
    let runner = runners(&jobs)[1];
    let cut = Listed::Cut {
        at_s: 70.0,
        for_s: 26.0,
        name: "apart".to_owned(),
        group: Group::Nodes(vec![runner]),
        direction: Direction::Both,
    };
    found::<IgnoredEpoch>("epochs", "finished, though rank", &[cut], &jobs);
}

#[test]
fn rank_that_does_not_hear_that_its_gang_is_broken_runs_on() {
    // A node leaves for good, and without it there is no other place: nothing but the owner's word ends what runs.
    let jobs = [Job { deadline: Some(Time::from_secs(460)), ..gang(4, 300) }];
    let lost = runners(&jobs).into_iter().find(|&runner| runner != 0).expect("the owner is not alone");
    let left = Listed::Leave { at_s: 90.0, node: lost };
    found::<DeafToTheEnd>("gang", "still run, though the gang broke", &[left], &jobs);
}

#[test]
fn hold_that_nobody_commits_is_not_kept() {
    // The owner dies after it has asked, and before all have answered.
    let jobs = [gang(3, 60)];
    let asked = first_save_of_a_tenure(&jobs);
    let died = crash(asked.as_micros() as f64 / 1e6 + 0.02, 0, 120.0);
    found::<LongHold>("holds", "one hold of epoch 1 is 31.0s old", &[died], &jobs);
}

#[test]
fn promise_that_was_not_saved_is_no_commit() {
    found::<UnsavedPromise>("gang", "has not committed", &[], &[gang(3, 30)]);
}

#[test]
fn rank_that_starts_before_its_placement_is_on_disk_is_found() {
    found::<UnsavedPlacement>("gang", "no coordinator has epoch 1 on disk", &[], &[gang(3, 30)]);
}

/// When the owner first has on disk whom it asks, when nothing goes wrong.
fn first_save_of_a_tenure(jobs: &[Job]) -> Time {
    let mut grid = busy::<Honest>(&[], jobs);
    grid.world().run_before(Time::from_secs(70));
    let sights = grid.world().sights();
    let tenure = |saw: &Saw<_>| matches!(saw, Saw::Save(Record::Commit(two_phase::Record::Tenure(_))));
    sights.iter().find(|sight| tenure(&sight.saw)).expect("the job is being placed").at
}
