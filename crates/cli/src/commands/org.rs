//! `shoal org`: an organisation's key, whom it admits, and who trusts it.

use serde::Serialize;
use shoal_api::{OrganisationForm, Text};
use shoal_daemon::membership::GridId;
use shoal_daemon::trust::notice::{Notice, Said};
use shoal_daemon::trust::pass::{self, Statement};
use shoal_daemon::trust::text::{read_key, write_key};
use shoal_daemon::trust::user::Folder;
use shoal_model::Name;
use shoal_model::units::SpanText;

use crate::context::Context;
use crate::error::Error;
use crate::job::now;

/// What to do about organisations.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make an organisation's key, kept in your own folder, and print its public half
    New {
        /// What the organisation is called
        name: Name,
    },
    /// Trust an organisation's key: on an admitter for the whole grid, else on this node
    Trust {
        /// What the organisation is called
        name: Name,
        /// Its key, as `shoal org new` printed it
        key: String,
    },
    /// Admit a user to an organisation whose key you have, and print the pass for them to keep
    Admit {
        /// The user's key, as `shoal user show` prints it
        key: String,
        /// What the user is called
        #[arg(long)]
        name: Name,
        /// To which organisation
        #[arg(long, value_name = "NAME")]
        organisation: Name,
        /// For how long
        #[arg(long = "for", value_name = "SPAN", default_value = "30d")]
        lasts: SpanText,
        /// In which grid, by its key; else that of this machine's node
        #[arg(long, value_name = "KEY")]
        grid: Option<String>,
    },
    /// Have nothing more started for a user of an organisation whose key you have, or for a pass of it
    Revoke {
        /// The user's key
        #[arg(required_unless_present = "serial")]
        key: Option<String>,
        /// The serial of a pass, instead
        #[arg(long, value_name = "NUMBER", conflicts_with = "key")]
        serial: Option<u64>,
        /// Whose user
        #[arg(long, value_name = "NAME")]
        organisation: Name,
    },
    /// Show the organisations that this node trusts, and what was revoked
    Show,
}

/// An organisation for people.
#[derive(Serialize)]
struct Shown {
    name: String,
    key: String,
}

impl Command {
    /// Does it.
    pub fn run(self, context: &Context) -> Result<(), Error> {
        let folder = Folder::choose()?;
        match self {
            Command::New { name } => {
                let key = folder.make_organisation(&name)?;
                let shown = Shown { name: name.to_string(), key: write_key(&key.public()) };
                context.output.print(&shown, || shown.key.clone())?;
                eprintln!(
                    "have the grid trust it, on the node that made the grid: shoal org trust {name} KEY"
                );
                Ok(())
            }
            Command::Trust { name, key } => {
                let form = OrganisationForm { name: name.to_string(), key };
                let reach = context.client()?.trust_organisation(&form)?;
                context.output.print(&reach, || reach.reach.clone())
            }
            Command::Admit { key, name, organisation, lasts, grid } => {
                let user = read_key(&key).map_err(|error| Error::user(error.to_string()))?;
                let grid = grid_of(grid, context)?;
                let signer = folder.organisation(&organisation)?;
                let statement = Statement::new(grid, user, name, Some(organisation), now() + lasts.0);
                let text = Text { text: pass::write(&pass::by_organisation(&signer, &statement)) };
                context.output.print(&text, || text.text.clone())?;
                eprintln!("serial {}; for the user: shoal user keep PASS", statement.serial);
                Ok(())
            }
            Command::Revoke { key, serial, organisation } => {
                let said = match (key, serial) {
                    (Some(key), _) => {
                        Said::RevokedUser(read_key(&key).map_err(|error| Error::user(error.to_string()))?)
                    }
                    (None, serial) => Said::RevokedPass(serial.unwrap_or_default()),
                };
                let signer = folder.organisation(&organisation)?;
                let notice = Notice::by_organisation(&signer, grid_of(None, context)?, said, now());
                let reach = context.client()?.notice(notice.write())?;
                context.output.print(&reach, || reach.reach.clone())
            }
            Command::Show => {
                let trusted = context.client()?.trusted()?;
                context.output.print(&trusted, || {
                    let known = trusted.organisations.iter().map(|(name, key)| format!("{name}  {key}"));
                    let revoked = trusted.revoked.iter().map(|revoked| {
                        let what = match (&revoked.user, revoked.serial) {
                            (Some(user), _) => user.clone(),
                            (None, serial) => format!("pass {}", serial.unwrap_or_default()),
                        };
                        format!("revoked  {what}")
                    });
                    known.chain(revoked).collect::<Vec<_>>().join("\n")
                })
            }
        }
    }
}

/// The grid that was named, or that of the node of this machine.
fn grid_of(named: Option<String>, context: &Context) -> Result<GridId, Error> {
    let text = match named {
        Some(text) => text,
        None => context.client()?.trusted()?.grid,
    };
    read_key(&text).map(GridId).map_err(|error| Error::user(format!("--grid: {error}")))
}
