//! Whose tasks run in cells on this node, what those are like, and which images it has.

use std::sync::Arc;

use shoal_model::job::IMAGE;
use shoal_model::{Line, Name};

use crate::clock::Clock;
use crate::executor::process::Cells;
use crate::settings::TaskSettings;
use crate::trust::gate::Gatekeeper;

/// The walls of each task's cell; none for those that are trusted.
pub(super) fn of(settings: &TaskSettings, gate: &Arc<Gatekeeper>, clock: Clock) -> Cells {
    let (settings, gate) = (settings.clone(), Arc::clone(gate));
    Box::new(move |brief| {
        let job = brief.envelope.job();
        let asks = job.image().is_some() || job.secrets.is_some();
        let allowed = gate.cell(&brief.envelope, clock.now());
        let paths = allowed.or_else(|| asks.then(Default::default))?;
        let mut walls = settings.walls(job.resources.disk, job.resources.memory);
        walls.read.extend(paths.read);
        walls.write.extend(paths.write);
        Some(walls)
    })
}

/// The label that says that a machine has an image; none for one whose name is too long for that.
pub(super) fn label(image: &Name) -> Option<(Name, Line)> {
    Some((format!("{}{image}", IMAGE.0).parse().ok()?, IMAGE.1.parse().ok()?))
}
