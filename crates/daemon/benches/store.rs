//! Records a second into the database beside the journal, and how long a node with many jobs takes to come back.
//!
//! `cargo bench -p shoal-daemon --bench store`. Groups of 1, 64 and 1024 records share a sync, as a turn's writes do; both
//! stores write to the same disk in the same run, so that ratios can be trusted where figures cannot.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use shoal_daemon::{Home, Journal, Sqlite, Store};
use shoal_model::{Envelope, Job, Nonce, Span};
use shoal_protocols::Shared;
use shoal_protocols::node::{OwnedRecord, Record};

/// Jobs that wait on the node that is started again.
const JOBS: u64 = 100_000;
/// Has this program load a folder once.
const LOAD: &str = "SHOAL_BENCH_LOAD";

fn job(number: u64) -> Record {
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    let job = Job {
        limit: Some(Span::from_hours(1)),
        name: format!("job {number}").parse().ok(),
        ..Job::command(["python3", "train.py", "--seed", &number.to_string(), "--out", "results"])
    };
    let envelope = Shared::new(Envelope::new(job, Nonce(nonce)).expect("a job that makes sense"));
    Record::Owned(OwnedRecord::accepted(envelope))
}

fn sqlite(folder: &Path) -> (Sqlite<Record>, Vec<Record>) {
    let lock = Home::at(folder).lock().expect("a folder of one's own");
    let opened = Sqlite::open(&lock).expect("a sound database");
    (opened.store, opened.records)
}

fn journal(folder: &Path) -> (Journal<Record>, Vec<Record>) {
    let opened = Journal::open(folder).expect("a sound journal");
    (opened.journal, opened.records)
}

fn write(store: &mut dyn Store<Record>, records: &[Record]) {
    for record in records {
        store.save(record).expect("a write");
    }
    store.sync().expect("a sync");
    store.tidy().expect("housekeeping");
}

fn groups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("records");
    group.sample_size(10);
    for size in [1usize, 64, 1_024] {
        group.throughput(Throughput::Elements(size as u64));
        let folder = tempfile::tempdir().expect("a folder");
        let mut stores: [(&str, Box<dyn Store<Record>>); 2] = [
            ("journal", Box::new(journal(&tempdir_in(folder.path(), "journal")).0)),
            ("sqlite", Box::new(sqlite(&tempdir_in(folder.path(), "sqlite")).0)),
        ];
        for (name, store) in &mut stores {
            // As in use: ever new jobs, of which as many are on disk as on a busy node.
            let mut next = 0;
            group.bench_function(BenchmarkId::new(*name, size), |bencher| {
                bencher.iter_batched(
                    || {
                        next += size as u64;
                        (next..next + size as u64).map(job).collect::<Vec<_>>()
                    },
                    |records| write(&mut **store, &records),
                    criterion::BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

fn restart(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let [journal_folder, sqlite_folder] = ["journal", "sqlite"].map(|name| tempdir_in(folder.path(), name));
    let records: Vec<Record> = (0..JOBS).map(job).collect();
    for chunk in records.chunks(1_024) {
        write(&mut journal(&journal_folder).0, chunk);
    }
    let mut store = sqlite(&sqlite_folder).0;
    for chunk in records.chunks(1_024) {
        write(&mut store, chunk);
    }
    drop((store, records));
    // In a process of its own, whose memory holds nothing else.
    let child = std::process::Command::new(std::env::current_exe().expect("a program"))
        .env(LOAD, &sqlite_folder)
        .status();
    assert!(child.is_ok_and(|status| status.success()));

    let mut group = criterion.benchmark_group("restart");
    group.sample_size(10).throughput(Throughput::Elements(JOBS));
    group.bench_function("journal", |bencher| bencher.iter(|| black_box(journal(&journal_folder).1.len())));
    group.bench_function("sqlite", |bencher| bencher.iter(|| black_box(sqlite(&sqlite_folder).1.len())));
    group.finish();
}

fn tempdir_in(folder: &Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::create_dir(&path).expect("a folder");
    path
}

/// The memory of this process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * 4_096)
}

/// Loads once, and says what that took.
fn load(folder: &Path) {
    let before = resident();
    let began = Instant::now();
    let (store, records) = sqlite(folder);
    println!(
        "{} jobs in {} MiB: loaded in {:.0} ms, {} MiB more resident",
        records.len(),
        std::fs::metadata(folder.join("shoal.db")).map_or(0, |facts| facts.len() >> 20),
        began.elapsed().as_secs_f64() * 1e3,
        (resident() - before) >> 20,
    );
    drop((store, records));
}

criterion_group!(benches, groups, restart);

fn main() {
    match std::env::var_os(LOAD) {
        Some(folder) => load(Path::new(&folder)),
        None => {
            benches();
            Criterion::default().configure_from_args().final_summary();
        }
    }
}
