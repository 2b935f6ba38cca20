//! A swarm: nodes that are only a CAN, and what can be measured of them.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use shoal_model::machine::{Machine, Speed};
use shoal_model::units::Size;
use shoal_model::{NodeId, Resources, Span, Time};
use shoal_protocols::overlay::can::{
    Can, Claim, Command, Config, Hop, Kind, Point, SIDE, Setup, Space, Volume, Zone,
};
use shoal_protocols::{Chance, Never};
use shoal_simulator::clock::Clock;
use shoal_simulator::network::{self, Network, latency};
use shoal_simulator::world::{self, Executor, World};

/// Nodes that are only a CAN.
pub struct Swarm {
    pub world: World<Can>,
    pub config: Config,
}

/// Which machines there are.
#[derive(Clone, Copy)]
pub enum Mix {
    /// Every part drawn on its own.
    Mixed,
    /// Eight kinds.
    Clustered,
    /// All alike.
    Alike,
}

/// Where something that is passed on by what each node knows right now comes to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// At the owner of its point.
    Owner,
    /// At a node that knows nobody who is nearer.
    Stuck,
    /// On its way to a node that is dead, which whoever sent it does not know yet.
    Lost,
}

struct Nothing;

impl Executor<Can> for Nothing {
    fn perform(&mut self, _: Time, _: &Clock, action: Never) -> Vec<(Span, Never)> {
        match action {}
    }

    fn holds(&mut self, _: Time, outcome: &Never) -> bool {
        match *outcome {}
    }
}

fn weighted<T: Copy>(chance: &mut Chance, values: [T; 4]) -> T {
    let at = match chance.random_range(0..10) {
        0..4 => 0,
        4..7 => 1,
        7..9 => 2,
        _ => 3,
    };
    values[at]
}

pub fn machine(seed: u64, node: NodeId, mix: Mix) -> Machine {
    let stream = match mix {
        Mix::Mixed => node.0,
        Mix::Clustered => node.0 % 8,
        Mix::Alike => 0,
    };
    let mut chance = Chance::seed_from_u64(seed ^ stream << 20);
    let capacity = Resources::cores(weighted(&mut chance, [1, 2, 4, 8]))
        .with_memory(Size::from_gib(weighted(&mut chance, [1, 2, 4, 8])))
        .with_disk(Size::from_gib(weighted(&mut chance, [50, 100, 250, 500])));
    let speed = std::num::NonZeroU32::new(weighted(&mut chance, [500, 900, 1300, 2000])).unwrap();
    Machine { speed: Speed::new(speed), ..Machine::with_capacity(capacity) }
}

impl Swarm {
    /// Nobody is up.
    pub fn dark(nodes: usize, seed: u64, config: Config, mix: Mix, loss: f64) -> Swarm {
        let latency = latency::Config::Uniform(latency::Uniform { min_ms: 10.0, max_ms: 200.0 });
        let network = network::Config { loss, ..network::Config::calm(latency) };
        let network = Network::build(&network, nodes, seed).expect("the network makes sense");
        let configure = move |node| Setup {
            config,
            point: matches!(config.space, Kind::Resources)
                .then(|| Can::point_of(&config, node, &machine(seed, node, mix))),
        };
        let setup = world::Setup::calm(seed, network, configure, |_| Box::new(Nothing));
        Swarm { world: World::new(setup, 1), config }
    }

    /// All come one by one through the first.
    pub fn joined(nodes: usize, seed: u64, config: Config, mix: Mix) -> Swarm {
        let mut swarm = Swarm::dark(nodes, seed, config, mix, 0.0);
        for node in swarm.world.nodes() {
            let at = Time::from_secs(3) + Span::from_millis(500 * node.0);
            if node == NodeId(1) {
                swarm.world.boot(Time::ZERO, node);
            } else {
                swarm.enter(at, node, NodeId(1));
            }
        }
        let until = Time::from_secs(3) + Span::from_millis(500 * nodes as u64 + 5_000);
        swarm.world.run_before(until);
        swarm
    }

    pub fn enter(&mut self, at: Time, node: NodeId, introducer: NodeId) {
        self.world.boot(at, node);
        self.world.command(at, node, Command::Join(introducer));
    }

    pub fn run_for(&mut self, span: Span) {
        self.world.run_before(self.world.now() + span);
    }

    pub fn beats(&mut self, count: u64) {
        self.run_for(Span::from_millis(u64::from(self.config.period_ms)) * count);
    }

    pub fn up(&self) -> Vec<NodeId> {
        self.world.nodes().filter(|&node| self.world.is_up(node)).collect()
    }

    pub fn space(&self) -> Space {
        self.config.space()
    }

    pub fn claims(&self) -> Vec<(NodeId, Claim)> {
        let of = |node: NodeId| self.world.core(node).claims().iter().map(move |&claim| (node, claim));
        self.up().into_iter().flat_map(of).collect()
    }

