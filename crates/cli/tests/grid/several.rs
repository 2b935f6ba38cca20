//! Several nodes, as real processes with real sockets: they let each other in, plan together and answer for each other.

use std::fs;

use super::home::{Node, joined, joined_with, wait_until};

#[test]
fn second_node_joins_with_one_command_and_gangs_run_on_both() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined(&first);
    let gang = second.submit(&["--nodes", "2"], "echo $SHOAL_RANK of $SHOAL_NODES");
    assert!(second.shoal(&["wait", "--timeout", "50s", &gang]).status.success());
    // Whoever is asked, the owner answers, and the output comes from where it is.
    for node in [&first, &second] {
        assert_eq!(node.state(&gang), "finished");
        assert_eq!(node.says(&["logs", &gang]), "0 of 2\n");
        assert_eq!(node.says(&["logs", "--rank", "1", &gang]), "1 of 2\n");
    }
    let status = first.json(&["status", &gang]);
    assert!(status["skew"].is_string(), "{status}");
}

#[test]
fn newcomer_uses_the_relays_of_its_ticket_until_its_owner_says_otherwise() {
    let change = |node: &mut Node, from: &str, to: &str| {
        node.stop();
        let path = node.home().join("node.toml");
        let settings = fs::read_to_string(&path).unwrap();
        assert!(settings.contains(from), "{settings}");
        fs::write(&path, settings.replacen(from, to, 1)).unwrap();
        node.up();
    };
    let told = |node: &Node| fs::read_to_string(node.home().join("node.toml")).unwrap();
    let mut first = Node::start(&[]);
    // Nobody is there, and nodes of one machine need nobody.
    change(&mut first, "[network]\n", "[network]\nrelays = ['http://127.0.0.1:9']\n");
    let mut second = joined(&first);
    let relays = "relays = [\"http://127.0.0.1:9/\"]\n";
    assert!(told(&second).contains(relays), "{}", told(&second));
    // With the same ticket.
    change(&mut second, relays, "");
    assert!(!told(&second).contains("relays"), "{}", told(&second));
}

