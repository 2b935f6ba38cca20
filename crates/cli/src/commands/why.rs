//! `shoal why`: plain words.

use crate::context::Context;
use crate::error::Error;
use crate::output::Table;
use crate::show::Clock;

/// Which job.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The id of a job, shortened as long as it is unambiguous
    #[arg(value_name = "JOB")]
    job: String,
}

/// Says why a job is where it is.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let why = context.client()?.why(&arguments.job)?;
    context.output.print(&why, || {
        let clock = Clock::read();
        let mut nodes = Table::plain().titled("nodes");
        for node in &why.nodes {
            let says = if node.reasons.is_empty() { "would do".to_owned() } else { node.reasons.join("; ") };
            nodes.row([node.node.clone(), says]);
        }
        let mut story = Table::plain().titled("what happened");
        for event in &why.story {
            story.row([clock.show(event.at.0), event.text.clone()]);
        }
        let below = if why.nodes.is_empty() { story } else { nodes.then(story) };
        format!("{}\n{below}", why.answer)
    })
}
