//! `shoal audit` and `shoal usage`: what was done on this node, and what users have used of the grid.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use shoal_api::UsageView;
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
    /// Of a user: two organisations may each have one of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    organisation: Option<String>,
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
                    let job = record.job.as_deref().unwrap_or_default();
                    let job = job.get(..8).unwrap_or(job);
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
    let sums = summed(&usage, arguments.by);
    context.output.print(&sums, || {
        let line = |sum: &Sum| {
            let of = sum.organisation.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
            format!("{}{of}  {} tasks  {:.1} core seconds", sum.name, sum.tasks, sum.core_seconds)
        };
        sums.iter().map(line).collect::<Vec<_>>().join("\n")
    })
}

/// Sums what hosts say; they may say anything, so that sums stop at the most.
fn summed(usage: &UsageView, by: By) -> Vec<Sum> {
    let mut sums = BTreeMap::<_, (u64, u64, BTreeSet<&str>)>::new();
    for host in &usage.hosts {
        for used in &host.used {
            let (name, organisation) = match by {
                By::User => (&used.user, used.organisation.as_deref()),
                By::Organisation => (&used.organisation, None),
            };
            let sum = sums.entry((name.as_deref().unwrap_or("-"), organisation)).or_default();
            sum.0 = sum.0.saturating_add(used.tasks);
            sum.1 = sum.1.saturating_add(used.core_milliseconds);
            sum.2.insert(&host.node);
        }
    }
    sums.into_iter()
        .map(|((name, organisation), (tasks, millis, hosts))| Sum {
            name: name.to_owned(),
            organisation: organisation.map(str::to_owned),
            tasks,
            core_seconds: millis as f64 / 1_000.0,
            hosts: hosts.len(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use shoal_api::{HostUsage, Used};

    use super::*;

    #[test]
    fn sums_keep_users_of_one_name_apart_count_hosts_and_never_overflow() {
        let used = |organisation: &str, tasks| Used {
            user: Some("alice".to_owned()),
            organisation: Some(organisation.to_owned()),
            tasks,
            core_milliseconds: u64::MAX,
        };
        let host = |node: &str, used: Vec<Used>| HostUsage {
            node: node.to_owned(),
            key: String::new(),
            used,
            signature: String::new(),
        };
        let hosts = vec![
            host("1", vec![used("lab-a", u64::MAX), used("lab-a", 1), used("lab-b", 2)]),
            host("2", vec![used("lab-a", 1)]),
        ];
        let usage = UsageView { hosts };
        for by in [By::User, By::Organisation] {
            let told: Vec<(u64, usize)> =
                summed(&usage, by).iter().map(|sum| (sum.tasks, sum.hosts)).collect();
            assert_eq!(told, [(u64::MAX, 2), (2, 1)]);
        }
    }
}
