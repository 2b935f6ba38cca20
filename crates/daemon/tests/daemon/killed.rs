//! A process that is killed at any moment has on disk all that it had acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use shoal_daemon::{Home, Sqlite, Store};

use crate::note::{Note, note};

/// Says to this program, started as a child, where it is to write.
const FOLDER: &str = "SHOAL_TEST_KILLED";
const KILLS: u32 = 50;

/// Not a claim, but the child of the claim below: writes groups and says each time how far it is.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let lock = Home::at(folder).lock().unwrap();
    let mut opened = Sqlite::<Note>::open(&lock).unwrap();
    let mut next = opened.records.last().map_or(0, |last| last.key + 1);
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\nready").unwrap();
    loop {
        for _ in 0..1 + next % 7 {
            opened.store.save(&note(next, &"x".repeat(200 + next as usize % 900))).unwrap();
            next += 1;
        }
        opened.store.sync().unwrap();
        writeln!(stdout, "durable {next}").unwrap();
        stdout.flush().unwrap();
        opened.store.tidy().unwrap();
    }
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::writer", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn every_acknowledged_record_outlives_fifty_kills() {
    let folder = tempfile::tempdir().unwrap();
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut durable = 0;
    for kill in 0..KILLS {
        let mut child = start(folder.path());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.by_ref().map(|line| line.unwrap()).any(|line| line == "ready");
        assert!(ready, "kill {kill}: the writer came up");
        std::thread::sleep(Duration::from_micros(u64::from(chance.next_u32() % 40_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        // The last line may be torn, and is then no acknowledgement.
        for line in lines.map_while(Result::ok) {
            if let Some(Ok(next)) = line.strip_prefix("durable ").map(str::parse::<u32>) {
                durable = durable.max(next);
            }
        }

        let opened = Sqlite::<Note>::open(&Home::at(folder.path()).lock().unwrap()).unwrap();
        let count = opened.records.len() as u32;
        assert!(count >= durable, "kill {kill}: {durable} were acknowledged, {count} are there");
        assert!(opened.records.iter().zip(0..).all(|(record, key)| record.key == key), "kill {kill}: no gap");
        assert!(opened.records.iter().all(|note| note.text.len() == 200 + note.key as usize % 900));
        durable = count;
    }
    assert!(durable > 100, "something was written: {durable}");
}
