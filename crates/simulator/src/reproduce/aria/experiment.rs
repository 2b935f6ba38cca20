//! The experiments: the runs that each needs, and what it makes of them.

use std::collections::BTreeMap;

use super::case::{Case, LIBRARY, Variant};
use super::large;
use super::seen::Seen;
use super::size::Size;
use crate::reproduce::finding::Findings;
use crate::reproduce::statistics::{Spread, mean};

/// The seconds for which offers are waited for. Without any wait nobody but the initiator itself has offered; after two seconds
/// all who are asked may have.
pub const WAITS: [u32; 6] = [0, 2, 10, 30, 60, 120];
/// The paper's.
const WAIT: u32 = 60;
/// The scenarios that are looked at with other waits.
pub const WAITING: [&str; 6] = ["FCFS", "iFCFS", "Deadline", "iDeadline", "DeadlineH", "iDeadlineH"];
/// The scenarios of which it is asked why jobs miss their deadlines all the same.
const CAUSE: [&str; 4] = ["Deadline", "iDeadline", "DeadlineH", "iDeadlineH"];

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// The paper's scenarios: figures 1 to 10.
    Paper,
    AcceptWait,
    Live,
    Cyclon,
    Central,
    Cause,
    Scale,
    /// Whole runs on one of the large grids.
    Whole(usize),
}

impl Experiment {
    pub const ALL: [Experiment; 9] = [
        Experiment::Paper,
        Experiment::AcceptWait,
        Experiment::Live,
        Experiment::Cyclon,
        Experiment::Central,
        Experiment::Cause,
        Experiment::Scale,
        Experiment::Whole(0),
        Experiment::Whole(1),
    ];

    /// Whether it finds this id.
    pub fn finds(self, id: &str) -> bool {
        let mut parts = id.split('/').skip(1).skip_while(|&part| part == "beyond");
        let group = parts.next().unwrap_or_default();
        match self {
            Experiment::Paper => group == "scenario" || group.starts_with("fig"),
            Experiment::AcceptWait => group == "accept_wait",
            Experiment::Live => group == "live",
            Experiment::Cyclon => group == "cyclon",
            Experiment::Central => group == "central",
            Experiment::Cause => group == "cause",
            Experiment::Scale => group == "scale",
            Experiment::Whole(grid) => group == "whole" && parts.next() == Some(large::WHOLE[grid]),
        }
    }

    /// The runs that it needs for what is wanted.
    pub fn cases(self, size: &Size, wanted: &[&'static str]) -> Vec<Case> {
        let each = |scenes: &[&'static str], seeds: u64, variant: Variant| -> Vec<Case> {
            let of = |scene: &&'static str| {
                let scene = *scene;
                (1..=seeds).map(move |seed| Case { scene, variant, seed })
            };
            scenes.iter().flat_map(of).collect()
        };
        let beside = size.seeds_beside;
        match self {
            Experiment::Paper => each(&scenes(), size.seeds, Variant::Paper),
            Experiment::AcceptWait => {
                WAITS.iter().flat_map(|&wait| each(&WAITING, seeds_of(wait, size), of_wait(wait))).collect()
            }
            Experiment::Live => {
                let paper = each(&frozen(), size.seeds, Variant::Paper);
                [paper, each(&frozen(), beside, Variant::Live)].concat()
            }
            Experiment::Cyclon => each(&scenes(), beside, Variant::Cyclon),
            Experiment::Central => each(&scenes(), size.seeds, Variant::Central),
            Experiment::Cause => each(&CAUSE, beside, Variant::Plenty),
            Experiment::Scale => large::scale_cases(size, wanted),
            Experiment::Whole(grid) => large::whole_cases(grid, size, wanted),
        }
    }

    /// What came of it.
    pub fn judge(self, runs: &Runs, findings: &mut Findings) {
        match self {
            Experiment::Paper => {
                scenarios(runs, findings);
                figures_1_to_3(runs, findings);
                figure_4(runs, findings);
                figures_5_to_9(runs, findings);
                figure_10(runs, findings);
            }
            Experiment::AcceptWait => accept_wait(runs, findings),
            Experiment::Live => live(runs, findings),
            Experiment::Cyclon => cyclon(runs, findings),
            Experiment::Central => all_scenes("central", Variant::Central, runs, findings),
            Experiment::Cause => cause(runs, findings),
            Experiment::Scale => large::judge_scale(runs, findings),
            Experiment::Whole(grid) => {
                large::judge_whole(large::WHOLE[grid], runs.size.whole[grid], runs, findings);
            }
        }
    }
}

