//! `shoal completions`: what a shell needs to complete commands.

use clap_complete::Shell;

/// For which shell.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints completions.
pub fn run(arguments: &Arguments) {
    clap_complete::generate(arguments.shell, &mut crate::tree(), "shoal", &mut std::io::stdout());
}
