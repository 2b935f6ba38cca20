//! Matchmaking finds whoever there is (M1 to M3), and jobs that wait go where there is room.

use std::collections::BTreeSet;

use shoal_model::machine::Machine;
use shoal_model::units::Thousandths;
use shoal_model::{NodeId, Resources, Span, Time};
use shoal_protocols::node::{End, Event, Node};
use shoal_protocols::overlay::Overlay;
use shoal_protocols::overlay::can::{Volume, Zone};
use shoal_protocols::scheduling::tri_pronged::{Config, Message, Variant};

use shoal_simulator::faults::{self, NoiseLevel};
use shoal_simulator::grid::Grid;
use shoal_simulator::workload::Desktop;
use shoal_simulator::workload::profiles::{Profiles, machines};

use crate::scene::{events, grid, job, job_needing, laid_out, machine, said, starts};

/// When a small grid has its zones.
const SETTLED: Time = Time::from_secs(60);

fn quick(variant: Variant) -> Config {
    Config { variant, ..Config::real() }
}

#[test]
fn only_node_that_will_do_is_found() {
    for seed in 1..=4 {
        let mut machines = vec![machine(1); 60];
        let strong = 7 * seed as usize;
        machines[strong] = machine(8);
        let mut grid = grid(seed, machines, quick(Variant::LiqPull), Default::default());
        let wanted: BTreeSet<_> = (0..6)
            .map(|number| {
                let at = SETTLED + Span::from_secs(u64::from(number) * 10);
                grid.submit(at, NodeId(1 + u64::from(number) * 9), job(number, 8, 5))
            })
            .collect();
        grid.world().run_before(SETTLED + Span::from_mins(4));
        let starts = starts(&grid.world().sights());
        assert_eq!(starts.iter().map(|(job, ..)| *job).collect::<BTreeSet<_>>(), wanted, "seed {seed}");
        assert!(starts.iter().all(|(_, node, _)| *node == NodeId(strong as u64 + 1)), "seed {seed}");
    }
}

/// GPUs are a dimension like the others: who needs one finds it, however few there are, and takes its turn.
#[test]
fn jobs_for_gpus_run_where_there_are_some_and_take_turns() {
    for seed in 1..=3 {
        let mut machines = vec![machine(4); 40];
        let with_gpus = [9, 17, 30];
        for place in with_gpus {
            let capacity = Resources::cores(4).with_gpus(Thousandths::whole(2));
            machines[place] = Machine::with_capacity(capacity);
        }
        let mut grid = grid(seed, machines, quick(Variant::LiqPull), Default::default());
        let needs = Resources::cores(1).with_gpus(Thousandths::whole(1));
        let wanted: BTreeSet<_> = (0..12)
            .map(|number| {
                let at = SETTLED + Span::from_secs(u64::from(number));
                grid.submit(at, NodeId(1 + u64::from(number) * 3), job_needing(number, needs.clone(), 60))
            })
            .collect();
        grid.world().run_before(SETTLED + Span::from_mins(8));
        let starts = starts(&grid.world().sights());
        assert_eq!(starts.iter().map(|(job, ..)| *job).collect::<BTreeSet<_>>(), wanted, "seed {seed}");
        for place in with_gpus {
            let mut here: Vec<Time> = starts
                .iter()
                .filter(|(_, node, _)| *node == NodeId(place as u64 + 1))
                .map(|&(_, _, at)| at)
                .collect();
            here.sort_unstable();
            let apart = here.windows(3).all(|three| three[2].since(three[0]) >= Span::from_secs(60));
            assert!(apart, "seed {seed}: more than two at a time at {place}: {here:?}");
        }
        let elsewhere = starts.iter().filter(|(_, node, _)| !with_gpus.contains(&(node.0 as usize - 1)));
        assert_eq!(elsewhere.count(), 0, "seed {seed}");
    }
}

#[test]
fn grid_that_is_laid_out_has_its_zones_from_the_start_and_keeps_them() {
    let machines: Vec<_> = [1, 1, 1, 2, 2, 4, 8].map(machine).into_iter().cycle().take(80).collect();
    let mut grid = laid_out(3, machines, quick(Variant::L));
    let zones = |grid: &Grid<Node>| -> Vec<(Vec<Zone>, BTreeSet<NodeId>)> {
        let of = |node| match grid.look().core(node).overlay() {
            Overlay::Can(can) => {
                assert_eq!(can.ghosts(), 0);
                assert!(can.claims().iter().any(|claim| claim.zone.contains(can.point())));
                (can.claims().iter().map(|claim| claim.zone).collect(), can.neighbours().collect())
            }
            Overlay::Cyclon(_) | Overlay::BlatantS(_) => unreachable!("the grid has a CAN"),
        };
        grid.look().nodes().map(of).collect()
    };
    grid.world().run_before(Time::from_micros(1));
    let before = zones(&grid);
    let covered: Volume = before.iter().flat_map(|(zones, _)| zones).map(Zone::volume).sum();
    assert_eq!(covered, Zone::WHOLE.volume());
    let far = grid.submit(Time::from_secs(30), NodeId(1), job(1, 8, 5));
    grid.world().run_before(Time::from_secs(120));
    assert_eq!(zones(&grid), before);
    assert_eq!(starts(&grid.world().sights()).iter().map(|(job, ..)| *job).collect::<Vec<_>>(), [far]);
}

