//! Backfilling with a counter (Lee, Keleher, Sussman 2010, IV-A): no running times are needed, and nobody starves.
//!
//! Each job counts how many have overtaken it. When the first in the queue does not fit, those may start that fit now and
//! were overtaken at least as often as the first; of these, whoever leaves the machine fullest and most evenly used. Then
//! everybody ahead of it has been overtaken once more. So in a queue that is fed at its tail counters never grow along
//! it: only who waited already when the first was first overtaken can overtake it, and each of them once.
//!
//! Where users say how long their jobs will take, this can be used as in EASY: a job with an estimate then overtakes only if
//! it will have ended when the first can start, or leaves room for it. That leaves fewer who may overtake, and changes
//! nothing of the above.
//!
//! A job can bring its counter and the time of its entry from another node, and can have come to start at once: then it
//! overtakes everybody here.

use shoal_model::{Amount, Resources, Time};

use super::Task;
use super::running::Running;

/// The whole of something, for [`Shares`].
pub const WHOLE: u64 = 1 << 20;

/// An amount of which the parts of a whole can be told, component by component.
pub trait Shares: Amount {
    /// How much of each component of `whole` this is, of [`WHOLE`]; nothing where the whole has nothing.
    fn shares(&self, whole: &Self) -> [u64; 4];

    /// How many components there is something of.
    fn components(&self) -> u64;
}

impl Shares for u32 {
    fn shares(&self, whole: &u32) -> [u64; 4] {
        [share(u64::from(*self), u64::from(*whole)), 0, 0, 0]
    }

    fn components(&self) -> u64 {
        1
    }
}

impl Shares for Resources {
    fn shares(&self, whole: &Resources) -> [u64; 4] {
        [
            share(u64::from(self.cores.get()), u64::from(whole.cores.get())),
            share(self.memory.as_bytes(), whole.memory.as_bytes()),
            share(self.disk.as_bytes(), whole.disk.as_bytes()),
            share(u64::from(self.gpus.get()), u64::from(whole.gpus.get())),
        ]
    }

    fn components(&self) -> u64 {
        self.shares(self).iter().filter(|&&share| share > 0).count() as u64
    }
}

fn share(part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { (u128::from(part) * u128::from(WHOLE) / u128::from(whole)) as u64 }
}

/// How badly a machine is used with these shares taken: balance measure times fullness modifier, of [`WHOLE`]; less is
/// better, and nothing is perfect.
pub fn misfit(used: &[u64; 4], components: u64) -> u64 {
    let sum = used.iter().fold(0u64, |sum, &part| sum.saturating_add(part));
    let most = used.iter().copied().max().unwrap_or(0);
    if sum == 0 || components == 0 {
        return WHOLE;
    }
    // max / (sum / K) · (1 − sum / K), with sum / K in parts of WHOLE.
    let unused = (components * WHOLE).saturating_sub(sum);
    (u128::from(most) * u128::from(unused) / u128::from(sum)).try_into().unwrap_or(u64::MAX)
}

/// What is used of a capacity when `left` of it is left and `more` is taken.
pub fn used_with<A: Shares>(capacity: &A, left: &A, more: &A) -> [u64; 4] {
    let (left, more, whole) = (left.shares(capacity), more.shares(capacity), capacity.shares(capacity));
    std::array::from_fn(|at| (whole[at] - left[at].min(whole[at])).saturating_add(more[at]))
}

/// How many jobs have started after they had been overtaken so often: never, once, up to 3, 7, 15, 31, 63 times, or more.
pub type Counters = [u64; 8];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backfill<K, A> {
    capacity: A,
    pub(super) running: Running<K, A>,
    /// By time of entry.
    pub(super) waiting: Vec<Task<K, A>>,
    /// What is kept for jobs that are on their way here.
    held: A,
    /// Whether estimates count.
    estimates: bool,
    /// What the counters of those that have started said.
    pub(super) started: Counters,
}

impl<K: Copy + Ord, A: Shares> Backfill<K, A> {
    pub(super) fn new(capacity: A, estimates: bool) -> Backfill<K, A> {
        let running = Running::new(capacity.clone());
        let started = Counters::default();
        Backfill { capacity, running, waiting: Vec::new(), held: A::default(), estimates, started }
    }

    pub(super) fn arrive(&mut self, task: Task<K, A>) {
        let at = match task.wish.entered {
            Some(entered) => {
                self.waiting.partition_point(|other| other.wish.entered.is_none_or(|other| other <= entered))
            }
            None => self.waiting.len(),
        };
        self.waiting.insert(at, task);
    }

    pub(super) fn finish(&mut self, id: K) -> bool {
        self.running.finish(id).is_some()
    }

