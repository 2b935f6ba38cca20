//! One node whose neighbours and owner are played by the test: what they say is told by hand, what it says is looked at.

use std::collections::BTreeMap;

use shoal_model::machine::Speed;
use shoal_model::matching::Needs;
use shoal_model::{Envelope, Epoch, Job, JobId, Machine, NodeId, Nonce, Rank, Resources, Span, Time};

use crate::node::{self, Brief, Command, Exit, Node, Outcome, Task, config};
use crate::overlay::can::{self, Claim, Peer, Place, SIDE, Update, Vitals, Zone};
use crate::protocol::Input;
use crate::queue::backfill::WHOLE;
use crate::scheduling::aria::{self, SeatState};
use crate::scheduling::tri_pronged::{Config, Message, Offer, Timer, TriPronged, Variant};
use crate::shared::Shared;
use crate::testing::World;

pub const ME: NodeId = NodeId(1);
/// The neighbours.
pub const ANNA: NodeId = NodeId(2);
pub const BERT: NodeId = NodeId(3);
pub const CARL: NodeId = NodeId(4);
/// Whose all jobs are.
pub const OWNER: NodeId = NodeId(9);
/// The cores of this node, and of each neighbour that is not said to have others.
pub const CORES: u32 = 4;

/// No heartbeat and no round comes by itself: the test says when.
const NEVER_MS: u32 = u32::MAX;

/// What this node said of jobs that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// To a neighbour: would you take this, to start it at once?
    Offer(u8),
    /// To a neighbour: would you take this, to let it wait there?
    OfferToWait(u8),
    /// To a neighbour: whether it takes this.
    Answer(u8, bool),
    /// To a neighbour: what have you to start here?
    Pull,
    /// To a neighbour: what have you to wait here?
    PullToBalance,
    /// To a neighbour: nothing for you.
    Nothing,
    /// To the owner: this one goes there.
    Move(u8, NodeId),
}

pub struct Scene {
    world: World<Node>,
    /// How many of the words of this node have been looked at.
    looked: usize,
    numbers: BTreeMap<JobId, u8>,
}

impl Scene {
    pub fn new(variant: Variant) -> Scene {
        let recipe = Config { variant, round_ms: NEVER_MS, ..Config::default() };
        let config = node::Config {
            overlay: can::Config { period_ms: NEVER_MS, ..can::Config::default() }.into(),
            work: Some(Box::new(config::Work {
                machine: Machine::with_capacity(Resources::cores(CORES)),
                recipe: config::Recipe::TriPronged(recipe),
                commit: Default::default(),
                heartbeat: crate::guard::heartbeat::Config { watch: false, ..Default::default() },
                limit_default: Span::from_hours(1),
                eager: false,
                gate: Default::default(),
            })),
        };
        let mut world = World::new(1, config, Span::ZERO);
        world.network(|_| Vec::new());
        let (left, _) = Zone::WHOLE.cut(0, SIDE / 2);
        let around = [ANNA, BERT, CARL].map(|node| Peer { node, claims: Shared::new(vec![claim(node)]) });
        let place = Place { point: [0; 6], claim: Claim { zone: left, version: 1 }, around: around.to_vec() };
        world.command(ME, Command::Settle(Box::new(place)));
        Scene { world, looked: 0, numbers: BTreeMap::new() }
    }

    /// A neighbour tells this of itself.
    pub fn tells(&mut self, node: NodeId, vitals: Vitals) {
        let update = Update {
            at: self.world.now(),
            claims: Shared::new(vec![claim(node)]),
            point: *claim(node).zone.low(),
            vitals: Some(vitals),
            ahead: Default::default(),
            peers: Shared::new(Vec::new()),
        };
        let message = node::Message::Can(can::Message::Update(Shared::new(update), false));
        self.world.tell(ME, Input::Message { from: node, message });
        assert!(self.world.core(ME).overlay().neighbours().any(|other| other == node));
    }

