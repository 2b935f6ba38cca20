//! Arrays and files of several jobs, Ctrl-C, tasks with processors of their own, completions and the manual.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::home::{Node, shoal, wait_until};

#[test]
fn array_tells_how_many_of_its_jobs_are_in_each_state() {
    let node = Node::start(&["--cores", "2"]);
    let array = node.submit(&["--array", "1-6", "--time", "1m"], "test $SHOAL_ARRAY_INDEX -lt 3 || sleep 60");
    let count = |state: &str| node.json(&["status", &array])["counts"][state].as_u64().unwrap_or(0);
    wait_until("two have ended and two run", || {
        (count("finished") == 2 && count("running") == 2).then_some(())
    });
    let counts = node.json(&["status", &array])["counts"].clone();
    let all: u64 = counts.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(all, 6, "{counts}");
    let told = node.says(&["status", &array]);
    assert!(told.contains("2 running") && told.contains("2 finished"), "{told}");
    node.says(&["cancel", &array]);
    wait_until("all are over", || (count("cancelled") == 4 && count("running") == 0).then_some(()));
}

#[test]
fn file_of_several_jobs_is_submitted_in_order_and_later_ones_wait_for_earlier_ones() {
    let node = Node::start(&[]);
    let file = node.folder.path().join("jobs.toml");
    let said = node.folder.path().join("said");
    let text = format!(
        "[[job]]\nname = 'first'\ncommand = ['sh', '-c', 'sleep 0.3; echo first >> {0}']\n\
         [[job]]\nname = 'second'\ncommand = ['sh', '-c', 'echo second >> {0}; exit 1']\nafter = ['first']\n\
         [[job]]\nscript = 'echo third >> {0}'\nafter = ['second:any', 'first']\n",
        said.display()
    );
    std::fs::write(&file, text).unwrap();
    let jobs = node.json(&["submit", file.to_str().unwrap()]);
    let ids: Vec<&str> = jobs.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3);
    node.await_state(ids[2], "finished");
    assert_eq!(std::fs::read_to_string(&said).unwrap(), "first\nsecond\nthird\n");
    assert_eq!(node.state(ids[1]), "failed");
    // One that runs needs one job, and a file with a mistake changes nothing.
    let run = node.shoal(&["run", file.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("has 3 jobs"));
    std::fs::write(&file, "[[job]]\ncommand = ['true']\n[[job]]\ncommand = ['true']\nafter = ['nobody']\n")
        .unwrap();
    assert_eq!(node.shoal(&["submit", file.to_str().unwrap()]).status.code(), Some(2));
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 3);
}

#[test]
fn interrupt_of_run_takes_the_job_back() {
    let node = Node::start(&[]);
    let mut run = shoal(&node.home())
        .args(["run", "--name", "long", "--", "sleep", "60"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let job = wait_until("it runs", || {
        let jobs = node.json(&["status", "--state", "running"]);
        Some(jobs["jobs"].get(0)?["id"].as_str()?.to_owned())
    });
    kill(Pid::from_raw(run.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(node.state(&job), "cancelled");
    wait_until("nothing runs", || (node.json(&["nodes"])["nodes"][0]["running"] == 0).then_some(()));
}

#[test]
fn tasks_have_processors_of_their_own_unless_the_settings_say_otherwise() {
    let mut node = Node::start(&[]);
    let cpus = |node: &Node| {
        let job = node.submit(&[], "echo got $SHOAL_CPUS; grep Cpus_allowed_list /proc/self/status");
        node.await_state(&job, "finished");
        node.says(&["logs", &job])
    };
    let pinned = cpus(&node);
    let number = pinned.lines().next().and_then(|line| line.strip_prefix("got ")).unwrap();
    assert!(number.parse::<usize>().is_ok(), "{pinned}");
    assert!(pinned.ends_with(&format!("\t{number}\n")), "{pinned}");

    node.stop();
    let path = node.home().join("node.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, settings + "\n[tasks]\npin = false\n").unwrap();
    node.up();
    assert!(cpus(&node).starts_with("got\n"));
}

#[test]
fn completions_and_manual_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let says = |words: &[&str]| {
        let output = shoal(folder.path()).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = says(&["completions", shell]);
        for command in ["submit", "calendar", "bench", "release"] {
            assert!(text.contains(command), "{shell} does not know {command}");
        }
    }
    assert!(says(&["man"]).contains(".TH shoal 1"));
    let pages = folder.path().join("pages");
    says(&["man", "--out", pages.to_str().unwrap()]);
    for page in ["shoal.1", "shoal-submit.1", "shoal-bench-grid.1", "shoal-sim-run.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
    assert_eq!(shoal(folder.path()).args(["completions", "tcsh"]).output().unwrap().status.code(), Some(2));
}
