//! What criteria mean, how they are read, and what is refused.

use proptest::prelude::*;

use super::*;
use crate::text::Expression;

/// A set whose facts are given.
struct Set {
    wait: u64,
    closest: u64,
    domains: i128,
}

impl Facts for Set {
    fn measure(&self, measure: &Measure) -> Option<Fixed> {
        Some(match measure {
            Measure::Wait => fixed(Span::from_secs(self.wait)),
            Measure::Finish => fixed(Span::from_secs(self.wait + 60)),
            Measure::Closest | Measure::Spread => fixed(Span::from_millis(self.closest)),
            Measure::Near(_) => return None,
            Measure::Domains(_) => self.domains * ONE,
            Measure::Fastest => fixed(Span::from_secs(60)),
            Measure::Cheapest => 3 * ONE,
        })
    }
}

fn read(text: &str) -> Criterion {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    text.parse::<Criterion>().expect_err(text).to_string()
}

const SET: Set = Set { wait: 600, closest: 40, domains: 3 };

#[test]
fn costs_are_what_the_words_say() {
    let cost = |text: &str| read(text).cost(&SET);
    assert_eq!(cost("soonest"), Cost { missed: 0, value: 600 * ONE });
    assert_eq!(cost("minimise closest").value, 40 * ONE / 1_000);
    assert_eq!(cost("spread").value, -40 * ONE / 1_000);
    assert_eq!(cost("domains").value, -3 * ONE);
    assert_eq!(cost("2 * closest + 5ms * domains").value, (80 - 15) * ONE / 1_000);
    assert_eq!(cost("closest / 1ms - 0.5 * cheapest").value, 385 * ONE / 10);
    assert_eq!(cost("-(wait - 1h)").value, 3_000 * ONE);
}

#[test]
fn bounds_are_read_as_plain_amounts_and_missed_by_how_much() {
    let cost = |text: &str| read(text).cost(&SET);
    assert_eq!(cost("closest subject to wait <= 1h").missed, 0);
    assert_eq!(cost("closest subject to wait <= 5m").missed, 300 * ONE);
    assert_eq!(cost("closest subject to domains >= 3 and wait > 10m").missed, 1);
    assert!(cost("closest subject to domains >= 3") < cost("closest subject to domains >= 4"));
    assert_eq!(cost("near(here)"), Cost::IMPOSSIBLE, "nobody knows where here is");
    let undefined = "closest / (domains - 3)";
    assert!(!read(undefined).cost(&Set { domains: -3, ..SET }).is_feasible(), "divided by zero");
}

#[test]
fn what_is_wrong_is_said_at_its_column() {
    let cases = [
        ("closets", "unknown name `closets`: did you mean `closest`? at column 1"),
        ("2 * fastets", "unknown name `fastets`: did you mean `fastest`? at column 5"),
        (
            "zebra",
            "unknown name `zebra`: known are soonest, wait, finish, closest, spread, near, domains, fastest, cheapest at column 1",
        ),
        (
            "closest + domains",
            "cannot add a length of time and a plain number: multiply by what one is worth, as in 5ms * domains at column 9",
        ),
        (
            "closest subject to wait <= 1",
            "a number without a unit: expected a span, as in 10s or 1h30m at column 28",
        ),
        ("closest subject wait <= 1h", "expected `to` after `subject`, found `wait` at column 17"),
        ("closest subject to wait", "expected `<`, `<=`, `>` or `>=`, found the end at column 24"),
        ("closest / 0", "division by zero at column 9"),
        ("closest + 3 bananas", "a number without a unit: expected a span, as in 10s or 1h30m at column 11"),
        (
            "closest * 3bananas",
            "unknown unit `bananas` in `3bananas`: expected a span, as in 1h30m at column 12",
        ),
        ("near", "near what? Expected a node's id or `here` in brackets, as in near(here) at column 5"),
        ("near(nowhere)", "`nowhere` is no node: expected a node's id, or `here` at column 6"),
        ("closest(3)", "`closest` takes nothing in brackets at column 9"),
        ("(closest", "expected `)`, found the end at column 9"),
        ("", "expected a number, a span or a name, found the end at column 1"),
        ("5", "a cost that is the same for every set of nodes at column 1"),
        ("subject to wait < 1h", "expected a cost before `subject`, as in `soonest` at column 1"),
        (
            "wait <= 1h",
            "expected a cost first, then its bounds, as in `soonest subject to …`, found `<=` at column 6",
        ),
        ("closest # 3", "'#' means nothing here at column 9"),
    ];
    for (text, error) in cases {
        assert_eq!(refused(text), error, "{text}");
    }
    let pointed = "closets".parse::<Criterion>().unwrap_err();
    assert_eq!(pointed.pointing_at("closets"), "  closets\n  ^");
}

