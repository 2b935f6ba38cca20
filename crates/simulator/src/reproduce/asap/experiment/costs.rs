//! Table I and figure 6: what push, pull and poll cost, and on grids of several sizes.

use shoal_protocols::scheduling::asap::Config;

use super::{Runs, of};
use crate::reproduce::asap::case::{Asap, Case, Jobs, Policy, Tries};
use crate::reproduce::asap::seen::Seen;
use crate::reproduce::asap::size::Size;
use crate::reproduce::finding::Findings;
use crate::reproduce::statistics::{by_seed, mean};
use crate::workload::Piece;

/// From which mean ratio on pull is an order of magnitude dearer than push.
const RATIO: f64 = 10.0;
/// At most this in the lowest tenth of bins is about as much; at least this in one bin is two orders of magnitude.
const RATIO_LOW: f64 = 2.0;
const RATIO_HIGH: f64 = 50.0;
/// How far costs per job on several grids may be apart, in percent.
const SCALE_OFF: f64 = 10.0;

/// Where the ids of a piece begin.
const PIECES: [(Piece, &str); 2] =
    [(Piece::Busiest, "asap/table1"), (Piece::Median, "asap/table1/median_day")];

pub fn table1_cases(size: &Size) -> Vec<Case> {
    let mut cases = Vec::new();
    for (piece, _) in PIECES {
        for policy in Policy::ALL {
            let with =
                |tries, seed| Case::asap(Jobs::Piece(piece), Asap { policy, tries, ..Asap::PAPER }, seed);
            cases.extend((1..=seeds(policy, size)).map(|seed| with(Tries::Several, seed)));
            cases.extend((1..=size.seeds_long).map(|seed| with(Tries::One, seed)));
        }
    }
    cases
}

/// Table I.
pub fn table1(runs: &Runs, findings: &mut Findings) {
    let size = &runs.size;
    let mut in_order = true;
    let mut pull_over_push = Vec::new();
    let mut each_pull_over_push = Vec::new();
    let mut failed = [false; Policy::ALL.len()];
    for (piece, group) in PIECES {
        let seen = |policy, tries, seeds| {
            let asap = Asap { policy, tries, ..Asap::PAPER };
            runs.each(seeds, |seed| Case::asap(Jobs::Piece(piece), asap, seed))
        };
        let (mut costs, mut each) = (Vec::new(), Vec::new());
        for (policy, failed) in Policy::ALL.into_iter().zip(&mut failed) {
            let all = seen(policy, Tries::Several, seeds(policy, size));
            let messages = of(&all, |seen| seen.messages as f64);
            let failures = of(&all, Seen::failures);
            let first = of(&seen(policy, Tries::One, size.seeds_long), Seen::failures);
            let id = |name: &str| format!("{group}/{}/{name}", policy.name());
            findings.figure(&id("messages"), &messages);
            findings.figure(&id("failures"), &failures);
            findings.figure(&id("failures_first_try"), &first);
            // Whether the paper tried again is not known: a policy fails if it does without.
            *failed |= failures.iter().chain(&first).any(|&share| share > 0.0);
            costs.push(mean(&messages).unwrap_or_default());
            each.push(messages);
        }
        let second = Config {
            policy: shoal_protocols::scheduling::asap::Policy::Pull,
            pull_counts_second_hop: true,
            ..Config::default()
        };
        let pulls = seen(Policy::Pull, Tries::Several, seeds(Policy::Pull, size));
        let second = of(&pulls, |seen| {
            let [first, .., last] = seen.carried.as_slice() else { return seen.messages as f64 };
            (last.cost(&second) - first.cost(&second)) as f64
        });
        findings.figure(&format!("{group}/pull/messages_second_hop"), &second);
        in_order &= costs.is_sorted_by(|less, more| less < more);
        pull_over_push.push(costs[1] / costs[0].max(1.0));
        each_pull_over_push.push(by_seed(&each[..2], |costs| costs[1] / costs[0].max(1.0)));
    }
    // The figure is how many times as dear as push the next one is, the lesser of the two days.
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let holds = in_order && failed == [false, false, true];
    let each = by_seed(&each_pull_over_push, least);
    findings.claim_of_means("asap/claim/push_cheapest", Some(least(&pull_over_push)), &each, Some(holds));
    let known = poll_known(runs);
    findings.claim("asap/claim/poll_known", &known, Some(known.iter().all(|&share| share == 1.0)));
}

/// What polls cost as a share of what is known beforehand, for each run.
fn poll_known(runs: &Runs) -> Vec<f64> {
    let size = &runs.size;
    let asap = Asap { policy: Policy::Poll, ..Asap::PAPER };
    let period_s = u64::from(Config::default().poll_period_ms) / 1_000;
    let polls = size.piece.as_secs() / period_s;
    let expected = u64::from(size.nodes) * u64::from(asap.degree) * polls;
    let of_piece = |piece| {
        let seen = runs.each(size.seeds_long, |seed| Case::asap(Jobs::Piece(piece), asap, seed));
        of(&seen, |seen| seen.messages as f64 / expected as f64)
    };
    [Piece::Busiest, Piece::Median].map(of_piece).concat()
}

/// Push and pull on these jobs.
pub fn pair_cases(jobs: Jobs, size: &Size) -> Vec<Case> {
    let with = |policy| {
        (1..=size.seeds_long).map(move |seed| Case::asap(jobs, Asap { policy, ..Asap::PAPER }, seed))
    };
    with(Policy::Push).chain(with(Policy::Pull)).collect()
}

