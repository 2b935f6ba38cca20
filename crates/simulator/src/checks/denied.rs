//! I12: nothing is promised or starts on a machine whose owner denies it; and owners that do, for storms.
//!
//! What an owner denies is written on the machine, as labels: `denies` names a user, `denies-from` a second from which
//! on. The judge of a simulated node reads them there, and so does the checker, each by itself.

use std::sync::Arc;

use shoal_model::{Job, JobId, Machine, NodeId, Span, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Action, Ask, Brief, Denial, Gate, Judge, Node, Record};
use shoal_protocols::scheduling::aria;

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// The label that names whom an owner denies.
pub const DENIES: &str = "denies";
/// The label that says from which second on; from the first one, where there is none.
pub const DENIES_FROM: &str = "denies-from";

/// Judges by what is written on machines.
#[derive(Debug)]
struct Owners;

impl Judge for Owners {
    fn judge(&self, ask: &Ask<'_>) -> Result<(), Denial> {
        match denied_from(ask.machine, ask.envelope.job()) {
            Some(from) if ask.now >= from => Err(Denial::NoRule),
            Some(_) | None => Ok(()),
        }
    }
}

/// The gate of nodes whose owners say on their machines whom they deny.
pub fn gate() -> Gate {
    Gate::with(Arc::new(Owners))
}

/// From when on a machine's owner denies a job, if ever.
fn denied_from(machine: &Machine, job: &Job) -> Option<Time> {
    let user = job.user.as_ref()?;
    machine.labels.get(DENIES).filter(|denies| denies.as_str() == user.as_str())?;
    let from = machine.labels.get(DENIES_FROM).and_then(|from| from.as_str().parse().ok());
    Some(Time::from_secs(from.unwrap_or_default()))
}

/// Nothing is promised to a job that was denied all along.
fn unpromised(at: Time, node: NodeId, brief: &Brief, denied: Option<Time>) -> Result<(), Broken> {
    if denied == Some(Time::ZERO) {
        let what = "it has a place, and the owner denies it";
        return Err(Broken::new(at, what).on(node).of(brief.job()));
    }
    Ok(())
}

/// Watches what starts where, and what is promised.
#[derive(Default)]
pub struct Denied;

impl Check for Denied {
    fn name(&self) -> &'static str {
        "denied"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        let denied = |brief: &Brief| denied_from(known.machines.get(&node)?, brief.envelope.job());
        match saw {
            Saw::Act(Action::Start { task, brief, .. }) => {
                // A start is decided before it is on disk, by the node's own clock.
                let slack = known.bounds.slow_disk + known.clocks_apart() + Span::from_secs(1);
                let decided = known.local(node, at) - slack;
                let late = |from: &Time| *from == Time::ZERO || decided > *from;
                denied(brief).filter(late).map_or(Ok(()), |from| {
                    let what = format!("rank {} starts, and the owner denies it since {from}", task.rank.0);
                    Err(Broken::new(at, what).on(node).of(task.job))
                })
            }
            Saw::Save(Record::Commit(two_phase::Record::Lock(lock))) => {
                lock.brief.as_ref().map_or(Ok(()), |brief| unpromised(at, node, brief, denied(brief)))
            }
            Saw::Save(Record::Aria(aria::Record::Seat(seat))) => {
                unpromised(at, node, &seat.brief, denied(&seat.brief))
            }
            Saw::Save(_)
            | Saw::Act(_)
            | Saw::Done(_)
            | Saw::Event(_)
            | Saw::Erase(_)
            | Saw::Send(..)
            | Saw::Crash
            | Saw::DiskLost
            | Saw::Restart => Ok(()),
        }
    }

    fn look(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }

    fn forget(&mut self, _job: JobId) {}

    fn end(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }
}
