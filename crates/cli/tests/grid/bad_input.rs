//! What makes no sense gets a clear answer, and changes nothing.

use crate::home::{Node, shoal};

/// Words that are refused, and what the answer must name.
const REFUSED: [(&[&str], &str); 29] = [
    (&["submit", "--nodse", "2", "--", "true"], "--nodes"),
    (&["sbumit", "--", "true"], "submit"),
    (&["submit"], "FILE"),
    (&["submit", "--nodes", "0", "--", "true"], "must be at least 1"),
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
    (&["submit", "--retry", "0", "--", "true"], "must be at least 1"),
    (&["calendar", "nowhere"], "no node is called `nowhere`"),
    (&["submit", "--retry", "1", "--at-most-once", "--", "true"], "contradicts"),
    (&["submit", "--array", "9-1", "--", "true"], "ends before it begins"),
    (&["submit", "--require", "architecture=pdp11", "--", "true"], "architecture"),
    (&["submit", "--", "no-such-program-anywhere"], "no such program"),
    (&["submit", "--", "/etc/passwd"], "cannot run"),
    (&["submit", "--", "./job.sh"], "brings no file along"),
    (&["ticket", "--lasts", "0s"], "--lasts"),
    (&["calendar", "--span", "0s"], "--span"),
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
    let refused: [(&[&str], &str); 8] = [
        (&["node", "--http", &busy], "cannot listen"),
        // No machine has it.
        (&["node", "--http", "192.0.2.1:0"], "cannot listen on 192"),
        (&["node", "--recipe", "smaple"], "sample"),
        (&["node", "--recipe", "asap", "--overlay", "can"], "expected cyclon"),
        (&["node", "--recipe", "asap", "--queue", "sjf"], "not with asap"),
        (&["node", "--recipe", "aria", "--queue", "sfj"], "no queue policy is called `sfj`"),
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

/// A command that must be refused, and what its answer must say; nothing is on standard output, and nobody panics.
fn refused(command: &mut std::process::Command, named: &[&str]) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
    for name in named {
        assert!(said.contains(name), "{command:?} does not say {name}: {said}");
    }
    assert!(output.stdout.is_empty() && !said.contains("panicked"), "{command:?}: {said}");
}

#[test]
fn job_that_no_program_could_be_given_is_refused_by_its_field() {
    let node = Node::start(&[]);
    let files: [(&str, &[u8], &[&str]); 8] = [
        ("nul.toml", b"command = [\"a\\u0000b\"]\n", &["`command`", "zero byte"]),
        ("nul-raw.toml", b"command = [\"a\0b\"]\n", &["nul-raw.toml", "line 1"]),
        (
            "nul-env.toml",
            b"command = ['true']\nenvironment = { A = \"\\u0000\" }\n",
            &["`environment`", "zero"],
        ),
        ("equals.toml", b"command = ['true']\nenvironment = { \"A=B\" = '1' }\n", &["`A=B`", "without `=`"]),
        ("nameless.toml", b"command = ['true']\nenvironment = { \"\" = '1' }\n", &["`environment`"]),
        ("nul.sh", b"#!/bin/sh\necho \0\n", &["`script`", "zero byte"]),
        ("latin1.sh", b"#!/bin/sh\necho gr\xfc\xdfe\n", &["latin1.sh, line 2", "not text in UTF-8"]),
        (
            "latin1.toml",
            b"command = ['true']\nname = '\xe9'\n",
            &["latin1.toml, line 2", "not text in UTF-8"],
        ),
    ];
    for (name, content, named) in files {
        let path = node.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        refused(shoal(&node.home()).arg("submit").arg(&path), named);
    }
    for (words, named) in [
        (["--env", "=1", "--", "true"], "`environment`"),
        (["--name", "two\nlines", "--", "true"], "--name"),
        (["--name", "", "--", "true"], "--name"),
    ] {
        refused(shoal(&node.home()).arg("submit").args(words), &[named]);
    }
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 0);
}

#[test]
fn job_file_of_a_hundred_mebibytes_is_refused_at_once_by_program_and_node() {
    let node = Node::start(&[]);
    for name in ["large.toml", "large.sh"] {
        let path = node.folder.path().join(name);
        // A sparse file: zeros that nobody has to write.
        std::fs::File::create(&path).unwrap().set_len(100 << 20).unwrap();
        refused(shoal(&node.home()).arg("submit").arg(&path), &[name, "more than 1 MiB"]);
    }
    // The same past the program: the node cuts it off.
    let body = vec![b' '; 100 << 20];
    let (host, bearer) = (node.host(), node.bearer());
    let headers = [("host", &*host), ("authorization", &*bearer), ("content-type", "application/json")];
    if let Some(answer) = node.ask("POST /v1/jobs", &headers, &body) {
        assert_eq!(answer.status, 413, "{}", answer.body);
    }
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 0);
}

