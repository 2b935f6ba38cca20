//! CAN: every node owns a zone of a space, knows those around it, and passes on what is meant for others.
//!
//! ```text
//! newcomer       … on the way …      owner of its point       around
//!     │── Join ──────▶│── Join ──────────▶│
//!     │◀───────────────────── Welcome ────│  a part of its zone, and who is around
//!     │── Update ────────────────────────▶│── Update ───────────▶│   it is claimed; the owner keeps the rest
//!     │── Update ───────────────────────────────────────────────▶│
//!
//! holder of two zones     whoever touches one of them along a whole face
//!     │── Grant ───────────────▶│   this would make your zone larger
//!     │◀────────────── Update ──│   it is claimed
//! ```
//!
//! Papers: Ratnasamy, Francis, Handley, Karp, Shenker, 2001 (torus, join, takeover); Kim et al., 2006 and 2007 (dimensions
//! that mean resources, a virtual one, aggregated load); Lee, Keleher, Sussman, 2010 (balloons, Dual-CAN).
//!
//! Done otherwise: a heartbeat says which zones its sender claims, each with a version that grows whenever a zone changes
//! hands. Where two claims overlap, the larger version is right and the other gives way, so that no message needs an
//! answer: a newcomer's first heartbeat is the end of its join, and a zone is taken over by claiming it. Whoever loses the
//! zone that it lies in joins again. The pause before a takeover grows with the logarithm of the own volume.
//! A zone without its node is divided among those behind the face of its deepest cut, which is what its sibling in
//! the tree of cuts has become: so nodes stay in the zones that they lie in, which the original's search for two
//! siblings elsewhere would not allow.

mod ahead;
mod around;
mod balloon;
mod config;
mod heal;
mod join;
mod layout;
mod message;
mod reassign;
mod secondary;
mod shortcuts;
mod volume;
mod zone;

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::IteratorRandom;
use shoal_model::machine::Machine;
use shoal_model::{NodeId, Span, Time};

use crate::protocol::{Ctx, Input, Layer, Never, Protocol};
use crate::shared::Shared;
use around::Neighbours;
pub use balloon::BALLOONS_MAX;
pub use config::{Config, ConfigError, Kind, RESOURCE_DIMENSIONS, Residue, VIRTUAL};
use heal::Ghost;
pub use heal::{CLAIMS_MAX, GHOSTS_MAX, NEIGHBOURS_MAX};
pub use layout::{Place, lay_out};
pub use message::{Ahead, Balloon, Claim, Message, Peer, Update, Vitals};
pub use secondary::{DOOR, Secondary, SecondaryMessage};
use shortcuts::Shortcuts;
pub use volume::Volume;
pub use zone::{DIMENSIONS_MAX, Face, Point, SIDE, Space, Zone, is_cell};

/// What a node of a CAN is told at its making.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setup {
    /// What all nodes are told.
    pub config: Config,
    /// Where it lies; drawn from its id if not said.
    pub point: Option<Point>,
}

/// What the layer above asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Get a zone, through this node; a node that is never told so has all of the space.
    Join(NodeId),
    /// This is your zone, and these are around it: for grids that are laid out before they start.
    Settle(Place),
    /// Hand over all zones; ends in [`Event::Left`].
    Leave,
}

/// What a node asked to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// The next heartbeat is due.
    Beat,
    /// Is there a zone by now?
    Enter,
    /// Has somebody taken the zones of the dead?
    Ghosts,
    /// Have all zones been taken?
    Left,
}

/// What the layer above gets to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A neighbour has been silent for too long.
    Silent(NodeId),
    /// All zones are handed over, or as many as could be.
    Left,
}

/// Where something that is meant for a point goes from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hop {
    /// The point lies here.
    Here,
    /// To a neighbour that is nearer.
    To(NodeId),
    /// Nobody who is nearer is known.
    Stuck,
}

