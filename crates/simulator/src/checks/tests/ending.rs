//! What can be seen only once a run is over is found then: in a whole run, and not in one that was cut short.

use crate::checks::sabotage::{DeafToTheEnd, Honest, Plant, Saboteur, SwallowedEnd};
use crate::checks::{Violation, Watcher};
use crate::grid::Grid;
use crate::measures::Outcome;
use crate::run::{Progress, Run, Watch};
use crate::scenario::{Library, Scenario};
use crate::world::Sight;

const LIBRARY: Library = &[(
    "small",
    r#"
    nodes = 6
    recipe = "sample"
    [network]
    latency = { model = "uniform", min_ms = 10, max_ms = 200 }
    [workload]
    kind = "uniform"
    jobs = 8
    gap_secs = [0, 20]
    width = [2, 3]
    length_secs = [30, 60]
    "#,
)];

/// Looks on with a checker, and away at the end.
struct Careless(Watcher);

impl<F: Plant> Watch<Saboteur<F>> for Careless {
    fn see(&mut self, sight: &Sight<Saboteur<F>>) -> Result<(), Violation> {
        self.0.see(sight)
    }

    fn pause(&mut self, grid: &mut Grid<Saboteur<F>>, progress: Progress) -> Result<(), Violation> {
        self.0.pause(grid, progress)
    }
}

fn prepare<F: Plant>(changes: &str) -> (Run<Saboteur<F>>, Watcher) {
    let scenario = Scenario::built_in(LIBRARY, "small", changes).expect("the scenario makes sense");
    let run: Run<Saboteur<F>> = Run::prepare(&scenario, 1).expect("the scenario makes sense");
    let checkers = run.checkers("this test".to_owned());
    (run, checkers)
}

fn watched<F: Plant>(changes: &str) -> Result<Outcome, Violation> {
    let (run, mut checkers) = prepare::<F>(changes);
    run.finish(&mut checkers)
}

fn carelessly<F: Plant>(changes: &str) -> Outcome {
    let (run, checkers) = prepare::<F>(changes);
    run.finish(&mut Careless(checkers)).expect("nothing is seen before the end")
}

/// The fault is found at the end by this checker in these words, and before that by nobody.
fn found_at_the_end<F: Plant>(check: &str, words: &str) {
    carelessly::<F>("");
    let Err(violation) = watched::<F>("") else { panic!("the fault is not found") };
    assert_eq!(violation.check, check, "{violation}");
    assert!(violation.broken.what.contains(words), "{violation}");
}

#[test]
fn jobs_that_stay_open_while_nothing_runs_are_found_at_the_end_of_a_run() {
    found_at_the_end::<SwallowedEnd>("accounted", "has not ended");
}

#[test]
fn what_is_left_of_jobs_that_have_ended_is_found_at_the_end_of_a_run() {
    found_at_the_end::<DeafToTheEnd>("holds", "the job has ended, and there is a tenure left");
}

#[test]
fn run_that_was_cut_short_may_leave_jobs_behind() {
    for length in ["1m", "3m"] {
        let changes = format!("length = \"{length}\"");
        for outcome in [watched::<SwallowedEnd>(&changes), watched::<Honest>(&changes)] {
            let finished = outcome.expect("jobs may be under way").summary.finished;
            assert!(finished < 8, "{length}: it was cut short");
        }
    }
}

#[test]
fn run_as_long_as_asked_for_in_which_nothing_has_run_for_hours_leaves_no_job_behind() {
    let Err(violation) = watched::<SwallowedEnd>("length = \"4h\"") else { panic!("the fault is not found") };
    assert!(violation.broken.what.contains("has not ended"), "{violation}");
    assert!(watched::<Honest>("length = \"4h\"").is_ok());
}

#[test]
fn what_happens_after_a_run_is_not_measured() {
    let (seen, unseen) = (watched::<Honest>("").expect("all is well"), carelessly::<Honest>(""));
    let figures = |outcome: &Outcome| {
        let mut summary = outcome.summary.clone();
        summary.facts_checked = 0;
        format!("{summary:?} {:?}", outcome.jobs)
    };
    assert_eq!(figures(&seen), figures(&unseen));
}
