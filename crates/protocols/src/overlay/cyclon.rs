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
//! With a period of 0 nothing is ever shuffled: the graph that [`Command::Meet`] drew stays as it is (*static*). Where a
//! node may [rest](Config::rests), it shuffles at ever longer intervals while nobody comes and nobody falls silent around
//! it, and at once as often as before when somebody does.

mod cache;
mod config;
mod holders;

use minicbor::{CborLen, Decode, Encode};
use rand::RngExt;
use shoal_model::{NodeId, Span};

use crate::protocol::{self, Chance, Ctx, Input, Layer, Never, Protocol};
pub use cache::CACHE_MAX;
use cache::{Cache, Slots, bits};
pub use config::{Config, ConfigError};
use holders::Holders;

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
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Entry<X = ()> {
    /// Who it is.
    #[n(0)]
    pub node: NodeId,
    /// Shuffles that its holders have done since the node itself made the entry.
    #[n(1)]
    pub age: u16,
    /// What it said of itself then.
    #[n(2)]
    pub payload: X,
}

/// Of so many shuffles of a node whose cache is not full, one is with its introducer.
const WAY_BACK_EVERY: u32 = 16;

/// After so many shuffles more without a change a node begins to rest, longer from one to the next.
const AWAKE: u8 = 3;

/// What an entry is accounted for on the wire: id, age and a signed address record.
const ENTRY_BYTES: u64 = 64;
/// What any message is accounted for besides its content.
const HEADER_BYTES: u64 = 32;

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message<X = ()> {
    /// Trade with me; answered by [`Message::ShuffleReply`].
    #[n(0)]
    Shuffle(#[n(0)] Box<[Entry<X>]>),
    /// My side of the trade.
    #[n(1)]
    ShuffleReply(#[n(0)] Box<[Entry<X>]>),
    /// Let me in: start walks for me.
    #[n(2)]
    Join,
    /// Find a place for the newcomer; answered to it by [`Message::Welcome`] where the walk ends.
    #[n(3)]
    Walk {
        /// Who wants to get in, as an entry of age 0.
        #[n(0)]
        newcomer: Entry<X>,
        /// Steps left.
        #[n(1)]
        steps: u8,
    },
    /// An entry that made room for you.
    #[n(4)]
    Welcome(#[n(0)] Entry<X>),
    /// So many more, or fewer, hold you than you must think.
    #[n(5)]
    Held(#[n(0)] i8),
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

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Shuffle(entries) | Message::ShuffleReply(entries) => {
                entries.iter().for_each(|entry| mention(entry.node));
            }
            Message::Walk { newcomer: entry, .. } | Message::Welcome(entry) => mention(entry.node),
            Message::Join | Message::Held(_) => {}
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
    cache: Cache<X>,
    /// Whom to ask for entry.
    introducer: Option<NodeId>,
    /// Whether nobody has answered that yet. Who has newcomers of its own may have neighbours before.
    unwelcomed: bool,
    /// What others shall know of this node; goes out with its own entry.
    payload: X,
    /// Which slots were sent away in the open exchange and still hold what was sent.
    lent: Slots,
    /// Whom this node awaits an answer from.
    partner: Option<NodeId>,
    holders: Holders,
    /// Periods to let pass before the next shuffle.
    rest: u8,
    /// Shuffles since something has changed around this node.
    calm: u8,
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
        Cyclon {
            config: *config,
            cache: Cache::new(me, config.cache),
            introducer: None,
            unwelcomed: false,
            payload: X::default(),
            lent: 0,
            partner: None,
            holders: Holders::default(),
            rest: 0,
            calm: 0,
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
                self.stir();
                self.ask_for_entry(ctx);
            }
            Input::Command(Command::Meet(nodes)) => {
                for &node in nodes.iter() {
                    self.holders.held(node, 1, ctx);
                    self.merge(&[Entry { node, age: 0, payload: X::default() }], 0, ctx);
                }
            }
            Input::Message { from, message } => match message {
                Message::Shuffle(entries) => self.on_shuffle(from, entries, ctx),
                Message::ShuffleReply(entries) => self.on_reply(from, entries, ctx),
                Message::Join => self.on_join(from, ctx),
                Message::Walk { newcomer, steps } => self.on_walk(newcomer, steps, ctx),
                Message::Welcome(entry) => {
                    self.unwelcomed = false;
                    self.stir();
                    self.merge(&[entry], 0, ctx);
                }
                Message::Held(by) => self.holders.count(i32::from(by)),
            },
            Input::Timer(Cycle) => self.on_cycle(ctx),
            Input::Done(never) => match never {},
        }
    }

    fn glance(&self) -> u64 {
        self.cache.glance()
    }
}

impl<X: Payload> Cyclon<X> {
    /// The neighbours, in no particular order.
    pub fn neighbours(&self) -> impl Iterator<Item = NodeId> + '_ {
        bits(self.cache.full()).map(|slot| self.cache.node(slot))
    }

    /// The neighbours with age and payload.
    pub fn entries(&self) -> impl Iterator<Item = Entry<X>> + '_ {
        bits(self.cache.full()).map(|slot| self.cache.entry(slot))
    }

    /// The neighbours, and the one that an open exchange has taken out of the cache while its place is free.
    pub fn neighbours_and_partner(&self) -> impl Iterator<Item = NodeId> + '_ {
        let partner = self.partner.filter(|partner| !self.cache.contains(*partner));
        self.neighbours().chain(partner).take(self.cache.len())
    }

    /// How many neighbours there are.
    pub fn degree(&self) -> usize {
        self.cache.degree()
    }

    /// Whom this node awaits an answer from; the link to it is out of the cache until then.
    pub fn awaits(&self) -> Option<NodeId> {
        self.partner
    }

    /// Counts from now on who holds this node; all nodes of a grid count, or none.
    pub fn count_holders(&mut self) {
        self.holders.begin();
    }

    /// How many hold this node, if that is counted.
    pub fn holders(&self) -> Option<u32> {
        self.holders.number()
    }

    /// Tells others this of us from now on.
    pub fn describe(&mut self, payload: X) {
        self.payload = payload;
    }

    /// A neighbour found dead by other means makes room.
    pub fn forget(&mut self, node: NodeId) {
        if let Some(slot) = self.cache.find(node) {
            self.clear(slot);
            self.stir();
        }
    }

    /// Something has changed around this node: it shuffles in every period for a while.
    fn stir(&mut self) {
        (self.rest, self.calm) = (0, 0);
    }

    /// Step 1 to 3 of the enhanced shuffle.
    fn on_cycle(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.wake_after(self.config.period(), Cycle);
        self.lent = 0;
        if let Some(silent) = self.partner.take() {
            // Nobody took our entry.
            self.holders.count(-1);
            ctx.report(Event::Silent(silent));
            self.stir();
        }
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        let doubled = self.calm.saturating_sub(AWAKE).min(7);
        self.rest = ((1 << doubled) - 1).min(self.config.rests);
        self.calm = self.calm.saturating_add(1);
        self.cache.grow_older();
        let oldest = self.cache.oldest();
        if self.unwelcomed || oldest.is_none() {
            self.stir();
            self.ask_for_entry(ctx);
        }
        let Some(oldest) = oldest else { return };
        let partner = match self.way_back(ctx.chance) {
            Some(introducer) => {
                if let Some(slot) = self.cache.find(introducer) {
                    self.clear(slot);
                } else {
                    // It will think that we had it in our cache.
                    self.holders.held(introducer, 1, ctx);
                }
                introducer
            }
            None => {
                let partner = self.cache.node(oldest);
                self.clear(oldest);
                partner
            }
        };
        self.lent = self.cache.sample(self.cache.full(), usize::from(self.config.shuffle) - 1, ctx.chance);
        self.partner = Some(partner);
        self.holders.count(1);
        let entries = self.cache.copy(Some(self.own_entry()), self.lent);
        ctx.send(partner, Message::Shuffle(entries));
    }

    /// Whom to ask once in a while instead of the oldest. A cache that is not full may be all that is left of this side
    /// of a cut, and after it the two sides would never meet again; where the introducer was, the others may be.
    fn way_back(&self, chance: &mut Chance) -> Option<NodeId> {
        let introducer = self.introducer.filter(|&introducer| introducer != self.cache.me())?;
        let seldom = self.degree() < self.cache.len() && chance.random_range(0..WAY_BACK_EVERY) == 0;
        seldom.then_some(introducer)
    }

    fn on_shuffle(&mut self, from: NodeId, entries: Box<[Entry<X>]>, ctx: &mut Ctx<'_, Self>) {
        let given = self.choose_given(ctx.chance);
        ctx.send(from, Message::ShuffleReply(self.cache.copy(None, given)));
        // It took us out of its cache before it asked.
        self.holders.count(-1);
        self.merge(&entries, given, ctx);
    }

    fn on_reply(&mut self, from: NodeId, entries: Box<[Entry<X>]>, ctx: &mut Ctx<'_, Self>) {
        // A late or doubled answer finds its exchange closed.
        if self.partner == Some(from) {
            let lent = std::mem::take(&mut self.lent);
            self.merge(&entries, lent, ctx);
            // Where there is room for everybody, whoever has just answered need not make any.
            if self.degree() < self.cache.len() {
                self.holders.held(from, 1, ctx);
                self.merge(&[Entry { node: from, age: 0, payload: X::default() }], 0, ctx);
            }
            self.partner = None;
        }
    }

    fn on_join(&mut self, newcomer: NodeId, ctx: &mut Ctx<'_, Self>) {
        let newcomer = Entry { node: newcomer, age: 0, payload: X::default() };
        for _ in 0..self.config.cache {
            self.on_walk(newcomer.clone(), self.config.walk, ctx);
        }
    }

    fn on_walk(&mut self, newcomer: Entry<X>, steps: u8, ctx: &mut Ctx<'_, Self>) {
        let others = bits(self.cache.full()).filter(|&slot| self.cache.node(slot) != newcomer.node).count();
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
        if newcomer.node == self.cache.me() {
            return;
        }
        let welcome = |entry| Message::Welcome(entry);
        if self.cache.contains(newcomer.node) {
            self.holders.count(1);
            ctx.send(newcomer.node, welcome(self.own_entry()));
        } else if let Some(slot) = bits(self.cache.empty()).next() {
            self.stir();
            self.cache.put(slot, newcomer.clone());
            self.holders.held(newcomer.node, 1, ctx);
            self.holders.count(1);
            ctx.send(newcomer.node, welcome(self.own_entry()));
        } else {
            self.stir();
            let slot = ctx.chance.random_range(0..self.cache.len());
            let moved = self.cache.entry(slot);
            if self.lent & 1 << slot != 0 {
                self.lent &= !(1 << slot);
                self.holders.held(moved.node, 1, ctx);
            }
            self.cache.put(slot, newcomer.clone());
            self.holders.held(newcomer.node, 1, ctx);
            ctx.send(newcomer.node, welcome(moved));
        }
    }

    fn ask_for_entry(&mut self, ctx: &mut Ctx<'_, Self>) {
        if let Some(introducer) = self.introducer.filter(|&introducer| introducer != self.cache.me()) {
            ctx.send(introducer, Message::Join);
        }
    }

    /// Takes what is new: into empty slots first, then over `given`, the slots sent away in this exchange.
    fn merge(&mut self, entries: &[Entry<X>], given: Slots, ctx: &mut Ctx<'_, Self>) {
        let me = self.cache.me();
        // A slot that another exchange has already filled anew is no longer ours to give.
        let mut given = given & self.cache.full();
        // Where there is room for everybody, besides the place of an open exchange, whoever is new is new to the grid.
        let roomy = self.degree() + 1 < self.cache.len();
        let mut news = false;
        let Cyclon { cache, lent, holders, partner, .. } = self;
        let mut cache = cache.open();
        for entry in entries.iter().take(CACHE_MAX) {
            let empty = cache.empty();
            let free = if empty != 0 { empty } else { given };
            if free == 0 || entry.node == me || cache.contains(entry.node) {
                holders.held(entry.node, -1, ctx);
                continue;
            }
            let slot = free.trailing_zeros() as usize;
            given &= !(1 << slot);
            if *lent & 1 << slot != 0 {
                // It is given up twice.
                *lent &= !(1 << slot);
                holders.held(cache.node(slot), 1, ctx);
            }
            cache.put(slot, entry.clone());
            news |= roomy && *partner != Some(entry.node);
        }
        if holders.are_counted() {
            for slot in bits(given) {
                holders.held(cache.node(slot), 1, ctx);
            }
        }
        if news {
            self.stir();
        }
    }

    /// What to give away in an answer: of what is lent already only as much as is needed to make up the number,
    /// since of an entry that goes to two nodes there are two, and another has to make room for it.
    fn choose_given(&self, chance: &mut Chance) -> Slots {
        let count = usize::from(self.config.shuffle);
        let here = self.cache.sample(self.cache.full() & !self.lent, count, chance);
        here | self.cache.sample(self.lent, count - here.count_ones() as usize, chance)
    }

    fn own_entry(&self) -> Entry<X> {
        Entry { node: self.cache.me(), age: 0, payload: self.payload.clone() }
    }

    fn clear(&mut self, slot: usize) {
        self.cache.clear(slot);
        self.lent &= !(1 << slot);
    }
}

#[cfg(test)]
mod tests;
