//! A grid over a resource CAN, and jobs for it.

use shoal_model::machine::Machine;
use shoal_model::{Envelope, Job, JobId, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::node::config::{self, Recipe};
use shoal_protocols::node::{Action, Event, Message, Node};
use shoal_protocols::overlay::can;
use shoal_protocols::scheduling::tri_pronged;
use shoal_simulator::faults;
use shoal_simulator::grid::{Config, Grid, Start};
use shoal_simulator::network::{self, latency};
use shoal_simulator::processes::command_taking;
use shoal_simulator::world::{Saw, Sight};

pub fn grid(
    seed: u64,
    machines: Vec<Machine>,
    recipe: tri_pronged::Config,
    faults: faults::Config,
) -> Grid<Node> {
    grid_with(can::Residue::Balloon, 1, seed, machines, recipe, faults)
}

/// A grid on so many threads in which what is left of machines is found so.
pub fn grid_with(
    residue: can::Residue,
    threads: usize,
    seed: u64,
    machines: Vec<Machine>,
    recipe: tri_pronged::Config,
    faults: faults::Config,
) -> Grid<Node> {
    started(Start::Join, residue, threads, seed, machines, recipe, faults)
}

/// A grid of which nobody has to join.
pub fn laid_out(seed: u64, machines: Vec<Machine>, recipe: tri_pronged::Config) -> Grid<Node> {
    started(Start::Graph, can::Residue::Balloon, 1, seed, machines, recipe, faults::Config::default())
}

fn started(
    start: Start,
    residue: can::Residue,
    threads: usize,
    seed: u64,
    machines: Vec<Machine>,
    recipe: tri_pronged::Config,
    faults: faults::Config,
) -> Grid<Node> {
    let latency = latency::Config::Uniform(latency::Uniform { min_ms: 5.0, max_ms: 60.0 });
    Grid::build(Config {
        seed,
        nodes: machines.len(),
        network: network::Config::calm(latency),
        faults,
        fsync: Span::from_millis(2),
        overlay: can::Config { period_ms: 5_000, residue, ..can::Config::default() }.into(),
        start,
        work: config::Work {
            machine: machines[0].clone(),
            recipe: Recipe::TriPronged(recipe),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_hours(1),
            eager: true,
            gate: Default::default(),
        },
        machines,
        threads,
        watch: true,
        story: true,
    })
    .expect("the network makes sense")
}

pub fn can_of(grid: &Grid<Node>, node: NodeId) -> &can::Can {
    grid.look().core(node).overlay().as_can().expect("a CAN")
}

pub fn up(grid: &Grid<Node>) -> Vec<NodeId> {
    grid.look().nodes().filter(|&node| grid.look().is_up(node)).collect()
}

pub fn machine(cores: u32) -> Machine {
    Machine::with_capacity(Resources::cores(cores))
}

pub fn job(number: u16, cores: u32, takes: u64) -> Envelope {
    job_needing(number, Resources::cores(cores), takes)
}

pub fn job_needing(number: u16, resources: Resources, takes: u64) -> Envelope {
    let span = Span::from_secs(takes);
    let job = Job { resources, limit: Some(span * 3), ..command_taking(span) };
    let mut nonce = [0; 16];
    nonce[..2].copy_from_slice(&number.to_be_bytes());
    Envelope::new(job, Nonce(nonce)).expect("the job makes sense")
}

/// Where and when each job started.
pub fn starts(sights: &[Sight<Node>]) -> Vec<(JobId, NodeId, Time)> {
    let start = |sight: &Sight<Node>| match &sight.saw {
        Saw::Act(Action::Start { task, .. }) => Some((task.job, sight.node, sight.at)),
        _ => None,
    };
    sights.iter().filter_map(start).collect()
}

/// How many messages of a kind of the recipe's were sent.
pub fn said(sights: &[Sight<Node>], wanted: impl Fn(&tri_pronged::Message) -> bool) -> usize {
    let is = |sight: &&Sight<Node>| match &sight.saw {
        Saw::Send(_, Message::TriPronged(message)) => wanted(message),
        _ => false,
    };
    sights.iter().filter(is).count()
}

pub fn events(sights: &[Sight<Node>]) -> Vec<Event> {
    let event = |sight: &Sight<Node>| match &sight.saw {
        Saw::Event(event) => Some(event.clone()),
        _ => None,
    };
    sights.iter().filter_map(event).collect()
}
