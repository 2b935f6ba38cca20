//! `shoal bench` as a user meets it.

use std::process::{Command, Output};

fn shoal(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shoal")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = shoal(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn cyclon_is_measured_beside_the_bare_loop() {
    let small = ["bench", "cyclon", "--nodes", "500", "--cycles", "3", "--json"];
    let both = json(&small);
    let speed = |of: &serde_json::Value| of["node_cycles_per_s"].as_f64().unwrap();
    assert!(speed(&both) > 0.0);
    let ratio = speed(&both) / speed(&both["bare"]);
    assert!((both["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9);
    if cfg!(target_os = "linux") {
        assert!(both["bytes_per_node"].as_f64().unwrap() > 0.0);
    }

    let bare = json(&[small.as_slice(), &["--bare", "--threads", "1"]].concat());
    assert!(speed(&bare) > 0.0 && bare.get("ratio").is_none());
}

#[test]
fn grids_too_small_for_a_cache_are_refused() {
    let output = shoal(&["bench", "cyclon", "--nodes", "20"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: --nodes 20: must be at least 21"), "{said}");
}

#[test]
fn help_and_version_are_there() {
    let help = String::from_utf8(shoal(&["help"]).stdout).unwrap();
    assert!(help.contains("sim") && help.contains("bench"), "{help}");
    let version = String::from_utf8(shoal(&["--version"]).stdout).unwrap();
    assert_eq!(version.trim(), format!("shoal {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(shoal(&["sim", "rnu"]).status.code(), Some(2));
}

#[test]
fn grid_is_measured_in_all_its_parts_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
    command.args(["bench", "grid", "--quick", "--json"]).env("TMPDIR", folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let arrays = all["arrays"].as_array().unwrap();
    let nodes: Vec<_> = arrays.iter().map(|speed| speed["nodes"].as_u64().unwrap()).collect();
    assert_eq!(nodes, [1, 4, 1]);
    assert_eq!(arrays[2]["keep"], "isolated");
    for speed in arrays {
        let figure = |name: &str| speed[name].as_f64().unwrap();
        assert_eq!(figure("jobs"), 60.0);
        assert!((figure("jobs_per_s") / figure("raw_per_s") / figure("ratio") - 1.0).abs() < 1e-9);
        assert_eq!(speed["rounds"].as_array().unwrap().len(), 1);
    }
    let sizes: Vec<_> =
        all["starts"].as_array().unwrap().iter().map(|start| start["nodes"].clone()).collect();
    assert_eq!(sizes, [1, 2, 4]);
    for spread in all["starts"].as_array().unwrap().iter().chain([&all["submit"], &all["queue"]["submit"]]) {
        let (middle, most) = (spread["p50_ms"].as_f64().unwrap(), spread["p99_ms"].as_f64().unwrap());
        assert!(0.0 < middle && middle <= most, "{spread}");
    }
    let idle = |name: &str| all["idle"][name].as_f64().unwrap();
    assert!(0.0 < idle("own_mb") && idle("own_mb") < idle("resident_mb"));
    assert!(idle("resident_mb") < idle("resident_all_mb"));
    assert_eq!(all["queue"]["jobs"], 200);
    assert!(all["queue"]["restart_s"].as_f64().unwrap() > 0.0);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn arrays_are_run_several_times_and_the_one_in_the_middle_is_shown() {
    let grid =
        ["bench", "grid", "--only", "array", "--jobs", "20", "--nodes", "2", "--rounds", "3", "--json"];
    let all = json(&grid);
    for speeds in all["arrays"].as_array().unwrap() {
        let rounds = speeds["rounds"].as_array().unwrap();
        let ratios: Vec<f64> = rounds.iter().map(|round| round["ratio"].as_f64().unwrap()).collect();
        assert!(ratios.len() == 3 && ratios.is_sorted(), "{ratios:?}");
        assert_eq!(speeds["ratio"], ratios[1]);
    }
}

#[test]
fn part_of_the_grid_can_be_measured_alone() {
    let only =
        json(&["bench", "grid", "--only", "idle", "--nodes", "2", "--idle", "1", "--settle", "0", "--json"]);
    assert_eq!((&only["idle"]["nodes"], &only["idle"]["settled_s"]), (&2.into(), &0.into()));
    assert!(only.get("idle").is_some() && only.get("arrays").is_none() && only.get("queue").is_none());
}

#[test]
fn files_are_measured_and_nothing_is_fetched_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
    command.args(["bench", "files", "--size", "64MiB", "--small", "200", "--jobs", "5", "--json"]);
    let output = command.env("TMPDIR", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for speed in ["submit_mb_per_s", "transfer_mb_per_s", "bare_mb_per_s", "copy_mb_per_s"] {
        assert!(all[speed].as_f64().unwrap() > 0.0, "{all}");
    }
    // A group, and what was under way.
    assert!(all["fetched_again"].as_u64().unwrap() <= 2 << 20, "{all}");
    assert_eq!(all["jobs_fetched"], all["input_bytes"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}
