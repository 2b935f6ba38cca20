//! The demo, as a newcomer runs it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

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

#[test]
fn demo_that_is_told_to_end_takes_its_nodes_along() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        // Whoever runs the tests in the background of a script ignores Ctrl-C, and what it starts would too.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_shoal"), "demo", "--nodes", "4"]);
        command.env("TMPDIR", folder.path());
        let mut demo = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut story = BufReader::new(demo.stderr.take().unwrap()).lines();
        // By then all nodes run, and a supervisor with a task at one of them.
        let told =
            story.by_ref().find(|line| line.as_ref().is_ok_and(|line| line.contains("given to node 2")));
        assert!(told.is_some());
        kill(Pid::from_raw(demo.id().try_into().unwrap()), signal).unwrap();
        let rest: Vec<String> = story.map_while(Result::ok).collect();
        assert_eq!(demo.wait().unwrap().code(), Some(code), "{rest:?}");
        assert!(!rest.iter().any(|line| line.contains("error")), "{rest:?}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        let folder = folder.path().to_str().unwrap();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let words = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        let words: Vec<String> = words.map(|words| String::from_utf8_lossy(&words).into_owned()).collect();
        assert!(!words.iter().any(|words| words.contains(folder)), "{words:?}");
    }
}
