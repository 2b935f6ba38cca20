//! Who waited how long: by width, by duration and by area of a job.

use std::collections::BTreeMap;

use super::super::picture::Picture;
use crate::measures::Record;
use crate::plot::{Axis, Figure, Layer, Unit};

/// Waits that differ by more than this many times are shown on a logarithmic scale.
const LOG_FROM: f64 = 20.0;

/// A picture for each property of a job.
pub fn pictures(jobs: &[Record]) -> Vec<Picture> {
    let seconds = |job: &Record| job.requested.as_secs().max(1);
    vec![
        picture(jobs, "width", Axis::new("nodes wanted").log(), 1, |job| job.width.into()),
        picture(jobs, "duration", Axis::new("requested time").unit(Unit::Time).log(), 1, seconds),
        picture(jobs, "area", Axis::new("node-seconds requested").log(), 2, |job| {
            u64::from(job.width) * seconds(job)
        }),
    ]
}

/// The figure that so many percent are at most: the nearest rank, always one that occurs.
pub fn quantile(values: &[f64], percent: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or_default()
}

/// An axis for waits: logarithmic where they differ much.
pub fn wait_axis(seconds: impl Iterator<Item = f64>) -> Axis {
    let positive = seconds.filter(|seconds| *seconds > 0.0);
    let (least, most) =
        positive.fold((f64::INFINITY, 0.0), |(least, most), one| (least.min(one), f64::max(most, one)));
    let axis = Axis::new("wait").unit(Unit::Time);
    match most {
        most if most > LOG_FROM * least => axis.log(),
        most if most > 0.0 => axis.bounds(0.0, most * 1.05),
        _ => axis,
    }
}

/// Waits over a property; a bin holds what is alike within `doublings` doublings.
fn picture(
    jobs: &[Record],
    property: &str,
    axis: Axis,
    doublings: u32,
    value: impl Fn(&Record) -> u64,
) -> Picture {
    let mut bins: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (job, wait) in jobs.iter().filter_map(|job| Some((job, job.wait()?))) {
        let value = value(job).max(1);
        let (values, waits) = bins.entry(value.ilog2() / doublings).or_default();
        values.push(value as f64);
        waits.push(wait.as_secs_f64());
    }
    let line = |percent: usize| {
        let point = |(values, waits): &(Vec<f64>, Vec<f64>)| (quantile(values, 50), quantile(waits, percent));
        bins.values().map(point).collect::<Vec<_>>()
    };
    let (median, most) = (line(50), line(95));
    let wait = wait_axis(median.iter().chain(&most).map(|point| point.1));
    let figure = Figure::new(format!("Wait by {property}"), axis, wait)
        .with(Layer::line("median", median))
        .with(Layer::line("95 % at most", most));
    let times = 1 << doublings;
    let caption = format!("Jobs whose {property} differs by less than {times} times share a mark.");
    Picture::figure(&format!("wait-by-{property}"), caption, figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_figures_that_occur() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((quantile(&values, 50), quantile(&values, 95)), (50.0, 95.0));
        assert_eq!((quantile(&[7.0], 95), quantile(&[], 50)), (7.0, 0.0));
    }
}
