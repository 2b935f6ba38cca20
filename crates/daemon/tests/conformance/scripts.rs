//! The conversations, each written once and held in every arm.

use shoal_daemon::Pretend;
use shoal_model::job::Mode;
use shoal_model::{Job, NodeId, Resources, Span};
use shoal_protocols::node::{Command, Event};
use shoal_protocols::scheduling::Stuck;

use crate::arm::{Arm, ENTRY, NODES};
use crate::networked::Networked;
use crate::real::{Real, Supervised};
use crate::simulated::Simulated;
use crate::told::Gaps;

macro_rules! in_every_arm {
    ($($script:ident)*) => {
        mod simulated {
            $(#[test]
            fn $script() {
                super::$script(<super::Simulated as super::Arm>::new());
            })*
        }

        mod real {
            $(#[test]
            fn $script() {
                super::$script(<super::Real<super::Pretend> as super::Arm>::new());
            })*
        }

        mod networked {
            $(#[test]
            fn $script() {
                super::$script(<super::Networked as super::Arm>::new());
            })*
        }

        mod processes {
            $(#[test]
            fn $script() {
                super::$script(<super::Real<super::Supervised> as super::Arm>::new());
            })*
        }
    };
}

in_every_arm! {
    single_job_runs_to_its_end
    gang_starts_together_and_ends_as_one
    two_cores_run_two_jobs_and_the_third_waits_its_turn
    job_that_fails_says_how
    job_with_a_retry_fails_twice
    job_is_stopped_at_its_limit
    running_gang_can_be_cancelled
    planned_job_can_be_cancelled
    job_that_cannot_meet_its_deadline_expires
    field_that_the_recipe_cannot_honour_is_refused_by_name
    same_envelope_is_one_job
    job_for_more_nodes_than_there_are_says_so
    gang_that_loses_a_node_is_planned_anew
    gang_whose_node_comes_back_empty_is_planned_anew
    job_outlives_a_crash_of_its_owner
    job_that_must_not_run_twice_is_lost_with_its_node
}

fn sleep(seconds: &str) -> Job {
    Job::command(["sleep", seconds])
}

/// A job that only nodes other than the entry node can run, each only one of them.
fn elsewhere(job: Job) -> Job {
    Job { resources: Resources::cores(2), ..job }
}

fn gang(nodes: u32, job: Job) -> Job {
    Job { nodes: nodes.try_into().unwrap(), ..job }
}

/// Longer than any test: it ends when it is stopped.
const LONG: &str = "1000";

fn single_job_runs_to_its_end(mut arm: impl Arm) {
    let job = arm.submit(1, sleep("0.05"));
    assert_eq!(arm.hear(job, 4), ["accepted", "placed on 1", "started 0", "ended Finished"]);
    arm.settle(Gaps::None);
}

fn gang_starts_together_and_ends_as_one(mut arm: impl Arm) {
    let job = arm.submit(1, gang(3, sleep("0.3")));
    let story = ["accepted", "placed on 3", "started 0", "started 1", "started 2", "ended Finished"];
    assert_eq!(arm.hear(job, 6), story);
    arm.settle(Gaps::None);
}

fn two_cores_run_two_jobs_and_the_third_waits_its_turn(mut arm: impl Arm) {
    let limit = Some(Span::from_secs(1));
    let jobs: Vec<_> = (0..12).map(|number| arm.submit(number, Job { limit, ..sleep("0.1") })).collect();
    for job in jobs {
        assert_eq!(arm.hear(job, 4), ["accepted", "placed on 1", "started 0", "ended Finished"]);
    }
    arm.settle(Gaps::None);
}

fn job_that_fails_says_how(mut arm: impl Arm) {
    let job = arm.submit(1, Job::command(["false"]));
    let story = ["accepted", "placed on 1", "started 0", "ended Failed(Rank(0), Code(1))"];
    assert_eq!(arm.hear(job, 4), story);
    arm.settle(Gaps::None);
}

fn job_with_a_retry_fails_twice(mut arm: impl Arm) {
    let job = arm.submit(1, Job { retry: 1.try_into().ok(), ..Job::command(["false"]) });
    let story = [
        "accepted",
        "placed on 1",
        "started 0",
        "unplaced",
        "placed on 1",
        "started 0",
        "ended Failed(Rank(0), Code(1))",
    ];
    assert_eq!(arm.hear(job, 7), story);
    arm.settle(Gaps::None);
}

fn job_is_stopped_at_its_limit(mut arm: impl Arm) {
    let job = arm.submit(1, Job { limit: Some(Span::from_millis(300)), ..sleep(LONG) });
    let story = ["accepted", "placed on 1", "started 0", "ended Failed(Rank(0), Overran)"];
    assert_eq!(arm.hear(job, 4), story);
    arm.settle(Gaps::None);
}

fn running_gang_can_be_cancelled(mut arm: impl Arm) {
    let job = arm.submit(1, gang(3, sleep(LONG)));
    arm.hear(job, 5);
    arm.command(ENTRY, Command::Cancel(job));
    let story = ["accepted", "placed on 3", "started 0", "started 1", "started 2", "ended Cancelled"];
    assert_eq!(arm.hear(job, 6), story);
    arm.settle(Gaps::None);
}

