//! Lublin and Feitelson's model of rigid jobs (2003): widths that like powers of two, lengths that depend on
//! widths, arrivals that follow the working day.
//!
//! Parameters and steps are those of the authors' `m_lublin99.c`; its table is for 128 nodes, and other sizes shift
//! the logarithms of the widths. Kept between arrivals, as the authors do: the points left over in a half hour.
//! Chosen by us: users ask for 1.1 times the run time. With two types of jobs, the partition tells them apart
//! (1 batch, 2 interactive).

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};

use super::{check_jobs, check_overestimate, job, setting, stream, workload};
use crate::workload::{Change, Label, TraceJob, Workload, WorkloadError};

/// Half hours of a day.
const BUCKETS: usize = 48;
const BUCKET_SECS: f64 = 1_800.0;
/// The largest logarithm of a run time: about 45 hours.
const LN_RUN_MAX: f64 = 12.0;
/// The largest logarithm of a gap.
const LN_GAP_MAX: f64 = 13.0;
/// log2 of the machine that the table was fitted for.
const TABLE_LOG2_NODES: f64 = 7.0;
/// Below this the two stages of the widths have no room.
const NODES_MIN: u32 = 16;

/// Jobs after Lublin and Feitelson.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lublin {
    /// Nodes of the grid.
    pub nodes: u32,
    /// Jobs to draw.
    pub jobs: usize,
    /// The widest job; the whole grid if not said.
    #[serde(default)]
    pub widest: Option<u32>,
    /// Whether batch and interactive jobs arrive in two streams.
    #[serde(default)]
    pub types: bool,
    /// How many times the run time users ask for.
    #[serde(default = "usual_overestimate")]
    pub overestimate: f64,
    /// What to do to the jobs once drawn.
    #[serde(default)]
    pub change: Change,
}

/// One column of the model's table.
struct Table {
    serial: f64,
    pow2: f64,
    /// Low, medium, high and probability of the two-stage uniform of log2(width), for 128 nodes.
    log2_width: [f64; 4],
    /// Shape and scale of the two gammas of ln(run time).
    ln_run: [(f64, f64); 2],
    /// Slope and offset of the probability of the first gamma, by width.
    first: (f64, f64),
    /// Shape and scale of the gamma of ln(gap) in the rush hour.
    ln_gap: (f64, f64),
    /// Factor on the shape above for all hours.
    all_hours: f64,
    /// Shape and scale of the gamma of the daily cycle.
    cycle: (f64, f64),
}

const ALL: Table = Table {
    serial: 0.244,
    pow2: 0.576,
    log2_width: [0.8, 4.5, 7.0, 0.86],
    ln_run: [(4.2, 0.94), (312.0, 0.03)],
    first: (-0.0054, 0.78),
    ln_gap: (10.2303, 0.4871),
    all_hours: 1.0225,
    cycle: (8.1737, 3.9631),
};

const BATCH: Table = Table {
    serial: 0.2927,
    pow2: 0.6686,
    log2_width: [1.2, 5.0, 7.0, 0.875],
    ln_run: [(6.57, 0.823), (639.1, 0.0156)],
    first: (-0.003, 0.6986),
    ln_gap: (6.0415, 0.8531),
    all_hours: 1.0519,
    cycle: (6.1271, 5.2740),
};

const INTERACTIVE: Table = Table {
    serial: 0.1541,
    pow2: 0.625,
    log2_width: [1.0, 3.0, 5.5, 0.705],
    ln_run: [(3.8351, 0.6605), (7.073, 0.6856)],
    first: (-0.0118, 0.9156),
    ln_gap: (6.5510, 0.6621),
    all_hours: 0.9797,
    cycle: (8.9186, 3.6680),
};

