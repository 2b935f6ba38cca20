//! Two-phase commit in all interleavings of a small world: three nodes, two coordinators, a crash.
//!
//! Both jobs want the same hour of a node that has room for one.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::calendar::Capacity;
use shoal_model::{Epoch, JobId, NodeId, Span, Time};
use shoal_protocols::commit::two_phase::{
    self, Command, Config, Event, Proposal, Record, Setting, Stage, Timer, TwoPhase,
};
use shoal_protocols::{Ctx, Hosts, Input, Layer, Never, Protocol, Shared};
use shoal_simulator::explore::{Explorer, Faults, Limits, Monitor, Order, State};
use shoal_simulator::world::{Saw, Sight};

type TwoPhaseOfCounts = TwoPhase<u32, ()>;

/// A node that makes its proposals when it first starts. Given at any time instead, they would multiply the states by
/// all times; messages that may come as late as they like show the same.
#[derive(Clone, Hash)]
struct Commit {
    commit: TwoPhaseOfCounts,
    proposals: Vec<Command<u32, ()>>,
}

impl Layer for Commit {
    type Command = Command<u32, ()>;
    type Message = two_phase::Message<u32, ()>;
    type Timer = Timer;
    type Record = Record<u32, ()>;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl Protocol for Commit {
    type Config = (Setting<u32>, Vec<Command<u32, ()>>);

    fn restore(config: &Self::Config, me: NodeId, records: impl Iterator<Item = Record<u32, ()>>) -> Commit {
        let records: Vec<_> = records.collect();
        let first = records.is_empty();
        let proposals = if first { config.1.clone() } else { Vec::new() };
        Commit { commit: TwoPhase::restore(&config.0, me, records.into_iter()), proposals }
    }

    fn handle(&mut self, input: Input<Commit>, ctx: &mut Ctx<'_, Commit>) {
        let input = match input {
            Input::Boot => Input::Boot,
            Input::Command(command) => Input::Command(command),
            Input::Message { from, message } => Input::Message { from, message },
            Input::Timer(timer) => Input::Timer(timer),
            Input::Done(never) => match never {},
        };
        // One attempt at a time: what comes too early is not asked for again.
        let busy = matches!(&input, Input::Command(Command::Propose(p)) if self.commit.is_placing(p.job));
        if busy {
            return;
        }
        let commands = std::mem::take(&mut self.proposals).into_iter().map(Input::Command);
        for input in std::iter::once(input).chain(commands) {
            for event in ctx.layer(|ctx| self.commit.handle(input, ctx)) {
                ctx.report(event);
            }
        }
    }
}

impl Hosts<TwoPhaseOfCounts> for Commit {
    fn message(message: two_phase::Message<u32, ()>) -> two_phase::Message<u32, ()> {
        message
    }

    fn timer(timer: Timer) -> Timer {
        timer
    }

    fn record(record: Record<u32, ()>) -> Record<u32, ()> {
        record
    }

    fn key(key: two_phase::Key) -> two_phase::Key {
        key
    }

    fn action(never: Never) -> Never {
        never
    }
}

const HOUR: Span = Span::from_hours(1);
const START: Time = Time::from_secs(1_000);
const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);
const N3: NodeId = NodeId(3);

/// What must be remembered to judge: who has ever committed what, and where jobs are said to be.
#[derive(Clone, Debug, Default, Hash)]
struct Witness {
    committed: BTreeSet<(JobId, Epoch, NodeId)>,
    /// Decided, as the coordinators' disks have it.
    decided: BTreeMap<(JobId, Epoch), Vec<NodeId>>,
    latest: BTreeMap<JobId, Epoch>,
}

