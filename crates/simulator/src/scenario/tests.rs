//! Scenarios that are read, and those that are refused in words that help.

use std::fs;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, RngSeed};
use shoal_protocols::node::Node;
use tempfile::TempDir;

use super::*;
use crate::faults::Preset;
use crate::measures::Record;
use crate::network::latency;
use crate::run::Run;
use crate::workload::BadLines;

const SMALL: &str = "\
nodes = 16

[workload]
kind = \"uniform\"
jobs = 5
gap_secs = [0, 20]
width = [1, 4]
length_secs = [30, 300]
";

/// A folder with these scenarios in it.
fn folder(scenarios: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in scenarios {
        fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    }
    folder
}

fn load(folder: &TempDir, name: &str, overrides: &Overrides) -> Result<Scenario, String> {
    let file = folder.path().join(format!("{name}.toml"));
    let home = format!("{}/", folder.path().display());
    Scenario::load(&file, overrides).map_err(|error| error.to_string().replace(&home, ""))
}

fn read(text: &str) -> Result<Scenario, String> {
    load(&folder(&[("s", text)]), "s", &Overrides::default())
}

/// What is said of the small scenario with one line more at its top.
fn refused(line: &str) -> String {
    read(&format!("{line}\n{SMALL}")).expect_err(line)
}

#[test]
fn little_needs_to_be_said() {
    let scenario = read(SMALL).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.nodes, scenario.seed), ("s", 16, 1));
    let overlay = scenario.overlay.as_cyclon().expect("CYCLON is the usual one");
    assert_eq!((overlay.cache, overlay.shuffle), (15, 8), "as large as the grid allows");
    assert_eq!(scenario.recipe.name(), "sample");
    assert_eq!(scenario.machines.len(), 1);
    assert!(matches!(scenario.network.latency, latency::Config::Uniform(_)));
    assert_eq!(scenario.workload.load(1).unwrap().nodes, 16, "jobs are for the scenario's grid");
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    let cases = [
        ("node = 3", "s.toml:1:1: node: unknown key; did you mean `nodes`?"),
        ("overlay = { cach = 3 }", "s.toml:1:13: overlay.cach: unknown key; did you mean `cache`?"),
        ("faults = { churns = 1 }", "s.toml:1:12: faults.churns: unknown key; did you mean `churn`?"),
        (
            "recipe = { name = \"sample\", wait = 1 }",
            "s.toml:1:29: recipe.wait: unknown key; did you mean `wait_ms`?",
        ),
        ("machines = [{ sped = 2 }]", "s.toml:1:15: machines.0.sped: unknown key; did you mean `speed`?"),
    ];
    for (line, expected) in cases {
        assert_eq!(refused(line), expected);
    }
    let far = refused("xyzzy = 1");
    assert!(far.starts_with("s.toml:1:1: xyzzy: unknown key; known: about, seed, nodes"), "{far}");
}

#[test]
fn unknown_keys_are_found_in_tables_that_name_their_kind() {
    let error = read(&SMALL.replace("gap_secs", "gap_sec")).unwrap_err();
    assert_eq!(error, "s.toml:6:1: workload.gap_sec: unknown key; did you mean `gap_secs`?");
    let error = read(&format!("{SMALL}[workload.change.filter]\nwidht_max = 3\n")).unwrap_err();
    assert_eq!(
        error,
        "s.toml:10:1: workload.change.filter.widht_max: unknown key; did you mean `width_max`?"
    );
    let error = refused("network = { latency = { model = \"uniform\", min_ms = 1, mx_ms = 2 } }");
    assert_eq!(error, "s.toml:1:56: network.latency.mx_ms: unknown key; did you mean `max_ms`?");
}

#[test]
fn values_of_the_wrong_type_are_refused_by_field() {
    let error = read(&SMALL.replace("jobs = 5", "jobs = \"many\"")).unwrap_err();
    assert_eq!(error, "s.toml:5:1: workload.jobs: invalid type: string \"many\", expected usize");
    let error = read(&SMALL.replace("nodes = 16", "nodes = -1")).unwrap_err();
    assert!(error.starts_with("s.toml:1:1: nodes: invalid value: integer `-1`"), "{error}");
    let error = refused("length = 3600");
    assert!(error.starts_with("s.toml:1:1: length: invalid type") && error.contains("1h30m"), "{error}");
}

