//! `shoal queue`: the jobs of the grid that have not ended, by their start.

use shoal_api::JobQuery;

use crate::context::Context;
use crate::error::Error;
use crate::show::{self, Clock};

/// How much of it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// List so many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Only jobs that were submitted at the node that is asked
    #[arg(long)]
    here: bool,
}

/// Lists the queue.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let query = JobQuery { limit: Some(arguments.limit.into()), ..JobQuery::default() };
    let client = context.client()?;
    let page = if arguments.here { client.queue(&query)? } else { client.queue_of_grid(&query)? };
    context.output.print(&page, || show::jobs(&page.jobs, &Clock::read()))?;
    if page.next.is_some() {
        eprintln!("there are more: --limit lists more of them");
    }
    show::silent(page.silent);
    Ok(())
}