/// The paper's own wait needs no runs of its own.
pub fn of_wait(wait: u32) -> Variant {
    if wait == WAIT { Variant::Paper } else { Variant::Wait(wait) }
}

fn seeds_of(wait: u32, size: &Size) -> u64 {
    if wait == WAIT { size.seeds } else { size.seeds_beside }
}

/// The names of all scenarios.
pub fn scenes() -> Vec<&'static str> {
    LIBRARY.iter().map(|(name, _)| *name).collect()
}

/// All runs that were made.
pub struct Runs {
    pub size: Size,
    pub seen: BTreeMap<Case, Seen>,
}

impl Runs {
    /// What was seen of a scenario, by seed.
    pub fn of(&self, scene: &'static str) -> Vec<&Seen> {
        self.varied(scene, Variant::Paper)
    }

    /// What was seen of a variant of a scenario, by seed.
    pub fn varied(&self, scene: &'static str, variant: Variant) -> Vec<&Seen> {
        let seeds = 1..=self.size.seeds;
        seeds.filter_map(|seed| self.seen.get(&Case { scene, variant, seed })).collect()
    }

    fn each(&self, scene: &'static str, figure: impl Fn(&Seen) -> f64) -> Vec<f64> {
        self.of(scene).into_iter().map(figure).collect()
    }

    fn mean(&self, scene: &'static str, figure: impl Fn(&Seen) -> f64) -> f64 {
        mean(&self.each(scene, figure)).unwrap_or(0.0)
    }

    /// A figure of one scenario and of another, seed by seed.
    fn pairs(
        &self,
        one: &'static str,
        other: &'static str,
        figure: impl Fn(&Seen) -> f64,
        join: impl Fn(f64, f64) -> f64,
    ) -> Vec<f64> {
        let (one, other) = (self.each(one, &figure), self.each(other, &figure));
        one.into_iter().zip(other).map(|(one, other)| join(one, other)).collect()
    }
}

pub(super) fn over(one: f64, other: f64) -> f64 {
    if other == 0.0 { 0.0 } else { one / other }
}

fn minus(one: f64, other: f64) -> f64 {
    one - other
}

fn within(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * other.abs()
}

fn scenarios(runs: &Runs, findings: &mut Findings) {
    for scene in scenes() {
        let mut figure = |name: &str, of: fn(&Seen) -> f64| {
            findings.figure(&format!("aria/scenario/{scene}/{name}"), &runs.each(scene, of));
        };
        figure("wait", Seen::wait);
        figure("execution", Seen::execution);
        figure("completion", Seen::completion);
        figure("idle_3h", |seen| seen.idle_at(3.0));
        figure("request", |seen| seen.megabytes(&["request"]));
        figure("inform", |seen| seen.megabytes(&["inform"]));
        figure("total", Seen::total);
    }
}

fn figures_1_to_3(runs: &Runs, findings: &mut Findings) {
    let completion = |scene| runs.mean(scene, Seen::completion);
    let execution = |scene| runs.mean(scene, Seen::execution);
    let sooner = completion("iSJF") < completion("SJF") && completion("iMixed") < completion("Mixed");
    let alike = within(completion("FCFS"), completion("iFCFS"), 0.1);
    findings.claim(
        "aria/fig1",
        &runs.pairs("Mixed", "iMixed", Seen::completion, over),
        Some(sooner && alike),
    );
    let longer = execution("iSJF") > execution("SJF") && execution("iMixed") > execution("Mixed");
    findings.claim(
        "aria/fig2",
        &runs.pairs("iMixed", "Mixed", Seen::execution, over),
        Some(longer && sooner),
    );
    let idle = |seen: &Seen| seen.idle_at(3.0);
    let (sjf, mixed) = (runs.pairs("SJF", "iSJF", idle, minus), runs.pairs("Mixed", "iMixed", idle, minus));
    let fewer: Vec<f64> = sjf.iter().zip(&mixed).map(|(sjf, mixed)| (sjf + mixed) / 2.0).collect();
    let about = mean(&fewer).map(|fewer| (50.0..=150.0).contains(&fewer));
    findings.claim("aria/fig3/idle", &fewer, about);
    let three = ["iFCFS", "iSJF", "iMixed"].map(|scene| runs.each(scene, idle));
    let apart: Vec<f64> = (0..three[0].len())
        .map(|seed| {
            let values = three.iter().filter_map(|values| values.get(seed)).copied();
            let most = values.clone().fold(f64::MIN, f64::max);
            most - values.fold(f64::MAX, f64::min)
        })
        .collect();
    let similar = mean(&apart).map(|apart| apart <= 25.0);
    findings.claim("aria/fig3/similar", &apart, similar);
}