#[test]
fn unknown_recipes_kinds_and_presets_list_the_known_ones() {
    let recipe = "s.toml:1:10: recipe: unknown `sampel`; did you mean `sample`? (known: sample, asap, aria, tri-pronged, proactive)";
    assert_eq!(refused("recipe = \"sampel\""), recipe);
    let error = read(&SMALL.replace("\"uniform\"", "\"unifrom\"")).unwrap_err();
    let kinds =
        "did you mean `uniform`? (known: trace, uniform, poisson, lublin, grid5000-like, aria, desktop)";
    assert_eq!(error, format!("s.toml:4:1: workload.kind: unknown `unifrom`; {kinds}"));
    let error = refused("faults = \"hevy\"");
    assert_eq!(
        error,
        "s.toml:1:1: faults: unknown `hevy`; did you mean `heavy`? (known: none, light, heavy)"
    );
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(read("nodes = 3\n").unwrap_err(), "s.toml:1:1: workload: is missing");
    let error = read(&SMALL.replace("jobs = 5\n", "")).unwrap_err();
    assert_eq!(error, "s.toml:3:2: workload.jobs: is missing");
}

#[test]
fn grids_that_cannot_be_are_refused() {
    let error = read(&SMALL.replace("16", "0")).unwrap_err();
    assert_eq!(error, "s.toml:1:1: nodes: must be at least 1: a grid has nodes");
    let error = refused("overlay.cache = 16");
    assert_eq!(error, "s.toml:1:9: overlay.cache: 16 neighbours in a grid of 16 nodes: must be at most 15");
    let error = refused("recipe = \"aria\"\noverlay = { kind = \"can\", residue = \"dual\" }");
    assert!(error.contains("overlay.residue: must not be \"dual\": only the recipe tri-pronged"), "{error}");
    let error = refused(
        "recipe = \"tri-pronged\"\noverlay = { kind = \"can\", residue = \"dual\", space = { torus = 2 } }",
    );
    assert!(
        error.contains("overlay.residue: \"dual\": must be \"balloon\" or \"off\" on a torus"),
        "{error}"
    );
    let error = refused("overlay = { cache = 4, shuffle = 5 }");
    assert_eq!(error, "s.toml:1:24: overlay.shuffle: 5: must be 1 to the size of the cache (4)");
    let error = refused("heartbeat = { misses = 0 }");
    assert!(error.starts_with("s.toml:1:15: heartbeat.misses: 0: must be"), "{error}");
    assert_eq!(refused("commit.tries = 0"), "s.toml:1:8: commit.tries: must be at least 1");
    let error = refused("machines = [{ share = 0 }]");
    assert_eq!(error, "s.toml:1:15: machines.0.share: must be 1 to 1000, not 0");
    let error = refused("machines = [{ capacity = { memory = \"1GiB\" } }]");
    assert!(error.starts_with("s.toml:1:15: machines.0.capacity: has no core"), "{error}");
    let error = refused("machines = [{ speed = 0 }]");
    assert!(error.starts_with("s.toml:1:15: machines.0.speed: a speed of 0: expected"), "{error}");
}

#[test]
fn machines_have_the_speed_they_are_given_and_that_of_the_baseline_if_none() {
    let scenario =
        read(&format!("machines = [{{ speed = 1.5 }}, {{ share = 2 }}, {{ speed = 2 }}]\n{SMALL}"));
    let speeds: Vec<u32> =
        scenario.unwrap().machines.iter().map(|machine| machine.speed.thousandths()).collect();
    assert_eq!(speeds, [1_500, 1_000, 1_000, 2_000]);
}

/// How long the jobs of these took, in order, on machines of this speed.
fn took(workload: &str, speed: &str) -> Vec<Span> {
    let scenario = read(&format!(
        "nodes = 8\nrecipe = \"aria\"\nmachines = [{{ speed = {speed} }}]\n[workload]\n{workload}\n"
    ));
    let outcome = Run::<Node>::prepare(&scenario.unwrap(), 1).unwrap().finish(&mut ()).unwrap();
    let times = |job: &Record| job.start.zip(job.finish).unwrap_or_else(|| panic!("{job:?}"));
    outcome.jobs.iter().map(times).map(|(start, finish)| finish.since(start)).collect()
}

#[test]
fn work_takes_half_as_long_on_a_machine_of_twice_the_speed_and_commands_take_as_long_as_they_say() {
    let work = "kind = \"desktop\"\njobs = 6\ngap_secs = 60\nratio = 0";
    let (usual, fast) = (took(work, "1"), took(work, "2"));
    assert_eq!(usual.len(), 6);
    for (usual, fast) in usual.into_iter().zip(fast) {
        assert!(usual > Span::from_mins(29), "{usual}");
        assert!((fast * 2).saturating_sub(usual) <= Span::from_micros(1), "{usual}, {fast}");
        assert!(usual <= fast * 2, "{usual}, {fast}");
    }
    let commands = "kind = \"uniform\"\njobs = 6\ngap_secs = [0, 20]\nwidth = [1, 1]\nlength_secs = [30, 60]";
    assert_eq!(took(commands, "1"), took(commands, "2"));
}

