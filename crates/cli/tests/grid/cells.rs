//! Jobs in cells on real nodes: walls as the owner says, secrets that only the job is told, images.

use std::fs;
use std::path::{Path, PathBuf};

use crate::home::{Node, joined_with, shoal, wait_until};

const SECRET: &str = "swordfish-8c1f";

/// Writes more into a node's settings, and starts it anew.
fn set(node: &mut Node, more: &str) {
    let path = node.home().join("node.toml");
    let settings = fs::read_to_string(&path).unwrap();
    fs::write(&path, settings + "\n" + more).unwrap();
    node.kill();
    node.up();
}

/// Files beneath a folder that have the secret in them.
fn told(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            let has = || {
                let text = fs::read(entry.path()).unwrap_or_default();
                text.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
            };
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && has() {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn isolated_job_reads_neither_the_nodes_keys_nor_its_token_and_does_its_work() {
    let mut node = Node::start(&[]);
    set(&mut node, "[tasks]\nisolate = 'all'\n");
    let home = node.home().display().to_string();
    let script = format!("cat {home}/node.key {home}/token {home}/shoal.db && exit 9; echo done");
    let output = node.shoal(&["run", "--", "sh", "-c", &script]);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), stdout.trim()), (Some(0), "done"), "{stderr}");
    // Files in and out go their way all the same.
    let desk = tempfile::tempdir().unwrap();
    fs::write(desk.path().join("words"), "words\n").unwrap();
    let run = |words: &[&str]| shoal(&node.home()).args(words).current_dir(desk.path()).output().unwrap();
    let output = run(&[
        "--json",
        "submit",
        "--in",
        "words",
        "--out",
        "more",
        "--",
        "sh",
        "-c",
        "cat words words > more",
    ]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = status["id"].as_str().unwrap();
    assert!(run(&["wait", "--timeout", "50s", id]).status.success(), "{}", node.says(&["status", id]));
    assert!(run(&["get", id]).status.success());
    assert_eq!(fs::read_to_string(desk.path().join("more")).unwrap(), "words\nwords\n");
}

#[test]
fn rule_of_the_policy_has_jobs_isolated_and_gives_them_paths() {
    let node = Node::start(&[]);
    let data = tempfile::tempdir_in("/var").unwrap();
    fs::set_permissions(data.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(data.path().join("file"), "public\n").unwrap();
    let key = node.home().join("node.key").display().to_string();
    let script = format!("cat {}/file; cat {key} > /dev/null && echo key", data.path().display());
    assert!(node.says(&["run", "--", "sh", "-c", &script]).ends_with("key\n"), "its own users are trusted");
    let policy = format!("[[rules]]\nverdict = 'allow'\nread = ['{}']\n", data.path().display());
    fs::write(node.home().join("policy.toml"), policy).unwrap();
    wait_until("the policy counts", || {
        let output = node.shoal(&["run", "--", "sh", "-c", &script]);
        (String::from_utf8_lossy(&output.stdout) == "public\n").then_some(())
    });
}

#[test]
fn secret_is_told_to_the_job_on_another_node_and_lies_nowhere() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined_with(&first, &["--label", "place=second"]);
    let submit = |words: &[&str]| shoal(&first.home()).env("TOKEN", SECRET).args(words).output().unwrap();
    let script =
        "rev $SHOAL_SECRETS/TOKEN; echo; tr '\\0' '\\n' < /proc/self/environ | grep -c swordfish; sleep 1";
    let words =
        ["--json", "submit", "--secret", "TOKEN", "--require", "place=second", "--", "sh", "-c", script];
    let output = submit(&words);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let id = status["id"].as_str().unwrap().to_owned();
    let backwards: String = SECRET.chars().rev().collect();
    wait_until("it has read its secret", || {
        let logs = first.shoal(&["logs", &id]);
        String::from_utf8_lossy(&logs.stdout).contains(&backwards).then_some(())
    });
    let everywhere = || [told(&first.home()), told(&second.home())].concat();
    assert_eq!(everywhere(), [] as [PathBuf; 0], "while it runs");
    let ended = submit(&["wait", "--timeout", "50s", &id]);
    assert!(ended.status.success(), "{}", first.says(&["status", &id]));
    assert_eq!(first.says(&["logs", &id]), format!("{backwards}\n0\n"), "nor is it in the environment");
    assert_eq!(everywhere(), [] as [PathBuf; 0], "and afterwards");
    assert!(!first.says(&["--json", "status", &id]).contains(SECRET));
}

#[test]
fn secret_that_is_not_known_or_not_told_is_refused() {
    let node = Node::start(&[]);
    let output = node.shoal(&["submit", "--secret", "NO_SUCH_VARIABLE", "--", "true"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("NO_SUCH_VARIABLE") && said.contains("=PATH"), "{said}");
    let output = node.shoal(&["submit", "--secret", "a=/no/such/file", "--", "true"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/file"));
    let answer = node.post("/v1/jobs", "application/json", r#"{"command":["true"],"secrets":["a"]}"#);
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert!(answer.body.contains("was not told"), "{}", answer.body);
}

#[test]
fn job_in_an_image_runs_where_that_is_and_nowhere_else() {
    let mut node = Node::start(&[]);
    let output = node.shoal(&["submit", "--image", "small", "--", "true"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("image.small"), "{said}");
    let missing = "[images]\nsmall = '/no/such/folder'\n";
    fs::write(node.home().join("node.toml"), missing).unwrap();
    node.kill();
    let output = shoal(&node.home()).args(["node", "--listen", "127.0.0.1:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("images.small") && said.contains("no such folder"), "{said}");
    let place = tempfile::tempdir_in("/var").unwrap();
    fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    copy_shell(place.path());
    fs::write(node.home().join("node.toml"), format!("[images]\nsmall = '{}'\n", place.path().display()))
        .unwrap();
    node.up();
    let output = node.shoal(&["run", "--image", "small", "--", "sh", "-c", "echo $$"]);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if shoal_daemon::cell::offers::Offers::find().images {
        assert_eq!(stdout.trim(), "2", "it sees no processes but its own: {stderr}");
    } else {
        assert!(!output.status.success(), "{stdout}");
    }
}

/// Puts a shell, and what it needs, into an image.
fn copy_shell(root: &Path) {
    let needs = std::process::Command::new("ldd").arg("/bin/sh").output().unwrap();
    let text = String::from_utf8(needs.stdout).unwrap();
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
    for path in libraries.chain(["/bin/sh"]) {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(path, to).unwrap();
    }
}
