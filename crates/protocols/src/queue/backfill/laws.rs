//! Laws of backfilling with a counter, by the account of somebody who only sees who comes, who leaves and who starts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use shoal_model::units::Size;
use shoal_model::{Amount, Resources, Span, Time};

use super::super::{Policy, Queue, Task, Wish};
use super::Counters;
use crate::testing::cases;

type Jobs = Queue<usize, Resources>;

fn resources((cores, memory, disk): (u32, u64, u64)) -> Resources {
    Resources::cores(cores).with_memory(Size::from_gib(memory)).with_disk(Size::from_gib(disk))
}

fn queue(estimates: bool) -> Jobs {
    let policy = if estimates { Policy::BackfillEstimates } else { Policy::Backfill };
    Queue::new(policy, resources((8, 8, 8)))
}

fn start(queue: &mut Jobs) -> Vec<usize> {
    let mut started = Vec::new();
    queue.start(Time::ZERO, &mut started);
    started
}

fn counters(queue: &Jobs) -> Vec<(usize, u32)> {
    queue.waiting().map(|task| (task.id, task.wish.overtaken)).collect()
}

/// A job as it comes.
#[derive(Clone, Debug)]
struct Coming {
    amount: (u32, u64, u64),
    estimate: Option<u64>,
}

impl Coming {
    fn task(&self, id: usize) -> Task<usize, Resources> {
        let wish = Wish { estimated: self.estimate.is_some(), ..Wish::default() };
        let limit = Span::from_secs(self.estimate.unwrap_or(60));
        Task { wish, ..Task::new(id, resources(self.amount), limit) }
    }
}

fn coming() -> impl Strategy<Value = Coming> {
    let amount = (1u32..=8, 0u64..=8, 0u64..=8);
    (amount, prop::option::of(1u64..=200)).prop_map(|(amount, estimate)| Coming { amount, estimate })
}

/// What happens to a queue that is fed at its tail.
#[derive(Clone, Debug)]
enum Step {
    Comes(Coming),
    /// One of those that run ends, or the one that has run longest.
    Ends(Option<Index>),
    /// One of those that wait is cancelled, or goes to another node.
    Leaves(Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => coming().prop_map(Step::Comes),
        4 => any::<Index>().prop_map(|which| Step::Ends(Some(which))),
        1 => any::<Index>().prop_map(Step::Leaves),
    ];
    prop::collection::vec(step, 1..80)
}

/// What was seen of a queue that is fed at its tail, in which numbers stand for the order of coming.
#[derive(Default)]
struct Log {
    /// Who waits.
    line: Vec<usize>,
    /// Who has started, in that order.
    started: Vec<usize>,
    /// Of each that was overtaken: how long the queue was when it first was, and who stood behind it then.
    first: BTreeMap<usize, (usize, Vec<usize>)>,
}

impl Log {
    /// Who came later than a job and has started.
    fn overtakers(&self, id: usize) -> impl Iterator<Item = usize> {
        self.started.iter().copied().filter(move |&other| other > id)
    }

    fn starts(&mut self, id: usize) -> Result<(), TestCaseError> {
        let place = self.line.iter().position(|&other| other == id).expect("who starts has waited");
        for (at, &ahead) in self.line[..place].iter().enumerate() {
            let (_, behind) =
                self.first.entry(ahead).or_insert_with(|| (self.line.len(), self.line[at + 1..].to_vec()));
            prop_assert!(
                behind.contains(&id),
                "P3: {} came after {} was overtaken, and overtook it",
                id,
                ahead
            );
            let last = self.started.iter().rev().find(|&&other| other > ahead);
            prop_assert!(last.is_none_or(|&last| id < last), "P2: {:?}, then {} past {}", last, id, ahead);
        }
        self.line.remove(place);
        self.started.push(id);
        if let Some((head, (length, _))) = self.line.first().and_then(|head| self.first.get_key_value(head)) {
            let overtakers = self.overtakers(*head).count();
            prop_assert!(overtakers < *length, "P2: {} of {} overtook {}", overtakers, length, head);
        }
        Ok(())
    }

    /// How often each of those that have started was overtaken until then, as the queue counts it.
    fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for (at, &id) in self.started.iter().enumerate() {
            let overtaken = self.started[..at].iter().filter(|&&other| other > id).count();
            let class = [0, 1, 3, 7, 15, 31, 63].iter().position(|&most| overtaken <= most);
            counters[class.unwrap_or(7)] += 1;
        }
        counters
    }
}

proptest! {
    #![proptest_config(cases(400))]

    /// P1 to P3, that counters count what can be seen, and that all jobs start while others end.
    #[test]
    fn nobody_starves_in_a_queue_that_is_fed_at_its_tail(steps in steps(), estimates in any::<bool>()) {
        let mut queue = queue(estimates);
        let mut log = Log::default();
        let mut running: Vec<usize> = Vec::new();
        let mut next = 0;
        let until_all_have_ended = (0..200).map(|_| Step::Ends(None));
        for step in steps.into_iter().chain(until_all_have_ended) {
            match step {
                Step::Comes(coming) => {
                    queue.arrive(Time::ZERO, coming.task(next)).expect("it fits the machine");
                    log.line.push(next);
                    next += 1;
                }
                Step::Ends(which) if !running.is_empty() => {
                    let id = running.remove(which.map_or(0, |which| which.index(running.len())));
                    prop_assert!(queue.finish(Time::ZERO, id));
                }
                Step::Leaves(which) if !log.line.is_empty() => {
                    let id = log.line.remove(which.index(log.line.len()));
                    prop_assert!(queue.withdraw(id));
                }
                Step::Ends(_) | Step::Leaves(_) => {}
            }
            for id in start(&mut queue) {
                log.starts(id)?;
                running.push(id);
            }
            let counters = counters(&queue);
            prop_assert!(counters.windows(2).all(|pair| pair[0].1 >= pair[1].1), "P1: {:?}", counters);
            let seen = log.line.iter().map(|&id| (id, log.overtakers(id).count() as u32));
            prop_assert_eq!(counters, seen.collect::<Vec<_>>(), "who came later and started earlier");
            prop_assert_eq!(queue.counters(), Some(&log.counters()));
        }
        prop_assert!(log.line.is_empty(), "all have started");
    }
}

