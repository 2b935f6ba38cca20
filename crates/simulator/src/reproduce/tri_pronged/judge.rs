//! The runs held against the claims.

use std::collections::BTreeMap;

use shoal_protocols::scheduling::tri_pronged::Variant;

use super::case::{Case, EVERYBODY, Mix, Who};
use super::seen::Seen;
use crate::reproduce::finding::Findings;
use crate::reproduce::statistics::mean;

/// The gaps of figures 3 and 4, in milliseconds.
pub const GAPS: [u32; 5] = [2_000, 2_250, 2_500, 2_750, 3_000];
/// The constraint ratios of figure 5, in hundredths.
pub const RATIOS: [u8; 4] = [20, 40, 60, 80];
/// A light load.
pub const LIGHT: u32 = 8_000;
/// Waits that differ by no more than this many seconds are the same.
const TIE: f64 = 1.0;

/// All runs that were made.
pub struct Runs {
    pub seeds: u64,
    pub seen: BTreeMap<Case, Seen>,
}

impl Runs {
    /// The mean over seeds of a figure; none if there are no such runs.
    pub fn of(
        &self,
        who: Who,
        mix: Mix,
        gap_ms: u32,
        ratio: u8,
        figure: impl Fn(&Seen) -> f64,
    ) -> Option<f64> {
        let values: Vec<f64> = self.all_of(who, mix, gap_ms, ratio).map(figure).collect();
        mean(&values)
    }

    /// The runs of all seeds.
    pub fn all_of(&self, who: Who, mix: Mix, gap_ms: u32, ratio: u8) -> impl Iterator<Item = &Seen> {
        (1..=self.seeds).filter_map(move |seed| self.seen.get(&Case { who, mix, gap_ms, ratio, seed }))
    }

    fn wait(&self, who: Who, gap_ms: u32, ratio: u8) -> Option<f64> {
        self.of(who, Mix::Clustered, gap_ms, ratio, Seen::wait)
    }

    /// Everybody's wait but CENT's.
    fn waits(&self, mix: Mix, gap: u32, ratio: u8) -> Option<Vec<(f64, Who)>> {
        EVERYBODY[1..].iter().map(|&who| Some((self.of(who, mix, gap, ratio, Seen::wait)?, who))).collect()
    }
}

pub const LIQ_PULL: Who = Who::Nodes(Variant::LiqPull);
const LI_PULL: Who = Who::Nodes(Variant::LiPull);
const LIQ_PUSH: Who = Who::Nodes(Variant::LiqPush);
const LI_PUSH: Who = Who::Nodes(Variant::LiPush);
const L: Who = Who::Nodes(Variant::L);
const VANILLA: Who = Who::Nodes(Variant::Vanilla);

/// What counts as near to CENT, in seconds.
pub fn goal(cent: f64) -> f64 {
    1.5 * cent + 60.0
}

/// A claim with its figure, if there are runs to judge it by.
fn tell(findings: &mut Findings, id: &str, judged: Option<(f64, bool)>) {
    let values: Vec<f64> = judged.iter().map(|(figure, _)| *figure).collect();
    findings.claim(id, &values, judged.map(|(_, holds)| holds));
}

/// How many hold, and whether all do.
fn count(holds: Option<Vec<bool>>) -> Option<(f64, bool)> {
    let holds = holds?;
    Some((holds.iter().filter(|holds| **holds).count() as f64, holds.iter().all(|holds| *holds)))
}

pub fn judge(runs: &Runs, findings: &mut Findings) {
    let at_gaps = |judge: &dyn Fn(u32) -> Option<bool>| count(GAPS.iter().map(|&gap| judge(gap)).collect());
    tell(findings, "tri-pronged/fig3/best", at_gaps(&|gap| least(runs, Mix::Clustered, gap, 40)));
    let near = |gap| Some(runs.wait(LIQ_PULL, gap, 40)? <= goal(runs.wait(Who::Cent, gap, 40)?));
    tell(findings, "tri-pronged/fig3/near_cent", at_gaps(&near));
    tell(findings, "tri-pronged/fig3/pull_beats_push", pull_beats_push(runs));
    tell(findings, "tri-pronged/fig3/li_like_liq", li_like_liq(runs));
    tell(findings, "tri-pronged/fig3/order_stable", order_stable(runs));
    tell(findings, "tri-pronged/text/push_light", push_light(runs));
    tell(findings, "tri-pronged/fig4a/count", messages(runs));
    tell(findings, "tri-pronged/fig4b/volume", volume(runs));
    tell(
        findings,
        "tri-pronged/fig5/order",
        count(RATIOS.iter().map(|&ratio| extremes(runs, ratio)).collect()),
    );
    let apart = |ratio| Some(runs.wait(LIQ_PULL, 3_000, ratio)? - runs.wait(Who::Cent, 3_000, ratio)?);
    let further = apart(80).zip(apart(20)).map(|(high, low)| (high - low, high > low));
    tell(findings, "tri-pronged/fig5/high", further);
    let mixes = Mix::ALL.map(|mix| least(runs, mix, 2_500, 40));
    tell(findings, "tri-pronged/text/other_mixes", count(mixes.into_iter().collect()));
    let longest = runs.of(LIQ_PULL, Mix::Clustered, 2_000, 40, Seen::longest);
    let all = runs.seen.values().all(|seen| seen.unstarted == 0);
    tell(findings, "tri-pronged/text/bounded", longest.map(|longest| (longest / 3_600.0, all)));
}

