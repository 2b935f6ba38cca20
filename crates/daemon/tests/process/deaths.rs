//! Who survives whose death.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shoal_protocols::node::{Action, Exit, Task};

use crate::machine::{HOUR, Machine, lives, parent, sh, task, wait_until};

/// A task that runs until it is told to go on, and whose process is known.
fn patient(machine: &mut Machine) -> (Task, Pid) {
    let script =
        "echo once >> ../../starts; echo $$ > leader; until [ -e ../../go ]; do sleep 0.02; done; exit 4";
    let task = machine.start(1, sh(script), HOUR);
    let pid = machine.pid(task, "leader");
    (task, pid)
}

fn go(machine: &Machine) {
    std::fs::write(machine.home().join("go"), "").unwrap();
}

fn starts(machine: &Machine) -> usize {
    std::fs::read_to_string(machine.home().join("starts")).unwrap().lines().count()
}

#[test]
fn task_runs_on_without_its_daemon_and_is_found_by_the_next() {
    let mut machine = Machine::new();
    let (task, pid) = patient(&mut machine);
    let supervisor = machine.supervisor();
    machine.kill_daemon();
    machine.boot();
    assert_eq!(machine.supervisor(), supervisor);
    machine.asks(Action::Adopt(task));
    machine.hears_nothing_for(Duration::from_millis(20));
    assert!(lives(pid));
    go(&machine);
    assert_eq!(machine.hears_of(task), Exit::Code(4));
}

#[test]
fn end_that_came_while_there_was_no_daemon_is_told_to_the_next() {
    let mut machine = Machine::new();
    let (task, pid) = patient(&mut machine);
    machine.kill_daemon();
    go(&machine);
    wait_until("the task ends", || !lives(pid));
    machine.boot();
    machine.asks(Action::Adopt(task));
    assert_eq!(machine.hears_of(task), Exit::Code(4));
}

#[test]
fn second_start_is_none_whether_the_first_runs_or_has_ended() {
    let mut machine = Machine::new();
    let (task, _) = patient(&mut machine);
    machine.kill_daemon();
    machine.boot();
    machine.start(1, sh("echo twice >> ../../starts"), HOUR);
    go(&machine);
    assert_eq!(machine.hears_of(task), Exit::Code(4));
    machine.start(1, sh("echo twice >> ../../starts"), HOUR);
    assert_eq!(machine.hears_of(task), Exit::Code(4));
    assert_eq!(starts(&machine), 1);
}

#[test]
fn tasks_die_with_their_supervisor_and_are_lost() {
    let mut machine = Machine::new();
    let (task, pid) = patient(&mut machine);
    let first = machine.supervisor();
    kill(first, Signal::SIGKILL).unwrap();
    // The daemon need not be told: it notices, and has another started.
    assert_eq!(machine.hears_of(task), Exit::Lost);
    wait_until("the task dies", || !lives(pid));
    assert_ne!(machine.supervisor(), first);

    // What is lost is not started again either, but new work is taken.
    machine.start(1, sh("echo twice >> ../../starts"), HOUR);
    assert_eq!(machine.hears_of(task), Exit::Lost);
    assert_eq!(starts(&machine), 1);
    assert_eq!(machine.runs(2, sh("exit 6")).exit, Exit::Code(6));
}

#[test]
fn tasks_die_with_their_supervisor_though_no_daemon_is_there_and_however_they_hide() {
    let mut machine = Machine::new();
    let hidden = "env -i setsid sh -c 'echo $$ > hidden; sleep 1000; true' & echo $$ > leader; wait";
    machine.start(1, sh(hidden), HOUR);
    let tree = ["leader", "hidden"].map(|name| machine.pid(task(1), name));
    let supervisor = machine.supervisor();
    machine.kill_daemon();
    assert!(tree.iter().all(|&pid| lives(pid)));
    kill(supervisor, Signal::SIGKILL).unwrap();
    wait_until("all of it dies", || tree.iter().all(|&pid| !lives(pid)));
}

#[test]
fn end_on_disk_outlives_the_supervisor() {
    let mut machine = Machine::new();
    assert_eq!(machine.runs(1, sh("exit 8")).exit, Exit::Code(8));
    let first = machine.supervisor();
    machine.kill_daemon();
    kill(first, Signal::SIGKILL).unwrap();
    wait_until("the supervisor dies", || !lives(first));
    machine.boot();
    machine.asks(Action::Adopt(task(1)));
    assert_eq!(machine.hears_of(task(1)), Exit::Code(8));
}

#[test]
fn tasks_run_on_without_the_warden() {
    let mut machine = Machine::new();
    let (task, _) = patient(&mut machine);
    kill(parent(machine.supervisor()).unwrap(), Signal::SIGKILL).unwrap();
    go(&machine);
    assert_eq!(machine.hears_of(task), Exit::Code(4));
}

#[test]
fn strays_of_a_dead_supervisor_and_its_warden_are_swept_before_new_work() {
    let mut machine = Machine::new();
    let (task, pid) = patient(&mut machine);
    let (supervisor, warden) = (machine.supervisor(), parent(machine.supervisor()).unwrap());
    machine.kill_daemon();
    kill(warden, Signal::SIGKILL).unwrap();
    wait_until("the warden dies", || !lives(warden));
    kill(supervisor, Signal::SIGKILL).unwrap();
    wait_until("the supervisor dies", || !lives(supervisor));
    std::thread::sleep(Duration::from_millis(20));
    assert!(lives(pid), "nobody is left to end it");

    machine.boot();
    assert!(!lives(pid));
    machine.asks(Action::Adopt(task));
    assert_eq!(machine.hears_of(task), Exit::Lost);
}
