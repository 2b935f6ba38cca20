//! Coordinates of real hosts from a file: the distance of two is their one-way delay.
//!
//! A file has a line per host, comma or blank separated, in two or four columns: `x,y` or `id,root,x,y`, or whatever
//! a heading names, `x` and `y` among them. Hosts whose `root` is not 0 are landmarks and take no nodes. Lines that
//! start with `#` are comments.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::plane::{Plane, Point};
use super::{Spread, least_ms, too_few_hosts};
use crate::network::error::Error;
use crate::network::quantity::DELAY_MAX;
use crate::network::{file, placement};

/// Hosts of a file, and how to read them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinates {
    /// The file: plain, gzip or xz.
    pub file: PathBuf,
    /// One-way milliseconds per unit of distance.
    #[serde(default = "factor")]
    pub factor: f64,
    /// Whether several nodes may sit on a host when there are more nodes than hosts.
    #[serde(default)]
    pub share_hosts: bool,
    /// No message is quicker than this, in milliseconds.
    #[serde(default = "least_ms")]
    pub least_ms: f64,
    /// The largest random addition to a delay, as a part of it.
    #[serde(default)]
    pub jitter: f64,
}

impl Coordinates {
    pub(super) fn place(&self, nodes: usize, seed: u64) -> Result<Plane, Error> {
        let spread = Spread::parse(self.least_ms, self.jitter)?;
        if !(self.factor > 0.0 && self.factor.is_finite()) {
            let what = format!("must be above 0, not {}", self.factor);
            return Err(Error::field("network.latency.factor", what));
        }

        let hosts = parse(&file::read_text(&self.file)?, &self.file, self.factor)?;
        if hosts.is_empty() {
            return Err(Error::file(&self.file, "has no hosts but landmarks"));
        }
        if hosts.len() < nodes && !self.share_hosts {
            return Err(Error::file(&self.file, too_few_hosts(hosts.len(), nodes)));
        }
        let places = placement::draw(hosts.len(), nodes, seed);
        Ok(Plane::new(places.iter().map(|&host| hosts[host as usize]).collect(), spread))
    }
}

fn factor() -> f64 {
    1.0
}

/// Which column holds what.
struct Columns {
    count: usize,
    x: usize,
    y: usize,
    root: Option<usize>,
}

impl Columns {
    /// Reads a heading, or tells by their number what columns without one are.
    fn from_first(fields: &[&str]) -> Result<Columns, String> {
        let count = fields.len();
        if fields.iter().any(|field| field.parse::<f64>().is_ok()) {
            return match count {
                2 => Ok(Columns { count, x: 0, y: 1, root: None }),
                4 => Ok(Columns { count, x: 2, y: 3, root: Some(1) }),
                _ => Err(format!("has {count} columns; without a heading they are `x,y` or `id,root,x,y`")),
            };
        }
        let column = |name: &str| fields.iter().position(|field| field.eq_ignore_ascii_case(name));
        let needed = |name: &str| column(name).ok_or_else(|| format!("the heading names no column `{name}`"));
        Ok(Columns { count, x: needed("x")?, y: needed("y")?, root: column("root") })
    }

    fn has_heading(fields: &[&str]) -> bool {
        fields.iter().all(|field| field.parse::<f64>().is_err())
    }
}

