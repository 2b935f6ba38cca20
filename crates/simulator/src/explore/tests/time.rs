//! Which timers may fire when, by shared clocks and by clocks of their own.

use shoal_model::Span;

use super::*;

/// Each node reports once, after as many seconds as its number.
fn alarm(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
    match input {
        Input::Boot => ctx.wake_after(Span::from_secs(toy.me.0), Word("ring")),
        Input::Timer(_) => ctx.report(Word("rang")),
        _ => {}
    }
}

/// Nodes ring in the order of their numbers.
#[derive(Clone, Hash)]
struct InOrder(u64);

impl Monitor<Toy> for InOrder {
    fn see(&mut self, sight: &Sight<Toy>) -> Result<(), String> {
        let Saw::Event(_) = sight.saw else { return Ok(()) };
        let late = self.0 > sight.node.0;
        self.0 = sight.node.0;
        assert_eq!(sight.at, Time::from_secs(sight.node.0), "a timer fires when it is due");
        rule(!late, "out of order")
    }
}

#[test]
fn timers_by_one_clock_fire_in_order() {
    let report = Explorer::new(3, |_| alarm as Play, InOrder(0)).run();
    assert!(report.holds());
    assert_eq!((report.states, report.transitions), (4, 3));
}

#[test]
fn timers_by_different_clocks_fire_in_any_order() {
    let report = Explorer::new(3, |_| alarm as Play, InOrder(0)).clocks(Clocks::Own).run();
    assert_eq!(report.violation.expect("n2 rings first").why, "out of order");
    assert_eq!(toys(3, alarm).clocks(Clocks::Own).run().states, 8);
}

#[test]
fn timers_due_at_once_fire_in_any_order_among_nodes_but_not_in_one() {
    fn twice(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        match input {
            Input::Boot => {
                ["a", "bb"].into_iter().for_each(|name| ctx.wake_after(Span::from_secs(1), Word(name)))
            }
            Input::Timer(name) => toy.set("rang", toy.get("rang") * 10 + name.bytes()),
            _ => {}
        }
    }
    let report = toys(2, twice)
        .always("a before bb", |state| rule(state.cores().all(|(_, core)| core.get("rang") != 2), "bb first"))
        .run();
    assert!(report.holds());
    // Before the first rings; then each node has rung none, one or two of its timers, but not both none.
    assert_eq!(report.states, 1 + 9 - 1);
}

#[test]
fn timers_beyond_the_horizon_do_not_fire() {
    fn tick(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        if matches!(input, Input::Boot | Input::Timer(_)) {
            toy.set("ticks", toy.get("ticks") + 1);
            ctx.wake_after(Span::from_secs(1), Word("tick"));
        }
    }
    let limits = Limits { horizon: Time::from_secs(5), ..Limits::default() };
    let report = toys(1, tick).limits(limits).run();
    assert_eq!((report.states, report.rests, report.cut.horizon), (6, 1, true));
    assert!(report.holds());
}

/// Node 1 lends for a second; node 2 may use what it is lent, and says so.
fn lease(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
    match input {
        Input::Boot if toy.me == N1 => ctx.wake_after(Span::from_secs(1), Word("expire")),
        Input::Boot => ctx.send(N1, Word("use")),
        Input::Timer(_) => toy.set("expired", 1),
        Input::Message { .. } if toy.get("expired") == 0 && ctx.now >= Time::from_secs(1) => {
            ctx.report(Word("used too late"));
        }
        _ => {}
    }
}

#[derive(Clone, Hash)]
struct InTime;

impl Monitor<Toy> for InTime {
    fn see(&mut self, sight: &Sight<Toy>) -> Result<(), String> {
        rule(!matches!(sight.saw, Saw::Event(_)), "used too late")
    }
}

#[test]
fn a_message_at_the_very_instant_of_a_timer_may_come_before_it() {
    for clocks in [Clocks::Shared, Clocks::Own] {
        let world = || Explorer::new(2, |_| lease as Play, InTime).clocks(clocks);
        assert!(world().run().holds());
        let violation = world().timers(Timers::Any).run().violation.expect("the timer is late");
        assert_eq!(violation.path.last().expect("the use").at, Time::from_secs(1));
        assert_eq!(violation.path.len(), 2 + 2, "{violation}");
    }
}

#[test]
fn a_crash_forgets_timers_but_not_the_time() {
    fn clock(toy: &mut Toy, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        match input {
            Input::Boot if ctx.now == Time::ZERO => ctx.wake_after(Span::from_secs(1), Word("ring")),
            Input::Boot => toy.set("born late", 1),
            Input::Timer(_) => toy.set("rang", 1),
            _ => {}
        }
    }
    for clocks in [Clocks::Shared, Clocks::Own] {
        let report = toys(1, clock)
            .faults(crashes(1))
            .clocks(clocks)
            .always("a new life has no old timers", |state| {
                let late = |core: &Toy| core.get("born late") == 1;
                rule(state.core(N1).is_none_or(|core| !late(core) || core.get("rang") == 0), "it rang")
            })
            .run();
        assert!(report.holds(), "{report}");
        // Fresh, rung; down before and after that; then alive at 0 s, rung again, and born late.
        assert_eq!(report.states, 2 + 2 + 3);
    }
}
