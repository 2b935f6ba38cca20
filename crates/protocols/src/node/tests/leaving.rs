//! Jobs of a node that leaves, through nodes of a scripted world.

use super::*;
use shoal_model::{Epoch, JobId};

const LEAVER: NodeId = NodeId(1);
const HEIR: NodeId = NodeId(2);

/// Two nodes of one core that know each other.
fn world() -> World<Node> {
    let mut config = config();
    if let Some(work) = &mut config.work {
        work.recipe = config::Recipe::named("aria").expect("a recipe");
    }
    let mut world = World::<Node>::new(2, config, A_MOMENT);
    world.command(LEAVER, Command::Meet([HEIR].into()));
    world.command(HEIR, Command::Meet([LEAVER].into()));
    world
}

/// A job that waits until its user has it start.
fn held(world: &mut World<Node>, node: NodeId) -> JobId {
    let job = envelope(Job::command(["true"]));
    world.command(node, Command::Submit(job.clone()));
    world.command(node, Command::Hold(job.id()));
    world.run_for(Span::from_millis(500));
    job.id()
}

/// Both nodes have something to run, so that what comes waits.
fn keep_busy(world: &mut World<Node>) {
    let busy = Job { limit: Some(Span::from_hours(1)), ..Job::command(["sleep"]) };
    for (node, nonce) in [(LEAVER, 7), (HEIR, 8)] {
        let envelope = Envelope::new(busy.clone(), Nonce([nonce; 16])).unwrap();
        world.command(node, Command::Submit(Shared::new(envelope)));
        world.run_for(Span::from_secs(1));
    }
}

fn phase(world: &World<Node>, node: NodeId, job: JobId) -> Option<Phase> {
    world.core(node).job(job).map(|owned| owned.phase().clone())
}

#[test]
fn job_of_a_node_that_leaves_is_its_neighbours_and_ends_there() {
    let mut world = world();
    let job = held(&mut world, LEAVER);
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(1));

    assert_eq!(phase(&world, LEAVER, job), Some(Phase::Ended(End::HandedOver(HEIR))), "{}", world.story());
    assert!(world.core(HEIR).owns(job) && !world.core(LEAVER).owns(job));
    assert!(!world.core(LEAVER).is_drained(world.now()), "who asks for it now hears whose it is");
    world.run_for(Span::from_secs(10));
    assert!(world.core(LEAVER).is_drained(world.now()), "{}", world.story());
    assert!(world.core(HEIR).job(job).is_some_and(Owned::is_held), "it is as its user left it");

    world.crash(LEAVER);
    world.command(HEIR, Command::Release(job));
    world.run_for(Span::from_secs(5));
    assert!(world.story().contains("does Start"), "{}", world.story());
}

#[test]
fn placements_are_numbered_on_by_the_heir() {
    let mut world = world();
    // It waits in a queue behind another, and is taken out of it.
    keep_busy(&mut world);
    let job = envelope(Job::command(["true"]));
    world.command(LEAVER, Command::Submit(job.clone()));
    world.run_for(Span::from_secs(1));
    let Some(Phase::Placed { epoch, .. }) = phase(&world, LEAVER, job.id()) else {
        panic!("it waits in a queue: {}", world.story());
    };
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(5));
    let Some(Phase::Placed { epoch: next, .. }) = phase(&world, HEIR, job.id()) else {
        panic!("it waits in a queue: {}", world.story());
    };
    assert!(next > epoch && epoch >= Epoch(1), "{next:?} after {epoch:?}");
}

#[test]
fn one_of_the_two_owns_the_job_wherever_one_of_them_crashes() {
    for crashes in [LEAVER, HEIR] {
        for after_ms in 0..14 {
            let mut world = world();
            let job = held(&mut world, LEAVER);
            world.command(LEAVER, Command::Drain);
            world.run_for(Span::from_millis(after_ms));
            world.crash(crashes);
            world.run_for(Span::from_secs(20));
            let owners = [LEAVER, HEIR].into_iter().filter(|&node| node != crashes);
            let owners = owners.filter(|&node| world.core(node).owns(job)).count();
            assert!(owners <= 1, "after {after_ms} ms\n{}", world.story());

            world.restart(crashes);
            world.run_for(Span::from_mins(3));
            let owners: Vec<NodeId> =
                [LEAVER, HEIR].into_iter().filter(|&node| world.core(node).owns(job)).collect();
            assert_eq!(owners.len(), 1, "{crashes} crashed after {after_ms} ms\n{}", world.story());
            let left = world.core(LEAVER).heir_of(job);
            assert_eq!(left, Some(HEIR).filter(|heir| owners.contains(heir)));
        }
    }
}

#[test]
fn who_is_told_to_keep_a_job_takes_nothing() {
    let mut world = world();
    let job = held(&mut world, LEAVER);
    // Somebody is ready who was never asked, or was asked long ago.
    let ready = Message::HandOver(handover::Message::Ready(job));
    world.tell(LEAVER, Input::Message { from: HEIR, message: ready });
    assert_eq!(said(&world, "keep"), 1, "{}", world.story());
    assert_eq!(phase(&world, LEAVER, job), Some(Phase::Seeking));
}

