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

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> Vec<String> {
    let below = |path: String| Path::new(&path).strip_prefix(folder).unwrap().display().to_string();
    names(folder).into_iter().filter(|path| Path::new(path).is_file()).map(below).collect()
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
    assert_eq!(
        files(&home.path().join("out")),
        [
            "jobs.csv",
            "plots/gantt.png",
            "plots/gantt.svg",
            "plots/messages.png",
            "plots/messages.svg",
            "plots/utilisation.png",
            "plots/utilisation.svg",
            "plots/wait-by-area.png",
            "plots/wait-by-area.svg",
            "plots/wait-by-duration.png",
            "plots/wait-by-duration.svg",
            "plots/wait-by-width.png",
            "plots/wait-by-width.svg",
            "plots/wait-over-time.png",
            "plots/wait-over-time.svg",
            "report.html",
            "scenario.toml",
            "summary.json",
        ]
    );
    let page = fs::read_to_string(home.path().join("out/report.html")).unwrap();
    assert!(page.contains("12: 12 finished") && page.matches("<svg").count() == 7, "{page}");
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
        for file in &files(&home.path().join("a")) {
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
    let home_of_one = home(SMALL);
    let error = refused(home_of_one.path(), &["sim", "run", "s.toml", "--out", "/proc/out"]);
    assert!(error.starts_with("error: /proc/out: cannot be written"), "{error}");
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
            "error: s.toml:2:10: recipe: unknown `simple`; did you mean `sample`? (known: sample, asap, aria, tri-pronged, proactive)",
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

/// Jobs with profiles, for some machines.
const PROFILED: &str = "\
nodes = 12
start = \"join\"
length = \"20000s\"

[overlay]
kind = \"blatant-s\"

[recipe]
name = \"aria\"
rounds = 2

[workload]
kind = \"aria\"
jobs = 5
first_secs = 600
gap_secs = 10
";

#[test]
fn jobs_for_which_no_machine_will_do_are_named_before_the_run() {
    let home = home(&format!(
        "{PROFILED}[[machines]]\narchitecture = \"sparc\"\ncapacity = {{ cores = 1, memory = \"1GiB\" }}\n"
    ));
    let said = refused(home.path(), &["sim", "run", "s.toml"]);
    assert!(said.contains("s.toml") && said.contains("workload"), "{said}");
    assert!(said.contains("no machine of the grid will do for job"), "{said}");
    assert!(said.contains("needs"), "{said}");
}

#[test]
fn nodes_that_never_meet_are_given_as_the_reason() {
    let scenario = PROFILED.replace("start = \"join\"", "start = \"join\"\nprofiles = \"aria\"");
    let home = home(&format!(
        "{scenario}[network]\nlatency = {{ model = \"constant\", delay_ms = 1.0 }}\nloss = 1.0\n"
    ));
    let output = run_to(home.path(), "out", &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    let reason = "no other node is known here, and this one will not do: is it connected to the grid?";
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(home.path().join("out/summary.json")).unwrap()).unwrap();
    let (alone, no_place) = (&summary["reasons"][reason], &summary["no_place"]);
    assert!(alone.as_u64() > Some(0) && alone == no_place, "{summary}");
    assert!(said.contains("not taken") && said.contains("no other node is known here"), "{said}");
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

#[test]
fn a_trace_is_drawn_on_the_terminal_and_on_a_page() {
    let home = home(SMALL);
    let job =
        |id: u32| format!("{id} {} -1 {} 2 -1 -1 2 90 -1 1 1 1 -1 1 1 -1 -1\n", id * 4_000, id % 95 + 5);
    fs::write(home.path().join("t.swf"), (0..200).map(job).collect::<String>()).unwrap();
    let describe = |more: &[&str]| {
        let output = shoal(home.path(), &[&["sim", "trace", "t.swf"], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };

    let plain = describe(&[]);
    assert!(plain.contains("jobs a day (highest 22)") && plain.contains('█'), "{plain}");
    let mut charts = plain.lines().skip_while(|line| !line.starts_with("jobs a day"));
    assert!(charts.all(|line| line.chars().count() <= 80), "as wide as a terminal of old: {plain}");
    assert!(!plain.contains('\u{1b}'), "no colour where nobody looks");

    let json = describe(&["--json", "--out", "a"]);
    let written = fs::read_to_string(home.path().join("a/description.json")).unwrap();
    assert_eq!(json.trim(), written.trim());
    let described: serde_json::Value = serde_json::from_str(&json).unwrap();
    let sum = |counts: &serde_json::Value| -> u64 {
        counts
            .as_array()
            .unwrap()
            .iter()
            .map(|count| count.as_u64().or(count["jobs"].as_u64()).unwrap())
            .sum()
    };
    let shape = described["shape"].as_object().unwrap();
    for (kind, counts) in shape.iter().filter(|(_, counts)| counts.is_array()) {
        assert_eq!(sum(counts), 200, "{kind}");
    }

    let page = fs::read_to_string(home.path().join("a/report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 7);
    describe(&["--out", "b"]);
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    assert_eq!(files(&a).len(), 16);
    for file in files(&a) {
        assert!(fs::read(a.join(&file)).unwrap() == fs::read(b.join(&file)).unwrap(), "{file} differs");
    }
    let error = refused(home.path(), &["sim", "trace", "t.swf", "--out", "a"]);
    assert_eq!(error, "error: a: is not empty");
    describe(&["--out", "a", "--force"]);
}

#[test]
fn jobs_that_a_scenario_draws_are_written_as_a_trace_and_run_the_same() {
    let home = home(SMALL);
    let write =
        |more: &[&str]| shoal(home.path(), &[&["sim", "trace", "s.toml", "--seed", "5"], more].concat());
    for (file, out) in [("t.swf.xz", "swf"), ("t.gwf.gz", "gwf")] {
        let output = write(&["--write", file]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        run_to(home.path(), out, &["--seed", "5", "--trace", file, "--length", "run"]);
    }
    run_to(home.path(), "drawn", &["--seed", "5"]);
    let jobs = |folder: &str| -> Vec<String> {
        let csv = fs::read_to_string(home.path().join(folder).join("jobs.csv")).unwrap();
        // The second column is the name of the workload.
        let cut =
            |line: &str| line.splitn(3, ',').enumerate().filter(|(i, _)| *i != 1).map(|(_, f)| f).collect();
        csv.lines().map(cut).collect()
    };
    assert_eq!(jobs("drawn").len(), 13);
    assert_eq!(jobs("swf"), jobs("drawn"));
    assert_eq!(jobs("gwf"), jobs("drawn"));

    let refuse = |more: &[&str]| refused(home.path(), &[&["sim", "trace", "s.toml"], more].concat());
    assert_eq!(refuse(&["--write", "t.swf.xz"]), "error: t.swf.xz: is there already");
    assert!(refuse(&["--write", "t.txt"]).starts_with("error: t.txt: ends neither in .swf nor in .gwf"));
    assert!(refuse(&["--length", "run"]).starts_with("error: --length: s.toml is a scenario"));
    assert!(refuse(&["--force"]).starts_with("error: --force: there is nothing to replace"));
    let error = refused(home.path(), &["sim", "trace", "t.swf.xz", "--seed", "1"]);
    assert!(error.starts_with("error: --seed: t.swf.xz is a trace"), "{error}");
    assert!(write(&["--write", "t.swf.xz", "--force"]).status.success());
}

#[test]
fn a_run_that_is_ended_by_a_signal_leaves_nothing_behind() {
    let home = home(&SMALL.replace("jobs = 12", "jobs = 2000000"));
    let before = names(home.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
    let mut run = command.current_dir(home.path()).args(["sim", "run", "s.toml"]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(run.try_wait().unwrap().is_none(), "still at work");
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(names(home.path()), before);
}

#[test]
fn schedulers_are_compared_on_the_same_jobs() {
    let home = home(SMALL);
    let asked = ["sim", "compare", "s.toml", "--with", "sample,easy,flood", "--seeds", "2", "--json"];
    let output = shoal(home.path(), &asked);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let variants = printed["summary"]["variants"].as_array().unwrap();
    let names: Vec<&str> = variants.iter().map(|one| one["set"]["scheduler"].as_str().unwrap()).collect();
    assert_eq!(names, ["sample", "easy", "flood"]);
    for variant in variants {
        assert_eq!(variant["figures"]["jobs"]["mean"], 12.0);
        assert_eq!(variant["figures"]["not_finished"]["mean"], 0.0);
    }
    let csv = fs::read_to_string(home.path().join("out/s-001/results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 3 * 2, "{csv}");
    assert!(home.path().join("out/s-001/report.html").is_file());
}

#[test]
fn settings_are_swept_in_every_combination() {
    let home = home(SMALL);
    let asked =
        ["sim", "sweep", "s.toml", "--set", "nodes=8,16", "--set", "recipe.wait_ms=900,1100", "--out", "o"];
    let output = shoal(home.path(), &asked);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("recipe.wait_ms") && table.contains("1100"), "{table}");
    let csv = fs::read_to_string(home.path().join("o/results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 4, "{csv}");
}

#[test]
fn settings_go_with_what_the_command_line_names() {
    let home = home(SMALL);
    let asked = [
        "sim",
        "sweep",
        "s.toml",
        "--recipe",
        "asap",
        "--set",
        "recipe.fwd=2,4",
        "--faults",
        "none",
        "--out",
        "o",
    ];
    let output = shoal(home.path(), &asked);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let csv = fs::read_to_string(home.path().join("o/results.csv")).unwrap();
    assert!(csv.starts_with("recipe.fwd,seed,") && csv.lines().count() == 3, "{csv}");
}

#[test]
fn studies_that_make_no_sense_are_refused() {
    let home = home(SMALL);
    let refused = |arguments: &[&str]| refused(home.path(), arguments);
    let said = refused(&["sim", "compare", "s.toml", "--with", "slurm"]);
    assert!(said.contains("`slurm`") && said.contains("easy"), "{said}");
    let said = refused(&["sim", "sweep", "s.toml", "--set", "nodes"]);
    assert!(said.contains("--set") && said.contains("overlay.cache=10,20,30"), "{said}");
    let said = refused(&["sim", "sweep", "s.toml", "--set", "overlay.cach=1,2"]);
    assert!(said.contains("command line") && said.contains("cache"), "{said}");
    let said = refused(&["sim", "sweep", "s.toml", "--set", "nodes=2,16"]);
    assert!(said.contains("workload.width: 4 nodes are more than the 2 of the grid"), "{said}");
}

#[test]
fn names_that_nobody_knows_are_refused_with_those_that_are_known() {
    let home = home(SMALL);
    for (arguments, known) in [
        (
            &["sim", "run", "s.toml", "--recipe", "best"][..],
            "known: sample, asap, aria, tri-pronged, proactive",
        ),
        (
            &["sim", "compare", "s.toml", "--with", "slurm"],
            "fcfs, easy, conservative, central-asap, cent, flood",
        ),
        (&["sim", "reproduce", "slurm"], "known are asap, aria, tri-pronged, proactive, and all"),
        (&["sim", "reproduce", "asap", "--only", "fig99"], "fig4a"),
    ] {
        let error = refused(home.path(), arguments);
        assert!(error.contains(known), "{error}");
    }
}

/// A line of a trace: job, submit time, run time, nodes.
fn line(id: u32, submit: &str, run: &str, width: u32) -> String {
    format!("{id} {submit} -1 {run} {width} -1 -1 {width} 90 -1 1 1 1 -1 1 1 -1 -1\n")
}

#[test]
fn traces_with_faults_are_refused_by_file_line_and_field() {
    let home = home(SMALL);
    let with = |second: String| line(1, "50", "60", 2) + &second;
    let cases = [
        (String::new(), "error: t.swf: holds no job: 0 lines"),
        (with(line(2, "60", "-60", 2)), "error: t.swf:2: field 4 (run time): `-60` is out of range"),
        (with(line(2, "40", "60", 2)), "error: t.swf:2: field 2 (submit time): 40 is before 50 of line 1"),
        (with(line(2, "x", "60", 2)), "error: t.swf:2: field 2 (submit time): `x` is not a number"),
        (with("2 60 -1\n".to_owned()), "error: t.swf:2: too few columns: field 4 (run time) is missing"),
        (
            with(line(2, "60", "60", 17)),
            "error: t.swf:2: field 8 (processors requested): job 2 wants 17 nodes, the grid has 16",
        ),
    ];
    for (text, expected) in cases {
        fs::write(home.path().join("t.swf"), text).unwrap();
        let error = refused(home.path(), &["sim", "run", "s.toml", "--trace", "t.swf"]);
        assert!(error.starts_with(expected), "{error}");
        let error = refused(home.path(), &["sim", "compare", "s.toml", "--with", "easy", "--trace", "t.swf"]);
        assert!(error.starts_with(expected), "{error}");
    }
    // Who knows that there are such jobs may go on without them.
    fs::write(home.path().join("t.swf"), with(line(2, "60", "60", 17))).unwrap();
    fs::write(
        home.path().join("s.toml"),
        "nodes = 16\n[workload]\nkind = \"trace\"\nfile = \"t.swf\"\ntoo_wide = \"drop\"\n",
    )
    .unwrap();
    let output = run_to(home.path(), "out", &[]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("1: 1 finished"));
}

#[test]
fn lines_that_cannot_be_read_are_passed_over_where_asked_for_and_told() {
    let home = home(SMALL);
    let text = line(1, "50", "60", 2) + &line(2, "60", "x", 2) + &line(3, "70", "60", 2);
    fs::write(home.path().join("t.swf"), text).unwrap();
    let said = "t.swf:2: field 4 (run time): `x` is not a number";
    for command in [&["sim", "trace", "t.swf"][..], &["sim", "run", "s.toml", "--trace", "t.swf"]] {
        assert!(refused(home.path(), command).contains(said), "{command:?}");
        let output = shoal(home.path(), &[command, &["--drop-bad-lines"]].concat());
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && told.contains("1 unparsable"), "{told}");
        assert!(
            told.split_whitespace().collect::<Vec<_>>().join(" ").contains("field 4 (run time)"),
            "{told}"
        );
    }
    assert_eq!(shoal(home.path(), &["sim", "run", "s.toml", "--drop-bad-lines"]).status.code(), Some(2));
}

#[test]
fn jobs_of_a_trace_take_what_they_took_or_what_they_asked_for() {
    let home = home(SMALL);
    // Asks for 90 s and takes 60.
    fs::write(home.path().join("t.swf"), line(1, "0", "60", 2)).unwrap();
    let makespan = |length: &[&str]| {
        let run = ["sim", "run", "s.toml", "--trace", "t.swf", "--json", "--out", "out", "--force"];
        let words = [&run[..], length].concat();
        let output = shoal(home.path(), &words);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        told["summary"]["makespan_s"].as_f64().unwrap().round()
    };
    let (run, requested) = (makespan(&["--length", "run"]), makespan(&["--length", "requested"]));
    assert!((60.0..80.0).contains(&run) && requested >= 90.0, "{run} {requested}");
    assert_eq!(makespan(&[]), requested);
}

#[test]
fn packed_traces_that_end_too_early_are_refused_with_the_last_line() {
    use std::io::Write;
    let home = home(SMALL);
    let text: String = (0..3_000).map(|id| line(id, &(id * 7).to_string(), "60", 1 + id * 7 % 13)).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(text.as_bytes()).unwrap();
    for (name, bytes) in [("gzip", gzip.finish().unwrap()), ("xz", xz.finish().unwrap())] {
        fs::write(home.path().join("t.swf"), &bytes[..bytes.len() / 2]).unwrap();
        for arguments in [&["sim", "trace", "t.swf"][..], &["sim", "run", "s.toml", "--trace", "t.swf"]] {
            let error = refused(home.path(), arguments);
            let begins = format!("error: t.swf: the {name} data ends too early, after line ");
            assert!(error.starts_with(&begins), "{error}");
        }
        fs::write(home.path().join("t.swf"), &bytes).unwrap();
        assert!(shoal(home.path(), &["sim", "trace", "t.swf"]).status.success());
    }
}

#[test]
fn window_without_jobs_is_refused() {
    let home = home(
        &SMALL.replace("[workload]", "[workload]\nchange.window = { start_days = 400, length_days = 1 }"),
    );
    let error = refused(home.path(), &["sim", "run", "s.toml"]);
    assert!(error.contains("no job is left of 12 after") && error.contains("window"), "{error}");
}

#[test]
fn trace_in_place_of_drawn_jobs_is_changed_as_they_were() {
    let home = home(&SMALL.replace("[workload]", "[workload]\nchange.utilisation = 0.5"));
    let text: String = (0..20).map(|id| line(id, &(id * 3_600).to_string(), "60", 4)).collect();
    fs::write(home.path().join("t.swf"), text).unwrap();
    run_to(home.path(), "out", &["--trace", "t.swf"]);
    let scenario = fs::read_to_string(home.path().join("out/scenario.toml")).unwrap();
    assert!(scenario.contains("utilisation = 0.5"), "{scenario}");
    let csv = fs::read_to_string(home.path().join("out/jobs.csv")).unwrap();
    let last: f64 = csv.lines().last().unwrap().split(',').nth(3).unwrap().parse().unwrap();
    // 20 jobs of 4 nodes for 90 s are half of 16 nodes for 15 minutes, and not for 19 hours.
    assert!((800.0..1_000.0).contains(&last), "{last}");
}

#[test]
fn planted_faults_are_found_told_with_a_command_that_shows_them_again_and_nothing_is_written() {
    let home = home(SMALL);
    for (fault, promise) in
        [("double-booking", "overbooked: "), ("half-started", "gang: "), ("swallowed-end", "accounted: ")]
    {
        let run = |words: &[&str]| {
            let output = shoal(home.path(), words);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{fault}: {said}");
            assert!(output.stdout.is_empty() && !home.path().join("out").exists(), "{fault}: {said}");
            said
        };
        let said = run(&["sim", "run", "s.toml", "--seed", "3", "--planted", fault]);
        assert!(said.contains("a promise did not hold") && said.contains(promise), "{fault}: {said}");
        let again = format!("shoal sim run s.toml --planted {fault} --seed 3");
        assert!(said.contains(&again), "{fault}: {said}");
        let words: Vec<&str> = again.split(' ').skip(1).collect();
        assert_eq!(run(&words), said, "{fault}: it shows the same");
    }
    let error = shoal(home.path(), &["sim", "run", "s.toml", "--planted", "sloth"]);
    assert_eq!(error.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&error.stderr).contains("half-started"));
}
