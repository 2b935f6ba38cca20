//! Quick tasks in line, which run without a word of the keeper's between two of them until there is something to decide.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use shoal_daemon::executor::process::Keep;
use shoal_model::{Job, Resources, Size, Span, Time};
use shoal_protocols::node::{Action, Exit, Task};

use crate::machine::{HOUR, Machine, brief, lives, sh, task, wait_until};

/// Starts one that waits for a file, and these behind it, each behind the one before.
fn line(machine: &mut Machine, jobs: impl IntoIterator<Item = Job>, limit: Span) -> Vec<Task> {
    let mut all = vec![machine.start(1, sh("until [ -e ../../go ]; do sleep 0.01; done"), limit)];
    for (number, job) in (2..).zip(jobs) {
        let (task, behind) = (task(number), all.last().copied());
        let (brief, stop_at) = (brief(job), Time::ZERO + limit);
        machine.asks(Action::Start { task, brief, stop_at, short: true, behind });
        all.push(task);
    }
    all
}

fn go(machine: &Machine) {
    fs::write(machine.home().join("go"), "").unwrap();
}

/// Notes that it runs, and ends with this code.
fn quick(code: u8) -> Job {
    sh(&format!("echo $SHOAL_JOB_ID >> ../../story; exit {code}"))
}

