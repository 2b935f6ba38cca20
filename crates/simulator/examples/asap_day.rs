//! Runs the recipe `asap` for some days on a large grid, and says how quickly: `asap_day [DAYS] [NODES] [POLICY]`.
//!
//! About 200 jobs a day of mean width 38, shuffles every ten minutes, nobody watched: the shape of a reproduction.

use std::num::NonZeroU32;
use std::time::Instant;

use rand::RngExt;
use shoal_model::{Envelope, Job, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::{End, Event, config};
use shoal_protocols::overlay::cyclon;
use shoal_protocols::scheduling::asap;
use shoal_simulator::grid::{Config, Grid, Start};
use shoal_simulator::network;
use shoal_simulator::processes::command_taking;
use shoal_simulator::streams::{Purpose, stream};
use shoal_simulator::world::Saw;

const DAY: Span = Span::from_hours(24);
const JOBS_PER_DAY: u64 = 208;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| args.next().map_or(default, |arg| arg.parse().expect("a number"));
    let (days, nodes) = (number(1), number(5_000));
    let recipe = match args.next().as_deref() {
        None | Some("push") => asap::Config { audience: asap::Audience::Counted, ..asap::Config::default() },
        Some("told") => asap::Config::default(),
        Some("pull") => asap::Config { policy: asap::Policy::Pull, ..asap::Config::default() },
        Some("poll") => asap::Config { policy: asap::Policy::Poll, ..asap::Config::default() },
        Some(other) => panic!("policy {other}: known are push, told, pull, poll"),
    };
    let threads = args.next().map_or(1, |arg| arg.parse().expect("a number"));
    let mut grid: Grid = Grid::build(Config {
        seed: 1,
        nodes: nodes as usize,
        network: network::Config {
            latency: network::latency::Config::Constant(network::latency::Constant { delay_ms: 1.0 }),
            loss: 0.0,
            duplication: 0.0,
            reorder: 0.0,
            reorder_ms: 0.0,
            partitions: Vec::new(),
        },
        faults: Default::default(),
        fsync: Span::ZERO,
        overlay: cyclon::Config { period_ms: 600_000, ..cyclon::Config::default() },
        start: Start::Graph,
        work: config::Work {
            machine: Machine::with_capacity(Resources::cores(1)),
            recipe: config::Recipe::Asap(recipe),
            commit: Default::default(),
            heartbeat: heartbeat::Config { watch: false, ..heartbeat::Config::default() },
            limit_default: Span::from_hours(1),
        },
        machines: vec![Machine::with_capacity(Resources::cores(1))],
        threads,
        watch: true,
        story: false,
    })
    .expect("the network makes sense");

    let mut luck = stream(1, Purpose::Workload, 0);
    for number in 0..JOBS_PER_DAY * days {
        let at = Time::ZERO + Span::from_micros(luck.random_range(0..DAY.as_micros() * days));
        // One in ten is wide, the others are narrow: 38 on average.
        let width: u32 =
            if luck.random_bool(0.1) { luck.random_range(100..=400) } else { luck.random_range(1..=28) };
        let limit = Span::from_mins(luck.random_range(10..=2_400));
        let job = Job {
            nodes: NonZeroU32::new(width).expect("at least one"),
            limit: Some(limit),
            ..command_taking(limit)
        };
        let nonce = Nonce(u128::from(number).to_le_bytes());
        let envelope = Envelope::new(job, nonce).expect("the job makes sense");
        grid.submit(at, NodeId(luck.random_range(1..=nodes)), envelope);
    }

    let begun = Instant::now();
    let (mut placed, mut none) = (0u64, 0u64);
    for day in 1..=days {
        grid.world().run_before(Time::ZERO + DAY * day);
        for sight in grid.world().sights() {
            match sight.saw {
                Saw::Event(Event::Placed(..)) => placed += 1,
                Saw::Event(Event::Ended(_, End::NoPlace)) => none += 1,
                _ => {}
            }
        }
    }
    let (wall, inputs) = (begun.elapsed().as_secs_f64(), grid.world().handled());
    println!("{days} days, {nodes} nodes: {placed} jobs placed, {none} not");
    println!("{inputs} inputs in {wall:.2} s: {:.2} million/s", inputs as f64 / wall / 1e6);
    let tally = grid.schedules_carried();
    println!("schedules carried: {} as the paper counts; {tally:?}", tally.cost(&recipe));
    for (kind, traffic) in grid.world().traffic() {
        if traffic.messages > 0 {
            println!("  {kind}: {} messages, {} bytes", traffic.messages, traffic.bytes);
        }
    }
}
