//! The runs in tables: all of them, LIQ-PULL beside CENT, what is sent, and how often jobs were overtaken.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{EVERYBODY, Mix, Who};
use super::judge::{GAPS, LIQ_PULL, RATIOS, Runs, goal};
use super::seen::Seen;
use crate::reproduce::asap::number;
use crate::reproduce::sheet::Sheet;

/// The gap whose messages and counters are shown: the heaviest load.
const HEAVY: u32 = GAPS[0];

/// All tables for which there are runs.
pub fn sheets(runs: &Runs) -> Vec<Sheet> {
    let messages =
        by_kind(runs, "Messages a minute and node at a gap of 2 s, by kind", |(messages, _)| messages);
    let bytes = by_kind(runs, "Bytes a minute and node at a gap of 2 s, by kind", |(_, bytes)| bytes);
    [all(runs), beside_cent(runs), messages, bytes, counters(runs)]
        .into_iter()
        .filter(|sheet| !sheet.rows.is_empty())
        .collect()
}

/// The means of all runs over their seeds.
fn all(runs: &Runs) -> Sheet {
    let columns = ["", "gap", "ρ", "wait", "longest", "sent", "bytes", "moves", "spare"];
    let title = "Means over seeds; messages and bytes a minute and node; spare: unneeded, of 1";
    let mut sheet = Sheet::new(title, columns);
    let kinds: BTreeSet<(Who, Mix, u32, u8)> =
        runs.seen.keys().map(|case| (case.who, case.mix, case.gap_ms, case.ratio)).collect();
    for (who, mix, gap_ms, ratio) in kinds {
        let of = |figure: fn(&Seen) -> f64| runs.of(who, mix, gap_ms, ratio, figure).map(number);
        let cell = |figure: fn(&Seen) -> f64| of(figure).unwrap_or_else(|| "-".to_owned());
        let sent = |figure: fn(&Seen) -> f64| if who == Who::Cent { "-".to_owned() } else { cell(figure) };
        // What is mixed has the usual ratio.
        let of = if mix == Mix::Clustered { format!("{ratio} %") } else { mix.name().to_owned() };
        sheet.row([
            format!("{}, {of}", who.name()),
            number(f64::from(gap_ms) / 1e3),
            cell(|seen| seen.offered),
            cell(Seen::wait),
            cell(Seen::longest),
            sent(|seen| seen.messages),
            sent(|seen| seen.bytes),
            sent(|seen| seen.moves as f64),
            cell(|seen| seen.beyond),
        ]);
    }
    sheet
}

/// LIQ-PULL beside CENT, at every gap and every constraint ratio.
fn beside_cent(runs: &Runs) -> Sheet {
    let title = "LIQ-PULL beside CENT: mean waits; the goal is 1.5 times CENT's and 60 s";
    let mut sheet = Sheet::new(title, ["gap", "constraints", "CENT", "LIQ-PULL", "goal", "met"]);
    let at_gaps = GAPS.map(|gap| (gap, 40));
    let at_ratios = RATIOS.map(|ratio| (3_000, ratio)).into_iter().filter(|at| !at_gaps.contains(at));
    for (gap_ms, ratio) in at_gaps.into_iter().chain(at_ratios) {
        let wait = |who| runs.of(who, Mix::Clustered, gap_ms, ratio, Seen::wait);
        let Some((cent, ours)) = wait(Who::Cent).zip(wait(LIQ_PULL)) else { continue };
        sheet.row([
            number(f64::from(gap_ms) / 1e3),
            format!("{ratio} %"),
            number(cent),
            number(ours),
            number(goal(cent)),
            if ours <= goal(cent) { "yes" } else { "no" }.to_owned(),
        ]);
    }
    sheet
}

/// What each variant sends, by kind of message.
fn by_kind(runs: &Runs, title: &str, part: fn((f64, f64)) -> f64) -> Sheet {
    let everybody: Vec<(Who, BTreeMap<&str, f64>)> = EVERYBODY[1..]
        .iter()
        .rev()
        .map(|&who| {
            let of = || runs.all_of(who, Mix::Clustered, HEAVY, 40);
            let count = of().count() as f64;
            let mut mean = BTreeMap::new();
            for (kind, &rates) in of().flat_map(|seen| &seen.kinds) {
                *mean.entry(kind.as_str()).or_insert(0.0) += part(rates) / count;
            }
            (who, mean)
        })
        .collect();
    let mut sheet = Sheet::new(title, [""]);
    sheet.columns.extend(everybody.iter().map(|(who, _)| who.name().to_owned()));
    let kinds: BTreeSet<&str> = everybody.iter().flat_map(|(_, mean)| mean.keys().copied()).collect();
    for kind in kinds {
        let of = |mean: &BTreeMap<&str, f64>| mean.get(kind).map_or("-".to_owned(), |rate| number(*rate));
        let cells = everybody.iter().map(|(_, mean)| of(mean));
        sheet.rows.push([kind.to_owned()].into_iter().chain(cells).collect());
    }
    sheet
}

/// How many jobs started after they had been overtaken so often: the evidence for bounded waiting.
fn counters(runs: &Runs) -> Sheet {
    let title = "Jobs by how often they were overtaken before their start, gap 2 s, all seeds";
    let columns = ["", "never", "once", "2-3", "4-7", "8-15", "16-31", "32-63", "more"];
    let mut sheet = Sheet::new(title, columns);
    for &who in EVERYBODY[1..].iter().rev() {
        let mut sum = vec![0; columns.len() - 1];
        for seen in runs.all_of(who, Mix::Clustered, HEAVY, 40) {
            sum.iter_mut().zip(&seen.counters).for_each(|(sum, count)| *sum += count);
        }
        // Vanilla has nobody overtaken and counts nothing.
        if sum.iter().any(|count| *count > 0) {
            let cells = sum.into_iter().map(|count| number(count as f64));
            sheet.rows.push([who.name().to_owned()].into_iter().chain(cells).collect());
        }
    }
    sheet
}
