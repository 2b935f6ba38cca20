//! Figure 5: who waits for how long on the compressed trace.

use super::{Runs, of, of_some};
use crate::reproduce::asap::case::Jobs;
use crate::reproduce::asap::seen::{Job, Seen};
use crate::reproduce::finding::Findings;
use crate::reproduce::statistics::{mean, spearman};

/// From which rank correlation on waits grow with the nodes asked for, and up to which they do not with the time.
const GROWS: f64 = 0.3;
const FLAT: f64 = 0.1;

/// Figure 5.
pub fn fig5(runs: &Runs, findings: &mut Findings) {
    let seen = runs.paper(Jobs::Compressed);
    findings.figure("asap/fig5/wt_mean", &of(&seen, Seen::wait));
    findings.figure("asap/fig5/wt_median", &of(&seen, Seen::median_wait));
    let delayed = |seen: &Seen| seen.share(|job| job.wait().is_some_and(|wait| wait > 0.0));
    findings.figure("asap/fig5/delayed", &of(&seen, delayed));

    let with_ru = of_some(&seen, |seen| {
        let bins = seen.ru().into_iter().zip(seen.wait_by_bin());
        spearman(&bins.filter_map(|(ru, wait)| Some((ru, wait?))).collect::<Vec<_>>())
    });
    findings.claim("asap/claim/wt_follows_ru", &with_ru, mean(&with_ru).map(|rank| rank > 0.0));
    let by = |figure: fn(&Job) -> f64| of_some(&seen, |seen| spearman(&seen.with_wait(figure)));
    let with_n = by(nodes);
    findings.claim("asap/claim/wt_grows_with_n", &with_n, mean(&with_n).map(|rank| rank > GROWS));
    let with_s = by(length);
    findings.claim("asap/claim/wt_not_with_s", &with_s, mean(&with_s).map(|rank| rank.abs() < FLAT));
    let with_ns = by(area);
    findings.claim("asap/claim/wt_grows_with_ns", &with_ns, mean(&with_ns).map(|rank| rank > 0.0));
    let at_once = of_some(&seen, large_at_once);
    findings.claim("asap/claim/large_without_delay", &at_once, mean(&at_once).map(|share| share > 0.0));
}

fn nodes(job: &Job) -> f64 {
    f64::from(job.width)
}

fn length(job: &Job) -> f64 {
    job.requested.as_secs_f64()
}

fn area(job: &Job) -> f64 {
    nodes(job) * length(job)
}

/// Of the largest tenth of jobs, the share that starts when due, in percent.
fn large_at_once(seen: &Seen) -> Option<f64> {
    let mut jobs = seen.with_wait(area);
    jobs.sort_by(|one, other| other.0.total_cmp(&one.0));
    jobs.truncate((jobs.len() / 10).max(1));
    let at_once: Vec<f64> = jobs.iter().map(|&(_, wait)| if wait == 0.0 { 100.0 } else { 0.0 }).collect();
    mean(&at_once)
}
