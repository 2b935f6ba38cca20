//! Conversations that a busy world seldom has: words that come late, of an old placement, or under an old name.

use super::*;
use crate::testing::World;

const OWNER: NodeId = NodeId(1);
const OLD: NodeId = NodeId(2);
const NEW: NodeId = NodeId(3);
const A_MOMENT: Span = Span::from_millis(10);
const START: Time = Time::from_secs(1_000);

/// What is known for a start: here a name of the set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Named(&'static str);

impl Brief for Named {
    fn bytes(&self) -> u64 {
        0
    }

    fn suits(&self, _: JobId, _: NodeId) -> bool {
        true
    }

    fn mentions(&self, _: &mut dyn FnMut(NodeId)) {}
}

type Commit = TwoPhase<u32, Named>;

fn world() -> World<Commit> {
    let capacity = Capacity::constant(1).expect("one is not too much");
    World::new(3, Setting { config: Config::default(), capacity }, A_MOMENT)
}

fn job() -> JobId {
    JobId::from_number(1)
}

/// Has the owner place the job on a node.
fn propose(world: &mut World<Commit>, node: NodeId, leave_by: Time) {
    let proposal = Proposal {
        job: job(),
        start: START,
        span: Span::from_hours(1),
        shares: vec![(node, 1)],
        after: Epoch(0),
        leave_by: Some(leave_by),
        brief: Shared::new(Named("one")),
    };
    world.command(OWNER, Command::Propose(proposal));
}

fn stage(world: &World<Commit>, node: NodeId, epoch: u32) -> Option<Stage> {
    world.core(node).lock(job(), Epoch(epoch)).map(|(_, stage)| stage)
}

#[test]
fn new_place_stands_only_if_the_old_one_was_left_in_time() {
    // The old node is out of reach for five seconds, while the owner goes on asking.
    for (leave_by_secs, stands) in [(4, false), (9, true)] {
        let mut world = world();
        propose(&mut world, OLD, Time::NEVER);
        world.run_for(Span::from_secs(1));
        assert_eq!(stage(&world, OLD, 1), Some(Stage::Confirmed));

        let asked = world.now();
        world.network(move |sent| {
            let cut = sent.at < asked + Span::from_secs(5) && [sent.from, sent.to].contains(&OLD);
            if cut { Vec::new() } else { vec![A_MOMENT] }
        });
        propose(&mut world, NEW, asked + Span::from_secs(leave_by_secs));
        world.run_for(Span::from_secs(20));
        let events = world.reports().iter().filter(|(_, node, _)| *node == OWNER);
        let events: Vec<&Event> = events.map(|(_, _, event)| event).collect();
        let placed = events.iter().any(|event| matches!(event, Event::Placed(_, to) if to.epoch == Epoch(2)));
        let given_up = events.iter().any(|event| matches!(event, Event::Unplaced { epoch: Epoch(2), .. }));
        assert_eq!((placed, given_up), (stands, !stands), "{}", world.story());
        assert_eq!(stage(&world, NEW, 2), stands.then_some(Stage::Confirmed), "{}", world.story());
        assert_eq!(stage(&world, OLD, 1), None);
    }
}

#[test]
fn old_node_that_never_answers_keeps_nobody_waiting() {
    let mut world = world();
    propose(&mut world, OLD, Time::NEVER);
    world.run_for(Span::from_secs(1));
    world.network(|sent| if [sent.from, sent.to].contains(&OLD) { Vec::new() } else { vec![A_MOMENT] });
    propose(&mut world, NEW, Time::NEVER);
    world.run_for(Span::from_secs(60));
    assert_eq!(stage(&world, NEW, 2), None, "{}", world.story());
    assert_eq!(world.core(OWNER).lingers_on(job()), Some(OLD));
}

#[test]
fn answer_for_an_old_release_is_none_for_a_later_one() {
    let mut world = world();
    // The first placement is taken back, and the answer to that is lost.
    let deaf = |message: &Message<u32, Named>| matches!(message, Message::Released { .. });
    world.network(move |sent| if deaf(&sent.message) { Vec::new() } else { vec![A_MOMENT] });
    propose(&mut world, OLD, Time::NEVER);
    world.run_for(Span::from_secs(1));
    world.command(OWNER, Command::Release(job()));
    propose(&mut world, OLD, Time::NEVER);
    world.run_for(Span::from_secs(1));
    assert_eq!(stage(&world, OLD, 2), Some(Stage::Confirmed), "{}", world.story());

    // The second is to be left, and only the old answer comes.
    world.network(|sent| if [sent.from, sent.to].contains(&OLD) { Vec::new() } else { vec![A_MOMENT] });
    propose(&mut world, NEW, Time::NEVER);
    world.run_for(Span::from_secs(1));
    let message = Message::Released { job: job(), upto: Epoch(1) };
    world.tell(OWNER, Input::Message { from: OLD, message });
    world.run_for(Span::from_secs(1));
    assert_eq!(stage(&world, OLD, 2), Some(Stage::Confirmed));
    assert_ne!(stage(&world, NEW, 3), Some(Stage::Confirmed), "{}", world.story());
}

#[test]
fn promise_is_not_given_for_another_time_or_another_set_by_an_old_name() {
    let mut world = world();
    propose(&mut world, OLD, Time::NEVER);
    world.run_for(Span::from_secs(1));
    // As if the owner had lost its disk, and counted anew.
    let ask = |start| Prepare { job: job(), epoch: Epoch(1), start, span: Span::from_hours(1), amount: 1 };
    let last = |world: &World<Commit>| format!("{:?}", world.sent().last().expect("an answer").message);
    let tell = |world: &mut World<Commit>, message| world.tell(OLD, Input::Message { from: OWNER, message });

    tell(&mut world, Message::Prepare(Box::new(ask(START))));
    assert!(last(&world).contains("Yes"), "the same, asked twice");
    tell(&mut world, Message::Prepare(Box::new(ask(START + Span::from_secs(1)))));
    assert!(last(&world).contains("No"), "{}", world.story());

    let commit = |brief| Message::Commit { job: job(), epoch: Epoch(1), brief: Shared::new(Named(brief)) };
    tell(&mut world, commit("one"));
    assert!(last(&world).contains("Committed"), "the same, said twice");
    tell(&mut world, commit("another"));
    assert!(last(&world).contains("Refuse"), "{}", world.story());
    assert_eq!(stage(&world, OLD, 1), Some(Stage::Confirmed));
}

#[test]
fn both_places_of_a_job_on_its_way_to_an_earlier_one_survive_a_crash() {
    let lock = |epoch: u32, start: Time| Lock {
        job: job(),
        epoch: Epoch(epoch),
        coordinator: OWNER,
        start,
        span: Span::from_mins(5),
        amount: 1,
        confirmed: epoch == 1,
        brief: Some(Shared::new(Named("one"))),
        longer_by: None,
    };
    let capacity = Capacity::constant(1).expect("one is not too much");
    let setting = Setting { config: Config::default(), capacity };
    let earlier = START - Span::from_mins(10);
    for saved in [[lock(1, START), lock(2, earlier)], [lock(2, earlier), lock(1, START)]] {
        let commit = Commit::restore(&setting, OLD, saved.into_iter().map(Record::Lock));
        let stage = |epoch| commit.lock(job(), Epoch(epoch)).map(|(_, stage)| stage);
        assert_eq!((stage(1), stage(2)), (Some(Stage::Confirmed), Some(Stage::Committed)));
    }
}
