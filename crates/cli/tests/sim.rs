//! `shoal sim` as a user meets it: what it writes, and how it refuses.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const SMALL: &str = "\
nodes = 16
recipe = \"sample\"

[workload]
kind = \"uniform\"
jobs = 12
gap_secs = [0, 20]
width = [1, 4]
length_secs = [30, 90]
";

/// A folder to work in, with one scenario.
fn home(scenario: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("s.toml"), scenario).unwrap();
    home
}

fn shoal(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shoal")).current_dir(home).args(arguments).output().unwrap()
}

/// Runs a command that must be refused, and returns what it says.
fn refused(home: &Path, arguments: &[&str]) -> String {
    let before = names(home);
    let output = shoal(home, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty(), "nothing on stdout");
    assert_eq!(names(home), before, "nothing is left behind");
    let (error, hints) = said.split_once('\n').unwrap();
    assert!(hints.lines().all(|line| line.starts_with("hint: ")), "one line of error: {said}");
    error.to_owned()
}

/// All files and folders in a folder, with what is in them.
fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(self::names(&path));
        }
        names.push(path.display().to_string());
    }
    names.sort();
    names
}

fn run_to(home: &Path, out: &str, more: &[&str]) -> Output {
    let arguments = [&["sim", "run", "s.toml", "--out", out], more].concat();
    let output = shoal(home, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_run_writes_its_files_and_a_table() {
    let home = home(SMALL);
    let output = run_to(home.path(), "out", &[]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("12: 12 finished"), "{table}");
    let mut files: Vec<String> = names(&home.path().join("out"));
    files.iter_mut().for_each(|path| *path = path.rsplit('/').next().unwrap().to_owned());
    assert_eq!(files, ["jobs.csv", "scenario.toml", "summary.json"]);
    let csv = fs::read_to_string(home.path().join("out/jobs.csv")).unwrap();
    assert_eq!(csv.lines().count(), 13);
    assert!(csv.starts_with("job_id,workload_name,profile,submission_time,"), "{csv}");
}

#[test]
fn what_is_printed_as_json_is_what_is_written() {
    let home = home(SMALL);
    let output = run_to(home.path(), "out", &["--json"]);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let written = fs::read(home.path().join("out/summary.json")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(printed["summary"], written);
    assert_eq!(written["finished"], 12);
    assert_eq!(written["promises"]["made"], 12);
    assert!(written["facts_checked"].as_u64().unwrap() > 100, "{written}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for faults in ["none", "heavy"] {
        let home = home(SMALL);
        for (out, threads) in [("a", "1"), ("b", "1"), ("c", "2")] {
            run_to(home.path(), out, &["--threads", threads, "--faults", faults]);
        }
        for file in ["jobs.csv", "summary.json", "scenario.toml"] {
            let bytes = |out: &str| fs::read(home.path().join(out).join(file)).unwrap();
            assert!(bytes("a") == bytes("b"), "{file} differs from run to run with faults {faults}");
            assert!(bytes("a") == bytes("c"), "{file} differs from one thread to two with faults {faults}");
        }
        run_to(home.path(), "d", &["--seed", "2", "--faults", faults]);
        let jobs = |out: &str| fs::read(home.path().join(out).join("jobs.csv")).unwrap();
        assert!(jobs("a") != jobs("d"), "another seed is another run");
    }
}

#[test]
fn what_was_run_runs_again_to_the_same_bytes() {
    let home = home(SMALL);
    run_to(home.path(), "a", &["--seed", "5", "--nodes", "20"]);
    fs::copy(home.path().join("a/scenario.toml"), home.path().join("s.toml")).unwrap();
    run_to(home.path(), "b", &[]);
    let bytes = |out: &str| fs::read(home.path().join(out).join("summary.json")).unwrap();
    assert!(bytes("a") == bytes("b"));
}

#[test]
fn without_a_folder_each_run_gets_a_new_one() {
    let home = home(SMALL);
    for _ in 0..2 {
        assert!(shoal(home.path(), &["sim", "run", "s.toml"]).status.success());
    }
    assert!(home.path().join("out/s-001/jobs.csv").exists());
    assert!(home.path().join("out/s-002/jobs.csv").exists());
}

#[test]
fn a_folder_that_is_not_empty_is_replaced_only_by_force() {
    let home = home(SMALL);
    fs::create_dir(home.path().join("full")).unwrap();
    fs::write(home.path().join("full/mine"), "1").unwrap();
    let error = refused(home.path(), &["sim", "run", "s.toml", "--out", "full"]);
    assert_eq!(error, "error: full: is not empty");
    let said = shoal(home.path(), &["sim", "run", "s.toml", "--out", "full"]).stderr;
    assert!(String::from_utf8(said).unwrap().contains("--force"), "what to try");
    run_to(home.path(), "full", &["--force"]);
    assert!(!home.path().join("full/mine").exists() && home.path().join("full/jobs.csv").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_run() {
    let home = home(SMALL);
    fs::write(home.path().join("file"), "").unwrap();
    let error = refused(home.path(), &["sim", "run", "s.toml", "--out", "file"]);
    assert_eq!(error, "error: file: is a file, not a folder");
    let error = refused(home.path(), &["sim", "run", "s.toml", "--out", "file/below"]);
    assert!(error.starts_with("error: file/below: "), "{error}");
    // Not even root may make folders there.
    let error = refused(home.path(), &["sim", "run", "s.toml", "--out", "/proc/shoal/out"]);
    assert!(error.starts_with("error: /proc/shoal: cannot be written"), "{error}");
}

#[test]
fn scenarios_that_make_no_sense_are_refused_by_file_line_and_field() {
    let cases = [
        ("nodes = 16", "node = 16", "error: s.toml:1:1: node: unknown key; did you mean `nodes`?"),
        ("nodes = 16", "nodes = 0", "error: s.toml:1:1: nodes: must be at least 1: a grid has nodes"),
        (
            "nodes = 16",
            "nodes = 16\noverlay.cache = 16",
            "error: s.toml:2:9: overlay.cache: 16 neighbours in a grid of 16 nodes: must be at most 15",
        ),
        (
            "\"sample\"",
            "\"simple\"",
            "error: s.toml:2:10: recipe: unknown `simple`; did you mean `sample`? (known: sample, asap)",
        ),
        (
            "width = [1, 4]",
            "width = [1, 40]",
            "error: s.toml:8:1: workload.width: 40 nodes are more than the 16 of the grid",
        ),
        (
            "nodes = 16",
            "nodes = 16\nnetwork.loss = 2.0\nnetwork.latency = { model = \"constant\", ms = 9 }",
            "error: s.toml:",
        ),
    ];
    for (good, bad, expected) in cases {
        let home = home(&SMALL.replace(good, bad));
        let error = refused(home.path(), &["sim", "run", "s.toml"]);
        assert!(error.starts_with(expected), "{error}");
    }
    let home = home(SMALL);
    let error = refused(home.path(), &["sim", "run", "s.toml", "--nodes", "0"]);
    assert_eq!(error, "error: command line: nodes: must be at least 1: a grid has nodes");
    for (option, near) in [("--recipe", "asp"), ("--faults", "hevy")] {
        let error = refused(home.path(), &["sim", "run", "s.toml", option, near]);
        let field = option.trim_start_matches('-');
        assert!(
            error.starts_with(&format!("error: command line: {field}: unknown `{near}`; did you mean")),
            "{error}"
        );
    }
    let error = refused(home.path(), &["sim", "run", "other.toml"]);
    assert!(error.starts_with("error: other.toml: cannot be read"), "{error}");
}

#[test]
fn files_of_hosts_with_wrong_columns_are_refused_by_line() {
    let with =
        |model: &str| format!("{SMALL}\n[network]\nlatency = {{ model = \"{model}\", file = \"hosts\" }}\n");
    let home = home(&with("coordinates"));
    fs::write(home.path().join("hosts"), "1 2\n3 4 5\n").unwrap();
    let error = refused(home.path(), &["sim", "run", "s.toml"]);
    assert_eq!(error, "error: hosts: line 2: has 3 columns instead of 2");
    fs::write(home.path().join("s.toml"), with("matrix")).unwrap();
    fs::write(home.path().join("hosts"), "0 1\n1 0 3\n").unwrap();
    let error = refused(home.path(), &["sim", "run", "s.toml"]);
    assert_eq!(error, "error: hosts: line 2: has 3 columns instead of 2");
    fs::write(home.path().join("hosts"), "0 1\n1 x\n").unwrap();
    let error = refused(home.path(), &["sim", "run", "s.toml"]);
    assert_eq!(error, "error: hosts: line 2: column 2: `x` is not a number");
}

#[test]
fn traces_are_run_described_and_refused() {
    let home = home(SMALL);
    let job = |id: u32, at: u32| format!("{id} {at} -1 60 2 -1 -1 2 90 -1 1 1 1 -1 1 1 -1 -1\n");
    fs::write(home.path().join("t.swf"), job(1, 0) + &job(2, 30)).unwrap();
    run_to(home.path(), "out", &["--trace", "t.swf"]);
    let csv = fs::read_to_string(home.path().join("out/jobs.csv")).unwrap();
    assert!(csv.lines().nth(2).unwrap().starts_with("2,t.swf,sleep,30.000000,2,90"), "{csv}");

    let output = shoal(home.path(), &["sim", "trace", "t.swf", "--json"]);
    let described: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(described["jobs"], 2);
    let table = String::from_utf8(shoal(home.path(), &["sim", "trace", "t.swf"]).stdout).unwrap();
    assert!(table.contains("requested s"), "{table}");

    fs::write(home.path().join("t.swf"), job(1, 0) + "2 x\n").unwrap();
    let error = refused(home.path(), &["sim", "trace", "t.swf"]);
    assert!(error.starts_with("error: t.swf:2: "), "{error}");
    let error = refused(home.path(), &["sim", "run", "s.toml", "--trace", "t.swf"]);
    assert!(error.starts_with("error: t.swf:2: "), "{error}");
    fs::write(home.path().join("t.swf"), "; nothing\n").unwrap();
    let error = refused(home.path(), &["sim", "trace", "t.swf"]);
    assert!(error.starts_with("error: t.swf: holds no job"), "{error}");
}
