//! Bugs that show when messages overtake each other, come twice or not at all.

use shoal_model::Span;

use super::*;

#[test]
fn a_later_word_that_is_overtaken_by_an_earlier_one_is_found() {
    fn sender(toy: &mut Toy, input: &Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        if matches!(input, Input::Boot) && toy.me == N1 {
            ctx.send(N2, Word("a"));
            ctx.send(N2, Word("bb"));
        }
    }
    fn last(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        sender(toy, &input, ctx);
        if let Input::Message { message, .. } = input {
            toy.set("value", message.bytes());
        }
    }
    fn greatest(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        sender(toy, &input, ctx);
        if let Input::Message { message, .. } = input {
            toy.set("value", message.bytes().max(toy.get("value")));
        }
    }
    let explore = |play| {
        toys(2, play)
            .at_rest("the last word counts", |state| {
                rule(state.core(N2).is_some_and(|core| core.get("value") == 2), "an earlier one does")
            })
            .run()
    };
    assert!(explore(greatest).holds());
    let violation = explore(last).violation.expect("the first word can come last");
    let words: Vec<&str> = violation.path[2..].iter().map(|leg| leg.what.as_str()).collect();
    assert_eq!(words, ["n1 -> n2 bb", "n1 -> n2 a"]);
}

#[test]
fn a_word_that_counts_twice_is_found_only_when_doubled() {
    fn pay(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        match input {
            Input::Boot if toy.me == N1 => ctx.send(N2, Word("pay")),
            Input::Message { .. } => toy.set("paid", toy.get("paid") + 1),
            _ => {}
        }
    }
    let explore = |duplicates| {
        toys(2, pay)
            .faults(Faults { duplicates, losses: 1, crashes: 0 })
            .always("paid once", |state| {
                rule(state.cores().all(|(_, core)| core.get("paid") <= 1), "paid twice")
            })
            .run()
    };
    assert!(explore(0).holds());
    let violation = explore(1).violation.expect("it counts twice");
    let moves: Vec<&str> = violation.path[2..].iter().map(|leg| leg.what.as_str()).collect();
    assert_eq!(moves, ["n1 -> n2 pay is doubled", "n1 -> n2 pay", "n1 -> n2 pay"]);
}

#[test]
fn a_lost_word_is_made_good_only_by_saying_it_again() {
    fn once(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        match input {
            Input::Boot if toy.me == N1 => ctx.send(N2, Word("hi")),
            Input::Message { .. } => toy.set("greeted", 1),
            _ => {}
        }
    }
    fn again(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        match input {
            Input::Boot | Input::Timer(_) if toy.me == N1 && toy.get("heard") == 0 => {
                ctx.send(N2, Word("hi"));
                ctx.wake_after(Span::from_secs(1), Word("again"));
            }
            Input::Message { message: Word("hi"), from } => {
                toy.set("greeted", 1);
                ctx.send(from, Word("thanks"));
            }
            Input::Message { .. } => toy.set("heard", 1),
            _ => {}
        }
    }
    let explore = |play, losses| {
        toys(2, play)
            .faults(Faults { losses, ..Faults::default() })
            .limits(Limits { horizon: Time::from_secs(3), ..Limits::default() })
            .at_rest("greeted", |state| {
                rule(state.core(N2).is_some_and(|core| core.get("greeted") == 1), "never")
            })
            .run()
    };
    assert!(explore(once, 0).holds());
    assert!(explore(once, 1).violation.is_some());
    // Four are sent up to the horizon, and three can be lost.
    let report = explore(again, 3);
    assert!(report.holds() && report.cut.horizon, "{report}");
    assert!(explore(again, 4).violation.is_some());
}

#[test]
fn a_word_to_nobody_goes_nowhere() {
    fn lonely(_: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        if matches!(input, Input::Boot) {
            ctx.send(NodeId(0), Word("hello"));
            ctx.send(N3, Word("hello"));
        }
    }
    let report = toys(2, lonely).run();
    assert_eq!((report.states, report.transitions), (1, 0));
}