/// The tasks that have run, in the order of their beginnings.
fn story(machine: &Machine) -> Vec<String> {
    let text = fs::read_to_string(machine.home().join("story")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn names(tasks: &[Task]) -> Vec<String> {
    tasks.iter().map(|task| task.job.to_string()).collect()
}

#[test]
fn quick_tasks_run_one_after_the_other_and_each_has_outputs_and_an_end_of_its_own() {
    let mut machine = Machine::new();
    let missing = Job::command(["no-such-program"]);
    let jobs = (2..=60).map(|number| if number == 30 { missing.clone() } else { quick(number) });
    let all = line(&mut machine, jobs, HOUR);
    go(&machine);
    assert_eq!(machine.hears_of(all[0]), Exit::Code(0));
    for (number, &task) in (2..=60).zip(&all[1..]) {
        let code = if number == 30 { 127 } else { number };
        let ended = machine.hears();
        assert_eq!((ended.task, ended.exit), (task, Exit::Code(code)));
        assert!(machine.file(task, "stdout").exists());
        assert_eq!(ended.usage.wall > Span::ZERO, number != 30);
    }
    let ran: Vec<Task> = all[1..].iter().copied().filter(|&ran| ran != task(30)).collect();
    assert_eq!(story(&machine), names(&ran));
    machine.runs_quickly();
}

#[test]
fn task_that_is_not_quick_is_looked_after_like_any_other_and_the_rest_waits_for_it() {
    let mut machine = Machine::with(Span::from_secs(1), Size::from_bytes(4096));
    let slow = sh("head -c 100000 /dev/zero; until [ -e ../../slow ]; do sleep 0.01; done");
    let jobs = [quick(2), slow, quick(4), quick(5), quick(6)];
    let all = line(&mut machine, jobs, HOUR);
    go(&machine);
    for &task in &all[..2] {
        machine.hears_of(task);
    }
    wait_until("its output is cut", || {
        fs::metadata(machine.file(all[2], "stdout")).is_ok_and(|facts| facts.len() == 4096)
    });
    // One whose turn has not come is taken out, and never runs.
    machine.asks(Action::Stop(all[4]));
    assert_eq!(machine.hears_of(all[4]), Exit::Stopped);
    fs::write(machine.home().join("slow"), "").unwrap();
    assert_eq!(machine.hears_of(all[2]), Exit::Code(0));
    assert_eq!(machine.hears_of(all[3]), Exit::Code(4));
    assert_eq!(machine.hears_of(all[5]), Exit::Code(6));
    assert_eq!(story(&machine), names(&[all[1], all[3], all[5]]));
}

#[test]
fn task_that_is_stopped_in_its_turn_ends_and_the_next_begins() {
    let mut machine = Machine::new();
    let all = line(&mut machine, [quick(2), sh("touch begun; sleep 600"), quick(4)], HOUR);
    go(&machine);
    machine.hears_of(all[0]);
    machine.hears_of(all[1]);
    wait_until("it begins", || machine.file(all[2], "begun").exists());
    machine.asks(Action::Stop(all[2]));
    assert_eq!(machine.hears_of(all[2]), Exit::Stopped);
    assert_eq!(machine.hears_of(all[3]), Exit::Code(4));
}

#[test]
fn what_a_task_leaves_behind_is_killed_before_the_next_begins() {
    let mut machine = Machine::new();
    let leaves =
        sh("setsid sh -c 'echo $$ > pid; sleep 600' & until [ -s pid ]; do sleep 0.01; done; exit 3");
    let all = line(&mut machine, [quick(2), leaves, quick(4), quick(5)], HOUR);
    go(&machine);
    for (number, &task) in (0..).zip(&all) {
        let code = [0, 2, 3, 4, 5][number];
        assert_eq!(machine.hears_of(task), Exit::Code(code));
        if number == 2 {
            assert!(!lives(machine.pid(task, "pid")));
        }
    }
    assert_eq!(story(&machine), names(&[all[1], all[3], all[4]]));
}

#[test]
fn line_ends_with_the_time_of_its_place() {
    let mut machine = Machine::new();
    let all = line(&mut machine, [quick(2), sh("sleep 600"), quick(4)], Span::from_secs(3));
    go(&machine);
    assert_eq!(machine.hears_of(all[0]), Exit::Code(0));
    assert_eq!(machine.hears_of(all[1]), Exit::Code(2));
    assert_eq!(machine.hears_of(all[2]), Exit::CutShort);
    assert_eq!(machine.hears_of(all[3]), Exit::NotStarted);
    assert_eq!(story(&machine), names(&[all[1]]));
}

#[test]
fn quick_line_goes_on_without_its_daemon_and_the_next_hears_of_all() {
    let mut machine = Machine::new();
    let all = line(&mut machine, (2..=40).map(quick), HOUR);
    machine.hears_nothing_for(Duration::from_millis(20));
    machine.kill_daemon();
    go(&machine);
    wait_until("some have run", || story(&machine).len() > 5);
    machine.boot();
    for &task in &all {
        machine.asks(Action::Adopt(task));
    }
    let mut ended: Vec<Task> = all.iter().map(|_| machine.hears().task).collect();
    ended.sort_unstable();
    assert_eq!(ended, all);
    assert_eq!(story(&machine), names(&all[1..]));
}

#[test]
fn whenever_tasks_are_stopped_each_has_one_end_and_the_others_run_in_their_order() {
    for round in 0..20_u64 {
        let mut machine = Machine::new();
        let all = line(&mut machine, (2..=12).map(quick), HOUR);
        go(&machine);
        std::thread::sleep(Duration::from_micros(round * 1_000));
        for &task in all[4..].iter().step_by(2) {
            machine.asks(Action::Stop(task));
        }
        let mut ran = Vec::new();
        let mut ended: Vec<Task> = Vec::new();
        for _ in &all {
            let one = machine.hears();
            ended.push(one.task);
            match one.exit {
                Exit::Code(0) if one.task == all[0] => {}
                Exit::Code(_) => ran.push(one.task),
                exit => assert_eq!(exit, Exit::Stopped, "round {round}"),
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, all, "round {round}");
        let story = story(&machine);
        // One that was stopped while it ran may have noted it.
        let told: Vec<String> = story.iter().filter(|name| names(&ran).contains(name)).cloned().collect();
        assert_eq!(told, names(&ran), "round {round}");
        assert!(story.is_sorted(), "{story:?}");
    }
}

/// Whatever is handed over when, at the end of a ride, in the middle, or when it is over.
#[test]
fn all_of_an_array_run_in_their_order_whether_they_join_a_ride_or_not() {
    let mut machine = Machine::new();
    let environment = Some(Box::new([("OWN".to_owned(), "1".to_owned())].into()));
    let job =
        Job { environment, ..sh("echo $SHOAL_JOB_ID >> ../../story; echo $SHOAL_ARRAY_INDEX $OWN; pwd") };
    let (mut all, mut first) = (Vec::new(), 1);
    for (length, pause) in
        [(20, 0), (20, 0), (1, 90), (1, 95), (1, 100), (1, 105), (20, 200), (1, 0), (30, 0)]
    {
        let train = machine.train(&job, 1, first..=first + length - 1);
        for &task in &train {
            assert_eq!(machine.hears_of(task), Exit::Code(0));
        }
        all.extend(train);
        first += length;
        std::thread::sleep(Duration::from_millis(pause));
    }
    assert_eq!(story(&machine), names(&all));
    for (number, &task) in (1..).zip(&all) {
        let folder = machine.file(task, "stdout").parent().unwrap().to_owned();
        assert_eq!(machine.text(task, "stdout"), format!("{number} 1\n{}\n", folder.display()));
    }
    machine.runs_quickly();
}

#[test]
fn one_that_is_stopped_right_after_it_was_to_join_a_ride_has_one_end_and_the_others_run() {
    let mut machine = Machine::new();
    for round in 0..20 {
        let (first, last) = (10 * round + 1, 10 * round + 8);
        let all = machine.train(&quick(0), 1, first..=last);
        let stopped = all[usize::from(round) % all.len()];
        machine.asks(Action::Stop(stopped));
        let mut ended: Vec<Task> = all
            .iter()
            .map(|_| machine.hears())
            .inspect(|ended| {
                assert!(ended.exit == Exit::Code(0) || ended.task == stopped, "{ended:?}");
            })
            .map(|ended| ended.task)
            .collect();
        ended.sort_unstable();
        assert_eq!(ended, all);
    }
    machine.runs_quickly();
}

#[test]
fn whoever_stands_behind_a_ride_begins_and_nobody_joins_in_front_of_it() {
    let mut machine = Machine::new();
    let train = machine.train(&quick(0), 1, 1..=5);
    let (other, behind) = (task(6), train.last().copied());
    let (brief, stop_at) = (brief(quick(6)), Time::ZERO + HOUR);
    machine.asks(Action::Start { task: other, brief, stop_at, short: true, behind });
    for &task in &train {
        assert_eq!(machine.hears_of(task), Exit::Code(0));
    }
    let next = machine.train(&quick(0), 1, 7..=9);
    let ended: BTreeMap<Task, Exit> =
        (0..4).map(|_| machine.hears()).map(|ended| (ended.task, ended.exit)).collect();
    let others = next.into_iter().map(|task| (task, Exit::Code(0)));
    assert_eq!(ended, others.chain([(other, Exit::Code(6))]).collect());
}

#[test]
fn whoever_begins_when_a_train_has_ended_has_the_processors_that_it_had() {
    let mut machine = Machine::new();
    machine.keep(Keep { pinned: true, ..Keep::default() });
    let cores = std::thread::available_parallelism().unwrap().get() as u32;
    let all = |script| Job { resources: Resources::cores(cores), ..sh(script) };
    for (round, millis) in (0..).zip([0, 1, 50, 90, 95, 98, 99, 100, 101, 102, 105, 110, 130]) {
        let first = 10 * round + 1;
        for train in machine.train(&all("true"), round, first..=first + 5) {
            assert_eq!(machine.hears_of(train), Exit::Code(0));
        }
        std::thread::sleep(Duration::from_millis(millis));
        let one = machine.start(first + 8, all("echo $SHOAL_CPUS"), HOUR);
        assert_eq!(machine.hears_of(one), Exit::Code(0));
        assert_ne!(machine.text(one, "stdout").trim(), "", "after {millis} ms it floats");
    }
}

#[test]
fn program_that_comes_to_be_while_a_ride_lasts_is_found_by_the_next() {
    let mut machine = Machine::new();
    let program = machine.home().join("program");
    let job = Job::command([program.to_str().unwrap()]);
    let before = machine.train(&job, 1, 1..=3);
    for task in before {
        assert_eq!(machine.hears_of(task), Exit::Code(127));
    }
    fs::write(&program, "#!/bin/sh\nexit 3\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for task in machine.train(&job, 1, 4..=6) {
        assert_eq!(machine.hears_of(task), Exit::Code(3));
    }
}