#[test]
fn job_can_be_taken_back_and_held_through_any_node() {
    let first = Node::start(&[]);
    let second = joined(&first);
    let long = first.submit(&[], "sleep 60");
    first.await_state(&long, "running");
    second.says(&["cancel", &long[..8]]);
    assert_eq!(first.state(&long), "cancelled");

    let later = first.submit(&["--begin", "+1h"], "true");
    second.says(&["hold", &later]);
    assert_eq!(first.state(&later), "held");
    assert!(second.says(&["why", &later]).contains("held"));
    second.says(&["release", &later]);
    first.await_state(&later, "planned");
    let refused = second.shoal(&["hold", &long]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn jobs_start_after_others_of_any_node_and_arrays_run_for_each_index() {
    let first = Node::start(&[]);
    let second = joined(&first);
    let array = first.submit(&["--array", "3-12:3%2"], "echo $SHOAL_ARRAY_INDEX");
    let after = second.submit(&["--after", &array], "echo then");
    assert!(second.shoal(&["wait", "--timeout", "50s", &after]).status.success());
    assert_eq!(second.state(&array), "finished");
    let jobs = first.json(&["status", "--all"]);
    let mut indexes: Vec<String> = jobs["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|job| job["array"] == array.as_str())
        .map(|job| second.says(&["logs", job["id"].as_str().unwrap()]))
        .collect();
    indexes.sort();
    assert_eq!(indexes, ["12\n", "3\n", "6\n", "9\n"]);

    let fails = first.submit(&[], "exit 3");
    let unmet = second.submit(&["--after", &fails], "true");
    second.await_state(&unmet, "unmet");
    assert_eq!(second.shoal(&["wait", &unmet]).status.code(), Some(125));

    let file = second.home().join("then.toml");
    fs::write(&file, format!("command = ['true']\nafter = ['{}:any']\n", &fails[..10])).unwrap();
    let then = second.json(&["submit", file.to_str().unwrap()]);
    second.await_state(then["id"].as_str().unwrap(), "finished");
}

#[test]
fn job_of_a_killed_node_runs_again_on_another() {
    let first = Node::start(&["--cores", "1"]);
    let mut second = joined(&first);
    // Both are taken for a while, the second by a job of the first.
    let gang = first.submit(&["--nodes", "2", "--time", "5m"], "sleep 1000");
    first.await_state(&gang, "running");
    let placed = || first.json(&["status", &gang])["planned"]["epoch"].as_u64();
    assert_eq!(placed(), Some(1));
    second.kill();
    wait_until("the owner has noticed", || (first.state(&gang) == "waiting").then_some(()));
    second.up();
    wait_until("it runs again", || (first.state(&gang) == "running" && placed() > Some(1)).then_some(()));
    first.says(&["cancel", &gang]);
}

#[test]
fn output_is_read_on_where_the_node_that_passed_it_on_was_killed() {
    let first = Node::start(&["--cores", "1"]);
    let mut second = joined_with(&first, &["--cores", "1"]);
    let busy = first.submit(&["--time", "1h"], "sleep 60");
    first.await_state(&busy, "running");
    let go = first.home().join("go");
    let script = format!("echo one; while [ ! -e '{}' ]; do sleep 0.05; done; echo two", go.display());
    let job = first.submit(&["--time", "1h"], &script);
    first.await_state(&job, "running");
    let runs_on = first.json(&["status", &job])["planned"]["nodes"][0].clone();
    assert_eq!(runs_on, second.json(&["nodes"])["nodes"][0]["id"], "the other one is busy");
    let mut logs = super::home::shoal(&first.home());
    let logs = logs.args(["logs", "-f", &job]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    second.kill();
    second.up();
    fs::write(go, "").unwrap();
    let shown = logs.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "one\ntwo\n");
    assert!(shown.status.success());
    first.says(&["cancel", &busy]);
}

#[test]
fn lists_are_those_of_the_whole_grid_unless_asked_otherwise() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined_with(&first, &["--cores", "1"]);
    let begin = |seconds: u32| format!("+{seconds}s");
    let later = first.submit(&["--begin", &begin(300)], "true");
    let sooner = second.submit(&["--begin", &begin(200)], "true");
    let ids = |node: &Node, words: &[&str]| {
        let page = node.json(words);
        let ids = page["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page["next"].is_string())
    };
    for node in [&first, &second] {
        assert_eq!(ids(node, &["queue"]), (vec![sooner.clone(), later.clone()], false));
        assert_eq!(ids(node, &["queue", "--limit", "1"]), (vec![sooner.clone()], true));
    }
    assert_eq!(ids(&first, &["queue", "--here"]).0, std::slice::from_ref(&later));
    for node in [&first, &second] {
        assert_eq!(ids(node, &["status"]).0, [sooner.clone(), later.clone()], "the last one first");
        assert_eq!(ids(node, &["status", "--limit", "1"]), (vec![sooner.clone()], true));
        assert_eq!(ids(node, &["status", "--all"]).0.len(), 2);
    }
    assert_eq!(ids(&first, &["status", "--here"]).0, [later]);
}

#[test]
fn ticket_lets_in_one_machine_once() {
    let first = Node::start(&[]);
    let ticket = first.says(&["ticket"]);
    let ticket = ticket.trim();
    let second = Node::start(&["--join", ticket]);
    let refused = |flags: &[&str], told: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut words = vec!["node", "--listen", "127.0.0.1:0"];
        words.extend(flags);
        let output = super::home::shoal(&folder.path().join("home")).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(told), "{said}");
    };
    refused(&["--join", ticket], "used");
    refused(&["--join", "shoal1nonsense"], "ticket");
    let other = Node::start(&[]);
    let foreign = other.says(&["ticket"]);
    let mut words = vec!["node"];
    words.extend(["--join", foreign.trim()]);
    let mut second = second;
    second.stop();
    let output = second.shoal(&words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("another grid"), "{said}");
}

#[test]
fn node_that_came_with_an_admitters_ticket_lets_in_others_when_the_first_is_gone() {
    let mut first = Node::start(&[]);
    let member = joined(&first);
    let no = member.shoal(&["ticket"]);
    assert!(String::from_utf8_lossy(&no.stderr).contains("--admitter"), "{no:?}");
    let second = Node::start(&["--join", first.says(&["ticket", "--admitter"]).trim()]);
    first.kill();
    let third = Node::start(&["--join", second.says(&["ticket"]).trim()]);
    assert_eq!(third.says(&["run", "--", "echo", "in"]), "in\n");
    let no = second.shoal(&["ticket", "--admitter"]);
    assert!(String::from_utf8_lossy(&no.stderr).contains("only the node that made the grid can"), "{no:?}");
}

#[test]
fn node_that_leaves_is_given_nothing_more_and_ends_what_it_has() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined_with(&first, &["--cores", "1"]);
    let own = second.json(&["nodes"])["nodes"][0]["id"].as_str().unwrap().to_owned();
    // One on each: the second has something to end before it may go.
    let busy: Vec<String> = (0..2).map(|_| first.submit(&["--time", "20s"], "sleep 4")).collect();
    for job in &busy {
        first.await_state(job, "running");
    }
    let mut leaving = super::home::shoal(&second.home()).arg("leave").spawn().unwrap();
    let info = || serde_json::from_str::<serde_json::Value>(&second.get("/v1").body).unwrap();
    wait_until("the second is leaving", || (info()["leaving"] == true).then_some(()));
    for _ in 0..5 {
        let job = first.submit(&["--time", "20s"], "true");
        let status = first.json(&["status", &job]);
        let nodes = status["planned"]["nodes"].as_array().unwrap();
        assert!(!nodes.iter().any(|node| node == own.as_str()), "{status}");
    }
    for job in &busy {
        first.await_state(job, "finished");
    }
    assert!(leaving.wait().unwrap().success());
}

