//! The few statistics that claims are judged by.

use serde::Serialize;

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; beyond, those of the normal distribution.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL95: f64 = 1.960;

/// How far a figure varies from seed to seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many seeds.
    pub seeds: usize,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The standard deviation, with n − 1.
    pub sd: f64,
    /// Where the mean lies with 95 % confidence, by Student's t.
    pub ci95: [f64; 2],
}

/// A figure of several variants for each seed alone: `rows` has the values of one variant by seed.
pub fn by_seed(rows: &[Vec<f64>], figure: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let seeds = rows.iter().map(Vec::len).min().unwrap_or(0);
    (0..seeds).map(|seed| figure(&rows.iter().map(|row| row[seed]).collect::<Vec<f64>>())).collect()
}

impl Spread {
    /// The spread of a figure over seeds; one seed has none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let seeds = values.len();
        if seeds < 2 {
            return None;
        }
        let mean = mean(values)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = (squares / (seeds - 1) as f64).sqrt();
        let reach = T95.get(seeds - 2).copied().unwrap_or(NORMAL95) * sd / (seeds as f64).sqrt();
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Spread { seeds, min, max, sd, ci95: [mean - reach, mean + reach] })
    }
}

/// The mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median: the mean of the two in the middle where there are two; none of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

/// Spearman's rank correlation, ties sharing their mean rank; none where one side never varies.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    pearson(&ranks(&xs), &ranks(&ys))
}

fn pearson(xs: &[f64], ys: &[f64]) -> Option<f64> {
    let (x_mean, y_mean) = (mean(xs)?, mean(ys)?);
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in xs.iter().zip(ys) {
        let (x, y) = (x - x_mean, y - y_mean);
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

/// The rank of each value, from 1; equal ones share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|&one, &other| values[one] == values[other]) {
        let shared = before as f64 + (equal.len() + 1) as f64 / 2.0;
        for &place in equal {
            ranks[place] = shared;
        }
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_of_several_variants_is_made_for_each_seed_that_all_of_them_have() {
        let rows = [vec![1.0, 2.0, 3.0], vec![10.0, 40.0]];
        assert_eq!(by_seed(&rows, |column| column[1] / column[0]), [10.0, 20.0]);
        assert!(by_seed(&[], |_| 0.0).is_empty());
    }

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(ranks(&[10.0, 20.0, 20.0, 5.0, 20.0]), [2.0, 4.0, 4.0, 1.0, 4.0]);
    }

    #[test]
    fn spearman_is_that_of_a_hand() {
        // Ranks of y are 2 1 4 3 5: d² sums to 4, and 1 − 6·4/(5·24) = 0.8.
        let pairs = [(1.0, 20.0), (2.0, 10.0), (3.0, 40.0), (4.0, 30.0), (5.0, 500.0)];
        assert!((spearman(&pairs).unwrap() - 0.8).abs() < 1e-12);
        let down = pairs.map(|(x, _)| (x, -x.powi(3)));
        assert!((spearman(&down).unwrap() + 1.0).abs() < 1e-12);
        // With ties: ranks 1.5 1.5 3 and 1 2.5 2.5; covariance 0.75, variances 1.5 each.
        let tied = [(1.0, 1.0), (1.0, 2.0), (2.0, 2.0)];
        assert!((spearman(&tied).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(spearman(&[(1.0, 3.0), (2.0, 3.0)]), None);
        assert_eq!(spearman(&[]), None);
    }

    #[test]
    fn medians_are_those_of_a_hand() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn spread_is_that_of_a_hand() {
        // Mean 4, squares 4 + 0 + 4: standard deviation 2; 4.303 · 2 / √3 = 4.9687.
        let spread = Spread::of(&[2.0, 4.0, 6.0]).unwrap();
        assert_eq!((spread.min, spread.max, spread.sd), (2.0, 6.0, 2.0));
        assert!(
            (spread.ci95[0] + 0.9687).abs() < 1e-3 && (spread.ci95[1] - 8.9687).abs() < 1e-3,
            "{spread:?}"
        );
        assert_eq!(Spread::of(&[1.0]), None);
        let many = Spread::of(&[1.0; 40]).unwrap();
        assert_eq!((many.sd, many.ci95), (0.0, [1.0, 1.0]));
    }
}
