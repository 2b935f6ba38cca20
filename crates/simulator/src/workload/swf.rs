//! Reads the Standard Workload Format 2.2 of the Parallel Workloads Archive.
//!
//! One job a line, 18 columns parted by blanks, -1 for unknown, `;` before comments. More columns are allowed and
//! counted, their content is left aside; fewer are an error.

use super::clean::Record;
use super::error::Fault;
use super::field::{Field, split_blank};
use super::names::Label;

/// What marks a comment.
pub(crate) const COMMENT: u8 = b';';

const COLUMNS: usize = 18;
const NAMES: [&str; COLUMNS] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "processors allocated",
    "average CPU time",
    "memory used",
    "processors requested",
    "time requested",
    "memory requested",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];

/// Reads the job of a line that is neither blank nor a comment.
pub(crate) fn parse(line: &[u8]) -> Result<Record, Fault> {
    let mut fields = Fields { rest: line, column: 0 };
    let id = fields.take()?.whole()?;
    let submit = fields.take()?.submit()?;
    let wait = fields.take()?.micros()?;
    let run = fields.take()?.run()?;
    let allocated = fields.take()?.whole()?;
    fields.take()?.number()?; // average CPU time
    fields.take()?.number()?; // memory used
    let requested_width = fields.take()?.whole()?;
    let requested = fields.take()?.micros()?;
    let memory_kib = fields.take()?.whole()?;
    let status = fields.take()?.whole()?;
    let user = fields.take()?.label()?;
    let group = fields.take()?.label()?;
    fields.take()?.number()?; // executable
    fields.take()?.number()?; // queue
    let partition = fields.take()?.label()?;
    fields.take()?.number()?; // preceding job
    fields.take()?.number()?; // think time
    let extra_columns = split_blank(&mut fields.rest).is_some();
    Ok(Record {
        id,
        submit,
        wait,
        run,
        allocated,
        requested_width,
        requested,
        memory_kib,
        status,
        user,
        group,
        partition,
        extra_columns,
    })
}

struct Fields<'a> {
    rest: &'a [u8],
    column: usize,
}

impl<'a> Fields<'a> {
    #[inline]
    fn take(&mut self) -> Result<Field<'a>, Fault> {
        let name = NAMES[self.column];
        let text = split_blank(&mut self.rest).ok_or(Fault::TooFewColumns {
            found: self.column,
            wanted: COLUMNS,
            name,
        })?;
        self.column += 1;
        Ok(Field { column: self.column, name, text })
    }
}

impl Field<'_> {
    /// A submit time: every job has one.
    pub(crate) fn submit(self) -> Result<i64, Fault> {
        match self.micros()? {
            micros @ 0.. => Ok(micros),
            _ => Err(self.out_of_range("0 or later")),
        }
    }

    /// A run time: -1 if unknown, else not negative.
    pub(crate) fn run(self) -> Result<i64, Fault> {
        match self.micros()? {
            micros @ (0.. | -1_000_000) => Ok(micros),
            _ => Err(self.out_of_range("0 or more, or -1 for unknown")),
        }
    }

    /// A number that stands for somebody or something; below 0 it is unknown.
    fn label(self) -> Result<Label, Fault> {
        let number = self.whole()?;
        match u32::try_from(number) {
            Ok(number) => Ok(Label::new(number)),
            Err(_) if number < 0 => Ok(Label::UNKNOWN),
            Err(_) => Err(self.out_of_range("below 2^32")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "7 100 5 60 4 12.50 -1 8 3600 2048 1 3 2 -1 0 6 -1 -1";

    fn fault(line: &str) -> String {
        parse(line.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn every_column_lands_in_its_field() {
        let record = parse(GOOD.as_bytes()).unwrap();
        let expected = Record {
            id: 7,
            submit: 100_000_000,
            wait: 5_000_000,
            run: 60_000_000,
            allocated: 4,
            requested_width: 8,
            requested: 3_600_000_000,
            memory_kib: 2048,
            status: 1,
            user: Label::new(3),
            group: Label::new(2),
            partition: Label::new(6),
            extra_columns: false,
        };
        assert_eq!(record, expected);
    }

    #[test]
    fn blanks_and_further_columns_are_tolerated() {
        let record = parse(format!("   {} ", GOOD.replace(' ', " \t ")).as_bytes()).unwrap();
        assert_eq!(record, parse(GOOD.as_bytes()).unwrap());
        let wide = parse(format!("{GOOD} {{1,1,2}} q_2w 1:ppn=12").as_bytes()).unwrap();
        assert!(wide.extra_columns);
    }

    #[test]
    fn faults_name_the_field() {
        assert_eq!(fault("7 100 5"), "too few columns: field 4 (run time) is missing, 3 of 18 are there");
        assert_eq!(
            fault(&GOOD.replace(" -1 -1", " -1")),
            "too few columns: field 18 (think time) is missing, 17 of 18 are there"
        );
        assert_eq!(fault(&GOOD.replace("12.50", "abc")), "field 6 (average CPU time): `abc` is not a number");
        assert_eq!(
            fault(&GOOD.replace(" 60 ", " -7 ")),
            "field 4 (run time): `-7` is out of range: 0 or more, or -1 for unknown"
        );
        assert_eq!(
            fault(&GOOD.replace("100", "-1")),
            "field 2 (submit time): `-1` is out of range: 0 or later"
        );
        assert_eq!(
            fault(&GOOD.replace(" 8 ", " 2.5 ")),
            "field 8 (processors requested): `2.5` is out of range: a whole number"
        );
    }

    #[test]
    fn unknown_run_time_is_no_fault() {
        assert_eq!(parse(GOOD.replace(" 60 ", " -1 ").as_bytes()).unwrap().run, -1_000_000);
    }
}