impl Lublin {
    /// Draws the jobs; changes are left to [`Source::load`](crate::workload::Source::load).
    pub fn generate(&self, seed: u64) -> Result<Workload, WorkloadError> {
        check_jobs(self.jobs)?;
        check_overestimate(self.overestimate)?;
        let widest = self.widest.unwrap_or(self.nodes);
        if widest < NODES_MIN || widest > self.nodes {
            let why = format!("{widest} is not between {NODES_MIN} and the {} nodes of the grid", self.nodes);
            return Err(setting(if self.widest.is_some() { "widest" } else { "nodes" }, why));
        }

        let mut kinds = match self.types {
            false => vec![Kind::new(&ALL, seed, "lublin/all", widest, Label::UNKNOWN)],
            true => vec![
                Kind::new(&BATCH, seed, "lublin/batch", widest, Label::new(1)),
                Kind::new(&INTERACTIVE, seed, "lublin/interactive", widest, Label::new(2)),
            ],
        };
        let mut jobs = Vec::with_capacity(self.jobs);
        for index in 0..self.jobs {
            // The stream whose next arrival is earlier; batch first at a tie.
            let earlier =
                |best: usize, other: usize| if kinds[other].next < kinds[best].next { other } else { best };
            let kind = (0..kinds.len()).fold(0, earlier);
            jobs.push(kinds[kind].take(index, self.overestimate));
        }
        Ok(workload("lublin", seed, self.nodes, None, jobs))
    }
}

fn usual_overestimate() -> f64 {
    1.1
}

/// One stream of jobs.
struct Kind<R> {
    table: &'static Table,
    widths: Widths,
    arrivals: Arrivals,
    label: Label,
    /// When the next job arrives, seconds.
    next: f64,
    arrival_rng: R,
    width_rng: R,
    run_rng: R,
}

impl Kind<rand_xoshiro::Xoshiro256PlusPlus> {
    fn new(table: &'static Table, seed: u64, name: &str, widest: u32, label: Label) -> Self {
        let [mut arrival_rng, width_rng, run_rng] =
            ["gaps", "widths", "lengths"].map(|purpose| stream(seed, &format!("{name}/{purpose}")));
        let mut arrivals = Arrivals::new(table);
        let next = arrivals.next(&mut arrival_rng);
        let widths = Widths::new(table, widest);
        Kind { table, widths, arrivals, label, next, arrival_rng, width_rng, run_rng }
    }

    fn take(&mut self, index: usize, overestimate: f64) -> TraceJob {
        let width = self.widths.draw(&mut self.width_rng);
        // Rounded to seconds as in every log; nothing runs for no time.
        let run = draw_ln_run(self.table, width, &mut self.run_rng).exp().round().max(1.0);
        let drawn = job(index, self.next, width, run, run * overestimate);
        self.next = self.arrivals.next(&mut self.arrival_rng);
        TraceJob { partition: self.label, ..drawn }
    }
}

struct Widths {
    serial: f64,
    pow2: f64,
    low: f64,
    medium: f64,
    high: f64,
    low_share: f64,
    widest: u32,
}

impl Widths {
    fn new(table: &Table, widest: u32) -> Widths {
        let [low, medium, high, low_share] = table.log2_width;
        let shift = f64::from(widest).log2() - TABLE_LOG2_NODES;
        let medium = (medium + shift).max(low);
        let high = (high + shift).max(medium);
        Widths { serial: table.serial, pow2: table.pow2, low, medium, high, low_share, widest }
    }

    fn draw<R: Rng>(&self, rng: &mut R) -> u32 {
        let kind: f64 = rng.random();
        let (stage, place): (f64, f64) = (rng.random(), rng.random());
        if kind <= self.serial {
            return 1;
        }
        let (from, to) =
            if stage <= self.low_share { (self.low, self.medium) } else { (self.medium, self.high) };
        let mut log2 = from + (to - from) * place;
        if kind <= self.serial + self.pow2 {
            log2 = log2.round();
        }
        (log2.exp2().round() as u32).min(self.widest)
    }
}

fn draw_ln_run<R: Rng>(table: &Table, width: u32, rng: &mut R) -> f64 {
    let (slope, offset) = table.first;
    let first = (slope * f64::from(width) + offset).clamp(0.0, 1.0);
    loop {
        let (shape, scale) = table.ln_run[usize::from(rng.random::<f64>() > first)];
        let drawn = gamma(shape, scale).sample(rng);
        if drawn <= LN_RUN_MAX {
            return drawn;
        }
    }
}