#[test]
fn job_that_waits_here_for_another_owner_is_given_back_and_runs_elsewhere() {
    let mut world = world();
    keep_busy(&mut world);
    let waits =
        |world: &World<Node>| world.core(LEAVER).tasks().any(|(_, state)| state == TaskState::Waiting);
    for nonce in 10..16 {
        let envelope = Envelope::new(Job::command(["true"]), Nonce([nonce; 16])).unwrap();
        world.command(HEIR, Command::Submit(Shared::new(envelope)));
        world.run_for(Span::from_secs(1));
    }
    assert!(waits(&world), "{}", world.story());
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(5));
    assert!(!waits(&world), "{}", world.story());
    let owned: Vec<(JobId, Phase)> =
        world.core(HEIR).owned().map(|(job, owned)| (job, owned.phase().clone())).collect();
    let placed = owned.iter().filter(|(_, phase)| matches!(phase, Phase::Placed { .. })).count();
    assert_eq!(placed, owned.len(), "all have a place again: {owned:?}");
    let at_leaver = world.core(HEIR).owned().filter(|(job, _)| {
        world.core(HEIR).aria().and_then(|aria| aria.placement(*job)).is_some_and(|at| at.nodes == [LEAVER])
    });
    assert!(at_leaver.count() <= 1, "but none on the node that leaves, unless it runs there");
}

#[test]
fn job_that_another_waits_for_stays_with_its_owner() {
    let mut world = world();
    let job = held(&mut world, LEAVER);
    let await_it = Message::Job(JobMessage::Await(job));
    world.tell(LEAVER, Input::Message { from: HEIR, message: await_it });
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(30));
    assert!(world.core(LEAVER).owns(job), "{}", world.story());
    assert!(!world.core(LEAVER).is_drained(world.now()));
}

#[test]
fn who_waits_for_a_job_that_was_handed_over_asks_its_new_owner() {
    let mut world = world();
    let job = held(&mut world, LEAVER);
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(1));
    let after = shoal_model::job::After([(job, shoal_model::job::Ended::Any)].into());
    let second = envelope(Job { after: Some(Box::new(after)), ..Job::command(["true"]) });
    world.command(HEIR, Command::SubmitAfter(second.clone(), [(job, LEAVER)].into()));
    world.run_for(Span::from_secs(5));
    let whose = world.core(HEIR).job(second.id()).map(|owned| owned.waits_for().collect::<Vec<_>>());
    assert_eq!(whose, Some(vec![(job, HEIR)]), "{}", world.story());
}

#[test]
fn question_that_was_on_its_way_when_a_job_was_handed_over_is_answered() {
    let mut world = world();
    let job = held(&mut world, LEAVER);
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(1));
    assert!(world.core(HEIR).owns(job) && !world.core(LEAVER).is_drained(world.now()));
    let moved = said(&world, "moved");
    world.tell(LEAVER, Input::Message { from: HEIR, message: Message::Job(JobMessage::Await(job)) });
    assert_eq!(said(&world, "moved"), moved + 1, "{}", world.story());
}

#[test]
fn heir_waits_for_the_same_jobs() {
    let mut world = world();
    let first = held(&mut world, HEIR);
    let after = shoal_model::job::After([(first, shoal_model::job::Ended::Any)].into());
    let second = envelope(Job { after: Some(Box::new(after)), ..Job::command(["true"]) });
    world.command(LEAVER, Command::SubmitAfter(second.clone(), [(first, HEIR)].into()));
    world.run_for(Span::from_millis(100));
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(5));
    assert!(world.core(HEIR).owns(second.id()), "{}", world.story());
    let whose = world.core(HEIR).job(second.id()).map(|owned| owned.waits_for().collect::<Vec<_>>());
    assert_eq!(whose, Some(vec![(first, HEIR)]));
}

#[test]
fn job_that_comes_to_a_node_that_leaves_is_given_back_before_its_turn() {
    let mut world = world();
    let busy = Job { limit: Some(Span::from_mins(1)), ..Job::command(["sleep"]) };
    let envelope = |job: &Job, nonce| Shared::new(Envelope::new(job.clone(), Nonce([nonce; 16])).unwrap());
    world.command(LEAVER, Command::Submit(envelope(&busy, 7)));
    world.run_for(Span::from_secs(1));
    let job = envelope(&Job::command(["true"]), 8);
    let brief =
        Shared::new(Brief { envelope: job.clone(), nodes: vec![LEAVER].into(), index: None, riders: None });
    let (id, epoch) = (job.id(), Epoch(1));
    let assign = aria::Message::Assign { job: id, epoch, brief, limit: Span::from_mins(1) };
    world.tell(LEAVER, Input::Message { from: HEIR, message: Message::Aria(assign) });
    world.command(LEAVER, Command::Drain);
    let token = world.sent().iter().rev().find_map(|sent| match sent.message {
        Message::Aria(aria::Message::Assigned { job, token, .. }) if job == id => Some(token),
        _ => None,
    });
    let confirm = aria::Message::Confirm { job: id, epoch, token: token.expect("it was taken") };
    world.tell(LEAVER, Input::Message { from: HEIR, message: Message::Aria(confirm) });
    let task = Task { job: id, epoch, rank: shoal_model::Rank(0) };
    assert_eq!(world.core(LEAVER).task(task), Some(TaskState::Ended(Exit::GivenBack)), "{}", world.story());
    // What runs there ends, and it is nobody's turn.
    let (running, _) = world.core(LEAVER).tasks().find(|(_, state)| *state == TaskState::Running).unwrap();
    world.tell(LEAVER, Input::Done(Outcome::unmeasured(running, Exit::Code(0))));
    world.run_for(Span::from_secs(1));
    assert!(!world.core(LEAVER).tasks().any(|(_, state)| state == TaskState::Running));
}

