//! `shoal submit`: a job is accepted, and its start is promised.

use shoal_api::{Client, JobStatus};
use shoal_model::job::After;
use shoal_model::units::SpanText;
use shoal_model::{Envelope, Job, Nonce, Span};

use crate::context::Context;
use crate::error::Error;
use crate::job::{JobRef, What};
use crate::show::{self, Clock};

/// What to submit.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    what: What,
    /// How long to wait for the plan; the job is accepted in any case
    #[arg(long, value_name = "SPAN", default_value = "2s")]
    plan: SpanText,
}

/// Submits a job.
pub fn run(arguments: Arguments, context: &Context) -> Result<(), Error> {
    let (job, after) = arguments.what.read()?;
    let client = context.client()?;
    let status = submit(&client, job, &after, arguments.plan.0)?;
    context.output.print(&status, || format!("{}  {}", status.id, show::promise(&status, &Clock::read())))
}

/// Submits a job, with the jobs that it is to start after.
pub fn submit(client: &Client, mut job: Job, after: &[JobRef], plan: Span) -> Result<JobStatus, Error> {
    if !after.is_empty() {
        let mut all = job.after.take().map(|after| *after).unwrap_or_default();
        for JobRef { id, ended } in after {
            if all.0.insert(client.job(id)?.id, *ended).is_some() {
                return Err(Error::user(format!("--after names job {id} twice")));
            }
        }
        job.after = Some(Box::new(After(all.0)));
    }
    let nonce = Nonce(shoal_api::secret::draw()?);
    let envelope = Envelope::new(job, nonce).map_err(|error| Error::user(error.to_string()))?;
    Ok(client.submit(&envelope, plan)?)
}
