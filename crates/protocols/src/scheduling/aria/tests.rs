//! Late, doubled and senseless words; whole conversations are tested in simulated grids.

use proptest::prelude::*;
use shoal_model::{Envelope, Job, Machine, NodeId, Nonce, Resources, Span, Time};

use super::*;
use crate::node::{self, Node, config};
use crate::testing::{World, cases};

const ME: NodeId = NodeId(1);
const OWNER: NodeId = NodeId(2);
const DELAY: Span = Span::from_millis(1);

fn world() -> World<Node> {
    world_of(2, Config::real())
}

fn world_of(nodes: u64, recipe: Config) -> World<Node> {
    let config = node::Config {
        work: Some(Box::new(config::Work {
            machine: Machine::with_capacity(Resources::cores(2)),
            recipe: config::Recipe::Aria(recipe),
            commit: Default::default(),
            heartbeat: crate::guard::heartbeat::Config { watch: false, ..Default::default() },
            limit_default: Span::from_hours(1),
            eager: false,
            gate: Default::default(),
        })),
        ..node::Config::default()
    };
    World::new(nodes, config, DELAY)
}

fn envelope(number: u8) -> Shared<Envelope> {
    Shared::new(Envelope::new(Job::command(["true"]), Nonce([number; 16])).expect("the job makes sense"))
}

fn tell(world: &mut World<Node>, from: NodeId, message: Message) {
    world.tell(ME, Input::Message { from, message: node::Message::Aria(message) });
}

fn assign(world: &mut World<Node>, job: &Shared<Envelope>, epoch: u32) {
    let brief =
        Shared::new(Brief { envelope: job.clone(), nodes: vec![ME].into(), index: None, riders: None });
    let (job, epoch, limit) = (job.id(), Epoch(epoch), Span::from_mins(5));
    tell(world, OWNER, Message::Assign { job, epoch, brief, limit });
}

/// The token that this node drew when the job came.
fn token(world: &World<Node>) -> u32 {
    let drawn = world.sent().iter().rev().find_map(|sent| match sent.message {
        node::Message::Aria(Message::Assigned { token, .. }) if sent.from == ME => Some(token),
        _ => None,
    });
    drawn.expect("it said that it has the job")
}

fn confirm(world: &mut World<Node>, job: &Shared<Envelope>, epoch: u32, token: u32) {
    tell(world, OWNER, Message::Confirm { job: job.id(), epoch: Epoch(epoch), token });
}

fn starts(world: &World<Node>) -> usize {
    world.story().matches("does Start").count()
}

fn ends(world: &mut World<Node>, job: &Shared<Envelope>, epoch: u32) {
    let task = Task { job: job.id(), epoch: Epoch(epoch), rank: shoal_model::Rank(0) };
    world.tell(ME, Input::Done(node::Outcome::unmeasured(task, node::Exit::Code(0))));
}

#[test]
fn assigned_job_does_not_start_before_it_is_confirmed() {
    let (mut world, job) = (world(), envelope(1));
    world.network(|_| Vec::new());
    assign(&mut world, &job, 1);
    world.run_for(Span::from_secs(20));
    assert_eq!(starts(&world), 0);
    let drawn = token(&world);
    confirm(&mut world, &job, 1, drawn.wrapping_add(1));
    assert_eq!(starts(&world), 0, "that is another's token");
    confirm(&mut world, &job, 1, drawn);
    assert_eq!(starts(&world), 1);
}

#[test]
fn request_goes_further_in_each_further_round_where_it_is_to() {
    let passed_on = |round_hops, round, hops| {
        let mut world = world_of(3, Config { request_hops: 2, round_hops, rounds: 4, ..Config::real() });
        world.command(ME, node::Command::Meet([NodeId(3)].into()));
        let needs = Needs::new(Resources::cores(64), Span::from_hours(1));
        let ask = Ask { from: OWNER, job: envelope(1).id(), round, needs, priority: 0, cost: None };
        tell(&mut world, OWNER, Message::Request(Shared::new(ask), hops));
        let request = |message: &node::Message| matches!(message, node::Message::Aria(Message::Request(..)));
        world.sent().iter().any(|sent| sent.from == ME && request(&sent.message))
    };
    assert!(passed_on(0, 4, 1) && !passed_on(0, 4, 2), "as in the paper");
    assert!(passed_on(1, 1, 1) && !passed_on(1, 1, 2));
    assert!(passed_on(1, 3, 3) && !passed_on(1, 3, 4));
    assert!(
        passed_on(1, u32::MAX, 4) && !passed_on(1, u32::MAX, 5),
        "there are four rounds, whatever is said"
    );
}