#[test]
fn job_that_no_node_can_run_fails_with_its_reason() {
    let mut grid = grid(1, vec![machine(2); 12], quick(Variant::L), Default::default());
    let impossible = grid.submit(SETTLED, NodeId(3), job(1, 64, 5));
    grid.world().run_before(SETTLED + Span::from_mins(10));
    let events = events(&grid.world().sights());
    assert!(events.contains(&Event::Ended(impossible, End::NoPlace)));
}

#[test]
fn few_pushes_find_a_place() {
    let machines = [1, 1, 1, 2, 2, 4, 8].map(machine).into_iter().cycle().take(200).collect();
    let mut grid = grid(5, machines, quick(Variant::L), Default::default());
    let jobs = 200u16;
    for number in 0..jobs {
        let at = SETTLED + Span::from_millis(u64::from(number) * 500);
        let cores = [1, 1, 2, 4][usize::from(number % 4)];
        grid.submit(at, NodeId(1 + u64::from(number)), job(number, cores, 60));
    }
    grid.world().run_before(SETTLED + Span::from_mins(3));
    let sights = grid.world().sights();
    let pushes =
        said(&sights, |message| matches!(message, Message::Find(_, trail) if trail.pushes.is_some()));
    let walks = said(&sights, |message| matches!(message, Message::Find(_, trail) if !trail.seen.is_empty()));
    let mean = pushes as f64 / f64::from(jobs);
    println!("{mean:.2} pushes per job, {walks} of them to look at every node that might do");
    assert!(mean <= 10.0, "{mean}");
    assert_eq!(starts(&sights).len(), usize::from(jobs));
}

/// M2 as the papers count it: a push is a search passed on after it came to the owner of the job's point, and a search stops
/// where it stops, without beginning anew elsewhere.
#[test]
fn few_pushes_find_a_place_among_a_thousand_nodes() {
    let nodes = 1_000;
    // So many that the grid is idle for the first and most of its cores are taken for the last.
    let load = Desktop { nodes, jobs: 1_500, gap_secs: 0.1, ..Desktop::default() };
    let load = load.generate(1).expect("the load makes sense");
    let kinds = machines(Profiles::Desktop, nodes as usize, 1);
    let mut grid = laid_out(8, kinds, Config { anew: 0, ..quick(Variant::L) });
    for ((number, trace), profile) in (0..).zip(&load.jobs).zip(&load.profiles) {
        let at = SETTLED + trace.submit.since(Time::ZERO);
        let node = NodeId(1 + u64::from(number) * 389 % u64::from(nodes));
        grid.submit(at, node, job_needing(number, profile.resources.clone(), 600));
    }
    let (mut pushes, mut passed_on, mut ended) = (0, 0, 0);
    while grid.look().now() < SETTLED + load.span + Span::from_secs(20) {
        let until = grid.look().now() + Span::from_secs(5);
        grid.world().run_before(until);
        let sights = grid.world().sights();
        passed_on += said(&sights, |message| matches!(message, Message::Find(..)));
        pushes +=
            said(&sights, |message| matches!(message, Message::Find(_, trail) if trail.pushes.is_some()));
        ended += said(&sights, |message| matches!(message, Message::Found { node: Some(_), .. }));
    }
    let jobs = load.jobs.len();
    assert_eq!(
        grid.world().traffic()["find"].messages,
        passed_on as u64,
        "no word of a search is overlooked"
    );
    assert_eq!(ended, jobs, "one search for each job finds a place");
    let mean = pushes as f64 / jobs as f64;
    assert!(mean <= 10.0, "{mean} pushes per job");
}

#[test]
fn stopping_factor_says_how_far_jobs_are_pushed() {
    let pushes = |stop| {
        let machines = [1, 2, 4, 8].map(machine).into_iter().cycle().take(60).collect();
        let mut grid = grid(6, machines, Config { stop, ..quick(Variant::L) }, Default::default());
        for number in 0..40 {
            let at = SETTLED + Span::from_secs(u64::from(number));
            grid.submit(at, NodeId(1 + u64::from(number)), job(number, 1, 5));
        }
        grid.world().run_before(SETTLED + Span::from_mins(2));
        said(
            &grid.world().sights(),
            |message| matches!(message, Message::Find(_, trail) if trail.pushes.is_some()),
        )
    };
    let (none, some, far) = (pushes(0), pushes(2), pushes(20));
    println!("pushes of 40 jobs with a factor of 0, 2 and 20: {none}, {some}, {far}");
    assert_eq!(none, 0, "whoever owns the point looks around, and that is all");
    assert!(none < some && some <= far, "{none} {some} {far}");
}