impl Monitor<Commit> for Witness {
    fn see(&mut self, sight: &Sight<Commit>) -> Result<(), String> {
        match &sight.saw {
            Saw::Save(Record::Lock(lock)) => {
                self.committed.insert((lock.job, lock.epoch, sight.node));
            }
            Saw::Save(Record::Tenure(tenure)) => {
                if let Some(placed) = &tenure.placed {
                    self.decided.insert((tenure.job, placed.epoch), placed.nodes.to_vec());
                    let missing = placed
                        .nodes
                        .iter()
                        .find(|&&node| !self.committed.contains(&(tenure.job, placed.epoch, node)));
                    if let Some(missing) = missing {
                        return Err(format!(
                            "{:?} is placed on {missing}, which has not committed",
                            tenure.job
                        ));
                    }
                }
            }
            Saw::Event(Event::Placed(job, placement)) => {
                let epoch = placement.epoch;
                if self.latest.insert(*job, epoch).is_some_and(|before| before >= epoch) {
                    return Err(format!("{job:?} is placed with epoch {epoch:?} after a later one"));
                }
            }
            Saw::Event(Event::Confirmed(job, epoch)) if !self.decided.contains_key(&(*job, *epoch)) => {
                return Err(format!("{job:?} may start at {} before it is decided", sight.node));
            }
            _ => {}
        }
        Ok(())
    }
}

fn proposal(job: u64, nodes: &[NodeId], start: Time) -> Command<u32, ()> {
    let shares = nodes.iter().map(|&node| (node, 1)).collect();
    let job = JobId::from_number(job);
    Command::Propose(Proposal {
        job,
        start,
        span: HOUR,
        shares,
        after: Epoch(0),
        leave_by: Some(Time::NEVER),
        brief: Shared::new(()),
    })
}

fn world(proposals: &[(NodeId, Command<u32, ()>)]) -> Explorer<Commit, Witness> {
    let proposals = proposals.to_vec();
    let setting = Setting {
        config: Config { hold_ms: 30_000, patience_ms: 30_000, tries: 0 },
        capacity: Capacity::constant(1).expect("one is not too much"),
    };
    let configure = move |node| {
        let own = proposals.iter().filter(|(by, _)| *by == node).map(|(_, proposal)| proposal.clone());
        (setting.clone(), own.collect())
    };
    Explorer::new(3, configure, Witness::default())
        .always("nothing is booked twice", nothing_is_booked_twice)
        .always("no lock outlives its time", no_lock_outlives_its_time)
        .at_rest("a job is on all its nodes or on none", all_or_none)
}

fn nothing_is_booked_twice(state: &State<'_, Commit, Witness>) -> Result<(), String> {
    for (node, core) in state.cores() {
        let locks: Vec<_> = core.commit.locks().map(|(lock, _)| lock).collect();
        for (place, first) in locks.iter().enumerate() {
            for second in &locks[place + 1..] {
                let apart =
                    first.start + first.span <= second.start || second.start + second.span <= first.start;
                if first.job != second.job && !apart {
                    return Err(format!("{node} holds {:?} and {:?} at once", first.job, second.job));
                }
            }
        }
    }
    Ok(())
}

/// What a job that must never run twice depends on. A doubled message may bring an old place back for a while.
fn old_place_is_left_first(state: &State<'_, Commit, Witness>) -> Result<(), String> {
    for (coordinator, core) in state.cores() {
        for job in (1..=2).map(JobId::from_number) {
            let Some(placed) = core.commit.placement(job) else { continue };
            for (node, other) in state.cores() {
                let mut locks = other.commit.locks();
                let old = locks.find(|(lock, stage)| {
                    lock.job == job && lock.epoch < placed.epoch && *stage == Stage::Confirmed
                });
                if let Some((lock, _)) = old {
                    let (old, new) = (lock.epoch.0, placed.epoch.0);
                    return Err(format!(
                        "{coordinator} has {job:?} in epoch {new}, and {node} in epoch {old}"
                    ));
                }
            }
        }
    }
    Ok(())
}

fn no_lock_outlives_its_time(state: &State<'_, Commit, Witness>) -> Result<(), String> {
    for (node, core) in state.cores() {
        if core.commit.oldest_doubt().is_some_and(|until| until < state.now(node)) {
            return Err(format!("{node} holds on to a lock past its time"));
        }
    }
    Ok(())
}

