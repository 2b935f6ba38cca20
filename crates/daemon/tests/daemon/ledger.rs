//! A ledger that every peer keeps a copy of.
//!
//! ```text
//! user         author                    peer
//!   │─ Add ─────▶│ saves the entry         │
//!   │◀─ Added ───│── Copy ────────────────▶│ saves the entry
//!   │            │◀─────────────────── Ack │
//!   │◀─ Shared ──│ when all have it        │
//! ```
//!
//! A copy is said again until its ack comes; an audit is left to the executor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use minicbor::{Decode, Encode};
use shoal_daemon::{Clock, Completion, Executor, Network, Setup, Store};
use shoal_model::{NodeId, Span, Time};
use shoal_protocols::{Chance, Ctx, Input, Layer, Protocol};

use crate::support::Diary;

pub const SAY_AGAIN_AFTER: Span = Span::from_millis(5);

#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    peers: Vec<NodeId>,
    pub entries: BTreeMap<(NodeId, u64), u64>,
    /// Own entries, and who has not acknowledged them yet.
    open: BTreeMap<u64, BTreeSet<NodeId>>,
}

#[derive(Clone, Debug)]
pub enum Command {
    Add(u64),
    Audit,
}

#[derive(Clone, Debug)]
pub enum Message {
    Copy { number: u64, amount: u64 },
    Ack { number: u64 },
}

#[derive(Clone, Debug)]
pub struct SayAgain(u64);

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Record {
    #[n(0)]
    Entry {
        #[n(0)]
        author: NodeId,
        #[n(1)]
        number: u64,
        #[n(2)]
        amount: u64,
    },
    /// Not all peers have this own entry.
    #[n(1)]
    Open {
        #[n(0)]
        number: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Key {
    #[n(0)]
    Entry(#[n(0)] NodeId, #[n(1)] u64),
    #[n(1)]
    Open(#[n(0)] u64),
}

#[derive(Clone, Debug)]
pub struct Audit(Vec<u64>);

#[derive(Clone, Debug)]
pub struct Audited(u64);

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Added(u64),
    Shared(u64),
    Total(u64),
}

impl shoal_protocols::Message for Message {
    const KINDS: &'static [&'static str] = &["copy", "ack"];

    fn kind(&self) -> usize {
        match self {
            Message::Copy { .. } => 0,
            Message::Ack { .. } => 1,
        }
    }

    fn bytes(&self) -> u64 {
        16
    }
}

impl shoal_protocols::Record for Record {
    type Key = Key;

    fn key(&self) -> Key {
        match self {
            Record::Entry { author, number, .. } => Key::Entry(*author, *number),
            Record::Open { number } => Key::Open(*number),
        }
    }
}

impl Layer for Ledger {
    type Command = Command;
    type Message = Message;
    type Timer = SayAgain;
    type Record = Record;
    type Action = Audit;
    type Outcome = Audited;
    type Event = Event;
}

impl Protocol for Ledger {
    type Config = Vec<NodeId>;

    fn restore(peers: &Vec<NodeId>, _me: NodeId, records: impl Iterator<Item = Record>) -> Ledger {
        let mut ledger = Ledger { peers: peers.clone(), entries: BTreeMap::new(), open: BTreeMap::new() };
        for record in records {
            match record {
                Record::Entry { author, number, amount } => {
                    ledger.entries.insert((author, number), amount);
                }
                Record::Open { number } => {
                    ledger.open.insert(number, peers.iter().copied().collect());
                }
            }
        }
        ledger
    }

    fn handle(&mut self, input: Input<Ledger>, ctx: &mut Ctx<'_, Ledger>) {
        match input {
            Input::Boot => {
                for number in self.open.keys().copied().collect::<Vec<_>>() {
                    self.say(number, ctx);
                }
            }
            Input::Command(Command::Add(amount)) => self.add(amount, ctx),
            Input::Command(Command::Audit) => ctx.act(Audit(self.entries.values().copied().collect())),
            Input::Message { from, message: Message::Copy { number, amount } } => {
                if self.entries.insert((from, number), amount).is_none() {
                    ctx.save(Record::Entry { author: from, number, amount });
                }
                ctx.send(from, Message::Ack { number });
            }
            Input::Message { from, message: Message::Ack { number } } => {
                let Some(missing) = self.open.get_mut(&number) else { return };
                missing.remove(&from);
                if missing.is_empty() {
                    self.open.remove(&number);
                    ctx.erase(Key::Open(number));
                    ctx.report(Event::Shared(number));
                }
            }
            Input::Timer(SayAgain(number)) => self.say(number, ctx),
            Input::Done(Audited(total)) => ctx.report(Event::Total(total)),
        }
    }
}

impl Ledger {
    fn add(&mut self, amount: u64, ctx: &mut Ctx<'_, Ledger>) {
        let own = (ctx.me, 0)..=(ctx.me, u64::MAX);
        let number = self.entries.range(own).next_back().map_or(1, |((_, last), _)| last + 1);
        self.entries.insert((ctx.me, number), amount);
        ctx.save(Record::Entry { author: ctx.me, number, amount });
        if !self.peers.is_empty() {
            self.open.insert(number, self.peers.iter().copied().collect());
            ctx.save(Record::Open { number });
        }
        ctx.report(Event::Added(number));
        self.say(number, ctx);
    }

    fn say(&mut self, number: u64, ctx: &mut Ctx<'_, Ledger>) {
        let Some(missing) = self.open.get(&number) else { return };
        for &peer in missing {
            ctx.send(peer, Message::Copy { number, amount: self.entries[&(ctx.me, number)] });
        }
        ctx.wake_after(SAY_AGAIN_AFTER, SayAgain(number));
    }
}

/// Adds on a thread of its own, as a real executor has its work done elsewhere.
pub struct Auditor {
    work: Option<mpsc::Sender<(Audit, Completion<Ledger>)>>,
    worker: Option<JoinHandle<()>>,
}

impl Auditor {
    pub fn new() -> Auditor {
        let (work, audits) = mpsc::channel::<(Audit, Completion<Ledger>)>();
        let worker = thread::spawn(move || {
            for (Audit(amounts), completion) in audits {
                completion.complete(Audited(amounts.iter().sum()));
            }
        });
        Auditor { work: Some(work), worker: Some(worker) }
    }
}

impl Executor<Ledger> for Auditor {
    fn perform(&mut self, _now: Time, action: Audit, completion: Completion<Ledger>) {
        let work = self.work.as_ref().expect("there until the end");
        work.send((action, completion)).expect("the worker lives as long as its work");
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        drop(self.work.take());
        self.worker.take().expect("joined once").join().expect("adding does not fail");
    }
}

/// What a ledger is driven with; reports go into the diary.
pub fn setup(
    me: NodeId,
    peers: &[NodeId],
    records: Vec<Record>,
    store: impl Store<Record> + 'static,
    network: impl Network<Message> + 'static,
    diary: &Diary,
) -> Setup<Ledger> {
    let diary = diary.clone();
    Setup {
        me,
        config: peers.to_vec(),
        records,
        chance: chance(me.0),
        clock: Clock::new(),
        store: Box::new(store),
        network: Box::new(network),
        executor: Box::new(Auditor::new()),
        reports: Box::new(move |_, event| diary.note(format!("report {event:?}"))),
    }
}

pub fn chance(seed: u64) -> Chance {
    rand_xoshiro::rand_core::SeedableRng::seed_from_u64(seed)
}
