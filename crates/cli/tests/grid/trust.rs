//! Who may do what, on real nodes: users, two organisations, policies and revocations.

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use super::home::{Node, joined_with, shoal, wait_until};

/// A person with a folder of their own, at a node.
pub struct Person<'a> {
    node: &'a Node,
    folder: std::sync::Arc<tempfile::TempDir>,
}

impl<'a> Person<'a> {
    pub fn at(node: &'a Node) -> Person<'a> {
        Person { node, folder: std::sync::Arc::new(tempfile::tempdir().unwrap()) }
    }

    /// The same person at another node.
    pub fn through(&self, node: &'a Node) -> Person<'a> {
        Person { node, folder: std::sync::Arc::clone(&self.folder) }
    }

    /// Where the keys are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn tries(&self, words: &[&str]) -> Output {
        shoal(&self.node.home()).env("SHOAL_CONFIG", self.folder.path()).args(words).output().unwrap()
    }

    pub fn says(&self, words: &[&str]) -> String {
        let output = self.tries(words);
        assert!(output.status.success(), "shoal {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn complains(&self, words: &[&str]) -> String {
        let output = self.tries(words);
        assert!(!output.status.success(), "shoal {words:?} went well");
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.says(&[&["--json"], words].concat())).unwrap()
    }

    pub fn submit(&self, flags: &[&str], script: &str) -> String {
        let words = [&["submit"], flags, &["--", "sh", "-c", script]].concat();
        self.json(&words)["id"].as_str().unwrap().to_owned()
    }

    fn key(&self) -> String {
        self.json(&["user", "show"])["key"].as_str().unwrap().to_owned()
    }
}

fn policy(node: &Node, text: &str) {
    std::fs::write(node.home().join("policy.toml"), text).unwrap();
}

/// The id of a node.
fn id(node: &Node) -> String {
    node.json(&["nodes"])["nodes"][0]["id"].as_str().unwrap().to_owned()
}

fn ran_on(node: &Node, job: &str) -> Vec<String> {
    let nodes = &node.json(&["status", job])["planned"]["nodes"];
    nodes.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
fn first_job_makes_the_key_and_runs_in_one_step() {
    let node = Node::start(&[]);
    let alice = Person::at(&node);
    let refused = alice.complains(&["user", "show"]);
    assert!(refused.contains("shoal user new"), "{refused}");
    assert_eq!(alice.says(&["run", "--", "echo", "hello"]), "hello");
    assert!(alice.key().starts_with("shoalkey1"));

    // The same name with another key is somebody else, whom the node does not know.
    let name = alice.json(&["user", "show"])["name"].as_str().unwrap().to_owned();
    let mallory = Person::at(&node);
    mallory.says(&["user", "new", &name]);
    let refused = mallory.complains(&["run", "--", "true"]);
    assert!(refused.contains("another key is called"), "{refused}");

    let path = alice.folder.path().join("user.key");
    set_mode(&path, 0o644);
    let refused = alice.complains(&["run", "--", "true"]);
    assert!(refused.contains("chmod 600"), "{refused}");
    set_mode(&path, 0o600);
    std::fs::write(&path, "nonsense").unwrap();
    let refused = alice.complains(&["run", "--", "true"]);
    assert!(refused.contains("is damaged"), "{refused}");
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn unsigned_envelope_is_refused_and_a_job_in_json_is_the_nodes() {
    use shoal_model::{Envelope, Job, Nonce};
    let node = Node::start(&[]);
    let envelope = Envelope::new(Job::command(["true"]), Nonce([1; 16])).unwrap();
    let (host, bearer) = (node.host(), node.bearer());
    let headers = [("host", &*host), ("authorization", &*bearer), ("content-type", "application/cbor")];
    let answer = node.ask("POST /v1/jobs", &headers, &envelope.to_bytes()).unwrap();
    assert_eq!(answer.status, 401, "{}", answer.body);
    assert!(answer.body.contains("not signed"), "{}", answer.body);
    let answer = node.post("/v1/jobs", "application/json", "{\"command\":[\"true\"]}");
    assert_eq!(answer.status, 201, "{}", answer.body);
    let job: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    node.await_state(job["id"].as_str().unwrap(), "finished");
    let answer = node.post("/v1/jobs", "application/json", "{\"command\":[\"true\"],\"user\":\"alice\"}");
    assert_eq!(answer.status, 403, "{}", answer.body);
}

#[test]
fn two_organisations_share_what_their_hosts_allow_until_a_user_is_revoked() {
    // Two nodes of lab-a, one of them the admitter, and one of lab-b.
    let first = Node::start(&["--organisation", "lab-a", "--cores", "1"]);
    let second = joined_with(&first, &["--cores", "1"]);
    let ticket = first.says(&["ticket", "--organisation", "lab-b"]);
    let third = Node::start(&["--join", ticket.trim(), "--cores", "1"]);
    wait_until("all know each other", || {
        let knows = |node: &Node| node.json(&["nodes"])["nodes"].as_array().map_or(0, Vec::len) >= 3;
        [&first, &second, &third].into_iter().all(knows).then_some(())
    });
    let theirs = third.json(&["nodes"])["nodes"][0]["machine"]["organisation"].clone();
    assert_eq!(theirs, "lab-b");

    // Each organisation has a key, and the grid is told.
    let (boss_a, boss_b) = (Person::at(&first), Person::at(&third));
    for (boss, name) in [(&boss_a, "lab-a"), (&boss_b, "lab-b")] {
        let key = boss.says(&["org", "new", name]);
        let told = Person::at(&first).says(&["org", "trust", name, &key]);
        assert!(told.contains("all nodes"), "{told}");
    }
    wait_until("all nodes have heard of both", || {
        let knows =
            |node: &Node| node.json(&["org", "show"])["organisations"].as_object().unwrap().len() == 2;
        [&first, &second, &third].into_iter().all(knows).then_some(())
    });

    let (alice, bob) = (Person::at(&first), Person::at(&third));
    alice.says(&["user", "new", "alice"]);
    let refused = alice.complains(&["run", "--", "true"]);
    assert!(refused.contains("shoal org admit"), "no node speaks for an organisation with a key: {refused}");
    for (boss, person, name, lab) in [(&boss_a, &alice, "alice", "lab-a"), (&boss_b, &bob, "bob", "lab-b")] {
        if name == "bob" {
            person.says(&["user", "new", name]);
        }
        let pass = boss.says(&["org", "admit", &person.key(), "--name", name, "--organisation", lab]);
        person.says(&["user", "keep", &pass]);
    }

    // Hosts of lab-a run what is theirs, and the one of lab-b does not, whoever forwards it.
    assert_eq!(alice.says(&["run", "--", "echo", "mine"]), "mine");
    let gang = alice.submit(&["--nodes", "3", "--time", "10s"], "true");
    wait_until("a host has denied it", || {
        let why = alice.says(&["why", &gang]);
        why.contains("does not take it: no rule of its policy allows it").then_some(())
    });
    assert_eq!(first.state(&gang), "waiting");
    let told = alice.json(&["why", &gang]);
    let denying: Vec<&str> = told["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["reasons"].to_string().contains("does not take it"))
        .map(|node| node["node"].as_str().unwrap())
        .collect();
    assert_eq!(denying, [id(&third).as_str()]);
    alice.says(&["cancel", &gang]);

    // With a rule for them they run there too; the file is noticed by itself.
    let rule = "[[rules]]\nverdict = 'allow'\nusers = ['alice']\norganisations = ['lab-a']\ntime = '1m'\n";
    policy(&third, rule);
    let checked = boss_b.json(&["policy", "check", "alice", "--of", "lab-a", "--time", "1m", "--", "true"]);
    assert_eq!((&checked["allowed"], &checked["line"]), (&true.into(), &1.into()), "{checked}");
    let denied = boss_b.json(&["policy", "check", "alice2", "--of", "lab-a", "--time", "1m", "--", "true"]);
    assert_eq!(denied["allowed"], false, "{denied}");
    wait_until("the gang runs on all three", || {
        let gang = alice.submit(&["--nodes", "3", "--time", "10s"], "true");
        let waited = alice.tries(&["wait", "--timeout", "4s", &gang]);
        if waited.status.success() {
            assert_eq!(ran_on(&first, &gang).len(), 3);
            return Some(());
        }
        alice.says(&["cancel", &gang]);
        None
    });

    // Bob's job waits on his own host, held until after he is revoked: it never starts anywhere.
    let waits = bob.submit(&["--begin", "+20s", "--time", "10s"], "true");
    third.await_state(&waits, "planned");
    let began = Instant::now();
    let told = boss_b.says(&["org", "revoke", &bob.key(), "--organisation", "lab-b"]);
    assert!(told.contains("being told"), "{told}");
    wait_until("all nodes have heard of it", || {
        let knows = |node: &Node| node.json(&["org", "show"])["revoked"].as_array().unwrap().len() == 1;
        [&first, &second, &third].into_iter().all(knows).then_some(())
    });
    assert!(began.elapsed() < Duration::from_secs(60));
    let refused = bob.complains(&["run", "--", "true"]);
    assert!(refused.contains("revoked"), "{refused}");
    wait_until("its start was denied", || bob.says(&["why", &waits]).contains("revoked").then_some(()));
    assert_eq!(third.state(&waits), "waiting");
    // Alice is not touched by it.
    assert_eq!(alice.says(&["run", "--", "echo", "still"]), "still");
}

#[test]
fn broken_policy_keeps_the_old_one_and_a_node_does_not_start_with_one() {
    let mut node = Node::start(&[]);
    policy(&node, "[[rules]]\nverdict = 'deny'\n");
    let alice = Person::at(&node);
    let denied = wait_until("the policy counts", || {
        let job = alice.submit(&["--time", "10s"], "true");
        let waited = alice.tries(&["wait", "--timeout", "2s", &job]);
        (!waited.status.success()).then_some(job)
    });
    let why = alice.says(&["why", &denied]);
    assert!(why.contains("the rule in line 1 of its policy.toml denies it"), "{why}");
    policy(&node, "[[rules]]\nverdict = 'perhaps'\n");
    std::thread::sleep(Duration::from_secs(3));
    let job = alice.submit(&["--time", "10s"], "true");
    assert!(!alice.tries(&["wait", "--timeout", "2s", &job]).status.success(), "the old one stays");
    let refused = alice.complains(&["policy", "check", "alice", "--", "true"]);
    assert!(refused.contains("policy.toml: line 2"), "{refused}");
    node.stop();
    let output = node.shoal(&["node", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("policy.toml: line 2"), "{said}");
}

#[test]
fn what_was_done_is_written_down_and_a_changed_record_is_named() {
    let mut node = Node::start(&[]);
    let alice = Person::at(&node);
    alice.says(&["user", "new", "alice"]);
    alice.says(&["run", "--", "sleep", "0.3"]);
    policy(&node, "[[rules]]\nverdict = 'deny'\n");
    wait_until("the policy counts", || {
        let job = alice.submit(&["--time", "10s"], "true");
        (!alice.tries(&["wait", "--timeout", "2s", &job]).status.success()).then_some(())
    });
    alice.says(&["user", "revoke", &alice.key()]);
    let kinds = || -> Vec<String> {
        let records = node.json(&["audit"]);
        records.as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
    };
    for kind in ["opened", "submitted", "started", "ended", "policy", "refused", "revoked"] {
        wait_until(&format!("`{kind}` is written down"), || {
            kinds().iter().any(|one| one == kind).then_some(())
        });
    }
    let used = node.json(&["usage", "--by", "user"]);
    let mine =
        used.as_array().unwrap().iter().find(|sum| sum["name"] == "alice").expect("alice used something");
    assert!(mine["core_seconds"].as_f64().unwrap() > 0.2, "{used}");
    assert_eq!(node.json(&["usage", "--by", "organisation"])[0]["name"], "-");

    node.says(&["audit", "verify"]);
    node.stop();
    let path = node.home().join("audit.log");
    let sound = std::fs::read_to_string(&path).unwrap();
    let place = sound.lines().position(|line| line.contains("\"started\"")).unwrap() + 1;
    std::fs::write(&path, sound.replacen("\"user\":\"alice\"", "\"user\":\"malice\"", 1)).unwrap();
    let output = node.shoal(&["audit", "verify"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(&format!("record {place} is broken")), "{said}");
}