fn figure_4(runs: &Runs, findings: &mut Findings) {
    for (scene, paper) in
        [("Deadline", 187.0), ("iDeadline", 4.0), ("DeadlineH", 236.0), ("iDeadlineH", 59.0)]
    {
        let missed = runs.each(scene, Seen::missed);
        let about = mean(&missed).map(|missed| (missed - paper).abs() <= f64::max(paper / 3.0, 10.0));
        findings.claim(&format!("aria/fig4/{}/missed", scene.to_lowercase()), &missed, about);
    }
    let spare = |scene| runs.mean(scene, Seen::lateness);
    let more = spare("iDeadline") > spare("Deadline") && spare("iDeadlineH") > spare("DeadlineH");
    findings.claim(
        "aria/fig4/lateness",
        &runs.pairs("iDeadline", "Deadline", Seen::lateness, minus),
        Some(more),
    );
    let late = |scene| runs.mean(scene, Seen::missed_time);
    let halved = over(late("iDeadline"), late("Deadline")) <= 0.6
        && over(late("iDeadlineH"), late("DeadlineH")) <= 0.6;
    findings.claim(
        "aria/fig4/missed_time",
        &runs.pairs("iDeadline", "Deadline", Seen::missed_time, over),
        Some(halved),
    );
}

fn figures_5_to_9(runs: &Runs, findings: &mut Findings) {
    let growing = runs.pairs("Expanding", "iExpanding", |seen| seen.idle_between(1.5, 6.0), minus);
    findings.claim("aria/fig5", &growing, mean(&growing).map(|fewer| fewer > 0.0));
    let idle = |seen: &Seen| seen.idle_between(1.5, 5.0);
    let (low, high) =
        (runs.pairs("LowLoad", "iLowLoad", idle, minus), runs.pairs("HighLoad", "iHighLoad", idle, minus));
    let both = mean(&low).zip(mean(&high)).map(|(low, high)| low > 0.0 && high > 0.0);
    findings.claim("aria/fig6", &high, both);
    let loads = runs.pairs("iHighLoad", "LowLoad", Seen::completion, over);
    findings.claim("aria/fig7", &loads, mean(&loads).map(|ratio| ratio <= 1.1));

    let completion = |scene| runs.mean(scene, Seen::completion);
    let wait = |scene| runs.mean(scene, Seen::wait);
    let informs = ["iInform1", "iMixed", "iInform4"];
    let most = informs.map(completion).into_iter().fold(f64::MIN, f64::max);
    let least = informs.map(completion).into_iter().fold(f64::MAX, f64::min);
    let quickest = wait("iInform4") <= wait("iMixed") && wait("iInform4") <= wait("iInform1");
    let thresholds =
        ["iInform15m", "iInform30m"].iter().all(|scene| within(completion(scene), completion("iMixed"), 0.1));
    let holds = most <= 1.1 * least && quickest && thresholds;
    findings.claim("aria/fig8", &runs.each("iInform4", Seen::wait), Some(holds));

    let alike = |exact: &'static str, usual: &'static str, rough: &'static str| {
        within(completion(exact), completion(usual), 0.1) && within(completion(rough), completion(usual), 0.1)
    };
    let worse =
        completion("AccuracyBad") > completion("Mixed") && completion("iAccuracyBad") > completion("iMixed");
    let holds =
        alike("Precise", "Mixed", "Accuracy25") && alike("iPrecise", "iMixed", "iAccuracy25") && worse;
    findings.claim("aria/fig9", &runs.pairs("AccuracyBad", "Mixed", Seen::completion, over), Some(holds));
}

