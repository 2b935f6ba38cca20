//! Measured round-trip times of all pairs from a file: one way takes half of it.
//!
//! A file has a line per host with the round-trip time in milliseconds to each, tab or blank separated; 0 to itself.
//! Lines that start with `#` are comments. The two directions of a pair may differ, as measurements do. Of the hosts,
//! one table is kept however many nodes sit on them.

use std::path::{Path, PathBuf};

use rand::Rng;
use serde::Deserialize;

use super::{Spread, least_ms, too_few_hosts};
use crate::network::error::Error;
use crate::network::quantity::DELAY_MAX;
use crate::network::{file, placement};

/// Hosts of a file, and how to read them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// The file: plain, gzip or xz.
    pub file: PathBuf,
    /// Whether several nodes may sit on a host when there are more nodes than hosts.
    #[serde(default)]
    pub share_hosts: bool,
    /// No message is quicker than this, in milliseconds: also the delay between nodes of one host.
    #[serde(default = "least_ms")]
    pub least_ms: f64,
    /// The largest random addition to a delay, as a part of it.
    #[serde(default)]
    pub jitter: f64,
}

impl Matrix {
    pub(super) fn place(&self, nodes: usize, seed: u64) -> Result<Placed, Error> {
        let spread = Spread::parse(self.least_ms, self.jitter)?;
        let table = parse(&file::read_text(&self.file)?, &self.file)?;
        if table.hosts < nodes && !self.share_hosts {
            return Err(Error::file(&self.file, too_few_hosts(table.hosts, nodes)));
        }
        let places = placement::draw(table.hosts, nodes, seed);
        Ok(Placed::new(table, places, spread))
    }
}

/// One-way delays between hosts in microseconds, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) hosts: usize,
    delays: Vec<u32>,
}

/// A table with nodes on its hosts.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    table: Table,
    places: Box<[u32]>,
    spread: Spread,
    least: u32,
}

impl Placed {
    fn new(table: Table, places: Vec<u32>, spread: Spread) -> Placed {
        let taken = &places[..places.len().min(table.hosts)];
        let shared = places.len() > table.hosts;
        let pairs = taken
            .iter()
            .flat_map(|from| taken.iter().filter(move |to| from != *to).map(move |to| (from, to)));
        let least = pairs.map(|(from, to)| table.between(*from, *to)).min().filter(|_| !shared);
        let least = least.unwrap_or(0).max(spread.floor);
        Placed { table, places: places.into_boxed_slice(), spread, least }
    }

    #[inline]
    pub(super) fn draw(&self, from: usize, to: usize, chance: &mut impl Rng) -> u64 {
        self.spread.draw(self.table.between(self.places[from], self.places[to]), chance)
    }

    pub(super) fn least(&self) -> u32 {
        self.least
    }
}

impl Table {
    fn between(&self, from: u32, to: u32) -> u32 {
        self.delays[from as usize * self.hosts + to as usize]
    }
}

pub(super) fn parse(text: &str, path: &Path) -> Result<Table, Error> {
    let mut hosts = 0;
    let mut rows = 0;
    let mut last = 0;
    let mut delays = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: String| Error::line(path, number, what);
        let before = delays.len();
        for (column, field) in line.split_whitespace().enumerate() {
            let own = column == rows;
            delays.push(one_way(field, own).map_err(|what| wrong(format!("column {}: {what}", column + 1)))?);
        }
        let columns = delays.len() - before;
        if rows == 0 {
            hosts = columns;
        }
        if columns != hosts {
            return Err(wrong(format!("has {columns} columns instead of {hosts}")));
        }
        rows += 1;
        last = number;
        if rows > hosts {
            return Err(wrong(format!("is row {rows} of a matrix with {hosts} columns: it must be square")));
        }
    }
    if hosts == 0 {
        return Err(Error::file(path, "has no hosts"));
    }
    if rows < hosts {
        let what = format!("is the last of {rows} rows of a matrix with {hosts} columns: it must be square");
        return Err(Error::line(path, last, what));
    }
    Ok(Table { hosts, delays })
}

fn one_way(field: &str, own: bool) -> Result<u32, String> {
    let millis: f64 = field.parse().map_err(|_| format!("`{field}` is not a number"))?;
    if own && millis != 0.0 {
        return Err(format!("`{field}` is a host's time to itself, which must be 0"));
    }
    let micros = millis / 2.0 * 1e3;
    if !(0.0..=DELAY_MAX.as_micros() as f64).contains(&micros) {
        return Err(format!("`{field}` is not a round-trip time in milliseconds"));
    }
    Ok(micros.round() as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::streams::{Purpose, stream};

    fn read(text: &str) -> Result<Table, String> {
        parse(text, Path::new("rtt.txt")).map_err(|error| error.to_string())
    }

    #[test]
    fn tabs_and_blanks_separate_and_one_way_is_half() {
        let table = Table { hosts: 2, delays: vec![0, 5_000, 6_000, 0] };
        assert_eq!(read("0\t10\n12\t0\n").unwrap(), table);
        assert_eq!(read("# made up\n0  10.0\n\n 12 0.0\n").unwrap(), table);
    }

    #[test]
    fn wrong_lines_are_named_with_their_field() {
        let cases = [
            ("0 1\n1 x\n", "rtt.txt: line 2: column 2: `x` is not a number"),
            ("0 1\n1 0 3\n", "rtt.txt: line 2: has 3 columns instead of 2"),
            ("0 1\n1 0\n1 1\n", "rtt.txt: line 3: is row 3 of a matrix with 2 columns: it must be square"),
            (
                "0 1 2\n1 0 2\n\n",
                "rtt.txt: line 2: is the last of 2 rows of a matrix with 3 columns: it must be square",
            ),
            ("0 1\n1 5\n", "rtt.txt: line 2: column 2: `5` is a host's time to itself, which must be 0"),
            ("0 -1\n1 0\n", "rtt.txt: line 1: column 2: `-1` is not a round-trip time in milliseconds"),
            ("0 inf\n1 0\n", "rtt.txt: line 1: column 2: `inf` is not a round-trip time in milliseconds"),
            ("# nothing\n", "rtt.txt: has no hosts"),
        ];
        for (text, error) in cases {
            assert_eq!(read(text).unwrap_err(), error);
        }
    }

    #[test]
    fn nodes_take_the_delay_of_their_hosts() {
        let table = read("0 10 20\n10 0 30\n20 30 0\n").unwrap();
        let placed = Placed::new(table, vec![2, 0], Spread { floor: 100, jitter: 0 });
        let mut chance = stream(1, Purpose::Carriage, 0);
        assert_eq!(placed.draw(0, 1, &mut chance), 10_000);
        assert_eq!(placed.least(), 10_000);
    }

    #[test]
    fn nodes_of_one_host_are_the_floor_apart() {
        let table = read("0 10\n10 0\n").unwrap();
        let placed = Placed::new(table, vec![0, 1, 0], Spread { floor: 100, jitter: 0 });
        let mut chance = stream(1, Purpose::Carriage, 0);
        assert_eq!(placed.draw(0, 2, &mut chance), 100);
        assert_eq!(placed.least(), 100);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_a_table_or_an_error(text in "([0-9eE. +\t#-]|\n|\\PC){0,80}") {
            let _ = read(&text);
        }
    }
}
