//! The runs beyond the paper held against what one would hope for.

use std::collections::BTreeMap;

use shoal_protocols::scheduling::tri_pronged::Variant;

use super::super::case::{EVERYBODY, Who};
use super::super::seen::Seen;
use super::case::{Case, Left, Of, Said, Way};
use super::{DUAL, LIGHT, LONG, WITH_DUAL, WITH_ESTIMATES};
use crate::reproduce::finding::Findings;
use crate::reproduce::statistics::mean;

/// Waits that differ by no more than this many seconds are the same.
const TIE: f64 = 1.0;
/// What may be more by so much is not more.
const TENTH: f64 = 1.1;

const LIQ_PULL: Who = Who::Nodes(Variant::LiqPull);

/// All runs that were made.
pub struct Runs {
    pub seeds: u64,
    pub seen: BTreeMap<Case, Seen>,
}

impl Runs {
    /// The mean over seeds of a figure; none if there are no such runs.
    pub fn of(&self, of: Of, who: Who, figure: impl Fn(&Seen) -> f64) -> Option<f64> {
        let seeds = 1..=self.seeds;
        let values: Vec<f64> =
            seeds.filter_map(|seed| self.seen.get(&Case { of, who, seed })).map(figure).collect();
        mean(&values)
    }

    /// The sizes of the grids that grow and whose searches find their way so, the smallest first.
    pub fn grids(&self, way: Way) -> Vec<u32> {
        let nodes = self.seen.keys().filter_map(|case| match case.of {
            Of::Scale(by, nodes) => (by == way).then_some(nodes),
            Of::Long(_) | Of::Light(_) | Of::Trace | Of::Estimates(_) | Of::Dual(..) => None,
        });
        let mut nodes: Vec<u32> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn wait(&self, of: Of, who: Who) -> Option<f64> {
        self.of(of, who, Seen::wait)
    }

    /// Whether LIQ-PULL waits least of the decentralised.
    fn least(&self, of: Of) -> Option<bool> {
        let ours = self.wait(of, LIQ_PULL)?;
        let others: Option<Vec<f64>> = EVERYBODY[1..].iter().map(|&who| self.wait(of, who)).collect();
        Some(others?.into_iter().all(|wait| ours <= wait + TIE))
    }

    /// LIQ-PULL's wait over that of CENT, and whether it is near.
    fn beside_cent(&self, of: Of) -> Option<(f64, bool)> {
        let (ours, cent) = (self.wait(of, LIQ_PULL)?, self.wait(of, Who::Cent)?);
        Some((over(ours, cent), ours <= 1.5 * cent + 60.0))
    }
}

/// One over another; of two waits that are as good as none, one.
fn over(one: f64, other: f64) -> f64 {
    if one.abs() < TIE && other.abs() < TIE { 1.0 } else { one / other.max(TIE) }
}

fn tell(findings: &mut Findings, id: &str, judged: Option<(f64, bool)>) {
    let values: Vec<f64> = judged.iter().map(|(figure, _)| *figure).collect();
    findings.claim(id, &values, judged.map(|(_, holds)| holds));
}

pub fn judge(runs: &Runs, findings: &mut Findings) {
    let all = |holds: Option<Vec<bool>>| holds.map(|holds| holds.into_iter().all(|holds| holds));
    let best = all(LONG.iter().map(|&gap| runs.least(Of::Long(gap))).collect());
    let wait = runs.wait(Of::Long(LONG[0]), LIQ_PULL);
    tell(findings, "tri-pronged/beyond/long/best", wait.zip(best));
    let near = all(LONG.iter().map(|&gap| Some(runs.beside_cent(Of::Long(gap))?.1)).collect());
    let ratio = runs.beside_cent(Of::Long(LONG[0])).map(|(ratio, _)| ratio);
    tell(findings, "tri-pronged/beyond/long/near_cent", ratio.zip(near));
    tell(findings, "tri-pronged/beyond/light/push", light(runs));
    tell(
        findings,
        "tri-pronged/beyond/scale/messages",
        grown(runs, Way::Shortcuts, |seen| seen.messages, 0.0),
    );
    tell(findings, "tri-pronged/beyond/scale/wait", grown(runs, Way::Shortcuts, Seen::wait, TIE));
    let plain = grown(runs, Way::Neighbours, Seen::wait, TIE);
    tell(findings, "tri-pronged/beyond/scale/neighbours", plain);
    let wait = runs.wait(Of::Trace, LIQ_PULL);
    tell(findings, "tri-pronged/beyond/trace/best", wait.zip(runs.least(Of::Trace)));
    tell(findings, "tri-pronged/beyond/trace/near_cent", runs.beside_cent(Of::Trace));
    let said = |said: Said, figure: fn(&Seen) -> f64, most: f64| {
        let both: Option<Vec<f64>> = WITH_ESTIMATES
            .iter()
            .map(|&variant| {
                let who = Who::Nodes(variant);
                let without = runs.of(Of::Estimates(Said::Nothing), who, figure)?;
                Some(over(runs.of(Of::Estimates(said), who, figure)?, without))
            })
            .collect();
        let both = both?;
        Some((*both.last()?, both.iter().all(|ratio| *ratio < most), both))
    };
    let told = |judged: Option<(f64, bool, Vec<f64>)>| judged.map(|(ratio, holds, _)| (ratio, holds));
    tell(findings, "tri-pronged/beyond/estimates/exact", told(said(Said::Exact, Seen::wait, 1.0)));
    tell(findings, "tri-pronged/beyond/estimates/half", told(said(Said::Half, Seen::wait, 1.0)));
    tell(findings, "tri-pronged/beyond/estimates/wrong", told(said(Said::Wrong, Seen::wait, TENTH)));
    let longest: Option<Vec<f64>> = [Said::Exact, Said::Half, Said::Wrong]
        .into_iter()
        .map(|word| Some(said(word, Seen::longest, TENTH)?.2.into_iter().fold(0.0, f64::max)))
        .collect();
    let longest = longest.map(|ratios| ratios.into_iter().fold(0.0, f64::max));
    tell(findings, "tri-pronged/beyond/estimates/longest", longest.map(|most| (most, most <= TENTH)));
    let told = |judged: Option<(f64, f64)>| judged.map(|(ratio, most)| (ratio, most <= TENTH));
    tell(findings, "tri-pronged/beyond/dual/wait", told(dual(runs, Seen::wait)));
    tell(findings, "tri-pronged/beyond/dual/messages", told(dual(runs, |seen| seen.messages)));
}

/// A figure with a second CAN over that with balloons: of LIQ-PULL at the smallest gap, and the most of all.
fn dual(runs: &Runs, figure: fn(&Seen) -> f64) -> Option<(f64, f64)> {
    let ratio = |variant: Variant, gap: u32| {
        let of = |left: Left| runs.of(Of::Dual(left, gap), Who::Nodes(variant), figure);
        Some(over(of(Left::Dual)?, of(Left::Balloon)?))
    };
    let all = WITH_DUAL.iter().flat_map(|&variant| DUAL.map(|gap| ratio(variant, gap)));
    let most = all.collect::<Option<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
    Some((ratio(Variant::LiqPull, DUAL[0])?, most))
}

fn light(runs: &Runs) -> Option<(f64, bool)> {
    let pairs = [(Variant::LiPush, Variant::LiPull), (Variant::LiqPush, Variant::LiqPull)];
    let gains = LIGHT.iter().flat_map(|&gap| {
        pairs.map(|(push, pull)| {
            let wait = |variant| runs.wait(Of::Light(gap), Who::Nodes(variant));
            Some(wait(pull)? - wait(push)?)
        })
    });
    let gains: Vec<f64> = gains.collect::<Option<Vec<f64>>>()?;
    let shorter = gains.iter().filter(|gain| **gain >= TIE).count();
    Some((shorter as f64, gains.iter().all(|gain| *gain >= -TIE)))
}

fn grown(runs: &Runs, way: Way, figure: fn(&Seen) -> f64, slack: f64) -> Option<(f64, bool)> {
    let grids = runs.grids(way);
    let of = |nodes: &u32| runs.of(Of::Scale(way, *nodes), LIQ_PULL, figure);
    let (small, large) = (of(grids.first()?)?, of(grids.last()?)?);
    Some((over(large, small), large <= TENTH * small + slack))
}