/// Whether LIQ-PULL waits least.
fn least(runs: &Runs, mix: Mix, gap: u32, ratio: u8) -> Option<bool> {
    let waits = runs.waits(mix, gap, ratio)?;
    let ours = runs.of(LIQ_PULL, mix, gap, ratio, Seen::wait)?;
    Some(waits.iter().all(|(wait, _)| ours <= wait + TIE))
}

fn pull_beats_push(runs: &Runs) -> Option<(f64, bool)> {
    let pairs = [(LI_PULL, LI_PUSH), (LIQ_PULL, LIQ_PUSH)];
    let holds = GAPS.iter().flat_map(|&gap| {
        pairs.map(|(pull, push)| Some(runs.wait(pull, gap, 40)? <= runs.wait(push, gap, 40)? + TIE))
    });
    count(holds.collect())
}

fn li_like_liq(runs: &Runs) -> Option<(f64, bool)> {
    let parts: Option<Vec<f64>> = GAPS
        .iter()
        .map(|&gap| {
            let (l, li, liq) =
                (runs.wait(L, gap, 40)?, runs.wait(LI_PULL, gap, 40)?, runs.wait(LIQ_PULL, gap, 40)?);
            Some(if (l - liq).abs() < TIE { 1.0 } else { (l - li) / (l - liq) })
        })
        .collect();
    let least = parts?.into_iter().fold(f64::INFINITY, f64::min);
    Some((least, least >= 0.5))
}

fn order_stable(runs: &Runs) -> Option<(f64, bool)> {
    let order = |gap| -> Option<Vec<Who>> {
        let mut waits = runs.waits(Mix::Clustered, gap, 40)?;
        waits.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Some(waits.into_iter().map(|(_, who)| who).collect())
    };
    let last = order(3_000)?;
    let swapped: Vec<Who> = last
        .iter()
        .map(|&who| {
            if who == L {
                VANILLA
            } else if who == VANILLA {
                L
            } else {
                who
            }
        })
        .collect();
    let same: Option<Vec<bool>> = GAPS
        .iter()
        .map(|&gap| Some(order(gap)? == if gap == 2_000 { swapped.clone() } else { last.clone() }))
        .collect();
    count(same)
}

fn push_light(runs: &Runs) -> Option<(f64, bool)> {
    let li = runs.wait(LI_PULL, LIGHT, 40)? - runs.wait(LI_PUSH, LIGHT, 40)?;
    let liq = runs.wait(LIQ_PULL, LIGHT, 40)? - runs.wait(LIQ_PUSH, LIGHT, 40)?;
    Some(((li + liq) / 2.0, li >= 0.0 && liq >= 0.0))
}

fn messages(runs: &Runs) -> Option<(f64, bool)> {
    let of = |who| runs.of(who, Mix::Clustered, 2_000, 40, |seen| seen.messages);
    let vanilla = of(VANILLA)?;
    let like = [L, LI_PUSH, LIQ_PUSH].map(|who| of(who).map(|sent| (sent / vanilla - 1.0).abs() <= 0.1));
    let more =
        [LI_PULL, LIQ_PULL].map(|who| of(who).map(|sent| sent > vanilla && (10.0..=30.0).contains(&sent)));
    let holds: Option<Vec<bool>> = like.into_iter().chain(more).collect();
    Some((of(LIQ_PULL)?, holds?.into_iter().all(|holds| holds)))
}

fn volume(runs: &Runs) -> Option<(f64, bool)> {
    let of = |who| runs.of(who, Mix::Clustered, 2_000, 40, |seen| seen.bytes);
    let vanilla = of(VANILLA)?;
    let apart: Option<Vec<f64>> =
        EVERYBODY[1..].iter().map(|&who| Some((of(who)? / vanilla - 1.0).abs())).collect();
    let most = apart?.into_iter().fold(0.0, f64::max);
    Some((most, most <= 0.1))
}

/// Whether LIQ-PULL waits least, and Vanilla or L most.
fn extremes(runs: &Runs, ratio: u8) -> Option<bool> {
    let mut waits = runs.waits(Mix::Clustered, 3_000, ratio)?;
    waits.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let (most, worst) = *waits.last()?;
    let none = most <= TIE;
    Some(least(runs, Mix::Clustered, 3_000, ratio)? && (none || worst == L || worst == VANILLA))
}
