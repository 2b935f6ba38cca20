//! BLATANT-S: ant-like agents keep a sparse overlay of undirected links, evenly spread, in which no path is long.
//!
//! ```text
//! Discovery        n ─▶ n ─▶ n ─▶ …     tells each node of those before; on each the rules are looked at
//! Optimisation     i ─▶ j               connect: i and j are 2D − 1 or more apart; j sees that too: Linked ─▶ i
//! Unlink           i ─▶ j               disconnect: without the link they are at most D apart; j agrees: Unlinked ─▶ i
//! Construction     newcomer ─▶ entry ─▶ …  passed on to somebody with few links: Linked ─▶ newcomer
//! Update           i ─▶ all, two hops   my neighbours have changed
//! Ping             i ─▶ j ─▶ i          for a link whose pheromone (γ) is nearly gone
//! ```
//!
//! Paper: Brocco, Hirsbrunner, 2009, as far as its family (BlåtAnt, BLATANT-R) tells; no full text was to be had, so the
//! numbers are ours. Done otherwise: of a short ring only the link that comes last in an order known to all is cut, so
//! that cuts made at the same time never take a grid apart; both ends keep two links, and whoever has only two makes
//! a third one, to somebody far away, before one of them is cut; rules are looked at once in [`Config::rules_ms`] at most;
//! those who were thought dead are asked for a link now and then. Links are undirected by hand-shake; whoever is pinged by
//! a node that it has no link to says so. With [`Config::ant_ms`] = 0 nothing changes: the links that [`Command::Meet`] made stay.

mod alpha;
mod config;
mod graph;
mod message;

use rand::RngExt;
use shoal_model::{NodeId, Span, Time};

use crate::protocol::{Ctx, Input, Layer, Never, Protocol};
use crate::shared::Shared;
use alpha::Alpha;
pub use config::{CARRIES_MAX, Config, ConfigError};
use graph::{Graph, Survey};
pub use message::{Known, Message};

/// The most links of a node: whoever has them makes no more.
pub const LINKS_MAX: usize = 64;
/// A node with fewer looks for others; no cut leaves it fewer.
const LINKS_LEAST: usize = 2;
/// How often a construction ant may be passed on, and an optimisation ant.
const PASSES: u8 = 3;
/// Hops of an update.
const UPDATE_HOPS: u8 = 2;
/// The neighbours of a dead one that are linked in its place.
const REPAIRS: usize = 2;
/// Those of whom nothing was heard any more that are remembered: they may have been cut off, and be back.
const FORMER_MAX: usize = 8;
/// The share of evaporations at which one of them is asked for a link.
const FORMER_ASKED: f64 = 0.1;

/// Fresh pheromone, in thousandths.
const FRESH: u16 = 1_000;
/// Below this a neighbour is asked whether it is there.
const FAINT: u16 = 300;
/// Below this it is dead.
const GONE: u16 = 100;
/// What nobody has said for so long is forgotten: longer than an ant takes to come by, shorter than links last.
const REMEMBERED: Span = Span::from_mins(20);

/// What the layer above asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Enter the grid through this node.
    Join(NodeId),
    /// Take these nodes as neighbours; they are told the same of this one.
    Meet(Box<[NodeId]>),
}

/// What it asked to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Send a discovery ant.
    Ant,
    /// Pheromone evaporates.
    Evaporate,
}

/// What the layer above gets to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A neighbour is dead, and no longer one.
    Silent(NodeId),
}

/// A link to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Link {
    node: NodeId,
    /// γ: how lately the neighbour was heard of, in thousandths.
    gamma: u16,
    /// How many ants have gone this way; evaporates.
    trodden: u16,
}

/// A node's links, and what it knows of the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlatantS {
    config: Config,
    me: NodeId,
    links: Vec<Link>,
    alpha: Alpha,
    introducer: Option<NodeId>,
    /// Neighbours and introducers of whom nothing was heard any more, the oldest first.
    former: Vec<NodeId>,
    /// When the rules were last looked at, and whether something new has come since.
    looked_at: Time,
    news: bool,
    /// When a link was last made or cut.
    changed_at: Time,
    /// Its own list, as told: made anew when it changes.
    list: Shared<Vec<NodeId>>,
}