    /// N1: what is wrong with the tiling, if anything.
    pub fn tiling(&self) -> Result<(), String> {
        let claims = self.claims();
        for (index, (a, mine)) in claims.iter().enumerate() {
            if let Some((b, theirs)) =
                claims[index + 1..].iter().find(|(_, other)| other.zone.overlaps(&mine.zone))
            {
                return Err(format!("{a} and {b} both claim: {mine:?}, {theirs:?}"));
            }
        }
        let all: Volume = claims.iter().map(|(_, claim)| claim.zone.volume()).sum();
        if all != Zone::WHOLE.volume() {
            return Err("there is a hole".into());
        }
        Ok(())
    }

    /// N2: who does not lie in its first zone.
    pub fn astray(&self) -> Vec<NodeId> {
        let astray = |node: &NodeId| {
            let core = self.world.core(*node);
            !core.claims().first().is_some_and(|claim| claim.zone.contains(core.point()))
        };
        self.up().into_iter().filter(astray).collect()
    }

    /// N3: pairs of which one should know the other and does not, or does and should not.
    pub fn strangers(&self) -> Vec<(NodeId, NodeId)> {
        let claims = self.claims();
        let mut wrong = Vec::new();
        for node in self.up() {
            let known: BTreeSet<NodeId> = self.world.core(node).neighbours().collect();
            let mine = self.world.core(node).claims();
            let touching: BTreeSet<NodeId> = claims
                .iter()
                .filter(|(other, theirs)| {
                    *other != node && mine.iter().any(|claim| claim.zone.touches(&theirs.zone, self.space()))
                })
                .map(|&(other, _)| other)
                .collect();
            wrong.extend(known.symmetric_difference(&touching).map(|&other| (node, other)));
        }
        wrong
    }

    /// N4: the hops to a point, or where the way ends otherwise; it must come nearer with each.
    pub fn route(&self, from: NodeId, point: &Point) -> Result<usize, String> {
        let distance = |node: NodeId| {
            let claims = self.world.core(node).claims().iter();
            claims.map(|claim| claim.zone.distance(point, self.space())).min().unwrap_or(u64::MAX)
        };
        let mut at = from;
        for hops in 0.. {
            match self.world.core(at).next_hop(point) {
                Hop::Here => return Ok(hops),
                Hop::Stuck => return Err(format!("stuck at {at} after {hops} hops")),
                Hop::To(next) if !self.world.is_up(next) => return Err(format!("{next} is dead")),
                Hop::To(next) => {
                    if distance(next) >= distance(at) {
                        return Err(format!("{next} is no nearer than {at}"));
                    }
                    at = next;
                }
            }
        }
        unreachable!("distances only shrink")
    }

    /// N4 while nodes die: where a way ends, and after how many hops; or the circle that it goes in.
    pub fn way(&self, from: NodeId, point: &Point) -> Result<(Rest, usize), Vec<NodeId>> {
        let mut been = vec![from];
        loop {
            let hops = been.len() - 1;
            match self.world.core(been[hops]).next_hop(point) {
                Hop::Here => return Ok((Rest::Owner, hops)),
                Hop::Stuck => return Ok((Rest::Stuck, hops)),
                Hop::To(next) if !self.world.is_up(next) => return Ok((Rest::Lost, hops)),
                Hop::To(next) => match been.iter().position(|&node| node == next) {
                    Some(first) => return Err(been.split_off(first)),
                    None => been.push(next),
                },
            }
        }
    }

    pub fn random_point(&self, chance: &mut Chance) -> Point {
        std::array::from_fn(|d| if d < self.space().dimensions { chance.random_range(0..SIDE) } else { 0 })
    }

    /// N1 to N4 and N6 together.
    pub fn check(&self, seed: u64) -> Result<(), String> {
        self.tiling()?;
        if matches!(self.config.space, Kind::Resources)
            && let Some(node) = self.astray().first()
        {
            return Err(format!("{node} does not lie in its first zone"));
        }
        if let Some((a, b)) = self.strangers().first() {
            let knows = |a: NodeId, b: NodeId| self.world.core(a).neighbours().any(|other| other == b);
            let claims = |node: NodeId| self.world.core(node).claims();
            return Err(format!(
                "{a} {:?} knows {b} {:?}: {}, and the other way round: {}",
                claims(*a),
                claims(*b),
                knows(*a, *b),
                knows(*b, *a)
            ));
        }
        let mut chance = Chance::seed_from_u64(seed);
        for node in self.up().into_iter().step_by(7) {
            self.route(node, &self.random_point(&mut chance))?;
        }
        Ok(())
    }

    pub fn zones_per_node(&self) -> f64 {
        self.claims().len() as f64 / self.up().len() as f64
    }
}
