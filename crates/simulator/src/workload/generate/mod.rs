//! Jobs drawn by chance, where no trace is at hand or none has the shape that is wanted.
//!
//! Arrivals, widths and lengths each have their own stream of the seed: changing how one is drawn leaves the others
//! as they were. The same seed gives the same jobs.

mod aria;
pub(crate) mod desktop;
mod grid5000_like;
mod lublin;
mod poisson;
mod uniform;

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shoal_model::{Span, Time};

pub use aria::AriaLike;
pub use desktop::Desktop;
pub use grid5000_like::Grid5000Like;
pub use lublin::Lublin;
pub use poisson::Poisson;
pub use uniform::Uniform;

use super::error::WorkloadError;
use super::{Cleaning, JOBS_MAX, Label, Names, Provenance, TraceJob, Workload};

/// The stream of chance that a seed has for one purpose.
pub(crate) fn stream(seed: u64, purpose: &str) -> Xoshiro256PlusPlus {
    // FNV-1a: streams of one seed differ by purpose, and stay what they are when others are added.
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    Xoshiro256PlusPlus::seed_from_u64(seed ^ hash)
}

/// The error about a setting.
pub(crate) fn setting(setting: &'static str, why: impl Into<String>) -> WorkloadError {
    WorkloadError::Setting { setting, why: why.into() }
}

/// A job that nobody in particular submits.
fn job(index: usize, submit_secs: f64, width: u32, run_secs: f64, requested_secs: f64) -> TraceJob {
    TraceJob {
        submit: Time::ZERO + span(submit_secs),
        run: span(run_secs),
        requested: span(requested_secs),
        id: index as i64 + 1,
        memory_kib: None,
        width,
        user: Label::UNKNOWN,
        group: Label::UNKNOWN,
        partition: Label::UNKNOWN,
    }
}

/// Jobs in order of submission as a workload; without a span it ends with the last submission.
fn workload(name: &str, seed: u64, nodes: u32, span: Option<Span>, jobs: Vec<TraceJob>) -> Workload {
    let last = jobs.last().map_or(Span::ZERO, |job| job.submit.since(Time::ZERO));
    let provenance =
        Provenance { source: format!("generator {name}"), seed: Some(seed), ..Provenance::default() };
    let (names, cleaning, profiles) = (Names::default(), Cleaning::default(), Vec::new());
    Workload { span: span.unwrap_or(last), jobs, nodes, names, provenance, cleaning, profiles }
}

fn span(secs: f64) -> Span {
    Span::from_micros((secs * 1e6).round() as u64)
}

fn between<R: Rng>(rng: &mut R, [low, high]: [f64; 2]) -> f64 {
    low + (high - low) * rng.random::<f64>()
}

fn check_jobs(jobs: usize) -> Result<(), WorkloadError> {
    match jobs {
        1..=JOBS_MAX => Ok(()),
        0 => Err(setting("jobs", "at least one job is needed")),
        _ => Err(setting("jobs", format!("more than {JOBS_MAX} jobs are too many"))),
    }
}

fn check_width([low, high]: [u32; 2], nodes: u32) -> Result<(), WorkloadError> {
    if low == 0 || low > high {
        return Err(setting("width", format!("[{low}, {high}] is no range of nodes")));
    }
    if high > nodes {
        return Err(setting("width", format!("{high} nodes are more than the {nodes} of the grid")));
    }
    Ok(())
}

fn check_range(name: &'static str, [low, high]: [f64; 2], least: f64) -> Result<(), WorkloadError> {
    if low >= least && low <= high && high <= 1e9 {
        return Ok(());
    }
    Err(setting(name, format!("[{low}, {high}] is no range of seconds from {least} to 10^9")))
}

fn check_overestimate(factor: f64) -> Result<(), WorkloadError> {
    if (1.0..=1e6).contains(&factor) {
        return Ok(());
    }
    Err(setting("overestimate", format!("{factor} is no factor from 1 to 10^6")))
}

/// What users ask for who know their run times exactly.
fn exact() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_and_by_purpose() {
        let draw = |seed, purpose| stream(seed, purpose).random::<u64>();
        assert_eq!(draw(1, "widths"), draw(1, "widths"));
        assert_ne!(draw(1, "widths"), draw(2, "widths"));
        assert_ne!(draw(1, "widths"), draw(1, "lengths"));
    }
}