    /// A job of so many cores is assigned to this node and confirmed; it starts if it can, else it waits.
    pub fn comes(&mut self, number: u8, cores: u32) {
        let envelope = self.envelope(number, cores);
        let (job, epoch, limit) = (envelope.id(), Epoch(1), Span::from_hours(1));
        let brief = Shared::new(Brief { envelope, nodes: vec![ME].into(), index: None, riders: None });
        self.owner_says(aria::Message::Assign { job, epoch, brief, limit });
        let drawn = self.world.sent().iter().rev().find_map(|sent| match sent.message {
            node::Message::Aria(aria::Message::Assigned { token, .. }) => Some(token),
            _ => None,
        });
        let token = drawn.expect("it says that it has the job");
        self.owner_says(aria::Message::Confirm { job, epoch, token });
    }

    /// A job that runs here ends.
    pub fn ends(&mut self, number: u8) {
        let task = Task { job: self.job(number), epoch: Epoch(1), rank: Rank(0) };
        self.world.tell(ME, Input::Done(Outcome::unmeasured(task, Exit::Code(0))));
    }

    /// The owner of a job wants it to stay, because whoever was to have it does not.
    pub fn stays(&mut self, number: u8) {
        let (job, epoch) = (self.job(number), Epoch(1));
        self.owner_says(aria::Message::Stay { job, epoch, turn: 1 });
    }

    /// It is time for a round of redistribution.
    pub fn round(&mut self) {
        self.world.tell(ME, Input::Timer(node::Timer::TriPronged(Timer::Round)));
    }

    pub fn hears(&mut self, from: NodeId, message: Message) {
        self.world.tell(ME, Input::Message { from, message: node::Message::TriPronged(message) });
    }

    pub fn answers(&mut self, from: NodeId, number: u8, yes: bool) {
        let job = self.job(number);
        self.hears(from, Message::Answer { job, yes });
    }

    pub fn pulls(&mut self, from: NodeId, vitals: Vitals, balance: bool) {
        self.hears(from, Message::Pull { vitals: Shared::new(vitals), balance });
    }

    /// Whether this node takes a job of so many cores that was overtaken so often, to start at once.
    pub fn takes(&mut self, from: NodeId, number: u8, cores: u32, overtaken: u32) -> bool {
        self.is_offered(from, number, cores, overtaken, true)
    }

    /// Whether it takes one that would wait.
    pub fn lets_wait(&mut self, from: NodeId, number: u8, cores: u32) -> bool {
        self.is_offered(from, number, cores, 0, false)
    }

    fn is_offered(&mut self, from: NodeId, number: u8, cores: u32, overtaken: u32, at_once: bool) -> bool {
        let envelope = self.envelope(number, cores);
        let needs = Needs::of(envelope.job(), Span::from_hours(1));
        let offer = Offer { job: envelope.id(), needs, overtaken, entered: Time::ZERO, at_once };
        self.said();
        self.hears(from, Message::Offer(Shared::new(offer)));
        match self.said()[..] {
            [(to, Said::Answer(answered, yes))] if (to, answered) == (from, number) => yes,
            ref other => panic!("no answer to the offer of {number}: {other:?}"),
        }
    }

    /// The user of this node has it leave.
    pub fn leaves(&mut self) {
        self.world.command(ME, Command::Drain);
    }

    pub fn passes(&mut self, span: Span) {
        self.world.run_for(span);
    }

    /// What this node has said of jobs that move since the last look, and to whom.
    pub fn said(&mut self) -> Vec<(NodeId, Said)> {
        let new = self.world.sent().iter().skip(self.looked);
        let said = new.filter_map(|sent| Some((sent.to, self.read(&sent.message)?))).collect();
        self.looked = self.world.sent().len();
        said
    }

    /// The jobs that wait here, and are not on their way elsewhere.
    pub fn waiting(&self) -> Vec<u8> {
        self.in_state(SeatState::Waiting)
    }

    pub fn running(&self) -> Vec<u8> {
        self.in_state(SeatState::Running)
    }