/// Twelve jobs of a minute come to a node at once, before anybody can have heard of the others.
fn crowd(variant: Variant) -> (usize, Span) {
    let mut grid = grid(7, vec![machine(2); 8], quick(variant), Default::default());
    for number in 0..24 {
        grid.submit(SETTLED, NodeId(1), job(number, 1, 60));
    }
    grid.world().run_before(SETTLED + Span::from_mins(20));
    let sights = grid.world().sights();
    let starts = starts(&sights);
    assert_eq!(starts.len(), 24, "each job starts, and once: {}", variant.name());
    let last = starts.iter().map(|(_, _, at)| at.since(SETTLED)).max().expect("jobs start");
    let moves = said(&sights, |message| matches!(message, Message::Answer { yes: true, .. }));
    (moves, last)
}

#[test]
fn jobs_that_wait_go_where_there_is_room() {
    let told = Variant::ALL.map(|variant| (variant.name(), crowd(variant)));
    println!("moves and the last start of 24 jobs on 16 cores: {told:?}");
    let of = |variant: Variant| told[Variant::ALL.iter().position(|other| *other == variant).unwrap()].1;
    assert_eq!(of(Variant::Vanilla).0 + of(Variant::L).0, 0, "without migration nobody moves");
    for variant in [Variant::LiPush, Variant::LiPull, Variant::LiqPush, Variant::LiqPull] {
        assert!(of(variant).0 > 0, "{}", variant.name());
        assert!(of(variant).1 <= of(Variant::L).1, "{}", variant.name());
    }
}

/// How many jobs of a core started at once that came one after the other, a little apart, each to another node; in four grids.
fn started_at_once(jobs: u16, machines: &[Machine], apart: Span, recipe: Config) -> usize {
    let of_seed = |seed| {
        let mut grid = laid_out(seed, machines.to_vec(), recipe);
        for number in 0..jobs {
            let node = NodeId(1 + u64::from(number) * 7 % machines.len() as u64);
            grid.submit(SETTLED + apart * u64::from(number), node, job(number, 1, 10_000));
        }
        grid.world().run_before(SETTLED + apart * u64::from(jobs) + Span::from_secs(60));
        starts(&grid.world().sights()).len()
    };
    (1..=4).map(of_seed).sum()
}

#[test]
fn jobs_that_come_between_two_heartbeats_go_to_different_nodes() {
    // Nobody has said anything new before the last has come: those who found places know who got jobs.
    let recipe = Config { anew: 0, ..quick(Variant::L) };
    let started = started_at_once(40, &vec![machine(1); 64], Span::from_millis(20), recipe);
    println!("{started} of 160 jobs found an idle node");
    assert!(started >= 112, "{started}");
}

#[test]
fn search_that_would_have_its_job_wait_begins_anew_elsewhere() {
    let machines = vec![machine(1); 64];
    let [stops, anew] = [0, 4].map(|anew| {
        let recipe = Config { anew, ..quick(Variant::L) };
        started_at_once(60, &machines, Span::from_secs(6), recipe)
    });
    println!("of 240 jobs found an idle node: {stops}, and {anew} with four more searches each");
    assert!(anew >= stops + 30, "{stops} {anew}");
}

#[test]
fn node_that_is_found_later_than_it_was_waited_for_will_do() {
    let mut machines = vec![machine(1); 30];
    machines[17] = machine(8);
    let slow = Config { search_ms: 1, searches: 3, pause_ms: 2_000, ..quick(Variant::L) };
    let mut grid = grid(3, machines, slow, Default::default());
    let job = grid.submit(SETTLED, NodeId(1), job(1, 8, 5));
    grid.world().run_before(SETTLED + Span::from_mins(1));
    let starts = starts(&grid.world().sights());
    assert_eq!(starts.iter().map(|(job, node, _)| (*job, node.0)).collect::<Vec<_>>(), [(job, 18)]);
}

#[test]
fn searches_whose_words_are_doubled_do_not_multiply() {
    let noise = NoiseLevel { loss: 0.0, duplication: 0.5, reorder: 0.0, reorder_ms: 0.0 };
    let faults =
        faults::Config { from_s: Some(60.0), until_s: Some(600.0), noise: Some(noise), ..Default::default() };
    let mut grid = grid(9, vec![machine(1); 40], quick(Variant::L), faults);
    // The second half finds nobody free, and goes from one end of the grid to the other.
    let jobs = 80;
    for number in 0..jobs {
        let at = SETTLED + Span::from_secs(u64::from(number) * 5);
        grid.submit(at, NodeId(1 + u64::from(number) % 40), job(number, 1, 2_000));
    }
    grid.world().run_before(SETTLED + Span::from_mins(9));
    let finds = said(&grid.world().sights(), |message| matches!(message, Message::Find(..)));
    println!("{finds} words for {jobs} jobs");
    assert!((200..80 * 150).contains(&finds), "{finds}");
}
