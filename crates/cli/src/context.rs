//! What every command is told: how to show results, and which node to ask.

use std::path::PathBuf;

use shoal_api::{Client, Home};
use shoal_daemon::trust::user::Folder;

use crate::commands::user::signs;
use crate::error::Error;
use crate::output::Options;

/// What every command is told.
#[derive(Debug, clap::Args)]
pub struct Context {
    #[command(flatten)]
    pub output: Options,
    /// The folder of the node to run or to ask; else SHOAL_HOME, else shoal in the user's state folder
    #[arg(long, global = true, value_name = "DIR", overrides_with = "home")]
    home: Option<PathBuf>,
    /// Ask as the owner of the node, and not as yourself: an admitter may touch all jobs, a host may take back what it runs
    #[arg(long, global = true)]
    as_node: bool,
}

impl Context {
    /// The node's folder.
    pub fn home(&self) -> Result<Home, Error> {
        Ok(Home::choose(self.home.as_deref())?)
    }

    /// The node that runs in it; what only a job's own user may is signed with the user's key.
    pub fn client(&self) -> Result<Client, Error> {
        let client = Client::of(&self.home()?)?;
        Ok(if self.as_node { client } else { client.signing(signs(Folder::choose()?)) })
    }
}