/// How long a node waits for an introducer before it takes all of the space.
const FOUND_AFTER: Span = Span::from_secs(2);
/// How long handing over may take.
const LEAVE_WITHIN: Span = Span::from_secs(5);
/// Of so many heartbeats one goes to somebody further away too: two spaces that grew apart meet again.
const WAY_BACK_EVERY: u32 = 16;
/// Nodes further away that are kept in mind, beside the introducer, which may be gone.
const WAYS_BACK_MAX: usize = 4;

/// A node's part of a CAN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Can {
    me: NodeId,
    config: Config,
    space: Space,
    point: Point,
    /// What this node owns.
    claims: Shared<Vec<Claim>>,
    neighbours: Neighbours,
    /// The neighbours as others are told, while nothing changes.
    peers: Option<Shared<Vec<Peer>>>,
    ghosts: Vec<Ghost>,
    /// Who was found dead lately: others may speak of them still.
    dead: BTreeMap<NodeId, Time>,
    introducer: Option<NodeId>,
    /// Some neighbours of neighbours, the last one met last: where all around are gone they know the way.
    ways_back: Vec<NodeId>,
    join: join::Join,
    /// Whether it wants no zone.
    leaving: bool,
    /// Whether this is a Secondary: nodes come and go, and nobody takes all of the space unless told to.
    second: bool,
    vitals: Option<Vitals>,
    ahead: [Ahead; DIMENSIONS_MAX],
    balloons: balloon::Balloons,
    shortcuts: Shortcuts,
    /// How many heartbeats in a row something around was missing.
    uncovered: u8,
}

impl Layer for Can {
    type Command = Command;
    type Message = Message;
    type Timer = Timer;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl Protocol for Can {
    type Config = Setup;

    fn restore(setup: &Setup, me: NodeId, _records: impl Iterator<Item = Never>) -> Can {
        let Setup { config, point } = *setup;
        let space = config.space();
        let point = point.unwrap_or_else(|| match config.space {
            Kind::Torus(_) => drawn_point(me, space),
            Kind::Resources => config.place(&shoal_model::Resources::NONE, None, drawn(me, VIRTUAL)),
        });
        Can {
            me,
            config,
            space,
            point,
            claims: Shared::new(Vec::new()),
            neighbours: Neighbours::default(),
            peers: None,
            ghosts: Vec::new(),
            dead: BTreeMap::new(),
            introducer: None,
            ways_back: Vec::new(),
            join: join::Join::default(),
            leaving: false,
            second: false,
            vitals: None,
            ahead: [Ahead::default(); DIMENSIONS_MAX],
            balloons: balloon::Balloons::default(),
            shortcuts: Shortcuts::default(),
            uncovered: 0,
        }
    }

    fn handle(&mut self, input: Input<Self>, ctx: &mut Ctx<'_, Self>) {
        match input {
            Input::Boot => {
                let phase = ctx.chance.random_range(0..self.config.period().as_micros().max(1));
                ctx.wake_after(Span::from_micros(phase), Timer::Beat);
                self.look_for_home(FOUND_AFTER, ctx);
            }
            Input::Command(Command::Join(introducer)) => self.enter_through(introducer, ctx),
            Input::Command(Command::Settle(place)) => self.settle(place, ctx),
            Input::Command(Command::Leave) => self.leave(ctx),
            Input::Message { from, message } => self.on_message(from, message, ctx),
            Input::Timer(Timer::Beat) => self.on_beat(ctx),
            Input::Timer(Timer::Enter) => self.on_enter(ctx),
            Input::Timer(Timer::Ghosts) => self.on_ghosts(ctx),
            Input::Timer(Timer::Left) => self.on_left(ctx),
            Input::Done(never) => match never {},
        }
    }
}

impl Can {
    /// Where a machine lies: in the resource CAN with a virtual coordinate drawn from its id, in a torus with all of them.
    pub fn point_of(config: &Config, me: NodeId, machine: &Machine) -> Point {
        match config.space {
            Kind::Torus(_) => drawn_point(me, config.space()),
            Kind::Resources => config.place(&machine.capacity, Some(machine.speed), drawn(me, VIRTUAL)),
        }
    }