#[test]
fn what_is_no_toml_is_refused_where_it_stops_being_so() {
    let error = read("nodes = 3\nseed == 4\n").unwrap_err();
    assert!(error.starts_with("s.toml:2:") && !error.contains('\n'), "{error}");
    assert!(
        load(&folder(&[]), "s", &Overrides::default()).unwrap_err().starts_with("s.toml: cannot be read")
    );
}

#[test]
fn a_scenario_builds_on_others_in_its_folder() {
    let folder = folder(&[
        ("base", SMALL),
        ("middle", "like = \"base\"\nseed = 7\noverlay = { cache = 5, shuffle = 3 }\n"),
        ("top", "like = \"middle\"\nnodes = 8\noverlay = { shuffle = 2 }\nworkload.jobs = 9\n"),
    ]);
    let scenario = load(&folder, "top", &Overrides::default()).unwrap();
    assert_eq!((scenario.nodes, scenario.seed), (8, 7));
    let overlay = scenario.overlay.as_cyclon().expect("CYCLON is the usual one");
    assert_eq!((overlay.cache, overlay.shuffle), (5, 2));
    let workload = scenario.workload.load(1).unwrap();
    assert_eq!((workload.jobs.len(), workload.nodes), (9, 8));
}

#[test]
fn an_error_names_the_file_in_which_the_mistake_is() {
    let folder = folder(&[
        ("base", &SMALL.replace("width = [1, 4]", "wdth = [1, 4]")),
        ("top", "like = \"base\"\nnodes = 8\n"),
        ("wrong", "like = \"base\"\nworkload.width = [1, 4]\noverlay.cache = 99\nnodes = 50\n"),
    ]);
    let error = load(&folder, "top", &Overrides::default()).unwrap_err();
    assert_eq!(error, "base.toml:7:1: workload.wdth: unknown key; did you mean `width`?");
    fs::write(folder.path().join("base.toml"), SMALL).unwrap();
    let error = load(&folder, "wrong", &Overrides::default()).unwrap_err();
    assert!(error.starts_with("wrong.toml:3:9: overlay.cache: 99 neighbours"), "{error}");
}

#[test]
fn another_kind_takes_the_place_of_the_one_before() {
    let poisson = "like = \"base\"\n[workload]\nkind = \"poisson\"\njobs = 3\nmean_gap_secs = 9\n\
                   width = [1, 2]\nlength_secs = [1, 2]\n";
    let folder = folder(&[("base", SMALL), ("top", poisson)]);
    let scenario = load(&folder, "top", &Overrides::default()).unwrap();
    assert!(matches!(scenario.workload, Source::Poisson(_)), "and no gap_secs is left over");
}

#[test]
fn another_kind_takes_the_place_of_all_that_was_said_of_the_one_before() {
    let folder = folder(&[
        ("base", &format!("{SMALL}\n[overlay]\nkind = \"blatant-s\"\nbound = 5\n")),
        ("middle", "like = \"base\"\noverlay.ant_ms = 900000\n"),
        ("top", "like = \"middle\"\noverlay = { kind = \"cyclon\", cache = 6 }\n"),
    ]);
    let scenario = load(&folder, "top", &Overrides::default()).unwrap();
    assert_eq!(scenario.overlay.as_cyclon().map(|cyclon| cyclon.cache), Some(6));
}

#[test]
fn scenarios_that_are_like_each_other_are_refused() {
    let folder = folder(&[
        ("a", "like = \"b\"\n"),
        ("b", "\nlike = \"a\"\n"),
        ("me", "like = \"me\"\n"),
        ("none", "like = \"other\"\n"),
        ("far", "like = \"../a\"\n"),
    ]);
    let error = |name| load(&folder, name, &Overrides::default()).unwrap_err();
    assert_eq!(error("a"), "b.toml:2:8: like: goes round in a circle: a is like b is like a");
    assert_eq!(error("me"), "me.toml:1:8: like: goes round in a circle: me is like me");
    assert!(error("none").starts_with("none.toml:1:8: like: other.toml cannot be read"), "{}", error("none"));
    assert!(error("far").contains("is not the name of a scenario in the same folder"));
}

