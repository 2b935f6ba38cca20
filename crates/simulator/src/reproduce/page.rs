//! A reproduction as a page: the claims with their verdicts, the paper's tables and figures with ours, every result.

use super::{Finding, Report, Sheet};
use crate::report::page::{Cell, Page, Table};

/// The reproductions as one page of HTML.
pub(super) fn page(reports: &[Report]) -> String {
    let title = match reports {
        [only] => format!("{}, reproduced", only.paper),
        _ => "Papers, reproduced".to_owned(),
    };
    let mut page = Page::new(title);
    for report in reports {
        page = page.lead(report.paper.title());
    }
    for report in reports {
        let of = |what: &str| match reports {
            [_] => what.to_owned(),
            _ => format!("{}: {what}", report.paper),
        };
        page = page.section(of("What was run")).table("", &Table::of_facts(report.about.clone()));
        page = page.section(of("Claims")).table(verdict(&report.findings), &claims(&report.findings));
        page = page.section(of("Tables"));
        for sheet in &report.sheets {
            page = page.table(&sheet.title, &table(sheet));
        }
        if !report.figures.is_empty() {
            page = page.section(of("Figures"));
        }
        for picture in &report.figures {
            page = page.figure(&picture.caption, &picture.svg());
        }
        page = page.section(of("All results")).table("", &results(&report.findings));
    }
    page.finish()
}

fn verdict(findings: &[Finding]) -> String {
    let count = |verdict| findings.iter().filter(|one| one.claim.is_some() && one.holds == verdict).count();
    format!("{} hold, {} do not, {} could not be judged", count(Some(true)), count(Some(false)), count(None))
}

fn claims(findings: &[Finding]) -> Table {
    let table = Table::new(["id", "verdict", "claim", "paper", "ours"]);
    findings.iter().fold(table, |table, finding| match finding.claim {
        None => table,
        Some(claim) => table.row([
            Cell::text(finding.id),
            finding.holds.map_or_else(|| Cell::text("not judged"), |holds| Cell::Holds(Some(holds))),
            Cell::text(claim),
            number(finding.paper),
            with_unit(finding),
        ]),
    })
}

fn table(sheet: &Sheet) -> Table {
    sheet.rows.iter().fold(Table::new(&sheet.columns), |table, row| {
        let cells = row.iter().enumerate();
        table.row(cells.map(|(column, cell)| match column {
            0 => Cell::text(cell),
            _ => Cell::number(cell),
        }))
    })
}

fn results(findings: &[Finding]) -> Table {
    let table = Table::new(["id", "paper", "ours", "least", "most", "95 % interval", "unit"]);
    findings.iter().fold(table, |table, finding| {
        let spread = finding.spread;
        table.row([
            Cell::text(finding.id),
            number(finding.paper),
            number(finding.ours),
            number(spread.map(|spread| spread.min)),
            number(spread.map(|spread| spread.max)),
            Cell::number(spread.map_or_else(String::new, |spread| {
                format!("{} to {}", plain(spread.ci95[0]), plain(spread.ci95[1]))
            })),
            Cell::text(finding.unit),
        ])
    })
}

fn with_unit(finding: &Finding) -> Cell {
    let ours = finding.ours.map_or_else(|| "-".to_owned(), plain);
    Cell::number(if finding.unit.is_empty() { ours } else { format!("{ours} {}", finding.unit) })
}

fn number(value: Option<f64>) -> Cell {
    Cell::number(value.map_or_else(String::new, plain))
}

/// As many digits as say something.
fn plain(value: f64) -> String {
    match value.abs() {
        ..1.0 => format!("{value:.4}"),
        ..1_000.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}