#[test]
fn leaver_that_restarts_after_it_decided_tells_its_heir_all_the_same() {
    for after_ms in 0..14 {
        let mut world = world();
        let job = held(&mut world, LEAVER);
        world.command(LEAVER, Command::Drain);
        world.run_for(Span::from_millis(after_ms));
        world.crash(LEAVER);
        world.restart(LEAVER);
        if world.core(LEAVER).heir_of(job).is_some() && !world.core(HEIR).owns(job) {
            assert!(!world.core(LEAVER).is_drained(world.now()), "after {after_ms} ms\n{}", world.story());
        }
        world.run_for(Span::from_secs(15));
        let owners = [LEAVER, HEIR].map(|node| world.core(node).owns(job));
        assert!(owners[0] ^ owners[1], "after {after_ms} ms\n{}", world.story());
        assert!(owners[0] || world.core(LEAVER).is_drained(world.now()));
    }
}

#[test]
fn job_whose_former_node_never_lets_go_is_seen_to_by_its_owner() {
    let mut world = world();
    keep_busy(&mut world);
    let mut waiting = Vec::new();
    for nonce in 10..14 {
        let envelope = Envelope::new(Job::command(["true"]), Nonce([nonce; 16])).unwrap();
        waiting.push(envelope.id());
        world.command(LEAVER, Command::Submit(Shared::new(envelope)));
        world.run_for(Span::from_secs(1));
    }
    world.crash(HEIR);
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_mins(3));
    for job in waiting {
        assert!(world.core(LEAVER).owns(job));
        assert!(matches!(phase(&world, LEAVER, job), Some(Phase::Placed { .. })), "{}", world.story());
    }
}

#[test]
fn numbers_that_nobody_can_count_on_from_are_nobodys_word() {
    let mut world = world();
    let job = envelope(Job::command(["true"]));
    for numbered in [Epoch(u32::MAX), Epoch(u32::MAX - 1)] {
        let record = OwnedRecord { numbered, ..OwnedRecord::accepted(job.clone()) };
        let hand = handover::Message::Hand { job: Shared::new(record), yours: true };
        world.tell(HEIR, Input::Message { from: LEAVER, message: Message::HandOver(hand) });
        world.run_for(Span::from_secs(5));
        assert!(world.core(HEIR).job(job.id()).is_none());
    }
}

#[test]
fn heir_that_leaves_too_keeps_what_may_be_its_own_until_it_is_told() {
    for after_ms in 0..14 {
        let mut world = world();
        let job = held(&mut world, LEAVER);
        world.command(LEAVER, Command::Drain);
        world.run_for(Span::from_millis(after_ms));
        world.command(HEIR, Command::Drain);
        let decided = world.core(LEAVER).heir_of(job).is_some();
        let there = world.core(HEIR).job(job).is_some();
        assert!(!decided || there, "after {after_ms} ms\n{}", world.story());
        world.run_for(Span::from_mins(2));
        let owners = [LEAVER, HEIR].map(|node| world.core(node).owns(job));
        assert!(owners[0] ^ owners[1], "after {after_ms} ms\n{}", world.story());
        let pending = [LEAVER, HEIR].map(|node| world.core(node).job(job).is_some_and(Owned::is_pending));
        assert_eq!(pending, [false; 2], "after {after_ms} ms\n{}", world.story());
    }
}

#[test]
fn leaver_whose_heir_has_heard_does_not_wait_for_it_in_its_next_life() {
    let mut world = world();
    let job = held(&mut world, LEAVER);
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(1));
    world.crash(HEIR);
    world.crash(LEAVER);
    world.restart(LEAVER);
    assert_eq!(world.core(LEAVER).heir_of(job), Some(HEIR));
    assert_eq!(world.core(LEAVER).untold_heirs(), 0, "{}", world.story());
}

#[test]
fn heir_that_asks_again_is_told_that_the_job_is_its_own() {
    let mut world = world();
    let job = held(&mut world, LEAVER);
    world.command(LEAVER, Command::Drain);
    world.run_for(Span::from_secs(1));
    let told = said(&world, "hand");
    let ready = Message::HandOver(handover::Message::Ready(job));
    world.tell(LEAVER, Input::Message { from: HEIR, message: ready });
    assert_eq!((said(&world, "hand"), said(&world, "keep")), (told + 1, 0), "{}", world.story());
}
