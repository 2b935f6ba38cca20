//! `shoal man`: the manual.

use std::path::PathBuf;

use crate::error::Error;

/// Where to.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write a page for each command into this folder, instead of the first one to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints or writes the manual.
pub fn run(arguments: &Arguments) -> Result<(), Error> {
    let tree = crate::tree();
    match &arguments.out {
        None => clap_mangen::Man::new(tree).render(&mut std::io::stdout())?,
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            clap_mangen::generate_to(tree, folder)?;
        }
    }
    Ok(())
}