/// Judged where nothing happens any more. A node that is down cannot let go; those that are up have had their time.
fn all_or_none(state: &State<'_, Commit, Witness>) -> Result<(), String> {
    let up = |node: NodeId| state.is_up(node);
    for (node, core) in state.cores() {
        for (lock, stage) in core.commit.locks() {
            let judged_later = state.timers(node).any(|(_, timer)| matches!(timer, Timer::Doubt(..)));
            if stage != Stage::Confirmed && judged_later {
                // Only the horizon makes this a rest.
                continue;
            }
            if stage != Stage::Confirmed {
                return Err(format!("{node} is left with a lock of {:?} in doubt", lock.job));
            }
            let coordinator = state.core(lock.coordinator);
            let placed = coordinator.and_then(|core| core.commit.placement(lock.job));
            // Whoever has yet to be told to let go is told again after the horizon.
            let chased = state.timers(lock.coordinator).any(|(_, timer)| matches!(timer, Timer::Chase(..)));
            // So is whoever has to let go before an exchange can be confirmed, and who serves both sets and has yet to
            // be told of the new one.
            let due =
                |is: &dyn Fn(&Timer) -> bool| state.timers(lock.coordinator).any(|(_, timer)| is(timer));
            let retried = due(&|timer| matches!(timer, Timer::Retry(job, _) if *job == lock.job))
                && coordinator.is_some_and(|core| core.commit.is_placing(lock.job));
            let reminded = placed.is_some_and(|placed| {
                let newer = core.commit.lock(lock.job, placed.epoch);
                newer.is_some_and(|(_, stage)| stage != Stage::Confirmed)
                    && due(&|timer| matches!(timer, Timer::Remind(job, epoch, _) if (*job, *epoch) == (lock.job, placed.epoch)))
            });
            if chased || retried || reminded {
                continue;
            }
            if up(lock.coordinator) && placed.is_none_or(|placed| placed.epoch != lock.epoch) {
                return Err(format!(
                    "{node} is left with {:?}, which its coordinator has elsewhere",
                    lock.job
                ));
            }
        }
    }
    for (coordinator, core) in state.cores() {
        for job in (1..=2).map(JobId::from_number) {
            let Some(placed) = core.commit.placement(job) else { continue };
            let reminded = state.timers(coordinator).any(|(_, timer)| matches!(timer, Timer::Remind(..)));
            if reminded {
                continue;
            }
            for &node in placed.nodes.iter().filter(|&&node| up(node)) {
                let held = state.core(node).and_then(|core| core.commit.lock(job, placed.epoch));
                if held.is_none() {
                    return Err(format!("{coordinator} thinks that {job:?} is on {node}, and it is not"));
                }
            }
        }
    }
    Ok(())
}

/// Explores to the end, and demands that there was nothing wrong and nothing left out but what lies past the horizon.
fn assert_holds(name: &str, explorer: Explorer<Commit, Witness>, faults: Faults, horizon: Time) {
    let report =
        explorer.faults(faults).order(Order::Latest).limits(Limits { horizon, ..Limits::default() }).run();
    if let Some(violation) = &report.violation {
        panic!("{name}: {violation}");
    }
    assert!(report.holds(), "{name}: cut short: {:?}", report.cut);
    println!(
        "{name}: {} states, {} transitions, {} at rest",
        report.states, report.transitions, report.rests
    );
}

const fn faults(crashes: u8, losses: u8, duplicates: u8) -> Faults {
    Faults { crashes, losses, duplicates }
}

fn two_coordinators() -> Explorer<Commit, Witness> {
    world(&[(N1, proposal(1, &[N2, N3], START)), (N2, proposal(2, &[N3, N1], START))])
}

/// Two coordinators want one node, which belongs to neither.
fn two_coordinators_and_one_node() -> Explorer<Commit, Witness> {
    world(&[(N1, proposal(1, &[N3], START)), (N2, proposal(2, &[N3], START))])
}

/// The same, where one of them wants its rival's own node too.
fn two_coordinators_and_a_set() -> Explorer<Commit, Witness> {
    world(&[(N1, proposal(1, &[N2, N3], START)), (N2, proposal(2, &[N3], START))])
}

