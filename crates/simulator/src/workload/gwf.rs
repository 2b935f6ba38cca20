//! Reads the Grid Workload Format of the Grid Workloads Archive.
//!
//! Columns are parted by tabs, `#` starts a comment, -1 is unknown, submit times are Unix seconds, and users, groups
//! and partitions are words. A comment that lists the column names says where they stand; else the 29 columns of
//! the archive's description are assumed, of which the first 11 must be there.

use super::clean::Record;
use super::error::Fault;
use super::field::{Field, Number, Place, Places, split_blank};
use super::names::{Label, Names};

/// What marks a comment.
pub(crate) const COMMENT: u8 = b'#';

/// Fewer columns than this and it is no GWF.
const COLUMNS_MIN: usize = 11;
/// More than this many columns are never looked at.
const COLUMNS_MAX: usize = 64;
/// The columns of the archive's description; some files have one more.
const COLUMNS: usize = 29;

/// The fields that are read, with the other names they go by.
const FIELDS: [(&str, &str, &str); 13] = [
    ("JobID", "jobid", "jobid"),
    ("SubmitTime", "submittime", "submittime"),
    ("WaitTime", "waittime", "waittime"),
    ("RunTime", "runtime", "runtime"),
    ("NProcs", "nprocs", "nproc"),
    ("ReqNProcs", "reqnprocs", "reqnproc"),
    ("ReqTime", "reqtime", "reqtime"),
    ("ReqMemory", "reqmemory", "reqmemory"),
    ("Status", "status", "status"),
    ("UserID", "userid", "userid"),
    ("GroupID", "groupid", "groupid"),
    ("PartitionID", "partitionid", "partitionid"),
    ("UsedCPUTime", "usedcputime", "averagecputimeused"),
];
const ID: usize = 0;
const SUBMIT: usize = 1;
const WAIT: usize = 2;
const RUN: usize = 3;
const ALLOCATED: usize = 4;
const REQUESTED_WIDTH: usize = 5;
const REQUESTED: usize = 6;
const MEMORY: usize = 7;
const STATUS: usize = 8;
const USER: usize = 9;
const GROUP: usize = 10;
const PARTITION: usize = 11;
const CPU_TIME: usize = 12;

/// Where each field stands, columns from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    columns: [Option<usize>; FIELDS.len()],
    /// Of the fields that a job can be refused for; made once, since it is handed on with every line.
    places: Places,
    /// Columns there should be at least.
    wanted: usize,
    /// Columns there are at most.
    known: usize,
}

impl Default for Layout {
    fn default() -> Layout {
        let columns = [0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 15, 5].map(Some);
        Layout::new(columns, COLUMNS_MIN, COLUMNS)
    }
}