fn figure_10(runs: &Runs, findings: &mut Findings) {
    let kind = |scene, kind: &'static str| runs.mean(scene, move |seen| seen.megabytes(&[kind]));
    let steady: Vec<f64> = scenes()
        .into_iter()
        .filter(|scene| !scene.ends_with("Expanding"))
        .map(|scene| kind(scene, "request"))
        .collect();
    let most = steady.iter().copied().fold(f64::MIN, f64::max);
    let least = steady.iter().copied().fold(f64::MAX, f64::min);
    let few = scenes()
        .into_iter()
        .all(|scene| kind(scene, "accept") + kind(scene, "assign") <= 0.1 * runs.mean(scene, Seen::total));
    let growing = kind("iExpanding", "inform") < kind("iMixed", "inform");
    let fewer = kind("iInform1", "inform") <= 0.8 * kind("iMixed", "inform");
    findings.claim(
        "aria/fig10",
        &runs.pairs("iInform1", "iMixed", |seen| seen.megabytes(&["inform"]), over),
        Some(most <= 1.1 * least && few && growing && fewer),
    );
    let overall = |figure: fn(&Seen) -> f64| -> Vec<f64> {
        let by_scene: Vec<Vec<f64>> = scenes().into_iter().map(|scene| runs.each(scene, figure)).collect();
        (0..runs.size.seeds as usize)
            .filter_map(|seed| {
                mean(&by_scene.iter().filter_map(|values| values.get(seed).copied()).collect::<Vec<_>>())
            })
            .collect()
    };
    let total = overall(Seen::total);
    findings.claim("aria/fig10/total", &total, mean(&total).map(|total| (2.4..=3.6).contains(&total)));
    findings.figure("aria/fig10/bits", &overall(Seen::bits));
}

fn accept_wait(runs: &Runs, findings: &mut Findings) {
    for wait in WAITS {
        for scene in WAITING {
            let seen = runs.varied(scene, of_wait(wait));
            let deadlines = scene.contains("Deadline");
            let (name, of): (_, fn(&Seen) -> f64) =
                if deadlines { ("missed", Seen::missed) } else { ("completion", Seen::completion) };
            let values: Vec<f64> = seen.into_iter().map(of).collect();
            findings.figure(&format!("aria/accept_wait/{wait}s/{scene}/{name}"), &values);
            if wait == 0 {
                let unfinished: Vec<f64> =
                    runs.varied(scene, of_wait(wait)).into_iter().map(Seen::unfinished).collect();
                findings.figure(&format!("aria/accept_wait/{wait}s/{scene}/unfinished"), &unfinished);
            }
        }
    }
}

/// The scenarios whose overlay is frozen once the ants are done.
fn frozen() -> Vec<&'static str> {
    scenes().into_iter().filter(|scene| !scene.ends_with("Expanding")).collect()
}

fn live(runs: &Runs, findings: &mut Findings) {
    let mut apart = Vec::new();
    let mut inside = Some(true);
    for scene in frozen() {
        let live: Vec<f64> = runs.varied(scene, Variant::Live).into_iter().map(Seen::completion).collect();
        findings.figure(&format!("aria/beyond/live/{scene}/completion"), &live);
        let frozen = runs.each(scene, Seen::completion);
        let frozen: Vec<f64> = frozen.into_iter().take(live.len()).collect();
        let differences = live.iter().zip(&frozen).map(|(live, frozen)| (live - frozen).abs());
        let most = differences.fold(0.0, f64::max);
        apart.push(most);
        let spread = Spread::of(&runs.each(scene, Seen::completion));
        inside = inside.zip(spread).map(|(inside, spread)| inside && most <= spread.max - spread.min);
    }
    let most = apart.into_iter().fold(0.0, f64::max);
    findings.claim("aria/beyond/live/within_spread", &[most], inside);
}

/// All scenarios with another overlay beneath.
fn cyclon(runs: &Runs, findings: &mut Findings) {
    all_scenes("cyclon", Variant::Cyclon, runs, findings);
    for scene in ["Mixed", "iMixed"] {
        let seen = runs.varied(scene, Variant::Cyclon).into_iter();
        let request: Vec<f64> = seen.map(|seen| seen.megabytes(&["request"])).collect();
        findings.figure(&format!("aria/beyond/cyclon/{scene}/request"), &request);
    }
}

fn all_scenes(name: &str, variant: Variant, runs: &Runs, findings: &mut Findings) {
    for scene in scenes() {
        let values =
            |of: fn(&Seen) -> f64| -> Vec<f64> { runs.varied(scene, variant).into_iter().map(of).collect() };
        findings.figure(&format!("aria/beyond/{name}/{scene}/completion"), &values(Seen::completion));
        if scene.contains("Deadline") {
            findings.figure(&format!("aria/beyond/{name}/{scene}/missed"), &values(Seen::missed));
        }
    }
}

/// What becomes of missed deadlines when no job is for a few machines only.
fn cause(runs: &Runs, findings: &mut Findings) {
    let values = |scene, of: fn(&Seen) -> f64| -> Vec<f64> {
        runs.varied(scene, Variant::Plenty).into_iter().map(of).collect()
    };
    for scene in CAUSE {
        findings.figure(&format!("aria/beyond/cause/{scene}/missed"), &values(scene, Seen::missed));
        findings.figure(&format!("aria/beyond/cause/{scene}/missed_time"), &values(scene, Seen::missed_time));
    }
}
