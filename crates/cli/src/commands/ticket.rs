//! `shoal ticket`: lets another machine in.

use shoal_model::Name;
use shoal_model::units::SpanText;

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
}

/// Prints a ticket.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let ticket =
        context.client()?.ticket(arguments.lasts.0, arguments.organisation.as_ref().map(Name::as_str))?;
    context.output.print(&ticket, || ticket.ticket.clone())?;
    eprintln!(
        "good for one machine until {}: shoal node --join TICKET",
        Clock::read().show(ticket.expires.0)
    );
    Ok(())
}