impl Layout {
    /// Learns the places of the columns from a comment that lists their names, if this is one.
    pub(crate) fn from_comment(comment: &[u8]) -> Option<Layout> {
        let comment = String::from_utf8_lossy(comment);
        let plain = |name: &str| -> String {
            name.chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|letter| letter.to_ascii_lowercase())
                .collect()
        };
        let names: Vec<String> = comment.trim().split('\t').map(plain).collect();
        let place = |(_, name, other): (&str, &str, &str)| names.iter().position(|n| n == name || n == other);
        let columns = FIELDS.map(place);
        // Prose may name a field or two; a list that lacks one of these could not be read anyway.
        for needed in [ID, SUBMIT, RUN] {
            columns[needed]?;
        }
        columns[ALLOCATED].or(columns[REQUESTED_WIDTH])?;
        if names.len() > COLUMNS_MAX {
            return None;
        }
        let last_needed = columns[..=STATUS].iter().flatten().max()?;
        Some(Layout::new(columns, last_needed + 1, names.len().max(COLUMNS)))
    }

    fn new(columns: [Option<usize>; FIELDS.len()], wanted: usize, known: usize) -> Layout {
        // A field without a column tells nothing, so that nothing is refused for it.
        let place = |field: usize| {
            let column = columns[field].map_or(0, |column| column + 1);
            Place { column, name: FIELDS[field].0 }
        };
        let places = Places {
            submit: place(SUBMIT),
            allocated: place(ALLOCATED),
            requested_width: place(REQUESTED_WIDTH),
        };
        Layout { columns, places, wanted, known }
    }

    /// Where the fields stand that a job can be refused for.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Reads the job of a line that is neither blank nor a comment.
    pub(crate) fn parse(&self, line: &[u8], names: &mut Names) -> Result<Record, Fault> {
        let mut texts: [&[u8]; COLUMNS_MAX] = [b""; COLUMNS_MAX];
        let mut found = 0;
        let mut keep = |text| {
            if let Some(place) = texts.get_mut(found) {
                *place = text;
            }
            found += 1;
        };
        if line.contains(&b'\t') {
            line.split(|&byte| byte == b'\t').for_each(|text| keep(text.trim_ascii()));
        } else {
            let mut rest = line;
            while let Some(text) = split_blank(&mut rest) {
                keep(text);
            }
        }
        if found < self.wanted {
            let fields = self.columns.iter().zip(FIELDS);
            let missing = fields.filter_map(|(column, (name, ..))| Some((*column.as_ref()?, name)));
            let next = missing.filter(|&(column, _)| column >= found).min();
            let (column, name) = next.map_or((found + 1, "column"), |(column, name)| (column + 1, name));
            return Err(Fault::TooFewColumns { found, wanted: self.wanted, column, name });
        }

        let field = |field: usize| {
            let column = self.columns[field]?;
            let text = texts[column];
            (!text.is_empty()).then_some(Field { column: column + 1, name: FIELDS[field].0, text })
        };
        let must = |which: usize| {
            let column = self.columns[which].map_or(0, |column| column + 1);
            field(which).ok_or(Field { column, name: FIELDS[which].0, text: b"" }.not_a_number())
        };
        let number = |which| field(which).map(Field::number).transpose();
        let whole = |which| number(which)?.map_or(Ok(-1), Number::whole);
        let micros = |which| number(which)?.map_or(Ok(-1_000_000), Number::micros);
        let mut label = |which| match field(which) {
            None | Some(Field { text: b"-1", .. }) => Label::UNKNOWN,
            Some(Field { text, .. }) => names.label(text),
        };
        number(CPU_TIME)?;
        Ok(Record {
            id: must(ID)?.number()?.whole()?,
            submit: must(SUBMIT)?.number()?.submit()?,
            wait: micros(WAIT)?,
            run: number(RUN)?.map_or(Ok(-1_000_000), Number::run)?,
            allocated: whole(ALLOCATED)?,
            requested_width: whole(REQUESTED_WIDTH)?,
            requested: micros(REQUESTED)?,
            memory_kib: micros(MEMORY)? / 1_000_000,
            status: whole(STATUS)?,
            user: label(USER),
            group: label(GROUP),
            partition: label(PARTITION),
            extra_columns: found > self.known,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{TooWide, Trace};

    const GOOD: &str =
        "7\t1100000000\t5\t60\t4\t12.5\t-1\t8\t3600\t-1\t1\tuser12\tgroup3\tapp\tqueue0\tG1/site1/c1";

    fn parse(line: &str) -> Result<Record, Fault> {
        Layout::default().parse(line.as_bytes(), &mut Names::default())
    }

    #[test]
    fn every_column_lands_in_its_field() {
        let mut names = Names::default();
        let record = Layout::default().parse(GOOD.as_bytes(), &mut names).unwrap();
        assert_eq!((record.id, record.submit), (7, 1_100_000_000_000_000));
        assert_eq!((record.wait, record.run, record.requested), (5_000_000, 60_000_000, 3_600_000_000));
        assert_eq!((record.allocated, record.requested_width, record.status), (4, 8, 1));
        let texts = [record.user, record.group, record.partition].map(|label| names.text(label).into_owned());
        assert_eq!(texts, ["user12", "group3", "G1/site1/c1"]);
    }

    #[test]
    fn eleven_columns_are_enough_and_ten_are_not() {
        let columns: Vec<&str> = GOOD.split('\t').collect();
        let record = parse(&columns[..11].join("\t")).unwrap();
        assert_eq!((record.user, record.partition), (Label::UNKNOWN, Label::UNKNOWN));
        assert_eq!(
            parse(&columns[..10].join("\t")).unwrap_err().to_string(),
            "too few columns: field 11 (Status) is missing, 10 of 11 are there"
        );
        assert_eq!(
            parse(&columns[..6].join("\t")).unwrap_err().to_string(),
            "too few columns: field 8 (ReqNProcs) is missing, 6 of 11 are there",
            "the seventh is missing too, but is not read"
        );
    }

    #[test]
    fn empty_columns_are_unknown() {
        let record = parse(&GOOD.replace("\t8\t3600", "\t\t")).unwrap();
        assert_eq!((record.requested_width, record.requested), (-1, -1_000_000));
        let fault = parse(&GOOD.replace("1100000000", "")).unwrap_err().to_string();
        assert_eq!(fault, "field 2 (SubmitTime): `` is not a number");
    }

    #[test]
    fn comment_with_names_moves_the_columns() {
        let comment = b" JobID\tSubmitTime\tRunTime\tNProc\tReq Time: \tUserID";
        let layout = Layout::from_comment(comment).unwrap();
        let mut names = Names::default();
        let record = layout.parse(b"3\t50\t60\t4\t90\tu1\tx", &mut names).unwrap();
        assert_eq!((record.run, record.allocated, record.requested), (60_000_000, 4, 90_000_000));
        assert_eq!((record.requested_width, record.wait), (-1, -1_000_000));
        assert_eq!(names.text(record.user), "u1");
        assert_eq!(Layout::from_comment(b" JobID grows with SubmitTime"), None, "prose is no list");
    }

    #[test]
    fn faults_name_the_field() {
        assert_eq!(
            parse(&GOOD.replace("\t60\t", "\t-60\t")).unwrap_err().to_string(),
            "field 4 (RunTime): `-60` is out of range: 0 or more, or -1 for unknown"
        );
        assert_eq!(
            parse(&GOOD.replace("12.5", "no")).unwrap_err().to_string(),
            "field 6 (UsedCPUTime): `no` is not a number"
        );
    }

    /// The archive's columns, and those of a comment that moves them.
    #[test]
    fn jobs_out_of_order_or_too_wide_are_refused_by_the_columns_of_the_layout() {
        let nodes = std::num::NonZeroU32::new(4);
        let refuse = Trace { too_wide: TooWide::Refuse, nodes, ..Trace::new("t.gwf") };
        let told = |text: &str| refuse.read_from(text.as_bytes()).unwrap_err().to_string();
        let archive =
            |submit, procs, asked| format!("1\t{submit}\t0\t60\t{procs}\t9\t-1\t{asked}\t90\t-1\t1\n");
        let moved = |submit, procs, asked| format!("{procs}\t60\t{submit}\t{asked}\t90\t1\n");
        let names = "# NProcs\tRunTime\tSubmitTime\tReqNProcs\tReqTime\tJobID\n";

        let early = told(&(archive(50, 1, 1) + &archive(40, 1, 1)));
        assert!(early.starts_with("t.gwf:2: field 2 (SubmitTime): 40 is before 50 of line 1; "), "{early}");
        let early = told(&(names.to_owned() + &moved(50, 1, 1) + &moved(40, 1, 1)));
        assert!(early.starts_with("t.gwf:3: field 3 (SubmitTime): 40 is before 50 of line 2; "), "{early}");

        let wide = told(&archive(50, 1, 8));
        assert!(
            wide.starts_with("t.gwf:1: field 8 (ReqNProcs): job 1 wants 8 nodes, the grid has 4; "),
            "{wide}"
        );
        let wide = told(&archive(50, 9, -1));
        assert!(
            wide.starts_with("t.gwf:1: field 5 (NProcs): job 1 wants 9 nodes, the grid has 4; "),
            "{wide}"
        );
        let wide = told(&(names.to_owned() + &moved(50, 1, 8)));
        assert!(wide.starts_with("t.gwf:2: field 4 (ReqNProcs): job 1 wants 8 nodes, "), "{wide}");
        let wide = told(&(names.to_owned() + &moved(50, 9, -1)));
        assert!(wide.starts_with("t.gwf:2: field 1 (NProcs): job 1 wants 9 nodes, "), "{wide}");
    }
}