#[test]
fn names_that_are_not_utf8_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let node = Node::start(&[]);
    let odd = OsStr::from_bytes(b"gr\xfc\xdfe");
    std::fs::write(node.folder.path().join(odd), "x").unwrap();
    for flags in [&["--in"][..], &["--out"], &["--name"], &["--env"], &["--"]] {
        let mut command = shoal(&node.home());
        command.current_dir(node.folder.path()).arg("submit").args(flags).arg(odd).args(["--", "true"]);
        refused(&mut command, &["UTF-8"]);
    }
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 0);
}

#[test]
fn input_that_changes_while_it_is_read_is_named_and_nothing_is_submitted() {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    let node = Node::start(&[]);
    let path = node.folder.path().join("growing");
    std::fs::write(&path, vec![b'x'; 32 << 20]).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut file = std::fs::File::options().append(true).open(&path).unwrap();
            while !done.load(Ordering::Relaxed) {
                file.write_all(b"more").unwrap();
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        });
        let mut command = shoal(&node.home());
        command.current_dir(node.folder.path()).args(["submit", "--in", "growing", "--", "true"]);
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            refused(&mut command, &["--in growing", "it changed while it was read; nothing was submitted"]);
        }));
        done.store(true, Ordering::Relaxed);
        assert!(tried.is_ok());
    });
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 0);
}

#[test]
fn rules_that_contradict_each_other_are_named_with_their_lines() {
    let mut node = Node::start(&[]);
    let policy = node.home().join("policy.toml");
    let twice = "# ours\n[[rules]]\nverdict = 'allow'\nusers = ['alice']\n\n[[rules]]\nverdict = 'deny'\nusers = ['alice']\n";
    std::fs::write(&policy, twice).unwrap();
    let named = ["policy.toml", "line 6", "line 2", "contradicts it"];
    refused(shoal(&node.home()).args(["policy", "check", "alice", "--", "true"]), &named);
    std::fs::write(&policy, twice.replace("'deny'", "'allow'")).unwrap();
    refused(
        shoal(&node.home()).args(["policy", "check", "alice", "--", "true"]),
        &["line 6", "says the same"],
    );
    std::fs::write(&policy, twice).unwrap();
    node.stop();
    refused(shoal(&node.home()).args(["node", "--listen", "127.0.0.1:0"]), &named);
}

#[test]
fn organisation_that_nobody_knows_is_named() {
    let node = Node::start(&[]);
    node.says(&["user", "new", "alice"]);
    let key = node.json(&["user", "show"])["key"].as_str().unwrap().to_owned();
    // Whoever has not its key can admit nobody to it, nor revoke anything in its name.
    refused(
        shoal(&node.home()).args(["org", "admit", &key, "--name", "alice", "--organisation", "lab-x"]),
        &["lab-x", "shoal org new"],
    );
    // A job on behalf of an organisation that its user does not belong to.
    let file = node.folder.path().join("job.toml");
    std::fs::write(&file, "command = ['true']\norganisation = 'lab-x'\n").unwrap();
    refused(shoal(&node.home()).arg("submit").arg(&file), &["organisation"]);
    // And one that may run on machines of an organisation that has none.
    let words = ["submit", "--require", "within=lab-x", "--", "true"];
    refused(shoal(&node.home()).args(words), &["it needs a machine of lab-x"]);
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 0);
}

#[test]
fn node_whose_key_is_open_damaged_or_gone_does_not_start() {
    use std::os::unix::fs::PermissionsExt;
    let mut node = Node::start(&[]);
    node.stop();
    let key = node.home().join("node.key");
    let sound = std::fs::read(&key).unwrap();
    let start = || {
        let mut command = shoal(&node.home());
        command.args(["node", "--listen", "127.0.0.1:0"]);
        command
    };
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    refused(&mut start(), &["node.key", "chmod 600"]);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    for damaged in [&b"nonsense"[..], b"", &sound[..sound.len() - 2]] {
        std::fs::write(&key, damaged).unwrap();
        refused(&mut start(), &["node.key", "damaged"]);
        assert_eq!(std::fs::read(&key).unwrap(), damaged, "it is left alone");
    }
    // Another key is another node, which is no member of the grid that this folder belongs to.
    std::fs::remove_file(&key).unwrap();
    refused(&mut start(), &["node.key is gone", "from a copy"]);
    assert!(!key.exists(), "no other takes its place");
    std::fs::write(&key, sound).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    node.up();
    node.says(&["run", "--", "true"]);
}

#[test]
fn node_whose_clock_is_far_off_is_told_so() {
    let first = Node::start(&[]);
    // Ten years ahead every certificate has expired: it is refused, with what is wrong.
    let ticket = first.says(&["ticket"]);
    let folder = tempfile::tempdir().unwrap();
    let mut late = shoal(&folder.path().join("home"));
    late.args(["node", "--listen", "127.0.0.1:0", "--clock-ahead", "3650d", "--join", ticket.trim()]);
    refused(&mut late, &["clock"]);
}
