//! What does not belong in the folder, or on the socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use shoal_daemon::Process;
use shoal_protocols::node::Exit;

use crate::machine::{HOUR, Machine, setup, sh, task};

/// Says something to the supervisor, and waits until it hangs up.
fn says(machine: &Machine, bytes: &[u8]) {
    let mut stream = UnixStream::connect(machine.home().join("supervisor/socket")).unwrap();
    // It may hang up before it has heard all.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn garbage_on_the_socket_harms_nobody() {
    let mut machine = Machine::new();
    let script = "until [ -e ../../go ]; do sleep 0.02; done; exit 4";
    machine.start(1, sh(script), HOUR);
    let hello = [1, 0, 3, 0, 0, 0, 0xa1, 0, 1];
    says(&machine, b"GET / HTTP/1.1\r\n\r\n");
    says(&machine, &[255; 100_000]);
    says(&machine, &[1, 0, 4, 0, 0, 0, 1]);
    says(&machine, &[]);
    says(&machine, &[&hello[..], &[2, 0, 3, 0, 0, 0, 0xa0, 0xff, 0xff]].concat());
    says(&machine, &[&hello[..], &[99, 0, 1, 0, 0, 0, 7], &[2, 0, 255, 255, 255, 255]].concat());
    // A version that is no longer understood.
    says(&machine, &[1, 0, 3, 0, 0, 0, 0xa1, 0, 0]);
    let log = std::fs::read_to_string(machine.home().join("supervisor/log")).unwrap();
    assert!(log.contains("version 0, and none before 1"), "{log}");
    let supervisor = machine.supervisor();
    std::fs::write(machine.home().join("go"), "").unwrap();
    assert_eq!(machine.hears_of(task(1)), Exit::Code(4));
    assert_eq!(machine.runs(2, sh("exit 5")).exit, Exit::Code(5));
    assert_eq!(machine.supervisor(), supervisor);
}

#[test]
fn second_supervisor_of_a_folder_leaves_at_once() {
    let mut machine = Machine::new();
    let mut second = Command::new(env!("CARGO_BIN_EXE_shoal-supervise"));
    assert!(second.arg(machine.home()).status().unwrap().success());
    assert_eq!(machine.runs(1, sh("exit 5")).exit, Exit::Code(5));
}

#[test]
fn folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Process::open(setup(&file.join("node"))).unwrap_err().to_string();
    assert!(error.starts_with("cannot make a folder in ") && error.contains("file/node"), "{error}");
}

#[test]
fn supervisor_that_does_not_come_up_is_told_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("supervisor")).unwrap();
    std::fs::write(folder.path().join("supervisor/journal"), "this is no journal, but long enough").unwrap();
    let error = Process::open(setup(folder.path())).unwrap_err().to_string();
    assert!(error.contains("does not answer; see "), "{error}");
    let log = std::fs::read_to_string(folder.path().join("supervisor/log")).unwrap();
    assert!(log.contains("is not a journal"), "{log}");
}

#[test]
fn folder_of_a_task_that_is_not_in_the_books_was_somebodys_work_all_the_same() {
    let mut machine = Machine::new();
    std::fs::create_dir_all(machine.file(task(1), "")).unwrap();
    let ended = machine.runs(1, sh("true"));
    assert_eq!(ended.exit, Exit::Lost);
    assert!(ended.reason.unwrap().contains("was started before"));
}
