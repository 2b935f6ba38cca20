//! What the tasks of a ride have in common: it is found out for the first of them, and for each that runs something else.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use shoal_model::job::Work;

use super::super::super::words::Order;
use super::super::grants::Grant;
use super::super::quick::Common;
use super::super::strings::Strings;
use super::{Failed, Program, Shared, cannot_run};

/// What the last task of a ride ran.
pub(super) struct Last {
    order: Arc<Order>,
    pub common: Arc<Common>,
}

impl Last {
    /// Whether another task of the same ride runs the same.
    fn is_like(&self, order: &Order) -> bool {
        let lies_elsewhere = |name: &String| !name.contains('/') || name.starts_with('/');
        let elsewhere = match &order.work {
            Work::Command(argv) => argv.first().is_some_and(lies_elsewhere),
            Work::Script(_) => false,
        };
        let runs = |other: &Order| {
            let Order { nodes, work, environment, peers, .. } = &*self.order;
            (nodes, work, environment, peers) == (&other.nodes, &other.work, &other.environment, &other.peers)
        };
        elsewhere && order.nodes == 1 && runs(order)
    }
}

impl Shared {
    /// What a task runs that sees its folder there, and whether it is something else than what the last one ran.
    pub(super) fn find_common(
        &self,
        order: &Arc<Order>,
        grant: &Grant,
        folder: &Path,
        seen: &Path,
        last: &mut Option<Last>,
    ) -> Result<(Arc<Common>, bool), Failed> {
        if let Some(last) = last.as_ref().filter(|last| last.is_like(order)) {
            return Ok((Arc::clone(&last.common), false));
        }
        let Program { path, argv, variables } = self.program(order, grant, folder, seen)?;
        let names = self.names(order, seen);
        let is_own = |name: &OsStr| names.iter().any(|(own, _)| name == *own);
        let shared = variables.iter().filter(|(name, _)| !is_own(name));
        let shared = Strings::variables(shared.map(|(name, value)| (&**name, &**value)));
        let words = Strings::words(argv.iter().map(|word| &**word));
        let wrong = |error| cannot_run(folder, &argv[0], &error);
        let common = Common { program: path, argv: words.map_err(wrong)?, variables: shared.map_err(wrong)? };
        let common = Arc::new(common);
        *last = Some(Last { order: Arc::clone(order), common: Arc::clone(&common) });
        Ok((common, true))
    }

    /// The variables that say which task one is that sees its folder there.
    pub(super) fn own_variables(&self, order: &Order, folder: &Path, seen: &Path) -> Result<Strings, Failed> {
        let names = self.names(order, seen);
        let own = Strings::variables(names.iter().map(|(name, value)| (OsStr::new(*name), &**value)));
        own.map_err(|error| cannot_run(folder, OsStr::new(""), &error))
    }
}
