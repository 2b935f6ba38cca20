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

fn dependencies(name: &str, table: &str) -> BTreeSet<String> {
    let path = root().join("crates").join(name).join("Cargo.toml");
    let manifest: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
    manifest
        .get(table)
        .and_then(|table| table.as_table())
        .into_iter()
        .flat_map(|table| table.keys().cloned())
        .collect()
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
        for dependency in dependencies(&name, "dependencies") {
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
    assert!(!dependencies("simulator", "dependencies").contains("shoal-daemon"));
    assert!(!dependencies("simulator", "dev-dependencies").contains("shoal-daemon"));
    assert!(!dependencies("daemon", "dependencies").contains("shoal-simulator"));
}

#[test]
fn pure_crates_take_nothing_from_outside_that_acts() {
    for (name, allowed) in PURE {
        for dependency in dependencies(name, "dependencies") {
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