/// Jobs that are narrow enough for pull to cost ten times as much as push: the generator's, which ask for three nodes
/// on average.
pub fn narrow(size: &Size) -> Jobs {
    if size.traced { Jobs::Narrow } else { Jobs::Original }
}

/// Figure 6.
pub fn fig6(runs: &Runs, findings: &mut Findings) {
    let pairs = pairs(runs, Jobs::Original);
    let each = |figure: fn(&[(f64, f64)]) -> Option<f64>| -> Vec<f64> {
        pairs.iter().filter_map(|(push, pull)| figure(&ratios(push, pull))).collect()
    };
    let means = each(|ratios| mean(&ratios.iter().map(|&(_, ratio)| ratio).collect::<Vec<_>>()));
    findings.claim("asap/fig6/ratio", &means, mean(&means).map(|ratio| ratio >= RATIO));
    let low = each(lowest_tenth);
    findings.claim("asap/fig6/ratio_low", &low, mean(&low).map(|ratio| ratio <= RATIO_LOW));
    let high = each(|ratios| ratios.iter().map(|&(_, ratio)| ratio).reduce(f64::max));
    findings.claim("asap/fig6/ratio_high", &high, mean(&high).map(|ratio| ratio >= RATIO_HIGH));
    let total = |of: fn(&Seen, &Seen) -> f64| -> Vec<f64> {
        pairs.iter().map(|(push, pull)| of(push, pull)).collect()
    };
    findings.figure(
        "asap/fig6/ratio_total",
        &total(|push, pull| pull.messages as f64 / push.messages.max(1) as f64),
    );
    findings.figure("asap/fig6/push", &total(|push, _| push.messages as f64));
    findings.figure("asap/fig6/pull", &total(|_, pull| pull.messages as f64));
}

/// Pull over push on narrow jobs.
pub fn push_vs_pull(runs: &Runs, findings: &mut Findings) {
    let pairs = pairs(runs, narrow(&runs.size));
    let means = pairs.iter().filter_map(|(push, pull)| {
        mean(&ratios(push, pull).into_iter().map(|(_, ratio)| ratio).collect::<Vec<_>>())
    });
    let means: Vec<f64> = means.collect();
    findings.claim("asap/claim/push_vs_pull", &means, mean(&means).map(|ratio| ratio >= RATIO));
}

fn pairs(runs: &Runs, jobs: Jobs) -> Vec<(&Seen, &Seen)> {
    let seen = |policy| {
        runs.each(runs.size.seeds_long, |seed| Case::asap(jobs, Asap { policy, ..Asap::PAPER }, seed))
    };
    seen(Policy::Push).into_iter().zip(seen(Policy::Pull)).collect()
}

/// Requested utilisation and pull over push of each bin in which jobs were placed.
fn ratios(push: &Seen, pull: &Seen) -> Vec<(f64, f64)> {
    let bins = push.ru().into_iter().zip(by_bin(push, pull));
    bins.filter(|(_, (push, _))| *push > 0)
        .map(|(ru, (push, pull))| (ru, pull as f64 / push as f64))
        .collect()
}

/// What push and pull carried in each bin of the trace.
pub fn by_bin(push: &Seen, pull: &Seen) -> Vec<(u64, u64)> {
    let pushed = push.carried.windows(2).map(|pair| pair[1].pushed - pair[0].pushed);
    let pulled = pull.carried.windows(2).map(|pair| pair[1].pulled - pair[0].pulled);
    pushed.zip(pulled).take(push.ru().len()).collect()
}

/// The mean ratio of the tenth of bins in which least is requested.
fn lowest_tenth(ratios: &[(f64, f64)]) -> Option<f64> {
    let mut ratios = ratios.to_vec();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    ratios.truncate(ratios.len().div_ceil(10));
    mean(&ratios.into_iter().map(|(_, ratio)| ratio).collect::<Vec<_>>())
}

pub fn scale_cases(size: &Size) -> Vec<Case> {
    let on =
        |nodes| (1..=size.seeds_scale).map(move |seed| Case::asap(Jobs::Spread(nodes), Asap::PAPER, seed));
    size.scales().into_iter().flat_map(on).collect()
}

/// Cost per job on four grids of equal load.
pub fn scale(runs: &Runs, findings: &mut Findings) {
    let (mut means, mut each) = (Vec::new(), Vec::new());
    for (nodes, name) in runs.size.scales().into_iter().zip(["x1", "x2", "x4", "x8"]) {
        let seen =
            runs.each(runs.size.seeds_scale, |seed| Case::asap(Jobs::Spread(nodes), Asap::PAPER, seed));
        let per_job = of(&seen, |seen| seen.messages as f64 / seen.jobs.len() as f64);
        findings.figure(&format!("asap/scale/{name}/messages_per_job"), &per_job);
        means.extend(mean(&per_job));
        each.push(per_job);
    }
    let apart = |costs: &[f64]| {
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = costs.iter().copied().fold(0.0, f64::max);
        100.0 * (most / least - 1.0)
    };
    let each = by_seed(&each, apart);
    let apart = apart(&means);
    findings.claim_of_means("asap/claim/scale_free_cost", Some(apart), &each, Some(apart <= SCALE_OFF));
}

fn seeds(policy: Policy, size: &Size) -> u64 {
    match policy {
        Policy::Push | Policy::Pull => size.seeds,
        Policy::Poll => size.seeds_long,
    }
}
