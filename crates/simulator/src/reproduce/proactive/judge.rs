//! What came of the runs, and what holds.

use std::collections::BTreeMap;

use super::case::{ALPHAS, Case, SIZES, SWEPT, Scene, Seen, Way};
use crate::reproduce::asap::number;
use crate::reproduce::finding::Findings;
use crate::reproduce::sheet::Sheet;
use crate::reproduce::statistics::mean;

/// All that was seen.
pub struct Runs {
    seen: BTreeMap<Case, Seen>,
    /// The sizes that ids name, and those that were really run.
    sizes: BTreeMap<(u32, u32), (u32, u32)>,
}

/// A variant's name, and the runs of it by its candidates for each node wanted.
type Named = (&'static str, fn(u8) -> Way);

/// The iterations after which ratios are told.
pub const AFTER: [usize; 3] = [3, 10, 20];
/// The paper's candidates for each node wanted.
pub const PAPER: u8 = 2;

impl Runs {
    pub fn new(seen: BTreeMap<Case, Seen>, run_size: impl Fn((u32, u32)) -> (u32, u32)) -> Runs {
        let sizes = seen.keys().map(|case| (case.size, run_size(case.size))).collect();
        Runs { seen, sizes }
    }

    /// What was seen of a run.
    pub fn seen(&self, case: Case) -> Option<&Seen> {
        self.seen.get(&case)
    }

    fn of(&self, size: (u32, u32), way: Way) -> Option<&Seen> {
        self.seen(Case { size, scene: Scene::Paper, way })
    }

    /// The size that was really run for one that an id names.
    pub fn run_size(&self, size: (u32, u32)) -> (u32, u32) {
        self.sizes.get(&size).copied().unwrap_or(size)
    }

    /// What somebody who knows everything finds: by the genetic algorithm, and at best.
    pub fn central(&self, size: (u32, u32)) -> (f64, f64) {
        self.of(size, Way::Central).and_then(|seen| seen.central).unwrap_or((f64::NAN, f64::NAN))
    }

    /// The ratio to the better centralised set after an iteration, from 1, of each query.
    pub fn ratios(&self, size: (u32, u32), way: Way, after: usize) -> Vec<f64> {
        let (_, best) = self.central(size);
        let courses = self.of(size, way).map(|seen| seen.courses.as_slice()).unwrap_or_default();
        let at =
            |course: &Vec<f64>| course.get(after.min(course.len()).wrapping_sub(1)).map(|cost| cost / best);
        courses.iter().filter_map(at).collect()
    }

    fn mean(&self, size: (u32, u32), way: Way, after: usize) -> f64 {
        mean(&self.ratios(size, way, after)).unwrap_or(f64::NAN)
    }

    /// How many iterations all queries went through.
    pub fn iterations(&self, size: (u32, u32)) -> usize {
        let both = [Way::Basic(PAPER), Way::Proactive(PAPER)];
        let courses = both.iter().filter_map(|&way| self.of(size, way)).flat_map(|seen| &seen.courses);
        courses.map(Vec::len).min().unwrap_or(0)
    }

    pub fn judge(&self, findings: &mut Findings) {
        self.figure_1(findings);
        self.traffic(findings);
        self.claims(findings);
        self.alphas(findings);
        for size in SIZES {
            let (genetic, best) = self.central(size);
            findings.figure(&format!("proactive/central_ga/{}", name(size)), &[genetic / best]);
            for (variant, way) in [("basic", Way::Basic(PAPER)), ("proactive", Way::Proactive(PAPER))] {
                for after in AFTER {
                    let id = format!("proactive/ratio/{}/{variant}/{after}", name(size));
                    findings.figure(&id, &self.ratios(size, way, after));
                }
            }
        }
    }

    fn figure_1(&self, findings: &mut Findings) {
        let (basic, proactive) = (Way::Basic(PAPER), Way::Proactive(PAPER));
        for size in SIZES {
            let iterations = self.iterations(size);
            let below = |after| self.mean(size, proactive, after) < self.mean(size, basic, after);
            let (above, beneath) = (self.ratios(size, basic, 20), self.ratios(size, proactive, 20));
            let over: Vec<f64> =
                above.iter().zip(&beneath).map(|(basic, proactive)| basic / proactive).collect();
            let holds = (iterations > 0).then(|| (1..=iterations).all(below));
            findings.claim(&format!("proactive/fig1/{}", name(size)), &over, holds);
        }
        let most =
            |of: &dyn Fn((u32, u32)) -> f64| SIZES.into_iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let late = most(&|size| self.mean(size, proactive, 3) / self.mean(size, proactive, 20));
        findings.claim("proactive/fig1/iterations", &[late], judged(late, late <= 1.2));
        let far = most(&|size| self.mean(size, proactive, 10));
        findings.claim("proactive/fig1/close_to_central", &[far], judged(far, far <= 1.2));
        let beside = most(&|size| {
            let (genetic, best) = self.central(size);
            self.mean(size, proactive, 10) * best / genetic
        });
        findings.claim("proactive/fig1/close_to_central_ga", &[beside], judged(beside, beside <= 1.2));
    }

    fn traffic(&self, findings: &mut Findings) {
        let bytes: Vec<f64> = SIZES
            .iter()
            .filter_map(|&size| self.of(size, Way::Proactive(PAPER)))
            .map(|seen| seen.bytes)
            .collect();
        let most = bytes.iter().copied().fold(0.0, f64::max);
        findings.claim("proactive/traffic", &bytes, judged(most, most > 0.0 && most <= 1_280.0));
    }

    fn claims(&self, findings: &mut Findings) {
        let basic = Way::Basic(PAPER);
        let courses: Vec<&Vec<f64>> =
            SIZES.iter().filter_map(|&size| self.of(size, basic)).flat_map(|seen| &seen.courses).collect();
        let sound = |course: &&Vec<f64>| {
            course.first().is_some_and(|cost| cost.is_finite())
                && course.windows(2).all(|pair| pair[1] <= pair[0])
        };
        let last: Vec<f64> = SIZES.iter().map(|&size| self.mean(size, basic, 20)).collect();
        let holds = (!courses.is_empty()).then(|| courses.iter().all(sound));
        findings.claim("proactive/claim/random_is_reasonable", &last, holds);

        let gap = |size| self.mean(size, basic, 20) - self.mean(size, Way::Proactive(PAPER), 20);
        let [small, wide_small, large, wide_large] = SIZES.map(gap);
        let grows = (large / small).min(wide_large / wide_small);
        findings.claim(
            "proactive/claim/scale",
            &[grows],
            judged(grows, large > small && wide_large > wide_small),
        );
    }

    fn alphas(&self, findings: &mut Findings) {
        if self.of(SWEPT, Way::Basic(ALPHAS[0])).is_none() {
            return;
        }
        let mut alphas = [ALPHAS[0], PAPER, ALPHAS[1]];
        alphas.sort_unstable();
        let ways: [Named; 2] = [("basic", Way::Basic), ("proactive", Way::Proactive)];
        let mut better = true;
        for (variant, way) in ways {
            for alpha in alphas {
                let id = format!("proactive/alpha/{alpha}/{variant}");
                findings.figure(&id, &self.ratios(SWEPT, way(alpha), 20));
                better &= self.mean(SWEPT, way(alpha), 20) <= self.mean(SWEPT, way(alpha), 10);
            }
            let means = alphas.map(|alpha| self.mean(SWEPT, way(alpha), 20));
            better &= means.windows(2).all(|pair| pair[1] < pair[0]);
        }
        let over = self.mean(SWEPT, Way::Proactive(4), 20) / self.mean(SWEPT, Way::Proactive(1), 20);
        findings.claim("proactive/claim/alpha", &[over], judged(over, better));
    }

    /// The ratios in a table.
    pub fn sheets(&self) -> Vec<Sheet> {
        let columns = ["grid x job", "genetic", "basic 3", "10", "20", "proactive 3", " 10", " 20"];
        let mut sheet = Sheet::new(
            "Cost beside the best known: genetic over all nodes; after 3, 10, 20 iterations",
            columns,
        );
        for size in SIZES.into_iter().filter(|&size| self.iterations(size) > 0) {
            let (genetic, best) = self.central(size);
            let of = |way: Way| AFTER.map(|after| number(self.mean(size, way, after)));
            let [b3, b10, b20] = of(Way::Basic(PAPER));
            let [p3, p10, p20] = of(Way::Proactive(PAPER));
            sheet.row([name(size), number(genetic / best), b3, b10, b20, p3, p10, p20]);
        }
        vec![sheet]
    }
}

/// No judgement where there is no figure.
pub fn judged(figure: f64, holds: bool) -> Option<bool> {
    figure.is_finite().then_some(holds)
}

/// A size as the paper's ids have it.
pub fn name((nodes, wanted): (u32, u32)) -> String {
    format!("{nodes}x{wanted}")
}
