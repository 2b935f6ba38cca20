//! Files of jobs: brought along, moved between nodes, kept and fetched again; and all that must not work.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::home::{Node, joined, joined_with, shoal, wait_until};

/// A folder for a user's files, with a command run in it.
struct Desk<'a> {
    node: &'a Node,
    folder: tempfile::TempDir,
}

impl Desk<'_> {
    fn at(node: &Node) -> Desk<'_> {
        Desk { node, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn shoal(&self, words: &[&str]) -> std::process::Output {
        shoal(&self.node.home()).args(words).current_dir(self.folder.path()).output().unwrap()
    }

    fn says(&self, words: &[&str]) -> String {
        let output = self.shoal(words);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "shoal {words:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Submits what a shell shall do, and waits for its end.
    fn done(&self, flags: &[&str], script: &str) -> String {
        let id = self.submit(flags, script);
        let waited = self.shoal(&["wait", "--timeout", "50s", &id]);
        let status = self.says(&["status", &id]);
        let told = self.node.shoal(&["logs", "--stderr", &id]);
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(waited.status.success(), "{status}{told}");
        id
    }

    fn submit(&self, flags: &[&str], script: &str) -> String {
        let words = [&["--json", "submit"], flags, &["--", "sh", "-c", script]].concat();
        let status: serde_json::Value = serde_json::from_str(&self.says(&words)).unwrap();
        status["id"].as_str().unwrap().to_owned()
    }

    fn refused(&self, words: &[&str], named: &[&str]) {
        let output = self.shoal(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        for name in named {
            assert!(said.contains(name), "{words:?} does not say {name}: {said}");
        }
    }
}

fn blobs(home: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(home.join("depot/blobs")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.map(|file| file.path()).filter(|path| path.extension().is_none()).collect()
}

fn fetched(node: &Node) -> u64 {
    let text = node.get("/metrics").body;
    let line = text.lines().find(|line| line.starts_with("shoal_files_fetched_bytes")).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn job_finds_its_files_and_its_outputs_are_fetched() {
    let node = Node::start(&[]);
    let desk = Desk::at(&node);
    desk.write("data/a.csv", "1,2\n");
    desk.write("tool", "#!/bin/sh\necho tool: $1\n");
    fs::set_permissions(desk.path("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    desk.write("tree/x/one", "1");
    desk.write("tree/two", "2");
    let job = desk.done(
        &["--in", "data/a.csv", "--in", "tool=bin/run", "--in", "tree", "--out", "results/*.txt", "--out", "*.none"],
        "mkdir results && bin/run $(cat data/a.csv) > results/said.txt && cat tree/x/one tree/two > results/tree.txt \
         && echo no > results/no.csv && ln -s /etc/passwd results/evil.txt",
    );
    let status: serde_json::Value = serde_json::from_str(&desk.says(&["--json", "status", &job])).unwrap();
    assert_eq!(
        (&status["outputs"]["files"], &status["outputs"]["left_out"]),
        (&2.into(), &1.into()),
        "{status}"
    );
    assert_eq!(status["outputs"]["unmatched"][0], "*.none");

    desk.says(&["get", &job, "--to", "back"]);
    assert_eq!(desk.read("back/results/said.txt"), "tool: 1,2\n");
    assert_eq!(desk.read("back/results/tree.txt"), "12");
    assert!(!desk.path("back/results/evil.txt").exists() && !desk.path("back/results/no.csv").exists());
    // A second time nothing is there to do; what differs is not overwritten.
    desk.says(&["get", &job, "--to", "back"]);
    desk.write("back/results/tree.txt", "mine");
    desk.refused(&["get", &job, "results/tree.txt", "--to", "back"], &["is there"]);
    desk.says(&["get", &job, "results/tree.txt", "--to", "back", "--force"]);
    assert_eq!(desk.read("back/results/tree.txt"), "12");
    desk.refused(&["get", &job, "no-such-file"], &["no-such-file", "--list"]);
    assert!(desk.says(&["get", &job, "--list"]).contains("results/said.txt"));
}

#[test]
fn job_cannot_change_what_others_bring() {
    let node = Node::start(&[]);
    let desk = Desk::at(&node);
    desk.write("a", "as it was");
    desk.done(&["--in", "a"], "echo changed > a && chmod 600 a");
    let job = desk.done(&["--in", "a", "--out", "b"], "cp a b");
    desk.says(&["get", &job]);
    assert_eq!(desk.read("b"), "as it was");
    assert_eq!(blobs(&node.home()).len(), 2, "the file and the list of outputs");
}

#[test]
fn files_move_to_the_node_that_runs_the_job_and_outputs_are_on_two() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined_with(&first, &["--cores", "4"]);
    let desk = Desk::at(&first);
    let large = (0..5_000_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    desk.write("large", &large);
    // It fits on the second node alone.
    let job = desk.done(&["--cores", "4", "--in", "large", "--out", "copy"], "cp large copy");
    assert!(fetched(&second) >= large.len() as u64);
    for node in [&first, &second] {
        let sizes: Vec<u64> = blobs(&node.home()).iter().map(|path| path.metadata().unwrap().len()).collect();
        assert!(sizes.contains(&(large.len() as u64)), "input and output are one file: {sizes:?}");
    }
    // Through either, and the first has it though the second is gone.
    let other = Desk::at(&second);
    other.says(&["get", &job]);
    assert_eq!(fs::read(other.path("copy")).unwrap(), large);
    drop(other);
    let mut second = second;
    second.kill();
    desk.says(&["get", &job]);
    assert_eq!(fs::read(desk.path("copy")).unwrap(), large);
}

#[test]
fn many_jobs_with_one_input_move_it_once() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined_with(&first, &["--cores", "4"]);
    let desk = Desk::at(&first);
    let input = vec![7_u8; 3 << 20];
    desk.write("input", &input);
    let jobs: Vec<String> = (0..10)
        .map(|_| {
            desk.submit(
                &["--plan", "0s", "--time", "20s", "--cores", "2", "--in", "input"],
                "test $(wc -c < input) = 3145728",
            )
        })
        .collect();
    for job in &jobs {
        assert!(desk.shoal(&["wait", "--timeout", "50s", job]).status.success());
    }
    assert_eq!(fetched(&second), input.len() as u64);
}

#[test]
fn transfer_goes_on_after_the_node_is_killed() {
    let first = Node::start(&["--cores", "1"]);
    let mut second = joined_with(&first, &["--cores", "4"]);
    let desk = Desk::at(&first);
    let size = 192_u64 << 20;
    desk.write("large", vec![5; size as usize]);
    // Committed now, to start later: the file comes at once.
    let job = desk.submit(&["--cores", "4", "--begin", "+1h", "--in", "large"], "true");
    let partial = |node: &Node| {
        let parts = fs::read_dir(node.home().join("depot/partial")).into_iter().flatten().flatten();
        parts
            .filter(|part| part.path().extension().is_none())
            .map(|part| part.metadata().map_or(0, |f| f.len()))
            .max()
    };
    let there = wait_until("a part of it is there", || {
        partial(&second).filter(|&there| there > 16 << 20 || there == size)
    });
    second.kill();
    let kept = partial(&second).unwrap_or(0);
    assert!(there < size && kept >= there, "it was killed in the middle: {there}, {kept}");
    second.up();
    wait_until("all of it is there", || {
        blobs(&second.home()).iter().any(|path| path.metadata().is_ok_and(|f| f.len() == size)).then_some(())
    });
    let again = fetched(&second);
    // At most what is one group, and what the network had under way.
    assert!(again <= size - kept + (2 << 20), "{again} bytes for {} that were missing", size - kept);
    desk.says(&["cancel", &job]);
}

#[test]
fn every_recipe_brings_files_and_keeps_outputs() {
    for recipe in ["sample", "asap", "proactive", "aria", "tri-pronged"] {
        let first = Node::start(&["--recipe", recipe, "--cores", "1"]);
        let second = joined_with(&first, &["--cores", "4"]);
        let desk = Desk::at(&first);
        desk.write("a", "input");
        let job = desk.done(
            &["--cores", "4", "--time", "1m", "--in", "a=in/a", "--out", "out/**"],
            "mkdir out && tr a-z A-Z < in/a > out/b",
        );
        let other = Desk::at(&second);
        other.says(&["get", &job]);
        assert_eq!(other.read("out/b"), "INPUT", "{recipe}");
    }
}

#[test]
fn gang_leaves_files_of_each_rank() {
    let first = Node::start(&["--cores", "1"]);
    let second = joined(&first);
    let desk = Desk::at(&first);
    desk.write("a", "all");
    let job = desk.done(&["--nodes", "2", "--in", "a", "--out", "r*"], "cat a > r$SHOAL_RANK");
    let desk = Desk::at(&second);
    desk.says(&["get", &job]);
    assert_eq!((desk.read("0/r0"), desk.read("1/r1")), ("all".to_owned(), "all".to_owned()));
}

#[test]
fn job_files_and_scripts_bring_files_too() {
    let node = Node::start(&[]);
    let desk = Desk::at(&node);
    desk.write("a b", "spaces");
    desk.write("job.toml", "command = ['cp', 'in', 'out']\nin = ['a b => in']\nout = ['out']\n");
    desk.write("job.sh", "#!/bin/sh\n#SHOAL --in 'a b=in' --out out\ncp in out\n");
    for file in ["job.toml", "job.sh"] {
        let status: serde_json::Value =
            serde_json::from_str(&desk.says(&["--json", "submit", file])).unwrap();
        let job = status["id"].as_str().unwrap();
        assert!(desk.shoal(&["wait", "--timeout", "50s", job]).status.success());
        desk.says(&["get", job, "--to", file.trim_start_matches("job.")]);
        assert_eq!(desk.read(&format!("{}/out", file.trim_start_matches("job."))), "spaces");
    }
}

#[test]
fn what_cannot_be_brought_is_named_and_nothing_is_submitted() {
    use std::os::unix::ffi::OsStrExt;
    let node = Node::start(&[]);
    let desk = Desk::at(&node);
    desk.write("a", "a");
    desk.write("b", "b");
    desk.write("links/a", "a");
    symlink("/etc/passwd", desk.path("links/evil")).unwrap();
    nix::unistd::mkfifo(&desk.path("pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    fs::create_dir(desk.path("odd")).unwrap();
    fs::write(desk.path("odd").join(std::ffi::OsStr::from_bytes(b"no\xffutf8")), "").unwrap();
    let cases: [(&[&str], &[&str]); 14] = [
        (&["--in", "missing"], &["missing", "cannot be read"]),
        (&["--in", "pipe"], &["pipe", "plain file"]),
        (&["--in", "/dev/null"], &["/dev/null", "plain file"]),
        (&["--in", "links"], &["evil", "a link"]),
        (&["--in", "odd"], &["not UTF-8"]),
        (&["--in", "a", "--in", "b=a"], &["`in` names `a` twice"]),
        (&["--in", "a", "--in", "b=a/b"], &["lies in it"]),
        (&["--in", "a=../a"], &["not a path inside"]),
        (&["--in", "a=/etc/a"], &["not a path inside"]),
        (&["--in", "a=stdout"], &["stdout", "another name"]),
        (&["--out", "../*"], &["not a path inside"]),
        (&["--out", "/etc/*"], &["not a path inside"]),
        (&["--out", "a["], &["a[", "makes no sense"]),
        (&["--out", "x", "--out", "x"], &["`out` names `x` twice"]),
    ];
    for (flags, named) in cases {
        let words = [&["submit"], flags, &["--", "true"]].concat();
        desk.refused(&words, named);
    }
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 0);
    assert_eq!(blobs(&node.home()).len(), 0);
}

#[test]
fn interface_takes_no_names_and_no_content_that_is_not_what_it_says() {
    let node = Node::start(&[]);
    let (host, bearer) = (node.host(), node.bearer());
    let headers = [("host", &*host), ("authorization", &*bearer)];
    let digest = "ab".repeat(32);
    let put = |path: &str, body: &[u8]| node.ask(&format!("PUT {path}"), &headers, body).unwrap();
    for name in ["..%2F..%2Fidentity", "passwd", &digest[1..], &digest.to_uppercase()] {
        assert_eq!(put(&format!("/v1/files/{name}?size=4"), b"evil").status, 400, "{name}");
        assert_eq!(node.get(&format!("/v1/files/{name}")).status, 400, "{name}");
    }
    assert_eq!(put(&format!("/v1/files/{digest}?size=4"), b"evil").status, 422);
    assert_eq!(put(&format!("/v1/files/{digest}?size=4"), b"evil and more").status, 422);
    assert_eq!(put(&format!("/v1/files/{digest}?size=4&offset=2"), b"il").status, 409);
    assert_eq!(
        put(&format!("/v1/files/{digest}?size=5"), b"five!").status,
        409,
        "one of four bytes is coming"
    );
    let other = "cd".repeat(32);
    assert_eq!(put(&format!("/v1/files/{other}?size=999999999999999"), b"x").status, 413);
    assert_eq!(put(&format!("/v1/files/{digest}"), b"x").status, 400);
    assert_eq!(node.get(&format!("/v1/files/{digest}")).status, 404);
    assert_eq!(blobs(&node.home()).len(), 0);
    // A job whose files are not here, or not said, is refused by that field.
    let job = |input: &str| {
        node.post("/v1/jobs", "application/json", &format!("{{\"command\":[\"true\"],\"in\":[\"{input}\"]}}"))
    };
    for input in ["a", &format!("a => a => file 4 {digest}"), &format!("a => a => folder 4 {digest}")] {
        let refused = job(input);
        assert_eq!(refused.status, 422, "{}", refused.body);
        assert!(refused.body.contains("\"field\":\"in\""), "{}", refused.body);
    }
    // A list that leads out of the folder is no folder.
    let list = b"\xa1\x00\x81\x84\x6c../../../x/y\x00\x58\x20".to_vec();
    let list = [list, vec![0; 32], vec![0xf4]].concat();
    let hash = blake3::hash(&list).to_hex().to_string();
    assert_eq!(put(&format!("/v1/files/{hash}?size={}", list.len()), &list).status, 200);
    let refused = job(&format!("a => a => folder 0 {hash}"));
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("not a path inside"), "{}", refused.body);
}

#[test]
fn outputs_of_a_task_that_outlived_its_daemon_are_kept() {
    let mut node = Node::start(&[]);
    let job = {
        let desk = Desk::at(&node);
        desk.write("a", "input");
        let job = desk.submit(&["--in", "a", "--out", "b"], "sleep 1; cp a b");
        node.await_state(&job, "running");
        wait_until("it has its folder", || {
            let folder = node.home().join("tasks").join(format!("{job}-1-0"));
            folder.join("stdout").exists().then_some(())
        });
        job
    };
    node.kill();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    node.up();
    assert!(node.shoal(&["wait", "--timeout", "50s", &job]).status.success());
    let desk = Desk::at(&node);
    desk.says(&["get", &job]);
    assert_eq!(desk.read("b"), "input");
    let left = fs::read_dir(node.home().join("depot/errands")).unwrap().count();
    assert_eq!(left, 0, "nothing is left to be done");
    let folders = fs::read_dir(node.home().join("tasks")).unwrap().count();
    assert_eq!(folders, 1, "the folder with its files has become its own");
}

#[test]
fn outputs_of_a_job_on_its_own_node_are_on_another_too() {
    let first = Node::start(&["--cores", "4"]);
    let second = joined_with(&first, &["--cores", "1"]);
    let desk = Desk::at(&first);
    let job = desk.done(&["--cores", "4", "--out", "b"], "echo kept > b");
    let contents =
        |node: &Node| blobs(&node.home()).iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    for node in [&first, &second] {
        assert!(contents(node).contains(&b"kept\n".to_vec()));
    }
    assert!(Desk::at(&second).says(&["get", &job]).contains('b'));
}
