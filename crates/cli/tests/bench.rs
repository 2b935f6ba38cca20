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

    let bare = json(&[small.as_slice(), &["--bare"]].concat());
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
