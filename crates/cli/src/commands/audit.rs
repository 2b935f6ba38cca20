//! `shoal audit` and `shoal usage`: what was done on this node, and what users have used of the grid.

use std::collections::BTreeMap;

use serde::Serialize;
use shoal_daemon::audit::{self, Record, Whole};

use crate::context::Context;
use crate::error::Error;
use crate::show::Clock;

/// What to do with the records of this node.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check that no record was changed, removed or moved; names the first one that was
    Verify,
}

/// By what to sum.
#[derive(Debug, clap::Args)]
pub struct UsageArguments {
    /// Sum by user or by organisation
    #[arg(long, value_enum, default_value_t = By::User)]
    by: By,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum By {
    User,
    Organisation,
}

#[derive(Serialize)]
struct Sum {
    name: String,
    tasks: u64,
    core_seconds: f64,
    hosts: usize,
}

/// Prints the records, or checks them.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let home = context.home()?;
    let mut records: Vec<Record> = Vec::new();
    let read = audit::read(home.path(), |record| records.push(record));
    let path = home.path().join(audit::AUDIT_FILE);
    let whole = read.map_err(|error| Error::user(format!("cannot read {}: {error}", path.display())))?;
    let broken = |broken: audit::BrokenChain| {
        Error::config(format!("{}: {broken}", path.display()))
            .hint("the records before it are as they were written")
    };
    match arguments.command {
        Some(Command::Verify) => {
            let whole: Whole = whole.map_err(broken)?;
            context
                .output
                .print(&whole, || format!("{} records, the last hash is {}", whole.records, whole.hash))
        }
        None => {
            let clock = Clock::read();
            context.output.print(&records, || {
                let lines = records.iter().map(|record| {
                    let whose = record.user.clone().unwrap_or_default();
                    let job = record.job.as_deref().map(|job| &job[..job.len().min(8)]).unwrap_or_default();
                    let kind = format!("{:?}", record.kind).to_lowercase();
                    format!("{}  {kind:9}  {job:8}  {whose}  {}", clock.show(record.at.0), record.text)
                });
                lines.collect::<Vec<_>>().join("\n")
            })?;
            whole.map(|_| ()).map_err(broken)
        }
    }
}

/// Prints what users have used.
pub fn usage(arguments: &UsageArguments, context: &Context) -> Result<(), Error> {
    let usage = context.client()?.usage()?;
    let mut sums: BTreeMap<String, (u64, u64, usize)> = BTreeMap::new();
    for used in usage.hosts.iter().flat_map(|host| &host.used) {
        let name = match arguments.by {
            By::User => &used.user,
            By::Organisation => &used.organisation,
        };
        let sum = sums.entry(name.clone().unwrap_or_else(|| "-".to_owned())).or_default();
        sum.0 += used.tasks;
        sum.1 = sum.1.saturating_add(used.core_milliseconds);
        sum.2 += 1;
    }
    let sums: Vec<Sum> = sums
        .into_iter()
        .map(|(name, (tasks, millis, hosts))| Sum {
            name,
            tasks,
            core_seconds: millis as f64 / 1_000.0,
            hosts,
        })
        .collect();
    context.output.print(&sums, || {
        let line =
            |sum: &Sum| format!("{}  {} tasks  {:.1} core seconds", sum.name, sum.tasks, sum.core_seconds);
        sums.iter().map(line).collect::<Vec<_>>().join("\n")
    })
}
