//! What nodes say, remember, do and tell: the words of all layers gathered, and those of the job's life.

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{Envelope, Epoch, JobId, NodeId, Rank, Resources, Size, Span, Time};

use super::gate::Denial;
use super::{handover, train};
use crate::commit::two_phase;
use crate::guard::heartbeat;
use crate::nodes::Nodes;
use crate::overlay::{blatant_s, can, cyclon};
use crate::protocol::{self, Message as _};
use crate::scheduling::{Stuck, aria, asap, proactive, sample, tri_pronged};
use crate::shared::Shared;

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Between overlays of CYCLON.
    Overlay(cyclon::Message),
    /// Between overlays of BLATANT-S.
    BlatantS(blatant_s::Message),
    /// Between overlays of CAN.
    Can(can::Message),
    /// Between what is left of machines, in a CAN of its own.
    Secondary(can::SecondaryMessage),
    /// Between coordinators and participants.
    Commit(two_phase::Message<Resources, Brief>),
    /// Between watchers and watched.
    Heartbeat(heartbeat::Message),
    /// Between nodes that follow the recipe `sample`.
    Sample(sample::Message),
    /// Between nodes that follow the recipe `asap`.
    Asap(asap::Message),
    /// Between nodes that follow the recipe `aria`.
    Aria(aria::Message),
    /// Between nodes that follow the recipe `tri-pronged`.
    TriPronged(tri_pronged::Message),
    /// Between nodes that follow the recipe `proactive`.
    Proactive(proactive::Message),
    /// Between a job's owner and the nodes that run it.
    Job(JobMessage),
    /// Between a node that leaves and those that take its jobs over.
    HandOver(handover::Message),
}

/// A simulation has millions of them under way, each as large as the largest: what few need lies apart.
const _: () = assert!(size_of::<Message>() <= 56);

