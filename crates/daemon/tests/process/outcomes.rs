//! How tasks end, and what they leave behind.

use std::os::unix::fs::PermissionsExt;

use shoal_model::{Job, Resources, Size, Span};
use shoal_protocols::node::{Action, Exit};

use crate::machine::{HOUR, Machine, sh, task};

#[test]
fn output_and_exit_code_are_what_the_program_gave() {
    let mut machine = Machine::new();
    let ended = machine.runs(1, sh("echo out; echo err >&2; cat; exit 7"));
    assert_eq!((ended.exit, ended.reason), (Exit::Code(7), None));
    assert_eq!(machine.text(task(1), "stdout"), "out\n");
    assert_eq!(machine.text(task(1), "stderr"), "err\n");
    assert_eq!((ended.stdout_dropped, ended.stderr_dropped), (0, 0));
}

#[test]
fn signal_is_told_by_its_number_with_a_name_or_without() {
    let mut machine = Machine::new();
    for (number, signal) in [(1, 9), (2, 10), (3, 40)] {
        assert_eq!(machine.runs(number, sh(&format!("kill -{signal} $$"))).exit, Exit::Signal(signal));
    }
}

#[test]
fn program_that_cannot_be_run_says_so_as_a_shell_would() {
    let mut machine = Machine::new();
    for (number, name) in [(1, "no-such-program"), (2, "./no-such-program"), (3, "/no/such/program")] {
        let ended = machine.runs(number, Job::command([name]));
        assert_eq!(ended.exit, Exit::Code(127), "{name}");
        let stderr = machine.text(task(number), "stderr");
        assert!(stderr.contains("cannot run `") && stderr.contains("no"), "{stderr}");
        assert!(stderr.contains(&ended.reason.unwrap()));
    }
    let plain = machine.home().join("plain");
    std::fs::write(&plain, "").unwrap();
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(machine.runs(4, Job::command([plain.to_str().unwrap()])).exit, Exit::Code(126));
}

#[test]
fn script_is_run_by_the_interpreter_of_its_first_line() {
    let mut machine = Machine::new();
    assert_eq!(
        machine.runs(1, Job::script("#!/bin/sh -e\necho \"$0\"\nfalse\necho no\n")).exit,
        Exit::Code(1)
    );
    assert_eq!(machine.text(task(1), "stdout"), format!("{}\n", machine.file(task(1), "script").display()));
    assert_eq!(machine.runs(2, Job::script("echo plain")).exit, Exit::Code(0));
    assert_eq!(machine.runs(3, Job::script("#!/usr/bin/env cat\nhello\n")).exit, Exit::Code(0));
    assert_eq!(machine.text(task(3), "stdout"), "#!/usr/bin/env cat\nhello\n");
}

#[test]
fn task_knows_who_it_is_and_cannot_be_told_otherwise() {
    let mut machine = Machine::new();
    let environment = [("GREETING", "hi"), ("SHOAL_RANK", "9")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let job = Job {
        environment: Some(Box::new(environment.into())),
        resources: Resources::cores(2).with_memory(Size::from_mib(1)),
        ..sh(
            "echo $SHOAL_JOB_ID $SHOAL_EPOCH $SHOAL_RANK $SHOAL_NODES $SHOAL_CORES $SHOAL_MEMORY $GREETING; pwd; \
              echo ${SHOAL_WARDEN-none}",
        )
    };
    machine.runs(0xab, job);
    let folder = machine.file(task(0xab), "").canonicalize().unwrap();
    let expected = format!("{} 1 0 3 2 1048576 hi\n{}\nnone\n", "ab".repeat(16), folder.display());
    assert_eq!(machine.text(task(0xab), "stdout"), expected);
}

#[test]
fn what_a_task_took_is_counted_with_what_it_waited_for() {
    let mut machine = Machine::new();
    let busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let usage = machine.runs(1, sh(&format!("sh -c '{busy}'; true"))).usage;
    assert!(usage.user + usage.system > Span::from_millis(5), "{usage:?}");
    assert_eq!(usage.memory_max, Size::default(), "less than what forked it");
    // `tail` keeps a line until it has ended.
    let large = "head -c 200000000 /dev/zero | tail -n 1 | wc -c; true";
    let usage = machine.runs(2, sh(&format!("sh -c '{large}'"))).usage;
    let range = Size::from_mib(150)..Size::from_mib(600);
    assert!(range.contains(&usage.memory_max), "{usage:?}");
}

#[test]
fn two_hundred_tasks_run_at_once() {
    let mut machine = Machine::new();
    // Each waits for a word that comes only when all are there.
    let ready = machine.home().join("ready");
    std::fs::create_dir(&ready).unwrap();
    let script = "touch ../../ready/$SHOAL_JOB_ID; until [ -e ../../go ]; do sleep 0.2; done; exit 3";
    for number in 0..200 {
        machine.start(number, sh(script), HOUR);
    }
    crate::machine::wait_until("all are there", || std::fs::read_dir(&ready).unwrap().count() == 200);
    std::fs::write(machine.home().join("go"), "").unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let ended = machine.hears();
        assert_eq!(ended.exit, Exit::Code(3));
        assert!(seen.insert(ended.task), "{:?} ended twice", ended.task);
    }
}

#[test]
fn task_that_nobody_knows_is_lost() {
    let mut machine = Machine::new();
    machine.asks(Action::Adopt(task(1)));
    assert_eq!(machine.hears_of(task(1)), Exit::Lost);
}

#[test]
fn task_whose_folder_cannot_be_made_is_not_started_and_says_why() {
    let mut machine = Machine::new();
    std::fs::write(machine.home().join("tasks"), "in the way").unwrap();
    let ended = machine.runs(1, sh("true"));
    assert_eq!(ended.exit, Exit::NotStarted);
    assert!(ended.reason.unwrap().starts_with("cannot make "));
}
