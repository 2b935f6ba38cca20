//! What can be wrong with a workload, said in one line that names file, line, field and a way out.

use std::io;

/// Why there is no workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The file cannot be opened.
    #[error("{file}: cannot be opened: {cause}")]
    Open {
        /// The file.
        file: String,
        /// What the system says.
        cause: io::Error,
    },
    /// Reading failed on the way.
    #[error("{file}: cannot be read after line {line}: {cause}")]
    Read {
        /// The file.
        file: String,
        /// The last line that could be read.
        line: u64,
        /// What the system or the decompressor says.
        cause: io::Error,
    },
    /// A compressed file ends too early.
    #[error("{file}: the {packing} data ends too early, after line {line}; fetch the file again")]
    Truncated {
        /// The file.
        file: String,
        /// `gzip` or `xz`.
        packing: &'static str,
        /// The last line that could be read.
        line: u64,
    },
    /// A kind of file that holds traces but is not one.
    #[error("{file}: is {what}; unpack it first and name the trace inside")]
    Packed {
        /// The file.
        file: String,
        /// What it is.
        what: &'static str,
    },
    /// No line of the file is a job.
    #[error("{file}: holds no job: {lines} lines, {comments} of them comments")]
    Empty {
        /// The file.
        file: String,
        /// Lines in it.
        lines: u64,
        /// Comment lines in it.
        comments: u64,
    },
    /// One line is bad.
    #[error("{file}:{line}: {fault}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        fault: Fault,
    },
    /// Cleaning or filtering left nothing.
    #[error("{source_name}: no job is left of {before} after {what}")]
    NothingLeft {
        /// The file or the generator.
        source_name: String,
        /// Jobs before.
        before: usize,
        /// What removed the last one.
        what: String,
    },
    /// A setting makes no sense.
    #[error("workload setting `{setting}`: {why}")]
    Setting {
        /// The setting, as a scenario spells it.
        setting: &'static str,
        /// Why it cannot be.
        why: String,
    },
}

/// What is wrong with one line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Fewer columns than the format has.
    #[error("too few columns: field {column} ({name}) is missing, {found} of {wanted} are there")]
    TooFewColumns {
        /// Columns found.
        found: usize,
        /// Columns that the format asks for.
        wanted: usize,
        /// The first column that is missing and would be read, from 1.
        column: usize,
        /// That field's name.
        name: &'static str,
    },
    /// A field that should be a number is not.
    #[error("field {column} ({name}): `{text}` is not a number")]
    NotANumber {
        /// The column, from 1.
        column: usize,
        /// The field's name.
        name: &'static str,
        /// What stands there.
        text: String,
    },
    /// A number that the field cannot take.
    #[error("field {column} ({name}): `{text}` is out of range: {range}")]
    OutOfRange {
        /// The column, from 1.
        column: usize,
        /// The field's name.
        name: &'static str,
        /// What stands there.
        text: String,
        /// What could stand there.
        range: &'static str,
    },
    /// The line is so long that the file is hardly a trace.
    #[error("longer than {max} bytes: is this a trace?")]
    TooLong {
        /// The longest line read.
        max: u64,
    },
    /// The job was submitted before the one above.
    #[error(
        "field {column} ({name}): {submit_secs} is before {previous_secs} of line {previous_line}; `order = \"sort\"` sorts the jobs"
    )]
    OutOfOrder {
        /// The column of submit times, from 1.
        column: usize,
        /// That field's name.
        name: &'static str,
        /// Its submit time, seconds.
        submit_secs: i64,
        /// The largest submit time above, seconds.
        previous_secs: i64,
        /// The line that has it.
        previous_line: u64,
    },
    /// The job is wider than the grid, and the scenario refuses such jobs.
    #[error(
        "field {column} ({name}): job {id} wants {width} nodes, the grid has {nodes}; `too_wide = \"drop\"` or \"cap\" goes on"
    )]
    TooWide {
        /// The column that gave the width, from 1.
        column: usize,
        /// That field's name.
        name: &'static str,
        /// The job's number.
        id: i64,
        /// Nodes it wants.
        width: u64,
        /// Nodes there are.
        nodes: u32,
    },
}
