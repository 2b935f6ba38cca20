//! Worlds whose states can be counted by hand.

use super::*;

/// Node 1 greets all others, and these remember it.
fn greeter(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
    match input {
        Input::Boot if toy.me == N1 => (2..=6).for_each(|node| ctx.send(NodeId(node), Word("hi"))),
        Input::Message { .. } => toy.set("greeted", 1),
        _ => {}
    }
}

#[test]
fn each_set_of_greeted_nodes_is_one_state() {
    let report = toys(6, greeter).run();
    // Of 5 letters each is in flight or not; each state has one move per letter in flight.
    assert_eq!((report.states, report.transitions), (32, 80));
    assert_eq!((report.depth, report.rests), (5, 1));
    assert!(report.holds());
    // The root's 5, then layers of 10, of which one is looked at while the next fills.
    assert!((10..=20).contains(&report.frontier), "{}", report.frontier);
}

#[test]
fn a_lost_letter_is_a_third_fate_of_one_of_them() {
    let report = toys(6, greeter).faults(Faults { losses: 1, ..Faults::default() }).run();
    // 2^5 without a loss; with one, 5 choices of which, and 2^4 for the others.
    assert_eq!(report.states, 32 + 5 * 16);
    assert_eq!(report.rests, 1 + 5);
}

#[test]
fn a_doubled_letter_counts_twice() {
    let report = toys(2, greeter).faults(Faults { duplicates: 1, ..Faults::default() }).run();
    // Letters in flight, greeted, doubled: (1,no,no) (0,yes,no) (2,no,yes) (1,yes,yes) (0,yes,yes).
    assert_eq!((report.states, report.transitions), (5, 4));
}

#[test]
fn a_crash_forgets_and_a_restart_greets_again() {
    let report = toys(2, greeter).faults(crashes(1)).run();
    // Before the crash 2: the letter is in flight or read. While node 1 is down 2: the same; while node 2 is
    // down 2: the letter is in flight or has found nobody. After the restart, letters in flight and greeted:
    // (2,no) (1,yes) (0,yes) (1,no) (0,no).
    assert_eq!(report.states, 2 + 2 + 2 + 5);
    // At rest: (0,yes) with crash to spare, both downs with nothing in flight, (0,yes) and (0,no).
    assert_eq!(report.rests, 5);
}

#[test]
fn commands_come_in_any_order_and_equal_ones_are_one() {
    fn count(toy: &mut Toy, input: Input<Toy>, _: &mut Ctx<'_, Toy>) {
        if let Input::Command(Word(what)) = input {
            let seen = toy.get("seen");
            toy.set("seen", seen * 10 + what.len() as u64);
        }
    }
    let toys = || toys(1, count);
    // Sequences without repetition of 3 things: 1 + 3 + 6 + 6.
    let different = toys().command(N1, Word("a")).command(N1, Word("bb")).command(N1, Word("ccc")).run();
    assert_eq!(different.states, 16);
    // Sequences of at most two a and one bb: none, a, bb, aa, a-bb, bb-a, aa-bb, a-bb-a, bb-aa.
    let alike = toys().command(N1, Word("a")).command(N1, Word("bb")).command(N1, Word("a")).run();
    assert_eq!(alike.states, 9);
}

#[test]
fn an_errand_ends_in_every_way() {
    fn runner(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        match input {
            Input::Boot => ["first", "first", "forgotten"].into_iter().for_each(|name| ctx.act(Word(name))),
            Input::Done(Word("good")) => toy.set("good", toy.get("good") + 1),
            Input::Done(_) => toy.set("bad", toy.get("bad") + 1),
            _ => {}
        }
    }
    let outcomes = |_, action: &Word| match action.0 {
        "forgotten" => vec![],
        _ => vec![Word("good"), Word("bad")],
    };
    let report = toys(1, runner).outcomes(outcomes).run();
    // Two equal errands: none, one or both have ended, and each so many of them well.
    assert_eq!((report.states, report.rests), (1 + 2 + 3, 3));
}

#[test]
fn the_same_world_gives_the_same_report() {
    let world = || {
        let faults = Faults { crashes: 1, losses: 1, duplicates: 1 };
        toys(4, greeter).faults(faults).at_rest("all are up", |state| {
            rule(state.nodes().all(|node| state.is_up(node)) || state.faults_left().losses > 0, "one is down")
        })
    };
    let report = world().run();
    assert!(report.violation.is_some());
    assert_eq!(world().run(), report);
}

#[test]
fn every_order_finds_the_same_states() {
    let faults = Faults { crashes: 1, losses: 1, duplicates: 0 };
    let [nearest, latest] =
        [Order::Nearest, Order::Latest].map(|order| toys(4, greeter).faults(faults).order(order).run());
    assert_eq!((nearest.states, nearest.transitions), (latest.states, latest.transitions));
    assert_eq!(nearest.rests, latest.rests);
    assert!(nearest.frontier > latest.frontier);
}

#[test]
fn what_is_cut_is_said_to_be() {
    let states = toys(6, greeter).limits(Limits { states: 31, ..Limits::default() }).run();
    assert_eq!((states.states, states.cut.states), (31, true));
    assert!(!states.holds());
    let all = toys(6, greeter).limits(Limits { states: 32, ..Limits::default() }).run();
    assert_eq!((all.states, all.cut), (32, Cut::default()));

    let depth = toys(6, greeter).limits(Limits { depth: 4, ..Limits::default() }).run();
    assert_eq!((depth.states, depth.depth), (31, 4));
    assert!(depth.cut.depth && !depth.holds());
    let deep = toys(6, greeter).limits(Limits { depth: 5, ..Limits::default() }).run();
    assert_eq!((deep.states, deep.cut), (32, Cut::default()));
}
