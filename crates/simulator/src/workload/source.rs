//! What a scenario says about its jobs: a trace file or a generator, and what to change.

use std::io::Read;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shoal_model::{Span, Time};

use super::change::Change;
use super::clean::{BadLines, Cleaner, Length, Order, Record, TooWide};
use super::error::{Fault, WorkloadError};
use super::field::Places;
use super::generate::{AriaLike, Desktop, Grid5000Like, Lublin, Poisson, Uniform};
use super::gwf::{self, Layout};
use super::input::Lines;
use super::names::Names;
use super::{Provenance, Workload, first_number, header_value, swf};

/// Where jobs come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// A trace file.
    Trace(Trace),
    /// Everything uniform between bounds.
    Uniform(Uniform),
    /// Independent arrivals.
    Poisson(Poisson),
    /// The model of Lublin and Feitelson.
    Lublin(Lublin),
    /// The published shape of a window of Grid'5000.
    Grid5000Like(Grid5000Like),
    /// Jobs with profiles, as ARiA's authors drew them.
    Aria(AriaLike),
    /// Jobs that need cores, memory and disk of machines on desks.
    Desktop(Desktop),
}

/// A trace file and how to read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The file: plain, gzip or xz.
    pub file: PathBuf,
    /// The format; without it the first character, then the file's name tells.
    #[serde(default)]
    pub format: Option<Format>,
    /// Which length a job has.
    #[serde(default)]
    pub length: Length,
    /// Nodes of the grid; without it the header's `MaxProcs`, else the widest job.
    #[serde(default)]
    pub nodes: Option<NonZeroU32>,
    /// Processors of a node.
    #[serde(default = "one")]
    pub node_size: NonZeroU32,
    /// What happens to jobs wider than the grid.
    #[serde(default)]
    pub too_wide: TooWide,
    /// What happens to lines that cannot be read.
    #[serde(default)]
    pub bad_lines: BadLines,
    /// What happens to jobs out of order.
    #[serde(default)]
    pub order: Order,
    /// What to do to the jobs once read.
    #[serde(default)]
    pub change: Change,
}

/// The formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Standard Workload Format.
    Swf,
    /// Grid Workload Format.
    Gwf,
}

impl Source {
    /// Reads or draws the jobs and changes them; the same seed gives the same jobs.
    pub fn load(&self, seed: u64) -> Result<Workload, WorkloadError> {
        let (mut workload, change) = match self {
            Source::Trace(trace) => (trace.read()?, &trace.change),
            Source::Uniform(uniform) => (uniform.generate(seed)?, &uniform.change),
            Source::Poisson(poisson) => (poisson.generate(seed)?, &poisson.change),
            Source::Lublin(lublin) => (lublin.generate(seed)?, &lublin.change),
            Source::Grid5000Like(like) => (like.generate(seed)?, &like.change),
            // A job and its profile belong together, so these are not changed.
            Source::Aria(like) => return like.generate(seed),
            Source::Desktop(desktop) => return desktop.generate(seed),
        };
        change.apply(&mut workload, seed)?;
        Ok(workload)
    }

    /// The same source for a grid of another size: traces keep their jobs, generators draw others.
    pub fn with_nodes(mut self, nodes: NonZeroU32) -> Source {
        match &mut self {
            Source::Trace(trace) => trace.nodes = Some(nodes),
            Source::Uniform(uniform) => uniform.nodes = nodes.get(),
            Source::Poisson(poisson) => poisson.nodes = nodes.get(),
            Source::Lublin(lublin) => lublin.nodes = nodes.get(),
            Source::Grid5000Like(like) => like.nodes = nodes.get(),
            Source::Aria(like) => like.nodes = nodes.get(),
            Source::Desktop(desktop) => desktop.nodes = nodes.get(),
        }
        self
    }

    /// The jobs of this trace file in place of these, changed as these are.
    pub fn from_file(self, file: &Path) -> Source {
        let (nodes, length, change) = match self {
            Source::Trace(trace) => return Source::Trace(Trace { file: file.to_owned(), ..trace }),
            Source::Uniform(uniform) => (uniform.nodes, Length::default(), uniform.change),
            Source::Poisson(poisson) => (poisson.nodes, Length::default(), poisson.change),
            Source::Lublin(lublin) => (lublin.nodes, Length::default(), lublin.change),
            Source::Grid5000Like(like) => (like.nodes, like.length, like.change),
            Source::Desktop(desktop) => (desktop.nodes, Length::default(), Change::default()),
            Source::Aria(like) => {
                return Source::Aria(AriaLike { trace: Some(file.to_owned()), ..like });
            }
        };
        Source::Trace(Trace { nodes: NonZeroU32::new(nodes), length, change, ..Trace::new(file) })
    }
}

