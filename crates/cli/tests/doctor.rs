//! `shoal doctor` as a user meets it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use shoal_daemon::{Home, Sqlite, Store};
use shoal_model::{Envelope, Job, Nonce};
use shoal_protocols::Shared;
use shoal_protocols::node::{OwnedRecord, Record};

fn doctor(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
    command.arg("doctor").args(arguments).env("SHOAL_HOME", home).env_remove("XDG_STATE_HOME");
    command.output().unwrap()
}

fn findings(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn about<'a>(json: &'a serde_json::Value, subject: &str) -> &'a serde_json::Value {
    json["findings"].as_array().unwrap().iter().find(|finding| finding["subject"] == subject).unwrap()
}

/// A folder in which a node has run and accepted a job.
fn used(folder: &Path) -> Home {
    let home = Home::at(folder.join("home"));
    let lock = home.lock().unwrap();
    let mut store = Sqlite::open(&lock).unwrap().store;
    let envelope = Shared::new(Envelope::new(Job::command(["true"]), Nonce([1; 16])).unwrap());
    let owned = OwnedRecord::accepted(envelope);
    store.save(&Record::Owned(owned)).unwrap();
    store.sync().unwrap();
    home
}

#[test]
fn healthy_folder_has_no_problem_and_its_jobs_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let home = used(folder.path());
    let output = doctor(home.path(), &["--json"]);
    let json = findings(&output);
    assert!(output.status.success(), "{json:#}");
    assert!(about(&json, "records")["seen"].as_str().unwrap().starts_with("1 jobs under way"), "{json:#}");
    let text = doctor(Path::new("/nowhere"), &["--home", home.path().to_str().unwrap()]);
    assert!(text.status.success(), "--home wins: {text:?}");
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("shoal.db, version 1") && text.contains("no daemon works"), "{text}");
}

#[test]
fn damaged_database_is_a_problem_with_something_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let home = used(folder.path());
    let mut bytes = fs::read(home.database()).unwrap();
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    fs::write(home.database(), &bytes).unwrap();
    let output = doctor(home.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("problem") && text.contains("checksum") && text.contains("backup"), "{text}");
    assert_eq!(fs::read(home.database()).unwrap(), bytes, "nothing is changed");
}

#[test]
fn folder_of_a_newer_version_is_a_problem_by_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let home = used(folder.path());
    fs::write(home.format_file(), "42\n").unwrap();
    let output = doctor(home.path(), &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json = findings(&output);
    assert!(about(&json, "format")["seen"].as_str().unwrap().contains("format 42"), "{json:#}");
    assert_eq!(json["verdict"], "problem");
}

#[test]
fn folder_in_use_is_fine_and_says_by_whom() {
    let folder = tempfile::tempdir().unwrap();
    let home = used(folder.path());
    let lock = home.lock().unwrap();
    let _store = Sqlite::<Record>::open(&lock).unwrap();
    let output = doctor(home.path(), &["--json"]);
    let json = findings(&output);
    assert!(output.status.success(), "{json:#}");
    let seen = about(&json, "daemon")["seen"].as_str().unwrap();
    assert!(seen.contains(&format!("process {}", std::process::id())), "{seen}");
}

#[test]
fn folder_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("none");
    let output = doctor(&home, &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(!home.exists());
}

#[test]
fn who_has_no_home_at_all_is_told_how_to_name_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_shoal")).arg("doctor").env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("--home DIR"), "{text}");
}
