//! `shoal wait`: until jobs are over.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use shoal_api::{Client, ClientError, JobStatus, State, Until};
use shoal_model::Span;
use shoal_model::units::SpanText;

use crate::context::Context;
use crate::error::Error;
use crate::show;

/// How long one question waits.
const ASKED: Span = Span::from_secs(50);
/// What the program ends with when the time is up, as `timeout` does.
const TIME_IS_UP: u8 = 124;

/// Between two looks whether a node is back.
const PAUSE: Duration = Duration::from_millis(200);

/// Asks a node again that was killed and comes back: it has forgotten nothing.
struct Patient<'a> {
    context: &'a Context,
    /// The node after it came back: it may listen elsewhere.
    again: Option<Client>,
}

impl<'a> Patient<'a> {
    fn new(context: &'a Context) -> Patient<'a> {
        Patient { context, again: None }
    }

    /// Waits for a job, and for the node if that is away, for so long each; `first` is who was asked first.
    fn wait(&mut self, first: &Client, job: &str, most: Span) -> Result<JobStatus, Error> {
        let mut away: Option<Instant> = None;
        loop {
            match self.again.as_ref().unwrap_or(first).wait(job, Until::Ended, most) {
                Err(error @ (ClientError::Broken(_) | ClientError::NotRunning { .. })) => {
                    if away.is_none() {
                        eprintln!(
                            "the node does not answer; what it has accepted goes on, and it is waited for"
                        );
                    }
                    if since(*away.get_or_insert_with(Instant::now)) >= most {
                        return Err(error.into());
                    }
                    std::thread::sleep(PAUSE);
                    self.again = self.context.client().ok().or(self.again.take());
                }
                told => return Ok(told?),
            }
        }
    }
}

/// What to wait for.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Ids of jobs, shortened as long as they are unambiguous
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// How long at most; ends with 124 then
    #[arg(long, value_name = "SPAN")]
    timeout: Option<SpanText>,
}

/// Waits until jobs are over: ends with 0 if all ended well, and else with the code of the first that did not.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode, Error> {
    let (client, mut patient) = (context.client()?, Patient::new(context));
    let began = Instant::now();
    let mut ended = Vec::new();
    for job in &arguments.jobs {
        loop {
            let gone = since(began);
            let left = arguments.timeout.map_or(ASKED, |most| most.0.saturating_sub(gone));
            let status = patient.wait(&client, job, left.min(ASKED))?;
            if status.state.is_over() {
                ended.push(status);
                break;
            }
            if arguments.timeout.is_some()
                && left <= ASKED
                && gone + left >= arguments.timeout.map_or(Span::MAX, |t| t.0)
            {
                eprintln!("the time is up: job {} is {}", show::short(&status), status.state);
                return Ok(ExitCode::from(TIME_IS_UP));
            }
            pause_if_moved(&status);
        }
    }
    let line = |job: &JobStatus| {
        format!("{} {}", show::short(job), job.reason.clone().unwrap_or_else(|| job.state.to_string()))
    };
    context.output.print(&ended, || ended.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    let code = ended.iter().filter_map(|job| job.code).find(|code| *code != 0).unwrap_or(0);
    Ok(ExitCode::from(code))
}

/// Waits until a job is over, however long that takes.
pub fn until_over(client: &Client, job: &str) -> Result<JobStatus, Error> {
    until(|| Ok(client.wait(job, Until::Ended, ASKED)?))
}

/// The same, also if the node is killed meanwhile and comes back.
pub fn until_over_patiently(client: &Client, job: &str, context: &Context) -> Result<JobStatus, Error> {
    let mut patient = Patient::new(context);
    until(|| patient.wait(client, job, ASKED))
}

fn until(mut wait: impl FnMut() -> Result<JobStatus, Error>) -> Result<JobStatus, Error> {
    loop {
        let status = wait()?;
        if status.state.is_over() {
            return Ok(status);
        }
        pause_if_moved(&status);
    }
}

fn since(instant: Instant) -> Span {
    Span::from_micros(u64::try_from(instant.elapsed().as_micros()).unwrap_or(u64::MAX))
}

/// A job on its way from node to node is found a moment later.
fn pause_if_moved(status: &JobStatus) {
    if status.state == State::HandedOver {
        std::thread::sleep(Duration::from_millis(200));
    }
}
