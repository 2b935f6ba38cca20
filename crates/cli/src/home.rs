//! Which data folder a command is about.

use std::path::PathBuf;

use shoal_daemon::Home;
use shoal_daemon::home::resolve;

use crate::error::Error;

/// The folder, as the command line names it.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The node's data folder [default: $SHOAL_HOME, or the user's state folder]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
}

impl Options {
    /// The folder that is meant.
    pub fn home(&self) -> Result<Home, Error> {
        let place = resolve(self.home.as_deref(), |name| std::env::var_os(name));
        Ok(Home::at(place.map_err(|error| Error::user(error.to_string()))?))
    }
}
