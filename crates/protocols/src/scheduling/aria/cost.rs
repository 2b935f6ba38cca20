//! A node's own queue, and what a job would cost in it: ETTC for jobs without a deadline, NAL for those with one.
//!
//! The kind of cost goes with the job, so that offers for one job are always of one kind, on nodes of any policy.

use std::collections::BTreeMap;
use std::fmt;

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{Epoch, JobId, Machine, Needs, NodeId, Resources, Span, Time};

use super::config::Config;
use crate::queue::{Policy, Queue, Task, Wish};

/// What a job costs, in microseconds; less is better.
///
/// ETTC: from now to its expected end. NAL: what all jobs with deadlines there are late together; if none is, less
/// than nothing: what they all have to spare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Cost(#[n(0)] pub i64);

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", Span::from_micros(self.0.unsigned_abs()))
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Cost {
    /// The most that an offer may cost to be better than this by what is asked for.
    pub fn below(self, config: &Config) -> Cost {
        let least = i64::from(config.threshold_ms).saturating_mul(1_000);
        let part = self.0.unsigned_abs() / 100 * u64::from(config.threshold_percent);
        let gain = least.max(i64::try_from(part).unwrap_or(i64::MAX));
        Cost(self.0.saturating_sub(gain))
    }
}

/// A job's placement in the queue.
pub type Place = (JobId, Epoch);

/// Where a job stands that is only asked about.
pub(super) const ASKED: Epoch = Epoch(u32::MAX);

/// The jobs that wait and run on this node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Local {
    queue: Queue<Place, Resources>,
    policy: Policy,
    exclusive: bool,
    nal_counts_running: bool,
    machine: Machine,
    /// The deadlines of those that run.
    running: BTreeMap<Place, Option<Time>>,
    /// How jobs that may come stand in the queue.
    expected: BTreeMap<JobId, Expected>,
    /// Jobs whose begin has not come, where nothing is planned for it: they do not stand in the queue yet.
    early: BTreeMap<Place, Task<Place, Resources>>,
    /// Counts what has changed.
    changes: u64,
}

/// By so much clocks of a grid may differ.
const CLOCKS_APART: Span = Span::from_secs(10);

/// How a job that may come stands in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expected {
    /// How often it was overtaken.
    pub overtaken: u32,
    /// When it entered the queue of its first run node.
    pub entered: Time,
    /// Whether it starts at once.
    pub at_once: bool,
}

/// How a waiting job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which.
    pub place: Place,
    /// How long it would still wait.
    pub wait: Span,
    /// What it has to spare until its deadline (γ); less than nothing if it will be late.
    pub spare: Option<i64>,
}

impl Local {
    /// An idle node.
    pub fn new(config: &Config, me: NodeId, machine: &Machine) -> Local {
        let policy = config.queue.of(me);
        Local {
            queue: Queue::new(policy, machine.capacity.clone()),
            policy,
            exclusive: config.exclusive,
            nal_counts_running: config.nal_counts_running,
            machine: machine.clone(),
            running: BTreeMap::new(),
            expected: BTreeMap::new(),
            early: BTreeMap::new(),
            changes: 0,
        }
    }

    /// What waits and runs.
    pub fn queue(&self) -> &Queue<Place, Resources> {
        &self.queue
    }

    /// Counts what has changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// A job that may come stands so in the queue.
    pub fn expect(&mut self, job: JobId, expected: Expected) {
        if self.expected.len() >= super::SEATS_MAX && !self.expected.contains_key(&job) {
            self.expected.clear();
        }
        self.expected.insert(job, expected);
    }

    /// A waiting job may leave; if it stays, it stands as before.
    pub fn set_aside(&mut self, place: Place) {
        let wish = self.queue.waiting().find(|task| task.id == place).map(|task| task.wish);
        if let Some(Wish { entered: Some(entered), overtaken, .. }) = wish {
            self.expect(place.0, Expected { overtaken, entered, at_once: false });
        }
    }

    /// Keeps so much of the machine for jobs that are on their way.
    pub fn hold(&mut self, held: Resources) {
        self.queue.hold(held);
        self.changes += 1;
    }