/// Arrivals by points: a half hour of the rush costs more of them than one of the night.
struct Arrivals {
    ln_gap: Gamma<f64>,
    weights: [f64; BUCKETS],
    /// Half hours gone by since the start, at midnight.
    bucket: usize,
    /// Points spent in the current half hour.
    points: f64,
}

impl Arrivals {
    fn new(table: &Table) -> Arrivals {
        let (shape, scale) = table.ln_gap;
        let ln_gap = gamma(shape * table.all_hours, scale);
        Arrivals { ln_gap, weights: bucket_weights(table), bucket: 0, points: 0.0 }
    }

    /// The next arrival, in seconds since the start.
    fn next<R: Rng>(&mut self, rng: &mut R) -> f64 {
        let ln_gap = loop {
            let drawn = self.ln_gap.sample(rng);
            if drawn <= LN_GAP_MAX {
                break drawn;
            }
        };
        self.points += ln_gap.exp() / BUCKET_SECS;
        while self.points > self.weights[self.bucket % BUCKETS] {
            self.points -= self.weights[self.bucket % BUCKETS];
            self.bucket += 1;
        }
        let part = self.points / self.weights[self.bucket % BUCKETS];
        BUCKET_SECS * (self.bucket as f64 + part)
    }
}

/// What each half hour of the day weighs; 1 on average.
fn bucket_weights(table: &Table) -> [f64; BUCKETS] {
    let (shape, scale) = table.cycle;
    let mut weights = [0.0; BUCKETS];
    for bucket in 11..=58_u8 {
        let at = |edge: f64| lower_gamma(shape, edge / scale);
        let middle = f64::from(bucket);
        weights[usize::from(bucket - 1) % BUCKETS] = at(middle + 0.5) - at(middle - 0.5);
    }
    let mean = weights.iter().sum::<f64>() / BUCKETS as f64;
    weights.map(|weight| weight / mean)
}

fn gamma(shape: f64, scale: f64) -> Gamma<f64> {
    Gamma::new(shape, scale).expect("the table's shapes and scales are positive")
}