/// The hosts that take nodes, in microseconds.
pub(super) fn parse(text: &str, path: &Path, factor: f64) -> Result<Vec<Point>, Error> {
    let mut columns: Option<Columns> = None;
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = if line.contains(',') {
            line.split(',').map(str::trim).collect()
        } else {
            line.split_whitespace().collect()
        };
        let wrong = |what: String| Error::line(path, number, what);
        let columns = match &columns {
            Some(columns) => columns,
            None => {
                let first = columns.insert(Columns::from_first(&fields).map_err(wrong)?);
                if Columns::has_heading(&fields) {
                    continue;
                }
                first
            }
        };
        if let Some(host) = host(&fields, columns, factor).map_err(wrong)? {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

fn host(fields: &[&str], columns: &Columns, factor: f64) -> Result<Option<Point>, String> {
    if fields.len() != columns.count {
        return Err(format!("has {} columns instead of {}", fields.len(), columns.count));
    }
    let number = |name: &str, column: usize| -> Result<f64, String> {
        let text = fields[column];
        let number = text.parse().map_err(|_| format!("{name}: `{text}` is not a number"))?;
        Ok(number)
    };
    let place = |name: &str, column: usize| -> Result<f32, String> {
        let micros = number(name, column)? * factor * 1e3;
        let far = DELAY_MAX.as_micros() as f64 / 2.0;
        if !(-far..=far).contains(&micros) {
            return Err(format!("{name}: `{}` is out of range, or the factor too large", fields[column]));
        }
        Ok(micros as f32)
    };
    let point = Point { x: place("x", columns.x)?, y: place("y", columns.y)? };
    let landmark = match columns.root {
        Some(root) => number("root", root)? != 0.0,
        None => false,
    };
    Ok((!landmark).then_some(point))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<Point>, String> {
        parse(text, Path::new("hosts.csv"), 1.0).map_err(|error| error.to_string())
    }

    fn points(places: &[(f32, f32)]) -> Vec<Point> {
        places.iter().map(|&(x, y)| Point { x: x * 1e3, y: y * 1e3 }).collect()
    }

    #[test]
    fn two_and_four_columns_and_headings_are_read_and_landmarks_left_out() {
        let expected = points(&[(1.5, -2.0), (3.0, 4.0)]);
        assert_eq!(read("# made up\n0,1,9,9\n1,0,1.5,-2\n\n2,0,3,4\n").unwrap(), expected);
        assert_eq!(read("1.5,-2\n3,4\n").unwrap(), expected);
        assert_eq!(read("1.5 -2\n3\t4\n").unwrap(), expected);
        assert_eq!(read("y,x,name\n-2,1.5,a\n4,3,b\n").unwrap(), expected);
    }

    #[test]
    fn factor_scales_distances() {
        let read = parse("1,2\n", Path::new("hosts.csv"), 0.5).unwrap();
        assert_eq!(read, points(&[(0.5, 1.0)]));
    }

    #[test]
    fn wrong_lines_are_named_with_their_field() {
        let cases = [
            (
                "1,2,3\n",
                "hosts.csv: line 1: has 3 columns; without a heading they are `x,y` or `id,root,x,y`",
            ),
            ("cty1,cty2,rtt\n", "hosts.csv: line 1: the heading names no column `x`"),
            ("1,2\n\n1\n", "hosts.csv: line 3: has 1 columns instead of 2"),
            ("1,2\n1,two\n", "hosts.csv: line 2: y: `two` is not a number"),
            ("0,0,1,2\n1,,1,2\n", "hosts.csv: line 2: root: `` is not a number"),
            ("1,2\nNaN,1\n", "hosts.csv: line 2: x: `NaN` is out of range, or the factor too large"),
            ("1,2\n1,1e300\n", "hosts.csv: line 2: y: `1e300` is out of range, or the factor too large"),
        ];
        for (text, error) in cases {
            assert_eq!(read(text).unwrap_err(), error);
        }
    }

    #[test]
    fn too_few_hosts_are_refused_unless_they_may_be_shared() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "0,0\n3,4\n").unwrap();
        let config = Coordinates {
            file: file.path().to_owned(),
            factor: 1.0,
            share_hosts: false,
            least_ms: 0.1,
            jitter: 0.0,
        };

        assert_eq!(config.place(2, 1).unwrap().least(), 5_000);
        let error = config.place(3, 1).unwrap_err().to_string();
        assert!(error.contains("has 2 hosts, too few for 3 nodes"), "{error}");

        let shared = Coordinates { share_hosts: true, ..config };
        assert_eq!(shared.place(3, 1).unwrap().least(), 100);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_hosts_or_an_error(text in "([0-9eE.,+x yroot#-]|\n|\\PC){0,80}") {
            let _ = read(&text);
        }
    }
}
