//! `shoal status`: a job, or the last ones of the grid.

use shoal_api::{JobPage, JobQuery, State};

use crate::context::Context;
use crate::error::Error;
use crate::show::{self, Clock};

/// Jobs that are listed where nobody says.
const LISTED: usize = 20;

/// Which jobs.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The id of a job, shortened as long as it is unambiguous
    #[arg(value_name = "JOB", conflicts_with_all = ["state", "name", "limit", "all", "here"])]
    job: Option<String>,
    /// Only jobs in these states, with commas between
    #[arg(long, value_name = "STATES", value_delimiter = ',')]
    state: Vec<State>,
    /// Only jobs with this in their names
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// List so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: Option<u16>,
    /// List all that are remembered
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Only jobs that were submitted at the node that is asked
    #[arg(long)]
    here: bool,
}

/// Shows a job, or the last ones.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let client = context.client()?;
    if let Some(job) = &arguments.job {
        let status = client.job(job)?;
        return context.output.print(&status, || show::job(&status, &Clock::read()));
    }
    let limit = if arguments.all { shoal_api::PAGE_MAX } else { arguments.limit.map_or(LISTED, usize::from) };
    let mut query = JobQuery {
        state: arguments.state.iter().map(|state| state.name()).collect::<Vec<_>>().join(","),
        name: arguments.name.clone(),
        limit: Some(limit),
        cursor: None,
    };
    let list =
        |query: &JobQuery| if arguments.here { client.jobs(query) } else { client.jobs_of_grid(query) };
    let mut page = list(&query)?;
    while let Some(next) = page.next.take_if(|_| arguments.all) {
        query.cursor = Some(next);
        let JobPage { jobs, next, silent } = list(&query)?;
        page.jobs.extend(jobs);
        page.next = next.filter(|next| query.cursor.as_ref() != Some(next));
        page.silent = page.silent.max(silent);
    }
    context.output.print(&page, || show::jobs(&page.jobs, &Clock::read()))?;
    if page.next.is_some() && !arguments.all {
        eprintln!("there are more: --all lists them");
    }
    show::silent(page.silent);
    Ok(())
}
