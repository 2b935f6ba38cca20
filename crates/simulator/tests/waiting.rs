//! Jobs that wait: for room, for their user, for other jobs, for their turn in an array.

use std::collections::BTreeMap;

use shoal_model::job::{After, Ended, Mode};
use shoal_model::{Envelope, Job, JobId, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::Shared;
use shoal_protocols::node::{Action, Command, End, Event, Node, Outcome, Refusal, Task, config};
use shoal_simulator::grid::{self, Grid, Start};
use shoal_simulator::network::{self, latency};
use shoal_simulator::processes::command_taking;
use shoal_simulator::world::{Saw, Sight};

/// When the nodes know each other.
const BEGIN: Time = Time::from_secs(60);

struct Stage {
    grid: Grid,
    seen: Vec<Sight<Node>>,
    jobs: u128,
}

impl Stage {
    fn new(nodes: usize, eager: bool) -> Stage {
        Stage::of(nodes, 1, eager)
    }

    fn of(nodes: usize, cores: u32, eager: bool) -> Stage {
        let grid = Grid::build(grid::Config {
            seed: 1,
            nodes,
            network: network::Config::calm(latency::Config::Constant(latency::Constant { delay_ms: 5.0 })),
            faults: Default::default(),
            fsync: Span::from_millis(1),
            overlay: Default::default(),
            start: Start::Join,
            work: config::Work {
                machine: Machine::with_capacity(Resources::cores(cores)),
                recipe: config::Recipe::Sample(Default::default()),
                commit: Default::default(),
                heartbeat: Default::default(),
                limit_default: Span::from_hours(1),
                eager,
                gate: Default::default(),
            },
            machines: vec![Machine::with_capacity(Resources::cores(cores))],
            threads: 1,
            watch: true,
            story: false,
        });
        Stage { grid: grid.expect("the network makes sense"), seen: Vec::new(), jobs: 0 }
    }

    fn command(&mut self, secs: u64, node: u64, command: Command) {
        self.grid.world().command(BEGIN + Span::from_secs(secs), NodeId(node), command);
    }

    fn submit(&mut self, secs: u64, node: u64, job: Job) -> JobId {
        self.submit_after(secs, node, job, &[])
    }

    fn submit_after(&mut self, secs: u64, node: u64, job: Job, owners: &[(JobId, NodeId)]) -> JobId {
        self.jobs += 1;
        let envelope = Envelope::new(job, Nonce(self.jobs.to_le_bytes())).expect("the job makes sense");
        let id = envelope.id();
        self.command(secs, node, Command::SubmitAfter(Shared::new(envelope), owners.into()));
        id
    }

    fn run(&mut self, secs: u64) {
        self.grid.world().run_before(BEGIN + Span::from_secs(secs));
        self.seen.extend(self.grid.world().sights());
    }

    /// When each task of a job started, in seconds.
    fn starts(&self, job: JobId) -> Vec<u64> {
        let starts = self.seen.iter().filter_map(|sight| match &sight.saw {
            Saw::Act(Action::Start { task, .. }) if task.job == job => Some(sight.at.since(BEGIN)),
            _ => None,
        });
        starts.map(|at| at.as_micros() / 1_000_000).collect()
    }

    fn end(&self, job: JobId) -> Option<End> {
        let ends = self.seen.iter().filter_map(|sight| match &sight.saw {
            Saw::Event(Event::Ended(ended, end)) if *ended == job => Some(*end),
            _ => None,
        });
        let ends: Vec<End> = ends.collect();
        assert!(ends.len() <= 1, "{job:?} ended as {ends:?}");
        ends.first().copied()
    }

    fn placements(&self, job: JobId) -> usize {
        let of_job = |saw: &Saw<Node>| matches!(saw, Saw::Event(Event::Placed(placed, _)) if *placed == job);
        self.seen.iter().filter(|sight| of_job(&sight.saw)).count()
    }
}

/// Takes so many seconds, and asks for an hour.
fn quick(secs: u64) -> Job {
    Job { limit: Some(Span::from_hours(1)), ..command_taking(Span::from_secs(secs)) }
}

fn after(job: JobId, ended: Ended) -> Option<Box<After>> {
    Some(Box::new(After([(job, ended)].into())))
}

#[test]
fn job_starts_early_when_the_one_before_it_ends_early_and_else_at_its_time() {
    for (eager, starts) in [(true, 10), (false, 3600)] {
        let mut stage = Stage::new(1, eager);
        let first = stage.submit(0, 1, quick(10));
        let second = stage.submit(1, 1, quick(10));
        stage.run(2 * 3600);
        assert_eq!((stage.starts(first), stage.starts(second)), (vec![0], vec![starts]), "eager: {eager}");
        assert_eq!(stage.end(second), Some(End::Finished));
    }
}

#[test]
fn jobs_are_pulled_forward_in_the_order_of_their_starts() {
    let mut stage = Stage::new(1, true);
    let jobs: Vec<JobId> = (0..6).map(|number| stage.submit(number, 1, quick(10))).collect();
    stage.run(3600);
    let starts: Vec<Vec<u64>> = jobs.iter().map(|&job| stage.starts(job)).collect();
    assert_eq!(starts, [[0], [10], [20], [30], [40], [50]]);
}

#[test]
fn job_that_must_not_run_twice_is_pulled_forward_too_and_runs_once() {
    let mut stage = Stage::new(1, true);
    stage.submit(0, 1, quick(10));
    let once = stage.submit(1, 1, Job { mode: Some(Mode::AtMostOnce), ..quick(10) });
    stage.run(3600);
    assert_eq!((stage.starts(once), stage.end(once)), (vec![10], Some(End::Finished)));
}

#[test]
fn job_is_not_pulled_before_the_time_from_which_it_may_start() {
    let mut stage = Stage::new(1, true);
    stage.submit(0, 1, quick(10));
    let begin = Some(BEGIN + Span::from_secs(300));
    let late = stage.submit(1, 1, Job { begin, ..quick(10) });
    let other = stage.submit(2, 1, Job { limit: Some(Span::from_secs(20)), ..quick(10) });
    stage.run(2 * 3600);
    assert_eq!(stage.starts(other), [10], "it fits before the one that has to wait");
    assert_eq!(stage.starts(late), [300], "its owner has found it a better time");
}

#[test]
fn job_moves_to_a_node_that_becomes_free() {
    let mut stage = Stage::new(2, true);
    // Both nodes are taken for an hour, and a third job waits for one of them.
    for node in [1, 2] {
        stage.submit(
            0,
            node,
            Job { limit: Some(Span::from_hours(1)), ..command_taking(Span::from_mins(50)) },
        );
    }
    let waits = stage.submit(1, 1, quick(10));
    stage.run(3600 + 1800);
    assert_eq!(stage.starts(waits), [3000], "the one whose node is free first");
}

#[test]
fn gang_moves_to_an_earlier_time_for_all_its_nodes() {
    let mut stage = Stage::new(3, true);
    for node in 1..=3 {
        stage.submit(0, node, quick(100));
    }
    let gang = stage.submit(1, 1, Job { nodes: 3.try_into().unwrap(), ..quick(10) });
    stage.run(3600);
    let starts = stage.starts(gang);
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|&start| start < 120 && start == starts[0]), "{starts:?}");
    assert_eq!(stage.placements(gang), 2, "it had a place, and then a better one");
    assert_eq!(stage.end(gang), Some(End::Finished));
}