#[test]
fn absurd_depth_and_length_are_refused() {
    let deep = format!("{}wait{}", "(".repeat(40), ")".repeat(40));
    assert!(refused(&deep).contains("nested deeper than 24 at column 26"));
    assert!(refused(&format!("{}wait", "-".repeat(200))).contains("nested deeper"));
    assert!(refused(&format!("wait{}", " + wait".repeat(200))).contains("more than 256"));
    assert!(refused("99999999999999999999999999999999999999999999 * wait").contains("too large"));
}

#[test]
fn what_matters_is_seen_without_looking_at_a_set() {
    assert!(read("soonest").needs_start());
    assert!(!read("closest").needs_start());
    assert!(read("closest subject to finish <= 1h").needs_start());
    assert_eq!(read("closest").only(), Some(&Measure::Closest));
    assert_eq!(read("2 * closest").only(), None);
    assert_eq!(read("near(here) + wait").first(), Some(&Measure::Near(None)));
    assert_eq!(Criterion::SOONEST, read("soonest"));
}

fn term(depth: u32) -> impl Strategy<Value = String> {
    let time = prop::sample::select(vec![
        "wait",
        "finish",
        "closest",
        "spread",
        "near(here)",
        "fastest",
        "3ms",
        "1h30m",
    ])
    .prop_map(str::to_owned);
    time.prop_recursive(depth, 24, 2, |inner| {
        let number =
            prop::sample::select(vec!["2", "0.5", "domains", "cheapest", "12.25", "domains(\"zone\")"]);
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} + {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} - {b})")),
            (number.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} * {b}")),
            (inner.clone(), number).prop_map(|(a, b)| format!("{a} / {b}")),
            inner.prop_map(|a| format!("-{a}")),
        ]
    })
}

#[test]
fn a_long_sum_is_not_a_deep_one_and_brackets_stay_where_they_matter() {
    let long = vec!["wait"; 100].join(" + ");
    assert_eq!(read(&long).to_string(), long);
    for text in
        ["wait - (finish - closest)", "wait / (2 / 3)", "2 * (wait + finish) / 3", "-(wait + finish) - -wait"]
    {
        assert_eq!(read(text).to_string(), text);
    }
    assert_eq!(read("((wait) + (2 * finish))").to_string(), "wait + 2 * finish");
}

proptest! {
    #[test]
    fn criteria_read_back_what_they_write(cost in term(4), left in term(2), right in term(2), bound: bool) {
        let text = match bound {
            true => format!("{cost} + wait subject to {left} <= {right} and domains > 2"),
            false => format!("{cost} + wait"),
        };
        let read: Criterion = text.parse().map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let written = read.to_string();
        prop_assert_eq!(written.parse::<Criterion>(), Ok(read), "{}", written);
    }

    #[test]
    fn nothing_that_is_written_makes_the_reader_fall_over(text in "\\PC{0,60}") {
        let _ = text.parse::<Criterion>();
    }

    #[test]
    fn nothing_made_of_its_own_words_makes_it_fall_over(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "closest", "near", "(", ")", "+", "-", "*", "/", "<=", "1h", "0", "5", "subject", "to", "and", "\"x\"", ".",
            ]),
            0..40,
        ),
        wait: u64,
        closest: u64,
    ) {
        let text = words.join(" ");
        if let Ok(criterion) = text.parse::<Criterion>() {
            let facts = Set { wait: wait % (1 << 40), closest: closest % (1 << 50), domains: 1 << 80 };
            let cost = criterion.cost(&facts);
            prop_assert!(cost.value.abs() <= FIXED_MAX && cost.missed <= FIXED_MAX && cost.missed >= 0);
        }
    }

    #[test]
    fn errors_point_into_the_text_or_just_behind(text in "[a-z0-9 ()*/+<=\"-]{0,40}") {
        if let Err(error) = text.parse::<Criterion>() {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column()), "{error}");
        }
        let _ = text.parse::<Expression>();
    }
}
