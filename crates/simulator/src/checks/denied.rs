//! I12: nothing starts on a machine whose owner denies it; and owners that do, for storms.
//!
//! What an owner denies is written on the machine, as labels: `denies` names a user, `denies-from` a second from which
//! on. The judge of a simulated node reads them there, and so does the checker, each by itself.

use std::sync::Arc;

use shoal_model::{Job, JobId, Machine, Span, Time};
use shoal_protocols::node::{Action, Ask, Denial, Gate, Judge, Node};

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

/// Watches what starts where.
#[derive(Default)]
pub struct Denied;

impl Check for Denied {
    fn name(&self) -> &'static str {
        "denied"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        let Saw::Act(Action::Start { task, brief, .. }) = saw else { return Ok(()) };
        let from = known.machines.get(&node).and_then(|machine| denied_from(machine, brief.envelope.job()));
        // A start is decided before it is on disk, by the node's own clock.
        let decided =
            known.local(node, at) - known.bounds.slow_disk - known.clocks_apart() - Span::from_secs(1);
        match from {
            Some(from) if from == Time::ZERO || decided > from => {
                let what = format!("rank {} starts, and the owner denies it since {from}", task.rank.0);
                Err(Broken::new(at, what).on(node).of(task.job))
            }
            Some(_) | None => Ok(()),
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
