//! CYCLON: keeps a small random sample of the grid in every node by trading cache entries.
//!
//! ```text
//! P, once per period         its oldest neighbour Q
//!     │── Shuffle ─────────────▶│  myself and some of my entries
//!     │◀───────── ShuffleReply ─│  some of mine; both put what is new over what they gave away
//!
//! newcomer      introducer      a random walk … its end
//!     │── Join ─────▶│── Walk ──────▶│── Walk ────▶│  c walks start
//!     │◀──────────────────────────────── Welcome ──│  one entry makes room for the newcomer, which gets it
//! ```
//!
//! Paper: Voulgaris, Gavidia, van Steen, 2005: enhanced shuffle, join by random walks, failures by silence.
//! Done otherwise: no timeout of its own, since the next period judges the exchange that the last one opened; an
//! entry that was sent away can be replaced by any exchange that ends in the meantime, but only once, and goes to a
//! second node only for want of others; a node that was not welcomed, or whose cache has run empty, joins again; while
//! there is room in the cache, a partner that has answered keeps its place, and the introducer is asked now and then.
//! With a period of 0 nothing is ever shuffled: the graph that [`Command::Meet`] drew stays as it is (*static*).
//!
//! **How many hold me?** Links are directed, so a node does not know in whose caches it is. Whoever needs the number
//! has it counted ([`Cyclon::count_holders`]) at nearly no cost: an entry that changes hands is taken by one side and
//! given up by the other, which changes nothing, so only what turns out otherwise is told to the node it is about
//! ([`Message::Held`]): a few entries in a thousand in a large grid. The number is exact, but for what is on its way,
//! as long as no message is lost or doubled and nobody restarts; a simulation can have that, a real grid cannot.
//!
//! A cache is arrays and bit masks instead of a list of structs: the search for duplicates is the hot loop, and a
//! million nodes have to fit in memory.

mod config;

use rand::RngExt;
use shoal_model::{NodeId, Span};

use crate::protocol::{self, Chance, Ctx, Input, Layer, Never, Protocol};
pub use config::{Config, ConfigError};

/// The most entries that a cache can have: one per bit of a mask.
pub const CACHE_MAX: usize = 64;

/// What travels with an entry besides its address: nothing, or a plan, coordinates …
pub trait Payload: Clone + std::fmt::Debug + Default + PartialEq + Eq + std::hash::Hash + Send {
    /// The bytes that it adds to an entry.
    fn bytes(&self) -> u64;
}

impl Payload for () {
    fn bytes(&self) -> u64 {
        0
    }
}

/// A neighbour, as it travels between caches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry<X = ()> {
    /// Who it is.
    pub node: NodeId,
    /// Shuffles that its holders have done since the node itself made the entry.
    pub age: u16,
    /// What it said of itself then.
    pub payload: X,
}

/// Of so many shuffles of a node whose cache is not full, one is with its introducer.
const WAY_BACK_EVERY: u32 = 16;

/// What an entry is accounted for on the wire: id, age and a signed address record.
const ENTRY_BYTES: u64 = 64;
/// What any message is accounted for besides its content.
const HEADER_BYTES: u64 = 32;

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message<X = ()> {
    /// Trade with me; answered by [`Message::ShuffleReply`].
    Shuffle(Box<[Entry<X>]>),
    /// My side of the trade.
    ShuffleReply(Box<[Entry<X>]>),
    /// Let me in: start walks for me.
    Join,
    /// Find a place for the newcomer; answered to it by [`Message::Welcome`] where the walk ends.
    Walk {
        /// Who wants to get in, as an entry of age 0.
        newcomer: Entry<X>,
        /// Steps left.
        steps: u8,
    },
    /// An entry that made room for you.
    Welcome(Entry<X>),
    /// So many more, or fewer, hold you than you must think.
    Held(i8),
}