#[test]
fn held_job_that_nobody_confirms_is_let_go_within_half_a_minute() {
    let (mut world, job) = (world(), envelope(1));
    world.network(|_| Vec::new());
    assign(&mut world, &job, 1);
    world.run_for(Span::from_secs(31));
    assert_eq!(world.core(ME).aria().expect("it follows aria").seats().count(), 0);
    assert_eq!(world.saved(ME).count(), 0);
}

#[test]
fn doubled_assign_and_confirm_start_a_job_once_whenever_they_come() {
    let (mut world, job) = (world(), envelope(1));
    world.network(|_| Vec::new());
    assign(&mut world, &job, 1);
    let drawn = token(&world);
    for _ in 0..2 {
        confirm(&mut world, &job, 1, drawn);
        assign(&mut world, &job, 1);
    }
    assert_eq!((starts(&world), token(&world)), (1, drawn));
    ends(&mut world, &job, 1);
    assign(&mut world, &job, 1);
    confirm(&mut world, &job, 1, drawn);
    assert_eq!(starts(&world), 1, "its owner has not heard of its end yet");
    let task = Task { job: job.id(), epoch: Epoch(1), rank: shoal_model::Rank(0) };
    let noted = node::Message::Job(node::JobMessage::Noted(task));
    world.tell(ME, Input::Message { from: OWNER, message: noted });
    assign(&mut world, &job, 1);
    confirm(&mut world, &job, 1, drawn);
    assert_eq!(starts(&world), 1, "nothing is known of it any more, and it draws another token");
}

#[test]
fn newer_placement_takes_the_place_of_an_older_one_and_not_the_other_way_round() {
    let (mut world, job) = (world(), envelope(1));
    world.network(|_| Vec::new());
    assign(&mut world, &job, 2);
    let drawn = token(&world);
    assign(&mut world, &job, 1);
    confirm(&mut world, &job, 1, drawn);
    assert_eq!(starts(&world), 0);
    confirm(&mut world, &job, 2, drawn);
    assert_eq!(starts(&world), 1);
    assign(&mut world, &job, 3);
    assert!(world.story().contains("does Stop"), "{}", world.story());
}

#[test]
fn cancelled_job_is_stopped_and_that_is_said_however_often_it_is_asked() {
    let (mut world, job) = (world(), envelope(1));
    world.network(|_| Vec::new());
    assign(&mut world, &job, 1);
    let drawn = token(&world);
    confirm(&mut world, &job, 1, drawn);
    for _ in 0..2 {
        tell(&mut world, OWNER, Message::Cancel { job: job.id(), epoch: Epoch(1) });
    }
    assert_eq!(world.story().matches("does Stop").count(), 1);
    assert_eq!(world.story().matches("Cancelled").count(), 2);
    tell(&mut world, NodeId(9), Message::Cancel { job: job.id(), epoch: Epoch(9) });
}

#[test]
fn stranger_cannot_cancel_or_confirm_a_job_of_another() {
    let (mut world, job) = (world(), envelope(1));
    world.network(|_| Vec::new());
    assign(&mut world, &job, 1);
    let drawn = token(&world);
    let (id, epoch) = (job.id(), Epoch(1));
    tell(&mut world, NodeId(9), Message::Confirm { job: id, epoch, token: drawn });
    assert_eq!(starts(&world), 0);
    tell(&mut world, NodeId(9), Message::Cancel { job: id, epoch });
    confirm(&mut world, &job, 1, drawn);
    assert_eq!(starts(&world), 1);
}

#[test]
fn job_whose_node_cannot_tell_when_it_starts_is_asked_after_from_now_on() {
    let (mut world, job) = (world(), envelope(1));
    // It asks itself first; what it says to itself is lost, as all else is.
    world.network(|_| Vec::new());
    world.command(ME, node::Command::Submit(job.clone()));
    world.run_for(Span::from_secs(1));
    let asked = world.sent().iter().find_map(|sent| match sent.message {
        node::Message::Aria(Message::Assign { epoch, .. }) => Some((sent.to, epoch)),
        _ => None,
    });
    let (node, epoch) = asked.expect("somebody is asked to take it");
    tell(&mut world, node, Message::Assigned { job: job.id(), epoch, token: 7, start: Time::NEVER });
    let planned = world.core(ME).aria().and_then(|aria| aria.placement(job.id())).expect("it has a place");
    assert_eq!(planned.start, world.now());
}

