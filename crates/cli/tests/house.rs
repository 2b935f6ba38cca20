//! The rules of the house that a machine can check: who may lean on whom, and how a module opens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which crate may lean on which, besides those from outside.
const ARROWS: [(&str, &[&str]); 6] = [
    ("model", &[]),
    ("protocols", &["model"]),
    ("simulator", &["model", "protocols"]),
    ("api", &["model"]),
    ("daemon", &["model", "protocols", "api"]),
    ("cli", &["model", "protocols", "simulator", "api", "daemon"]),
];

/// What the pure crates may take from outside: nothing that knows a clock, a thread pool or IO.
const PURE: [(&str, &[&str]); 2] = [
    ("model", &["blake3", "cel", "minicbor", "serde", "strsim", "thiserror"]),
    ("protocols", &["minicbor", "rand", "rand_xoshiro", "serde", "thiserror"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a crate needs by a table of its manifest, on any system.
fn dependencies(name: &str, table: &str) -> BTreeSet<String> {
    let path = root().join("crates").join(name).join("Cargo.toml");
    needed(&std::fs::read_to_string(&path).unwrap().parse().unwrap(), table)
}

fn needed(manifest: &toml::Table, table: &str) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(|targets| targets.values()).filter_map(toml::Value::as_table);
    std::iter::once(manifest)
        .chain(targets)
        .filter_map(|of| of.get(table)?.as_table())
        .flat_map(|table| table.iter())
        // One that was given another name is known by its own.
        .map(|(key, value)| value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned())
        .collect()
}

/// What is built into a crate, or builds it.
fn built_with(name: &str) -> BTreeSet<String> {
    ["dependencies", "build-dependencies"].into_iter().flat_map(|table| dependencies(name, table)).collect()
}

#[test]
fn what_a_crate_needs_is_seen_wherever_it_is_written() {
    let manifest = "[dependencies]\na = '1'\nb = { package = 'shoal-c', path = '.' }\n\
                    [target.'cfg(unix)'.dependencies]\nd = '1'\n[dev-dependencies]\ne = '1'\n";
    let found = needed(&manifest.parse().unwrap(), "dependencies");
    assert_eq!(found, ["a", "d", "shoal-c"].map(str::to_owned).into());
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn crates_lean_only_on_those_beneath_them() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let allowed =
            allowed.get(name.as_str()).unwrap_or_else(|| panic!("no arrows are drawn for crate {name}"));
        for dependency in built_with(&name) {
            if let Some(other) = dependency.strip_prefix("shoal-") {
                assert!(allowed.contains(&other), "{name} must not lean on {other}");
            }
        }
        seen += 1;
    }
    assert_eq!(seen, ARROWS.len());
}

#[test]
fn simulator_and_daemon_meet_only_in_tests() {
    assert!(!built_with("simulator").contains("shoal-daemon"));
    assert!(!dependencies("simulator", "dev-dependencies").contains("shoal-daemon"));
    assert!(!built_with("daemon").contains("shoal-simulator"));
}

#[test]
fn pure_crates_take_nothing_from_outside_that_acts() {
    for (name, allowed) in PURE {
        for dependency in built_with(name) {
            let own = dependency.starts_with("shoal-");
            assert!(own || allowed.contains(&dependency.as_str()), "{name} must not need {dependency}");
        }
    }
}

#[test]
fn modules_open_with_their_purpose() {
    let mut found = Vec::new();
    for (name, _) in ARROWS {
        sources(&root().join("crates").join(name).join("src"), &mut found);
    }
    assert!(found.len() > 50, "the sources are found");
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//! "), "{} does not open with a //! line", path.display());
    }
}

#[test]
fn lints_of_the_pure_core_ban_clocks_io_and_unordered_maps() {
    let bans = std::fs::read_to_string(root().join("crates/protocols/clippy.toml")).unwrap();
    for banned in ["HashMap", "HashSet", "Instant::now", "SystemTime::now", "thread::spawn", "fs::File"] {
        assert!(bans.contains(banned), "{banned} is not banned");
    }
}