    pub(super) fn withdraw(&mut self, id: K) -> bool {
        let place = self.waiting.iter().position(|task| task.id == id);
        place.map(|place| self.waiting.remove(place)).is_some()
    }

    pub(super) fn hold(&mut self, held: A) {
        self.held = held;
    }

    fn fits(&self, amount: &A) -> bool {
        let taken = amount.plus(&self.held);
        taken.fits_in(self.running.free())
    }

    pub(super) fn start(&mut self, now: Time, started: &mut Vec<K>) {
        self.start_expected(now, started);
        loop {
            while self.waiting.first().is_some_and(|first| self.fits(&first.amount)) {
                self.start_one(0, now, started);
            }
            let Some(best) = self.best(now) else { return };
            for ahead in &mut self.waiting[..best] {
                ahead.wish.overtaken = ahead.wish.overtaken.saturating_add(1);
            }
            self.start_one(best, now, started);
        }
    }

    /// Jobs that came to start at once do, if they still can; what was held for them is theirs.
    fn start_expected(&mut self, now: Time, started: &mut Vec<K>) {
        while let Some(at) = self.waiting.iter().position(|task| task.wish.at_once) {
            self.waiting[at].wish.at_once = false;
            if self.waiting[at].amount.fits_in(self.running.free()) {
                self.start_one(at, now, started);
                for other in &mut self.waiting {
                    other.wish.overtaken = other.wish.overtaken.saturating_add(1);
                }
            }
        }
    }

    fn start_one(&mut self, at: usize, now: Time, started: &mut Vec<K>) {
        let task = self.waiting.remove(at);
        let bits = (u32::BITS - task.wish.overtaken.leading_zeros()) as usize;
        self.started[bits.min(self.started.len() - 1)] += 1;
        started.push(task.id);
        self.running.start(task.id, task.amount, now + task.limit);
    }

    /// Who may overtake the first, and is best for the machine.
    fn best(&self, now: Time) -> Option<usize> {
        let first = self.waiting.first()?;
        let bar = first.wish.overtaken;
        let shadow = self.estimates.then(|| self.running.fits_at(now, &first.amount));
        let shadow = shadow.map(|(time, free)| (time, free.minus(&first.amount)));
        let delays = |task: &Task<K, A>| {
            shadow.as_ref().is_some_and(|(time, extra)| {
                task.wish.estimated && now + task.limit > *time && !task.amount.fits_in(extra)
            })
        };
        let components = self.capacity.components();
        let fullness = |task: &Task<K, A>| {
            misfit(&used_with(&self.capacity, self.running.free(), &task.amount), components)
        };
        self.waiting
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, task)| task.wish.overtaken >= bar && self.fits(&task.amount) && !delays(task))
            .min_by_key(|&(at, task)| (fullness(task), at))
            .map(|(at, _)| at)
    }
}

#[cfg(test)]
mod laws;

#[cfg(test)]
mod tests {
    use shoal_model::units::Size;
    use shoal_model::{Span, Time};

    use super::super::{Policy, Queue, Task, Wish};
    use super::*;

    fn resources((cores, memory, disk): (u32, u64, u64)) -> Resources {
        Resources::cores(cores).with_memory(Size::from_gib(memory)).with_disk(Size::from_gib(disk))
    }

    fn queue() -> Queue<usize, Resources> {
        Queue::new(Policy::Backfill, resources((8, 8, 8)))
    }

    fn arrive(queue: &mut Queue<usize, Resources>, id: usize, amount: (u32, u64, u64)) {
        let task = Task::new(id, resources(amount), Span::from_secs(60));
        queue.arrive(Time::ZERO, task).unwrap();
    }

    fn start(queue: &mut Queue<usize, Resources>) -> Vec<usize> {
        let mut started = Vec::new();
        queue.start(Time::ZERO, &mut started);
        started
    }

    fn counters(queue: &Queue<usize, Resources>) -> Vec<(usize, u32)> {
        queue.waiting().map(|task| (task.id, task.wish.overtaken)).collect()
    }

    #[test]
    fn measures_are_those_of_the_formulas() {
        let half = WHOLE / 2;
        // Even: BM = 1, FM = 1/2.
        assert_eq!(misfit(&[half, half, half, 0], 3), half);
        // max 1, average 1/2: BM = 2, FM = 1/2.
        assert_eq!(misfit(&[WHOLE, half, 0, 0], 3), WHOLE);
        assert_eq!(misfit(&[WHOLE, WHOLE, WHOLE, 0], 3), 0, "full is perfect");
        assert_eq!(misfit(&[0; 4], 3), WHOLE, "nothing is guarded");
        assert_eq!(misfit(&[WHOLE, WHOLE, WHOLE, WHOLE], 4), 0, "GPUs are a further component");
    }

