//! When waiting jobs would end if all ran exactly to their limits: what a cost is made of.

use shoal_model::Time;

use super::backfill::Shares;
use super::{Discipline, Queue, Task};

impl<K: Copy + Ord, A: Shares> Queue<K, A> {
    /// Tells of each waiting job, and of one more if it came now, when it would start and end if all jobs, those that
    /// run included, ran exactly to their limits. A running job that has outlived its limit is taken to end now.
    pub fn forecast(
        &self,
        now: Time,
        extra: Option<&Task<K, A>>,
        mut visit: impl FnMut(&Task<K, A>, Time, Time),
    ) {
        let alone = self.sharers == 0 && extra.is_none_or(|task| task.amount == self.capacity);
        match &self.discipline {
            // One after the other: no need to play it through.
            Discipline::Fcfs(queue) if alone => {
                let tasks = queue.waiting.iter().chain(extra);
                self.one_by_one(now, tasks, &mut visit);
            }
            Discipline::Sorted(queue) if alone => {
                let place = extra.map_or(queue.waiting.len(), |task| queue.place(task));
                let (before, after) = queue.waiting.split_at(place);
                self.one_by_one(now, before.iter().chain(extra).chain(after), &mut visit);
            }
            Discipline::Fcfs(_)
            | Discipline::Sorted(_)
            | Discipline::Easy(_)
            | Discipline::Conservative(_)
            | Discipline::Backfill(_) => {
                self.play(now, extra, &mut visit);
            }
        }
    }

    /// Each running job and when it must have ended.
    pub fn running(&self) -> impl Iterator<Item = (K, Time)> + '_ {
        self.running_jobs().ends()
    }

    fn one_by_one<'a>(
        &self,
        now: Time,
        tasks: impl Iterator<Item = &'a Task<K, A>>,
        visit: &mut impl FnMut(&Task<K, A>, Time, Time),
    ) where
        K: 'a,
        A: 'a,
    {
        let mut free = self.running().map(|(_, end)| end).fold(now, Time::max);
        for task in tasks {
            let start = free;
            free += task.limit;
            visit(task, start, free);
        }
    }

    /// Any policy, by letting it happen.
    fn play(&self, now: Time, extra: Option<&Task<K, A>>, visit: &mut impl FnMut(&Task<K, A>, Time, Time)) {
        let mut queue = self.clone();
        let over: Vec<K> = queue.running().filter(|(_, end)| *end <= now).map(|(id, _)| id).collect();
        over.into_iter().for_each(|id| assert!(queue.finish(now, id), "it runs"));
        if let Some(task) = extra
            && queue.arrive(now, task.clone()).is_err()
        {
            return;
        }
        let tasks: Vec<Task<K, A>> = queue.waiting().cloned().collect();
        let (mut at, mut left, mut started) = (now, tasks.len(), Vec::new());
        while left > 0 {
            let over: Vec<K> = queue.running().filter(|(_, end)| *end <= at).map(|(id, _)| id).collect();
            over.into_iter().for_each(|id| {
                queue.finish(at, id);
            });
            queue.start(at, &mut started);
            for id in started.drain(..) {
                left -= 1;
                if let Some(task) = tasks.iter().find(|task| task.id == id) {
                    visit(task, at, at + task.limit);
                }
            }
            let end = queue.running().map(|(_, end)| end).min();
            // Nothing more will ever start: a reservation beyond the end of time.
            let Some(next) = [end, queue.wake()].into_iter().flatten().min() else { return };
            if next == Time::NEVER {
                return;
            }
            at = at.max(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shoal_model::Span;

    use super::super::{Policy, Wish};
    use super::*;
    use crate::testing::cases;

    type Drawn = (u32, u64, u64, i16);

    fn task(id: usize, &(amount, limit, deadline, priority): &Drawn) -> Task<usize, u32> {
        let wish = Wish { deadline: Some(Time::from_secs(deadline)), priority, ..Wish::default() };
        Task { wish, ..Task::new(id, amount, Span::from_secs(limit)) }
    }

    fn told(
        queue: &Queue<usize, u32>,
        now: Time,
        extra: Option<&Task<usize, u32>>,
    ) -> Vec<(usize, Time, Time)> {
        let mut told = Vec::new();
        queue.forecast(now, extra, |task, start, end| told.push((task.id, start, end)));
        told.sort_unstable();
        told
    }

    /// Whether jobs share the node or take turns decides which of the two ways is taken.
    fn amounts(alone: bool) -> std::ops::RangeInclusive<u32> {
        if alone { 4..=4 } else { 1..=4 }
    }

    fn scene() -> impl Strategy<Value = (Vec<Drawn>, Drawn)> {
        any::<bool>().prop_flat_map(|alone| {
            let drawn = (amounts(alone), 1u64..50, 1u64..200, -2i16..3);
            (prop::collection::vec(drawn.clone(), 0..8), drawn)
        })
    }

    proptest! {
        #![proptest_config(cases(500))]

        /// What is foretold is what happens when nothing else does.
        #[test]
        fn forecast_comes_true((jobs, extra) in scene(), policy in 0usize..Policy::ALL.len(), pause in 0u64..40) {
            let mut queue = Queue::new(Policy::ALL[policy], 4u32);
            let mut started = Vec::new();
            for (id, drawn) in jobs.iter().enumerate() {
                queue.arrive(Time::ZERO, task(id, drawn)).unwrap();
            }
            queue.start(Time::ZERO, &mut started);
            let mut happened = Vec::new();
            let mut second = 0;
            let extra = task(99, &extra);
            let mut foretold = Vec::new();
            while second <= 1_000 {
                let now = Time::from_secs(second);
                let over: Vec<usize> = queue.running().filter(|(_, end)| *end <= now).map(|(id, _)| id).collect();
                over.into_iter().for_each(|id| assert!(queue.finish(now, id)));
                if second == pause {
                    queue.start(now, &mut started);
                    foretold = told(&queue, now, Some(&extra));
                    queue.arrive(now, extra).unwrap();
                }
                started.clear();
                queue.start(now, &mut started);
                if second >= pause {
                    let ends: Vec<(usize, Time)> = queue.running().collect();
                    let end = |id: usize| ends.iter().find(|(other, _)| *other == id).expect("it runs").1;
                    happened.extend(started.iter().map(|&id| (id, now, end(id))));
                }
                second += 1;
            }
            happened.sort_unstable();
            prop_assert_eq!(foretold, happened, "{}", Policy::ALL[policy]);
        }
    }

    #[test]
    fn job_that_has_outlived_its_limit_is_taken_to_end_now() {
        for policy in Policy::ALL {
            let mut queue = Queue::new(policy, 1u32);
            queue.arrive(Time::ZERO, Task::new(1, 1, Span::from_secs(10))).unwrap();
            queue.start(Time::ZERO, &mut Vec::new());
            let (now, extra) = (Time::from_secs(60), Task::new(2, 1, Span::from_secs(5)));
            assert_eq!(told(&queue, now, Some(&extra)), [(2, now, Time::from_secs(65))], "{policy}");
        }
    }
}