    /// Whether jobs that name their begin are planned for it here.
    pub fn reserves(&self) -> bool {
        self.policy == Policy::Reservation
    }

    /// Takes a job; false if it does not fit this machine.
    pub fn arrive(&mut self, now: Time, place: Place, needs: &Needs, priority: i16) -> bool {
        let mut task = self.task(place, needs, priority);
        let stands = self.expected.remove(&place.0);
        let Expected { overtaken, entered, at_once } =
            stands.unwrap_or(Expected { overtaken: 0, entered: now, at_once: false });
        task.wish = Wish { entered: Some(entered), overtaken, at_once, ..task.wish };
        self.changes += 1;
        if self.is_early(now, &task) {
            return task_fits(&task, &self.machine) && self.early.insert(place, task).is_none();
        }
        self.queue.arrive(now, task).is_ok()
    }

    /// Whether a job has to wait for its begin before it may stand in the queue.
    fn is_early(&self, now: Time, task: &Task<Place, Resources>) -> bool {
        !self.reserves() && task.wish.begin.is_some_and(|begin| begin > now)
    }

    /// A job that waits is taken away.
    pub fn withdraw(&mut self, place: Place) -> bool {
        self.changes += 1;
        self.early.remove(&place).is_some() || self.queue.withdraw(place)
    }

    /// A job that ran has ended.
    pub fn finish(&mut self, now: Time, place: Place) -> bool {
        self.running.remove(&place);
        self.changes += 1;
        self.queue.finish(now, place)
    }

    /// The jobs that start now.
    pub fn start(&mut self, now: Time) -> Vec<Place> {
        let due: Vec<Place> = self
            .early
            .iter()
            .filter(|(_, task)| task.wish.begin.is_none_or(|begin| begin <= now))
            .map(|(&place, _)| place)
            .collect();
        for task in due.into_iter().filter_map(|place| self.early.remove(&place)) {
            self.queue.arrive(now, task).expect("it fits, as it did when it came");
        }
        let waiting: BTreeMap<Place, Option<Time>> =
            self.queue.waiting().map(|task| (task.id, task.wish.deadline)).collect();
        let mut started = Vec::new();
        self.queue.start(now, &mut started);
        self.changes += started.len() as u64;
        self.running.extend(started.iter().map(|&place| (place, waiting.get(&place).copied().flatten())));
        started
    }

    /// When a job starts although nothing happens then.
    pub fn wake(&self) -> Option<Time> {
        let begins = self.early.values().filter_map(|task| task.wish.begin);
        begins.chain(self.queue.wake()).min()
    }

    /// Whether a job is on the machine, or has not left it yet.
    pub fn runs(&self, place: Place) -> bool {
        self.running.contains_key(&place)
    }

    /// Whether somebody waits.
    pub fn has_waiting(&self) -> bool {
        self.queue.waiting().next().is_some()
    }

    /// Jobs that wait and jobs that run.
    pub fn len(&self) -> (usize, usize) {
        (self.early.len() + self.queue.waiting().count(), self.running.len())
    }

    /// What a job would cost if it came now; none if it does not fit, or names a begin for which nothing is planned here.
    pub fn cost_of(&self, now: Time, job: JobId, needs: &Needs, priority: i16) -> Option<Cost> {
        let task = self.task((job, ASKED), needs, priority);
        // Whoever asks when it is time may have a clock that is a little ahead.
        let will_do = task_fits(&task, &self.machine) && !self.is_early(now + CLOCKS_APART, &task);
        will_do.then_some(())?;
        Some(self.cost(now, Some(&task), task.id, task.wish.deadline.is_some()))
    }

    /// What a waiting job costs here.
    pub fn cost_here(&self, now: Time, place: Place, has_deadline: bool) -> Cost {
        self.cost(now, None, place, has_deadline)
    }

    /// When a job would start if it came now.
    pub fn start_of(&self, now: Time, job: JobId, needs: &Needs, priority: i16) -> Time {
        let task = self.task((job, ASKED), needs, priority);
        let mut found = Time::NEVER;
        self.queue.forecast(now, Some(&task), |other, start, _| {
            if other.id == task.id {
                found = start;
            }
        });
        let begin = task.wish.begin.filter(|_| self.is_early(now, &task));
        begin.map_or(found, |begin| found.max(begin))
    }