impl Trace {
    /// The file, read with the default of every setting.
    pub fn new(file: impl Into<PathBuf>) -> Trace {
        Trace {
            file: file.into(),
            format: None,
            length: Length::default(),
            nodes: None,
            node_size: one(),
            too_wide: TooWide::default(),
            bad_lines: BadLines::default(),
            order: Order::default(),
            change: Change::default(),
        }
    }

    /// Reads and cleans the file; changes are left to [`Source::load`].
    pub fn read(&self) -> Result<Workload, WorkloadError> {
        self.read_lines(Lines::open(&self.file)?)
    }

    /// Reads and cleans the bytes of a trace, plain or compressed, as if they were the file's.
    pub fn read_from(&self, bytes: impl Read) -> Result<Workload, WorkloadError> {
        self.read_lines(Lines::over(&self.file.display().to_string(), bytes)?)
    }

    fn read_lines(&self, mut lines: Lines<'_>) -> Result<Workload, WorkloadError> {
        let format = match self.format {
            Some(format) => format,
            None => guess(&self.file, lines.first_byte()?),
        };
        let nodes = self.nodes.map(NonZeroU32::get);
        let mut cleaner = Cleaner::new(self.length, nodes, self.node_size, self.too_wide, self.order);
        let mut names = Names::default();
        let mut provenance = Provenance { source: lines.file().to_owned(), ..Provenance::default() };
        match format {
            Format::Swf => self.read_swf(&mut lines, &mut cleaner, &mut provenance)?,
            Format::Gwf => self.read_gwf(&mut lines, &mut cleaner, &mut provenance, &mut names)?,
        }

        let (file, count, crlf) = (lines.file().to_owned(), lines.number(), lines.crlf);
        let nodes = cleaner.nodes();
        let (jobs, mut cleaning) = cleaner.finish();
        cleaning.crlf = crlf;
        cleaning.comments = provenance.comments.len() as u64;
        cleaning.promised = provenance.header_number("MaxJobs");
        if cleaning.records == 0 {
            return Err(WorkloadError::Empty { file, lines: count, comments: cleaning.comments });
        }
        let (Some(last), Some(widest)) = (jobs.last(), jobs.iter().map(|job| job.width).max()) else {
            let by_rule = cleaning.dropped_by_rule().into_iter().filter(|&(_, count)| count > 0);
            let what = by_rule.map(|(rule, count)| format!("{rule} {count}")).collect::<Vec<_>>().join(", ");
            let before = cleaning.records as usize;
            return Err(WorkloadError::NothingLeft {
                source_name: file,
                before,
                what: format!("cleaning: {what}"),
            });
        };
        let span: Span = last.submit.since(Time::ZERO);
        let (nodes, profiles) = (nodes.unwrap_or(widest), Vec::new());
        Ok(Workload { nodes, span, jobs, names, provenance, cleaning, profiles })
    }

    fn read_swf(
        &self,
        lines: &mut Lines<'_>,
        cleaner: &mut Cleaner,
        provenance: &mut Provenance,
    ) -> Result<(), WorkloadError> {
        while lines.advance()? {
            match lines.line().trim_ascii_start() {
                [] => {}
                [swf::COMMENT, comment @ ..] => {
                    keep_comment(comment, provenance, cleaner);
                }
                job => {
                    let record = swf::parse(job);
                    self.take(record, lines, cleaner, &swf::PLACES)?;
                }
            }
        }
        Ok(())
    }

    fn read_gwf(
        &self,
        lines: &mut Lines<'_>,
        cleaner: &mut Cleaner,
        provenance: &mut Provenance,
        names: &mut Names,
    ) -> Result<(), WorkloadError> {
        let mut layout = Layout::default();
        while lines.advance()? {
            // A tab in front is an empty first column, not a blank to skip.
            match lines.line() {
                blank if blank.trim_ascii().is_empty() => {}
                [gwf::COMMENT, comment @ ..] => {
                    keep_comment(comment, provenance, cleaner);
                    if let Some(found) = Layout::from_comment(comment) {
                        layout = found;
                    }
                }
                job => {
                    let record = layout.parse(job, names);
                    self.take(record, lines, cleaner, layout.places())?;
                }
            }
        }
        Ok(())
    }

