//! CENT, after Lee, Keleher and Sussman: one queue and one scheduler that knows all machines, free of cost.
//!
//! On each arrival and each end the queue is looked through in order. A job for which machines have room starts there,
//! on those with the least BM·FM over speed; others are passed over. No estimate is looked at, and nobody waits for
//! room on purpose, so it bounds nothing: a wide job may be passed over for long.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use shoal_model::machine::{Machine, Speed};
use shoal_model::matching::{Needs, matches};
use shoal_model::{Amount, Resources, Span, Time};
use shoal_protocols::queue::backfill::{Shares, misfit, used_with};

use super::length;
use super::outcome::Placed;
use crate::processes::takes_on;
use crate::workload::Workload;

/// A job as CENT sees it.
#[derive(Clone, Debug)]
pub struct Wish {
    /// When it comes.
    pub at: Time,
    /// What it needs, and of how many machines at once.
    pub needs: Needs,
    /// How long it runs.
    pub takes: Takes,
}

/// How long a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// As long on any machine.
    Anywhere(Span),
    /// So long on the baseline machine, less on a faster one; and so many microseconds more, or less, on any.
    Work(Span, i64),
}

/// Where and when a job started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// When.
    pub at: Time,
    /// When it ends: gangs end with the slowest of their machines.
    pub end: Time,
    /// By their places in the list of machines.
    pub machines: Vec<usize>,
}

impl Takes {
    fn on(self, speed: Speed) -> Span {
        match self {
            Takes::Anywhere(span) => span,
            Takes::Work(base, drift) => takes_on(speed, base, drift),
        }
    }
}

/// What becomes of jobs, in order of submission; none for one that never finds room.
pub fn run(jobs: &[Wish], machines: &[Machine]) -> Vec<Option<Started>> {
    let mut free: Vec<Resources> = machines.iter().map(|machine| machine.capacity.clone()).collect();
    let mut ends: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let mut starts: Vec<Option<Started>> = vec![None; jobs.len()];
    let mut waiting: Vec<usize> = Vec::new();
    let all: Vec<usize> = (0..machines.len()).collect();
    let mut freed: Vec<usize> = Vec::new();
    let mut next = 0;
    loop {
        let end = ends.peek().map(|Reverse((end, _))| *end);
        let arrival = jobs.get(next).map(|job| job.at);
        let Some(now) = [end, arrival].into_iter().flatten().min() else { return starts };
        while let Some(Reverse((end, job))) = ends.peek().copied()
            && end == now
        {
            ends.pop();
            for &place in starts[job].iter().flat_map(|started| &started.machines) {
                free[place] = free[place].plus(&jobs[job].needs.resources);
                freed.push(place);
            }
        }
        freed.sort_unstable();
        freed.dedup();
        let first_new = next;
        while jobs.get(next).is_some_and(|job| job.at == now) {
            waiting.push(next);
            next += 1;
        }
        waiting.retain(|&job| {
            let Wish { ref needs, takes, .. } = jobs[job];
            // What has waited for one machine fitted on none when it was last looked at: only where something has ended
            // since may it now.
            let places = if job < first_new && needs.nodes.get() == 1 { &freed } else { &all };
            let Some(found) = best(needs, places, &free, machines) else { return true };
            let longest = found.iter().map(|&place| takes.on(machines[place].speed)).max();
            let end = now + longest.unwrap_or(Span::ZERO);
            for &place in &found {
                free[place] = free[place].minus(&needs.resources);
            }
            ends.push(Reverse((end, job)));
            starts[job] = Some(Started { at: now, end, machines: found });
            false
        });
        freed.clear();
    }
}

/// Those of some machines that suit a job best, if there are enough.
fn best(needs: &Needs, places: &[usize], free: &[Resources], machines: &[Machine]) -> Option<Vec<usize>> {
    let fits = |place: usize| {
        needs.resources.fits_in(&free[place])
            && (needs.requires.is_none() || matches(needs, &machines[place]))
    };
    let fits = places.iter().copied().filter(|&place| fits(place));
    let misfit = |&place: &usize| fit(&needs.resources, &free[place], &machines[place]);
    let width = needs.nodes.get() as usize;
    if width == 1 {
        return fits.min_by_key(misfit).map(|place| vec![place]);
    }
    let mut fits: Vec<usize> = fits.collect();
    fits.sort_by_cached_key(misfit);
    fits.truncate(width);
    (fits.len() == width).then_some(fits)
}

fn fit(needs: &Resources, free: &Resources, machine: &Machine) -> u64 {
    let used = used_with(&machine.capacity, free, needs);
    misfit(&used, machine.capacity.components()).saturating_mul(1_000)
        / u64::from(machine.speed.thousandths())
}

