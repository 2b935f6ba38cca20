//! Figure 4: requested and effective utilisation over time, and what the paper says of them.

use super::{Runs, of, of_some};
use crate::reproduce::asap::case::Jobs;
use crate::reproduce::asap::seen::Seen;
use crate::reproduce::finding::Findings;
use crate::reproduce::statistics::mean;

/// Below this requested utilisation nobody should be delayed, in percent.
const EASY: f64 = 60.0;
/// Month 2.2 of 2.7, in days of the 82.
const QUIET_SHARE: f64 = 66.0 / 82.0;
/// How far effective may be from requested utilisation where little is requested.
const GAP_MAX: f64 = 5.0;
/// Where effective utilisation is to stay while more than all is requested.
const PLATEAU: std::ops::RangeInclusive<f64> = 85.0..=100.0;
const MONTH_DAYS: f64 = 30.0;

/// Figure 4a.
pub fn fig4a(runs: &Runs, findings: &mut Findings) {
    let seen = runs.paper(Jobs::Original);
    findings.figure("asap/fig4a/mean_ru", &of(&seen, Seen::mean_ru));
    findings.figure("asap/fig4a/wt", &of(&seen, Seen::wait));
    findings.figure("asap/fig4a/tail", &of(&seen, Seen::tail_hours));
    let before = of(&seen, |seen| most(&quiet_and_late(seen).0));
    let after = of(&seen, |seen| most(&quiet_and_late(seen).1));
    findings.claim("asap/fig4a/ru_before_2.2", &before, mean(&before).map(|most| most < EASY));
    findings.claim("asap/fig4a/ru_after_2.2", &after, mean(&after).map(|most| most > 100.0));

    let gaps = of_some(&seen, gap);
    let delayed: Vec<f64> = of_some(&seen, |seen| Some(delayed(seen, true)? - delayed(seen, false)?));
    // Without a bin above 60 % there is nothing to compare with.
    let holds = mean(&gaps).zip(mean(&delayed)).map(|(gap, more)| gap < GAP_MAX && more > 0.0);
    findings.claim("asap/claim/eu_follows_ru", &gaps, holds);
}

/// Figure 4b.
pub fn fig4b(runs: &Runs, findings: &mut Findings) {
    let seen = runs.paper(Jobs::Compressed);
    findings.figure("asap/fig4b/mean_ru", &of(&seen, Seen::mean_ru));
    let months = |seen: &Seen| seen.span.as_secs_f64() / 86_400.0 / MONTH_DAYS;
    findings.figure("asap/fig4b/length", &of(&seen, months));
    findings.figure("asap/fig4b/wt", &of(&seen, Seen::wait));
    findings.figure("asap/fig4b/tail", &of(&seen, Seen::tail_hours));
    let level = of_some(&seen, |seen| mean(&plateau(seen)));
    findings.claim("asap/fig4b/eu_plateau", &level, mean(&level).map(|mean| PLATEAU.contains(&mean)));
    let least = of_some(&seen, |seen| plateau(seen).into_iter().reduce(f64::min));
    findings.claim("asap/claim/eu_plateau", &least, mean(&least).map(|least| PLATEAU.contains(&least)));
}

/// What is left to do after the last submission.
pub fn tail(runs: &Runs, findings: &mut Findings) {
    let original = of(&runs.paper(Jobs::Original), Seen::tail_hours);
    let compressed = of(&runs.paper(Jobs::Compressed), Seen::tail_hours);
    let more: Vec<f64> = compressed.iter().zip(&original).map(|(long, short)| long - short).collect();
    let left = original.iter().chain(&compressed).all(|&tail| tail > 0.0);
    findings.claim("asap/claim/tail", &more, mean(&more).map(|more| left && more > 0.0));
}

/// Requested utilisation up to month 2.2, and after it.
fn quiet_and_late(seen: &Seen) -> (Vec<f64>, Vec<f64>) {
    let ru = seen.ru();
    let quiet = (seen.span.as_secs_f64() * QUIET_SHARE / seen.bin.as_secs_f64()).round() as usize;
    let (before, after) = ru.split_at(quiet.min(ru.len()));
    (before.to_vec(), after.to_vec())
}

/// The mean gap between effective and requested utilisation in bins that request less than 60 %.
fn gap(seen: &Seen) -> Option<f64> {
    let bins = seen.ru().into_iter().zip(seen.eu());
    let gaps: Vec<f64> = bins.filter(|(ru, _)| *ru < EASY).map(|(ru, eu)| (eu - ru).abs()).collect();
    mean(&gaps)
}

/// The share of jobs that are delayed, among those of bins above 60 % or of the others.
fn delayed(seen: &Seen, above: bool) -> Option<f64> {
    let ru = seen.ru();
    let jobs = seen.jobs.iter().filter(|job| (ru[seen.bin_of(job.due)] > EASY) == above);
    let waits: Vec<f64> =
        jobs.filter_map(|job| job.wait()).map(|wait| f64::from(u8::from(wait > 0.0))).collect();
    mean(&waits)
}

/// Effective utilisation of the bins that request more than there is.
fn plateau(seen: &Seen) -> Vec<f64> {
    seen.ru().into_iter().zip(seen.eu()).filter(|(ru, _)| *ru > 100.0).map(|(_, eu)| eu).collect()
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