    /// Hands a record on, or does with a bad line what the scenario says.
    #[inline]
    fn take(
        &self,
        record: Result<Record, Fault>,
        lines: &Lines<'_>,
        cleaner: &mut Cleaner,
        places: &Places,
    ) -> Result<(), WorkloadError> {
        match (record, self.bad_lines) {
            (Ok(record), _) => {
                cleaner.push(&record, lines.number(), places).map_err(|fault| lines.fault(fault))
            }
            (Err(fault), BadLines::Drop) => {
                cleaner.drop_line(lines.number(), &fault);
                Ok(())
            }
            (Err(fault), BadLines::Refuse) => Err(lines.fault(fault)),
        }
    }
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// Keeps a comment, and learns the grid's size from it if it tells.
fn keep_comment(comment: &[u8], provenance: &mut Provenance, cleaner: &mut Cleaner) {
    let comment = String::from_utf8_lossy(comment.trim_ascii_end()).into_owned();
    let processors = header_value(&comment, "MaxProcs").and_then(first_number);
    if let Some(processors) = processors.and_then(|number| u32::try_from(number).ok()) {
        cleaner.nodes_from_header(processors);
    }
    provenance.comments.push(comment);
}

/// The mark of the first comment tells the format; a file without comments is judged by its name.
fn guess(file: &Path, first: Option<u8>) -> Format {
    match first {
        Some(gwf::COMMENT) => Format::Gwf,
        Some(swf::COMMENT) => Format::Swf,
        _ if file.to_string_lossy().to_ascii_lowercase().contains(".gwf") => Format::Gwf,
        _ => Format::Swf,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: &str = "\
; Version: 2.2
; MaxJobs: 4
; MaxProcs: 64

  1   100  5   60  4 -1 -1  8  3600 -1 1 3 2 -1 0 6 -1 -1
  2   100 -1   -1 -1 -1 -1  2   600 -1 5 3 2 -1 0 6 -1 -1
  3   160  0  900 16 -1 -1 -1    -1 -1 1 4 2 -1 0 6 -1 -1
  4   200  0   90 65 -1 -1 65   60 -1 1 4 2 -1 0 6 -1 -1
";

    fn trace(name: &str) -> Trace {
        Trace::new(name)
    }

    fn message(text: &str) -> String {
        trace("t.swf").read_from(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn trace_is_read_cleaned_and_counted() {
        let workload = trace("t.swf").read_from(SMALL.as_bytes()).unwrap();
        let jobs: Vec<_> = workload
            .jobs
            .iter()
            .map(|job| (job.id, job.submit.as_secs(), job.width, job.requested.as_secs()))
            .collect();
        assert_eq!(jobs, [(1, 0, 8, 3_600), (2, 0, 2, 600), (3, 60, 16, 900)]);
        assert_eq!((workload.nodes, workload.span), (64, Span::from_secs(60)));
        let counts = &workload.cleaning;
        assert_eq!((counts.records, counts.too_wide, counts.dropped()), (4, 1, 1));
        assert_eq!((counts.width_from_allocated, counts.length_from_other), (1, 1));
        assert_eq!((counts.promised, counts.comments), (Some(4), 3));
        assert_eq!(counts.first_submit, Time::from_secs(100));
        assert_eq!(workload.provenance.header("Version"), Some("2.2"));
    }

    /// Jobs before it were judged without it: one that is wider would be left in a grid that is too small for it.
    #[test]
    fn size_that_comes_after_a_job_is_a_remark() {
        let (header, jobs) = SMALL.split_once("\n\n").unwrap();
        let workload = trace("t.swf").read_from(format!("{jobs}{header}\n").as_bytes()).unwrap();
        assert_eq!((workload.jobs.len(), workload.nodes), (4, 65));
    }

    #[test]
    fn same_trace_with_run_times_leaves_out_what_never_ran() {
        let run = Trace { length: Length::Run, nodes: NonZeroU32::new(100), ..trace("t.swf") };
        let workload = run.read_from(SMALL.as_bytes()).unwrap();
        let jobs: Vec<_> =
            workload.jobs.iter().map(|job| (job.id, job.run.as_secs(), job.requested.as_secs())).collect();
        assert_eq!(jobs, [(1, 60, 3_600), (3, 900, 900), (4, 90, 60)]);
        assert_eq!((workload.cleaning.never_ran, workload.cleaning.overran, workload.nodes), (1, 1, 100));
    }

    #[test]
    fn line_ends_of_dos_change_nothing() {
        let dos = trace("t.swf").read_from(SMALL.replace('\n', "\r\n").as_bytes()).unwrap();
        let unix = trace("t.swf").read_from(SMALL.as_bytes()).unwrap();
        assert_eq!((dos.jobs, dos.cleaning.crlf), (unix.jobs, 8));
    }

    #[test]
    fn each_bad_input_is_one_line_that_names_file_line_and_field() {
        let expected = [
            ("", "t.swf: holds no job: 0 lines, 0 of them comments"),
            ("; only a header\n\n", "t.swf: holds no job: 2 lines, 1 of them comments"),
            ("1 2 3\n", "t.swf:1: too few columns: field 4 (run time) is missing, 3 of 18 are there"),
            (&SMALL.replace(" 900 ", " x9 "), "t.swf:7: field 4 (run time): `x9` is not a number"),
            (
                &SMALL.replace(" 900 ", " -9 "),
                "t.swf:7: field 4 (run time): `-9` is out of range: 0 or more, or -1 for unknown",
            ),
            (
                &SMALL.replace(" 160 ", " 99 "),
                "t.swf:7: field 2 (submit time): 99 is before 100 of line 6; `order = \"sort\"` sorts the jobs",
            ),
            (
                "1 0 0 0 1 -1 -1 -1 -1 -1 1 1 1 1 1 1 1 1",
                "t.swf: no job is left of 1 after cleaning: shorter than a second 1",
            ),
        ];
        for (text, expected) in expected {
            assert_eq!(message(text), expected);
        }
        let error = Trace::new("no such file.swf").read().unwrap_err().to_string();
        assert!(error.starts_with("no such file.swf: cannot be opened: "), "{error}");
    }

    #[test]
    fn job_wider_than_the_grid_is_refused_by_line_if_so_wished() {
        let refuse = Trace { too_wide: TooWide::Refuse, ..trace("t.swf") };
        let error = refuse.read_from(SMALL.as_bytes()).unwrap_err().to_string();
        let expected = "t.swf:8: field 8 (processors requested): job 4 wants 65 nodes, the grid has 64; ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn file_is_unpacked_whatever_its_name_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.swf");
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        std::io::Write::write_all(&mut encoder, SMALL.as_bytes()).unwrap();
        std::fs::write(&file, encoder.finish().unwrap()).unwrap();
        assert_eq!(Trace::new(&file).read().unwrap().jobs.len(), 3);
        let error = Trace::new(folder.path()).read().unwrap_err().to_string();
        assert!(error.contains("cannot be opened: is a directory"), "{error}");
    }

    #[test]
    fn bad_lines_are_dropped_and_named_if_so_wished() {
        let text = SMALL.replace(" 900 ", " x9 ") + "5 300\n";
        let drop = Trace { bad_lines: BadLines::Drop, ..trace("t.swf") };
        let workload = drop.read_from(text.as_bytes()).unwrap();
        assert_eq!((workload.jobs.len(), workload.cleaning.unparsable), (2, 2));
        assert_eq!(
            workload.cleaning.bad_lines,
            [
                "line 7: field 4 (run time): `x9` is not a number",
                "line 9: too few columns: field 3 (wait time) is missing, 2 of 18 are there"
            ]
        );
    }

    #[test]
    fn first_comment_or_else_the_name_tells_the_format() {
        assert_eq!(guess(Path::new("a.swf"), Some(b'#')), Format::Gwf);
        assert_eq!(guess(Path::new("a.gwf"), Some(b';')), Format::Swf);
        assert_eq!(guess(Path::new("a.gwf.xz"), Some(b'1')), Format::Gwf);
        assert_eq!(guess(Path::new("a.log"), Some(b'1')), Format::Swf);
    }

    #[test]
    fn gwf_is_read_from_its_names() {
        let text = "# JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs\tReqTime\tUserID\n\
                    1\t1100000000\t-5\t60\t4\t3600\tuser1\n2\t1100000009\t0\t-1\t1\t3600\tuser2\n";
        let workload = trace("t.log").read_from(text.as_bytes()).unwrap();
        assert_eq!((workload.jobs.len(), workload.nodes, workload.span), (2, 4, Span::from_secs(9)));
        assert_eq!(workload.cleaning.negative_wait, 1);
        assert_eq!(workload.names.find("user2"), Some(workload.jobs[1].user));
    }

    #[test]
    fn scenario_chooses_a_trace_or_a_generator() {
        let read = |text: &str| toml::from_str::<Source>(text);
        let text = "kind = 'trace'\nfile = 'a.swf.xz'\nlength = 'run'\nnodes = 100\ntoo_wide = 'cap'\n\
                    [change]\nutilisation = 0.95\nwindow = { start_days = 10, length_days = 2.5 }";
        let Source::Trace(trace) = read(text).unwrap() else { panic!("a trace was asked for") };
        assert_eq!(
            (trace.length, trace.too_wide, trace.bad_lines),
            (Length::Run, TooWide::Cap, BadLines::Refuse)
        );
        assert_eq!(trace.change.window.unwrap().length_days, 2.5);

        let source = read("kind = 'grid5000-like'\nnodes = 500").unwrap();
        assert_eq!(source, Source::Grid5000Like(Grid5000Like { nodes: 500, ..Grid5000Like::default() }));
        assert!(read("kind = 'lublin'\nnodes = 128\njobs = 10").is_ok());

        let error = read("kind = 'magic'").unwrap_err().to_string();
        assert!(error.contains("`trace`, `uniform`, `poisson`, `lublin`, `grid5000-like`"), "{error}");
        let error = read("kind = 'trace'\nfile = 'a'\nlenght = 'run'").unwrap_err().to_string();
        assert!(error.contains("lenght"), "{error}");
        assert!(read("kind = 'lublin'\nnodes = 128\njobs = 10\n[change]\nwindw = 3").is_err());
    }

    #[test]
    fn loading_changes_the_jobs_as_the_scenario_says() {
        let text = "kind = 'lublin'\nnodes = 128\njobs = 3000\n[change]\nutilisation = 0.7";
        let source: Source = toml::from_str(text).unwrap();
        let workload = source.load(9).unwrap();
        assert!((workload.requested_utilisation().unwrap() - 0.7).abs() < 1e-6);
        assert_eq!(workload, source.load(9).unwrap());
        let larger = source.with_nodes(NonZeroU32::new(512).unwrap()).load(9).unwrap();
        assert_eq!(larger.nodes, 512);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, gwf: bool, drop: bool) {
            let format = Some(if gwf { Format::Gwf } else { Format::Swf });
            let bad_lines = if drop { BadLines::Drop } else { BadLines::Refuse };
            let _ = Trace { format, bad_lines, ..trace("t") }.read_from(&bytes[..]);
        }

        #[test]
        fn lines_of_wild_numbers_never_panic(
            fields in prop::collection::vec("-?[0-9]{1,19}(\\.[0-9]{0,8})?|x|-1|[0-9]", 36..60),
            gwf: bool,
            node_size in 1u32..9,
        ) {
            let text: String = fields.chunks(18).map(|line| line.join(if gwf { "\t" } else { " " }) + "\n").collect();
            let format = Some(if gwf { Format::Gwf } else { Format::Swf });
            let node_size = NonZeroU32::new(node_size).unwrap();
            let trace = Trace { format, node_size, bad_lines: BadLines::Drop, order: Order::Sort, ..trace("t") };
            if let Ok(mut workload) = trace.read_from(text.as_bytes()) {
                workload.describe().to_string();
                let _ = workload.compress(0.5);
                let _ = workload.scale_to(7, 60.0, 1);
            }
        }

        #[test]
        fn damaged_packed_trace_never_panics(at in 0usize..200, flip: u8) {
            let mut packed = Vec::new();
            let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::default());
            std::io::Write::write_all(&mut encoder, SMALL.as_bytes()).unwrap();
            drop(encoder);
            let at = at % packed.len();
            packed[at] ^= flip;
            let _ = trace("t.swf").read_from(&packed[..]);
        }
    }
}