/// A job that is placed on one node moves to another, which a rival wants too.
fn switch_beside_a_rival() -> Explorer<Commit, Witness> {
    world(&[(N1, proposal(1, &[N2], START)), (N2, proposal(2, &[N3], START))])
        .command(N1, proposal(1, &[N3], START))
        .always("nobody has the old place when the new one stands", old_place_is_left_first)
}

/// A job on two nodes exchanges one of them for another, which a rival wants too; the third serves both sets.
fn exchange_beside_a_rival() -> Explorer<Commit, Witness> {
    world(&[(N1, proposal(1, &[N1, N2], START)), (N2, proposal(2, &[N3], START))])
        .command(N1, proposal(1, &[N2, N3], START))
        .always("nobody has the old place when the new one stands", old_place_is_left_first)
}

#[test]
fn two_coordinators_three_nodes_and_a_crash_at_any_instant() {
    assert_holds("two coordinators, a crash", two_coordinators(), faults(1, 0, 0), Time::ZERO);
}

#[test]
fn two_coordinators_with_a_crash_and_a_lost_message() {
    assert_holds("two coordinators, a crash, a loss", two_coordinators(), faults(1, 1, 0), Time::ZERO);
}

#[test]
fn two_coordinators_with_a_doubled_message() {
    assert_holds("two coordinators, two doubles", two_coordinators(), faults(0, 0, 2), Time::ZERO);
}

#[test]
fn two_coordinators_whose_messages_come_after_nodes_have_asked() {
    assert_holds(
        "two coordinators, up to the asking",
        two_coordinators(),
        faults(0, 0, 0),
        Time::from_secs(20),
    );
}

/// Timers fire beside a crash: who holds asks at 20 s and drops at 30 s, when coordinators try again and remind.
#[test]
fn two_coordinators_of_one_node_with_a_crash_and_all_timers_up_to_the_dropping() {
    let explorer = two_coordinators_and_one_node();
    assert_holds(
        "two coordinators, one node, a crash, up to the dropping",
        explorer,
        faults(1, 0, 0),
        Time::from_secs(30),
    );
}

/// Up to 20 s only, and one job on one node: with two nodes for each there are 49 million states, too many for a test. They
/// were gone through once, and all was well.
#[test]
fn two_coordinators_of_a_set_with_a_crash_up_to_the_asking() {
    let explorer = two_coordinators_and_a_set();
    assert_holds(
        "two coordinators, a set, a crash, up to the asking",
        explorer,
        faults(1, 0, 0),
        Time::from_secs(20),
    );
}

#[test]
fn lone_participant_with_all_that_time_does() {
    let lone = world(&[(N1, proposal(1, &[N2], START))]);
    assert_holds("one participant, up to the dropping", lone, faults(1, 1, 0), Time::from_secs(30));
}

#[test]
fn job_that_switches_nodes_beside_a_rival_with_a_crash() {
    assert_holds("switch beside a rival, a crash", switch_beside_a_rival(), faults(1, 0, 0), Time::ZERO);
}

#[test]
fn job_that_switches_nodes_with_a_crash_and_a_doubled_message() {
    let switch = world(&[(N1, proposal(1, &[N2], START))]).command(N1, proposal(1, &[N3], START));
    assert_holds("switch, a crash, a double", switch, faults(1, 0, 1), Time::ZERO);
}

#[test]
fn job_that_exchanges_a_node_of_its_set_beside_a_rival() {
    assert_holds("exchange beside a rival", exchange_beside_a_rival(), faults(0, 0, 0), Time::ZERO);
}

#[test]
fn job_that_exchanges_a_node_of_its_set_beside_a_rival_with_a_loss() {
    assert_holds("exchange beside a rival, a loss", exchange_beside_a_rival(), faults(0, 1, 0), Time::ZERO);
}

#[test]
fn job_that_exchanges_a_node_of_its_set_beside_a_rival_with_a_crash() {
    assert_holds("exchange beside a rival, a crash", exchange_beside_a_rival(), faults(1, 0, 0), Time::ZERO);
}