impl Layer for BlatantS {
    type Command = Command;
    type Message = Message;
    type Timer = Timer;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl Protocol for BlatantS {
    type Config = Config;

    fn restore(config: &Config, me: NodeId, _records: impl Iterator<Item = Never>) -> BlatantS {
        BlatantS {
            config: *config,
            me,
            links: Vec::new(),
            alpha: Alpha::new(config.alpha),
            introducer: None,
            former: Vec::new(),
            looked_at: Time::ZERO,
            news: false,
            changed_at: Time::ZERO,
            list: Shared::new(Vec::new()),
        }
    }

    fn handle(&mut self, input: Input<BlatantS>, ctx: &mut Ctx<'_, BlatantS>) {
        match input {
            Input::Boot if self.config.is_frozen() => {}
            // Random phases keep the nodes from acting in step.
            Input::Boot => {
                let phase = |span: Span, ctx: &mut Ctx<'_, BlatantS>| {
                    Span::from_micros(ctx.chance.random_range(0..span.as_micros()))
                };
                let (ant, evaporate) = (phase(self.config.ant(), ctx), phase(self.config.evaporate(), ctx));
                ctx.wake_after(ant, Timer::Ant);
                ctx.wake_after(evaporate, Timer::Evaporate);
            }
            Input::Command(Command::Join(introducer)) => {
                let before = self.introducer.take().filter(|&before| before != introducer);
                self.introducer = Some(introducer).filter(|&node| node != self.me);
                // Who has links enough needs no other way in.
                if let Some(before) = before.filter(|_| self.degree() < LINKS_LEAST) {
                    self.keep_in_mind(before);
                }
                self.seek_links(ctx);
            }
            Input::Command(Command::Meet(nodes)) => {
                for &node in nodes.iter() {
                    if node != self.me && !self.has(node) && self.links.len() < LINKS_MAX {
                        self.links.push(Link { node, gamma: FRESH, trodden: 0 });
                    }
                }
                self.renew_list();
                self.changed_at = ctx.now;
            }
            Input::Message { from, message } => self.on_message(from, message, ctx),
            Input::Timer(Timer::Ant) => {
                ctx.wake_after(self.config.ant(), Timer::Ant);
                let seen = vec![self.known_self(ctx.now)];
                self.send_ant(seen, self.config.ant_hops, self.me, ctx);
            }
            Input::Timer(Timer::Evaporate) => self.on_evaporate(ctx),
            Input::Done(never) => match never {},
        }
    }
}

