//! Jobs that are cancelled while they move: each ends once, as cancelled, and starts nowhere afterwards.

use std::collections::BTreeSet;

use proptest::prelude::*;
use shoal_model::{JobId, NodeId, Span, Time};
use shoal_protocols::node::{Action, End, Event, Message, Node, Phase};
use shoal_protocols::scheduling::aria;
use shoal_protocols::scheduling::tri_pronged::{self, Config, Variant};
use shoal_simulator::faults::{self, NoiseLevel};
use shoal_simulator::grid::Grid;
use shoal_simulator::world::{Saw, Sight};

use crate::scene::{grid, job, machine, starts};
use crate::storms::{bad_minutes, cases, ends_well};

/// All jobs are its own.
const OWNER: NodeId = NodeId(1);
const JOBS: u16 = 24;
/// When they come, all at once; bad minutes begin then too.
const SETTLED: Time = Time::from_secs(60);
/// By then all is over where nothing is lost.
const OVER: Time = Time::from_secs(420);
/// What an owner said before the cancel may take as long to become durable, to arrive, and to become durable there.
const ON_ITS_WAY: Span = Span::from_millis(2 + 60 + 2);
/// No move takes longer where nothing is lost.
const MOVE_WITHIN: Span = Span::from_secs(1);

/// Sixteen cores, and more jobs of a core than that: some wait, and move when others end.
fn crowd(seed: u64, variant: Variant, faults: faults::Config) -> (Grid<Node>, Vec<JobId>) {
    let mut grid = grid(seed, vec![machine(2); 8], Config { variant, ..Config::real() }, faults);
    let takes = |number| 30 + u64::from(number) * 3;
    let jobs = (0..JOBS).map(|number| grid.submit(SETTLED, OWNER, job(number, 1, takes(number))));
    let jobs = jobs.collect();
    (grid, jobs)
}

/// What was said of a job's move: that somebody would take it, and all that owner, old and new run node make of that.
fn is_of_move(message: &Message, job: JobId) -> bool {
    match message {
        Message::TriPronged(tri_pronged::Message::Answer { job: other, yes: true }) => *other == job,
        Message::Aria(
            aria::Message::Notify { job: other, .. }
            | aria::Message::Assign { job: other, .. }
            | aria::Message::Assigned { job: other, .. }
            | aria::Message::Confirm { job: other, .. }
            | aria::Message::Cancel { job: other, .. }
            | aria::Message::Cancelled { job: other, .. },
        ) => *other == job,
        _ => false,
    }
}

/// The jobs that somebody agreed to take from another, in the order of the first such word, with its time.
fn moves(seen: &[Sight<Node>]) -> Vec<(Time, JobId)> {
    let mut moved = BTreeSet::new();
    let answer = |sight: &Sight<Node>| match sight.saw {
        Saw::Send(_, Message::TriPronged(tri_pronged::Message::Answer { job, yes: true })) => {
            moved.insert(job).then_some((sight.at, job))
        }
        _ => None,
    };
    seen.iter().filter_map(answer).collect()
}

/// Times between any two words of a move, just after each and halfway to the next, and after the last.
fn moments(seen: &[Sight<Node>], job: JobId, from: Time, within: Span) -> Vec<Time> {
    let said: BTreeSet<Time> = seen
        .iter()
        .filter(|sight| sight.at >= from && sight.at <= from + within)
        .filter(|sight| matches!(&sight.saw, Saw::Send(_, message) if is_of_move(message, job)))
        .map(|sight| sight.at)
        .collect();
    let said: Vec<Time> = said.into_iter().collect();
    let halfway =
        said.windows(2).map(|pair| pair[0] + Span::from_micros(pair[1].since(pair[0]).as_micros() / 2));
    let just_after = said.iter().map(|&at| at + Span::from_micros(1));
    halfway.chain(just_after).collect()
}

fn ends(seen: &[Sight<Node>], job: JobId) -> Vec<End> {
    let end = |sight: &Sight<Node>| match sight.saw {
        Saw::Event(Event::Ended(other, end)) if other == job => Some(end),
        _ => None,
    };
    seen.iter().filter_map(end).collect()
}

/// The nodes that still know of a job: because it is here, or because somebody else has yet to let go of it.
fn who_remembers(grid: &Grid<Node>, job: JobId) -> Vec<NodeId> {
    let knows = |node: &NodeId| {
        let aria = grid.look().core(*node).aria().expect("jobs have seats");
        aria.seats().any(|(other, ..)| other == job) || aria.tenures().any(|other| other == job)
    };
    grid.look().nodes().filter(knows).collect()
}