#[test]
fn the_command_line_has_the_last_word() {
    let folder =
        folder(&[("s", &format!("seed = 3\nrecipe = {{ name = \"sample\", wait_ms = 7 }}\n{SMALL}"))]);
    let overrides = Overrides {
        nodes: Some(40),
        seed: Some(9),
        faults: Some("light".to_owned()),
        recipe: Some("sample".to_owned()),
        trace: None,
        ..Overrides::default()
    };
    let scenario = load(&folder, "s", &overrides).unwrap();
    assert_eq!((scenario.nodes, scenario.seed), (40, 9));
    assert_eq!(scenario.faults.preset, Preset::Light);
    let Recipe::Sample(sample) = scenario.recipe else { panic!("another recipe: {:?}", scenario.recipe) };
    assert_eq!(sample.wait_ms, 7, "the same recipe keeps its settings");
    assert_eq!(scenario.workload.load(1).unwrap().nodes, 40);

    let wrong = |overrides| load(&folder, "s", &overrides).unwrap_err();
    let error = wrong(Overrides { nodes: Some(0), ..Overrides::default() });
    assert_eq!(error, "command line: nodes: must be at least 1: a grid has nodes");
    let error = wrong(Overrides { recipe: Some("best".to_owned()), ..Overrides::default() });
    assert_eq!(
        error,
        "command line: recipe: unknown `best`; known: sample, asap, aria, tri-pronged, proactive"
    );
}

#[test]
fn files_are_looked_for_beside_the_scenario_that_names_them() {
    let trace = "like = \"base\"\n[workload]\nkind = \"trace\"\nfile = \"jobs.swf\"\n";
    let folder = folder(&[("base", SMALL), ("s", trace)]);
    let file = |overrides| match load(&folder, "s", &overrides).unwrap().workload {
        Source::Trace(trace) => trace.file,
        other => panic!("{other:?}"),
    };
    assert_eq!(file(Overrides::default()), folder.path().join("jobs.swf"));
    let other = Overrides { trace: Some("other.swf".into()), ..Overrides::default() };
    assert_eq!(file(other), PathBuf::from("other.swf"), "the command line means the folder one is in");
    let read = Overrides {
        trace: Some("other.swf".into()),
        length: Some(Length::Run),
        drop_bad_lines: true,
        ..Overrides::default()
    };
    match load(&folder, "s", &read).unwrap().workload {
        Source::Trace(trace) => assert_eq!((trace.length, trace.bad_lines), (Length::Run, BadLines::Drop)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_run_can_be_read_again() {
    let folder =
        folder(&[("base", SMALL), ("top", "like = \"base\"\nfaults = \"light\"\nlength = \"90m\"\n")]);
    let scenario = load(&folder, "top", &Overrides { seed: Some(5), ..Overrides::default() }).unwrap();
    let again = read(&scenario.text).unwrap();
    assert_eq!((again.seed, again.nodes, again.length), (5, 16, Some(Span::from_mins(90))));
    assert_eq!(again.faults, scenario.faults);
    assert_eq!(again.workload, scenario.workload);
}

#[test]
fn scenarios_of_the_repository_make_sense() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")];
    let (mut count, mut prepared) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let scenario = Scenario::load(&path, &Overrides::default()).unwrap();
            assert!(scenario.about.is_some(), "{} says what it shows", scenario.name);
            scenario.workload.load(scenario.seed).unwrap();
            if scenario.nodes <= 200 {
                Run::<Node>::prepare(&scenario, 1).unwrap();
                prepared += 1;
            }
            count += 1;
        }
    }
    assert!(count >= 10 && prepared >= 3, "{prepared} of {count}");
}

proptest! {
    #![proptest_config(Cases { rng_seed: RngSeed::Fixed(1), ..Cases::with_cases(200) })]

    #[test]
    fn no_text_brings_the_reader_down(
        lines in prop::collection::vec(
            prop_oneof![
                Just("nodes = 3".to_owned()),
                Just("[workload]".to_owned()),
                Just("kind = \"trace\"".to_owned()),
                Just("recipe = { name = 3 }".to_owned()),
                Just("[recipe]".to_owned()),
                Just("name = \"sample\"".to_owned()),
                Just("[[machines]]".to_owned()),
                Just("share = 2".to_owned()),
                Just("[network.latency]".to_owned()),
                Just("model = \"matrix\"".to_owned()),
                Just("faults = [1]".to_owned()),
                "[a-z]{1,6} = [0-9]{1,25}",
                "[ -~ä€]{0,20}",
            ],
            0..12,
        ),
    ) {
        if let Err(error) = read(&lines.join("\n")) {
            prop_assert!(!error.contains('\n'), "{}", error);
        }
    }
}