    /// How all waiting jobs stand.
    pub fn standings(&self, now: Time) -> Vec<Standing> {
        let mut standings = Vec::new();
        self.queue.forecast(now, None, |task, start, end| {
            let spare = task.wish.deadline.map(|deadline| apart(deadline, end));
            standings.push(Standing { place: task.id, wait: start.since(now), spare });
        });
        standings
    }

    fn cost(&self, now: Time, extra: Option<&Task<Place, Resources>>, of: Place, has_deadline: bool) -> Cost {
        if !has_deadline {
            let mut cost = Cost(i64::MAX);
            self.queue.forecast(now, extra, |task, _, end| {
                if task.id == of {
                    cost = Cost(apart(end, now));
                }
            });
            return cost;
        }
        let mut late = 0i64;
        let mut spare = 0i64;
        let mut count = |deadline: Option<Time>, end: Time| {
            if let Some(gamma) = deadline.map(|deadline| apart(deadline, end)) {
                if gamma < 0 {
                    late = late.saturating_sub(gamma);
                } else {
                    spare = spare.saturating_add(gamma);
                }
            }
        };
        if self.nal_counts_running {
            for (place, end) in self.queue.running() {
                count(self.running.get(&place).copied().flatten(), end.max(now));
            }
        }
        self.queue.forecast(now, extra, |task, _, end| count(task.wish.deadline, end));
        Cost(if late > 0 { late } else { -spare })
    }

    fn task(&self, id: Place, needs: &Needs, priority: i16) -> Task<Place, Resources> {
        let amount = if self.exclusive { &self.machine.capacity } else { &needs.resources };
        let estimate = needs.estimate.unwrap_or(needs.limit);
        let (deadline, begin, estimated) = (needs.deadline, needs.begin, needs.estimate.is_some());
        let wish = Wish { deadline, priority, begin, estimated, ..Wish::default() };
        Task { wish, ..Task::new(id, amount.clone(), self.machine.speed.time_for(estimate)) }
    }
}

fn task_fits(task: &Task<Place, Resources>, machine: &Machine) -> bool {
    shoal_model::Amount::fits_in(&task.amount, &machine.capacity)
}

