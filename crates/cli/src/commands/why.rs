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
            let says = match (node.reasons.is_empty(), node.free_from) {
                (false, _) => node.reasons.join("; "),
                (true, None) => "would do".to_owned(),
                (true, Some(from)) if from.0 <= clock.now() => "would do, and has room now".to_owned(),
                (true, Some(from)) => format!("would do, and is taken until {}", clock.show(from.0)),
            };
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
