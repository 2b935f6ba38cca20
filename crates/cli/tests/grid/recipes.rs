//! Every recipe runs real jobs on real nodes, chosen when the grid is made.

use shoal_api::{Client, Home};

use super::home::{Node, joined, wait_until};

/// Two nodes with one core each: jobs for both, an array, and a job that must find its way to the other node.
fn runs_jobs(recipe: &str) -> (Node, Node) {
    runs_jobs_with(&["--recipe", recipe])
}

fn runs_jobs_with(words: &[&str]) -> (Node, Node) {
    let first = Node::start(&[words, &["--cores", "1"]].concat());
    let second = joined(&first);
    let array = first.submit(&["--array", "1-4"], "echo $SHOAL_ARRAY_INDEX");
    let busy = first.submit(&["--time", "1m"], "sleep 2");
    let other = first.submit(&["--time", "1m"], "echo done");
    let after = second.submit(&["--after", &other], "echo then");
    for job in [&array, &busy, &other, &after] {
        let waited = second.shoal(&["wait", "--timeout", "50s", job]);
        assert!(waited.status.success(), "{words:?}: {}", String::from_utf8_lossy(&waited.stderr));
    }
    assert_eq!(second.says(&["logs", &other]), "done\n");
    (first, second)
}

#[test]
fn sample_and_asap_run_jobs_and_gangs() {
    for recipe in ["sample", "asap"] {
        let (first, _second) = runs_jobs(recipe);
        let gang = first.submit(&["--nodes", "2"], "true");
        assert!(first.shoal(&["wait", "--timeout", "50s", &gang]).status.success(), "{recipe}");
    }
}

#[test]
fn proactive_runs_jobs_by_what_the_user_finds_best() {
    let (first, second) = runs_jobs("proactive");
    for criterion in ["closest", "near(here) subject to wait <= 10m", "domains"] {
        let gang = first.submit(&["--nodes", "2", "--optimise", criterion, "--where", "cores >= 1"], "true");
        assert!(second.shoal(&["wait", "--timeout", "50s", &gang]).status.success(), "{criterion}");
    }
}

#[test]
fn recipes_with_queues_run_jobs_and_say_that_they_run_no_gangs() {
    for recipe in ["aria", "tri-pronged"] {
        let (first, _second) = runs_jobs(recipe);
        let gang = first.shoal(&["submit", "--nodes", "2", "--", "true"]);
        assert_eq!(gang.status.code(), Some(2));
        let said = String::from_utf8_lossy(&gang.stderr).into_owned();
        assert!(said.contains("nodes") && said.contains(recipe), "{said}");
    }
}

#[test]
fn queue_of_a_node_is_shown_as_its_calendar() {
    for recipe in ["aria", "tri-pronged"] {
        let node = Node::start(&["--recipe", recipe, "--cores", "1"]);
        let runs = node.submit(&["--time", "1h"], "sleep 60");
        node.await_state(&runs, "running");
        let waits = node.submit(&["--time", "10m"], "true");
        let seen = || node.json(&["calendar"])["reservations"].as_array().unwrap().clone();
        let seen = wait_until("both are there", || Some(seen()).filter(|seen| seen.len() == 2));
        assert_eq!(
            (&seen[0]["job"], &seen[0]["surely"]),
            (&runs.clone().into(), &"running".into()),
            "{seen:?}"
        );
        assert_eq!((&seen[1]["job"], &seen[1]["surely"]), (&waits.into(), &"soft".into()), "{seen:?}");
        assert_eq!(seen[0]["end"], seen[1]["start"], "{seen:?}");
        assert_eq!(node.json(&["nodes"])["nodes"][0]["used_cores_thousandths"], 1_000);
        node.says(&["cancel", &runs]);
    }
}

#[test]
fn aria_runs_over_any_overlay_which_newcomers_take_over() {
    for overlay in ["blatant-s", "can"] {
        let (first, second) = runs_jobs_with(&["--recipe", "aria", "--overlay", overlay]);
        for node in [&first, &second] {
            let client = Client::of(&Home::choose(Some(&node.home())).unwrap()).unwrap();
            assert_eq!(client.info().unwrap().overlay, overlay);
        }
    }
}

#[test]
fn shortest_job_is_first_in_a_queue_of_that_order() {
    let node = Node::start(&["--recipe", "aria", "--queue", "sjf", "--cores", "1"]);
    let busy = node.submit(&["--time", "1m"], "sleep 60");
    node.await_state(&busy, "running");
    let long = node.submit(&["--time", "40m"], "sleep 60");
    let short = node.submit(&["--time", "1m"], "true");
    node.says(&["cancel", &busy]);
    assert!(node.shoal(&["wait", "--timeout", "50s", &short]).status.success());
    node.await_state(&long, "running");
    node.says(&["cancel", &long]);
}

#[test]
fn job_in_a_queue_of_aria_is_held_and_released() {
    let node = Node::start(&["--recipe", "aria", "--cores", "1"]);
    let busy = node.submit(&["--time", "1m"], "sleep 60");
    node.await_state(&busy, "running");
    let next = node.submit(&["--time", "1m"], "echo released");
    node.says(&["hold", &next]);
    assert_eq!(node.state(&next), "held");
    node.says(&["cancel", &busy]);
    node.says(&["release", &next]);
    assert!(node.shoal(&["wait", "--timeout", "50s", &next]).status.success());
    assert_eq!(node.says(&["logs", &next]), "released\n");
}