/// How much later one time is than another, in microseconds.
fn apart(later: Time, earlier: Time) -> i64 {
    let span = |span: Span| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    if later >= earlier { span(later.since(earlier)) } else { -span(earlier.since(later)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::aria::config::Order;

    const HOUR: i64 = 3_600_000_000;

    fn needs(hours: u64, deadline: Option<u64>) -> Needs {
        let deadline = deadline.map(|hours| Time::ZERO + Span::from_hours(hours));
        Needs { deadline, ..Needs::new(Resources::cores(1), Span::from_hours(hours)) }
    }

    fn local(policy: Policy, speed: u32) -> Local {
        let mut machine = Machine::with_capacity(Resources::cores(1));
        machine.speed = shoal_model::machine::Speed::new(speed.try_into().unwrap());
        Local::new(&Config { queue: Order::Each(policy), ..Config::default() }, NodeId(1), &machine)
    }

    fn place(number: u64) -> Place {
        (JobId::from_number(number), Epoch(1))
    }

    #[test]
    fn job_waits_for_its_begin_whatever_the_order_and_is_offered_a_place_where_that_is_planned() {
        let begin = Time::ZERO + Span::from_hours(2);
        let later = Needs { begin: Some(begin), ..needs(1, None) };
        for policy in Policy::ALL {
            let mut local = local(policy, 1_000);
            let asked = local.cost_of(Time::ZERO, JobId::from_number(2), &later, 0);
            assert_eq!(asked.is_some(), policy == Policy::Reservation, "{policy}");
            let nearly = Time::ZERO + Span::from_hours(2) - Span::from_secs(5);
            assert!(
                local.cost_of(nearly, JobId::from_number(2), &later, 0).is_some(),
                "{policy}: clocks differ"
            );
            assert!(local.arrive(Time::ZERO, place(1), &later, 0), "{policy}");
            assert_eq!(local.start(Time::ZERO), [], "{policy}");
            assert_eq!(local.wake(), Some(begin), "{policy}");
            assert_eq!(local.start(nearly), [], "{policy}");
            assert_eq!(local.start(begin), [place(1)], "{policy}");
            assert!(local.arrive(Time::ZERO, place(3), &later, 0) && local.withdraw(place(3)), "{policy}");
            assert!(!local.withdraw(place(3)), "{policy}: it is gone");
        }
    }

    #[test]
    fn ettc_is_the_rest_of_the_running_job_and_all_up_to_this_one() {
        let mut local = local(Policy::Fcfs, 2_000);
        for number in [1, 2] {
            assert!(local.arrive(Time::ZERO, place(number), &needs(4, None), 0));
        }
        assert_eq!(local.start(Time::ZERO), [place(1)]);
        let now = Time::ZERO + Span::from_hours(1);
        let asked = JobId::from_number(9);
        // On a machine of twice the speed: one hour is left of the first, two of the second, three of its own.
        assert_eq!(local.cost_of(now, asked, &needs(6, None), 0), Some(Cost(6 * HOUR)));
        assert_eq!(local.cost_here(now, place(2), false), Cost(3 * HOUR));
        let late = Time::ZERO + Span::from_hours(9);
        assert_eq!(
            local.cost_of(late, asked, &needs(6, None), 0),
            Some(Cost(5 * HOUR)),
            "it should have ended"
        );
    }

    #[test]
    fn nal_of_three_jobs_in_time_is_what_they_have_to_spare() {
        // γ = 2 h, 1 h, 3 h: −6 h; with γ = 2 h, −1 h, 3 h: +1 h (the paper's example).
        for (middle, expected) in [(4, -6 * HOUR), (2, HOUR)] {
            let mut local = local(Policy::Fcfs, 1_000);
            let jobs = [needs(1, Some(3)), needs(2, Some(middle)), needs(1, Some(7))];
            local.arrive(Time::ZERO, place(1), &jobs[0], 0);
            local.arrive(Time::ZERO, place(2), &jobs[1], 0);
            let cost = local.cost_of(Time::ZERO, JobId::from_number(3), &jobs[2], 0);
            assert_eq!(cost, Some(Cost(expected)));
            local.start(Time::ZERO);
            let cost = local.cost_of(Time::ZERO, JobId::from_number(3), &jobs[2], 0);
            assert_eq!(cost, Some(Cost(expected)), "the same once the first one runs");
        }
    }

    #[test]
    fn running_job_counts_in_nal_only_if_it_is_to() {
        let config = Config { nal_counts_running: false, ..Config::default() };
        let mut local = Local::new(&config, NodeId(1), &Machine::with_capacity(Resources::cores(1)));
        local.arrive(Time::ZERO, place(1), &needs(1, Some(3)), 0);
        local.start(Time::ZERO);
        let cost = local.cost_of(Time::ZERO, JobId::from_number(2), &needs(1, Some(9)), 0);
        assert_eq!(cost, Some(Cost(-7 * HOUR)));
    }

    #[test]
    fn threshold_is_the_larger_of_the_absolute_and_the_relative() {
        let config = Config { threshold_ms: 3_600_000, threshold_percent: 10, ..Config::default() };
        assert_eq!(Cost(5 * HOUR).below(&config), Cost(4 * HOUR));
        assert_eq!(Cost(100 * HOUR).below(&config), Cost(90 * HOUR));
        assert_eq!(Cost(-100 * HOUR).below(&config), Cost(-110 * HOUR));
    }

    #[test]
    fn jobs_share_a_machine_unless_each_has_it_to_itself() {
        let machine = Machine::with_capacity(Resources::cores(4));
        for (exclusive, expected) in [(true, 3 * HOUR), (false, HOUR)] {
            let config = Config { exclusive, ..Config::default() };
            let mut local = Local::new(&config, NodeId(1), &machine);
            local.arrive(Time::ZERO, place(1), &needs(2, None), 0);
            local.start(Time::ZERO);
            let cost = local.cost_of(Time::ZERO, JobId::from_number(2), &needs(1, None), 0);
            assert_eq!(cost, Some(Cost(expected)));
        }
    }
}
