//! Reads the Standard Workload Format 2.2 of the Parallel Workloads Archive.
//!
//! One job a line, 18 columns parted by blanks, -1 for unknown, `;` before comments. More columns are allowed and
//! counted, their content is left aside; fewer are an error.

use super::clean::Record;
use super::error::Fault;
use super::field::{Decimal, Field, Number, Place, Places, split_blank, split_number};

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

/// Where the fields stand that a job can be refused for.
pub(crate) const PLACES: Places = Places { submit: place(2), allocated: place(5), requested_width: place(8) };

const fn place(column: usize) -> Place {
    Place { column, name: NAMES[column - 1] }
}

/// Reads the job of a line that is neither blank nor a comment.
pub(crate) fn parse(line: &[u8]) -> Result<Record, Fault> {
    let mut rest = line;
    let mut texts: [&[u8]; COLUMNS] = [b""; COLUMNS];
    let mut values = [Decimal::default(); COLUMNS];
    for (index, name) in NAMES.into_iter().enumerate() {
        let Some((text, value)) = split_number(&mut rest) else {
            return Err(Fault::TooFewColumns { found: index, wanted: COLUMNS, column: index + 1, name });
        };
        texts[index] = text;
        match value {
            Some(value) => values[index] = value,
            None => return Err(Field { column: index + 1, name, text }.not_a_number()),
        }
    }

    let column = |column: usize| {
        let index = column - 1;
        Number { field: Field { column, name: NAMES[index], text: texts[index] }, value: values[index] }
    };
    // What a job used says what it needs where nobody has said it.
    let memory = if column(10).whole()? > 0 { column(10) } else { column(7) };
    Ok(Record {
        id: column(1).whole()?,
        submit: column(2).submit()?,
        wait: column(3).micros()?,
        run: column(4).run()?,
        allocated: column(5).whole()?,
        requested_width: column(8).whole()?,
        requested: column(9).micros()?,
        memory_kib: memory.whole().unwrap_or(-1),
        status: column(11).whole()?,
        user: column(12).label()?,
        group: column(13).label()?,
        partition: column(16).label()?,
        extra_columns: split_blank(&mut rest).is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Label;

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
    fn memory_is_what_was_asked_for_or_else_what_was_used() {
        let memory = |line: String| parse(line.as_bytes()).unwrap().memory_kib;
        assert_eq!(memory(GOOD.replace("12.50 -1", "12.50 512")), 2048);
        assert_eq!(memory(GOOD.replace("12.50 -1", "12.50 512").replace("2048", "-1")), 512);
        assert_eq!(memory(GOOD.replace("12.50 -1", "12.50 0.5").replace("2048", "-1")), -1);
    }

    #[test]
    fn unknown_run_time_is_no_fault() {
        assert_eq!(parse(GOOD.replace(" 60 ", " -1 ").as_bytes()).unwrap().run, -1_000_000);
    }
}
