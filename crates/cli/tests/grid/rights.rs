//! Who may touch a job, on real nodes: its own user through any node, an admitter, a host; and nobody else.

use shoal_daemon::membership::GridId;
use shoal_daemon::trust::demand::{Matter, Verb};
use shoal_daemon::trust::text::read_key;
use shoal_daemon::trust::user::Folder;
use shoal_model::{Envelope, Job, JobId, Nonce, Time};

use crate::home::{Node, joined_with, wait_until};
use crate::trust::Person;

/// Now, by the clock of this machine.
fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Time::from_micros(since.as_micros() as u64)
}

fn grid(node: &Node) -> GridId {
    let shown: serde_json::Value = serde_json::from_str(&node.get("/v1/trust").body).unwrap();
    GridId(read_key(shown["grid"].as_str().unwrap()).unwrap())
}

#[test]
fn job_is_its_users_through_any_node_and_nobody_elses() {
    // Alice's job is owned by the first node, which is the admitter; she asks through the second as well.
    let first = Node::start(&["--cores", "1"]);
    let second = joined_with(&first, &["--cores", "1"]);
    let alice = Person::at(&first);
    alice.says(&["user", "new", "alice"]);
    let mallory = Person::at(&second);
    mallory.says(&["user", "new", "mallory"]);
    let far = alice.through(&second);
    let job = alice.submit(&["--time", "5m"], "echo secret; echo more > left; sleep 300");
    first.await_state(&job, "running");

    // Another user may do none of it, through a node that is only a member.
    for words in [
        &["cancel", &*job][..],
        &["hold", &job],
        &["release", &job],
        &["logs", &job],
        &["get", &job, "--list"],
    ] {
        let refused = mallory.complains(words);
        assert!(refused.contains("is not yours") && refused.contains("its own user"), "{words:?}: {refused}");
        assert!(refused.contains("admitter"), "{words:?}: {refused}");
    }
    // Nor as the owner of that node, unless it runs there.
    let hosts = first.json(&["status", &job])["planned"]["nodes"].clone();
    let second_id = second.json(&["nodes"])["nodes"][0]["id"].clone();
    if hosts[0] != second_id {
        assert!(mallory.complains(&["--as-node", "cancel", &job]).contains("is not yours"));
    }
    assert!(mallory.complains(&["--as-node", "logs", &job]).contains("is not yours"));
    let (host, bearer) = (second.host(), second.bearer());
    let headers = [("host", &*host), ("authorization", &*bearer)];
    let answer = second.ask(&format!("GET /v1/jobs/{job}/logs"), &headers, b"").unwrap();
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert_eq!(first.state(&job), "running");
    // What it is, everybody may know.
    assert_eq!(mallory.json(&["status", &job])["state"], "running");

    // Alice may, through both nodes.
    assert_eq!(alice.says(&["logs", &job]), "secret");
    assert_eq!(far.says(&["logs", &job]), "secret");
    far.says(&["cancel", &job[..12]]);
    first.await_state(&job, "cancelled");
    // And read what was written after the hosts have forgotten the task.
    assert_eq!(far.says(&["logs", &job]), "secret");
    assert!(mallory.complains(&["logs", &job]).contains("is not yours"));

    // The admitter's owner may take back anybody's, if that is what he asks for.
    let other = mallory.submit(&["--begin", "+1h", "--time", "1m"], "true");
    assert!(alice.complains(&["cancel", &other]).contains("is not yours"));
    alice.says(&["--as-node", "cancel", &other]);
    second.await_state(&other, "cancelled");
}

#[test]
fn owner_of_a_host_may_take_back_what_runs_there() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined_with(&first, &["--cores", "4"]);
    let alice = Person::at(&first);
    // It fits on the second node alone.
    let job = alice.submit(&["--cores", "4", "--time", "5m"], "sleep 300");
    first.await_state(&job, "running");
    let owner = Person::at(&second);
    owner.says(&["user", "new", "owner"]);
    assert!(owner.complains(&["cancel", &job]).contains("is not yours"));
    assert!(owner.complains(&["--as-node", "hold", &job]).contains("is not yours"));
    owner.says(&["--as-node", "cancel", &job]);
    first.await_state(&job, "cancelled");
}