#[test]
fn jobs_and_gangs_that_take_less_than_their_limits_do_not_wait_for_these() {
    let mut stage = Stage::new(5, true);
    let jobs: Vec<JobId> = (0..200_u32)
        .map(|number| {
            let nodes = if number % 5 == 0 { 2 + number % 2 } else { 1 };
            let limit = Some(Span::from_secs(20));
            let job = Job { nodes: nodes.try_into().unwrap(), limit, ..command_taking(Span::from_secs(1)) };
            stage.submit(u64::from(number) / 20, u64::from(number % 5) + 1, job)
        })
        .collect();
    stage.run(3600);
    let last = jobs.iter().flat_map(|&job| stage.starts(job)).max().unwrap();
    assert!(jobs.iter().all(|&job| stage.end(job) == Some(End::Finished)));
    // They take 52 s of all five nodes, and 1,040 s by their limits.
    assert!(last < 90, "the last one started after {last} s");
}

#[test]
fn held_job_gives_back_its_place_and_starts_once_it_is_released() {
    let mut stage = Stage::new(1, false);
    stage.submit(0, 1, Job { limit: Some(Span::from_secs(60)), ..quick(50) });
    let held = stage.submit(1, 1, Job { limit: Some(Span::from_secs(60)), ..quick(50) });
    let next = stage.submit(20, 1, Job { limit: Some(Span::from_secs(60)), ..quick(50) });
    stage.command(10, 1, Command::Hold(held));
    stage.command(300, 1, Command::Release(held));
    stage.run(3600);
    assert_eq!(stage.starts(next), [60], "the place that was given back");
    assert_eq!((stage.starts(held), stage.end(held)), (vec![300], Some(End::Finished)));
}