impl<X: Payload> protocol::Message for Message<X> {
    const KINDS: &'static [&'static str] = &["shuffle", "shuffle_reply", "join", "walk", "welcome", "held"];

    fn kind(&self) -> usize {
        match self {
            Message::Shuffle(_) => 0,
            Message::ShuffleReply(_) => 1,
            Message::Join => 2,
            Message::Walk { .. } => 3,
            Message::Welcome(_) => 4,
            Message::Held(_) => 5,
        }
    }

    fn bytes(&self) -> u64 {
        let size = |entry: &Entry<X>| ENTRY_BYTES + entry.payload.bytes();
        HEADER_BYTES
            + match self {
                Message::Shuffle(entries) | Message::ShuffleReply(entries) => entries.iter().map(size).sum(),
                Message::Join => ENTRY_BYTES,
                Message::Walk { newcomer: entry, .. } | Message::Welcome(entry) => size(entry),
                Message::Held(_) => 1,
            }
    }
}

/// What the layer above asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Enter the grid through this node: ask until welcomed, and again whenever nobody is left in the cache.
    Join(NodeId),
    /// Take these nodes as neighbours, as far as there is room: a start from a known picture.
    Meet(Box<[NodeId]>),
}

/// Time for the next shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cycle;

/// What the layer above gets to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A neighbour did not answer, and is no longer one.
    Silent(NodeId),
}

/// A node's cache, and the exchange that it has open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cyclon<X = ()> {
    config: Config,
    me: NodeId,
    /// Whom to ask for entry.
    introducer: Option<NodeId>,
    /// Whether nobody has answered that yet. Who has newcomers of its own may have neighbours before.
    unwelcomed: bool,
    /// What others shall know of this node; goes out with its own entry.
    payload: X,
    /// Neighbours by slot; an empty slot names this node itself, so that one scan finds self and duplicates.
    nodes: Box<[NodeId]>,
    ages: Box<[u16]>,
    payloads: Box<[X]>,
    /// Which slots hold a neighbour.
    full: u64,
    /// Which slots were sent away in the open exchange and still hold what was sent.
    lent: u64,
    /// Whom this node awaits an answer from.
    partner: Option<NodeId>,
    /// How many hold this node; none if nobody wants to know.
    holders: Option<i32>,
}

impl<X: Payload> Layer for Cyclon<X> {
    type Command = Command;
    type Message = Message<X>;
    type Timer = Cycle;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl<X: Payload> Protocol for Cyclon<X> {
    type Config = Config;

    fn restore(config: &Config, me: NodeId, _records: impl Iterator<Item = Never>) -> Cyclon<X> {
        let cache = usize::from(config.cache);
        Cyclon {
            config: *config,
            me,
            introducer: None,
            unwelcomed: false,
            payload: X::default(),
            nodes: vec![me; cache].into_boxed_slice(),
            ages: vec![0; cache].into_boxed_slice(),
            payloads: vec![X::default(); cache].into_boxed_slice(),
            full: 0,
            lent: 0,
            partner: None,
            holders: None,
        }
    }

    fn handle(&mut self, input: Input<Self>, ctx: &mut Ctx<'_, Self>) {
        match input {
            Input::Boot if self.config.period_ms == 0 => {}
            // A random phase keeps the nodes from shuffling in step.
            Input::Boot => {
                let phase = ctx.chance.random_range(0..self.config.period().as_micros());
                ctx.wake_after(Span::from_micros(phase), Cycle);
            }
            Input::Command(Command::Join(introducer)) => {
                self.introducer = Some(introducer);
                self.unwelcomed = true;
                self.ask_for_entry(ctx);
            }
            Input::Command(Command::Meet(nodes)) => {
                for &node in nodes.iter() {
                    self.held(node, 1, ctx);
                    self.merge([Entry { node, age: 0, payload: X::default() }], 0, ctx);
                }
            }
            Input::Message { from, message } => match message {
                Message::Shuffle(entries) => self.on_shuffle(from, entries, ctx),
                Message::ShuffleReply(entries) => self.on_reply(from, entries, ctx),
                Message::Join => self.on_join(from, ctx),
                Message::Walk { newcomer, steps } => self.on_walk(newcomer, steps, ctx),
                Message::Welcome(entry) => {
                    self.unwelcomed = false;
                    self.merge([entry], 0, ctx);
                }
                Message::Held(by) => self.count(i32::from(by)),
            },
            Input::Timer(Cycle) => self.on_cycle(ctx),
            Input::Done(never) => match never {},
        }
    }
}

impl<X: Payload> Cyclon<X> {
    /// The neighbours, in no particular order.
    pub fn neighbours(&self) -> impl Iterator<Item = NodeId> + '_ {
        bits(self.full).map(|slot| self.nodes[slot])
    }