#[test]
fn demand_counts_once_for_its_job_and_verb_and_not_for_long() {
    let node = Node::start(&["--cores", "1"]);
    let alice = Person::at(&node);
    alice.says(&["user", "new", "alice"]);
    let mallory = Person::at(&node);
    mallory.says(&["user", "new", "mallory"]);
    let jobs: Vec<JobId> =
        (0..2).map(|_| alice.submit(&["--begin", "+1h", "--time", "1m"], "true").parse().unwrap()).collect();
    let grid = grid(&node);
    let sign = |who: &Person<'_>, job, verb, at| {
        let user = Folder::at(who.folder()).user().unwrap().unwrap();
        user.demand(Matter { grid, job, verb }, at).unwrap().write()
    };
    let (host, bearer) = (node.host(), node.bearer());
    let ask = |job: JobId, verb: &str, demand: &str| {
        let headers = [("host", &*host), ("authorization", &*bearer), ("shoal-demand", demand)];
        node.ask(&format!("POST /v1/jobs/{job}/{verb}"), &headers, b"").unwrap()
    };
    let hold = sign(&alice, jobs[0], Verb::Hold, now());
    // Not for another job, not for another verb, not when it is old, and not by somebody else.
    assert_eq!(ask(jobs[1], "hold", &hold).status, 403);
    assert_eq!(ask(jobs[0], "cancel", &hold).status, 403);
    let old = sign(&alice, jobs[0], Verb::Cancel, Time::from_secs(now().as_micros() / 1_000_000 - 400));
    let answer = ask(jobs[0], "cancel", &old);
    assert!(answer.status == 403 && answer.body.contains("more than 5 minutes ago"), "{}", answer.body);
    let foreign = sign(&mallory, jobs[0], Verb::Cancel, now());
    let answer = ask(jobs[0], "cancel", &foreign);
    assert!(answer.status == 403 && answer.body.contains("is not yours"), "{}", answer.body);
    assert_eq!(ask(jobs[0], "cancel", "nonsense").status, 403);

    assert_eq!(ask(jobs[0], "hold", &hold).status, 200);
    alice.says(&["release", &jobs[0].to_string()]);
    // Whoever has passed it on cannot have it done again.
    let answer = ask(jobs[0], "hold", &hold);
    assert!(answer.status == 409 && answer.body.contains("before"), "{}", answer.body);
    assert_ne!(node.state(&jobs[0].to_string()), "held");
}

#[test]
fn signed_job_runs_in_its_grid_and_once() {
    let (node, other) = (Node::start(&["--cores", "1"]), Node::start(&["--cores", "1"]));
    let folder = tempfile::tempdir().unwrap();
    let user = Folder::at(folder.path()).make_user("alice".parse().unwrap()).unwrap();
    let origin = |made| shoal_model::envelope::Origin { grid: grid(&node).0, made };
    let job = |nonce: u8| Envelope::new(Job::command(["true"]), Nonce([nonce; 16])).unwrap();
    let send = |to: &Node, envelope: &Envelope| {
        let (host, bearer) = (to.host(), to.bearer());
        let headers = [("host", &*host), ("authorization", &*bearer), ("content-type", "application/cbor")];
        to.ask("POST /v1/jobs?wait=5s", &headers, &envelope.to_bytes()).unwrap()
    };
    let fine = user.seal(job(1).made_for(origin(now())));
    let answer = send(&node, &fine);
    assert_eq!(answer.status, 201, "{}", answer.body);
    node.await_state(&fine.id().to_string(), "finished");
    // The same again is the same job, which has ended.
    let answer = send(&node, &fine);
    assert!(answer.status == 200 && answer.body.contains("finished"), "{}", answer.body);
    wait_until("nothing of it runs", || (node.state(&fine.id().to_string()) == "finished").then_some(()));
    let starts =
        node.json(&["audit"]).as_array().unwrap().iter().filter(|one| one["kind"] == "started").count();
    assert_eq!(starts, 1);

    let refused = |to: &Node, envelope: &Envelope, why: &str| {
        let answer = send(to, envelope);
        assert!(answer.status == 403 && answer.body.contains(why), "{}: {}", answer.status, answer.body);
    };
    refused(&other, &fine, "not signed for this grid");
    refused(&node, &user.seal(job(2)), "not signed for this grid");
    let long_ago = Time::from_micros(now().as_micros() - 31 * 24 * 3_600_000_000);
    refused(&node, &user.seal(job(3).made_for(origin(long_ago))), "too long ago");
}
