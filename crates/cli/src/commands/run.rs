//! `shoal run`: submit, watch, and end as the job does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};
use shoal_api::{Client, ClientError, JobStatus, LogQuery, Stream};
use shoal_model::Span;

use super::logs::copy;
use super::submit::submit;
use super::wait::until_over_patiently;
use crate::context::Context;
use crate::error::Error;
use crate::job::What;
use crate::show::{self, Clock};

/// Tasks whose outputs are shown.
const RANKS_SHOWN: u32 = 16;
/// How long the plan is waited for before its output is.
const PLAN: Span = Span::from_secs(2);

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    what: What,
}

/// Runs a job, and says what to end with.
pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode, Error> {
    let (job, beside) = arguments.what.read()?;
    // Before any thread is started: all of them leave it to the one that waits for it.
    let interrupts = SigSet::from(Signal::SIGINT);
    let _ = interrupts.thread_block();
    let client = Arc::new(context.client()?);
    let array = job.array.is_some();
    let status = submit(&client, job, &beside, PLAN)?;
    eprintln!("job {}: {}", show::short(&status), show::promise(&status, &Clock::read()));
    let id = status.id.to_string();
    cancel_on_interrupt(interrupts, &client, &id)?;

    let shown = if array { 0 } else { status.nodes.min(RANKS_SHOWN) };
    if array {
        eprintln!(
            "an array: `shoal logs {} --index N` shows the output of one of its jobs",
            show::short(&status)
        );
    } else if shown < status.nodes {
        eprintln!("outputs of the first {shown} of {} tasks are shown", status.nodes);
    }
    let gang = status.nodes > 1;
    let outputs = (0..shown).flat_map(|rank| [(rank, Stream::Stdout), (rank, Stream::Stderr)]);
    let threads: Vec<_> = outputs
        .map(|(rank, stream)| {
            let (client, id) = (Arc::clone(&client), id.clone());
            thread::Builder::new().spawn(move || follow(&client, &id, rank, stream, gang))
        })
        .collect::<Result<_, _>>()?;
    for thread in threads {
        match thread.join() {
            Ok(done) => done?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let ended = until_over_patiently(&client, &id, context)?;
    tell(&ended, context)?;
    Ok(ExitCode::from(ended.code.unwrap_or(1)))
}

fn tell(ended: &JobStatus, context: &Context) -> Result<(), Error> {
    if context.output.is_json() {
        return context.output.print(ended, String::new);
    }
    if let Some(reason) = ended.reason.as_ref().filter(|_| ended.code != Some(0)) {
        eprintln!("job {}: {reason}", show::short(ended));
    }
    Ok(())
}

/// Shows an output as it comes; that of a gang with the rank before each line.
fn follow(client: &Client, job: &str, rank: u32, stream: Stream, gang: bool) -> Result<(), Error> {
    let query = LogQuery { stream, rank, follow: true, ..LogQuery::default() };
    let reader = match client.logs(job, &query) {
        Err(error @ (ClientError::Broken(_) | ClientError::NotRunning { .. })) => {
            tell_broken(job, &error);
            return Ok(());
        }
        reader => UpToTheBreak { from: reader?, job },
    };
    match (stream, gang) {
        // Locked for each part only: the other output has its turn too.
        (Stream::Stdout, false) => copy(reader, &mut io::stdout()),
        (Stream::Stderr, false) => copy(reader, &mut io::stderr()),
        (Stream::Stdout, true) => copy_lines(rank, reader, &mut io::stdout()),
        (Stream::Stderr, true) => copy_lines(rank, reader, &mut io::stderr()),
    }
}

/// An output that ends where it broke off: the job goes on, and how it ends is told all the same.
struct UpToTheBreak<'a, R> {
    from: R,
    job: &'a str,
}

impl<R: Read> Read for UpToTheBreak<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.from.read(to).or_else(|error| {
            tell_broken(self.job, &error);
            Ok(0)
        })
    }
}

fn tell_broken(job: &str, why: &dyn std::fmt::Display) {
    eprintln!("an output broke off ({why}): `shoal logs {job}` has all of it");
}

/// Passes on whole lines, with the rank before each; a line without an end is cut where it is very long.
fn copy_lines(rank: u32, from: impl Read, to: &mut impl Write) -> Result<(), Error> {
    const LINE_MAX: u64 = 64 << 10;
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        write!(line, "[{rank}] ")?;
        let start = line.len();
        if (&mut from).take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') || line.len() == start {
            line.push(b'\n');
        }
        match to.write_all(&line).and_then(|()| to.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            done => done?,
        }
    }
}

/// Takes the job back at the first Ctrl-C, and leaves it alone at the second.
fn cancel_on_interrupt(interrupts: SigSet, client: &Arc<Client>, job: &str) -> Result<(), Error> {
    let (client, job, asked) = (Arc::clone(client), job.to_owned(), AtomicBool::new(false));
    thread::Builder::new().name("interrupts".to_owned()).spawn(move || {
        while interrupts.wait().is_ok() {
            if asked.swap(true, Ordering::SeqCst) {
                eprintln!("job {job} goes its way: `shoal status {job}`");
                std::process::exit(130);
            }
            eprintln!("takes the job back; Ctrl-C again leaves it alone");
            let (client, job) = (Arc::clone(&client), job.clone());
            thread::spawn(move || client.cancel(&job));
        }
    })?;
    Ok(())
}
