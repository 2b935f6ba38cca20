//! `shoal cancel`, `hold` and `release`: what changes jobs.

use shoal_api::{Client, ClientError, JobStatus};

use crate::context::Context;
use crate::error::Error;
use crate::show;

/// Which jobs.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Ids of jobs, shortened as long as they are unambiguous
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
}

/// Takes jobs back.
pub fn cancel(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    act(arguments, context, Client::cancel)
}

/// Keeps jobs from starting.
pub fn hold(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    act(arguments, context, Client::hold)
}

/// Lets jobs start that were held.
pub fn release(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    act(arguments, context, Client::release)
}

fn act(
    arguments: &Arguments,
    context: &Context,
    change: impl Fn(&Client, &str) -> Result<JobStatus, ClientError>,
) -> Result<(), Error> {
    let client = context.client()?;
    let changed = arguments.jobs.iter().map(|job| change(&client, job)).collect::<Result<Vec<_>, _>>()?;
    let lines = || {
        changed.iter().map(|job| format!("{} {}", show::short(job), job.state)).collect::<Vec<_>>().join("\n")
    };
    context.output.print(&changed, lines)
}
