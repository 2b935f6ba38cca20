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
use shoal_simulator::explore::{Explorer, Faults, Limits, Monitor, Order, Report, State};
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
    type Timer = two_phase::Timer;
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

    fn timer(timer: two_phase::Timer) -> two_phase::Timer {
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
    placed: BTreeMap<(JobId, Epoch), Vec<NodeId>>,
    latest: BTreeMap<JobId, Epoch>,
}

impl Monitor<Commit> for Witness {
    fn see(&mut self, sight: &Sight<Commit>) -> Result<(), String> {
        match &sight.saw {
            Saw::Save(Record::Lock(lock)) => {
                self.committed.insert((lock.job, lock.epoch, sight.node));
            }
            Saw::Event(Event::Placed(job, placement)) => {
                let epoch = placement.epoch;
                if self.latest.insert(*job, epoch).is_some_and(|before| before >= epoch) {
                    return Err(format!("{job:?} is placed with epoch {epoch:?} after a later one"));
                }
                let everywhere =
                    placement.nodes.iter().all(|&node| self.committed.contains(&(*job, epoch, node)));
                if !everywhere {
                    return Err(format!("{job:?} is said to be placed where it is not committed"));
                }
                self.placed.insert((*job, epoch), placement.nodes.clone());
            }
            Saw::Event(Event::Confirmed(job, epoch)) => {
                // The coordinator may have died between its decision and its report; the disks tell.
                let nodes = self.committed.iter().filter(|(j, e, _)| (j, e) == (job, epoch)).count();
                let wanted = self.placed.get(&(*job, *epoch)).map_or(2, Vec::len);
                if nodes < wanted {
                    return Err(format!("{job:?} may start at {} before all have committed", sight.node));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn proposal(job: u64, nodes: &[NodeId], start: Time) -> Command<u32, ()> {
    let shares = nodes.iter().map(|&node| (node, 1)).collect();
    let job = JobId::from_number(job);
    Command::Propose(Proposal { job, start, span: HOUR, shares, strict: true, brief: Shared::new(()) })
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
        .always("nothing is booked twice", |state| nothing_is_booked_twice(state))
        .always("no lock outlives its time", |state| no_lock_outlives_its_time(state))
        .at_rest("a job is on all its nodes or on none", |state| all_or_none(state))
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

fn assert_holds(report: &Report, name: &str) {
    if let Some(violation) = &report.violation {
        panic!("{name}: {violation}");
    }
    assert!(report.holds(), "{name}: cut short: {:?}", report.cut);
    println!(
        "{name}: {} states, {} transitions, {} at rest",
        report.states, report.transitions, report.rests
    );
}

#[test]
fn probe() {
    for (crashes, losses, duplicates) in [(0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)] {
        let report = world(&[(N1, proposal(1, &[N2, N3], START)), (N2, proposal(2, &[N3, N1], START))])
            .faults(Faults { crashes, losses, duplicates })
            .order(Order::Latest)
            .limits(Limits { horizon: Time::from_secs(100), states: 12_000_000, ..Limits::default() })
            .run();
        println!(
            "{crashes} {losses} {duplicates}: {} states {} transitions depth {} {:?} {}s",
            report.states, report.transitions, report.depth, report.cut, report.seconds
        );
        if let Some(v) = &report.violation {
            println!("{v}");
        }
    }
}
