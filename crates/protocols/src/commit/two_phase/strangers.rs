//! What others than a job's coordinator cannot do, and what nobody can.

use shoal_model::calendar::Capacity;
use shoal_model::{Epoch, JobId, NodeId, Span, Time};

use super::*;
use crate::testing::World;

type Plain = TwoPhase<u32, ()>;

const NODE: NodeId = NodeId(1);
const OWNER: NodeId = NodeId(2);
const STRANGER: NodeId = NodeId(3);

/// A node with one unit of something, and two others that say only what the test has them say.
fn world() -> World<Plain> {
    let setting = Setting { config: Config::default(), capacity: Capacity::constant(1).unwrap() };
    let mut world = World::new(3, setting, Span::from_millis(1));
    world.network(|_| Vec::new());
    world
}

fn says(world: &mut World<Plain>, from: NodeId, message: Message<u32, ()>) {
    world.tell(NODE, Input::Message { from, message });
}

fn prepare(job: u64, epoch: u32, amount: u32) -> Message<u32, ()> {
    let (job, epoch) = (JobId::from_number(job), Epoch(epoch));
    Message::Prepare(Prepare { job, epoch, start: Time::from_secs(60), span: Span::from_secs(60), amount })
}

/// Goes through the whole commit, whatever the node answers.
fn place(world: &mut World<Plain>, from: NodeId, epoch: Epoch) {
    let job = JobId::from_number(7);
    says(world, from, prepare(7, epoch.0, 1));
    says(world, from, Message::Commit { job, epoch, brief: Shared::new(()) });
    says(world, from, Message::Confirm { job, epoch });
}

#[test]
fn stranger_cannot_push_a_job_of_another_aside() {
    let mut world = world();
    place(&mut world, OWNER, Epoch(1));
    place(&mut world, STRANGER, Epoch(2));
    place(&mut world, STRANGER, Epoch(0));
    let locks: Vec<_> = world.core(NODE).locks().map(|(lock, stage)| (lock.epoch, stage)).collect();
    assert_eq!(locks, [(Epoch(1), Stage::Confirmed)], "{}", world.story());

    place(&mut world, OWNER, Epoch(2));
    let locks: Vec<_> = world.core(NODE).locks().map(|(lock, stage)| (lock.epoch, stage)).collect();
    assert_eq!(locks, [(Epoch(2), Stage::Confirmed)], "{}", world.story());
}

#[test]
fn flood_by_one_coordinator_leaves_room_for_the_others() {
    let mut world = world();
    let flood = LOCKS_PER_PEER_MAX as u64;
    for job in 0..=flood {
        says(&mut world, STRANGER, prepare(job, 1, 0));
    }
    assert_eq!(world.core(NODE).locks().count(), LOCKS_PER_PEER_MAX);
    says(&mut world, OWNER, prepare(flood + 1, 1, 0));
    says(&mut world, NODE, prepare(flood + 2, 1, 0));
    assert_eq!(world.core(NODE).locks().count(), LOCKS_PER_PEER_MAX + 2);

    // What is let go makes room again.
    says(&mut world, STRANGER, Message::Abort { job: JobId::from_number(5), epoch: Epoch(1) });
    says(&mut world, STRANGER, prepare(flood, 1, 0));
    says(&mut world, STRANGER, prepare(5, 1, 0));
    assert_eq!(world.core(NODE).locks().count(), LOCKS_PER_PEER_MAX + 2);
}
