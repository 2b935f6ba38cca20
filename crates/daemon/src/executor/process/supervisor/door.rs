//! The supervisor's socket: a thread that reads and one that writes for each daemon that comes.
//!
//! The keeper never waits for a daemon: one that does not take what it is told, or says what cannot be read, is cut off.
//! It will come back and find everything again.

use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use super::super::words::{self, Answer, Request, VERSION, Welcome, Word};
use super::{Event, STACK};
use crate::bounded;

/// Daemons that are heard at once; one is enough, and a restart may overlap.
const CONNECTIONS_MAX: usize = 8;
/// Answers that can wait for a daemon to take them.
const ANSWERS_MAX: usize = 10_000;
/// How long a daemon may take to say hello, or to take an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens for daemons from now on.
pub(super) fn open(listener: UnixListener, events: SyncSender<Event>) -> io::Result<()> {
    let thread = thread::Builder::new().name("door".to_owned()).stack_size(STACK);
    thread.spawn(move || {
        let inside = Arc::new(AtomicUsize::new(0));
        for (number, stream) in (0..).zip(listener.incoming()) {
            let Ok(stream) = stream else { continue };
            if inside.fetch_add(1, Ordering::SeqCst) < CONNECTIONS_MAX {
                let (events, inside) = (events.clone(), Arc::clone(&inside));
                let thread = thread::Builder::new().name("reader".to_owned()).stack_size(STACK);
                let spawned = thread.spawn(move || {
                    if let Err(error) = hear(number, &stream, &events) {
                        eprintln!("connection {number} ends: {error}");
                    }
                    let _ = stream.shutdown(Shutdown::Both);
                    let _ = events.send(Event::Gone(number));
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
                if spawned.is_ok() {
                    continue;
                }
            }
            inside.fetch_sub(1, Ordering::SeqCst);
        }
    })?;
    Ok(())
}

fn hear(number: u64, stream: &UnixStream, events: &SyncSender<Event>) -> Result<(), words::Error> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut from = BufReader::new(stream);
    let Some(Request::Hello(hello)) = words::next(&mut from)? else { return Err(words::Error::NoHello) };
    words::understood(hello.version)?;
    stream.set_read_timeout(None)?;

    let (answers, waiting) = bounded::queue(ANSWERS_MAX);
    let _ = answers.try_send(Answer::Welcome(Welcome { version: VERSION, pid: std::process::id() }));
    let to = stream.try_clone()?;
    let thread = thread::Builder::new().name("writer".to_owned()).stack_size(STACK);
    thread.spawn(move || {
        let _ = tell(&to, &waiting);
        let _ = to.shutdown(Shutdown::Both);
    })?;
    if events.send(Event::Came(number, answers)).is_err() {
        return Ok(());
    }
    while let Some(request) = words::next(&mut from)? {
        if events.send(Event::Said(number, request)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Writes what there is to tell, all that waits at once.
fn tell(mut to: &UnixStream, waiting: &bounded::Receiver<Answer>) -> io::Result<()> {
    let mut bytes = Vec::new();
    while let Some(answer) = waiting.recv() {
        bytes.clear();
        answer.write(&mut bytes);
        waiting.try_iter().for_each(|answer| answer.write(&mut bytes));
        to.write_all(&bytes)?;
    }
    Ok(())
}
