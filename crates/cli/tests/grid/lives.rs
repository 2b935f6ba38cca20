//! Several lives of one node: killed, stopped, started again.

use crate::home::{Node, shoal, wait_until};

#[test]
fn killed_node_finds_its_jobs_again_those_that_run_and_those_that_ended_meanwhile() {
    let mut node = Node::start(&["--cores", "8"]);
    let finished = node.submit(&["--name", "before"], "echo done");
    assert!(node.shoal(&["wait", "--timeout", "50s", &finished]).status.success());
    // Ends once the node is gone, however slowly it is told of its start before.
    let script = "while [ ! -e ../../gone ]; do sleep 0.05; done; echo meanwhile; touch ../../ended; exit 7";
    let meanwhile = node.submit(&[], script);
    let script = "echo ran >> ../../ran; while [ ! -e ../../go ]; do sleep 0.05; done; echo done";
    let running = node.submit(&[], script);
    let waiting = node.submit(&["--begin", "+1s"], "echo later");
    node.await_state(&meanwhile, "running");
    node.await_state(&running, "running");
    let accepted = node.json(&["status", &running])["accepted"].clone();

    node.kill();
    std::fs::write(node.home().join("gone"), "").unwrap();
    wait_until("it has ended", || node.home().join("ended").exists().then_some(()));
    std::thread::sleep(std::time::Duration::from_millis(200));
    let nobody = node.shoal(&["status"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("shoal node"));
    node.up();

    assert_eq!(node.shoal(&["wait", "--timeout", "50s", &meanwhile]).status.code(), Some(7));
    assert_eq!(node.says(&["logs", &meanwhile]), "meanwhile\n");
    assert_eq!(node.state(&finished), "finished");
    assert_eq!(node.says(&["logs", &finished]), "done\n");
    std::fs::write(node.home().join("go"), "").unwrap();
    assert!(node.shoal(&["wait", "--timeout", "50s", &running, &waiting]).status.success());
    assert_eq!(node.says(&["logs", &running]), "done\n");
    assert_eq!(std::fs::read_to_string(node.home().join("ran")).unwrap(), "ran\n", "it ran once");
    assert_eq!(node.json(&["status", &running])["accepted"], accepted, "its story has survived");
}

#[test]
fn run_and_wait_end_as_the_job_does_though_the_node_is_killed_meanwhile() {
    let mut node = Node::start(&[]);
    let script = "touch ../../runs; while [ ! -e ../../go ]; do sleep 0.05; done; exit 7";
    let mut run = shoal(&node.home()).args(["run", "--", "sh", "-c", script]).spawn().unwrap();
    wait_until("it runs", || node.home().join("runs").exists().then_some(()));
    let job = node.json(&["status"])["jobs"][0]["id"].as_str().unwrap().to_owned();
    let mut wait = shoal(&node.home()).args(["wait", &job]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    node.kill();
    std::thread::sleep(std::time::Duration::from_millis(300));
    node.up();
    std::fs::write(node.home().join("go"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(7));
    assert_eq!(wait.wait().unwrap().code(), Some(7));
    // Who does not want to wait that long for the node does not.
    node.kill();
    let began = std::time::Instant::now();
    assert!(!node.shoal(&["wait", "--timeout", "1s", &job]).status.success());
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "not as long as for a job");
    node.up();
}

#[test]
fn run_that_cannot_write_what_it_is_to_show_does_not_end_well() {
    let node = Node::start(&[]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = shoal(&node.home()).args(["run", "--", "echo", "lost"]).stdout(full).status().unwrap();
    assert_eq!(ran.code(), Some(1));
}

#[test]
fn node_that_is_told_to_end_leaves_its_jobs_running() {
    let mut node = Node::start(&[]);
    let job = node.submit(&[], "while [ ! -e ../../gone ]; do sleep 0.05; done; echo survived");
    node.await_state(&job, "running");
    assert!(node.stop().success());
    assert!(!node.home().join("address").exists());
    std::fs::write(node.home().join("gone"), "").unwrap();
    node.up();
    assert!(node.shoal(&["wait", "--timeout", "50s", &job]).status.success());
    assert_eq!(node.says(&["logs", &job]), "survived\n");
}

#[test]
fn second_node_in_a_folder_is_refused_and_changes_nothing() {
    let node = Node::start(&[]);
    let address = node.host();
    let second = node.shoal(&["node"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use by another daemon"));
    let behind = node.shoal(&["node", "--background"]);
    assert!(String::from_utf8_lossy(&behind.stderr).contains("already"));
    assert_eq!(node.host(), address);
    assert_eq!(node.get("/v1").status, 200);
}

#[test]
fn leaving_node_takes_no_more_jobs_and_waits_for_those_it_has() {
    let node = Node::start(&[]);
    let job = node.submit(&[], "sleep 0.5");
    node.await_state(&job, "running");
    let leave = shoal(&node.home()).arg("leave").spawn();
    wait_until("it is leaving", || (node.get("/v1").body.contains("\"leaving\":true")).then_some(()));
    let refused = node.shoal(&["submit", "--", "true"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("about to leave"));
    assert!(leave.unwrap().wait().unwrap().success());
    wait_until("it has ended", || (!node.home().join("address").exists()).then_some(()));
}

#[test]
fn damaged_database_and_newer_folder_are_told_and_left_alone() {
    let mut node = Node::start(&[]);
    node.stop();
    let refused = |file: &str, bytes: &[u8], told: &str| {
        let path = node.home().join(file);
        let before = std::fs::read(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let output = node.shoal(&["node"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(told) && said.contains(file), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{file} is left alone");
        std::fs::write(&path, before).unwrap();
    };
    refused("shoal.db", &[7; 4096], "shoal.db");
    refused("shoal.db", &[], "is gone or empty");
    refused("node.key", b"nonsense\n", "node.key");
    let database = node.home().join("shoal.db");
    let before = std::fs::read(&database).unwrap();
    std::fs::remove_file(&database).unwrap();
    let output = node.shoal(&["node"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is gone or empty"), "{output:?}");
    assert!(!database.exists(), "nothing is put in its place");
    assert_eq!(node.shoal(&["doctor"]).status.code(), Some(1));
    std::fs::write(&database, before).unwrap();
    let newer = node.home().join("format");
    std::fs::write(&newer, "99\n").unwrap();
    let output = node.shoal(&["node"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("format 99") && said.contains("newer version"), "{said}");
    std::fs::write(&newer, "1\n").unwrap();
    node.up();
}

#[test]
fn wrong_settings_are_told_and_left_alone() {
    let mut node = Node::start(&[]);
    node.stop();
    std::fs::write(node.home().join("node.toml"), "recipe = 'sample'\nrecpie = 'asap'\n").unwrap();
    let wrong = node.shoal(&["node"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("node.toml") && said.contains("recpie"), "{said}");
    std::fs::write(node.home().join("node.toml"), "recipe = 'sample'\n").unwrap();
    let other = node.shoal(&["node", "--recipe", "asap"]);
    assert!(String::from_utf8_lossy(&other.stderr).contains("cannot be changed"));
    node.up();
}

#[test]
fn node_in_the_background_takes_its_folder_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("there");
    let elsewhere = folder.path().join("elsewhere");
    let with = |words: &[&str]| shoal(&elsewhere).args(words).arg("--home").arg(&home).output().unwrap();
    let begun = with(&["node", "--background", "--listen", "127.0.0.1:0"]);
    assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
    let told = String::from_utf8_lossy(&begun.stdout).into_owned();
    assert!(told.contains(&*home.to_string_lossy()) && !elsewhere.exists(), "{told}");
    assert!(with(&["leave"]).status.success());
}
