//! Small studies, from the scenario's file to its results.

use std::path::PathBuf;

use super::*;
use crate::replay::{assert_is_command, value};

const SCENARIO: &str = r#"
about = "a few jobs on a few nodes"
nodes = 8
[workload]
kind = "poisson"
jobs = 12
mean_gap_secs = 60.0
width = [1, 4]
length_secs = [30, 600]
"#;

/// A folder with the scenario in it.
fn scenario() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    (folder, file)
}

fn seeds(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn compare(names: &[&str], count: u32, threads: usize) -> Result<Results, Error> {
    let (_folder, file) = scenario();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    Study::compare(&file, &Overrides::default(), &names, seeds(count), threads)?.carry_out(&|_| {})
}

fn sweep(settings: &[&str]) -> Result<Results, Error> {
    let (_folder, file) = scenario();
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    Study::sweep(&file, &Overrides::default(), &settings, seeds(1), 2)?.carry_out(&|_| {})
}

fn written(results: &Results) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), results, 0.0).unwrap();
    let mut files = Vec::new();
    for place in [folder.path().to_owned(), folder.path().join("plots")] {
        for file in
            std::fs::read_dir(place).unwrap().map(|file| file.unwrap().path()).filter(|file| file.is_file())
        {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            files.push((name, std::fs::read(file).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn every_scheduler_runs_the_same_jobs() {
    let results = compare(&[], 2, 2).unwrap();
    let names: Vec<&str> = results.rows.iter().map(|row| row.values[0].as_str()).collect();
    assert_eq!(names, schedulers());
    for row in &results.rows {
        assert_eq!(row.runs.len(), 2);
        // These run jobs of one node, and refuse gangs.
        let finishes = |run: &Figures| {
            ["aria", "tri-pronged"].contains(&row.values[0].as_str()) || run.not_finished == 0
        };
        assert!(row.runs.iter().all(|run| run.jobs == 12 && finishes(run)), "{:?}", row.values);
        assert_ne!(row.runs[0], row.runs[1], "another seed is another run");
    }
}

#[test]
fn threads_change_no_byte() {
    let names = ["sample", "easy", "flood"];
    let one = written(&compare(&names, 2, 1).unwrap());
    assert_eq!(one, written(&compare(&names, 2, 2).unwrap()));
    let names: Vec<&str> = one.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["report.html", "results.csv", "summary.json", "timing.json", "wait-mean-s.svg"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn every_combination_is_swept() {
    let results = sweep(&["nodes=4,8,12", "recipe.wait_ms=1000,2000"]).unwrap();
    let values: Vec<String> = results.rows.iter().map(|row| row.values.join(" ")).collect();
    assert_eq!(values, ["4 1000", "4 2000", "8 1000", "8 2000", "12 1000", "12 2000"]);
    let waits = |place: usize| results.rows[place].runs[0].wait_mean_s;
    assert!(waits(0) > waits(4), "fewer nodes, longer waits: {} and {}", waits(0), waits(4));
    let csv = written(&results).into_iter().find(|(name, _)| name == "results.csv").unwrap().1;
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.starts_with("nodes,recipe.wait_ms,seed,jobs,"), "{csv}");
    assert_eq!(csv.lines().count(), 7);
}

#[test]
fn words_and_named_things_can_be_swept() {
    let results = sweep(&["recipe=sample,asap", "faults=none,light"]).unwrap();
    assert_eq!(results.rows.len(), 4);
}

#[test]
fn what_makes_no_sense_is_said_before_anything_runs() {
    let said = |error: Option<Error>| error.unwrap().to_string();
    let unknown = said(compare(&["sample", "slurm"], 1, 1).err());
    assert!(unknown.contains("`slurm`") && unknown.contains("central-asap, cent, flood"), "{unknown}");
    assert!(said(compare(&["easy", "easy"], 1, 1).err()).contains("twice"));
    let typo = said(sweep(&["overlay.cach=10,20"]).err());
    assert!(typo.contains("command line") && typo.contains("cache"), "{typo}");
    assert!(said(sweep(&["seed=1,2"]).err()).contains("--seeds"));
    assert!(said(sweep(&["like=gangs"]).err()).contains("`like` cannot be swept"));
    let zero = said(sweep(&["nodes=0,10"]).err());
    assert!(zero.contains("nodes") && zero.contains("at least 1"), "{zero}");
    let nodes: Vec<String> = (8..200).map(|nodes| nodes.to_string()).collect();
    let nodes = format!("nodes={}", nodes.join(","));
    let many = said(sweep(&[&nodes, "overlay.cache=1,2,3,4,5,6,7", "overlay.walk=1,2,3,4,5,6,7,8"]).err());
    assert!(many.contains("at most 10000"), "{many}");
}

/// The commands of all runs, each of which must be one, and make the same run.
fn commands(study: &Study) -> Vec<String> {
    let mut commands = Vec::new();
    for (scenario, command) in study.variants.iter().flat_map(|variant| &variant.scenarios) {
        let words = assert_is_command(command);
        let settings = words.iter().enumerate().filter(|(_, word)| *word == "--set");
        let set = settings.map(|(at, _)| words[at + 1].parse::<Setting>().unwrap());
        let overrides = Overrides {
            recipe: value(&words, "--recipe").map(str::to_owned),
            seed: value(&words, "--seed").map(|seed| seed.parse().unwrap()),
            nodes: value(&words, "--nodes").map(|nodes| nodes.parse().unwrap()),
            set: set.map(|setting| (setting.key, setting::in_toml(&setting.values[0]))).collect(),
            ..Overrides::default()
        };
        let again = Scenario::load(Path::new(&words[3]), &overrides).unwrap();
        assert_eq!(again.text, scenario.text, "{command}");
        commands.push(command.replace(&words[3], "FILE"));
    }
    commands
}

#[test]
fn every_run_of_a_comparison_has_a_command_that_makes_it_again() {
    let (_folder, file) = scenario();
    let overrides = Overrides { nodes: Some(9), ..Overrides::default() };
    let study = Study::compare(&file, &overrides, &["asap".to_owned()], seeds(2), 1).unwrap();
    let usual = "shoal sim run FILE --recipe asap --nodes 9 --seed";
    assert_eq!(commands(&study), [format!("{usual} 1 --threads 1"), format!("{usual} 2 --threads 1")]);
}

#[test]
fn every_run_of_a_sweep_has_a_command_that_makes_it_again() {
    let (_folder, file) = scenario();
    let settings: Vec<Setting> =
        ["overlay.cache=3,5", "start=graph", "machines=[{ share = 1, capacity = { cores = 2 } }]"]
            .map(|setting| setting.parse().unwrap())
            .into();
    let study = Study::sweep(&file, &Overrides::default(), &settings, seeds(1), 1).unwrap();
    let commands = commands(&study);
    assert_eq!(commands.len(), 2);
    assert!(
        commands[0].starts_with("shoal sim sweep FILE --set overlay.cache=3 --set 'start="),
        "{commands:?}"
    );
}
