//! `shoal supervise` as a node meets it.

use std::time::{Duration, Instant};

use shoal_daemon::Process;
use shoal_daemon::executor::process::{Launch, Setup};

#[test]
fn node_can_have_its_tasks_run_by_this_program() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch { program: env!("CARGO_BIN_EXE_shoal").into(), arguments: vec!["supervise".into()] };
    let process = Process::open(Setup::new(folder.path(), launch)).unwrap();
    let supervisor = format!("/proc/{}/cmdline", process.supervisor());
    let command = std::fs::read(&supervisor).unwrap();
    assert!(command.split(|&byte| byte == 0).any(|word| word == b"supervise"));

    // Nobody speaks to it any more, and it has nothing to do.
    drop(process);
    let began = Instant::now();
    while std::fs::read(&supervisor).is_ok_and(|command| !command.is_empty()) {
        assert!(began.elapsed() < Duration::from_secs(60), "it ends by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
}
