//! `shoal logs`: what a job writes.

use std::io::{self, Read, Write};

use shoal_api::{LogQuery, Stream};

use crate::context::Context;
use crate::error::Error;

/// Bytes that are passed on at once.
const PART: usize = 64 << 10;

/// Which output.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The id of a job, shortened as long as it is unambiguous
    #[arg(value_name = "JOB")]
    job: String,
    /// Go on until the job is over
    #[arg(long, short = 'f')]
    follow: bool,
    /// What it writes to standard error instead
    #[arg(long, short = 'e')]
    stderr: bool,
    /// Of which task
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    rank: u32,
    /// Of an array: of which of its jobs
    #[arg(long, value_name = "INDEX")]
    index: Option<u32>,
    /// Of which placement; else the last
    #[arg(long, value_name = "N")]
    epoch: Option<u32>,
    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// From this byte on
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    offset: u64,
}

/// Prints an output.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let Arguments { ref job, follow, stderr, rank, index, epoch, tail, offset } = *arguments;
    let stream = if stderr { Stream::Stderr } else { Stream::Stdout };
    let query = LogQuery { stream, rank, epoch, offset, tail, follow };
    let client = context.client()?;
    let job = match index {
        None => job.clone(),
        Some(index) => client.job(job)?.id.of_index(index).to_string(),
    };
    let reader = client.logs(&job, &query)?;
    if context.output.is_json() {
        return as_json(&job, &query, reader, context);
    }
    copy(reader, &mut io::stdout().lock())
}

/// The node that passed an output on is gone.
fn broke_off(error: io::Error) -> Error {
    Error::internal(format!("the output broke off: {error}"))
        .hint("what was accepted goes on; ask again once the node is back: `shoal logs` has all of it")
}

/// Passes bytes on as they come; whoever reads may have seen enough.
pub fn copy(mut from: impl Read, to: &mut impl Write) -> Result<(), Error> {
    let mut part = vec![0; PART];
    loop {
        let read = from.read(&mut part).map_err(broke_off)?;
        if read == 0 {
            return Ok(());
        }
        match to.write_all(&part[..read]).and_then(|()| to.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            done => done?,
        }
    }
}

/// The whole output as one text; bytes that are none are replaced.
fn as_json(job: &str, query: &LogQuery, mut reader: impl Read, context: &Context) -> Result<(), Error> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(broke_off)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let data = serde_json::json!({
        "job": job, "stream": query.stream, "rank": query.rank, "bytes": bytes.len(), "text": text,
    });
    context.output.print(&data, || text)
}
