//! What every command is told: how to show results, and which node to ask.

use std::path::PathBuf;

use shoal_api::{Client, Home};

use crate::error::Error;
use crate::output::Options;

/// What every command is told.
#[derive(Debug, clap::Args)]
pub struct Context {
    #[command(flatten)]
    pub output: Options,
    /// The folder of the node to run or to ask; else SHOAL_HOME, else shoal in the user's state folder
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
}

impl Context {
    /// The node's folder.
    pub fn home(&self) -> Result<Home, Error> {
        Ok(Home::choose(self.home.as_deref())?)
    }

    /// The node that runs in it.
    pub fn client(&self) -> Result<Client, Error> {
        Ok(Client::of(&self.home()?)?)
    }
}
