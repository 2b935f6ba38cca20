//! The demo, as a newcomer runs it.

use std::process::Command;

#[test]
fn demo_runs_jobs_of_every_kind_and_survives_a_killed_node() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
    command.args(["--json", "demo", "--nodes", "4"]).env("TMPDIR", folder.path());
    let output = command.output().unwrap();
    let story = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{story}");
    let account: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let jobs = account["jobs"].as_array().unwrap();
    let states: Vec<_> = jobs.iter().map(|told| told["job"]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["finished"; 5], "{story}");
    let survivor = &jobs[4]["job"];
    assert!(survivor["planned"]["epoch"].as_u64() > Some(1), "{survivor}");
    assert!(story.contains("kill -9"), "{story}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