    /// What it was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where this node lies.
    pub fn point(&self) -> &Point {
        &self.point
    }

    /// What this node owns.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// The neighbours, in the order of their ids.
    pub fn neighbours(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.neighbours.nodes().iter().copied()
    }

    /// See [`Protocol::glance`]: where to look for whoever speaks.
    pub(crate) fn glance(&self) -> u64 {
        self.neighbours.glance()
    }

    /// How many neighbours there are.
    pub fn degree(&self) -> usize {
        self.neighbours.len()
    }

    /// Zones of the dead that wait for a new owner.
    pub fn ghosts(&self) -> usize {
        self.ghosts.len()
    }

    /// What the neighbours last said of their work.
    pub fn vitals(&self) -> impl Iterator<Item = (NodeId, &Vitals)> {
        self.neighbours
            .iter()
            .filter_map(|(node, neighbour)| Some((node, neighbour.about.as_ref()?.vitals.as_ref()?)))
    }

    /// What a neighbour last said of its work.
    pub fn vitals_of(&self, node: NodeId) -> Option<&Vitals> {
        self.neighbours.get(node)?.about.as_ref()?.vitals.as_ref()
    }

    /// What this node says of its own work.
    pub fn own_vitals(&self) -> Option<&Vitals> {
        self.vitals.as_ref()
    }

    /// The neighbours with a zone in which something with at least the needs of a point could lie.
    pub fn reaching(&self, point: &Point) -> impl Iterator<Item = NodeId> {
        let reaches = |claim: &Claim| (0..VIRTUAL).all(|d| claim.zone.high()[d] > point[d]);
        self.neighbours
            .iter()
            .filter(move |(_, neighbour)| neighbour.claims.iter().any(reaches))
            .map(|(node, _)| node)
    }

    /// Tells others this of us from the next heartbeat on.
    pub fn describe(&mut self, vitals: Vitals) {
        self.vitals = Some(vitals);
    }

    /// Where something that is meant for a point goes from here.
    pub fn next_hop(&self, point: &Point) -> Hop {
        let distance =
            |claims: &[Claim]| claims.iter().map(|claim| claim.zone.distance(point, self.space)).min();
        let here = distance(&self.claims).unwrap_or(u64::MAX);
        if here == 0 {
            return Hop::Here;
        }
        let nearest = self
            .neighbours
            .iter()
            .filter_map(|(node, neighbour)| Some((distance(&neighbour.claims)?, node)))
            .min();
        match nearest {
            Some((there, node)) if there < here => Hop::To(node),
            Some(_) | None => Hop::Stuck,
        }
    }

    /// Whether there is a zone that this node lies in: with a torus, any will do.
    fn has_home(&self) -> bool {
        match self.config.space {
            Kind::Torus(_) => !self.claims.is_empty(),
            Kind::Resources => self.claims.iter().any(|claim| claim.zone.contains(&self.point)),
        }
    }

    fn touches(&self, zone: &Zone) -> bool {
        self.claims.iter().any(|mine| mine.zone.touches(zone, self.space))
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Can>) {
        if from == self.me {
            return;
        }
        match message {
            Message::Join { newcomer, point, hops } => self.on_join(newcomer, point, hops, ctx),
            Message::Welcome { claim, around } => self.on_welcome(from, *claim, &around, ctx),
            Message::Taken => self.on_taken(ctx),
            Message::Update(update, ask) => self.on_update(from, update, ask, ctx),
            Message::Grant(claim) => self.on_grant(from, *claim, ctx),
            Message::Tie(balloon, hops) => self.on_tie(balloon, hops, ctx),
            Message::Tied(at) => self.on_tied(from, at, ctx),
            Message::Untie(at) => self.on_untie(from, at),
            Message::Leap { up, level } => self.on_leap(from, up, level, ctx),
            Message::Landed { up, level, claims, next } => self.on_landed(from, (up, level), claims, next),
        }
    }