/// Cancels a job at this time, and says whether it had started by then, or was about to.
fn cancelled_at(cancel: Time, moving: JobId, seed: u64, variant: Variant) -> bool {
    let told = format!("seed {seed}, {}, job {moving} cancelled at {cancel}", variant.name());
    let (mut grid, jobs) = crowd(seed, variant, Default::default());
    grid.cancel(cancel, OWNER, moving);
    grid.world().run_before(OVER);
    let seen = grid.world().sights();
    assert_eq!(ends(&seen, moving), [End::Cancelled], "{told}");
    assert_eq!(who_remembers(&grid, moving), [], "{told}");
    let started: Vec<(NodeId, Time)> = starts(&seen)
        .into_iter()
        .filter(|(job, ..)| *job == moving)
        .map(|(_, node, at)| (node, at))
        .collect();
    let confirmed = seen.iter().any(|sight| {
        matches!(&sight.saw, Saw::Send(to, Message::Aria(aria::Message::Confirm { job, .. }))
            if *job == moving && started.iter().any(|(node, _)| node == to))
    });
    assert!(started.len() <= 1 && (started.is_empty() || confirmed), "{told}: started at {started:?}");
    for &(node, at) in &started {
        assert!(at <= cancel + ON_ITS_WAY, "{told}: started at {at}");
        let stopped = |sight: &Sight<Node>| {
            sight.node == node && matches!(&sight.saw, Saw::Act(Action::Stop(task)) if task.job == moving)
        };
        assert!(seen.iter().any(stopped), "{told}: nobody stops what started at {at}");
    }
    for job in jobs.into_iter().filter(|job| *job != moving) {
        assert_eq!(ends(&seen, job), [End::Finished], "{told}: job {job} had nothing to do with it");
    }
    !started.is_empty()
}

#[test]
fn job_cancelled_at_any_step_of_its_move_ends_once_and_starts_nowhere_afterwards() {
    let (mut before, mut after) = (0, 0);
    let movers = [Variant::LiPush, Variant::LiPull, Variant::LiqPush, Variant::LiqPull];
    for (seed, variant) in (1..=12).zip(movers.into_iter().cycle()) {
        let (mut grid, _) = crowd(seed, variant, Default::default());
        grid.world().run_before(OVER);
        let seen = grid.world().sights();
        for (at, moving) in moves(&seen).into_iter().take(3) {
            for cancel in moments(&seen, moving, at, MOVE_WITHIN) {
                let had_started = cancelled_at(cancel, moving, seed, variant);
                *if had_started { &mut after } else { &mut before } += 1;
            }
        }
    }
    assert!(before > 60 && after > 15, "cancelled {before} times before the job had started, {after} after");
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn job_cancelled_while_it_moves_ends_once_where_words_are_lost_and_nodes_crash(
        seed in 0u64..1_000_000,
        loss in 0.0f64..0.2,
        duplication in 0.0f64..0.3,
        crashes in any::<bool>(),
        variant in 2usize..6,
        which in any::<[prop::sample::Index; 2]>(),
    ) {
        let noise = NoiseLevel { loss, duplication, reorder: 0.2, reorder_ms: 3_000.0 };
        let (variant, faults) = (Variant::ALL[variant], bad_minutes(noise, crashes));
        let (mut first, _) = crowd(seed, variant, faults.clone());
        first.world().run_before(OVER);
        let seen = first.world().sights();
        let moves = moves(&seen);
        prop_assume!(!moves.is_empty());
        let (at, moving) = moves[which[0].index(moves.len())];
        let moments = moments(&seen, moving, at, Span::from_secs(10));
        let cancel = moments[which[1].index(moments.len())];
        let ended = |sight: &Sight<Node>| matches!(sight.saw, Saw::Event(Event::Ended(job, _)) if job == moving);
        let over = seen.iter().any(|sight| sight.at <= cancel && ended(sight));
        let (mut grid, _) = crowd(seed, variant, faults);
        grid.cancel(cancel, OWNER, moving);
        ends_well(&mut grid, seed)?;
        let phase = grid.look().core(OWNER).job(moving).map(|owned| owned.phase().clone());
        // Its owner may have been down just then, and not have heard.
        let heard = !crashes && !over;
        prop_assert!(!heard || phase == Some(Phase::Ended(End::Cancelled)), "{:?}", phase);
    }
}