/// What a job's owner and the nodes that run it say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum JobMessage {
    /// To the owner: it runs.
    #[n(0)]
    Started(#[n(0)] Task, #[n(1)] Time),
    /// To the owner: it has ended, and took this, if that is known; repeated until answered by [`JobMessage::Noted`].
    #[n(1)]
    Ended(#[n(0)] Task, #[n(1)] Exit, #[n(2)] Option<Box<Usage>>),
    /// To the run node: I have that on my disk.
    #[n(2)]
    Noted(#[n(0)] Task),
    /// To the run node: it should have ended; what has become of it?
    #[n(3)]
    Inquire(#[n(0)] Task),
    /// To the owner: there is room for it now, before its time.
    #[n(4)]
    Sooner(#[n(0)] Task),
    /// To the run node: then start it.
    #[n(5)]
    Go(#[n(0)] Task),
    /// To another job's owner: ours waits for yours to end.
    #[n(6)]
    Await(#[n(0)] JobId),
    /// To the owner of a job that waits: that job has ended so; or there is no such job here.
    #[n(7)]
    Over(#[n(0)] JobId, #[n(1)] Option<End>),
    /// To the owner: this placement of a job is not taken here, or not started, and why.
    #[n(8)]
    Denied(#[n(0)] JobId, #[n(1)] Epoch, #[n(2)] Denial),
    /// To the owner of a job that waits: that job is another node's now.
    #[n(9)]
    Moved(#[n(0)] JobId, #[n(1)] NodeId),
}

/// One node's part of one placement of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub struct Task {
    /// Which job.
    #[n(0)]
    pub job: JobId,
    /// Which of its placements.
    #[n(1)]
    pub epoch: Epoch,
    /// Which part.
    #[n(2)]
    pub rank: Rank,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Exit {
    /// By itself, with this code.
    #[n(0)]
    Code(#[n(0)] i32),
    /// By a signal that we did not send.
    #[n(1)]
    Signal(#[n(0)] i32),
    /// Stopped at its hard limit.
    #[n(2)]
    Overran,
    /// Stopped by us for another reason: its placement is over.
    #[n(3)]
    Stopped,
    /// Nobody knows: the machine died under it.
    #[n(4)]
    Lost,
    /// It never began here.
    #[n(5)]
    NotStarted,
    /// Stopped before it had had its time: it began late, and the machine was promised to another.
    #[n(6)]
    CutShort,
    /// It never began: the files that it brings along could not be had there in time.
    #[n(7)]
    Unstaged,
    /// It never began: the node that it waited on leaves the grid.
    #[n(8)]
    GivenBack,
}

impl Exit {
    /// Whether it ran until it ended by itself, or its time was over.
    pub(super) fn has_run(self) -> bool {
        match self {
            Exit::Code(_) | Exit::Signal(_) | Exit::Overran => true,
            Exit::Stopped
            | Exit::Lost
            | Exit::NotStarted
            | Exit::CutShort
            | Exit::Unstaged
            | Exit::GivenBack => false,
        }
    }
}

/// What a task took of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Usage {
    /// Processor time of its own code.
    #[n(0)]
    pub user: Span,
    /// Processor time of the system on its behalf.
    #[n(1)]
    pub system: Span,
    /// The most memory that one of its processes had; none if that is too little to be told.
    #[n(2)]
    pub memory_max: Size,
    /// From its start to its end.
    #[n(3)]
    #[cbor(default)]
    pub wall: Span,
}

/// How a job ended; there is no other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum End {
    /// All its tasks ended with code 0.
    #[n(0)]
    Finished,
    /// A task did not, and no retry was left.
    #[n(1)]
    Failed(#[n(0)] Rank, #[n(1)] Exit),
    /// A node was lost, it must not run twice, and it may have run.
    #[n(2)]
    Lost,
    /// The user took it back.
    #[n(3)]
    Cancelled,
    /// Its deadline passed before it could start.
    #[n(4)]
    Expired,
    /// No place was found for it, and the recipe was told not to wait for one.
    #[n(5)]
    NoPlace,
    /// It was to start after another job, which did not end as it must have.
    #[n(6)]
    Unmet(#[n(0)] JobId),
    /// For this node only: it left, and the job is that node's now.
    #[n(7)]
    HandedOver(#[n(0)] NodeId),
}

/// What the nodes of a placement must know to start the job.
///
/// Very many jobs may wait, and each has one: one node takes no room of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Brief {
    /// What to run.
    #[cbor(n(0), with = "super::recall")]
    pub envelope: Shared<Envelope>,
    /// Where, by rank.
    #[n(1)]
    pub nodes: Nodes,
    /// Of an array: for which index.
    #[n(2)]
    pub index: Option<u32>,
    /// Of an array: for which indexes jobs run after it, in its place, one after the other.
    #[n(3)]
    pub riders: Option<Box<[u32]>>,
}

const _: () = assert!(size_of::<Brief>() <= 48);

impl Brief {
    /// Which job it is about.
    pub fn job(&self) -> JobId {
        job_id(&self.envelope, self.index)
    }

    /// The rank of a node.
    pub fn rank_of(&self, node: NodeId) -> Option<Rank> {
        let rank = self.nodes.iter().position(|&other| other == node)?;
        Some(Rank(rank as u32))
    }
}

impl two_phase::Brief for Brief {
    fn bytes(&self) -> u64 {
        minicbor::len(self) as u64
    }

    fn suits(&self, job: JobId, node: NodeId) -> bool {
        self.job() == job && self.nodes.contains(&node) && train::is_sound(self)
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        self.nodes.iter().for_each(|&node| mention(node));
    }
}

/// The id of a job, or of the job of an array for one index.
fn job_id(envelope: &Envelope, index: Option<u32>) -> JobId {
    let id = envelope.id();
    index.map_or(id, |index| id.of_index(index))
}

/// What the user asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Enter the grid through this node.
    Join(NodeId),
    /// Take these nodes as neighbours.
    Meet(Box<[NodeId]>),
    /// A word to this node and back took so long: measured by the driver, without what the two cores take for it.
    Measured(NodeId, Span),
    /// This node cannot be reached, or has said that it stops: others are neighbours instead, where that is a choice.
    Gone(NodeId),
    /// Take this place in a CAN; with another overlay there are none.
    Settle(Box<can::Place>),
    /// Run this job. Submitting it again is the same job. The jobs that it waits for are this node's.
    Submit(Shared<Envelope>),
    /// Run this job; the jobs that it waits for are those nodes'.
    SubmitAfter(Shared<Envelope>, Box<[(JobId, NodeId)]>),
    /// Take a job back.
    Cancel(JobId),
    /// Do not start a job that has not started.
    Hold(JobId),
    /// A job that was held may start.
    Release(JobId),
    /// Take no more tasks of other nodes' jobs, give back those that wait here, and hand own jobs over where the recipe
    /// can; until the next life.
    Drain,
    /// Give others what the overlay has this node look after; after that it is no part of it.
    Leave,
}

/// What a node asked to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// By the overlay CYCLON.
    Overlay(cyclon::Cycle),
    /// By the overlay BLATANT-S.
    BlatantS(blatant_s::Timer),
    /// By the overlay CAN.
    Can(can::Timer),
    /// By the CAN of what is left of machines.
    Secondary(can::Timer),
    /// By the commit.
    Commit(two_phase::Timer),
    /// By the failure detector.
    Heartbeat(heartbeat::Look),
    /// By the recipe `sample`.
    Sample(sample::Close),
    /// By the recipe `asap`.
    Asap(asap::Timer),
    /// By the recipe `aria`.
    Aria(aria::Timer),
    /// By the recipe `tri-pronged`.
    TriPronged(tri_pronged::Timer),
    /// By the recipe `proactive`.
    Proactive(proactive::Timer),
    /// As owner: look for a place again.
    Again(JobId),
    /// As owner: have the jobs ended that this one waits for? With the number of the question.
    Await(JobId, u8),
    /// As owner: launch more jobs of this array.
    Launch(JobId),
    /// As owner: this placement should be over. With the number of the reminder.
    Overdue(JobId, Epoch, u8),
    /// As owner: do all tasks of this placement run?
    Late(JobId, Epoch),
    /// As owner: do those jobs run that should by now?
    AnyLate,
    /// As owner: are there better places for the jobs that start next?
    Improve,
    /// As owner: are there better places for the jobs that start after this one?
    ImproveAfter(Time, JobId),
    /// As owner: is there a better place for this gang?
    Look(JobId),
    /// As a node that leaves: has somebody taken this job over? With the number of the question.
    Hand(JobId, u8),
    /// As who takes a job over: is it ours now? With the number of the question.
    Ready(JobId, u8),
    /// As run node: its time has come.
    Start(Task),
    /// As run node: which tasks' time has come?
    AnyStart,
    /// As run node: is what runs here still wanted?
    Wanted(Task),
    /// As run node: has the owner heard of the end? With the number of the reminder.
    Tell(Task, u8),
    /// As run node: those that ride with this task and have not begun are not to wait any longer.
    Trim(Task),
    /// As run node: of those that ride with this task, is it still the same one's turn?
    Begun(Task),
}

/// A job that waits has one.
const _: () = assert!(size_of::<Timer>() <= 32);

/// What must survive a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Record {
    /// Of the commit.
    #[n(0)]
    Commit(#[n(0)] two_phase::Record<Resources, Brief>),
    /// A job that was accepted here.
    #[n(1)]
    Owned(#[n(0)] OwnedRecord),
    /// How tasks of a job's current placement ended.
    #[n(2)]
    Exits(#[n(0)] JobId, #[n(1)] Epoch, #[n(2)] Vec<(Rank, Exit)>),
    /// A task that was started here, and how it ended.
    #[n(3)]
    Task(#[n(0)] Task, #[n(1)] NodeId, #[n(2)] Option<Exit>),
    /// Of the recipe `aria`.
    #[n(10)]
    Aria(#[n(0)] aria::Record),
}

/// What an owner must know of a job after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct OwnedRecord {
    /// What was accepted.
    #[cbor(n(0), with = "super::recall")]
    pub envelope: Shared<Envelope>,
    /// How often it has been tried again after a failure.
    #[n(1)]
    pub retried: u16,
    /// How it ended, if it did.
    #[n(2)]
    pub end: Option<End>,
    /// The last placement that failed, which counts once however often it is told.
    #[n(3)]
    pub failed: Option<Epoch>,
    /// Of a job that must not run twice: from when on nodes may start it, unless all of them have let go before.
    #[n(4)]
    pub runs_from: Option<Time>,
    /// Of an array: for which index.
    #[n(5)]
    pub index: Option<u32>,
    /// Whether the user wants it not to start.
    #[n(6)]
    #[cbor(default)]
    pub held: bool,
    /// Whose the jobs are that it waits for.
    #[n(7)]
    #[cbor(default)]
    pub after: Vec<(JobId, NodeId)>,
    /// Placements up to this number were made by a former owner, or are of trains that it rode in.
    #[n(8)]
    #[cbor(default)]
    pub numbered: Epoch,
    /// Who is about to hand it over: it is not this node's yet.
    #[n(9)]
    pub from: Option<NodeId>,
    /// Of a job that was handed over: whether its heir has said that it knows.
    #[n(10)]
    #[cbor(default)]
    pub told: bool,
    /// Of an array: for which indexes jobs run after it, in its place.
    #[n(11)]
    pub riders: Option<Vec<u32>>,
}

impl OwnedRecord {
    /// Of a job that was just accepted.
    pub fn accepted(envelope: Shared<Envelope>) -> OwnedRecord {
        OwnedRecord {
            envelope,
            retried: 0,
            end: None,
            failed: None,
            runs_from: None,
            index: None,
            held: false,
            after: Vec::new(),
            numbered: Epoch(0),
            from: None,
            told: false,
            riders: None,
        }
    }

    /// How the job ended, whoever owns it: that it was handed over is no end.
    pub fn over(&self) -> Option<End> {
        self.end.filter(|end| !matches!(end, End::HandedOver(_)))
    }

    /// Whether it is an array, which has no place of its own.
    pub fn is_array(&self) -> bool {
        self.index.is_none() && self.envelope.job().array.is_some()
    }

    /// Which job it is about.
    pub fn id(&self) -> JobId {
        job_id(&self.envelope, self.index)
    }
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub enum Key {
    /// Of the commit.
    #[n(0)]
    Commit(#[n(0)] two_phase::Key),
    /// A job that was accepted here.
    #[n(1)]
    Owned(#[n(0)] JobId),
    /// How tasks of a job ended.
    #[n(2)]
    Exits(#[n(0)] JobId),
    /// A task that was started here.
    #[n(3)]
    Task(#[n(0)] Task),
    /// Of the recipe `aria`.
    #[n(10)]
    Aria(#[n(0)] aria::Key),
}

impl protocol::Record for Record {
    type Key = Key;

    fn key(&self) -> Key {
        match self {
            Record::Commit(record) => Key::Commit(record.key()),
            Record::Owned(owned) => Key::Owned(owned.id()),
            Record::Exits(job, ..) => Key::Exits(*job),
            Record::Task(task, ..) => Key::Task(*task),
            Record::Aria(record) => Key::Aria(record.key()),
        }
    }
}

/// What only the driver can do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Have the files of a task here before its time, and see to its outputs once it has ended; ends in nothing. A task
    /// whose files are late waits for them when it is started.
    Stage {
        /// Which.
        task: Task,
        /// What it brings along.
        brief: Shared<Brief>,
        /// Who has its files, and is to have its outputs.
        owner: NodeId,
    },
    /// Start a task; ends in an [`Outcome`].
    Start {
        /// Which.
        task: Task,
        /// What to run, and where its fellows are.
        brief: Shared<Brief>,
        /// When it is stopped at the latest.
        stop_at: Time,
        /// Whether that is before it has had its time. It then ends as [`Exit::CutShort`], and else as
        /// [`Exit::Overran`].
        short: bool,
        /// Not before this task has ended, in its place; at once if that has ended already. If nothing is known of that
        /// task it does not start.
        behind: Option<Task>,
    },
    /// Find a task again that was started before a crash; ends in an [`Outcome`], [`Exit::Lost`] if it is gone.
    Adopt(Task),
    /// Stop a task; its [`Outcome`] follows.
    Stop(Task),
}

/// A task has ended, and took this, if that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcome(pub Task, pub Exit, pub Option<Box<Usage>>);

impl Outcome {
    /// One of which nobody knows what it took.
    pub fn unmeasured(task: Task, exit: Exit) -> Outcome {
        Outcome(task, exit, None)
    }
}

/// What the user gets to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The job is on this node's disk.
    Accepted(JobId),
    /// The job is not taken, and why.
    Refused(JobId, Refusal),
    /// The job waits for a place, and why.
    Waiting(JobId, Stuck),
    /// The job has a place: when and where.
    Placed(JobId, two_phase::Placement),
    /// The job has lost its place: a node let go, was lost, or failed.
    Unplaced {
        /// Which job.
        job: JobId,
        /// Which of its placements.
        epoch: Epoch,
        /// Because of this node.
        by: Option<NodeId>,
    },
    /// A node does not run the job: this one, or one that was asked to.
    Denied {
        /// Which job.
        job: JobId,
        /// Which node.
        by: NodeId,
        /// Why.
        why: Denial,
    },
    /// A task runs, as its owner has heard.
    Started(Task, Time),
    /// A task took this of its machine, as its owner has heard.
    Took(Task, Box<Usage>),
    /// The job has ended.
    Ended(JobId, End),
    /// The job is held, or no longer.
    Held(JobId, bool),
    /// A node with work for us has fallen silent.
    Suspected(NodeId),
    /// A node that was silent is back.
    Back(NodeId),
    /// A neighbour did not answer, and is no longer one.
    Silent(NodeId),
    /// A limit of the failure detector is reached: this node is not watched.
    Unwatched(NodeId),
    /// This node itself was away.
    Slept(Span),
    /// The overlay does without this node.
    Left,
}

/// Why a job is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// This node takes no jobs.
    #[error("this node takes no jobs")]
    NoWork,
    /// It asks for what the recipe cannot do.
    #[error("{0}")]
    Unhonoured(String),
    /// Too many jobs are waiting here already.
    #[error("this node owns {0} jobs, and takes no more")]
    Full(usize),
    /// It is to start after a job that nobody knows here.
    #[error("it is to start after job {0}, which is not known here")]
    Unknown(JobId),
    /// It is about to be this node's, and is another's until then.
    #[error("it is being handed over by node {0}, which leaves: ask again in a moment")]
    HandedOver(NodeId),
    /// It runs, or is about to: too late to hold it.
    #[error("it has started, or is about to: too late to hold it")]
    Started,
}

/// What a message about a task is accounted for, headers included.
pub(super) const TASK_BYTES: u64 = 72;

/// The kinds of message of all layers, one after the other.
const KINDS: [&str; 108] = {
    let parts = [
        cyclon::Message::<()>::KINDS,
        blatant_s::Message::KINDS,
        can::Message::KINDS,
        two_phase::Message::<Resources, Brief>::KINDS,
        heartbeat::Message::KINDS,
        sample::Message::KINDS,
        asap::Message::KINDS,
        aria::Message::KINDS,
        tri_pronged::Message::KINDS,
        proactive::Message::KINDS,
        &["started", "ended", "noted", "inquire", "sooner", "go", "await", "over", "denied", "moved"],
        can::SecondaryMessage::KINDS,
        handover::Message::KINDS,
    ];
    let mut all = [""; 108];
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        let mut place = 0;
        while place < parts[part].len() {
            all[count] = parts[part][place];
            count += 1;
            place += 1;
        }
        part += 1;
    }
    assert!(count == all.len());
    all
};

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &KINDS;

    fn kind(&self) -> usize {
        const BLATANT_S: usize = cyclon::Message::<()>::KINDS.len();
        const CAN: usize = BLATANT_S + blatant_s::Message::KINDS.len();
        const COMMIT: usize = CAN + can::Message::KINDS.len();
        const HEARTBEAT: usize = COMMIT + two_phase::Message::<Resources, Brief>::KINDS.len();
        const SAMPLE: usize = HEARTBEAT + heartbeat::Message::KINDS.len();
        const ASAP: usize = SAMPLE + sample::Message::KINDS.len();
        const ARIA: usize = ASAP + asap::Message::KINDS.len();
        const TRI_PRONGED: usize = ARIA + aria::Message::KINDS.len();
        const PROACTIVE: usize = TRI_PRONGED + tri_pronged::Message::KINDS.len();
        const JOB: usize = PROACTIVE + proactive::Message::KINDS.len();
        const SECONDARY: usize = JOB + 10;
        const HAND_OVER: usize = SECONDARY + can::SecondaryMessage::KINDS.len();
        match self {
            Message::Overlay(message) => message.kind(),
            Message::BlatantS(message) => BLATANT_S + message.kind(),
            Message::Can(message) => CAN + message.kind(),
            Message::Commit(message) => COMMIT + message.kind(),
            Message::Heartbeat(message) => HEARTBEAT + message.kind(),
            Message::Sample(message) => SAMPLE + message.kind(),
            Message::Asap(message) => ASAP + message.kind(),
            Message::Aria(message) => ARIA + message.kind(),
            Message::TriPronged(message) => TRI_PRONGED + message.kind(),
            Message::Proactive(message) => PROACTIVE + message.kind(),
            Message::Job(JobMessage::Started(..)) => JOB,
            Message::Job(JobMessage::Ended(..)) => JOB + 1,
            Message::Job(JobMessage::Noted(..)) => JOB + 2,
            Message::Job(JobMessage::Inquire(..)) => JOB + 3,
            Message::Job(JobMessage::Sooner(..)) => JOB + 4,
            Message::Job(JobMessage::Go(..)) => JOB + 5,
            Message::Job(JobMessage::Await(..)) => JOB + 6,
            Message::Job(JobMessage::Over(..)) => JOB + 7,
            Message::Job(JobMessage::Denied(..)) => JOB + 8,
            Message::Job(JobMessage::Moved(..)) => JOB + 9,
            Message::Secondary(message) => SECONDARY + message.kind(),
            Message::HandOver(message) => HAND_OVER + message.kind(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Overlay(message) => message.bytes(),
            Message::BlatantS(message) => message.bytes(),
            Message::Can(message) => message.bytes(),
            Message::Secondary(message) => message.bytes(),
            Message::Commit(message) => message.bytes(),
            Message::Heartbeat(message) => message.bytes(),
            Message::Sample(message) => message.bytes(),
            Message::Asap(message) => message.bytes(),
            Message::Aria(message) => message.bytes(),
            Message::TriPronged(message) => message.bytes(),
            Message::Proactive(message) => message.bytes(),
            Message::Job(_) => TASK_BYTES,
            Message::HandOver(message) => message.bytes(),
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Overlay(message) => message.mentions(mention),
            Message::BlatantS(message) => message.mentions(mention),
            Message::Can(message) => message.mentions(mention),
            Message::Secondary(message) => message.mentions(mention),
            Message::Commit(message) => message.mentions(mention),
            Message::Heartbeat(message) => message.mentions(mention),
            Message::Sample(message) => message.mentions(mention),
            Message::Asap(message) => message.mentions(mention),
            Message::Aria(message) => message.mentions(mention),
            Message::TriPronged(message) => message.mentions(mention),
            Message::Proactive(message) => message.mentions(mention),
            Message::Job(JobMessage::Moved(_, node)) => mention(*node),
            Message::Job(_) => {}
            Message::HandOver(message) => message.mentions(mention),
        }
    }
}
