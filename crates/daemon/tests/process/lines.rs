//! Tasks that wait for others to end, in whose place they run.

use std::fs;
use std::time::Duration;

use shoal_model::Time;
use shoal_protocols::node::{Action, Exit, Task};

use crate::machine::{HOUR, Machine, brief, sh, task, wait_until};

/// Says that it is there, waits for a file with its number, and says that it goes.
fn script(number: u8) -> String {
    format!(
        "echo begins {number} >> ../../story; until [ -e ../../go{number} ]; do sleep 0.01; done; \
         echo ends {number} >> ../../story; exit {number}"
    )
}

/// Starts a task behind another.
fn behind(machine: &mut Machine, number: u8, before: Task) -> Task {
    let (task, stop_at) = (task(number), Time::ZERO + HOUR);
    let brief = brief(sh(&script(number)));
    machine.asks(Action::Start { task, brief, stop_at, short: false, behind: Some(before) });
    task
}

/// Starts one, and so many behind it, each behind the one before.
fn line(machine: &mut Machine, behind_it: u8) -> Vec<Task> {
    let mut all = vec![machine.start(1, sh(&script(1)), HOUR)];
    for number in 2..=1 + behind_it {
        let before = *all.last().unwrap();
        all.push(behind(machine, number, before));
    }
    wait_until("the first begins", || !story(machine).is_empty());
    all
}

fn go(machine: &Machine, number: u8) {
    fs::write(machine.home().join(format!("go{number}")), "").unwrap();
}

fn story(machine: &Machine) -> String {
    fs::read_to_string(machine.home().join("story")).unwrap_or_default()
}

#[test]
fn tasks_in_a_line_run_one_after_the_other_and_each_has_its_own_end() {
    let mut machine = Machine::new();
    let all = line(&mut machine, 3);
    for number in [4, 3, 2] {
        go(&machine, number);
    }
    machine.hears_nothing_for(Duration::from_millis(50));
    assert_eq!(story(&machine), "begins 1\n");
    go(&machine, 1);
    for (number, task) in (1..).zip(all) {
        assert_eq!(machine.hears_of(task), Exit::Code(number));
    }
    let told: String = (1..=4).map(|number| format!("begins {number}\nends {number}\n")).collect();
    assert_eq!(story(&machine), told);
}

#[test]
fn one_that_is_taken_out_of_a_line_never_runs_and_the_next_waits_for_the_one_before() {
    let mut machine = Machine::new();
    let all = line(&mut machine, 2);
    machine.asks(Action::Stop(all[1]));
    assert_eq!(machine.hears_of(all[1]), Exit::Stopped);
    machine.hears_nothing_for(Duration::from_millis(50));
    go(&machine, 1);
    go(&machine, 3);
    assert_eq!(machine.hears_of(all[0]), Exit::Code(1));
    assert_eq!(machine.hears_of(all[2]), Exit::Code(3));
    assert_eq!(story(&machine), "begins 1\nends 1\nbegins 3\nends 3\n");
}

#[test]
fn line_goes_on_without_its_daemon_and_the_next_finds_it_again() {
    let mut machine = Machine::new();
    let all = line(&mut machine, 2);
    machine.kill_daemon();
    go(&machine, 1);
    wait_until("the second begins", || story(&machine).contains("begins 2"));
    machine.boot();
    for &task in &all {
        machine.asks(Action::Adopt(task));
    }
    assert_eq!(machine.hears_of(all[0]), Exit::Code(1));
    machine.hears_nothing_for(Duration::from_millis(50));
    go(&machine, 2);
    go(&machine, 3);
    assert_eq!(machine.hears_of(all[1]), Exit::Code(2));
    assert_eq!(machine.hears_of(all[2]), Exit::Code(3));
}

#[test]
fn line_of_a_supervisor_that_is_killed_is_lost_and_nobody_of_it_runs_beside_another() {
    let mut machine = Machine::new();
    let all = line(&mut machine, 2);
    machine.end_supervisor();
    machine.boot();
    for &task in &all {
        machine.asks(Action::Adopt(task));
    }
    for &task in &all {
        assert_eq!(machine.hears_of(task), Exit::Lost);
    }
    assert_eq!(story(&machine), "begins 1\n");
}

#[test]
fn task_behind_one_that_has_ended_starts_at_once_and_behind_one_that_nobody_knows_not_at_all() {
    let mut machine = Machine::new();
    let first = machine.start(1, sh("true"), HOUR);
    assert_eq!(machine.hears_of(first), Exit::Code(0));
    go(&machine, 2);
    let second = behind(&mut machine, 2, first);
    assert_eq!(machine.hears_of(second), Exit::Code(2));
    let third = behind(&mut machine, 3, task(9));
    assert_eq!(machine.hears_of(third), Exit::NotStarted);
    assert_eq!(story(&machine), "begins 2\nends 2\n");
}
