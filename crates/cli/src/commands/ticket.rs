//! `shoal ticket`: lets another machine in.

use shoal_model::units::SpanText;
use shoal_model::{Name, Span};

use crate::context::Context;
use crate::error::Error;
use crate::show::Clock;

/// What kind of ticket.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How long it can be used
    #[arg(long, value_name = "SPAN", default_value = "1d")]
    lasts: SpanText,
    /// Whose machine it will be; else of the same organisation as this one
    #[arg(long, value_name = "NAME")]
    organisation: Option<Name>,
    /// Have the machine let in others, too, also when this one is gone; only the node that made the grid can say so
    #[arg(long)]
    admitter: bool,
}

/// Prints a ticket.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let Arguments { lasts, ref organisation, admitter } = *arguments;
    if lasts.0 == Span::ZERO {
        return Err(Error::user("`--lasts 0s`: nobody could use such a ticket"));
    }
    let ticket = context.client()?.ticket(lasts.0, organisation.as_ref().map(Name::as_str), admitter)?;
    context.output.print(&ticket, || ticket.ticket.clone())?;
    eprintln!(
        "good for one machine until {}: shoal node --join TICKET",
        Clock::read().show(ticket.expires.0)
    );
    Ok(())
}
