//! A job's way to the best set, to a better one, and past nodes that fail or refuse.

use shoal_model::{Envelope, Job, JobId, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::commit::two_phase::Placement;
use shoal_protocols::node::config::{self, Recipe};
use shoal_protocols::node::{End, Event, Node, Phase};
use shoal_protocols::scheduling::Stuck;
use shoal_protocols::scheduling::proactive::{self, Variant};
use shoal_simulator::grid::{Config, Grid, Start};
use shoal_simulator::network::{self, Network, latency};
use shoal_simulator::processes::command_taking;
use shoal_simulator::world::Saw;

const ENTRY: NodeId = NodeId(1);
const ASKED: Time = Time::from_secs(300);

fn network() -> network::Config {
    network::Config::calm(latency::Config::Clustered(latency::Clustered {
        sites: 6,
        side_ms: 80.0,
        spread_ms: 2.0,
        least_ms: 0.1,
        jitter: 0.0,
    }))
}

/// A grid of which nodes know where they are, with machines by number.
fn grid(nodes: usize, recipe: proactive::Config, machine: impl Fn(usize) -> Machine) -> Grid<Node> {
    let machines: Vec<Machine> = (0..nodes).map(machine).collect();
    let mut recipe = recipe;
    recipe.helpers.measure = false;
    Grid::build(Config {
        seed: 3,
        nodes,
        network: network(),
        faults: Default::default(),
        fsync: Span::ZERO,
        overlay: Default::default(),
        start: Start::Join,
        work: config::Work {
            machine: machines[0].clone(),
            recipe: Recipe::Proactive(recipe),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_mins(10),
            eager: false,
            gate: Default::default(),
        },
        machines,
        threads: 1,
        watch: true,
        story: false,
    })
    .expect("the network makes sense")
}

fn plain(_: usize) -> Machine {
    Machine::with_capacity(Resources::cores(1))
}

fn gang(nodes: u32, criterion: &str) -> Job {
    Job {
        nodes: nodes.try_into().unwrap(),
        criterion: Some(criterion.parse().unwrap()),
        limit: Some(Span::from_mins(5)),
        begin: Some(ASKED + Span::from_mins(10)),
        ..command_taking(Span::from_secs(60))
    }
}

fn submit(grid: &mut Grid<Node>, job: Job) -> JobId {
    grid.submit(ASKED, ENTRY, Envelope::new(job, Nonce([7; 16])).unwrap())
}

/// All placements of a job so far, and how it ended.
fn story(grid: &mut Grid<Node>, job: JobId) -> (Vec<Placement>, Option<End>) {
    let (mut placements, mut end) = (Vec::new(), None);
    for sight in grid.world().sights() {
        match sight.saw {
            Saw::Event(Event::Placed(other, placement)) if other == job => placements.push(placement),
            Saw::Event(Event::Ended(other, how)) if other == job => end = Some(how),
            _ => {}
        }
    }
    (placements, end)
}

/// How far the nodes of a set are apart, in sum.
fn apart(nodes: &[NodeId], all: usize) -> u64 {
    let network = Network::build(&network(), all, 3).unwrap();
    let place = |node: &NodeId| network.place(node.0 as usize - 1).unwrap();
    nodes.iter().flat_map(|a| nodes.iter().map(move |b| place(a).distance(&place(b)))).sum()
}

#[test]
fn closest_set_is_committed_and_exchanged_for_closer_ones_until_it_starts() {
    let mut grid = grid(120, proactive::Config::default(), plain);
    let job = submit(&mut grid, gang(8, "closest"));
    grid.world().run_before(ASKED + Span::from_mins(9));
    let course = grid.look().core(ENTRY).proactive().unwrap().course(job).to_vec();
    assert_eq!(course.len(), 20, "twenty iterations");
    assert!(course.windows(2).all(|pair| pair[1] <= pair[0]), "never worse: {course:?}");

    let (placements, _) = story(&mut grid, job);
    assert!(placements.len() > 1, "it moved at least once: {placements:?}");
    assert!(placements.windows(2).all(|pair| pair[0].epoch < pair[1].epoch), "each with an epoch of its own");
    let (first, last) = (&placements[0].nodes, &placements[placements.len() - 1].nodes);
    assert!(apart(last, 120) < apart(first, 120));
    // What it left is free again.
    let locks = grid.look().nodes().filter(|&node| {
        grid.look().core(node).commit().is_some_and(|commit| commit.locks().any(|(lock, _)| lock.job == job))
    });
    assert_eq!(locks.count(), 8);

    grid.world().run_before(ASKED + Span::from_mins(30));
    let (_, end) = story(&mut grid, job);
    assert_eq!(end, Some(End::Finished));
}

#[test]
fn owner_that_was_down_goes_on_to_closer_sets() {
    // It is not looked for any more when it goes down, and is when it is back.
    let mut grid = grid(120, proactive::Config { iterations: 2, ..Default::default() }, plain);
    let job = submit(&mut grid, gang(8, "closest"));
    let down = ASKED + Span::from_mins(1);
    grid.world().run_before(down);
    let before = story(&mut grid, job).0.pop().expect("it has a place");
    grid.world().crash(down, ENTRY);
    grid.world().boot(down + Span::from_secs(5), ENTRY);
    grid.world().run_before(ASKED + Span::from_mins(9));
    let after = story(&mut grid, job).0.pop().expect("it is told again where it is");
    assert!(after.epoch > before.epoch, "{after:?} after {before:?}");
    assert!(apart(&after.nodes, 120) < apart(&before.nodes, 120), "{after:?} after {before:?}");
    grid.world().run_before(ASKED + Span::from_mins(30));
    assert_eq!(story(&mut grid, job).1, Some(End::Finished));
}

#[test]
fn iterations_rest_after_a_small_gain_only_if_they_are_told_to() {
    let done = |gain_per_mille| {
        let mut grid = grid(60, proactive::Config { gain_per_mille, ..Default::default() }, plain);
        let job = submit(&mut grid, gang(8, "closest"));
        grid.world().run_before(ASKED + Span::from_mins(1));
        grid.look().core(ENTRY).proactive().unwrap().course(job).len()
    };
    assert_eq!(done(0), 20, "all of them, one after the other");
    assert!(done(10) < 20, "a rest of half a minute after each that gains less than a hundredth");
}

#[test]
fn near_nodes_make_a_closer_set_than_random_ones() {
    let cost = |variant| {
        let mut grid = grid(200, proactive::Config { variant, iterations: 5, ..Default::default() }, plain);
        let job = submit(&mut grid, gang(8, "closest"));
        grid.world().run_before(ASKED + Span::from_mins(9));
        grid.look().core(ENTRY).proactive().unwrap().course(job).last().copied().flatten().unwrap().value
    };
    let (basic, near) = (cost(Variant::Basic), cost(Variant::Proactive));
    assert!(2 * near < basic, "{near} beside {basic}");
}

#[test]
fn node_that_fails_before_the_start_is_replaced() {
    let mut grid = grid(60, proactive::Config { iterations: 3, ..Default::default() }, plain);
    let job = submit(&mut grid, gang(6, "closest"));
    grid.world().run_before(ASKED + Span::from_mins(3));
    let (placements, _) = story(&mut grid, job);
    let placed = placements.last().unwrap().clone();
    let lost = *placed.nodes.iter().find(|&&node| node != ENTRY).unwrap();
    let now = grid.world().now();
    grid.world().crash(now, lost);
    grid.world().run_before(ASKED + Span::from_mins(9));
    let (placements, _) = story(&mut grid, job);
    let after = placements.last().expect("it has a place again");
    assert!(after.epoch > placed.epoch && !after.nodes.contains(&lost), "{after:?}");
    grid.world().run_before(ASKED + Span::from_mins(40));
    assert_eq!(story(&mut grid, job).1, Some(End::Finished));
}

#[test]
fn owner_that_does_not_serve_an_organisation_is_not_asked_to() {
    let machine = |number: usize| {
        let mut machine = plain(number);
        if number.is_multiple_of(2) {
            machine.refuses.insert("biology".parse().unwrap());
        }
        machine
    };
    let mut grid = grid(40, proactive::Config::real(), machine);
    let job = Job { organisation: "biology".parse().ok(), ..gang(5, "closest") };
    let job = submit(&mut grid, job);
    grid.world().run_before(ASKED + Span::from_mins(30));
    let (placements, end) = story(&mut grid, job);
    assert_eq!(end, Some(End::Finished));
    assert!(
        placements.iter().flat_map(|placement| &placement.nodes).all(|node| node.0 % 2 == 0),
        "{placements:?}"
    );
}

#[test]
fn clause_that_excludes_most_is_named() {
    let mut grid = grid(30, proactive::Config::real(), plain);
    let constraint = "cores >= 1 && memory >= 64GiB".parse().ok();
    let job = submit(&mut grid, Job { constraint, ..gang(4, "closest") });
    grid.world().run_before(ASKED + Span::from_mins(2));
    let owned = grid.look().core(ENTRY).job(job).expect("it was accepted");
    assert_eq!(*owned.phase(), Phase::Seeking);
    match owned.why() {
        Some(why @ Stuck::Excluded { needed: 4, fit: 0, clause: 2, asked, excluded }) => {
            assert!(asked >= 20 && excluded >= asked - 1, "{why}");
            assert!(why.to_string().contains("clause 2 of `where` excludes"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn criteria_of_every_kind_find_a_place() {
    let criteria = [
        "soonest",
        "closest subject to wait <= 1h",
        "near(here)",
        "near(\"n5\")",
        "spread",
        "domains",
        "domains(\"zone\")",
        "fastest",
        "cheapest",
        "closest + 0.001 * wait",
    ];
    for criterion in criteria {
        let machine = |number: usize| {
            let mut machine = plain(number);
            machine.organisation = format!("lab{}", number % 4).parse().ok();
            machine.labels.insert("zone".parse().unwrap(), format!("z{}", number % 3).parse().unwrap());
            machine.labels.insert("price".parse().unwrap(), (number % 5).to_string().parse().unwrap());
            machine
        };
        let mut grid = grid(40, proactive::Config::real(), machine);
        let job = submit(&mut grid, gang(3, criterion));
        grid.world().run_before(ASKED + Span::from_mins(30));
        let (placements, end) = story(&mut grid, job);
        assert_eq!(end, Some(End::Finished), "{criterion}");
        let nodes = &placements.last().unwrap().nodes;
        let of = |part: u64| {
            nodes.iter().map(|node| (node.0 - 1) % part).collect::<std::collections::BTreeSet<_>>()
        };
        match criterion {
            "domains" => assert_eq!(of(4).len(), 3, "three organisations: {nodes:?}"),
            "domains(\"zone\")" => assert_eq!(of(3).len(), 3, "three zones: {nodes:?}"),
            _ => {}
        }
    }
}

#[test]
fn bound_that_no_set_meets_is_told() {
    let mut grid = grid(20, proactive::Config::real(), plain);
    // It begins in ten minutes, and would have to begin within five.
    let job = submit(&mut grid, gang(3, "closest subject to wait <= 5m"));
    grid.world().run_before(ASKED + Span::from_mins(2));
    let owned = grid.look().core(ENTRY).job(job).expect("it was accepted");
    assert!(matches!(owned.why(), Some(Stuck::Infeasible { .. })), "{:?}", owned.why());
}