    /// The neighbours with age and payload.
    pub fn entries(&self) -> impl Iterator<Item = Entry<X>> + '_ {
        bits(self.full).map(|slot| self.entry(slot))
    }

    /// The neighbours, and the one that an open exchange has taken out of the cache while its place is free.
    pub fn neighbours_and_partner(&self) -> impl Iterator<Item = NodeId> + '_ {
        let partner = self.partner.filter(|partner| !self.nodes.contains(partner));
        self.neighbours().chain(partner).take(self.nodes.len())
    }

    /// How many neighbours there are.
    pub fn degree(&self) -> usize {
        self.full.count_ones() as usize
    }

    /// Whom this node awaits an answer from; the link to it is out of the cache until then.
    pub fn awaits(&self) -> Option<NodeId> {
        self.partner
    }

    /// Counts from now on who holds this node; all nodes of a grid count, or none.
    pub fn count_holders(&mut self) {
        self.holders.get_or_insert(0);
    }

    /// How many hold this node, if that is counted.
    pub fn holders(&self) -> Option<u32> {
        self.holders.map(|holders| u32::try_from(holders).unwrap_or(0))
    }

    /// Tells others this of us from now on.
    pub fn describe(&mut self, payload: X) {
        self.payload = payload;
    }

    /// A neighbour found dead by other means makes room.
    pub fn forget(&mut self, node: NodeId) {
        if let Some(slot) = bits(self.full).find(|&slot| self.nodes[slot] == node) {
            self.clear(slot);
        }
    }

    /// Step 1 to 3 of the enhanced shuffle.
    fn on_cycle(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.wake_after(self.config.period(), Cycle);
        self.lent = 0;
        if let Some(silent) = self.partner.take() {
            // Nobody took our entry.
            self.count(-1);
            ctx.report(Event::Silent(silent));
        }
        for age in &mut self.ages {
            *age = age.saturating_add(1);
        }
        let oldest = self.oldest();
        if self.unwelcomed || oldest.is_none() {
            self.ask_for_entry(ctx);
        }
        let Some(oldest) = oldest else { return };
        let partner = match self.way_back(ctx.chance) {
            Some(introducer) => {
                if self.nodes.contains(&introducer) {
                    self.forget(introducer);
                } else {
                    // It will think that we had it in our cache.
                    self.held(introducer, 1, ctx);
                }
                introducer
            }
            None => {
                let partner = self.nodes[oldest];
                self.clear(oldest);
                partner
            }
        };
        self.lent = sample(self.full, usize::from(self.config.shuffle) - 1, ctx.chance);
        self.partner = Some(partner);
        self.count(1);
        let mut entries = Vec::with_capacity(self.lent.count_ones() as usize + 1);
        entries.push(self.own_entry());
        entries.extend(bits(self.lent).map(|slot| self.entry(slot)));
        ctx.send(partner, Message::Shuffle(entries.into_boxed_slice()));
    }

    /// Whom to ask once in a while instead of the oldest. A cache that is not full may be all that is left of this side
    /// of a cut, and after it the two sides would never meet again; where the introducer was, the others may be.
    fn way_back(&self, chance: &mut Chance) -> Option<NodeId> {
        let introducer = self.introducer.filter(|&introducer| introducer != self.me)?;
        let seldom = self.degree() < self.nodes.len() && chance.random_range(0..WAY_BACK_EVERY) == 0;
        seldom.then_some(introducer)
    }

    fn on_shuffle(&mut self, from: NodeId, entries: Box<[Entry<X>]>, ctx: &mut Ctx<'_, Self>) {
        let given = self.choose_given(ctx.chance);
        // Made to measure: growing a list by halves and trimming it costs more than the rest of the answer.
        let mut answer = Vec::with_capacity(given.count_ones() as usize);
        answer.extend(bits(given).map(|slot| self.entry(slot)));
        ctx.send(from, Message::ShuffleReply(answer.into_boxed_slice()));
        // It took us out of its cache before it asked.
        self.count(-1);
        self.merge(entries, given, ctx);
    }

    fn on_reply(&mut self, from: NodeId, entries: Box<[Entry<X>]>, ctx: &mut Ctx<'_, Self>) {
        // A late or doubled answer finds its exchange closed.
        if self.partner == Some(from) {
            self.partner = None;
            let lent = std::mem::take(&mut self.lent);
            self.merge(entries, lent, ctx);
            // Where there is room for everybody, whoever has just answered need not make any.
            if self.degree() < self.nodes.len() {
                self.held(from, 1, ctx);
                self.merge([Entry { node: from, age: 0, payload: X::default() }], 0, ctx);
            }
        }
    }

    fn on_join(&mut self, newcomer: NodeId, ctx: &mut Ctx<'_, Self>) {
        let newcomer = Entry { node: newcomer, age: 0, payload: X::default() };
        for _ in 0..self.config.cache {
            self.on_walk(newcomer.clone(), self.config.walk, ctx);
        }
    }

    fn on_walk(&mut self, newcomer: Entry<X>, steps: u8, ctx: &mut Ctx<'_, Self>) {
        let others = bits(self.full).filter(|&slot| self.nodes[slot] != newcomer.node).count();
        if steps > 0 && others > 0 {
            let pick = ctx.chance.random_range(0..others);
            let next = self.neighbours().filter(|&node| node != newcomer.node).nth(pick);
            let next = next.expect("there are that many");
            // A peer may claim any number of steps; we know how many there can be.
            let steps = (steps - 1).min(self.config.walk);
            ctx.send(next, Message::Walk { newcomer, steps });
            return;
        }
        self.make_room(newcomer, ctx);
    }

    /// The walk ends here: an entry of ours moves to the newcomer, which takes its place.
    fn make_room(&mut self, newcomer: Entry<X>, ctx: &mut Ctx<'_, Self>) {
        if newcomer.node == self.me {
            return;
        }
        let welcome = |entry| Message::Welcome(entry);
        if self.nodes.contains(&newcomer.node) {
            self.count(1);
            ctx.send(newcomer.node, welcome(self.own_entry()));
        } else if let Some(slot) = bits(!self.full).next().filter(|&slot| slot < self.nodes.len()) {
            self.put(slot, newcomer.clone());
            self.held(newcomer.node, 1, ctx);
            self.count(1);
            ctx.send(newcomer.node, welcome(self.own_entry()));
        } else {
            let slot = ctx.chance.random_range(0..self.nodes.len());
            let moved = self.entry(slot);
            self.give_lent(slot, ctx);
            self.put(slot, newcomer.clone());
            self.held(newcomer.node, 1, ctx);
            ctx.send(newcomer.node, welcome(moved));
        }
    }

    fn ask_for_entry(&mut self, ctx: &mut Ctx<'_, Self>) {
        if let Some(introducer) = self.introducer.filter(|&introducer| introducer != self.me) {
            ctx.send(introducer, Message::Join);
        }
    }

    /// Takes what is new: into empty slots first, then over `given`, the slots sent away in this exchange.
    fn merge(&mut self, entries: impl IntoIterator<Item = Entry<X>>, given: u64, ctx: &mut Ctx<'_, Self>) {
        let all = u64::MAX >> (64 - self.nodes.len());
        // A slot that another exchange has already filled anew is no longer ours to give.
        let mut given = given & self.full;
        for entry in entries.into_iter().take(CACHE_MAX) {
            let empty = all & !self.full;
            let free = if empty != 0 { empty } else { given };
            if free == 0 || entry.node == self.me || self.nodes.contains(&entry.node) {
                self.held(entry.node, -1, ctx);
                continue;
            }
            let slot = free.trailing_zeros() as usize;
            given &= !(1 << slot);
            self.give_lent(slot, ctx);
            self.put(slot, entry);
        }
        for slot in bits(given) {
            self.held(self.nodes[slot], 1, ctx);
        }
    }

    /// An entry that was sent away in the open exchange makes room for another: it is given up twice.
    fn give_lent(&mut self, slot: usize, ctx: &mut Ctx<'_, Self>) {
        if self.lent & 1 << slot != 0 {
            self.lent &= !(1 << slot);
            self.held(self.nodes[slot], 1, ctx);
        }
    }

    /// A trade that turned out otherwise than its node must think.
    fn held(&mut self, node: NodeId, by: i8, ctx: &mut Ctx<'_, Self>) {
        if self.holders.is_none() {
            return;
        }
        if node == self.me {
            self.count(i32::from(by));
        } else {
            ctx.send(node, Message::Held(by));
        }
    }

    fn count(&mut self, by: i32) {
        if let Some(holders) = &mut self.holders {
            *holders = holders.saturating_add(by);
        }
    }

    fn oldest(&self) -> Option<usize> {
        bits(self.full).max_by_key(|&slot| (self.ages[slot], std::cmp::Reverse(slot)))
    }

    /// What to give away in an answer: of what is lent already only as much as is needed to make up the number,
    /// since of an entry that goes to two nodes there are two, and another has to make room for it.
    fn choose_given(&self, chance: &mut Chance) -> u64 {
        let count = usize::from(self.config.shuffle);
        let here = sample(self.full & !self.lent, count, chance);
        here | sample(self.lent, count - here.count_ones() as usize, chance)
    }

    fn own_entry(&self) -> Entry<X> {
        Entry { node: self.me, age: 0, payload: self.payload.clone() }
    }

    fn entry(&self, slot: usize) -> Entry<X> {
        Entry { node: self.nodes[slot], age: self.ages[slot], payload: self.payloads[slot].clone() }
    }

    fn put(&mut self, slot: usize, entry: Entry<X>) {
        self.nodes[slot] = entry.node;
        self.ages[slot] = entry.age;
        self.payloads[slot] = entry.payload;
        self.full |= 1 << slot;
    }

    fn clear(&mut self, slot: usize) {
        self.nodes[slot] = self.me;
        self.payloads[slot] = X::default();
        self.full &= !(1 << slot);
        self.lent &= !(1 << slot);
    }
}

/// A random set of at most `count` of these slots.
fn sample(slots: u64, count: usize, chance: &mut Chance) -> u64 {
    let held = slots.count_ones() as usize;
    if held <= count {
        return slots;
    }
    let mut places = [0u8; CACHE_MAX];
    for (place, slot) in places.iter_mut().zip(bits(slots)) {
        *place = slot as u8;
    }
    let mut chosen = 0;
    for drawn in 0..count {
        let pick = chance.random_range(drawn as u32..held as u32) as usize;
        places.swap(drawn, pick);
        chosen |= 1 << places[drawn];
    }
    chosen
}

/// The set bits of a mask, lowest first.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests;
