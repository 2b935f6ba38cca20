//! Nodes are killed at random while jobs run; every job ends exactly once all the same, and nothing is left.
//!
//! Short here. `SHOAL_KILLS=200 SHOAL_KILLED_JOBS=500 cargo test --test kills` is the long one, which is also
//! `shoal bench kills`.

use std::process::Command;

fn rehearse(arguments: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
    command.args(["--json", "bench", "kills"]).args(arguments).env("TMPDIR", folder.path());
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let account: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{told}"));
    assert!(output.status.success(), "{told}{account:#}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    account
}

fn setting(name: &str, usual: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| usual.to_owned())
}

#[test]
fn every_job_ends_exactly_once_however_daemons_are_killed() {
    let (kills, jobs) = (setting("SHOAL_KILLS", "6"), setting("SHOAL_KILLED_JOBS", "20"));
    let account = rehearse(&["--kills", &kills, "--jobs", &jobs, "--nodes", "4", "--seed", "7"]);
    assert_eq!(account["kills"].to_string(), kills);
    let over = account["finished"].as_u64().unwrap() + account["lost"].as_u64().unwrap();
    assert_eq!(over.to_string(), jobs);
    assert!(account["starts"].as_u64().unwrap() >= account["finished"].as_u64().unwrap());
}

#[test]
fn killed_supervisors_lose_only_what_must_not_run_twice() {
    let account =
        rehearse(&["--kills", "4", "--supervisors", "2", "--jobs", "12", "--nodes", "3", "--seed", "8"]);
    assert_eq!(account["supervisors"], 2);
    let over = account["finished"].as_u64().unwrap() + account["lost"].as_u64().unwrap();
    assert_eq!(over, 12);
}
