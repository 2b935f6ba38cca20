//! Jobs from their submission to their end.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use shoal_daemon::cell::offers::Offers;

use crate::home::{Node, shoal, wait_until};

#[test]
fn first_output_takes_a_node_and_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("new");
    let started = shoal(&home).args(["node", "--background"]).output().unwrap();
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let told =
        String::from_utf8_lossy(&started.stdout).into_owned() + &String::from_utf8_lossy(&started.stderr);
    let pid = told.rsplit_once("(process ").and_then(|(_, rest)| rest.split_once(')')).unwrap().0;
    assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap(), "shoal\n");
    let ran = shoal(&home).args(["run", "--", "echo", "hello"]).output().unwrap();
    let left = shoal(&home).arg("leave").output().unwrap();

    assert_eq!(String::from_utf8_lossy(&ran.stdout), "hello\n");
    assert_eq!(ran.status.code(), Some(0));
    let promise = String::from_utf8_lossy(&ran.stderr);
    assert!(promise.contains("starts now on n"), "{promise}");
    assert!(left.status.success(), "{}", String::from_utf8_lossy(&left.stderr));
    wait_until("the node is gone", || {
        let after = shoal(&home).arg("status").output().unwrap();
        (!after.status.success()).then_some(())
    });
}

#[test]
fn run_ends_as_its_job_does() {
    let node = Node::start(&[]);
    let code = |words: &[&str]| node.shoal(&[&["run"], words].concat()).status.code();
    assert_eq!(code(&["--", "sh", "-c", "exit 42"]), Some(42));
    assert_eq!(code(&["--", "sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["--time", "1s", "--", "sleep", "60"]), Some(124));
    let both = node.shoal(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((both.status.code(), &*String::from_utf8_lossy(&both.stdout)), (Some(3), "out\n"));
    let stderr = String::from_utf8_lossy(&both.stderr);
    assert!(stderr.contains("err\n") && stderr.contains("ended with code 3"), "{stderr}");
}

#[test]
fn job_is_told_in_full_from_submission_to_end() {
    let node = Node::start(&[]);
    let submitted =
        node.json(&["submit", "--name", "greet", "--env", "WHO=you", "--", "sh", "-c", "echo hi $WHO"]);
    let id = submitted["id"].as_str().unwrap();
    assert!(submitted["planned"]["start"].is_string(), "{submitted}");
    assert_eq!(submitted["planned"]["nodes"].as_array().unwrap().len(), 1);

    assert!(node.shoal(&["wait", "--timeout", "50s", id]).status.success());
    let status = node.json(&["status", &id[..8]]);
    assert_eq!(
        (&status["state"], &status["name"], &status["code"]),
        (&"finished".into(), &"greet".into(), &0.into())
    );
    for time in ["accepted", "promised", "started", "ended"] {
        assert!(status[time].is_string(), "{time} in {status}");
    }
    assert_eq!(node.says(&["logs", id]), "hi you\n");
    let why = node.json(&["why", id]);
    let kinds: Vec<&str> =
        why["story"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["accepted", "planned", "started", "took", "ended"]);
    assert!(node.says(&["status"]).contains("greet"));
    assert!(node.says(&["nodes"]).contains("up"));
}

#[test]
fn status_tells_what_a_job_took_of_its_machine() {
    let node = Node::start(&[]);
    let job = node.submit(
        &[],
        "timeout 1 sh -c 'while :; do :; done'; head -c 200000000 /dev/zero | tail -n 1 | wc -c; sleep 1",
    );
    assert!(node.shoal(&["wait", "--timeout", "50s", &job]).status.success());
    let usage = &node.json(&["status", &job])["usage"];
    let memory = usage["memory_max"].as_u64().unwrap();
    assert!((150 << 20..600 << 20).contains(&memory), "{usage}");
    let busy = usage["busy"].as_u64().unwrap();
    assert!((1..100).contains(&busy), "a second of work and one of sleep: {usage}");
    let said = node.says(&["status", &job]);
    assert!(said.contains("of processor time"), "{said}");
}

#[test]
fn status_tells_what_a_cancelled_job_took() {
    let node = Node::start(&[]);
    let job = node.submit(&[], "touch ../../runs; while :; do :; done");
    wait_until("it runs", || node.home().join("runs").exists().then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(node.json(&["cancel", &job])[0]["state"], "cancelled");
    let usage = wait_until("it is told what it took", || {
        Some(node.json(&["status", &job])["usage"].clone()).filter(|usage| usage.is_object())
    });
    assert!(usage["user_ms"].as_u64().unwrap() + usage["system_ms"].as_u64().unwrap() > 50, "{usage}");
    let status = node.json(&["status", &job]);
    assert_eq!(status["state"], "cancelled");
    assert!(status["ended"].is_string(), "{status}");
}

#[test]
fn job_has_no_more_memory_than_it_asked_for_where_that_can_be_capped() {
    let node = Node::start(&[]);
    let script = "head -c 400000000 /dev/zero | tail -c 390000000 > /dev/null";
    let [little, enough] = ["64MiB", "600MiB"].map(|memory| node.submit(&["--memory", memory], script));
    let _ = node.shoal(&["wait", "--timeout", "50s", &little, &enough]);
    let state = |job: &str| node.json(&["status", job])["state"].as_str().unwrap().to_owned();
    let capped = if Offers::find().memory { "failed" } else { "finished" };
    assert_eq!([state(&little), state(&enough)], [capped, "finished"]);
}

#[test]
fn cancelled_job_stops_and_stays_cancelled() {
    let node = Node::start(&[]);
    let job = node.submit(&[], "sleep 60");
    node.await_state(&job, "running");
    assert_eq!(node.json(&["cancel", &job])[0]["state"], "cancelled");
    assert_eq!(node.shoal(&["wait", "--timeout", "50s", &job]).status.code(), Some(130));
    let again = node.shoal(&["cancel", &job]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is over: cancelled"));
    wait_until("nothing runs", || (node.json(&["nodes"])["nodes"][0]["running"] == 0).then_some(()));
}

#[test]
fn job_that_must_wait_is_promised_a_later_start_and_says_why() {
    let node = Node::start(&["--cores", "1"]);
    let first = node.submit(&["--time", "1h"], "sleep 60");
    let second = node.json(&["submit", "--time", "10s", "--", "true"]);
    assert_eq!(second["state"], "planned", "{second}");
    let id = second["id"].as_str().unwrap();
    let why = node.says(&["why", id]);
    assert!(why.contains("it starts at") && why.contains("would do, and is taken until"), "{why}");
    let why = node.json(&["why", id]);
    assert_eq!(why["nodes"][0]["free_from"], why["job"]["planned"]["start"], "{why}");
    let queue = node.json(&["queue"]);
    assert_eq!(queue["jobs"][0]["id"], *first);
    assert_eq!(queue["jobs"][1]["id"], id);
    let calendar = node.says(&["calendar"]);
    assert!(calendar.contains("1 of 1 cores") && calendar.contains(&id[..12]), "{calendar}");
    let this = node.json(&["nodes"])["nodes"][0].clone();
    for said in [&this["id"].as_str().unwrap()[..5], this["name"].as_str().unwrap()] {
        assert_eq!(node.json(&["calendar", said])["node"], this["id"]);
    }
}

#[test]
fn job_in_a_file_and_script_with_flags_are_taken() {
    let node = Node::start(&[]);
    let file = node.folder.path().join("job.toml");
    std::fs::write(&file, "name = 'filed'\ncommand = ['sh', '-c', 'echo filed']\ntime = '1m'\n").unwrap();
    let script = node.folder.path().join("job.sh");
    std::fs::write(&script, "#!/bin/sh\n#SHOAL --name scripted --time 2m\necho scripted $SHOAL_RANK\n")
        .unwrap();
    for (path, name, limit, said) in
        [(file, "filed", "1m", "filed\n"), (script, "scripted", "2m", "scripted 0\n")]
    {
        let job = node.json(&["submit", path.to_str().unwrap()]);
        assert_eq!((&job["name"], &job["limit"]), (&name.into(), &limit.into()));
        let id = job["id"].as_str().unwrap();
        assert!(node.shoal(&["wait", "--timeout", "50s", id]).status.success());
        assert_eq!(node.says(&["logs", id]), said);
    }
}

#[test]
fn output_is_followed_as_it_comes_and_to_its_end() {
    let node = Node::start(&[]);
    let job = node.submit(&[], "echo one; sleep 0.5; echo two; echo err >&2");
    let began = Instant::now();
    let mut follow = shoal(&node.home()).args(["logs", "-f", &job]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = follow.stdout.take().unwrap();
    let mut first = [0; 4];
    output.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"one\n");
    let early = began.elapsed();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "two\n");
    assert!(began.elapsed() >= early + Duration::from_millis(200), "the first line came before the second");
    assert!(follow.wait().unwrap().success());

    assert_eq!(node.says(&["logs", "--stderr", &job]), "err\n");
    assert_eq!(node.says(&["logs", "--tail", "1", &job]), "two\n");
    assert_eq!(node.says(&["logs", "--offset", "4", &job]), "two\n");
}

#[test]
fn array_of_quick_jobs_ends_though_most_of_them_share_places() {
    let node = Node::start(&["--cores", "2"]);
    let submitted = node.json(&["submit", "--array", "1-300", "--time", "1m", "--", "true"]);
    let id = submitted["id"].as_str().unwrap();
    assert!(node.shoal(&["wait", "--timeout", "50s", id]).status.success());
    let status = node.json(&["status", id]);
    assert_eq!(status["state"], "finished", "{status}");
    // The owner of the machine hears of each, whoever shared a place with whom.
    let audit = std::fs::read_to_string(node.home().join("audit.log")).unwrap();
    assert_eq!(audit.matches("\"kind\":\"started\"").count(), 300);
    wait_until("all ends are written down", || {
        let audit = std::fs::read_to_string(node.home().join("audit.log")).unwrap();
        (audit.matches("\"kind\":\"ended\"").count() == 300).then_some(())
    });
}

#[test]
fn ids_can_be_shortened_while_unambiguous() {
    let node = Node::start(&[]);
    let jobs: Vec<String> = (0..20).map(|_| node.submit(&["--plan", "0s"], "true")).collect();
    // Among twenty ids two begin with the same of sixteen digits.
    let twice =
        jobs.iter().find(|job| jobs.iter().filter(|other| other[..1] == job[..1]).count() > 1).unwrap();
    let ambiguous = node.shoal(&["status", &twice[..1]]);
    let said = String::from_utf8_lossy(&ambiguous.stderr);
    assert_eq!(ambiguous.status.code(), Some(2));
    assert!(said.contains("may be any of") && said.contains(twice.as_str()), "{said}");
    assert_eq!(node.json(&["status", &twice[..16]])["id"], **twice);
}
