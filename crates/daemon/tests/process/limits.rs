//! What tasks are not allowed, and how they are ended.

use std::time::{Duration, Instant};

use shoal_model::{Job, Size, Span};
use shoal_protocols::node::{Action, Exit};

use crate::machine::{HOUR, Machine, lives, sh, task, wait_until};

/// A tree with all kinds of branches: in the group, out of it, deaf to TERM, without its environment, and orphaned.
const TREE: &str = "\
    sleep 1000 & echo $! > in_group
    setsid sh -c 'echo $$ > outside; sleep 1000; true' &
    setsid sh -c 'trap \"\" TERM; echo $$ > deaf; while :; do sleep 0.1; done' &
    env -i setsid sh -c 'echo $$ > nameless; sleep 1000; true' &
    (setsid sh -c '(echo $(exec sh -c \"echo \\$PPID\") > orphan; exec sleep 1000) &' &)
    trap '' TERM
    echo $$ > leader";
const BRANCHES: [&str; 6] = ["in_group", "outside", "deaf", "nameless", "orphan", "leader"];

#[test]
fn task_beyond_its_limit_is_ended_with_its_whole_tree() {
    let mut machine = Machine::with(Span::from_millis(200), Size::from_mib(1));
    let began = Instant::now();
    machine.start(1, sh(&format!("{TREE}; while :; do sleep 0.1; done")), Span::from_millis(1500));
    let tree = BRANCHES.map(|name| machine.pid(task(1), name));
    assert!(tree.iter().all(|&pid| lives(pid)));
    assert_eq!(machine.hears_of(task(1)), Exit::Overran);
    assert!(began.elapsed() >= Duration::from_millis(1700));
    // No waiting: the end is told when nothing is left.
    assert_eq!(BRANCHES.iter().zip(tree).filter(|branch| lives(branch.1)).collect::<Vec<_>>(), []);
}

#[test]
fn task_that_had_less_than_its_time_is_cut_short() {
    let mut machine = Machine::with(Span::from_millis(100), Size::from_mib(1));
    machine.start_short(1, sh("sleep 1000"), Span::from_millis(300));
    assert_eq!(machine.hears_of(task(1)), Exit::CutShort);
    machine.start_short(2, sh("exit 3"), HOUR);
    assert_eq!(machine.hears_of(task(2)), Exit::Code(3), "what ends in time ends as it does");
}

#[test]
fn what_a_task_leaves_behind_ends_with_it() {
    let mut machine = Machine::new();
    machine.start(
        1,
        sh(&format!(
            "{TREE}; until [ -s orphan -a -s nameless -a -s deaf -a -s outside ]; do sleep 0.05; done; exit 5"
        )),
        HOUR,
    );
    let tree = BRANCHES.map(|name| machine.pid(task(1), name));
    assert_eq!(machine.hears_of(task(1)), Exit::Code(5));
    assert_eq!(BRANCHES.iter().zip(tree).filter(|branch| lives(branch.1)).collect::<Vec<_>>(), []);
}

#[test]
fn orphan_lives_as_long_as_its_task() {
    let mut machine = Machine::with(Span::from_millis(100), Size::from_mib(1));
    machine.start(1, sh("(setsid sh -c 'echo $$ > orphan; sleep 1000; true' &); sleep 1000; true"), HOUR);
    let orphan = machine.pid(task(1), "orphan");
    // The end of another task is when orphans are looked at.
    assert_eq!(machine.runs(2, sh("true")).exit, Exit::Code(0));
    assert!(lives(orphan));
    machine.asks(Action::Stop(task(1)));
    // It has left the group and was not told to end, but its grace is over too.
    assert_eq!(machine.hears_of(task(1)), Exit::Stopped);
    assert!(!lives(orphan));
}

#[test]
fn stopped_task_may_tidy_up_first() {
    let mut machine = Machine::new();
    machine.start(
        1,
        sh("trap 'sleep 0.1; echo tidy; exit 0' TERM; echo $$ > leader; while :; do sleep 0.05; done"),
        HOUR,
    );
    machine.pid(task(1), "leader");
    machine.asks(Action::Stop(task(1)));
    machine.asks(Action::Stop(task(1)));
    assert_eq!(machine.hears_of(task(1)), Exit::Stopped);
    assert_eq!(machine.text(task(1), "stdout"), "tidy\n");
    machine.hears_nothing_for(Duration::from_millis(20));
}

#[test]
fn task_that_is_stopped_before_it_is_forked_ends_too() {
    let mut machine = Machine::new();
    machine.start(1, sh("sleep 1000"), HOUR);
    machine.asks(Action::Stop(task(1)));
    assert_eq!(machine.hears_of(task(1)), Exit::Stopped);
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn task_that_has_itself_traced_and_halts_has_not_ended() {
    let has_perl =
        std::process::Command::new("perl").arg("-e1").status().is_ok_and(|status| status.success());
    if !has_perl {
        return;
    }
    let mut machine = Machine::with(Span::from_millis(100), Size::from_mib(1));
    // Its parent is to trace it, and hears that it halts.
    let traced = Job::command([
        "perl",
        "-e",
        "print 'begun'; $| = 1; syscall(101, 0, 0, 0, 0); kill 'STOP', $$; exit 3",
    ]);
    machine.start(1, traced, Span::from_secs(3));
    machine.hears_nothing_for(Duration::from_millis(200));
    assert_eq!(machine.runs(2, sh("true")).exit, Exit::Code(0), "others go on");
    assert_eq!(machine.hears_of(task(1)), Exit::Overran);
}

#[test]
fn task_without_time_is_not_started() {
    let mut machine = Machine::new();
    machine.start(1, sh("touch ../../was_here"), Span::ZERO);
    assert_eq!(machine.hears_of(task(1)), Exit::NotStarted);
    assert!(!machine.home().join("was_here").exists());
}

#[test]
fn output_beyond_its_cap_is_cut_while_it_is_written_and_marked() {
    let mut machine = Machine::with(Span::from_secs(5), Size::from_bytes(1_000));
    let flood = "yes 0123456789 | head -c 500000; until [ -e ../../go ]; do sleep 0.05; done; echo late; echo short >&2";
    machine.start(1, sh(flood), HOUR);
    let length = || std::fs::metadata(machine.file(task(1), "stdout")).map_or(0, |facts| facts.len());
    wait_until("the output is cut", || length() == 1_000);
    std::fs::write(machine.home().join("go"), "").unwrap();
    let ended = machine.hears();
    assert_eq!((ended.stdout_dropped, ended.stderr_dropped), (499_005, 0));
    let text = machine.text(task(1), "stdout");
    let (kept, mark) = text.split_at(1_000);
    assert!(kept.starts_with("0123456789\n0123456789\n") && !kept.contains("late"));
    assert_eq!(mark, "\n[shoal: cut here after 1000 bytes; at least 499005 more were dropped]\n");
    assert_eq!(machine.text(task(1), "stderr"), "short\n");
}
