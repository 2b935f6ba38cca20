//! `shoal nodes`: who is there.

use crate::context::Context;
use crate::error::Error;
use crate::output::Table;

/// Lists the nodes.
pub fn run(context: &Context) -> Result<(), Error> {
    let list = context.client()?.nodes()?;
    context.output.print(&list, || {
        let mut table = Table::texts(["node", "name", "state", "has", "used", "tasks", "jobs", "labels"]);
        for node in &list.nodes {
            let machine = node.machine.as_ref();
            let labels = machine.map(|machine| {
                machine
                    .labels
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            table.row([
                node.id.clone(),
                node.name.clone(),
                if node.up { "up" } else { "silent" }.to_owned(),
                machine.map(|machine| machine.capacity.clone()).unwrap_or_default(),
                node.used.clone(),
                node.running.to_string(),
                node.open.to_string(),
                labels.unwrap_or_default(),
            ]);
        }
        table
    })
}
