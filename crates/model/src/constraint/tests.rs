//! What constraints admit, that both ways to judge agree, and what is refused.

use proptest::prelude::*;

use super::*;
use crate::resources::Resources;
use crate::samples;
use crate::units::{Size, Thousandths};

fn read(text: &str) -> Constraint {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn machine() -> Machine {
    let capacity = Resources::cores(8)
        .with_memory(Size::from_gib(16))
        .with_named("fpga".parse().unwrap(), Thousandths::whole(2));
    let mut machine = Machine::with_capacity(capacity);
    machine.organisation = "physics".parse().ok();
    machine.labels.insert("zone".parse().unwrap(), "basement".parse().unwrap());
    machine
}

#[test]
fn machines_are_admitted_by_what_they_are() {
    let cases = [
        ("memory >= 8GiB && org == \"physics\"", true),
        ("memory >= 8GiB && org == 'biology'", false),
        ("cores > 8 || gpus >= 1", false),
        ("!(cores < 4) && speed == 1", true),
        ("node.speed >= 1", true),
        ("8 <= cores", true),
        ("org in ['physics', 'chemistry']", true),
        ("labels.zone == 'basement'", true),
        ("labels[\"zone\"] != 'roof'", true),
        ("labels.rack == ''", true),
        ("'zone' in labels && !('rack' in labels)", true),
        ("resources.fpga >= 2", true),
        ("arch == 'x86_64' && system == 'linux'", true),
    ];
    for (text, admits) in cases {
        let constraint = read(text);
        assert!(constraint.is_native(), "{text}");
        assert_eq!(constraint.admits(&machine()), admits, "{text}");
    }
}

#[test]
fn other_shapes_go_to_the_interpreter() {
    let cases = [
        ("memory / 2 >= 4GiB", true),
        ("org.startsWith('phy')", true),
        ("cores > 4.0 ? memory > 8GiB : memory > 1GiB", true),
        ("size(labels.zone) == 8 && cores >= 4", true),
        ("node.memory - 1GiB > 16GiB", false),
    ];
    for (text, admits) in cases {
        let constraint = read(text);
        assert!(!constraint.is_native(), "{text}");
        assert_eq!(constraint.admits(&machine()), admits, "{text}");
    }
}

#[test]
fn the_first_clause_that_excludes_a_machine_is_known() {
    let constraint = read("cores >= 4 && memory >= 32GiB && org == 'biology'");
    assert_eq!(constraint.clauses(), 3);
    assert_eq!(constraint.refusal(&machine()), Some(1));
    assert_eq!(constraint.column(1), Some(15));
    assert_eq!(read("cores >= 4 && (memory >= 32GiB || org == 'x')").refusal(&machine()), Some(1));
    assert_eq!(read("cores >= 4 && memory >= 32GiB || org == 'x'").clauses(), 1);
}

#[test]
fn what_is_wrong_is_said_at_its_column() {
    let cases = [
        ("memroy >= 8GiB", "unknown attribute `memroy`: did you mean `memory`? at column 1"),
        ("cores >= 4 && ogr == 'x'", "unknown attribute `ogr`: did you mean `org`? at column 15"),
        ("node.sped > 1", "unknown attribute `sped`: did you mean `speed`? at column 6"),
        ("memory >= 8", "a size without a unit: expected 8GiB, or 8MiB at column 11"),
        ("memory >= 'much'", "expected a number, found the text \"much\" at column 11"),
        ("org == 3", "expected a text in quotes, found `3` at column 8"),
        ("cores >= 4GiB", "expected a plain number, found `4GiB` at column 10"),
        (
            "[1, 2].exists(x, x > cores)",
            "`exists` may take long, and is not allowed: compare attributes, or use `in` at column 8",
        ),
        ("memory + 1", "this is a value, not a condition: compare it with something at column 1"),
        ("", "expected a comparison, found the end at column 1"),
        ("cores >= 4 &&", "expected a comparison, found the end at column 14"),
        ("org == 'x", "a text without its closing quote at column 8"),
    ];
    for (text, error) in cases {
        assert_eq!(text.parse::<Constraint>().expect_err(text).to_string(), error, "{text}");
    }
    let wrong = "cores >= 4 + + ) 3".parse::<Constraint>().unwrap_err();
    assert!(wrong.to_string().contains("CEL does not understand this"), "{wrong}");
}

fn comparison() -> impl Strategy<Value = String> {
    let numbers = (prop::sample::select(vec!["cores", "gpus", "resources.fpga"]), 0..9_u32);
    let sizes = (prop::sample::select(vec!["memory", "disk"]), 1..9_u32);
    let texts = (
        prop::sample::select(vec!["org", "arch", "system"]),
        prop::sample::select(vec!["lab-a", "lab-b", "x86_64", "linux", ""]),
    );
    let order = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let same = prop::sample::select(vec!["==", "!="]);
    prop_oneof![
        (numbers, order.clone()).prop_map(|((name, value), order)| format!("{name} {order} {value}")),
        (sizes, order).prop_map(|((name, value), order)| format!("{name} {order} {value}GiB")),
        (texts, same).prop_map(|((name, value), order)| format!("{name} {order} '{value}'")),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    comparison().prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Named resources that a machine lacks are 0 to us and nothing to CEL, so the machine has one.
    #[test]
    fn our_code_and_the_interpreter_agree(text in condition(), mut machine in samples::machine()) {
        machine.capacity = machine.capacity.with_named("fpga".parse().unwrap(), Thousandths::whole(3));
        let native = read(&text);
        prop_assert!(native.is_native(), "{text}");
        let tokens = tokens(&text).unwrap();
        let program = interpreted::read(&text, &tokens).unwrap();
        prop_assert_eq!(native.admits(&machine), program.holds(&machine), "{}", text);
    }

    #[test]
    fn nothing_that_is_written_makes_the_reader_fall_over(text in "\\PC{0,40}", machine in samples::machine()) {
        if let Ok(constraint) = text.parse::<Constraint>() {
            let _ = constraint.admits(&machine);
        }
    }

    #[test]
    fn nothing_made_of_its_own_words_makes_it_fall_over(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "cores", "org", "labels", ".", "zone", "(", ")", "[", "]", "&&", "||", "!", "==", "<=", "4", "8GiB", "'x'",
                "in", "?", ":", "+", "-", "/", "0", "size", "true",
            ]),
            0..24,
        ),
        machine in samples::machine(),
    ) {
        if let Ok(constraint) = words.join(" ").parse::<Constraint>() {
            let _ = constraint.admits(&machine);
        }
    }
}
