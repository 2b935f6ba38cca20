//! `shoal user`: the key that jobs are signed with, and what shows whose it is.

use serde::Serialize;
use shoal_api::{RevokeForm, Signs, VouchForm};
use shoal_daemon::membership::GridId;
use shoal_daemon::trust::demand::{Matter, Verb};
use shoal_daemon::trust::pass::{self, Statement};
use shoal_daemon::trust::text::{read_key, write_key};
use shoal_daemon::trust::user::{Folder, User, as_name};
use shoal_model::Name;
use shoal_model::units::{SpanText, TimeText};

use crate::context::Context;
use crate::error::Error;
use crate::job::now;
use crate::show::Clock;

/// What to do about users.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make your key; the first job that you submit does so too
    New {
        /// What you are called; else your name on this machine
        name: Option<Name>,
    },
    /// Show your key and your pass
    Show,
    /// Vouch for somebody's key in the name of this node, and print a pass for them to keep
    Trust {
        /// Their key, as `shoal user show` prints it
        key: String,
        /// What they are called
        #[arg(long)]
        name: Name,
        /// For how long
        #[arg(long = "for", value_name = "SPAN", default_value = "30d")]
        lasts: SpanText,
    },
    /// Keep a pass that an organisation or a node gave you, and show it with every job from now on
    Keep {
        /// The pass
        pass: String,
    },
    /// Have nothing more started for a user, or for a pass
    Revoke {
        /// The user's key
        #[arg(required_unless_present = "serial")]
        key: Option<String>,
        /// The serial of a pass, instead
        #[arg(long, value_name = "NUMBER", conflicts_with = "key")]
        serial: Option<u64>,
    },
}

/// A user for people.
#[derive(Serialize)]
struct Shown {
    name: String,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<PassShown>,
}

/// A pass for people.
#[derive(Serialize)]
struct PassShown {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    organisation: Option<String>,
    serial: u64,
    expires: TimeText,
}

impl Command {
    /// Does it.
    pub fn run(self, context: &Context) -> Result<(), Error> {
        let folder = Folder::choose()?;
        match self {
            Command::New { name } => {
                let name = name.map_or_else(own_name, Ok)?;
                show(&folder, &folder.make_user(name)?, context)
            }
            Command::Show => match folder.user()? {
                Some(user) => show(&folder, &user, context),
                None => Err(Error::user(format!("there is no key in {}", folder.path().display()))
                    .hint("`shoal user new` makes one, and so does the first job that you submit")),
            },
            Command::Trust { key, name, lasts } => {
                let form = VouchForm { key, name: name.to_string(), lasts: Some(lasts.to_string()) };
                let text = context.client()?.vouch(&form)?;
                context.output.print(&text, || text.text.clone())
            }
            Command::Keep { pass } => {
                let pass = pass::read(&pass).map_err(|error| Error::user(error.to_string()))?;
                let wrong = || Error::user("the pass makes no sense; ask for another");
                let says = pass::says(&pass).ok_or_else(wrong)?;
                let user = folder.user()?.map_or_else(|| folder.make_user(says.name.clone()), Ok)?;
                if says.user != user.key() {
                    return Err(Error::user("the pass is for another key than yours")
                        .hint(format!("give who makes it this key: {}", write_key(&user.key()))));
                }
                folder.keep_pass(&pass)?;
                show(&folder, &user, context)
            }
            Command::Revoke { key, serial } => {
                let reach = context.client()?.revoke(&RevokeForm { user: key, serial })?;
                context.output.print(&reach, || reach.reach.clone())
            }
        }
    }
}

fn show(folder: &Folder, user: &User, context: &Context) -> Result<(), Error> {
    let says = folder.pass()?.as_ref().and_then(pass::says);
    let pass = says.map(|Statement { name, organisation, serial, expires, .. }| PassShown {
        name: name.to_string(),
        organisation: organisation.map(|name| name.to_string()),
        serial,
        expires: TimeText(expires),
    });
    let shown = Shown { name: user.name().to_string(), key: write_key(&user.key()), pass };
    context.output.print(&shown, || {
        let line = format!("{}  {}", shown.name, shown.key);
        match &shown.pass {
            None => line,
            Some(PassShown { name, organisation, serial, expires }) => {
                let of = organisation.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
                let until = Clock::read().show(expires.0);
                format!("{line}\npass {serial}: {name}{of}, until {until}")
            }
        }
    })
}

/// Signs what the user of this folder wants done about jobs; nothing, if there is no key.
pub fn signs(folder: Folder) -> Signs {
    Box::new(move |grid, job, verb| {
        let wrong = |error: &dyn std::fmt::Display| error.to_string();
        let Some(user) = folder.user().map_err(|error| wrong(&error))? else { return Ok(None) };
        let verb = Verb::ALL.into_iter().find(|known| known.name() == verb).ok_or("an unknown verb")?;
        let grid = GridId(read_key(grid).map_err(|error| wrong(&error))?);
        let demand = user.demand(Matter { grid, job, verb }, now()).map_err(|error| wrong(&error))?;
        Ok(Some(demand.write()))
    })
}

/// The user of this folder; made if there is none.
pub fn signer(folder: &Folder) -> Result<User, Error> {
    match folder.user()? {
        Some(user) => Ok(user),
        // Of several first jobs at once one makes the key.
        None => match (folder.make_user(own_name()?), folder.user()?) {
            (Ok(user), _) | (Err(_), Some(user)) => Ok(user),
            (Err(error), None) => Err(error.into()),
        },
    }
}

/// What the user is called on this machine.
fn own_name() -> Result<Name, Error> {
    let named = |variable| std::env::var(variable).ok().and_then(|name| as_name(&name));
    let name = named("USER").or_else(|| named("LOGNAME")).or_else(|| as_name("user"));
    name.ok_or_else(|| Error::user("your name on this machine cannot be used").hint("`shoal user new NAME`"))
}