#[test]
fn jobs_of_a_node_that_leaves_are_anothers_and_end_there() {
    let first = Node::start(&["--cores", "1", "--recipe", "tri-pronged"]);
    let second = joined_with(&first, &["--cores", "1"]);
    let own = first.json(&["nodes"])["nodes"][0]["id"].as_str().unwrap().to_owned();
    // Both are busy, so that what the second takes waits.
    let busy: Vec<String> = (0..2).map(|_| first.submit(&["--time", "2m"], "sleep 100")).collect();
    for job in &busy {
        first.await_state(job, "running");
    }
    let waiting: Vec<String> = (0..3).map(|_| second.submit(&["--time", "60s"], "echo ran")).collect();
    let mut leaving = super::home::shoal(&second.home()).arg("leave").spawn().unwrap();
    wait_until("all are the first's", || {
        let theirs = first.json(&["status", "--here"])["jobs"].as_array().unwrap().clone();
        let has = |job: &String| theirs.iter().any(|listed| listed["id"] == job.as_str());
        waiting.iter().all(has).then_some(())
    });
    // Who asks the node that leaves is led to the one that has it.
    let told = second.json(&["status", &waiting[0]]);
    assert_eq!(told["owner"], own.as_str(), "{told}");
    for job in &busy {
        first.says(&["cancel", job]);
    }
    assert!(leaving.wait().unwrap().success());
    for job in &waiting {
        assert!(first.shoal(&["wait", "--timeout", "50s", job]).status.success());
        assert_eq!(first.state(job), "finished");
        assert_eq!(first.says(&["logs", job]), "ran\n");
    }
}

#[test]
fn gang_is_refused_on_nodes_whose_clocks_are_far_apart_and_says_why() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined_with(&first, &["--cores", "1", "--clock-ahead", "30s"]);
    // At once is over already for one of them, and who looks is told why there is no place.
    let gang = first.submit(&["--nodes", "2", "--time", "10s"], "true");
    wait_until("the clock is named", || {
        let why = first.says(&["why", &gang]);
        (why.contains("its clock is") && why.contains("ahead of that of this node")).then_some(())
    });
    assert_eq!(first.state(&gang), "waiting");
    // Later would do for both, and is denied by the hosts themselves.
    let later = first.submit(&["--nodes", "2", "--time", "10s", "--begin", "+90s"], "true");
    wait_until("the gang is refused", || {
        let why = first.says(&["why", &later]);
        why.contains("the clocks of its nodes are more than 5 s apart").then_some(())
    });
    assert_eq!(first.state(&later), "waiting");
    // A job of one node needs nobody else's clock.
    for node in [&first, &second] {
        let alone = node.submit(&["--time", "10s"], "true");
        node.await_state(&alone, "finished");
    }
}
