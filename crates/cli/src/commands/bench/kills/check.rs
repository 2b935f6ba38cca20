//! Whether every job ended exactly once, and whether anything is left that should not be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use shoal_api::{JobStatus, State, Until};
use shoal_model::{JobId, Span};

use super::jobs::Kind;
use super::{Account, PAUSE};
use crate::error::Error;
use crate::grid::Grid;

/// How long the last jobs may take: nodes hold each other for lost and look for places again.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long processes and reservations may take to go once all jobs have ended.
const CLEARING: Duration = Duration::from_secs(60);
/// Further than any job of these plans.
const AHEAD: Span = Span::from_hours(24);
/// What a node's folder holds after it has ended.
const KNOWN: [&str; 16] = [
    "audit.log",
    "cabinet.db",
    "cabinet.db-shm",
    "cabinet.db-wal",
    "depot",
    "format",
    "history",
    "lock",
    "node.key",
    "node.toml",
    "reserve",
    "run",
    "shoal.db",
    "supervisor",
    "tasks",
    "token",
];

/// A task by its epoch and its rank.
type Task = (u32, u32);

/// What the tasks of a job have said.
#[derive(Debug, Default)]
struct Effects {
    starts: BTreeMap<Task, u32>,
    ends: BTreeMap<Task, u32>,
}

impl Effects {
    fn read(folder: &Path, job: JobId) -> Result<Effects, Error> {
        let mut effects = Effects::default();
        let text = match std::fs::read_to_string(folder.join(job.to_string())) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(effects),
            text => text?,
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
            let (Some(epoch), Some(rank)) = (number(1), number(2)) else {
                return Err(Error::internal(format!("job {job} said `{line}`")));
            };
            let said = if words[0] == "start" { &mut effects.starts } else { &mut effects.ends };
            *said.entry((epoch, rank)).or_default() += 1;
        }
        Ok(effects)
    }
}

/// Waits for all jobs, and compares what they did with what is said of them.
pub fn jobs(
    grid: &Grid,
    accepted: &[(usize, JobId, Kind)],
    folder: &Path,
    account: &mut Account,
) -> Result<(), Error> {
    let began = Instant::now();
    for &(entry, job, kind) in accepted {
        let client = grid.node(entry).client()?;
        let id = job.to_string();
        let status = loop {
            let status = client.wait(&id, Until::Ended, Span::from_secs(5))?;
            if status.state.is_over() || began.elapsed() > PATIENCE {
                break status;
            }
        };
        let story = client.why(&id)?.story;
        let ends = story.iter().filter(|event| event.kind == "ended").count();
        if ends != 1 {
            account.problems.push(format!("job {id} is {}, and has ended {ends} times", status.state));
            continue;
        }
        let effects = Effects::read(folder, job)?;
        account.starts += effects.starts.values().sum::<u32>();
        account.replaced += u32::from(status.planned.as_ref().is_some_and(|planned| planned.epoch > 1));
        match status.state {
            State::Finished => account.finished += 1,
            State::Lost => account.lost += 1,
            _ => {}
        }
        account.problems.extend(wrong(&status, kind, &effects).map(|what| format!("job {id}: {what}")));
    }
    // Nothing may be said by a job that has ended: long enough for whatever runs on.
    thread::sleep(Duration::from_secs(1));
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let known = name.to_str().and_then(|name| name.parse::<JobId>().ok());
        if !known.is_some_and(|job| accepted.iter().any(|(_, other, _)| *other == job)) {
            account.problems.push(format!("a job ran that nobody has accepted: {}", name.display()));
        }
    }
    Ok(())
}

