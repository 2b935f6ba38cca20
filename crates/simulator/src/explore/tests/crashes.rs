//! An arbiter lets one node enter; what it must save, and when, only crashes can show.

use super::*;

/// Grants the first who asks, and remembers whom.
fn arbiter(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>, grant: fn(NodeId, &mut Ctx<'_, Toy>)) {
    match input {
        Input::Boot if toy.me != N1 => ctx.send(N1, Word("ask")),
        Input::Message { from, message: Word("ask") } if [0, from.0].contains(&toy.get("owner")) => {
            toy.set("owner", from.0);
            grant(from, ctx);
        }
        Input::Message { message: Word("grant"), .. } => ctx.report(Word("enter")),
        _ => {}
    }
}

fn careful(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
    arbiter(toy, input, ctx, |to, ctx| {
        ctx.save(Fact("owner", to.0));
        ctx.send(to, Word("grant"));
    });
}

fn forgetful(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
    arbiter(toy, input, ctx, |to, ctx| ctx.send(to, Word("grant")));
}

fn hasty(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
    arbiter(toy, input, ctx, |to, ctx| {
        ctx.send(to, Word("grant"));
        ctx.save(Fact("owner", to.0));
    });
}

fn world(play: Play) -> Explorer<Toy, OneEnters> {
    Explorer::new(3, |_| play, OneEnters::default())
}

#[test]
fn an_arbiter_that_saves_first_lets_one_enter_whatever_happens() {
    for disks in [Disks::Instant, Disks::Slow] {
        let faults = Faults { crashes: 2, losses: 1, duplicates: 1 };
        let report = world(careful).faults(faults).disks(disks).run();
        assert!(report.holds(), "{report}");
        assert!(report.states > 1_000);
    }
}

#[test]
fn a_save_left_out_shows_only_in_a_crash() {
    assert!(world(forgetful).run().holds());
    let faults = Faults { crashes: 0, losses: 2, duplicates: 2 };
    assert!(world(forgetful).faults(faults).run().holds());

    let violation = world(forgetful).faults(crashes(1)).run().violation.expect("two enter");
    assert_eq!(
        violation.to_string(),
        "\
0.0s n1 starts
0.0s n2 starts
    sends n1 ask
0.0s n3 starts
    sends n1 ask
0.0s n2 -> n1 ask
    sends n2 grant
0.0s n1 -> n2 grant
    reports enter
0.0s n1 crashes
0.0s n1 starts
0.0s n3 -> n1 ask
    sends n3 grant
0.0s n1 -> n3 grant
    reports enter
violated: monitor: n2 is in, and n3 enters"
    );
}

#[test]
fn a_save_after_the_send_shows_only_in_a_crash_between_them() {
    assert!(world(hasty).run().holds());
    let violation = world(hasty).faults(crashes(1)).run().violation.expect("two enter");
    let cut = violation.path.iter().find(|leg| leg.then.contains(&"crashes".to_owned()));
    assert_eq!(cut.expect("a reaction is cut short").then, ["sends n2 grant", "crashes"]);
}

#[test]
fn nothing_leaves_before_a_slow_write_is_durable() {
    let explore = |disks| {
        world(careful)
            .faults(crashes(1))
            .disks(disks)
            .always("a grant is on disk", |state| {
                let granted = state.in_flight().any(|(_, _, word)| word.0 == "grant");
                rule(!granted || state.disk(N1).contains_key("owner"), "it is not")
            })
            .run()
    };
    assert!(explore(Disks::Instant).holds());
    assert!(explore(Disks::Slow).holds());
}

#[test]
fn a_slow_disk_lags_behind_the_core() {
    let explore = |disks| {
        world(careful)
            .disks(disks)
            .always("what the core knows is on disk", |state| {
                let known = state.core(N1).map_or(0, |core| core.get("owner"));
                rule(known == 0 || state.disk(N1).contains_key("owner"), "it is not")
            })
            .run()
    };
    assert!(explore(Disks::Instant).holds());
    let violation = explore(Disks::Slow).violation.expect("the write takes its time");
    assert_eq!(
        violation.path.last().expect("the grant").then,
        ["saves Fact(\"owner\", 2), once written", "sends n2 grant, once written"]
    );
}

#[test]
fn a_node_that_stays_down_is_at_rest() {
    let report = world(careful)
        .faults(crashes(1))
        .at_rest("somebody is in", |state| rule(state.monitor().0.is_some(), "nobody is"))
        .run();
    let violation = report.violation.expect("a dead arbiter lets nobody in");
    let ends: Vec<&str> = violation.path[3..].iter().map(|leg| leg.what.as_str()).collect();
    assert_eq!(ends, ["n2 -> n1 ask", "n3 -> n1 ask finds nobody"], "{violation}");
    assert_eq!(violation.path[3].then, ["crashes"]);

    let report = world(careful)
        .at_rest("somebody is in", |state| rule(state.monitor().0.is_some(), "nobody is"))
        .run();
    assert!(report.holds() && report.rests > 0);
}

#[test]
fn a_core_that_panics_is_a_violation_with_a_story() {
    fn fragile(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        match input {
            Input::Boot if toy.me == N1 => ctx.send(N2, Word("boo")),
            Input::Message { from, .. } => panic!("scared by {from}"),
            _ => {}
        }
    }
    let violation = toys(2, fragile).run().violation.expect("it panics");
    assert_eq!(
        (violation.rule.as_str(), violation.why.as_str()),
        ("cores do not panic", "n2 panicked: scared by n1")
    );
    assert_eq!(violation.path.last().expect("the letter").what, "n1 -> n2 boo");
}