fn planned_job_can_be_cancelled(mut arm: impl Arm) {
    let begin = Some(arm.now() + Span::from_hours(5));
    let job = arm.submit(1, Job { begin, ..gang(2, sleep(LONG)) });
    arm.hear(job, 2);
    arm.command(ENTRY, Command::Cancel(job));
    assert_eq!(arm.hear(job, 3), ["accepted", "placed on 2", "ended Cancelled"]);
    arm.settle(Gaps::None);
}

fn job_that_cannot_meet_its_deadline_expires(mut arm: impl Arm) {
    let deadline = Some(arm.now() + Span::from_mins(30));
    let job = arm.submit(1, Job { deadline, limit: Some(Span::from_hours(1)), ..sleep("0.01") });
    assert_eq!(arm.hear(job, 2), ["accepted", "ended Expired"]);
    arm.settle(Gaps::None);
}

fn field_that_the_recipe_cannot_honour_is_refused_by_name(mut arm: impl Arm) {
    let estimate = Some(Span::from_secs(1));
    let job = arm.submit(1, Job { priority: Some(5), estimate, ..sleep("0.01") });
    let story = "refused: recipe `sample` cannot honour `estimate` (a plan by its estimate) and `priority` (a place \
                 before or after the user's other jobs): leave them out, or ask a grid whose recipe can";
    assert_eq!(arm.hear(job, 1), [story]);
    arm.settle(Gaps::None);
}

fn same_envelope_is_one_job(mut arm: impl Arm) {
    let job = arm.submit(1, sleep("0.05"));
    arm.hear(job, 4);
    assert_eq!(arm.submit(1, sleep("0.05")), job);
    assert_eq!(arm.hear(job, 5), ["accepted", "placed on 1", "started 0", "ended Finished", "accepted"]);
    let another = arm.submit(2, sleep("0.05"));
    assert_ne!(another, job);
    arm.hear(another, 4);
    arm.settle(Gaps::None);
    assert_eq!(arm.look(ENTRY, |node| node.owned().count()), 2);
}

fn job_for_more_nodes_than_there_are_says_so(mut arm: impl Arm) {
    let job = arm.submit(1, gang(99, sleep(LONG)));
    arm.wait_until("the user is told why it waits", |arm| {
        arm.told().iter().any(|(_, event)| {
            matches!(event, Event::Waiting(of, Stuck::TooFew { needed: 99, fit, .. })
                if *of == job && u64::from(*fit) <= NODES)
        })
    });
    arm.command(ENTRY, Command::Cancel(job));
    assert_eq!(arm.hear(job, 2), ["accepted", "ended Cancelled"]);
    arm.settle(Gaps::None);
}

/// Both times the whole gang starts, and never a part of it that outlives the others.
const PLANNED_ANEW: [&str; 8] = [
    "accepted",
    "placed on 2",
    "started 0",
    "started 1",
    "unplaced",
    "placed on 2",
    "started 0",
    "started 1",
];

fn gang_that_loses_a_node_is_planned_anew(mut arm: impl Arm) {
    let job = arm.submit(1, elsewhere(gang(2, sleep(LONG))));
    arm.hear(job, 4);
    let lost = arm.nodes_of(job)[0];
    arm.crash(lost);
    assert_eq!(arm.hear(job, 8), PLANNED_ANEW);
    assert!(!arm.nodes_of(job).contains(&lost));

    arm.restart(lost);
    arm.command(ENTRY, Command::Cancel(job));
    assert_eq!(arm.hear(job, 9).last().unwrap(), "ended Cancelled");
    arm.settle(Gaps::None);
}

fn gang_whose_node_comes_back_empty_is_planned_anew(mut arm: impl Arm) {
    let job = arm.submit(1, elsewhere(gang(2, sleep(LONG))));
    arm.hear(job, 4);
    let lost = arm.nodes_of(job)[1];
    arm.crash(lost);
    arm.restart(lost);
    assert_eq!(arm.hear(job, 8), PLANNED_ANEW);

    arm.command(ENTRY, Command::Cancel(job));
    assert_eq!(arm.hear(job, 9).last().unwrap(), "ended Cancelled");
    arm.settle(Gaps::None);
}

fn job_outlives_a_crash_of_its_owner(mut arm: impl Arm) {
    let job = arm.submit(1, elsewhere(gang(2, sleep("0.5"))));
    arm.hear(job, 4);
    assert!(!arm.nodes_of(job).contains(&ENTRY));
    arm.crash(ENTRY);
    arm.restart(ENTRY);
    assert_eq!(arm.hear(job, 5), ["accepted", "placed on 2", "started 0", "started 1", "ended Finished"]);
    arm.settle(Gaps::None);
}

fn job_that_must_not_run_twice_is_lost_with_its_node(mut arm: impl Arm) {
    let job = arm.submit(1, Job { mode: Some(Mode::AtMostOnce), ..elsewhere(sleep(LONG)) });
    arm.hear(job, 3);
    let lost = arm.nodes_of(job)[0];
    arm.crash(lost);
    arm.restart(lost);
    assert_eq!(arm.hear(job, 5), ["accepted", "placed on 1", "started 0", "unplaced", "ended Lost"]);
    arm.settle(Gaps::None);
    for node in (1..=NODES).map(NodeId) {
        assert_eq!(arm.look(node, |node| node.tasks().count()), 0);
    }
}
