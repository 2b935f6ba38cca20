//! `shoal policy`: what this machine's owner allows, tried out before anybody submits anything.

use serde::Serialize;
use shoal_daemon::settings::{LIMIT_DEFAULT, Settings};
use shoal_daemon::trust::policy::{Case, Policy, Verdict};
use shoal_daemon::trust::text::read_key;
use shoal_model::Name;

use crate::context::Context;
use crate::error::Error;
use crate::job::{What, now};

/// What to do about the policy.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Say what comes of a user's job on this machine, and by which rule of its policy.toml
    Check(Arguments),
}

/// Whose job.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The user's name
    #[arg(value_name = "USER")]
    whose: Name,
    /// The user's organisation; none if it is left out
    #[arg(long, value_name = "NAME")]
    of: Option<Name>,
    /// The user's key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// How many other jobs the user has there
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    beside: usize,
    #[command(flatten)]
    what: What,
}

/// What comes of it.
#[derive(Serialize)]
struct Shown {
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    verdict: String,
}

impl Command {
    /// Does it.
    pub fn run(self, context: &Context) -> Result<(), Error> {
        let Command::Check(Arguments { whose, of, key, beside, what }) = self;
        let home = context.home()?;
        let settings = Settings::load(home.path()).map_err(|error| Error::config(error.to_string()))?;
        let settings = settings.unwrap_or_default();
        let path = Policy::path(home.path());
        let policy = Policy::load(home.path())
            .map_err(|error| Error::config(format!("{}: {error}", path.display())))?;
        let key =
            key.map(|key| read_key(&key)).transpose().map_err(|error| Error::user(error.to_string()))?;
        let (job, _) = what.read()?;
        // A node that runs knows whose it is by its membership too.
        let member = context.client().ok().and_then(|client| client.trusted().ok());
        let member = member.map(|trusted| trusted.organisation.and_then(|name| name.parse().ok()));
        // As at the gate: what the settings do not say, the membership does.
        let set = settings.machine.organisation.clone();
        let own: Vec<Option<Name>> = match (member, set) {
            (Some(member), None) => vec![member],
            (Some(member), set) => vec![member, set],
            (None, set) => vec![set],
        };
        let verdict = policy.judge(&Case {
            user: &whose,
            key: key.as_ref(),
            organisation: of.as_ref(),
            resources: &job.resources,
            start: job.begin.unwrap_or_default().max(now()),
            limit: job.limit.unwrap_or_else(|| settings.time.map_or(LIMIT_DEFAULT, |time| time.0)),
            beside,
            own: &own,
        });
        let line = match verdict {
            Verdict::Rule { line, .. } => Some(line),
            Verdict::Default { .. } => None,
        };
        let shown = Shown { allowed: verdict.answer().is_ok(), line, verdict: verdict.to_string() };
        context.output.print(&shown, || shown.verdict.clone())
    }
}
