//! What makes no sense gets a clear answer, and changes nothing.

use crate::home::{Node, shoal};

/// Words that are refused, and what the answer must name.
const REFUSED: [(&[&str], &str); 25] = [
    (&["submit", "--nodse", "2", "--", "true"], "--nodes"),
    (&["sbumit", "--", "true"], "submit"),
    (&["submit"], "FILE"),
    (&["submit", "--nodes", "0", "--", "true"], "--nodes"),
    (&["submit", "--cores", "0", "--", "true"], "no resource"),
    (&["submit", "--cores", "-3", "--", "true"], "-3"),
    (&["submit", "--cores", "99999", "--", "true"], "no node has more than"),
    (&["submit", "--memory", "8 bananas", "--", "true"], "bananas"),
    (&["submit", "--memory", "900TiB", "--", "true"], "memory"),
    (&["submit", "--gpus", "1", "--", "true"], "gpus"),
    (&["submit", "--time", "0s", "--", "true"], "`time`"),
    (&["submit", "--time", "90", "--", "true"], "unit"),
    (&["submit", "--time", "9999999d", "--", "true"], "ten years"),
    (&["submit", "--deadline", "2020-01-01T00:00:00Z", "--", "true"], "has passed"),
    (&["submit", "--deadline", "+5m", "--time", "1h", "--", "true"], "deadline"),
    (&["submit", "--retry", "0", "--", "true"], "--retry"),
    (&["submit", "--retry", "1", "--at-most-once", "--", "true"], "contradicts"),
    (&["submit", "--array", "9-1", "--", "true"], "ends before it begins"),
    (&["submit", "--require", "architecture=pdp11", "--", "true"], "architecture"),
    (&["submit", "--", "no-such-program-anywhere"], "no such program"),
    (&["submit", "--", "/etc/passwd"], "cannot run"),
    (&["submit", "--optimise", "closets", "--", "true"], "did you mean `closest`? at column 1"),
    (&["submit", "--where", "memory >= 8", "--", "true"], "a size without a unit"),
    (&["submit", "--criterion", "closest", "--", "true"], "`optimise`"),
    (&["submit", "no-such-file.toml"], "no-such-file.toml"),
];

#[test]
fn what_cannot_be_is_refused_by_its_field_and_changes_nothing() {
    let node = Node::start(&["--cores", "2"]);
    for (words, names) in REFUSED {
        let output = node.shoal(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(names), "{words:?} does not name {names}: {said}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 0);
}

#[test]
fn wrong_job_file_is_refused_by_line_with_the_nearest_key() {
    let node = Node::start(&[]);
    let file = node.folder.path().join("job.toml");
    std::fs::write(&file, "command = ['true']\nmemroy = '1GiB'\n").unwrap();
    let output = node.shoal(&["submit", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("line 2") && said.contains("did you mean `memory`?"), "{said}");
    let script = node.folder.path().join("job.sh");
    std::fs::write(&script, "#!/bin/sh\n#SHOAL --coers 2\ntrue\n").unwrap();
    let output = node.shoal(&["submit", script.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("line 2") && said.contains("--cores"), "{said}");
}

#[test]
fn unknown_jobs_are_told_as_such_by_every_command() {
    let node = Node::start(&[]);
    for command in ["status", "logs", "wait", "cancel", "why"] {
        for job in ["abc", "0123456789abcdef0123456789abcdef"] {
            let output = node.shoal(&[command, job]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command} {job}: {said}");
            assert!(said.contains("is known here"), "{command} {job}: {said}");
        }
        let output = node.shoal(&[command, "../../x"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
    }
}

#[test]
fn without_a_node_every_command_says_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    let commands: [&[&str]; 9] = [
        &["submit", "--", "true"],
        &["run", "--", "true"],
        &["status"],
        &["logs", "ab"],
        &["wait", "ab"],
        &["cancel", "ab"],
        &["nodes"],
        &["queue"],
        &["calendar"],
    ];
    for words in commands {
        let output = shoal(folder.path()).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(said.contains("no node runs in") && said.contains("shoal node"), "{words:?}: {said}");
    }
    // A file that a killed node left behind.
    std::fs::write(folder.path().join("address"), "127.0.0.1:1\n").unwrap();
    std::fs::write(folder.path().join("token"), "0123456789abcdef\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.path().join("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let output = shoal(folder.path()).arg("status").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("no node runs in"));
}

#[test]
fn node_with_impossible_settings_does_not_start() {
    let node = Node::start(&[]);
    let busy = node.host();
    let folder = tempfile::tempdir().unwrap();
    let refused: [(&[&str], &str); 5] = [
        (&["node", "--http", &busy], "cannot listen"),
        // No machine has it.
        (&["node", "--http", "192.0.2.1:0"], "cannot listen on 192"),
        (&["node", "--recipe", "smaple"], "sample"),
        (&["node", "--cores", "0"], "cores"),
        (&["node", "--cores", "many"], "--cores"),
    ];
    for (words, names) in refused {
        let home = folder.path().join(names.replace(' ', "-"));
        let output = shoal(&home).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(names), "{words:?}: {said}");
    }
}
