//! `shoal sim reproduce`: the published results of a paper, run again.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use shoal_simulator::reproduce::{self, Finding, Keep, Paper, Report, Reproduction, Settings, Sheet};

use super::place::Place;
use crate::error::Error;
use crate::output::{Options, Table};
use crate::progress::Runs;

/// What `shoal sim reproduce` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The paper: asap, aria, tri-pronged, proactive, or all
    paper: String,
    /// Only results whose id begins like this, such as asap/table1; those beyond the paper, such as aria/beyond, are found
    /// only if asked for
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// A small grid for a short time: everything in less than a minute
    #[arg(long)]
    quick: bool,
    /// Use seeds 1 to K [default: as many as each experiment needs]
    #[arg(long, value_name = "K")]
    seeds: Option<u32>,
    /// Take the jobs of this trace instead of drawn ones: SWF or GWF, plain, .gz or .xz
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Take the places of hosts from this file instead of made-up ones (proactive): x,y or id,root,x,y in milliseconds
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Make this many runs at once; results are the same with any number [default: all cores]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Keep each finished run in this folder, and take from there what was made before: to go on after a stop
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// End with 1 if a claim does not hold
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    place: Place,
    /// A tiny grid, for tests
    #[arg(long, hide = true)]
    tiny: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    out: &'a Path,
    results: Vec<&'a Finding>,
}

/// Tells this program from any other, by its bytes.
fn program() -> Result<String, Error> {
    let wrong = |error: std::io::Error| Error::internal(format!("cannot read this program itself: {error}"));
    let bytes = std::fs::read(std::env::current_exe().map_err(wrong)?).map_err(wrong)?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

/// Reproduces a paper.
pub fn run(arguments: Arguments, output: Options) -> Result<(), Error> {
    let Arguments { paper, only, quick, seeds, trace, hosts, threads, keep, strict, place, tiny } = arguments;
    let seeds = match seeds.map(NonZeroU32::new) {
        None => None,
        Some(None) => return Err(Error::user("--seeds 0: must be at least 1")),
        Some(seeds) => seeds,
    };
    let threads = super::study::threads(threads);
    let keep = keep.map(|folder| Ok::<_, Error>(Keep { folder, program: program()? })).transpose()?;
    let settings = Settings { only, quick, seeds, trace, hosts, threads, keep, tiny };
    let papers = Paper::named(&paper)?;
    let prepared: Result<Vec<Reproduction>, _> =
        papers.into_iter().map(|paper| Reproduction::prepare(paper, &settings)).collect();
    let prepared = prepared?;
    let folder = place.folder(&paper)?;

    let begun = Instant::now();
    let bar = Runs::new();
    let tell = |progress| bar.tell(progress);
    let reports: Result<Vec<Report>, _> = prepared.into_iter().map(|one| one.carry_out(&tell)).collect();
    bar.clear();
    let (reports, elapsed_s) = (reports?, begun.elapsed().as_secs_f64());

    let out = folder.fill(|draft| reproduce::write(draft, &reports, elapsed_s))?;
    let results: Vec<&Finding> = reports.iter().flat_map(|report| &report.findings).collect();
    let claims = results.iter().filter(|finding| finding.claim.is_some()).count();
    let broken = results.iter().filter(|finding| finding.holds == Some(false)).count();
    let held = results.iter().filter(|finding| finding.holds == Some(true)).count();
    output.print(&Printed { out: &out, results }, || tables(&reports))?;
    eprintln!(
        "{held} of {claims} claims hold, {broken} do not; {elapsed_s:.1} s; results in {}",
        out.display()
    );
    match (strict, broken) {
        (false, _) | (true, 0) => Ok(()),
        (true, _) => Err(Error::internal(format!("{broken} of {claims} claims do not hold"))),
    }
}

fn tables(reports: &[Report]) -> Table {
    let mut all = Vec::new();
    for report in reports {
        let mut about = Table::plain().titled(report.paper.title()).in_columns(80);
        for (what, text) in &report.about {
            about.row([what.clone(), text.clone()]);
        }
        all.push(about);
        all.extend(report.sheets.iter().map(sheet));
        all.extend(claims(&report.findings));
    }
    let mut all = all.into_iter().rev();
    let last = all.next().unwrap_or_else(Table::plain);
    all.fold(last, |below, above| above.then(below))
}

fn sheet(sheet: &Sheet) -> Table {
    let mut table = Table::with_columns(&sheet.columns).titled(&sheet.title);
    for row in &sheet.rows {
        table.cells(row);
    }
    table
}

/// Which claims hold; none if there is none.
fn claims(findings: &[Finding]) -> Option<Table> {
    let mut table = Table::plain().titled("Claims").in_columns(80);
    let mut any = false;
    for finding in findings {
        let Some(claim) = finding.claim else { continue };
        let holds = match finding.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not judged",
        };
        let ours = finding.ours.map_or_else(|| "-".to_owned(), |ours| format!("{ours:.3}"));
        let name = finding.id.split_once('/').map_or(finding.id, |(_, name)| name);
        let name = name.strip_prefix("claim/").unwrap_or(name);
        let unit = if finding.unit.is_empty() { String::new() } else { format!(" {}", finding.unit) };
        table.row([holds.to_owned(), name.to_owned(), format!("{claim}; ours {ours}{unit}")]);
        any = true;
    }
    any.then_some(table)
}