/// The lower incomplete gamma function, by its series: the gamma distribution up to a factor that the weights,
/// divided by their mean, do not need.
fn lower_gamma(shape: f64, x: f64) -> f64 {
    let mut term = 1.0 / shape;
    let mut sum = term;
    let mut next = shape;
    while term > sum * 1e-16 {
        next += 1.0;
        term *= x / next;
        sum += term;
    }
    sum * (shape * x.ln() - x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LUBLIN: Lublin = Lublin {
        nodes: 128,
        jobs: 40_000,
        widest: None,
        types: false,
        overestimate: 1.1,
        change: Change {
            filter: None,
            window: None,
            scale_to_nodes: None,
            jitter_secs: None,
            utilisation: None,
        },
    };

    fn share(jobs: &[TraceJob], holds: impl Fn(&TraceJob) -> bool) -> f64 {
        jobs.iter().filter(|job| holds(job)).count() as f64 / jobs.len() as f64
    }

    #[test]
    fn widths_have_the_shares_of_the_table() {
        let jobs = LUBLIN.generate(1).unwrap().jobs;
        let serial = share(&jobs, |job| job.width == 1);
        assert!((serial - 0.244).abs() < 0.01, "{serial}");
        let power = share(&jobs, |job| job.width.is_power_of_two());
        assert!(power > 0.244 + 0.576 - 0.01, "{power}");
        assert!(jobs.iter().all(|job| job.width <= 128));
    }

    #[test]
    fn widths_follow_the_machine() {
        for (nodes, widest) in [(16, None), (100, None), (5_000, Some(400)), (5_000, None)] {
            let jobs = Lublin { nodes, widest, jobs: 20_000, ..LUBLIN }.generate(2).unwrap().jobs;
            let most = jobs.iter().map(|job| job.width).max().unwrap();
            let limit = widest.unwrap_or(nodes);
            assert!(most <= limit && most > limit / 2, "{most} of {limit}");
        }
        assert!(Lublin { nodes: 8, ..LUBLIN }.generate(1).is_err());
        assert!(Lublin { widest: Some(129), ..LUBLIN }.generate(1).is_err());
    }

    #[test]
    fn no_run_is_longer_than_the_cut() {
        let jobs = LUBLIN.generate(1).unwrap().jobs;
        assert!(jobs.iter().all(|job| job.run.as_secs_f64() <= 12_f64.exp().round()));
        assert!(jobs.iter().all(|job| job.run.as_secs() >= 1));
        let longest = jobs.iter().map(|job| job.run.as_secs()).max().unwrap();
        assert!(longest > 80_000, "{longest}");
    }

    #[test]
    fn mean_logarithm_of_serial_runs_is_that_of_the_mixture() {
        let mut rng = stream(1, "test");
        let p = -0.0054 + 0.78;
        let expected = p * 4.2 * 0.94 + (1.0 - p) * 312.0 * 0.03;
        let draws = 100_000;
        let mean = (0..draws).map(|_| draw_ln_run(&ALL, 1, &mut rng)).sum::<f64>() / f64::from(draws);
        // The cut at 12 takes off 3 in 1000 draws of the first gamma.
        assert!((mean - expected).abs() < 0.06, "{mean} {expected}");
    }

    #[test]
    fn wide_jobs_run_longer() {
        let jobs = LUBLIN.generate(1).unwrap().jobs;
        let long = |wide: bool| {
            let chosen: Vec<_> = jobs.iter().copied().filter(|job| (job.width > 64) == wide).collect();
            share(&chosen, |job| job.run.as_secs() > 3_600)
        };
        assert!(long(true) > long(false) + 0.1, "{} {}", long(true), long(false));
    }

    #[test]
    fn busiest_half_hour_is_in_working_hours() {
        for types in [false, true] {
            let jobs = Lublin { types, ..LUBLIN }.generate(1).unwrap().jobs;
            let mut counts = [0; BUCKETS];
            for job in &jobs {
                counts[(job.submit.as_secs() / 1_800) as usize % BUCKETS] += 1;
            }
            let busiest = (0..BUCKETS).max_by_key(|&bucket| counts[bucket]).unwrap();
            assert!((16..36).contains(&busiest), "{busiest} {counts:?}");
            assert!(counts[busiest] > 3 * counts[8], "{counts:?}");
        }
    }

    #[test]
    fn weights_average_to_one_and_cover_the_day() {
        for table in [&ALL, &BATCH, &INTERACTIVE] {
            let weights = bucket_weights(table);
            assert!((weights.iter().sum::<f64>() - 48.0).abs() < 1e-9);
            assert!(weights.iter().all(|&weight| weight > 0.0));
        }
    }

    #[test]
    fn lower_gamma_agrees_with_closed_forms() {
        assert!((lower_gamma(1.0, 2.0) - (1.0 - (-2_f64).exp())).abs() < 1e-12);
        assert!((lower_gamma(3.0, 3.0) - 2.0 * (1.0 - 8.5 * (-3_f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn both_types_arrive_and_keep_their_labels() {
        let jobs = Lublin { types: true, ..LUBLIN }.generate(1).unwrap().jobs;
        let interactive: Vec<_> = jobs.iter().copied().filter(|job| job.partition == Label::new(2)).collect();
        assert!(jobs.is_sorted_by_key(|job| job.submit));
        assert!(
            (0.1..0.9).contains(&(interactive.len() as f64 / jobs.len() as f64)),
            "{}",
            interactive.len()
        );
        let serial = share(&interactive, |job| job.width == 1);
        assert!((serial - 0.1541).abs() < 0.015, "{serial}");
    }

    #[test]
    fn seed_alone_decides() {
        let small = Lublin { jobs: 500, ..LUBLIN };
        assert_eq!(small.generate(3).unwrap(), small.generate(3).unwrap());
        assert_ne!(small.generate(3).unwrap().jobs, small.generate(4).unwrap().jobs);
    }
}