#[test]
fn job_stays_held_through_a_crash_of_its_owner() {
    let mut stage = Stage::new(1, true);
    let held = stage.submit(0, 1, Job { begin: Some(BEGIN + Span::from_secs(100)), ..quick(10) });
    stage.command(5, 1, Command::Hold(held));
    stage.grid.world().crash(BEGIN + Span::from_secs(10), NodeId(1));
    stage.grid.world().boot(BEGIN + Span::from_secs(20), NodeId(1));
    stage.run(1000);
    assert_eq!(stage.starts(held), [] as [u64; 0]);
    stage.command(1000, 1, Command::Release(held));
    stage.run(2000);
    assert_eq!(stage.starts(held), [1000]);
}

#[test]
fn job_that_must_not_run_twice_can_be_held_beyond_its_time() {
    let mut stage = Stage::new(2, false);
    let begin = Some(BEGIN + Span::from_secs(100));
    let held = stage.submit(0, 1, Job { begin, mode: Some(Mode::AtMostOnce), ..quick(10) });
    stage.command(10, 1, Command::Hold(held));
    stage.command(500, 1, Command::Release(held));
    stage.run(3600);
    assert_eq!((stage.starts(held), stage.end(held)), (vec![500], Some(End::Finished)));
}

#[test]
fn job_that_runs_or_is_about_to_is_not_held() {
    let mut stage = Stage::new(1, false);
    let runs = stage.submit(0, 1, quick(50));
    let soon = stage.submit(0, 1, Job { begin: Some(BEGIN + Span::from_secs(3_603)), ..quick(5) });
    stage.command(10, 1, Command::Hold(runs));
    stage.command(3_600, 1, Command::Hold(soon));
    stage.run(7200);
    let refused = stage.seen.iter().filter_map(|sight| match &sight.saw {
        Saw::Event(Event::Refused(job, Refusal::Started)) => Some(*job),
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [runs, soon]);
    assert_eq!((stage.end(runs), stage.end(soon)), (Some(End::Finished), Some(End::Finished)));
}

#[test]
fn job_starts_after_the_one_it_waits_for_whoever_owns_that() {
    for owner in [1, 2] {
        let mut stage = Stage::new(2, true);
        let first = stage.submit(0, owner, quick(30));
        let second = Job { after: after(first, Ended::Ok), ..quick(10) };
        let second = stage.submit_after(1, 1, second, &[(first, NodeId(owner))]);
        stage.run(3600);
        assert_eq!(stage.starts(second), [30], "owner {owner}");
        assert_eq!(stage.end(second), Some(End::Finished));
    }
}

#[test]
fn job_that_waits_is_found_again_after_crashes_of_both_owners() {
    let mut stage = Stage::new(2, true);
    let first = stage.submit(0, 2, quick(30));
    let second = Job { after: after(first, Ended::Ok), ..quick(10) };
    let second = stage.submit_after(1, 1, second, &[(first, NodeId(2))]);
    for node in [1, 2] {
        stage.grid.world().crash(BEGIN + Span::from_secs(25), NodeId(node));
        stage.grid.world().boot(BEGIN + Span::from_secs(40), NodeId(node));
    }
    stage.run(3600);
    assert_eq!((stage.end(first), stage.end(second)), (Some(End::Finished), Some(End::Finished)));
    assert!(stage.starts(second)[0] >= 40);
}

#[test]
fn job_ends_unmet_when_the_other_fails_unless_any_end_will_do() {
    for (ended, end) in [(Ended::Ok, None), (Ended::Any, Some(End::Finished))] {
        let mut stage = Stage::new(1, true);
        let fails = stage.submit(0, 1, Job::command(["false"]));
        let second = stage.submit(0, 1, Job { after: after(fails, ended), ..quick(10) });
        let third = stage.submit(0, 1, Job { after: after(second, Ended::Ok), ..quick(10) });
        stage.run(3600);
        assert_eq!(stage.end(second), Some(end.unwrap_or(End::Unmet(fails))));
        assert_eq!(stage.end(third), Some(end.unwrap_or(End::Unmet(second))));
    }
}

#[test]
fn chain_of_ten_thousand_jobs_ends_with_its_first() {
    let mut stage = Stage::new(1, true);
    let first = stage.submit(0, 1, Job { begin: Some(BEGIN + Span::from_hours(1)), ..quick(10) });
    let mut last = first;
    for _ in 0..10_000 {
        last = stage.submit(1, 1, Job { after: after(last, Ended::Ok), ..quick(10) });
    }
    stage.command(2, 1, Command::Cancel(first));
    stage.run(60);
    assert!(matches!(stage.end(last), Some(End::Unmet(_))));
}

#[test]
fn job_after_one_that_nobody_knows_is_refused() {
    let mut stage = Stage::new(1, true);
    let nobody = JobId::from_number(7);
    let job = stage.submit(0, 1, Job { after: after(nobody, Ended::Ok), ..quick(10) });
    stage.run(10);
    let refused = |sight: &Sight<Node>| {
        matches!(&sight.saw, Saw::Event(Event::Refused(refused, Refusal::Unknown(other)))
            if (*refused, *other) == (job, nobody))
    };
    assert!(stage.seen.iter().any(refused));
}

/// An array of jobs that take ten seconds each.
fn array(indexes: &str) -> Job {
    Job { array: Some(Box::new(indexes.parse().unwrap())), ..quick(10) }
}

/// How many tasks ran at once, at most, and how often each ran.
fn at_once(stage: &Stage) -> (usize, BTreeMap<Task, usize>) {
    let (mut running, mut most) = (0_usize, 0);
    let mut runs = BTreeMap::new();
    for sight in &stage.seen {
        match &sight.saw {
            Saw::Act(Action::Start { task, .. }) => {
                running += 1;
                most = most.max(running);
                *runs.entry(*task).or_default() += 1;
            }
            Saw::Done(Outcome(..)) => running -= 1,
            _ => {}
        }
    }
    (most, runs)
}

#[test]
fn array_runs_a_job_for_each_index_and_no_more_at_once_than_it_may() {
    for (indexes, most, jobs) in [("1-12", 4, 12), ("1-12%2", 2, 12), ("5,7-9:2,100%1", 1, 4)] {
        let mut stage = Stage::new(4, true);
        let id = stage.submit(0, 1, array(indexes));
        stage.run(3600);
        assert_eq!(stage.end(id), Some(End::Finished), "{indexes}");
        let (at_once, runs) = at_once(&stage);
        assert_eq!((at_once, runs.len()), (most, jobs), "{indexes}");
        assert!(runs.values().all(|&times| times == 1));
        assert_eq!(stage.end(id.of_index(7)), Some(End::Finished), "{indexes}");
    }
}

#[test]
fn array_of_a_thousand_goes_on_after_a_crash_of_its_owner() {
    let mut stage = Stage::new(4, true);
    let id = stage.submit(0, 1, Job { array: array("0-999").array, ..quick(1) });
    for crash in [30, 77, 200] {
        stage.grid.world().crash(BEGIN + Span::from_secs(crash), NodeId(1));
        stage.grid.world().boot(BEGIN + Span::from_secs(crash + 3), NodeId(1));
    }
    stage.run(4 * 3600);
    assert_eq!(stage.end(id), Some(End::Finished));
    let ended = (0..1_000).filter(|&index| stage.end(id.of_index(index)) == Some(End::Finished)).count();
    assert_eq!(ended, 1_000, "each of them, and each once");
}

#[test]
fn array_has_as_many_jobs_at_once_as_there_is_room_for_also_after_a_crash_of_its_owner() {
    for crash in [None, Some(60), Some(150)] {
        let mut stage = Stage::of(15, 40, true);
        let id = stage.submit(0, 1, Job { array: array("1-1500").array, ..quick(100) });
        if let Some(crash) = crash {
            stage.grid.world().crash(BEGIN + Span::from_secs(crash), NodeId(1));
            stage.grid.world().boot(BEGIN + Span::from_secs(crash + 3), NodeId(1));
        }
        stage.run(3600);
        assert_eq!(stage.end(id), Some(End::Finished), "{crash:?}");
        let (at_once, runs) = at_once(&stage);
        assert!(at_once > 560, "{at_once} of 600 at once, {crash:?}");
        assert_eq!(finished(&stage, id, 1..=1500), 1500, "{crash:?}");
        // None is taken for quick, and those that ran on the owner itself may have been lost with it.
        let starts = runs.values().sum::<usize>();
        assert!(starts <= 1540 && rides(&stage) == 0, "{starts} starts, {crash:?}");
    }
}

#[test]
fn array_fails_if_one_of_its_jobs_does_and_all_of_them_run() {
    let mut stage = Stage::new(2, true);
    let id = stage.submit(0, 1, Job { array: array("1-5").array, ..Job::command(["false"]) });
    let next = stage.submit(0, 1, Job { after: after(id, Ended::Any), ..quick(1) });
    stage.run(3600);
    assert!(matches!(stage.end(id), Some(End::Failed(..))), "{:?}", stage.end(id));
    assert_eq!(at_once(&stage).1.len(), 6);
    assert_eq!(stage.end(next), Some(End::Finished));
}

#[test]
fn cancelled_array_starts_no_more_jobs_and_its_running_ones_stop() {
    let mut stage = Stage::new(2, true);
    let id = stage.submit(0, 1, array("1-100"));
    stage.command(25, 1, Command::Cancel(id));
    stage.run(3600);
    assert_eq!(stage.end(id), Some(End::Cancelled));
    let late = at_once(&stage).1.keys().flat_map(|task| stage.starts(task.job)).max();
    assert!(late.is_some_and(|late| late <= 25), "{late:?}");
    for node in [1, 2] {
        let node = stage.grid.look().core(NodeId(node));
        assert_eq!((node.tasks().count(), node.commit().unwrap().locks().count()), (0, 0));
    }
}

#[test]
fn held_array_goes_on_where_it_was() {
    let mut stage = Stage::new(2, true);
    let id = stage.submit(0, 1, array("1-20"));
    stage.command(15, 1, Command::Hold(id));
    stage.grid.world().crash(BEGIN + Span::from_secs(16), NodeId(1));
    stage.grid.world().boot(BEGIN + Span::from_secs(18), NodeId(1));
    stage.command(500, 1, Command::Release(id));
    stage.run(3600);
    assert_eq!(stage.end(id), Some(End::Finished));
    let starts: Vec<u64> = (1..=20).flat_map(|index| stage.starts(id.of_index(index))).collect();
    assert!(starts.iter().all(|start| !(25..500).contains(start)), "{starts:?}");
}

/// An array of jobs that take no time, but for some of them.
fn sometimes(indexes: &str, secs: u64, every: u32) -> Job {
    let command = Job::command(["sometimes", &secs.to_string(), &every.to_string()]);
    Job { array: array(indexes).array, limit: Some(Span::from_hours(1)), ..command }
}

/// How many tasks were started behind others.
fn rides(stage: &Stage) -> usize {
    let rides = |saw: &Saw<Node>| matches!(saw, Saw::Act(Action::Start { behind: Some(_), .. }));
    stage.seen.iter().filter(|sight| rides(&sight.saw)).count()
}

/// How many jobs of an array finished.
fn finished(stage: &Stage, array: JobId, indexes: std::ops::RangeInclusive<u32>) -> usize {
    indexes.filter(|&index| stage.end(array.of_index(index)) == Some(End::Finished)).count()
}

#[test]
fn quick_jobs_of_an_array_share_places_and_each_runs_and_ends_once() {
    let mut stage = Stage::new(4, true);
    let id = stage.submit(0, 1, sometimes("1-1500", 0, 1));
    stage.run(600);
    assert_eq!(stage.end(id), Some(End::Finished));
    assert_eq!(finished(&stage, id, 1..=1500), 1500);
    let (_, runs) = at_once(&stage);
    assert_eq!((runs.len(), runs.values().sum::<usize>()), (1500, 1500), "each runs once");
    assert!(rides(&stage) > 1000, "{} of 1,500 ride with others", rides(&stage));
    for node in 1..=4 {
        let node = stage.grid.look().core(NodeId(node));
        assert_eq!((node.tasks().count(), node.commit().unwrap().locks().count()), (0, 0));
    }
}

#[test]
fn those_planned_before_it_is_known_how_quick_they_are_are_few() {
    let mut stage = Stage::new(1, true);
    let takes = Job::command(["sometimes", "0.05", "1"]);
    let id = stage.submit(0, 1, Job { work: takes.work, ..sometimes("1-3000", 0, 1) });
    stage.run(600);
    assert_eq!(finished(&stage, id, 1..=3000), 3000);
    let alone = 3000 - rides(&stage);
    assert!(alone < 256, "{alone} have places of their own");
}

#[test]
fn jobs_that_are_slow_or_counted_or_must_not_run_twice_share_no_place() {
    let once = Job { mode: Some(Mode::AtMostOnce), ..sometimes("1-300", 0, 1) };
    for job in [sometimes("1-300", 1, 1), sometimes("1-300%4", 0, 1), once] {
        let mut stage = Stage::new(4, true);
        let id = stage.submit(0, 1, job);
        stage.run(3600);
        assert_eq!((stage.end(id), rides(&stage)), (Some(End::Finished), 0));
    }
}

#[test]
fn nobody_waits_long_behind_one_that_is_slow_for_once() {
    let mut stage = Stage::new(4, true);
    let id = stage.submit(0, 1, sometimes("1-1500", 300, 500));
    stage.run(200);
    // Three are slow, and that those have ended which lead their trains is told with them.
    let finished_by_then = finished(&stage, id, 1..=1500);
    assert!((1494..=1497).contains(&finished_by_then), "{finished_by_then}");
    stage.run(1200);
    assert_eq!(stage.end(id), Some(End::Finished));
    assert_eq!(finished(&stage, id, 1..=1500), 1500);
}

#[test]
fn when_each_that_rides_began_is_told_also_of_those_so_quick_that_nobody_says_so() {
    let mut stage = Stage::new(4, true);
    let id = stage.submit(0, 1, sometimes("1-1500", 300, 500));
    stage.run(1400);
    assert_eq!(finished(&stage, id, 1..=1500), 1500);
    let began = stage.seen.iter().filter_map(|sight| match &sight.saw {
        Saw::Event(Event::Started(task, at)) => Some((task.job, *at)),
        _ => None,
    });
    let began: BTreeMap<JobId, Time> = began.collect();
    assert_eq!(began.len(), 1500);
    for slow in [500, 1000, 1500].map(|index| id.of_index(index)) {
        let ends =
            |sight: &&Sight<Node>| matches!(&sight.saw, Saw::Event(Event::Ended(job, _)) if *job == slow);
        let ended = stage.seen.iter().find(ends).expect("it has ended").at;
        assert!(ended.since(began[&slow]) >= Span::from_secs(300));
    }
}

#[test]
fn trains_survive_the_deaths_of_their_owner_and_of_their_nodes() {
    for (crashed, at) in [(1, [2_000, 3_500]), (2, [1_500, 2_500]), (3, [1_800, 6_000])] {
        let mut stage = Stage::new(4, true);
        let id = stage.submit(0, 1, sometimes("1-1500", 2, 100));
        for millis in at {
            let at = BEGIN + Span::from_millis(millis);
            stage.grid.world().crash(at, NodeId(crashed));
            stage.grid.world().boot(at + Span::from_secs(2), NodeId(crashed));
        }
        stage.run(3600);
        assert_eq!(stage.end(id), Some(End::Finished), "{crashed} crashes");
        assert_eq!(finished(&stage, id, 1..=1500), 1500, "{crashed} crashes");
        assert!(rides(&stage) > 500, "{}", rides(&stage));
    }
}

#[test]
fn one_that_rides_can_be_cancelled_and_the_others_go_on() {
    let mut stage = Stage::new(2, true);
    let id = stage.submit(0, 1, sometimes("1-1500", 200, 1200));
    let slow = id.of_index(1200);
    stage.command(100, 1, Command::Cancel(slow));
    stage.run(3600);
    assert_eq!(stage.end(slow), Some(End::Cancelled));
    assert_eq!(finished(&stage, id, 1..=1500), 1499);
    let over = stage
        .seen
        .iter()
        .filter(|sight| matches!(&sight.saw, Saw::Event(Event::Ended(job, _)) if *job == id));
    assert!(over.map(|sight| sight.at.since(BEGIN)).all(|at| at < Span::from_secs(110)), "it was stopped");
}

/// How many tasks had places of their own.
fn alone(stage: &Stage) -> usize {
    let alone = |saw: &Saw<Node>| matches!(saw, Saw::Act(Action::Start { behind: None, .. }));
    stage.seen.iter().filter(|sight| alone(&sight.saw)).count()
}

#[test]
fn array_that_was_held_shares_places_again_once_it_is_released() {
    let mut stage = Stage::new(1, true);
    let id = stage.submit(0, 1, sometimes("1-3000", 300, 1000));
    stage.command(20, 1, Command::Hold(id));
    stage.command(30, 1, Command::Release(id));
    stage.run(3600);
    assert_eq!(finished(&stage, id, 1..=3000), 3000);
    assert_eq!(stage.end(id), Some(End::Finished));
    let began = stage.starts(id.of_index(1000))[0];
    assert!(began < 20, "it runs while the others are held, from {began} s on");
    assert!(alone(&stage) < 100, "{} of 3,000 had places of their own", alone(&stage));
}

#[test]
fn of_a_train_that_waits_one_is_held_and_the_others_run() {
    let mut stage = Stage::new(1, true);
    let id = stage.submit(0, 1, sometimes("1-3000", 300, 1000));
    let held = [1400, 1401, 2500].map(|index| id.of_index(index));
    for held in held {
        stage.command(20, 1, Command::Hold(held));
    }
    stage.run(3600);
    let is_held = |job| {
        let told = |saw: &Saw<Node>| matches!(saw, Saw::Event(Event::Held(held, true)) if *held == job);
        stage.seen.iter().any(|sight| told(&sight.saw))
    };
    let open: Vec<JobId> = held.into_iter().filter(|&job| stage.end(job).is_none()).collect();
    let told: Vec<JobId> = held.into_iter().filter(|&job| is_held(job)).collect();
    assert_eq!(open, told, "who is said to be held does not run, and who is not runs");
    assert_eq!(finished(&stage, id, 1..=3000), 3000 - open.len());
}
