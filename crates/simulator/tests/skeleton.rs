//! The walking skeleton: jobs go through nodes of a simulated grid, with crashes, on one and two threads.

use shoal_model::{Envelope, Job, JobId, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::Shared;
use shoal_protocols::node::{Command, Config, End, Event, Node, config};
use shoal_simulator::network::{Network, latency};
use shoal_simulator::processes::{Processes, command_taking};
use shoal_simulator::world::{Saw, Setup, Sight, World};

fn world(nodes: u32, seed: u64, threads: usize) -> World<Node> {
    let configure = |_| Config {
        work: Some(Box::new(config::Work {
            machine: Machine::with_capacity(Resources::cores(1)),
            recipe: config::Recipe::Sample(Default::default()),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_hours(1),
            eager: false,
            gate: Default::default(),
        })),
        ..Config::default()
    };
    let network = network(nodes as usize, seed);
    let setup =
        Setup { watch: true, ..Setup::calm(seed, network, configure, |_| Box::new(Processes::default())) };
    let mut world = World::new(setup, threads);
    for node in world.nodes() {
        world.boot(Time::ZERO, node);
        if node != NodeId(1) {
            world.command(Time::from_millis(10 * node.0), node, Command::Join(NodeId(1)));
        }
    }
    world
}

fn network(nodes: usize, seed: u64) -> Network {
    let latency = latency::Config::Uniform(latency::Uniform { min_ms: 10.0, max_ms: 200.0 });
    let config = shoal_simulator::network::Config::calm(latency);
    Network::build(&config, nodes, seed).expect("the network makes sense")
}

fn submit(world: &mut World<Node>, at: Time, node: NodeId, number: u8, job: Job) -> JobId {
    let envelope = Envelope::new(job, Nonce([number; 16])).unwrap();
    let id = envelope.id();
    world.command(at, node, Command::Submit(Shared::new(envelope)));
    id
}

fn gang(nodes: u32, takes: Span) -> Job {
    Job {
        nodes: nodes.try_into().unwrap(),
        limit: Some(takes + Span::from_secs(10)),
        ..command_taking(takes)
    }
}

fn story(sights: &[Sight<Node>]) -> String {
    sights.iter().map(|Sight { at, node, saw }| format!("{at} {node} {saw:?}\n")).collect()
}

fn ends(sights: &[Sight<Node>]) -> Vec<(JobId, End)> {
    let ends = sights.iter().filter_map(|sight| match &sight.saw {
        Saw::Event(Event::Ended(job, end)) => Some((*job, *end)),
        _ => None,
    });
    ends.collect()
}

#[test]
fn jobs_and_gangs_run_to_their_end() {
    let mut world = world(16, 1, 1);
    let mut jobs = Vec::new();
    for number in 0..40u8 {
        let at = Time::from_secs(60 + u64::from(number));
        let node = NodeId(1 + u64::from(number) % 16);
        jobs.push(submit(&mut world, at, node, number, gang(1 + u32::from(number) % 6, Span::from_secs(30))));
    }
    world.run_before(Time::from_secs(3_600));
    let sights = world.sights();
    let mut ended = ends(&sights);
    ended.sort_by_key(|(job, _)| *job);
    jobs.sort();
    let expected: Vec<_> = jobs.into_iter().map(|job| (job, End::Finished)).collect();
    assert_eq!(ended, expected, "{}", story(&sights));
    for node in world.nodes() {
        assert_eq!(world.core(node).commit().unwrap().locks().count(), 0);
        assert_eq!(world.core(node).tasks().count(), 0);
    }
}

#[test]
fn owner_and_run_node_may_crash_on_the_way() {
    for seed in 0..20 {
        let mut world = world(8, seed, 1);
        let job = submit(&mut world, Time::from_secs(60), NodeId(3), 7, gang(4, Span::from_secs(60)));
        world.crash(Time::from_millis(60_000 + 137 * seed), NodeId(3));
        world.boot(Time::from_secs(70), NodeId(3));
        world.crash(Time::from_millis(90_000 + 331 * seed), NodeId(1 + seed % 8));
        world.boot(Time::from_secs(110), NodeId(1 + seed % 8));
        world.run_before(Time::from_secs(3_600));
        let sights = world.sights();
        let accepted = sights.iter().any(|sight| matches!(sight.saw, Saw::Event(Event::Accepted(_))));
        if accepted {
            assert_eq!(ends(&sights), [(job, End::Finished)], "seed {seed}\n{}", story(&sights));
        }
    }
}

#[test]
fn one_and_two_threads_see_the_same() {
    let run = |threads| {
        let mut world = world(32, 5, threads);
        for number in 0..60u8 {
            let at = Time::from_secs(60 + u64::from(number) / 4);
            let job = gang(1 + u32::from(number) % 5, Span::from_secs(20));
            submit(&mut world, at, NodeId(1 + u64::from(number) % 32), number, job);
        }
        world.crash(Time::from_secs(80), NodeId(4));
        world.boot(Time::from_secs(100), NodeId(4));
        world.run_before(Time::from_secs(900));
        (story(&world.sights()), world.traffic(), world.handled())
    };
    assert_eq!(run(1), run(2));
}
