//! The paper's tables with our figures beside, for eighty columns.

use crate::reproduce::{Finding, Sheet};

/// All tables of which something was found.
pub fn sheets(findings: &[Finding]) -> Vec<Sheet> {
    let look = Look(findings);
    let sheets = [
        figure4(&look),
        table1(&look),
        table2(&look),
        table3(&look),
        figure6(&look),
        scale(&look),
        beside(&look),
    ];
    sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
}

struct Look<'a>(&'a [Finding]);

impl Look<'_> {
    fn find(&self, id: &str) -> Option<&Finding> {
        self.0.iter().find(|finding| finding.id.strip_prefix("asap/") == Some(id))
    }

    fn any(&self, group: &str) -> bool {
        self.0.iter().any(|finding| finding.id.starts_with(group))
    }

    fn ours(&self, id: &str) -> String {
        self.find(id).and_then(|finding| finding.ours).map_or_else(|| "-".to_owned(), number)
    }

    fn paper(&self, id: &str) -> String {
        self.find(id).and_then(|finding| finding.paper).map_or_else(|| "-".to_owned(), number)
    }

    /// The paper's and ours.
    fn both(&self, id: &str) -> String {
        format!("{} / {}", self.paper(id), self.ours(id))
    }

    /// The 95 % interval of ours.
    fn interval(&self, id: &str) -> String {
        let spread = self.find(id).and_then(|finding| finding.spread);
        spread.map_or_else(|| "-".to_owned(), |spread| spread.ci95.map(number).join(" to "))
    }
}

fn figure4(look: &Look<'_>) -> Sheet {
    let mut sheet = Sheet::new("Figures 4 and 5", ["", "paper", "ours", "95 % interval"]);
    let rows = [
        ("fig4a/mean_ru", "requested, original, %"),
        ("fig4a/ru_before_2.2", "  most before month 2.2, % (below)"),
        ("fig4a/ru_after_2.2", "  most after it, % (above)"),
        ("fig4a/wt", "  mean wait, s"),
        ("fig4a/tail", "  runs on after the last submission, h"),
        ("fig4b/mean_ru", "requested, compressed, %"),
        ("fig4b/length", "  length, months"),
        ("fig4b/eu_plateau", "  effective while above 100 %, %"),
        ("fig4b/wt", "  mean wait, s"),
        ("fig4b/tail", "  runs on after the last submission, h"),
        ("fig5/wt_median", "  median wait, s"),
        ("fig5/delayed", "  delayed jobs, %"),
    ];
    for (id, title) in rows {
        if look.find(id).is_some() {
            sheet.row([title.to_owned(), look.paper(id), look.ours(id), look.interval(id)]);
        }
    }
    sheet
}

fn table1(look: &Look<'_>) -> Sheet {
    let title = "Table I: schedules carried and failures in one piece of the trace";
    let mut sheet =
        Sheet::new(title, ["", "paper", "busiest", "median", "failures", "paper", "busiest", "one try"]);
    for policy in ["push", "pull", "poll"] {
        let id = |name: &str| format!("table1/{policy}/{name}");
        if look.find(&id("messages")).is_some() {
            sheet.row([
                policy.to_owned(),
                look.paper(&id("messages")),
                look.ours(&id("messages")),
                look.ours(&format!("table1/median_day/{policy}/messages")),
                "%".to_owned(),
                look.paper(&id("failures")),
                look.ours(&id("failures")),
                look.ours(&id("failures_first_try")),
            ]);
        }
    }
    sheet
}

fn table2(look: &Look<'_>) -> Sheet {
    let title = "Table II: the degree of the overlay (paper / ours on the busiest piece)";
    let mut sheet = Sheet::new(title, ["degree", "failures, %", "wait, s", "push", "pull"]);
    for degree in [10, 20, 30, 40] {
        let both = |name: &str| look.both(&format!("table2/degree{degree}/{name}"));
        if look.any("asap/table2/degree") {
            sheet.row([degree.to_string(), both("failures"), both("wt"), both("push"), both("pull")]);
        }
    }
    sheet
}

fn table3(look: &Look<'_>) -> Sheet {
    let mut sheet = Sheet::new(
        "Table III: shuffled and static overlay, mean wait",
        ["", "paper", "ours", "95 % interval"],
    );
    for trace in ["grid5000", "compressed"] {
        for (name, unit) in [("dynamic", "s"), ("static", "s"), ("difference", "%")] {
            let id = format!("table3/{trace}/{name}");
            if look.find(&id).is_some() {
                let title = format!("{trace} {name}, {unit}");
                sheet.row([title, look.paper(&id), look.ours(&id), look.interval(&id)]);
            }
        }
    }
    sheet
}

fn figure6(look: &Look<'_>) -> Sheet {
    let mut sheet = Sheet::new("Figure 6: pull over push", ["", "paper", "ours"]);
    let rows = [
        ("fig6/ratio", "mean over time"),
        ("fig6/ratio_low", "where least is requested"),
        ("fig6/ratio_high", "highest"),
        ("fig6/ratio_total", "of the totals"),
    ];
    for (id, title) in rows {
        if look.find(id).is_some() {
            sheet.row([title.to_owned(), look.paper(id), look.ours(id)]);
        }
    }
    sheet
}

fn scale(look: &Look<'_>) -> Sheet {
    let mut sheet =
        Sheet::new("Schedules carried per job at equal load", ["size of the grid", "ours", "95 % interval"]);
    for (name, title) in [("x1", "smallest"), ("x2", "twice"), ("x4", "four times"), ("x8", "eight times")] {
        let id = format!("scale/{name}/messages_per_job");
        if look.find(&id).is_some() {
            sheet.row([title.to_owned(), look.ours(&id), look.interval(&id)]);
        }
    }
    sheet
}

fn beside(look: &Look<'_>) -> Sheet {
    let title = "Other schedulers: mean wait, s (jobs end as asked / when they really did)";
    let mut sheet = Sheet::new(title, ["", "original", "compressed"]);
    if !look.any("asap/baselines") && !look.any("asap/estimates") {
        return sheet;
    }
    for by in ["asap", "easy", "conservative", "central-asap", "flood"] {
        let both = |trace: &str| {
            let ours = |group: &str| look.ours(&format!("{group}/{trace}/{by}/wt"));
            format!("{} / {}", ours("baselines"), ours("estimates"))
        };
        sheet.row([by.to_owned(), both("grid5000"), both("compressed")]);
    }
    sheet
}

/// A number for people: few digits where they say enough, thousands apart where there are many.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let plain = format!("{value:.digits$}");
    let (whole, rest) =
        plain.split_once('.').map_or((plain.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or_else(|| format!("{sign}{grouped}"), |rest| format!("{sign}{grouped}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.214, 9.5, 28.04, 936.4, 72_000_000.0, -1_234.0].map(number);
        assert_eq!(texts, ["0", "0.21", "9.50", "28.0", "936", "72,000,000", "-1,234"]);
    }
}
