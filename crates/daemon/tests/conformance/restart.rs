//! What only real nodes can show: a database that was written until the machine died, and a machine that lives on.

use shoal_daemon::{Home, Pretend, Sqlite};
use shoal_model::{Job, JobId, NodeId, Resources, Span};
use shoal_protocols::node::{End, Event, Node, Owned, Phase, Record};

use crate::arm::{Arm, ENTRY};
use crate::real::{Machine, Real, Supervised};
use crate::told::{Gaps, story};

fn accepted(arm: &mut Real<Pretend>) -> Vec<JobId> {
    let told = arm.told().into_iter();
    told.filter_map(|(_, event)| if let Event::Accepted(job) = event { Some(job) } else { None }).collect()
}

#[test]
fn all_that_was_acknowledged_is_there_after_a_crash() {
    let mut arm = Real::<Pretend>::new();
    let begin = Some(arm.now() + Span::from_hours(5));
    for number in 0..50 {
        arm.submit(number, Job { begin, ..Job::command(["true"]) });
    }
    arm.wait_until("some jobs are accepted", |arm| accepted(arm).len() >= 20);
    arm.crash(ENTRY);
    let acknowledged = accepted(&mut arm);

    let opened = Sqlite::<Record>::open(&Home::at(arm.home(ENTRY)).lock().unwrap()).unwrap();
    let kept: Vec<JobId> = opened
        .records
        .iter()
        .filter_map(|record| if let Record::Owned(owned) = record { Some(owned.envelope.id()) } else { None })
        .collect();
    drop(opened);
    assert!(acknowledged.iter().all(|job| kept.contains(job)), "{acknowledged:?} of {kept:?}");

    arm.restart(ENTRY);
    let owned = arm.look(ENTRY, |node| node.owned().map(|(job, _)| job).collect::<Vec<_>>());
    let mut kept = kept;
    kept.sort();
    assert_eq!(owned, kept);
}

fn goes_on<M: Machine>() {
    let mut arm = Real::<M>::new();
    let job = arm.submit(1, Job { resources: Resources::cores(2), ..Job::command(["sleep", "0.5"]) });
    arm.hear(job, 3);
    let node = arm.nodes_of(job)[0];
    let machine = arm.kill(node);
    arm.start(node, machine);
    assert_eq!(arm.hear(job, 4), ["accepted", "placed on 1", "started 0", "ended Finished"]);
    arm.settle(Gaps::None);
}

#[test]
fn task_goes_on_while_the_program_that_drives_its_node_is_killed_and_started_again() {
    goes_on::<Pretend>();
    goes_on::<Supervised>();
}

fn ends_meanwhile<M: Machine>() {
    let mut arm = Real::<M>::new();
    let job = arm.submit(1, Job { resources: Resources::cores(2), ..Job::command(["sleep", "0.1"]) });
    arm.hear(job, 3);
    let node = arm.nodes_of(job)[0];
    let machine = arm.kill(node);
    std::thread::sleep(std::time::Duration::from_millis(150));
    arm.start(node, machine);
    assert_eq!(arm.hear(job, 4), ["accepted", "placed on 1", "started 0", "ended Finished"]);
    arm.settle(Gaps::None);
}

#[test]
fn end_that_came_while_nobody_drove_the_node_is_told_later() {
    ends_meanwhile::<Pretend>();
    ends_meanwhile::<Supervised>();
}

/// A machine dies at a given place of its writing while a job goes through it, and comes back with its disk.
fn dies_and_comes_back(victim: NodeId, half_syncs: i64, job: Job) {
    let mut arm = Real::<Pretend>::new();
    arm.crash_after(victim, half_syncs);
    let id = arm.submit(1, job.clone());
    arm.wait_until("the machine dies or the job ends", |arm| {
        arm.is_dead(victim) || story(&arm.told(), id).last().is_some_and(|word| word.starts_with("ended"))
    });
    assert!(arm.is_dead(victim) || half_syncs > 4, "each node of a job writes at least twice");
    arm.crash(victim);
    arm.restart(victim);
    // A user who was told nothing asks again, and it is the same job.
    if accepted(&mut arm).is_empty() {
        assert_eq!(arm.submit(1, job), id);
    }
    // An end that was durable when the machine died may never have been told: what the node knows counts.
    let end = move |node: &Node| match node.job(id).map(Owned::phase) {
        Some(Phase::Ended(end)) => Some(*end),
        Some(Phase::Seeking | Phase::Placed { .. }) | None => None,
    };
    arm.wait_until("the job ends", |arm| arm.look(ENTRY, end).is_some());
    assert_eq!(arm.look(ENTRY, end), Some(End::Finished), "{victim} after {half_syncs}");
    arm.settle(Gaps::Some);
    assert_eq!(arm.look(ENTRY, |node| node.owned().count()), 1);
}

/// All at once: they mostly wait.
fn dies_anywhere(victim: NodeId, half_syncs: std::ops::RangeInclusive<i64>, job: &Job) {
    std::thread::scope(|scope| {
        for half_syncs in half_syncs {
            let job = job.clone();
            scope.spawn(move || dies_and_comes_back(victim, half_syncs, job));
        }
    });
}

#[test]
fn job_of_one_node_ends_once_wherever_its_owner_dies() {
    dies_anywhere(ENTRY, 1..=12, &Job::command(["sleep", "0.05"]));
}

#[test]
fn gang_ends_once_wherever_its_owner_dies() {
    dies_anywhere(ENTRY, 1..=12, &Job { nodes: 3.try_into().unwrap(), ..Job::command(["sleep", "0.05"]) });
}

#[test]
fn gang_ends_once_wherever_a_run_node_dies() {
    // As many nodes as will do, so that the one that dies is among them.
    let job = Job {
        nodes: 4.try_into().unwrap(),
        resources: Resources::cores(2),
        ..Job::command(["sleep", "0.05"])
    };
    dies_anywhere(NodeId(2), 1..=8, &job);
}