impl BlatantS {
    /// The neighbours.
    pub fn neighbours(&self) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.links.iter().map(|link| link.node)
    }

    /// How many neighbours there are.
    pub fn degree(&self) -> usize {
        self.links.len()
    }

    /// When a link of this node was last made or cut.
    pub fn changed_at(&self) -> Time {
        self.changed_at
    }

    /// How many nodes the α-table holds, and how many it may.
    pub fn remembers(&self) -> (usize, usize) {
        (self.alpha.iter().len(), usize::from(self.config.alpha))
    }

    /// A neighbour found dead by other means is one no longer, and others take its place.
    pub fn forget(&mut self, node: NodeId, ctx: &mut Ctx<'_, BlatantS>) {
        if self.has(node) {
            self.bury(node, ctx);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, BlatantS>) {
        if from == self.me {
            return;
        }
        let linked = self.refresh(from);
        self.former.retain(|&node| node != from);
        match message {
            // Of a stranger too: it may have been linked a moment ago, and this be quicker than the word of it.
            Message::Discovery { seen, hops } => self.on_discovery(from, seen, hops, ctx),
            Message::Construct { newcomer, passes } => self.on_construct(newcomer, passes, ctx),
            Message::Optimise { far, passes, apart } => self.on_optimise(far, passes, apart, ctx),
            Message::Linked => {
                if !linked && !self.link(from, ctx) {
                    ctx.send(from, Message::Unlinked);
                }
            }
            Message::Unlink => {
                if !linked || self.would_cut(from) {
                    self.unlink(from, ctx);
                    ctx.send(from, Message::Unlinked);
                }
            }
            Message::Unlinked => self.unlink(from, ctx),
            Message::Update { known, hops } => self.on_update(from, known, hops, ctx),
            Message::Ping => ctx.send(from, if linked { Message::Pong } else { Message::Unlinked }),
            Message::Pong => {}
        }
    }

    fn on_discovery(&mut self, from: NodeId, mut seen: Vec<Known>, hops: u8, ctx: &mut Ctx<'_, BlatantS>) {
        seen.truncate(usize::from(CARRIES_MAX));
        for known in &seen {
            self.learn(known);
        }
        self.look_at_rules(ctx);
        let hops = hops.min(self.config.ant_hops).saturating_sub(1);
        if hops == 0 {
            return;
        }
        let carries = usize::from(self.config.ant_carries);
        if seen.len() >= carries {
            seen.drain(..seen.len() + 1 - carries);
        }
        seen.push(self.known_self(ctx.now));
        self.send_ant(seen, hops, from, ctx);
    }

    /// The way that fewest have gone lately, but not back; among equals by chance.
    fn send_ant(&mut self, seen: Vec<Known>, hops: u8, not: NodeId, ctx: &mut Ctx<'_, BlatantS>) {
        let ahead = |link: &&mut Link| link.node != not;
        let Some(least) = self.links.iter_mut().filter(ahead).map(|link| link.trodden).min() else { return };
        let equal = || self.links.iter().filter(|link| link.node != not && link.trodden == least);
        let pick = ctx.chance.random_range(0..equal().count());
        let Some(next) = equal().nth(pick).map(|link| link.node) else { return };
        if let Some(link) = self.links.iter_mut().find(|link| link.node == next) {
            link.trodden = link.trodden.saturating_add(FRESH);
        }
        ctx.send(next, Message::Discovery { seen, hops });
    }

    fn on_construct(&mut self, newcomer: NodeId, passes: u8, ctx: &mut Ctx<'_, BlatantS>) {
        if newcomer == self.me {
            return;
        }
        if self.has(newcomer) {
            ctx.send(newcomer, Message::Linked);
            return;
        }
        let passes = passes.min(PASSES);
        if passes > 0 && self.alpha.exceeds_mean(self.degree()) {
            // Somebody who has fewer links, as far as is known.
            let others = self.neighbours().filter(|&node| node != newcomer);
            let least = others.filter_map(|node| Some((self.degree_of(node)?, node))).min();
            if let Some((degree, node)) = least
                && degree < self.degree()
            {
                ctx.send(node, Message::Construct { newcomer, passes: passes - 1 });
                return;
            }
        }
        if self.link(newcomer, ctx) {
            ctx.send(newcomer, Message::Linked);
        }
    }

    fn on_optimise(&mut self, far: NodeId, passes: u8, apart: u8, ctx: &mut Ctx<'_, BlatantS>) {
        if far == self.me || self.has(far) {
            return;
        }
        // Whatever it says, no link is made that would be cut again.
        let apart = apart.clamp(self.config.bound + 1, self.config.far());
        let graph = self.graph();
        // Who is not known to be near is taken to be as far as it says.
        if graph.distance_to(far, &graph.survey()) < apart {
            return;
        }
        let passes = passes.min(PASSES);
        if passes > 0 {
            let least = self.neighbours().filter_map(|node| Some((self.degree_of(node)?, node))).min();
            if let Some((degree, node)) = least
                && degree + 1 < self.degree()
            {
                ctx.send(node, Message::Optimise { far, passes: passes - 1, apart });
                return;
            }
        }
        if self.link(far, ctx) {
            ctx.send(far, Message::Linked);
        }
    }

    fn on_update(&mut self, from: NodeId, known: Known, hops: u8, ctx: &mut Ctx<'_, BlatantS>) {
        if known.node == self.me {
            return;
        }
        let news = self.learn(&known);
        let hops = hops.min(UPDATE_HOPS).saturating_sub(1);
        if news && hops > 0 {
            let others: Vec<NodeId> =
                self.neighbours().filter(|&node| node != from && node != known.node).collect();
            for node in others {
                ctx.send(node, Message::Update { known: known.clone(), hops });
            }
        }
        // A neighbour that has cut its end of a link without being heard.
        if known.node == from && self.has(from) && !known.neighbours.contains(&self.me) {
            ctx.send(from, Message::Ping);
        }
        self.look_at_rules(ctx);
    }

    fn on_evaporate(&mut self, ctx: &mut Ctx<'_, BlatantS>) {
        ctx.wake_after(self.config.evaporate(), Timer::Evaporate);
        let (mut dead, mut faint) = (Vec::new(), Vec::new());
        for link in &mut self.links {
            link.gamma -= link.gamma / 10;
            link.trodden -= link.trodden.div_ceil(10);
            match link.gamma {
                ..GONE => dead.push(link.node),
                GONE..FAINT => faint.push(link.node),
                FAINT.. => {}
            }
        }
        for node in faint {
            ctx.send(node, Message::Ping);
        }
        for node in dead {
            self.bury(node, ctx);
            ctx.report(Event::Silent(node));
        }
        self.alpha.drop_before(ctx.now - REMEMBERED);
        self.seek_links(ctx);
        self.seek_former(ctx);
        self.look_at_rules(ctx);
    }

    /// Asks one of those who were thought dead: without that, two halves of a grid that was cut apart would never meet again.
    fn seek_former(&mut self, ctx: &mut Ctx<'_, BlatantS>) {
        if !self.former.is_empty() && ctx.chance.random_bool(FORMER_ASKED) {
            let node = self.former[ctx.chance.random_range(0..self.former.len())];
            ctx.send(node, Message::Construct { newcomer: self.me, passes: 0 });
        }
    }

    fn keep_in_mind(&mut self, node: NodeId) {
        if node == self.me || self.has(node) || self.former.contains(&node) {
            return;
        }
        if self.former.len() == FORMER_MAX {
            self.former.remove(0);
        }
        self.former.push(node);
    }

    /// Links to neighbours of the dead one, so that those it held together stay together.
    fn bury(&mut self, node: NodeId, ctx: &mut Ctx<'_, BlatantS>) {
        let mut heirs: Vec<NodeId> = match self.alpha.forget(node) {
            Some(known) => known.neighbours.to_vec(),
            None => Vec::new(),
        };
        self.unlink(node, ctx);
        self.keep_in_mind(node);
        heirs.retain(|&heir| heir != self.me && heir != node && !self.has(heir));
        for _ in 0..REPAIRS.min(heirs.len()) {
            let heir = heirs.swap_remove(ctx.chance.random_range(0..heirs.len()));
            ctx.send(heir, Message::Construct { newcomer: self.me, passes: 0 });
        }
    }

    /// Whoever has too few links asks for more: where it came in, and somebody it knows.
    fn seek_links(&mut self, ctx: &mut Ctx<'_, BlatantS>) {
        if self.degree() >= LINKS_LEAST {
            return;
        }
        let known: Vec<NodeId> =
            self.alpha.iter().map(|known| known.node).filter(|&node| !self.has(node)).collect();
        let drawn = (!known.is_empty()).then(|| known[ctx.chance.random_range(0..known.len())]);
        let introducer = self.introducer.filter(|&node| !self.has(node));
        // Two at once where nobody is known yet would be the same one twice.
        let asked = if self.degree() == 0 { introducer.or(drawn) } else { drawn.or(self.introducer) };
        if let Some(node) = asked {
            ctx.send(node, Message::Construct { newcomer: self.me, passes: PASSES });
        }
    }

    fn look_at_rules(&mut self, ctx: &mut Ctx<'_, BlatantS>) {
        if !self.news || ctx.now < self.looked_at + self.config.rules() {
            return;
        }
        self.news = false;
        self.looked_at = ctx.now;
        let graph = self.graph();
        let survey = graph.survey();
        if let Some(node) = self.to_cut(&graph, &survey) {
            ctx.send(node, Message::Unlink);
            return;
        }
        // Only whose own word is known: somebody else's may be long out of date.
        let known = |&node: &NodeId| self.alpha.get(node).is_some();
        let far = |least| graph.from_distance(&survey, least).filter(known);
        let mut apart = self.config.far();
        if self.is_stuck(&graph, &survey) {
            // As far as anybody is: what is only just far enough by what is known here may be too near.
            let farthest = far(self.config.bound + 1).map(|node| graph.distance_to(node, &survey)).max();
            apart = farthest.map_or(apart, |farthest| farthest.min(apart));
        }
        let mut far: Vec<NodeId> = far(apart).collect();
        far.sort_unstable();
        if !far.is_empty() && self.degree() < LINKS_MAX {
            let node = far[ctx.chance.random_range(0..far.len())];
            ctx.send(node, Message::Optimise { far: self.me, passes: 1, apart });
        }
    }

    /// A link that the disconnect rule takes away.
    fn to_cut(&self, graph: &Graph, survey: &Survey) -> Option<NodeId> {
        if self.degree() <= LINKS_LEAST {
            return None;
        }
        let few = |node| self.degree_of(node).is_some_and(|degree| degree <= LINKS_LEAST);
        self.short(graph, survey).find(|&node| !few(node))
    }

    /// Whether a link were to be cut if that left this node enough of them: another one, of no short ring, has to come first.
    fn is_stuck(&self, graph: &Graph, survey: &Survey) -> bool {
        self.degree() == LINKS_LEAST && self.short(graph, survey).next().is_some()
    }

    /// The links that close a short ring.
    fn short<'a>(&'a self, graph: &'a Graph, survey: &'a Survey) -> impl Iterator<Item = NodeId> + 'a {
        let links = self.neighbours().zip(&survey.rings);
        let short = links.filter(|&(_, &ring)| ring.saturating_sub(1) <= self.config.bound);
        short.map(|(node, _)| node).filter(|&node| self.closes_ring(graph, node))
    }

    /// Whether this end would cut the link too.
    fn would_cut(&self, node: NodeId) -> bool {
        self.degree() > LINKS_LEAST && self.closes_ring(&self.graph(), node)
    }

    /// Whether a link closes a ring of at most D + 1 links, and is the one of it that comes last in the order of all
    /// links. An order that all share keeps two cuts from meeting: what is left of every ring holds it together.
    fn closes_ring(&self, graph: &Graph, node: NodeId) -> bool {
        let own = place(self.me, node);
        let earlier = |one, other| place(one, other) < own;
        // A ring goes on at both ends: it need not be looked for where all links that it could go on by come later.
        let goes_on = graph.links_of(node).any(|next| next != self.me && earlier(node, next));
        goes_on && graph.has_way_round(node, self.config.bound, earlier)
    }

    /// How many links another has, by its own word.
    fn degree_of(&self, node: NodeId) -> Option<usize> {
        self.alpha.get(node).map(|known| known.neighbours.len())
    }

    fn graph(&self) -> Graph {
        Graph::new(self.me, &self.list, &self.alpha)
    }

    fn learn(&mut self, known: &Known) -> bool {
        let news = known.node != self.me && known.neighbours.len() <= LINKS_MAX && self.alpha.learn(known);
        self.news |= news;
        news
    }

    fn has(&self, node: NodeId) -> bool {
        self.links.iter().any(|link| link.node == node)
    }

    /// A sign of life; tells whether it is one of a neighbour.
    fn refresh(&mut self, node: NodeId) -> bool {
        let link = self.links.iter_mut().find(|link| link.node == node);
        link.map(|link| link.gamma = FRESH).is_some()
    }

    /// Makes a link, if there is room, and tells the neighbours.
    fn link(&mut self, node: NodeId, ctx: &mut Ctx<'_, BlatantS>) -> bool {
        if self.links.len() >= LINKS_MAX || node == self.me {
            return false;
        }
        self.links.push(Link { node, gamma: FRESH, trodden: 0 });
        self.changed(ctx);
        true
    }

    fn unlink(&mut self, node: NodeId, ctx: &mut Ctx<'_, BlatantS>) {
        if self.has(node) {
            self.links.retain(|link| link.node != node);
            self.changed(ctx);
        }
    }

    fn changed(&mut self, ctx: &mut Ctx<'_, BlatantS>) {
        self.changed_at = ctx.now;
        self.news = true;
        self.renew_list();
        let known = self.known_self(ctx.now);
        for link in &self.links {
            ctx.send(link.node, Message::Update { known: known.clone(), hops: UPDATE_HOPS });
        }
    }

    fn renew_list(&mut self) {
        self.list = Shared::new(self.neighbours().collect());
    }

    fn known_self(&self, now: Time) -> Known {
        Known { node: self.me, at: now, neighbours: self.list.clone() }
    }
}

/// The place of a link in an order of all links that everybody knows and nobody is favoured by.
fn place(one: NodeId, other: NodeId) -> (u64, NodeId, NodeId) {
    let (low, high) = (one.min(other), one.max(other));
    let mixed = (low.0 ^ high.0.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9), low, high)
}

#[cfg(test)]
mod tests;
