//! How many tasks a second the executor of real processes runs, beside what the machine can do at all.
//!
//! `cargo bench -p shoal-daemon --bench processes [-- TASKS]`. The raw limit: a thread for each core that makes a folder
//! and two files, spawns `/bin/true` and waits for it; and the same with four threads for each core, which on a busy machine
//! get a larger share of it. The ratio is to the better of the two. All take turns, so that what else runs hits all.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use shoal_daemon::executor::raw;
use shoal_model::{Epoch, Job, JobId, Rank, Size, Span};
use shoal_protocols::node::{Exit, Task};

#[path = "../tests/process/machine.rs"]
#[allow(dead_code, reason = "tests need more of it")]
mod machine;

use machine::{HOUR, Machine};

const TASKS: usize = 2_000;
const ROUNDS: usize = 5;

fn main() {
    let tasks = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(TASKS);
    println!("{tasks} tasks of /bin/true, {ROUNDS} rounds");
    println!("      raw /s  raw, 4 threads a core /s  executor /s   ratio   processor time a task");
    let mut ratios = Vec::new();
    // Removed only at the end: some file systems are slow to make files for a while after many were removed.
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let place = |name: &str| folder.path().join(format!("{name}-{round}"));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let [one, four] = [1, 4].map(|each| {
            raw::spawn(raw::Bare::Open, tasks, each * cores, &place(&format!("raw-{each}"))).unwrap()
        });
        let best = one.min(four);
        let (executor, [supervisor, children, daemon]) = executor(tasks, place("executor"));
        let rate = |time: Duration| tasks as f64 / time.as_secs_f64();
        let each = |time: Duration| time.as_micros() / tasks as u128;
        let ratio = best.as_secs_f64() / executor.as_secs_f64();
        ratios.push(ratio);
        println!(
            "{:>12.0} {:>25.0} {:>12.0} {:>6.0}%   supervisor {} µs, task {} µs, daemon {} µs",
            rate(one),
            rate(four),
            rate(executor),
            ratio * 100.0,
            each(supervisor),
            each(children),
            each(daemon),
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.0}%", ratios[ratios.len() / 2] * 100.0);
}

/// The time that all tasks took, and the processor time of supervisor, tasks and daemon.
fn executor(tasks: usize, home: PathBuf) -> (Duration, [Duration; 3]) {
    let mut machine = Machine::at(home, Span::from_secs(5), Size::from_mib(1));
    let supervisor = machine.supervisor().to_string();
    let (own_before, children_before) = processor_time(&supervisor);
    let (daemon_before, _) = processor_time("self");
    let began = Instant::now();
    for number in 0..tasks {
        let job = JobId::from_number(number as u64);
        machine.start_task(Task { job, epoch: Epoch(1), rank: Rank(0) }, Job::command(["/bin/true"]), HOUR);
    }
    for _ in 0..tasks {
        assert_eq!(machine.hears().exit, Exit::Code(0));
    }
    let took = began.elapsed();
    let (own, children) = processor_time(&supervisor);
    let (daemon, _) = processor_time("self");
    (took, [own - own_before, children - children_before, daemon - daemon_before])
}

/// The processor time of a process, and of the children that it has waited for.
fn processor_time(process: &str) -> (Duration, Duration) {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
    // The system counts in hundredths of a second.
    let time = |at: usize| Duration::from_millis(10 * fields[at].parse::<u64>().unwrap());
    (time(11) + time(12), time(13) + time(14))
}
