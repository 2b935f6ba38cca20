//! Every baseline on one generated workload, beside a plain EASY loop that can do nothing else, and EASY with the
//! reading of the same jobs from text. Ratios can be read from one run: `cargo bench -p shoal-simulator --bench baseline`.
//!
//! The workload has the size of a year of a small machine: 28,000 jobs after Lublin on 128 nodes, 75 % asked for. A trace and
//! its nodes may be named instead: `cargo bench -p shoal-simulator --bench baseline -- KTH-SP2.swf 100`.

use std::time::{Duration, Instant};

use shoal_model::Time;
use shoal_protocols::queue::Policy;
use shoal_simulator::baseline::Baseline;
use shoal_simulator::workload::{Change, Length, Lublin, Source, Trace, Workload, write_swf};

const ROUNDS: usize = 9;

fn main() {
    // What cargo adds begins with a dash.
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let nodes = named.get(1).map(|nodes| nodes.parse().expect("nodes are a number above zero"));
    let (trace, text) = match named.first() {
        Some(file) => (Trace { nodes, ..Trace::new(file) }, std::fs::read(file).expect("a trace")),
        None => (Trace::new("memory.swf"), drawn()),
    };
    let trace = Trace { length: Length::Run, ..trace };
    let workload = trace.read_from(text.as_slice()).expect("a trace");
    println!("{} jobs for {} nodes", workload.jobs.len(), workload.nodes);

    let easy = Baseline::Queue(Policy::Easy).run(&workload).expect("jobs fit");
    let starts: Vec<Time> = easy.jobs.iter().map(|job| job.start).collect();
    assert_eq!(plain_easy(&workload), starts, "the two must do the same work");
    println!("mean wait under EASY {:.0} s", easy.summary.mean_wait_secs);

    let jobs = workload.jobs.len();
    let plain = report("plain EASY loop", jobs, None, || {
        std::hint::black_box(plain_easy(&workload));
    });
    for baseline in Baseline::ALL {
        report(baseline.name(), jobs, Some(plain), || {
            std::hint::black_box(baseline.run(&workload)).expect("jobs fit");
        });
    }
    report("easy, reading included", jobs, Some(plain), || {
        let read = trace.read_from(text.as_slice()).expect("what was written can be read");
        std::hint::black_box(Baseline::Queue(Policy::Easy).run(&read)).expect("jobs fit");
    });
}

/// Jobs of a generator as the text of a trace.
fn drawn() -> Vec<u8> {
    let change = Change { utilisation: Some(0.75), ..Change::default() };
    let lublin = Lublin { nodes: 128, jobs: 28_000, widest: None, types: false, overestimate: 3.0, change };
    let workload = Source::Lublin(lublin).load(1).expect("valid settings");
    let mut text = Vec::new();
    write_swf(&workload, &mut text).expect("memory takes it");
    text
}

/// The median time of several rounds.
fn report(name: &str, jobs: usize, plain: Option<Duration>, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    let median = times[ROUNDS / 2];
    let rate = jobs as f64 / median.as_secs_f64();
    let ratio = plain.map_or(1.0, |plain| median.as_secs_f64() / plain.as_secs_f64());
    println!("{name:24} {:9.2} ms {rate:12.0} jobs/s {ratio:7.2} x", median.as_secs_f64() * 1e3);
    median
}

/// EASY with nothing around it: counts for nodes, sorted lists, one policy.
fn plain_easy(workload: &Workload) -> Vec<Time> {
    let jobs = &workload.jobs;
    let mut starts = vec![Time::NEVER; jobs.len()];
    let mut free = workload.nodes;
    // By the ends of their requests and by their real ends, the last first.
    let mut running: Vec<(Time, u32)> = Vec::new();
    let mut ends: Vec<(Time, u32)> = Vec::new();
    let mut queue: Vec<u32> = Vec::new();
    let mut arrived = 0;
    loop {
        let end = ends.last().map_or(Time::NEVER, |&(end, _)| end);
        let now = end.min(jobs.get(arrived).map_or(Time::NEVER, |job| job.submit));
        if now == Time::NEVER {
            return starts;
        }
        while let Some((_, id)) = ends.pop_if(|&mut (end, _)| end == now) {
            let job = &jobs[id as usize];
            let limit = starts[id as usize] + job.requested;
            let place = running.partition_point(|&other| other > (limit, id));
            running.remove(place);
            free += job.width;
        }
        while arrived < jobs.len() && jobs[arrived].submit == now {
            queue.push(arrived as u32);
            arrived += 1;
        }
        let mut shadow: Option<(Time, u32)> = None;
        queue.retain(|&id| {
            let job = &jobs[id as usize];
            let limit = now + job.requested;
            let fits = job.width <= free;
            match &mut shadow {
                None if fits => {}
                None => {
                    let mut then = free;
                    let mut last = running.len();
                    while last > 0 && (then < job.width || running[last - 1].0 == running[last].0) {
                        last -= 1;
                        then += jobs[running[last].1 as usize].width;
                    }
                    shadow = Some((running[last].0, then - job.width));
                    return true;
                }
                Some(_) if !fits => return true,
                Some((time, _)) if limit <= *time => {}
                Some((_, extra)) if job.width <= *extra => *extra -= job.width,
                Some(_) => return true,
            }
            starts[id as usize] = now;
            free -= job.width;
            running.insert(running.partition_point(|&other| other > (limit, id)), (limit, id));
            let end = now + job.run.min(job.requested);
            ends.insert(ends.partition_point(|&other| other > (end, id)), (end, id));
            false
        });
    }
}
