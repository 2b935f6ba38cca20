//! The bound: one scheduler that knows all machines and all jobs at once, and decides only when a machine is free.
//!
//! Whenever a job comes or a machine falls idle, waiting jobs are looked at in order, by deadline where they have one,
//! else by submission, and each takes the fastest idle machine that will do. Nothing takes time, and nobody is
//! bound before the job starts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use shoal_model::matching::{Needs, matches};
use shoal_model::{Machine, Span, Time};

use super::seen::Job;
use crate::processes::takes_on;
use crate::workload::Workload;

/// What becomes of the jobs; machines are there from the times given for them.
pub fn run(workload: &Workload, machines: &[Machine], from: &[Time]) -> Vec<Job> {
    let needs: Vec<Needs> = workload
        .profiles
        .iter()
        .map(|profile| {
            let mut needs = Needs::new(profile.resources.clone(), Span::from_hours(1));
            needs.requires = profile.requires.clone();
            needs
        })
        .collect();
    let mut fastest: Vec<usize> = (0..machines.len()).collect();
    fastest.sort_by_key(|&place| Reverse(machines[place].speed));
    let mut idle = vec![false; machines.len()];
    let from = from.iter().enumerate().map(|(place, &from)| Reverse((from, place)));
    let mut ends: BinaryHeap<Reverse<(Time, usize)>> = from.collect();
    let mut times: Vec<Option<(Time, Time)>> = vec![None; workload.jobs.len()];
    let mut waiting: Vec<usize> = Vec::new();
    let mut next = 0;
    loop {
        let end = ends.peek().map(|Reverse((end, _))| *end);
        let arrival = workload.jobs.get(next).map(|job| job.submit);
        let Some(now) = [end, arrival].into_iter().flatten().min() else { break };
        while let Some(Reverse((end, place))) = ends.peek().copied()
            && end == now
        {
            ends.pop();
            idle[place] = true;
        }
        while workload.jobs.get(next).is_some_and(|job| job.submit == now) {
            waiting.push(next);
            next += 1;
        }
        waiting.sort_by_key(|&job| (workload.profiles[job].deadline, job));
        waiting.retain(|&job| {
            let found =
                fastest.iter().copied().find(|&place| idle[place] && matches(&needs[job], &machines[place]));
            let Some(place) = found else { return true };
            let profile = &workload.profiles[job];
            let takes = takes_on(machines[place].speed, profile.estimate, profile.drift);
            idle[place] = false;
            ends.push(Reverse((now + takes, place)));
            times[job] = Some((now, now + takes));
            false
        });
    }
    let hours = |time: Time| time.as_secs_f64() / 3_600.0;
    let jobs = workload.jobs.iter().zip(&workload.profiles).zip(times);
    jobs.map(|((job, profile), times)| Job {
        submit: hours(job.submit),
        start: times.map(|(start, _)| hours(start)),
        end: times.map(|(_, end)| hours(end)),
        deadline: profile.deadline.map(hours),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use crate::reproduce::aria::case::LIBRARY;
    use crate::scenario::Scenario;

    use super::*;

    /// When the first and the last job start on machines that are there from this time on.
    fn starts(from: Time) -> (f64, f64) {
        let scenario =
            Scenario::built_in(LIBRARY, "FCFS", "nodes = 60\nworkload.jobs = 30\n").expect("a scenario");
        let workload = scenario.workload.load(1).expect("jobs");
        let jobs = run(&workload, &scenario.machines, &vec![from; scenario.machines.len()]);
        let starts: Vec<f64> = jobs.iter().filter_map(|job| job.start).collect();
        assert_eq!(starts.len(), 30);
        (starts.iter().copied().fold(f64::INFINITY, f64::min), starts.iter().copied().fold(0.0, f64::max))
    }

    #[test]
    fn nothing_starts_on_a_machine_before_it_is_there() {
        let (first, last) = starts(Time::ZERO);
        assert!(first < 1.0 && last < 50.0, "{first} {last}");
        let (first, _) = starts(Time::from_secs(50 * 3_600));
        assert_eq!(first, 50.0);
    }
}
