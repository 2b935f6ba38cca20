//! A job's conversation, and how long real offers take.

use shoal_model::{Envelope, Job, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::node::config::{self, Recipe};
use shoal_protocols::node::{Action, Command, Event, Message, Node};
use shoal_protocols::overlay::blatant_s;
use shoal_protocols::scheduling::aria;
use shoal_simulator::grid::{Config, Grid, Start};
use shoal_simulator::network::{self, latency};
use shoal_simulator::processes::command_taking;
use shoal_simulator::world::Saw;

const DELAY_MS: f64 = 100.0;

/// A grid in which everybody knows everybody, of machines with so many cores each.
fn grid(cores: &[u32], recipe: aria::Config, delay_ms: f64) -> Grid<Node> {
    let machines: Vec<Machine> =
        cores.iter().map(|&cores| Machine::with_capacity(Resources::cores(cores))).collect();
    let mut grid = Grid::build(Config {
        seed: 1,
        nodes: machines.len(),
        network: network::Config::calm(latency::Config::Constant(latency::Constant { delay_ms })),
        faults: Default::default(),
        fsync: Span::ZERO,
        overlay: blatant_s::Config::default().frozen().into(),
        start: Start::Join,
        work: config::Work {
            machine: machines[0].clone(),
            recipe: Recipe::Aria(recipe),
            commit: Default::default(),
            heartbeat: shoal_protocols::guard::heartbeat::Config { watch: false, ..Default::default() },
            limit_default: Span::from_hours(1),
            eager: false,
            gate: Default::default(),
        },
        machines,
        threads: 1,
        watch: true,
        story: true,
    })
    .expect("the network makes sense");
    let nodes: Vec<NodeId> = grid.world().nodes().collect();
    for &node in &nodes {
        let others = nodes.iter().copied().filter(|&other| other != node).collect();
        grid.world().command(Time::from_secs(1), node, Command::Meet(others));
    }
    grid
}

fn job(number: u8, cores: u32, takes: u64) -> Envelope {
    let span = Span::from_secs(takes);
    let job = Job {
        resources: Resources::cores(cores),
        estimate: Some(span),
        limit: Some(span * 2),
        ..command_taking(span)
    };
    Envelope::new(job, Nonce([number; 16])).expect("the job makes sense")
}

/// What was said and done about a job, a line each.
fn story(grid: &mut Grid<Node>, job: &Envelope) -> String {
    let name = format!("{:?}", job.id());
    let mut lines = String::new();
    for sight in grid.world().sights() {
        let line = match &sight.saw {
            Saw::Send(to, Message::Aria(message)) => format!("-> {to} {message:?}"),
            Saw::Act(Action::Start { .. }) => "starts it".to_owned(),
            Saw::Event(Event::Ended(_, end)) => format!("{end:?}"),
            _ => continue,
        };
        let of_it = match &sight.saw {
            Saw::Act(Action::Start { task, .. }) => task.job == job.id(),
            Saw::Event(Event::Ended(other, _)) => *other == job.id(),
            _ => line.contains(&name),
        };
        // The brief is long, and says nothing new.
        let line = match line.split_once(", brief:") {
            Some((start, _)) => format!("{start} }}"),
            None => line,
        };
        if of_it {
            let line = line.replace(&name, "j");
            let token = line.find("token: ").map(|at| at + 7);
            let line = token.map_or(line.clone(), |at| {
                let end = line[at..].find([',', ' ']).map_or(line.len(), |end| at + end);
                format!("{}…{}", &line[..at], &line[end..])
            });
            lines += &format!("{} {} {line}\n", sight.at, sight.node);
        }
    }
    lines
}

#[test]
fn job_is_offered_goes_to_the_cheapest_and_moves_to_a_better_place() {
    let recipe = aria::Config {
        accept_wait_ms: 500,
        inform_period_ms: 20_000,
        threshold_ms: 10_000,
        ..aria::Config::default()
    };
    let mut grid = grid(&[1, 2, 2], recipe, DELAY_MS);
    // Thought to be long, and over soon: its node is idle long before the other has finished with the second.
    let short = Job {
        estimate: Some(Span::from_secs(600)),
        limit: Some(Span::from_secs(900)),
        resources: Resources::cores(2),
        ..command_taking(Span::from_secs(60))
    };
    let short = Envelope::new(short, Nonce([1; 16])).expect("the job makes sense");
    grid.submit(Time::from_secs(10), NodeId(1), short);
    grid.submit(Time::from_secs(20), NodeId(1), job(2, 2, 400));
    let moved = job(3, 2, 100);
    grid.submit(Time::from_secs(30), NodeId(1), moved.clone());
    grid.world().run_before(Time::from_secs(1_000));
    let told = story(&mut grid, &moved);
    let order = [
        "Request(",
        "Accept",
        "Assign {",
        "Assigned",
        "Confirm",
        "Inform(",
        "Accept",
        "Notify",
        "Assign {",
        "Assigned",
        "Confirm",
        "Cancel {",
        "starts it",
        "Finished",
    ];
    let mut rest = told.as_str();
    for word in order {
        let Some(at) = rest.find(word) else { panic!("no {word} where it should be\n{told}") };
        rest = &rest[at + word.len()..];
    }
    assert_eq!(told.matches("starts it").count(), 1, "{told}");
}

#[test]
fn real_offers_close_in_milliseconds_on_a_quick_network() {
    let mut grid = grid(&[2; 12], aria::Config::real(), 0.5);
    let wanted = job(1, 1, 10);
    grid.submit(Time::from_secs(10), NodeId(1), wanted.clone());
    grid.world().run_before(Time::from_secs(11));
    let start =
        grid.world().sights().into_iter().find(|sight| matches!(sight.saw, Saw::Act(Action::Start { .. })));
    let start = start.expect("it starts").at;
    assert!(start.since(Time::from_secs(10)) < Span::from_millis(20), "it started at {start}");
}