/// What becomes of the jobs of a workload, whose width is told in cores; none for one that never finds room.
pub fn place(workload: &Workload, machines: &[Machine]) -> Vec<Option<Placed>> {
    let wishes: Vec<Wish> = workload
        .jobs
        .iter()
        .enumerate()
        .map(|(number, job)| {
            let (needs, takes) = match workload.profiles.get(number) {
                None => (Needs::new(Resources::cores(1), job.requested), Takes::Anywhere(length(job))),
                Some(profile) => {
                    let mut needs = Needs::new(profile.resources.clone(), job.requested);
                    needs.requires = profile.requires.clone();
                    (needs, Takes::Work(profile.estimate, profile.drift))
                }
            };
            let nodes = NonZeroU32::new(job.width).unwrap_or(NonZeroU32::MIN);
            Wish { at: job.submit, needs: Needs { nodes, ..needs }, takes }
        })
        .collect();
    let placed = run(&wishes, machines).into_iter().zip(&wishes).zip(&workload.jobs);
    placed
        .map(|((started, wish), job)| {
            let Started { at: start, end, .. } = started?;
            let cores = wish.needs.resources.cores.get().div_ceil(1_000);
            let width = wish.needs.nodes.get().saturating_mul(cores);
            Some(Placed { id: job.id, width, submit: job.submit, start, end, wait: start.since(job.submit) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use shoal_model::Architecture;
    use shoal_model::job::Requires;

    use super::*;
    use crate::workload::Desktop;
    use crate::workload::generate::desktop;

    /// Jobs for small machines, every third of two or three of them, every fourth for a kind that every second is; the
    /// last is for more than there are.
    fn drawn(seed: u64, machines: usize) -> (Vec<Wish>, Vec<Machine>) {
        let mut luck = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut machines: Vec<Machine> = (0..machines).map(|_| desktop::machine(&mut luck)).collect();
        let arm: Architecture = "aarch64".parse().expect("a known architecture");
        for machine in machines.iter_mut().step_by(2) {
            machine.architecture = arm.clone();
        }
        let arm = Arc::new(Requires { architecture: Some(arm), ..Requires::default() });
        let mut at = Time::ZERO;
        let mut jobs: Vec<Wish> = (0..50)
            .map(|number| {
                at += Span::from_secs(luck.random_range(0..400));
                let mut needs = Needs::new(desktop::needs(40, &mut luck, &machines), Span::from_hours(9));
                if number % 3 == 0 {
                    needs.nodes = NonZeroU32::new(luck.random_range(2..4)).expect("two or three");
                }
                if number % 4 == 0 {
                    needs.requires = Some(Arc::clone(&arm));
                }
                Wish { at, needs, takes: Takes::Work(Span::from_secs(luck.random_range(600..7_200)), 0) }
            })
            .collect();
        if let Some(last) = jobs.last_mut() {
            last.needs.nodes = NonZeroU32::new(machines.len() as u32 + 1).expect("more than one");
        }
        (jobs, machines)
    }

    /// The same by its definition: at each moment whoever waits is looked for a place everywhere, with room counted anew.
    fn by_definition(jobs: &[Wish], machines: &[Machine]) -> Vec<Option<Started>> {
        let mut starts: Vec<Option<Started>> = vec![None; jobs.len()];
        let mut now = Some(Time::ZERO);
        while let Some(moment) = now {
            for job in (0..jobs.len()).filter(|&job| jobs[job].at <= moment) {
                if starts[job].is_some() {
                    continue;
                }
                let Wish { needs, takes, .. } = &jobs[job];
                let free = |place: usize| {
                    let here = |other: &usize| {
                        let started = starts[*other].as_ref();
                        started.is_some_and(|it| it.machines.contains(&place) && it.end > moment)
                    };
                    (0..jobs.len()).filter(here).fold(machines[place].capacity.clone(), |free, other| {
                        free.minus(&jobs[other].needs.resources)
                    })
                };
                let mut fits: Vec<(u64, usize)> = (0..machines.len())
                    .map(|place| (place, free(place)))
                    .filter(|(_, free)| needs.resources.fits_in(free))
                    .filter(|&(place, _)| needs.requires.is_none() || place % 2 == 0)
                    .map(|(place, free)| (fit(&needs.resources, &free, &machines[place]), place))
                    .collect();
                fits.sort_unstable();
                let places: Vec<usize> =
                    fits.iter().map(|&(_, place)| place).take(needs.nodes.get() as usize).collect();
                if places.len() == needs.nodes.get() as usize {
                    let longest = places.iter().map(|&place| takes.on(machines[place].speed)).max();
                    let end = moment + longest.expect("at least one machine");
                    starts[job] = Some(Started { at: moment, end, machines: places });
                }
            }
            let ends = starts.iter().flatten().map(|started| started.end);
            now = jobs.iter().map(|job| job.at).chain(ends).filter(|&at| at > moment).min();
        }
        starts
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 24,
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn jobs_start_when_and_where_the_definition_says(seed in 0u64..1_000, machines in 3usize..14) {
            let (jobs, machines) = drawn(seed, machines);
            let starts = run(&jobs, &machines);
            prop_assert!(starts.last().is_some_and(Option::is_none), "for more machines than there are");
            prop_assert_eq!(starts, by_definition(&jobs, &machines));
        }
    }

    #[test]
    fn jobs_of_a_workload_get_what_they_need_and_no_machine_more_than_it_has() {
        let desktop = Desktop { nodes: 20, jobs: 200, gap_secs: 100.0, ratio: 0.4 };
        let workload = desktop.generate(3).expect("jobs");
        let machines =
            crate::workload::profiles::machines(crate::workload::profiles::Profiles::Desktop, 20, 3);
        let placed = place(&workload, &machines);
        let cores: u32 = machines.iter().map(|machine| machine.capacity.cores.get() / 1_000).sum();
        let placed: Vec<Placed> = placed.into_iter().map(|job| job.expect("each fits somewhere")).collect();
        let widest = placed.iter().map(|at| {
            placed
                .iter()
                .filter(|job| job.start <= at.start && at.start < job.end)
                .map(|job| job.width)
                .sum::<u32>()
        });
        assert!(widest.max().is_some_and(|most| most <= cores && most > cores / 2));
        for (job, profile) in placed.iter().zip(&workload.profiles) {
            assert_eq!(job.width, profile.resources.cores.get() / 1_000);
            let fastest = Speed::new(NonZeroU32::new(2_000).expect("not zero")).time_for(profile.estimate);
            assert!(job.run() >= fastest && job.run() <= profile.estimate * 2 + Span::from_secs(1));
        }
    }
}
