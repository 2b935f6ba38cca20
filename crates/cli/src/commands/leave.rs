//! `shoal leave`: the node ends, once its work is done.

use std::thread;
use std::time::Duration;

use shoal_api::ClientError;

use crate::context::Context;
use crate::error::Error;

/// Between two questions whether it is done.
const PAUSE: Duration = Duration::from_millis(200);

/// How to leave.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Do not wait: what runs goes on without the node, and is found again when it starts
    #[arg(long)]
    now: bool,
}

/// Has the node leave, and waits for it.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let client = context.client()?;
    let (mut told, mut asked) = (None, false);
    loop {
        let leaving = match client.leave(arguments.now) {
            Ok(leaving) => leaving,
            // It said before that it would end.
            Err(ClientError::NotRunning { .. } | ClientError::Broken(_)) if asked => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        asked = true;
        let waits = leaving.running + leaving.open > 0;
        if waits && told != Some((leaving.running, leaving.open)) && !leaving.done {
            told = Some((leaving.running, leaving.open));
            eprintln!("waits for {} task(s) that run and {} job(s)", leaving.running, leaving.open);
        }
        if leaving.done {
            return context.output.print(&leaving, || "the node ends".to_owned());
        }
        thread::sleep(PAUSE);
    }
}
