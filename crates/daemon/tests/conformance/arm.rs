//! What a script can do to a grid, whatever the grid is made of.

use shoal_model::{Envelope, Job, JobId, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::Shared;
use shoal_protocols::node::{Command, Config, Event, Node, config};
use shoal_protocols::overlay::cyclon;

use crate::told::{self, Gaps};

/// The node that users speak to.
pub const ENTRY: NodeId = NodeId(1);
/// How many nodes a grid has: one more than a gang of 3 and the node that an overlay lends out need.
pub const NODES: u64 = 5;

/// A grid of [`NODES`] nodes that have met, of which [`ENTRY`] has one core and the others have two.
pub trait Arm {
    /// A grid at its start.
    fn new() -> Self;

    /// The time.
    fn now(&self) -> Time;

    /// Has a user ask a node for something.
    fn command(&mut self, node: NodeId, command: Command);

    /// Switches a machine off: its node forgets what it has not saved, its processes are gone.
    fn crash(&mut self, node: NodeId);

    /// Switches a machine on again; its node is told who else is there.
    fn restart(&mut self, node: NodeId);

    /// What users were told so far, and by whom.
    fn told(&mut self) -> Vec<(NodeId, Event)>;

    /// Looks at the node of a machine that is on.
    fn look<T: Send + 'static>(&mut self, node: NodeId, see: impl FnOnce(&Node) -> T + Send + 'static) -> T;

    /// Lets a little time pass; `false` once it is no use to wait any longer.
    fn wait(&mut self) -> bool;

    /// Submits a job to the entry node. Jobs with different numbers are different jobs.
    fn submit(&mut self, number: u8, job: Job) -> JobId {
        let envelope = Envelope::new(job, Nonce([number; 16])).unwrap();
        let id = envelope.id();
        self.command(ENTRY, Command::Submit(Shared::new(envelope)));
        id
    }

    /// Waits until something holds.
    fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        while !holds(self) {
            assert!(self.wait(), "waited in vain until {what}: {:#?}", self.told());
        }
    }

    /// Waits until the user has been told this many words of a job, and returns them.
    fn hear(&mut self, job: JobId, words: usize) -> Vec<String> {
        self.wait_until("the user is told more", |arm| told::story(&arm.told(), job).len() >= words);
        told::story(&self.told(), job)
    }

    /// Where a job was last placed, by rank.
    fn nodes_of(&mut self, job: JobId) -> Vec<NodeId> {
        let told = self.told();
        let placed = told.into_iter().rev().find_map(|(_, event)| match event {
            Event::Placed(of, placement) if of == job => Some(placement.nodes.into()),
            _ => None,
        });
        placed.expect("the job was placed")
    }

    /// Waits until nothing of any job is left on any node; all that was told is lawful.
    fn settle(&mut self, gaps: Gaps) {
        for node in (1..=NODES).map(NodeId) {
            self.wait_until("nothing is left of any job", |arm| {
                arm.look(node, |node| {
                    node.tasks().count() == 0
                        && node.commit().is_some_and(|commit| commit.locks().count() == 0)
                })
            });
        }
        told::check(&self.told(), gaps);
    }
}

/// What the nodes of either arm are told: impatient, so that tests are quick.
pub fn configuration(node: NodeId) -> Config {
    let recipe = config::Recipe::Sample(shoal_protocols::scheduling::sample::Config {
        wait_ms: 500,
        ..Default::default()
    });
    Config {
        overlay: cyclon::Config { cache: 8, shuffle: 4, walk: 3, period_ms: 2_000, rests: 0 }.into(),
        work: Some(Box::new(config::Work {
            machine: machine(node),
            recipe,
            commit: shoal_protocols::commit::two_phase::Config { hold_ms: 5_000, patience_ms: 300, tries: 3 },
            heartbeat: shoal_protocols::guard::heartbeat::Config {
                period_ms: 500,
                timeout_least_ms: 500,
                timeout_most_ms: 1_000,
                ..Default::default()
            },
            limit_default: Span::from_hours(1),
            eager: true,
            gate: Default::default(),
        })),
    }
}

pub fn machine(node: NodeId) -> Machine {
    Machine::with_capacity(Resources::cores(if node == ENTRY { 1 } else { 2 }))
}

/// Everybody but the node itself.
pub fn others(node: NodeId) -> Command {
    Command::Meet((1..=NODES).map(NodeId).filter(|&other| other != node).collect())
}