/// What is wrong with a job that has ended.
fn wrong(status: &JobStatus, kind: Kind, effects: &Effects) -> Option<String> {
    let allowed = status.state == State::Finished || (kind.once && status.state == State::Lost);
    if !allowed {
        return Some(format!("ended as {}: {}", status.state, status.reason.clone().unwrap_or_default()));
    }
    if let Some((task, times)) = effects.starts.iter().chain(&effects.ends).find(|(_, times)| **times > 1) {
        return Some(format!("epoch {}, rank {} ran {times} times", task.0, task.1));
    }
    if kind.once {
        for rank in 0..kind.nodes {
            let starts = effects.starts.keys().filter(|(_, other)| *other == rank).count();
            if starts > 1 {
                return Some(format!("rank {rank} ran {starts} times, and must not run twice"));
            }
        }
    }
    if status.state == State::Finished {
        let epochs: BTreeSet<u32> = effects.ends.keys().map(|(epoch, _)| *epoch).collect();
        let whole = |epoch: u32| (0..kind.nodes).all(|rank| effects.ends.contains_key(&(epoch, rank)));
        if !epochs.iter().any(|&epoch| whole(epoch)) {
            return Some(format!("finished, and its {} tasks have not: {effects:?}", kind.nodes));
        }
    }
    None
}

/// Looks for processes, reservations and files that should not be there, and ends the nodes.
pub fn nothing_left(
    grid: &mut Grid,
    accepted: &[(usize, JobId, Kind)],
    account: &mut Account,
) -> Result<(), Error> {
    let began = Instant::now();
    let patiently = |problems: &mut Vec<String>, look: &mut dyn FnMut() -> Result<Vec<String>, Error>| {
        loop {
            let found = look()?;
            if found.is_empty() {
                return Ok::<(), Error>(());
            }
            if began.elapsed() > CLEARING {
                problems.extend(found);
                return Ok(());
            }
            thread::sleep(PAUSE * 10);
        }
    };
    for number in 0..grid.nodes().len() {
        let whose = format!("node {}", number + 1);
        let node = grid.node(number);
        patiently(&mut account.problems, &mut || {
            let reserved = node.client()?.calendar(None, AHEAD)?.reservations;
            Ok(reserved
                .iter()
                .map(|kept| format!("{whose}: job {} is still {}", kept.job, kept.surely))
                .collect())
        })?;
        patiently(&mut account.problems, &mut || {
            Ok(node.tasks()?.iter().map(|pid| format!("{whose}: process {pid} is left")).collect())
        })?;
    }
    for number in 0..grid.nodes().len() {
        grid.node_mut(number).stop();
    }
    for number in 0..grid.nodes().len() {
        let (whose, node) = (format!("node {}", number + 1), grid.node(number));
        patiently(&mut account.problems, &mut || {
            Ok(node.supervisors().iter().map(|pid| format!("{whose}: supervisor {pid} is left")).collect())
        })?;
        account
            .problems
            .extend(files(node.folder(), accepted)?.into_iter().map(|what| format!("{whose}: {what}")));
    }
    Ok(())
}

/// Files that should not be there.
fn files(home: &Path, accepted: &[(usize, JobId, Kind)]) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(home)? {
        let name = entry?.file_name();
        if !name.to_str().is_some_and(|name| KNOWN.contains(&name)) {
            wrong.push(format!("{} is left", name.display()));
        }
    }
    for part in ["supervisor", "history"] {
        for entry in std::fs::read_dir(home.join(part)).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "new") {
                wrong.push(format!("{} is left", entry.path().display()));
            }
        }
    }
    // These jobs bring nothing along.
    for part in ["partial", "errands"] {
        for entry in std::fs::read_dir(home.join("depot").join(part)).into_iter().flatten().flatten() {
            wrong.push(format!("{} is left", entry.path().display()));
        }
    }
    let known: BTreeSet<String> = accepted.iter().map(|(_, job, _)| job.to_string()).collect();
    for entry in std::fs::read_dir(home.join("tasks")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let job = name.split('-').next().unwrap_or_default();
        if name.ends_with(".ride") {
            wrong.push(format!("the carriage {name} is left"));
        } else if !known.contains(job) {
            wrong.push(format!("a folder of job {job}, which nobody has accepted"));
        }
    }
    Ok(wrong)
}
