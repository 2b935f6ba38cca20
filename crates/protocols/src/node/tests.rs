//! Jobs through nodes of a scripted world. Large worlds with faults are the simulator's.

use shoal_model::{Envelope, Job, Machine, NodeId, Nonce, Resources, Span};

use super::*;
use crate::protocol::Record as _;
use crate::shared::Shared;
use crate::testing::World;

const A_MOMENT: Span = Span::from_millis(1);

fn config() -> Config {
    Config {
        work: Some(Box::new(config::Work {
            machine: Machine::with_capacity(Resources::cores(1)),
            recipe: config::Recipe::Sample(Default::default()),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_hours(1),
        })),
        ..Config::default()
    }
}

fn envelope(job: Job) -> Shared<Envelope> {
    Shared::new(Envelope::new(job, Nonce([1; 16])).unwrap())
}

/// How often a node said something of this kind.
fn said(world: &World<Node>, kind: &str) -> usize {
    let kind = |message: &Message| crate::protocol::Message::kind(message) == kind_number(kind);
    world.sent().iter().filter(|sent| kind(&sent.message)).count()
}

fn kind_number(kind: &str) -> usize {
    let kinds = <Message as crate::protocol::Message>::KINDS;
    kinds.iter().position(|&known| known == kind).expect("such a kind")
}

#[test]
fn owner_that_crashed_while_placing_makes_one_attempt_after_its_restart() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    world.command(NodeId(1), Command::Submit(envelope(Job::command(["true"]))));
    assert_eq!(said(&world, "prepare"), 1);
    world.crash(NodeId(1));
    world.restart(NodeId(1));
    assert_eq!(said(&world, "prepare"), 2, "{}", world.story());
}

#[test]
fn grid_of_one_places_a_job_however_long_its_disk_takes() {
    for (delay_ms, prepares) in [(1, 1), (4, 1), (12, 3), (100, 6)] {
        let mut world = World::<Node>::new(1, config(), Span::from_millis(delay_ms));
        world.command(NodeId(1), Command::Submit(envelope(Job::command(["true"]))));
        world.run_for(Span::from_secs(2));
        let placed = world.reports().iter().any(|(_, _, event)| matches!(event, Event::Placed(..)));
        assert!(placed, "{}", world.story());
        assert_eq!(said(&world, "prepare"), prepares, "after {delay_ms} ms");
    }
}

#[test]
fn job_starts_wherever_its_owner_crashed_while_placing_it_on_itself() {
    for crash_ms in 0..8 {
        let mut world = World::<Node>::new(1, config(), A_MOMENT);
        world.command(NodeId(1), Command::Submit(envelope(Job::command(["true"]))));
        world.run_for(Span::from_millis(crash_ms));
        if world.story().contains("does Start") {
            break;
        }
        world.crash(NodeId(1));
        world.restart(NodeId(1));
        world.run_for(Span::from_secs(60));
        assert!(world.story().contains("does Start"), "crash after {crash_ms} ms\n{}", world.story());
    }
}

#[test]
fn time_is_not_given_for_a_brief_of_another_job_or_for_other_nodes() {
    let (wanted, other) = (envelope(Job::command(["true"])), envelope(Job::command(["false"])));
    let me = NodeId(1);
    let briefs = [(&wanted, vec![NodeId(2), me], 1), (&other, vec![me], 0), (&wanted, vec![NodeId(2)], 0)];
    for (envelope, nodes, locks) in briefs {
        let mut world = World::<Node>::new(2, config(), A_MOMENT);
        let (job, epoch) = (wanted.id(), shoal_model::Epoch(1));
        let (start, span) = (shoal_model::Time::from_secs(60), Span::from_secs(60));
        let prepare = two_phase::Prepare { job, epoch, start, span, amount: Resources::cores(1) };
        let brief = Shared::new(Brief { envelope: envelope.clone(), nodes });
        for message in [
            two_phase::Message::Prepare(prepare),
            two_phase::Message::Commit { job, epoch, brief },
            two_phase::Message::Confirm { job, epoch },
        ] {
            world.tell(me, Input::Message { from: NodeId(2), message: Message::Commit(message) });
        }
        let commit = world.core(me).commit().expect("the node takes jobs");
        assert_eq!(commit.locks().count(), locks, "{}", world.story());
        assert_eq!(world.core(me).tasks().count(), locks);
    }
}

#[test]
fn cancelled_job_is_let_go_even_if_its_owner_crashed_before_it_could_say_so() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    let begin = Some(shoal_model::Time::from_secs(600));
    let job = envelope(Job { begin, ..Job::command(["true"]) });
    world.command(NodeId(1), Command::Submit(job.clone()));
    world.run_for(Span::from_secs(1));
    let placed =
        world.saved(NodeId(1)).find(|record| record.key() == Key::Commit(two_phase::Key::Tenure(job.id())));
    let placed = placed.expect("the job is placed").clone();
    world.command(NodeId(1), Command::Cancel(job.id()));
    world.crash(NodeId(1));
    world.unsave(NodeId(1), placed);
    world.restart(NodeId(1));

    world.run_for(Span::from_hours(1));
    assert!(!world.story().contains("does Start"), "{}", world.story());
    let node = world.core(NodeId(1)).commit().expect("the node takes jobs");
    assert_eq!((node.locks().count(), node.jobs().count()), (0, 0));
    assert_eq!(world.saved(NodeId(1)).count(), 1, "of the job only its end is left");
}
