//! R2: what it costs when what is left of a machine changes, start by start and end by end.

use std::collections::BTreeMap;

use shoal_model::{NodeId, Resources, Span, Time};
use shoal_protocols::node::{Message, Node};
use shoal_protocols::overlay::can;
use shoal_protocols::scheduling::tri_pronged::{Config, Variant};
use shoal_simulator::grid::Grid;
use shoal_simulator::workload::profiles::{Profiles, machines};
use shoal_simulator::world::{Saw, Sight};

use crate::scene::{can_of, grid, job};

const NODES: u16 = 40;
/// So short that what is left of a machine changes once in it at most.
const STEP: Span = Span::from_millis(20);
/// Longer than any balloon takes to be tied and untied.
const DONE_WITHIN: Span = Span::from_millis(600);

/// What is left of a machine that is partly used, and who holds its balloon.
type Tied = (Option<Resources>, Option<NodeId>);

/// What is left of a machine has changed.
struct Change {
    node: NodeId,
    /// The step in which it did ends then.
    seen: Time,
    /// Who held its balloon then, and who does when all is said.
    before: Option<NodeId>,
    after: Option<NodeId>,
}

fn tied(grid: &Grid<Node>) -> BTreeMap<NodeId, Tied> {
    let of = |node| {
        let can = can_of(grid, node);
        let vitals = can.own_vitals().filter(|vitals| vitals.is_partly_used());
        (node, (vitals.map(|vitals| vitals.residual.clone()), can.balloon_holder()))
    };
    grid.look().nodes().map(of).collect()
}

/// The words about one machine's balloon, from itself or on their way.
#[derive(Debug, Default, PartialEq, Eq)]
struct Words {
    /// Those that begin at the machine.
    ties: usize,
    /// Those that are on their way to where the balloon lies.
    passed_on: usize,
    tied: usize,
    unties: usize,
}

fn words(sights: &[Sight<Node>], node: NodeId) -> Words {
    let mut words = Words::default();
    for sight in sights {
        match &sight.saw {
            Saw::Send(_, Message::Can(can::Message::Tie(balloon, _))) if balloon.node == node => {
                let from = if sight.node == node { &mut words.ties } else { &mut words.passed_on };
                *from += 1;
            }
            Saw::Send(to, Message::Can(can::Message::Tied(_))) if *to == node => words.tied += 1,
            Saw::Send(_, Message::Can(can::Message::Untie(_))) if sight.node == node => words.unties += 1,
            _ => {}
        }
    }
    words
}

fn is_heartbeat(sight: &Sight<Node>) -> bool {
    matches!(sight.saw, Saw::Send(_, Message::Can(can::Message::Update(..))))
}

/// A grid in which jobs start and end for some minutes: each change of what is left of a machine, and all that was
/// said.
fn minutes_of_work(seed: u64) -> (Vec<Change>, Vec<Sight<Node>>) {
    let recipe = Config { variant: Variant::L, ..Config::real() };
    let mut grid =
        grid(seed, machines(Profiles::Desktop, usize::from(NODES), seed), recipe, Default::default());
    grid.world().run_before(Time::from_secs(90));
    grid.world().sights();
    for number in 0..200 {
        // Some machines become full, some are left by one job while another goes on.
        let (cores, takes) = (1 + u32::from(number) % 3, 20 + 7 * u64::from(number % 11));
        let at = Time::from_millis(91_000 + 900 * u64::from(number));
        grid.submit(at, NodeId(1 + u64::from(number * 7 % NODES)), job(number, cores, takes));
    }
    let mut before = tied(&grid);
    let mut changes: Vec<Change> = Vec::new();
    let mut open: Vec<Change> = Vec::new();
    while grid.look().now() < Time::from_secs(400) {
        let seen = grid.look().now() + STEP;
        grid.world().run_before(seen);
        let now = tied(&grid);
        for (&node, (left, holder)) in &before {
            if now[&node].0 != *left {
                open.push(Change { node, seen, before: *holder, after: None });
            }
        }
        let (over, still): (Vec<Change>, Vec<Change>) =
            open.into_iter().partition(|change| change.seen + DONE_WITHIN <= seen);
        open = still;
        changes.extend(over.into_iter().map(|change| Change { after: now[&change.node].1, ..change }));
        before = now;
    }
    (changes, grid.world().sights())
}

#[test]
fn each_change_of_what_is_left_ties_once_and_unties_once_at_most() {
    let (mut looked_at, mut moved) = (0, 0);
    for seed in 1..=4 {
        let (changes, sights) = minutes_of_work(seed);
        for Change { node, seen, before, after } in &changes {
            let (from, until) = (*seen - STEP, *seen + DONE_WITHIN);
            let between = |from, until| {
                let at = |time| sights.partition_point(|sight| sight.at < time);
                &sights[at(from)..at(until)]
            };
            // A heartbeat, whose answer may come now, ties again what has not changed; another change has costs of its own.
            let beats = |sight: &Sight<Node>| sight.node == *node && is_heartbeat(sight);
            let near = |other: &Change| {
                other.node == *node && other.seen.max(*seen).since(other.seen.min(*seen)) < DONE_WITHIN
            };
            let changed = changes.iter().filter(|other| near(other)).count();
            if between(from - DONE_WITHIN, until).iter().any(beats) || changed > 1 {
                continue;
            }
            let words = words(between(from, until), *node);
            let elsewhere = |holder: &Option<NodeId>| holder.is_some_and(|holder| holder != *node);
            let to_others = usize::from(elsewhere(after));
            let told =
                format!("seed {seed}, {node} at {seen}: {words:?}, held by {before:?}, then {after:?}");
            assert_eq!((words.ties, words.tied), (to_others, to_others), "{told}");
            assert_eq!(words.unties, usize::from(elsewhere(before) && before != after), "{told}");
            assert!(words.ties + words.unties <= 2, "{told}");
            // One word, passed on; it does not multiply.
            assert!(
                words.passed_on <= usize::from(NODES) / 2 && (words.ties > 0 || words.passed_on == 0),
                "{told}"
            );
            looked_at += 1;
            moved += usize::from(words.ties + words.unties == 2);
        }
    }
    assert!(looked_at > 300 && moved > 20, "{looked_at} changes, {moved} from holder to holder");
}

#[test]
fn balloons_are_tied_at_heartbeats_and_changes_and_at_no_other_time() {
    let (changes, sights) = minutes_of_work(5);
    let tells = |sight: &Sight<Node>| is_heartbeat(sight).then_some((sight.node, sight.at));
    let heartbeats: std::collections::BTreeSet<(NodeId, Time)> = sights.iter().filter_map(tells).collect();
    let mut at_changes = 0;
    for sight in &sights {
        let Saw::Send(_, Message::Can(can::Message::Tie(balloon, 1))) = &sight.saw else { continue };
        if balloon.node != sight.node || heartbeats.contains(&(sight.node, sight.at)) {
            continue;
        }
        // It says when it was meant to leave; it does once what was to be saved is.
        let changed = changes.iter().any(|change| {
            change.node == sight.node && change.seen > balloon.at && change.seen <= balloon.at + STEP
        });
        assert!(changed, "{} ties at {} though nothing has changed", sight.node, sight.at);
        at_changes += 1;
    }
    assert!(at_changes > 10, "{at_changes}");
}
