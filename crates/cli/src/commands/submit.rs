//! `shoal submit`: a job is accepted, and its start is promised.

use shoal_api::{Client, JobStatus};
use shoal_daemon::trust::pass::{self, Statement};
use shoal_daemon::trust::text::{read_key, write_key};
use shoal_daemon::trust::user::Folder;
use shoal_model::envelope::Origin;
use shoal_model::job::After;
use shoal_model::units::SpanText;
use shoal_model::{Envelope, Job, Nonce, Span};

use super::user::signer;
use crate::context::Context;
use crate::error::Error;
use crate::files::{self, secrets};
use crate::job::{Beside, JobRef, Wanted, What, now};
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

/// Submits a job, or all of a file.
pub fn run(arguments: Arguments, context: &Context) -> Result<(), Error> {
    let mut jobs = arguments.what.read_all()?;
    let client = context.client()?;
    let line = |status: &JobStatus| format!("{}  {}", status.id, show::promise(status, &Clock::read()));
    if jobs.len() == 1 {
        let Wanted { job, beside, .. } = jobs.remove(0);
        let status = submit(&client, job, &beside, arguments.plan.0)?;
        return context.output.print(&status, || line(&status));
    }
    // All of them first: what cannot be read keeps every job of the file from being submitted.
    for wanted in &mut jobs {
        files::bring(&client, &mut wanted.job)?;
    }
    let mut taken: Vec<JobStatus> = Vec::new();
    for Wanted { mut job, beside, fellows } in jobs {
        let mut all = job.after.take().map(|after| *after).unwrap_or_default();
        all.0.extend(fellows.into_iter().map(|(place, ended)| (taken[place].id, ended)));
        job.after = (!all.0.is_empty()).then(|| Box::new(all));
        match submit(&client, job, &beside, arguments.plan.0) {
            Ok(status) => taken.push(status),
            Err(error) => {
                // What was taken before it goes its way; whoever wants it back must know its id.
                let number = taken.len() + 1;
                let told = error.hint(format!("this is job {number} of the file"));
                let ids: Vec<String> = taken.iter().map(|status| status.id.to_string()).collect();
                return Err(if ids.is_empty() {
                    told
                } else {
                    told.hint(format!("those before it were submitted: {}", ids.join(" ")))
                });
            }
        }
    }
    context.output.print(&taken, || taken.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Submits a job with its files and secrets, and the jobs that it is to start after.
pub fn submit(client: &Client, job: Job, beside: &Beside, plan: Span) -> Result<JobStatus, Error> {
    submit_as(&Folder::choose()?, client, job, beside, plan)
}

/// For which grid a job is signed, and when: what is accepted nowhere else, and not for ever.
pub fn origin(client: &Client) -> Result<Origin, Error> {
    let grid = read_key(client.grid()?).map_err(|error| Error::internal(error.to_string()))?;
    Ok(Origin { grid, made: now() })
}

/// The same for the user of this folder.
pub fn submit_as(
    folder: &Folder,
    client: &Client,
    mut job: Job,
    beside: &Beside,
    plan: Span,
) -> Result<JobStatus, Error> {
    // First of all: without them nothing is to be brought anywhere.
    let secrets = secrets::read(&job, &beside.secrets)?;
    if !beside.after.is_empty() {
        let mut all = job.after.take().map(|after| *after).unwrap_or_default();
        for JobRef { id, ended } in &beside.after {
            if all.0.insert(client.job(id)?.id, *ended).is_some() {
                return Err(Error::user(format!("job {id} is named twice among those to start after")));
            }
        }
        job.after = Some(Box::new(After(all.0)));
    }
    let (user, pass) = (signer(folder)?, folder.pass()?);
    // A pass for another grid says nothing here: the node vouches instead.
    let foreign = |says: &Statement| client.grid().is_ok_and(|grid| grid != write_key(&says.grid.0));
    let says = pass.as_ref().and_then(pass::says).filter(|says| !foreign(says));
    let (named, organisation) = says.map(|says| (says.name, says.organisation)).unzip();
    // Named in the job, so that nodes that do not serve them need not be asked.
    job.organisation = job.organisation.or(organisation.flatten());
    // Called as the pass says, which may be otherwise than in the key's file.
    job.user = job.user.or(named).or_else(|| Some(user.name().clone()));
    files::bring(client, &mut job)?;
    let nonce = Nonce(shoal_api::secret::draw()?);
    let envelope = Envelope::new(job, nonce).map_err(|error| Error::user(error.to_string()))?;
    let envelope = user.seal(envelope.made_for(origin(client)?));
    let envelope = match pass {
        Some(pass) => envelope.with_pass(pass),
        None => envelope,
    };
    if !secrets.is_empty() {
        client.tell_secrets(envelope.id(), &secrets)?;
    }
    Ok(client.submit(&envelope, plan)?)
}