/// A job that brings its counter and the time of its entry along, from where it waited before.
#[derive(Clone, Debug)]
struct Migrant {
    job: Coming,
    overtaken: u32,
    /// How long ago it entered.
    ago: u64,
    /// Whether it comes to start at once, if it may.
    at_once: bool,
}

fn migrant() -> impl Strategy<Value = Migrant> {
    let brings = (prop_oneof![2 => Just(0u32), 3 => 0u32..4], 0u64..20, any::<bool>());
    (coming(), brings).prop_map(|(job, (overtaken, ago, at_once))| Migrant { job, overtaken, ago, at_once })
}

/// A queue that jobs come to from elsewhere, and what was seen of it.
struct Station {
    queue: Jobs,
    /// Who waits: by time of entry, and whoever came first of those that entered together.
    line: Vec<(u64, usize)>,
    /// How often each was overtaken, by our own account.
    overtaken: BTreeMap<usize, u32>,
    running: Vec<usize>,
    next: usize,
}

impl Station {
    fn new(estimates: bool) -> Station {
        let (line, overtaken, running) = (Vec::new(), BTreeMap::new(), Vec::new());
        Station { queue: queue(estimates), line, overtaken, running, next: 0 }
    }

    /// A job comes at this time; as in the recipe, it comes to start at once only if there is room and the first here was
    /// not overtaken more often.
    fn comes(&mut self, now: u64, migrant: &Migrant) -> Result<(), TestCaseError> {
        let (id, entered) = (self.next, now.saturating_sub(migrant.ago));
        self.next += 1;
        let mut task = migrant.job.task(id);
        let bar = self.line.first().map_or(0, |(_, first)| self.overtaken[first]);
        let fits = task.amount.fits_in(self.queue.free());
        let at_once = migrant.at_once && fits && migrant.overtaken >= bar;
        let entered_at = Some(Time::from_secs(entered));
        task.wish = Wish { entered: entered_at, overtaken: migrant.overtaken, at_once, ..task.wish };
        self.queue.arrive(Time::from_secs(now), task).expect("it fits the machine");
        self.line.push((entered, id));
        self.line.sort_by_key(|(entered, _)| *entered);
        self.overtaken.insert(id, migrant.overtaken);
        self.starts(at_once.then_some(id))
    }

    fn ends(&mut self, which: usize) -> Result<(), TestCaseError> {
        if self.running.is_empty() {
            return Ok(());
        }
        let id = self.running.remove(which);
        prop_assert!(self.queue.finish(Time::ZERO, id));
        self.starts(None)
    }

    /// Whoever starts overtakes those who stand before it; `at_once` all others.
    fn starts(&mut self, at_once: Option<usize>) -> Result<(), TestCaseError> {
        let started = start(&mut self.queue);
        prop_assert!(at_once.is_none_or(|id| started.first() == Some(&id)), "{:?} started", started);
        for id in started {
            let place = self.line.iter().position(|(_, other)| *other == id).expect("who starts has waited");
            let (_, first) = self.line[0];
            self.line.remove(place);
            let passed = if at_once == Some(id) { &self.line[..] } else { &self.line[..place] };
            if at_once != Some(id) {
                let (own, bar) = (self.overtaken[&id], self.overtaken[&first]);
                prop_assert!(own >= bar, "{} was overtaken {} times, {} only {}", first, bar, id, own);
            }
            for (_, other) in passed {
                *self.overtaken.get_mut(other).expect("who waits has come") += 1;
            }
            self.running.push(id);
        }
        let seen: Vec<_> = self.line.iter().map(|(_, id)| (*id, self.overtaken[id])).collect();
        prop_assert_eq!(counters(&self.queue), seen, "what it brought, and who passed it here");
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(300))]

    /// P3 where counters come from elsewhere: every job starts while others end, and others still come.
    #[test]
    fn nobody_starves_where_counters_come_from_elsewhere(
        before in prop::collection::vec((migrant(), prop::option::of(any::<Index>())), 1..50),
        after in prop::collection::vec(migrant(), 400),
        estimates in any::<bool>(),
    ) {
        let mut station = Station::new(estimates);
        let mut now = 0;
        for (migrant, ends) in before {
            now += 1;
            station.comes(now, &migrant)?;
            if let Some(which) = ends.filter(|_| !station.running.is_empty()) {
                station.ends(which.index(station.running.len()))?;
            }
        }
        // From now on one ends for each that comes, the oldest first; those that come are small enough to slip in.
        let waited = station.next;
        for migrant in after {
            now += 1;
            station.ends(0)?;
            let job = Coming { amount: (1, migrant.job.amount.1 / 4, migrant.job.amount.2 / 4), ..migrant.job };
            station.comes(now, &Migrant { job, ..migrant })?;
        }
        let left: Vec<_> = station.line.iter().filter(|(_, id)| *id < waited).collect();
        prop_assert!(left.is_empty(), "{:?} still wait", left);
    }
}
