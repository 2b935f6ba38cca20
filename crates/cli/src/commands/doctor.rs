//! `shoal doctor`: looks a data folder and its machine over.

use std::process::ExitCode;

use serde::Serialize;
use shoal_daemon::doctor::{self, Finding, Verdict};

use crate::context::Context;
use crate::error::Error;
use crate::output::Table;

/// What is printed as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    home: String,
    verdict: Verdict,
    findings: &'a [Finding],
}

/// Looks, and ends with 1 if something must be done.
pub fn run(context: &Context) -> Result<ExitCode, Error> {
    let home = shoal_daemon::Home::at(context.home()?.path());
    let findings = doctor::examine(&home);
    let verdict = doctor::worst(&findings);
    let printed = Printed { home: home.path().display().to_string(), verdict, findings: &findings };
    context.output.print(&printed, || table(&findings))?;
    Ok(match verdict {
        Verdict::Ok | Verdict::Warning => ExitCode::SUCCESS,
        Verdict::Problem => ExitCode::FAILURE,
    })
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::plain();
    for finding in findings {
        let mut seen = finding.seen.clone();
        if let Some(advice) = &finding.advice {
            seen.push_str("\n→ ");
            seen.push_str(advice);
        }
        table.row([finding.subject.to_owned(), finding.verdict.word().to_owned(), seen]);
    }
    table
}