fn word() -> impl Strategy<Value = (NodeId, Message)> {
    let number = || (0u8..4).prop_map(envelope);
    let epoch = || prop_oneof![0u32..4, Just(u32::MAX)].prop_map(Epoch);
    let node = || (0u64..5).prop_map(NodeId);
    let span = || prop_oneof![1u64..100_000_000, Just(u64::MAX)].prop_map(Span::from_micros);
    let ask = (node(), number(), 0u32..3, any::<bool>(), span(), any::<i64>()).prop_map(
        |(from, job, round, informed, limit, cost)| {
            let needs =
                Needs { deadline: informed.then_some(Time::NEVER), ..Needs::new(Resources::cores(1), limit) };
            let cost = informed.then_some(Cost(cost));
            Shared::new(Ask { from, job: job.id(), round, needs, priority: 0, cost })
        },
    );
    let message = prop_oneof![
        (ask.clone(), any::<u8>()).prop_map(|(ask, hops)| Message::Request(ask, hops)),
        (ask, any::<u8>()).prop_map(|(ask, hops)| Message::Inform(ask, hops)),
        (number(), 0u32..3, any::<bool>(), any::<i64>()).prop_map(|(job, round, informed, cost)| {
            Message::Accept { job: job.id(), round, informed, cost: Cost(cost) }
        }),
        (number(), epoch(), span(), node()).prop_map(|(envelope, epoch, limit, node)| {
            let (job, nodes) = (envelope.id(), vec![if node.0 > 2 { node } else { ME }]);
            Message::Assign {
                job,
                epoch,
                brief: Shared::new(Brief { envelope, nodes: nodes.into(), index: None, riders: None }),
                limit,
            }
        }),
        (number(), epoch(), any::<u32>()).prop_map(|(job, epoch, token)| {
            Message::Assigned { job: job.id(), epoch, token, start: Time::NEVER }
        }),
        (number(), epoch()).prop_map(|(job, epoch)| Message::Refused { job: job.id(), epoch }),
        (number(), epoch(), any::<u32>()).prop_map(|(job, epoch, token)| Message::Confirm {
            job: job.id(),
            epoch,
            token
        }),
        (number(), epoch(), 0u32..3, node()).prop_map(|(job, epoch, turn, to)| Message::Notify {
            job: job.id(),
            epoch,
            turn,
            to
        }),
        (number(), epoch(), 0u32..3).prop_map(|(job, epoch, turn)| Message::Stay {
            job: job.id(),
            epoch,
            turn
        }),
        (number(), epoch()).prop_map(|(job, epoch)| Message::Cancel { job: job.id(), epoch }),
        (number(), epoch()).prop_map(|(job, epoch)| Message::Cancelled { job: job.id(), epoch }),
    ];
    (node(), message)
}

proptest! {
    #![proptest_config(cases(300))]

    /// Whatever peers say, nothing panics, no limit is passed, and what is on disk makes the same node again.
    #[test]
    fn node_survives_whatever_it_hears(words in prop::collection::vec((word(), 0u64..4_000, any::<bool>()), 1..60)) {
        let mut world = world();
        world.network(|_| Vec::new());
        world.command(ME, node::Command::Submit(envelope(0)));
        for ((from, message), pause, sound) in words {
            tell(&mut world, from, message);
            // Now and then a word that makes sense, so that jobs get to run.
            let first = world.core(ME).aria().expect("aria").seats().next();
            if sound && let Some((job, epoch, SeatState::Held)) = first {
                let drawn = token(&world);
                tell(&mut world, from, Message::Confirm { job, epoch, token: drawn });
            }
            world.run_for(Span::from_millis(pause));
            for node::Queue { name, len, most } in world.core(ME).queues() {
                prop_assert!(len <= most, "{len} {name}, at most {most}");
            }
        }
        let here = |world: &World<Node>| -> Vec<(JobId, Epoch)> {
            world.core(ME).aria().expect("aria").seats().map(|(job, epoch, _)| (job, epoch)).collect()
        };
        let before = here(&world);
        world.crash(ME);
        world.restart(ME);
        prop_assert_eq!(before, here(&world));
    }
}

#[test]
fn words_weigh_what_the_paper_says() {
    use crate::protocol::Message as _;
    let (job, epoch, cost) = (envelope(1).id(), Epoch(1), Cost(1));
    let needs = Needs::new(Resources::cores(1), Span::from_mins(5));
    let ask = Shared::new(Ask { from: OWNER, job, round: 1, needs, priority: 0, cost: None });
    let brief =
        Shared::new(Brief { envelope: envelope(1), nodes: vec![ME].into(), index: None, riders: None });
    let weights = [
        Message::Request(ask.clone(), 1),
        Message::Inform(ask, 1),
        Message::Assign { job, epoch, brief, limit: Span::from_mins(5) },
        Message::Accept { job, round: 1, informed: false, cost },
    ]
    .map(|message| message.bytes());
    assert_eq!(weights, [1_024, 1_024, 1_024, 128]);
}