    #[test]
    fn best_fit_overtakes_and_those_ahead_count_it() {
        let mut queue = queue();
        arrive(&mut queue, 0, (6, 1, 1));
        assert_eq!(start(&mut queue), [0]);
        arrive(&mut queue, 1, (4, 1, 1));
        arrive(&mut queue, 2, (1, 0, 0));
        arrive(&mut queue, 3, (1, 7, 7));
        arrive(&mut queue, 4, (3, 1, 1));
        // 3 makes the machine fullest; 2 was ahead of it and is overtaken too, so that 1 is overtaken at most as often.
        assert_eq!(start(&mut queue), [3, 2]);
        assert_eq!(counters(&queue), [(1, 2), (4, 0)]);
        // 4 has never been overtaken: it may not overtake 1, whatever ends.
        assert!(queue.finish(Time::ZERO, 2));
        assert_eq!(start(&mut queue), [0usize; 0]);
        assert!(queue.finish(Time::ZERO, 0));
        assert_eq!(start(&mut queue), [1], "3 has most of the memory");
        assert_eq!(queue.counters(), Some(&[2, 1, 1, 0, 0, 0, 0, 0]), "2 was overtaken once, 1 twice");
    }

    #[test]
    fn migrant_comes_with_its_counter_and_starts_at_once_past_all() {
        let mut queue = queue();
        arrive(&mut queue, 0, (6, 1, 1));
        arrive(&mut queue, 1, (4, 1, 1));
        assert_eq!(start(&mut queue), [0]);
        let wish = Wish { at_once: true, overtaken: 3, ..Wish::default() };
        let task = Task { wish, ..Task::new(9, resources((2, 1, 1)), Span::from_secs(1)) };
        queue.arrive(Time::ZERO, task).unwrap();
        assert_eq!(start(&mut queue), [9]);
        assert_eq!(counters(&queue), [(1, 1)]);
        assert_eq!(queue.bar(), 1);
    }

    #[test]
    fn what_is_held_for_others_is_not_taken() {
        let mut queue = queue();
        queue.hold(resources((6, 0, 0)));
        arrive(&mut queue, 0, (4, 1, 1));
        assert_eq!(start(&mut queue), [0usize; 0]);
        queue.hold(Resources::NONE);
        assert_eq!(start(&mut queue), [0]);
    }

    #[test]
    fn moved_job_stands_where_its_entry_puts_it() {
        let mut queue = queue();
        arrive(&mut queue, 0, (8, 1, 1));
        start(&mut queue);
        let entered = |id, secs| {
            let wish = Wish { entered: Some(Time::from_secs(secs)), ..Wish::default() };
            Task { wish, ..Task::new(id, resources((8, 1, 1)), Span::from_secs(1)) }
        };
        for (id, secs) in [(1, 10), (2, 30), (3, 20)] {
            queue.arrive(Time::from_secs(40), entered(id, secs)).unwrap();
        }
        assert_eq!(counters(&queue).iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 3, 2]);
    }

    #[test]
    fn job_with_an_estimate_overtakes_only_if_the_first_is_not_delayed() {
        let estimated = |id: usize, cores: u32, secs: u64| {
            let wish = Wish { estimated: true, ..Wish::default() };
            Task { wish, ..Task::new(id, resources((cores, 1, 1)), Span::from_secs(secs)) }
        };
        // The first can start at 100 s, with three cores to spare.
        for (cores, secs, may) in [(4, 100, true), (4, 101, false), (3, 5_000, true), (4, 5_000, false)] {
            for policy in [Policy::Backfill, Policy::BackfillEstimates] {
                let mut queue = Queue::new(policy, resources((8, 8, 8)));
                queue.arrive(Time::ZERO, estimated(0, 4, 100)).unwrap();
                assert_eq!(start(&mut queue), [0]);
                queue.arrive(Time::ZERO, estimated(1, 5, 50)).unwrap();
                queue.arrive(Time::ZERO, estimated(2, cores, secs)).unwrap();
                let overtakes = start(&mut queue) == [2];
                assert_eq!(
                    overtakes,
                    may || policy == Policy::Backfill,
                    "{cores} cores for {secs} s, {policy}"
                );
                if policy == Policy::BackfillEstimates {
                    let then = Time::from_secs(100);
                    assert!(queue.finish(then, 0) && (secs > 100 || queue.finish(then, 2)));
                    let mut started = Vec::new();
                    queue.start(then, &mut started);
                    assert_eq!(started.first(), Some(&1), "it starts when it could have without the other");
                }
            }
        }
    }
}