    pub fn prongs(&self) -> &TriPronged {
        self.world.core(ME).tri_pronged().expect("it follows the recipe")
    }

    fn in_state(&self, wanted: SeatState) -> Vec<u8> {
        let seats = self.world.core(ME).aria().expect("jobs have seats").seats();
        let mut jobs: Vec<u8> =
            seats.filter(|(_, _, state)| *state == wanted).map(|(job, ..)| self.numbers[&job]).collect();
        jobs.sort_unstable();
        jobs
    }

    fn read(&self, message: &node::Message) -> Option<Said> {
        let number = |job: &JobId| self.numbers[job];
        match message {
            node::Message::TriPronged(Message::Offer(offer)) if offer.at_once => {
                Some(Said::Offer(number(&offer.job)))
            }
            node::Message::TriPronged(Message::Offer(offer)) => Some(Said::OfferToWait(number(&offer.job))),
            node::Message::TriPronged(Message::Answer { job, yes }) => Some(Said::Answer(number(job), *yes)),
            node::Message::TriPronged(Message::Pull { balance: false, .. }) => Some(Said::Pull),
            node::Message::TriPronged(Message::Pull { balance: true, .. }) => Some(Said::PullToBalance),
            node::Message::TriPronged(Message::Nothing) => Some(Said::Nothing),
            node::Message::Aria(aria::Message::Notify { job, to, .. }) => Some(Said::Move(number(job), *to)),
            _ => None,
        }
    }

    fn owner_says(&mut self, message: aria::Message) {
        self.world.tell(ME, Input::Message { from: OWNER, message: node::Message::Aria(message) });
    }

    fn envelope(&mut self, number: u8, cores: u32) -> Shared<Envelope> {
        let job = Job { resources: Resources::cores(cores), ..Job::command(["true"]) };
        let envelope = Envelope::new(job, Nonce([number; 16])).expect("the job makes sense");
        self.numbers.insert(envelope.id(), number);
        Shared::new(envelope)
    }

    fn job(&self, number: u8) -> JobId {
        let job = self.numbers.iter().find(|(_, other)| **other == number).map(|(job, _)| *job);
        job.expect("a job that was spoken of")
    }
}

/// The zone of a neighbour: all of them lie behind one face of this node's.
fn claim(node: NodeId) -> Claim {
    let (_, right) = Zone::WHOLE.cut(0, SIDE / 2);
    let (low, rest) = right.cut(1, SIDE / 4);
    let (middle, high) = rest.cut(1, SIDE / 2);
    let zone = match node {
        ANNA => low,
        BERT => middle,
        _ => high,
    };
    Claim { zone, version: 1 }
}

/// A machine of which so many cores are left, in whose queue so many jobs of one core wait.
pub fn vitals(left: u32, waiting: u32) -> Vitals {
    let taken = CORES - left;
    Vitals {
        machine: Shared::new(Machine::with_capacity(Resources::cores(CORES))),
        residual: Resources::cores(left),
        running: taken,
        waiting,
        bar: 0,
        load: [u64::from(taken + waiting) * WHOLE / u64::from(CORES), 0, 0, 0],
        required: u64::from(taken + waiting) * 1_000,
        backlog: None,
    }
}

/// The same, in whose queue the first was overtaken so often.
pub fn with_bar(bar: u32, vitals: Vitals) -> Vitals {
    Vitals { bar, ..vitals }
}

/// The same on a machine of so many cores, of which no more are left, and which is as busy.
pub fn with_cores(cores: u32, vitals: Vitals) -> Vitals {
    Vitals { machine: Shared::new(Machine::with_capacity(Resources::cores(cores))), ..vitals }
}

/// The same on a machine of so many thousandths of the usual speed.
pub fn with_speed(thousandths: u32, vitals: Vitals) -> Vitals {
    let speed = Speed::new(thousandths.try_into().expect("not nothing"));
    let machine = Shared::new(Machine { speed, ..(*vitals.machine).clone() });
    Vitals { machine, ..vitals }
}