    fn on_beat(&mut self, ctx: &mut Ctx<'_, Can>) {
        ctx.wake_after(self.config.period(), Timer::Beat);
        self.look_for_home(FOUND_AFTER, ctx);
        self.bury(ctx);
        self.look_ahead();
        self.hand_on_extras(ctx);
        self.check_cover(ctx);
        self.tell(ctx);
        self.refresh_balloon(ctx);
        self.look_further(ctx);
        if (self.introducer.is_some() || !self.ways_back.is_empty())
            && !self.claims.is_empty()
            && ctx.chance.random_range(0..WAY_BACK_EVERY) == 0
        {
            self.find_the_way_back(ctx);
        }
    }

    /// Tells somebody further away of its zones, and gets to know one more.
    fn find_the_way_back(&mut self, ctx: &mut Ctx<'_, Can>) {
        let ways = self.introducer.iter().chain(&self.ways_back);
        let ways: Vec<NodeId> = ways.filter(|node| !self.neighbours.contains(**node)).copied().collect();
        if !ways.is_empty() {
            let to = ways[ctx.chance.random_range(0..ways.len())];
            let update = self.update(ctx.now);
            ctx.send(to, Message::Update(update, false));
        }
        let told = self.neighbours.all().iter().filter_map(|neighbour| neighbour.about.as_ref());
        let further = told.flat_map(|about| about.peers.iter().map(|peer| peer.node));
        let further = further.filter(|&node| node != self.me && !self.neighbours.contains(node));
        if let Some(node) = further.choose(ctx.chance) {
            self.keep_in_mind(node);
        }
    }

    /// A node further away, or one that fell silent, may know the way one day.
    fn keep_in_mind(&mut self, node: NodeId) {
        // Who is in the Secondary changes all the time; the Primary knows the way.
        if self.second {
            return;
        }
        self.ways_back.retain(|&known| known != node);
        self.ways_back.push(node);
        let surplus = self.ways_back.len().saturating_sub(WAYS_BACK_MAX);
        self.ways_back.drain(..surplus);
    }

    /// The heartbeat as it would be now.
    fn update(&mut self, now: Time) -> Shared<Update> {
        let Can { neighbours, peers, .. } = self;
        let peers = peers.get_or_insert_with(|| {
            let peers = neighbours.iter();
            Shared::new(
                peers.map(|(node, neighbour)| Peer { node, claims: neighbour.claims.clone() }).collect(),
            )
        });
        Shared::new(Update {
            at: now,
            claims: self.claims.clone(),
            point: self.point,
            vitals: self.vitals.clone(),
            ahead: self.ahead,
            peers: peers.clone(),
        })
    }

    /// Sends the heartbeat to all neighbours; who has missed one is asked for it.
    fn tell(&mut self, ctx: &mut Ctx<'_, Can>) {
        let update = self.update(ctx.now);
        let late = self.config.period() + Span::from_millis(u64::from(self.config.period_ms / 2));
        for (node, neighbour) in self.neighbours.iter() {
            let ask = ctx.now.since(neighbour.heard) > late;
            ctx.send(node, Message::Update(update.clone(), ask));
        }
    }
}

fn drawn_point(node: NodeId, space: Space) -> Point {
    std::array::from_fn(|d| if d < space.dimensions { drawn(node, d) } else { 0 })
}

/// A coordinate drawn from a node's id: as good as chance, and the same in each of its lives.
fn drawn(node: NodeId, dimension: usize) -> u32 {
    let mut mixed = node.0.wrapping_add((dimension as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ mixed >> 31) >> 33) as u32
}

#[cfg(test)]
mod tests;
