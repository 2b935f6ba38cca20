//! What a user was told, in words that hold in any arm, and the laws that it keeps.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{Epoch, JobId, NodeId, Rank};
use shoal_protocols::node::{Event, Task};

/// What the user was told of a job, without what luck decides: times, names of nodes, attempts at a placement that came
/// to nothing, waiting, the order in which the tasks of a gang began, and what an owner tells again after a crash.
pub fn story(told: &[(NodeId, Event)], job: JobId) -> Vec<String> {
    let mut words = Vec::new();
    let mut epochs: BTreeMap<Epoch, usize> = BTreeMap::new();
    let mut started: BTreeSet<Rank> = BTreeSet::new();
    let mut known: BTreeSet<(Epoch, Rank)> = BTreeSet::new();
    for (_, event) in told {
        if job_of(event) != Some(job) {
            continue;
        }
        match event {
            Event::Started(task, _) => {
                if known.insert((task.epoch, task.rank)) {
                    started.insert(task.rank);
                }
                continue;
            }
            Event::Waiting(..) => continue,
            Event::Placed(_, placement) if epochs.contains_key(&placement.epoch) => continue,
            _ => words.extend(std::mem::take(&mut started).into_iter().map(start)),
        }
        match event {
            Event::Placed(_, placement) => {
                let count = epochs.len() + 1;
                epochs.insert(placement.epoch, count);
                words.push(format!("placed on {}", placement.nodes.len()));
            }
            // Of a placement that the user was never told of, the user need not know that it is gone.
            Event::Unplaced { epoch, .. } if !epochs.contains_key(epoch) => {}
            Event::Unplaced { .. } => words.push("unplaced".to_owned()),
            Event::Accepted(_) => words.push("accepted".to_owned()),
            Event::Refused(_, refusal) => words.push(format!("refused: {refusal}")),
            Event::Ended(_, end) => words.push(format!("ended {end:?}")),
            _ => {}
        }
    }
    words.extend(started.into_iter().map(start));
    words
}

fn start(rank: Rank) -> String {
    format!("started {}", rank.0)
}

/// Whether the user missed something: what a node wanted to tell when it died.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    None,
    Some,
}

/// The laws of what a user is told, of any job, under any luck.
pub fn check(told: &[(NodeId, Event)], gaps: Gaps) {
    let jobs: BTreeSet<JobId> = told.iter().filter_map(|(_, event)| job_of(event)).collect();
    for job in jobs {
        let of_job: Vec<&Event> =
            told.iter().map(|(_, event)| event).filter(|event| job_of(event) == Some(job)).collect();
        if let Err(law) = lawful(&of_job, gaps) {
            panic!("{law}: {of_job:#?}");
        }
    }
}

fn lawful(told: &[&Event], gaps: Gaps) -> Result<(), &'static str> {
    let mut accepted = gaps == Gaps::Some;
    let mut ended = false;
    let mut placed: Option<(Epoch, usize)> = None;
    let mut started: BTreeSet<(Epoch, Rank)> = BTreeSet::new();
    let mut took: BTreeSet<(Epoch, Rank)> = BTreeSet::new();
    for event in told {
        if !accepted && !matches!(event, Event::Accepted(_) | Event::Refused(..)) {
            return Err("nothing is told of a job before it is accepted");
        }
        if ended && !matches!(event, Event::Accepted(_) | Event::Took(..)) {
            return Err("after its end nothing is told of a job but that it was accepted, and what it took");
        }
        match event {
            Event::Accepted(_) => accepted = true,
            Event::Refused(..) if accepted && gaps == Gaps::None => {
                return Err("what was accepted is not refused");
            }
            Event::Placed(_, placement) => {
                if placed.is_some_and(|(epoch, _)| epoch > placement.epoch) {
                    return Err("epochs rise");
                }
                // An owner that was down tells again what it may not have told before, and asks who runs.
                if placed.is_some_and(|(epoch, _)| epoch == placement.epoch) {
                    started.clear();
                }
                placed = Some((placement.epoch, placement.nodes.len()));
            }
            Event::Unplaced { epoch, .. } if placed.is_some_and(|(current, _)| *epoch < current) => {
                return Err("only the last placement can be lost");
            }
            Event::Started(Task { epoch, rank, .. }, _) => {
                let in_place =
                    placed.is_some_and(|(current, nodes)| current == *epoch && (rank.0 as usize) < nodes);
                if !in_place && gaps == Gaps::None {
                    return Err("only tasks of the last placement start");
                }
                if !started.insert((*epoch, *rank)) {
                    return Err("a task starts once");
                }
            }
            // What a node told that has died since may be told again.
            Event::Took(Task { epoch, rank, .. }, _)
                if !took.insert((*epoch, *rank)) && gaps == Gaps::None =>
            {
                return Err("what a task took is told once");
            }
            Event::Ended(..) => ended = true,
            _ => {}
        }
    }
    Ok(())
}

fn job_of(event: &Event) -> Option<JobId> {
    match event {
        Event::Accepted(job)
        | Event::Refused(job, _)
        | Event::Waiting(job, _)
        | Event::Placed(job, _)
        | Event::Unplaced { job, .. }
        | Event::Denied { job, .. }
        | Event::Started(Task { job, .. }, _)
        | Event::Took(Task { job, .. }, _)
        | Event::Held(job, _)
        | Event::Ended(job, _) => Some(*job),
        Event::Suspected(_)
        | Event::Back(_)
        | Event::Silent(_)
        | Event::Unwatched(_)
        | Event::Slept(_)
        | Event::Left => None,
    }
}

#[test]
fn laws_find_what_breaks_them() {
    use shoal_protocols::node::End;
    let job = JobId::from_number(1);
    let accepted = Event::Accepted(job);
    let ended = Event::Ended(job, End::Finished);
    let task = Task { job, epoch: Epoch(1), rank: Rank(0) };
    let started = Event::Started(task, shoal_model::Time::ZERO);
    let took = Event::Took(task, Default::default());
    assert!(lawful(&[&accepted, &ended, &accepted, &took], Gaps::None).is_ok());
    for broken in [
        vec![&ended],
        vec![&accepted, &started],
        vec![&accepted, &ended, &ended],
        vec![&accepted, &took, &took],
    ] {
        assert!(lawful(&broken, Gaps::None).is_err(), "{broken:?}");
    }
    assert!(lawful(&[&started, &ended], Gaps::Some).is_ok());
    assert!(lawful(&[&started, &started], Gaps::Some).is_err());
    assert!(lawful(&[&ended, &ended], Gaps::Some).is_err());
}
