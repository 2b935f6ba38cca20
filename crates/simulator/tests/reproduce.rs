//! The frame of reproductions, at a size at which figures mean nothing.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroU32;

use shoal_simulator::reproduce::{self, Error, Paper, Report, Reproduction, Settings};

fn tiny() -> Settings {
    Settings {
        only: None,
        quick: false,
        seeds: None,
        trace: None,
        hosts: None,
        threads: 2,
        keep: None,
        tiny: true,
    }
}

fn only(prefix: &str) -> Settings {
    Settings { only: Some(prefix.to_owned()), ..tiny() }
}

fn report(settings: &Settings) -> Report {
    Reproduction::prepare(Paper::Asap, settings).unwrap().carry_out(&|_| {}).unwrap()
}

/// What a reproduction writes, but for what depends on the hour.
fn bytes(report: &Report) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    reproduce::write(folder.path(), std::slice::from_ref(report), 1.0).unwrap();
    let mut files = Vec::new();
    let mut folders = vec![folder.path().to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned();
            if name != "timing.json" {
                files.push((name, fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// The ids that the specification names (sections 8 and 9).
const NAMED: [&str; 26] = [
    "asap/fig4a/mean_ru",
    "asap/fig4a/ru_before_2.2",
    "asap/fig4b/mean_ru",
    "asap/fig4b/eu_plateau",
    "asap/fig6/ratio",
    "asap/table3/grid5000/dynamic",
    "asap/table3/grid5000/static",
    "asap/table3/compressed/dynamic",
    "asap/table3/compressed/static",
    "asap/claim/eu_follows_ru",
    "asap/claim/eu_plateau",
    "asap/claim/tail",
    "asap/claim/wt_follows_ru",
    "asap/claim/wt_grows_with_n",
    "asap/claim/wt_not_with_s",
    "asap/claim/wt_grows_with_ns",
    "asap/claim/large_without_delay",
    "asap/claim/push_cheapest",
    "asap/claim/push_vs_pull",
    "asap/claim/push_linear_in_degree",
    "asap/claim/degree10_fails",
    "asap/claim/degree20_enough",
    "asap/claim/degree10_lowest_wt",
    "asap/claim/wt_flat_above_10",
    "asap/claim/static_beats_dynamic",
    "asap/claim/poll_known",
];

#[test]
fn every_id_of_the_specification_is_known_once() {
    let known: Vec<&str> = Paper::Asap.known().iter().map(|known| known.id).collect();
    let distinct: BTreeSet<&str> = known.iter().copied().collect();
    assert_eq!(distinct.len(), known.len());
    let tables = ["push", "pull", "poll"]
        .map(|policy| ["messages", "failures"].map(|figure| format!("asap/table1/{policy}/{figure}")));
    let degrees = [10, 20, 30, 40].map(|degree| {
        ["failures", "wt", "push", "pull"].map(|figure| format!("asap/table2/degree{degree}/{figure}"))
    });
    let named = NAMED.map(str::to_owned).into_iter().chain(["asap/claim/scale_free_cost".to_owned()]);
    for id in named.chain(tables.into_iter().flatten()).chain(degrees.into_iter().flatten()) {
        assert!(distinct.contains(id.as_str()), "{id}");
    }
}

#[test]
fn all_of_it_finds_every_id_in_order_and_is_the_same_with_any_number_of_threads() {
    let two = report(&tiny());
    let found: Vec<&str> = two.findings.iter().map(|finding| finding.id).collect();
    let known: Vec<&str> = Paper::Asap.known().iter().map(|known| known.id).collect();
    assert_eq!(found, known);
    for finding in &two.findings {
        assert!(
            finding.holds.is_none() || finding.claim.is_some(),
            "{} is judged without a claim",
            finding.id
        );
        assert!(finding.ours.is_none_or(f64::is_finite), "{finding:?}");
    }
    let one = report(&Settings { threads: 1, ..tiny() });
    let (one, two) = (bytes(&one), bytes(&two));
    for ((name, one), (_, two)) in one.iter().zip(&two) {
        assert!(one == two, "{name} differs from one thread to two");
    }
    let names: Vec<&str> = two.iter().map(|(name, _)| name.as_str()).collect();
    for name in [
        "results.json",
        "report.html",
        "plots/fig4a.svg",
        "plots/fig4b.png",
        "plots/fig5d.svg",
        "plots/fig6.png",
        "plots/gantt.svg",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
}

#[test]
fn a_part_is_the_same_as_in_the_whole_and_needs_fewer_runs() {
    let whole = Reproduction::prepare(Paper::Asap, &tiny()).unwrap().runs();
    let settings = only("asap/fig4a");
    assert!(Reproduction::prepare(Paper::Asap, &settings).unwrap().runs() < whole / 10);
    let part = report(&settings);
    assert!(part.findings.iter().all(|finding| finding.id.starts_with("asap/fig4a/")));
    assert_eq!(part.findings.len(), 5);
    let again = report(&settings);
    assert!(bytes(&part) == bytes(&again), "the same bytes twice");
}

#[test]
fn polls_cost_what_is_known_beforehand() {
    let report = report(&only("asap/claim/poll_known"));
    let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
    assert_eq!((finding.ours, finding.holds), (Some(1.0), Some(true)));
}

#[test]
fn seeds_are_as_many_as_asked_for() {
    let settings = Settings { seeds: NonZeroU32::new(3), ..only("asap/fig4b/mean_ru") };
    let report = report(&settings);
    assert_eq!(report.findings[0].spread.unwrap().seeds, 3);
    assert_eq!(report.timing.len(), 3);
}

#[test]
fn unknown_ids_list_the_known_ones() {
    let refused = |only_ids| match Reproduction::prepare(Paper::Asap, &only(only_ids)) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{only_ids} was accepted"),
    };
    let error = refused("asap/table9");
    assert!(error.contains("`asap/table9`") && error.contains("asap/table1, asap/table2"), "{error}");
    let error = refused("asap/claim/nothing");
    assert!(error.contains("asap/claim/eu_plateau"), "{error}");
    assert!(matches!(Paper::named("dgs"), Err(Error::UnknownPaper { .. })));
    assert_eq!(Paper::named("all").unwrap(), Paper::ALL);
}

/// All of a paper, made by two threads; a part of it, made by one, is the same.
fn whole(paper: Paper, part: &str) -> Report {
    let make =
        |settings: &Settings| Reproduction::prepare(paper, settings).unwrap().carry_out(&|_| {}).unwrap();
    let whole = make(&tiny());
    let known = |beyond: bool| -> Vec<&str> {
        paper.known().iter().filter(|known| known.is_beyond() == beyond).map(|known| known.id).collect()
    };
    let ids = |report: &Report| -> Vec<&str> { report.findings.iter().map(|finding| finding.id).collect() };
    assert_eq!(ids(&whole), known(false));
    if !known(true).is_empty() {
        let beyond = make(&only(&format!("{paper}/beyond")));
        assert_eq!(ids(&beyond), known(true));
    }
    let settings = Settings { threads: 1, ..only(part) };
    let part = make(&settings);
    assert!(!part.findings.is_empty() && part.timing.len() < whole.timing.len());
    for finding in &part.findings {
        let same = whole.findings.iter().find(|other| other.id == finding.id);
        assert_eq!(format!("{finding:?}"), format!("{:?}", same.unwrap()));
    }
    whole
}

#[test]
fn every_id_of_aria_is_found_once_and_threads_change_nothing() {
    let whole = whole(Paper::Aria, "aria/fig4");
    for named in
        ["fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "fig10", "accept-wait"]
    {
        assert!(whole.figures.iter().any(|figure| figure.name == named), "no figure {named}");
    }
}

#[test]
fn every_claim_of_tri_pronged_is_found_once_and_threads_change_nothing() {
    let whole = whole(Paper::TriPronged, "tri-pronged/fig5");
    assert!(whole.findings.iter().all(|finding| finding.holds.is_some()), "each claim is judged");
    let figures: Vec<&str> = whole.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(figures, ["fig3", "fig4a", "fig4b", "fig5"]);
}

#[test]
fn what_goes_beyond_tri_pronged_is_drawn_and_takes_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.swf");
    let job = |id: u32| {
        let (at, run, cores) = (id * 90, 300 + id * 7, 1 + id % 4);
        format!("{id} {at} 0 {run} {cores} -1 204800 {cores} -1 -1 1 1 1 -1 -1 -1 -1 -1\n")
    };
    fs::write(&file, (1..=80).map(job).collect::<String>()).unwrap();
    let settings = Settings { trace: Some(file.clone()), ..only("tri-pronged/beyond") };
    let report = Reproduction::prepare(Paper::TriPronged, &settings).unwrap().carry_out(&|_| {}).unwrap();
    assert!(report.findings.iter().all(|finding| finding.holds.is_some()), "each claim is judged");
    let figures: Vec<&str> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(figures, ["beyond-long", "beyond-light", "beyond-scale", "beyond-trace", "beyond-estimates"]);
    assert_eq!(report.sheets.len(), 6);
    assert!(report.about.iter().any(|(_, what)| what.contains("60 jobs of small.swf")), "{:?}", report.about);

    let settings = Settings { trace: Some(file), ..only("tri-pronged/fig3") };
    let error = Reproduction::prepare(Paper::TriPronged, &settings).err().unwrap().to_string();
    assert!(error.contains("leave --trace out"), "{error}");
}

#[test]
fn every_id_of_proactive_is_found_once_and_threads_change_nothing() {
    let whole = whole(Paper::Proactive, "proactive/fig1/800x64");
    for named in ["fig1-800x64", "fig1-800x128", "fig1-10000x64", "fig1-10000x128"] {
        assert!(whole.figures.iter().any(|figure| figure.name == named), "no figure {named}");
    }
    // Even so small, who looks among near nodes finds closer ones.
    let holds =
        |id: &str| whole.findings.iter().find(|finding| finding.id == id).and_then(|finding| finding.holds);
    assert_eq!(holds("proactive/fig1/10000x64"), Some(true));
    assert_eq!(holds("proactive/traffic"), Some(true));
    // A picture says what was run, and not what the paper ran.
    let pictures: Vec<String> = whole.figures.iter().map(|figure| figure.svg()).collect();
    assert!(pictures.iter().all(|svg| !svg.contains("800 nodes") && !svg.contains("10000 nodes")));
    for size in ["50 nodes", "625 nodes"] {
        assert!(pictures.iter().any(|svg| svg.contains(size)), "no picture of {size}");
    }
}

#[test]
fn what_goes_beyond_the_paper_of_proactive_is_drawn_and_judged() {
    let make = |only_ids: &str| {
        let settings = only(only_ids);
        Reproduction::prepare(Paper::Proactive, &settings).unwrap().carry_out(&|_| {}).unwrap()
    };
    let report = make("proactive/beyond");
    let figures: Vec<&str> = report.figures.iter().map(|figure| figure.name.as_str()).collect();
    let named = [
        "beyond-criteria",
        "beyond-load-wait",
        "beyond-load-within",
        "beyond-iterations",
        "beyond-iterations-cost",
        "beyond-scale",
    ];
    assert_eq!(figures, named);
    assert_eq!(report.sheets.len(), 5);
    let finding = |id: &str| {
        let id = format!("proactive/beyond/{id}");
        report.findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no {id}"))
    };
    let ours = |id: &str| finding(id).ours.unwrap_or_else(|| panic!("no figure of {id}"));
    // However small the grid, calendars are as full as they are said to be.
    for load in [0, 30, 60, 80] {
        let booked = ours(&format!("load/{load}/booked"));
        assert!((booked - f64::from(load) / 100.0).abs() < 0.1, "{load} %: {booked}");
    }
    // Nobody is better than who knows everything, and somebody who waits for others waits longer.
    for aim in ["near", "fastest", "cheapest"] {
        for variant in ["basic", "proactive"] {
            let ratio = ours(&format!("criteria/{aim}/{variant}"));
            assert!(ratio >= 1.0, "{aim}, {variant}: {ratio}");
        }
    }
    assert!(ours("load/80/soonest/basic") > ours("load/0/soonest/basic"));
    // As many nodes are asked in each iteration, and all at once is quicker than one after the other.
    assert_eq!(finding("iterations/messages").holds, Some(true));
    assert!(ours("iterations/40/at_once/seconds") < ours("iterations/40/in_turn/seconds"));
    assert_eq!(finding("scale/traffic").holds, Some(true));
    // A part is the same as in the whole.
    let part = make("proactive/beyond/load");
    assert!(part.timing.len() < report.timing.len());
    for one in &part.findings {
        let same = report.findings.iter().find(|other| other.id == one.id);
        assert_eq!(format!("{one:?}"), format!("{:?}", same.unwrap()));
    }
}
