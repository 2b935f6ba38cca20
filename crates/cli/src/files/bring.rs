//! Brings files to the node: only what it does not have, from where it broke off.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::thread;
use std::time::Duration;

use shoal_api::files::{ASKED_MAX, MANY_BYTES_MAX};
use shoal_api::{Client, ClientError, Held};
use shoal_daemon::depot::{MANY_MAX, SMALL_MAX};
use shoal_model::{Digest, Job};

use super::Sources;
use super::read::{Source, changed, open_again};
use crate::error::Error;
use crate::progress::Transfer;

/// Bytes of a file that go with one request.
const PIECE: usize = 16 << 20;
/// How often a file is asked for that another brings at this moment, and the pause between.
const PATIENCE: (u32, Duration) = (300, Duration::from_millis(200));

/// Reads all files that a job brings along, and brings those to the node that it does not have. The job then says what
/// is in each.
pub fn bring(client: &Client, job: &mut Job) -> Result<(), Error> {
    if job.files.as_ref().is_none_or(|files| files.inputs.iter().all(|input| input.content().is_some())) {
        return Ok(());
    }
    let bar = Transfer::new("reads");
    let sources = Sources::of(job, &bar)?;
    bar.clear();
    let all: Vec<Held> = sources
        .0
        .iter()
        .map(|(digest, source)| Held { digest: *digest, size: source.size(), here: 0 })
        .collect();
    let mut lacking = Vec::new();
    for some in all.chunks(ASKED_MAX) {
        lacking.extend(client.held(some)?.into_iter().filter(|held| held.here < held.size || held.size == 0));
    }
    let bar = Transfer::new("brings");
    bar.of(lacking.iter().map(|held| held.size - held.here).sum());
    let (small, large): (Vec<Held>, Vec<Held>) = lacking.into_iter().partition(|held| held.size <= SMALL_MAX);
    bring_small(client, &small, &sources, &bar)?;
    for held in large {
        if let Some(source) = sources.0.get(&held.digest) {
            bring_large(client, held, source, &bar)?;
        }
    }
    bar.clear();
    Ok(())
}

fn bring_small(client: &Client, files: &[Held], sources: &Sources, bar: &Transfer) -> Result<(), Error> {
    let mut packed = Vec::new();
    let mut count = 0;
    for held in files {
        let Some(source) = sources.0.get(&held.digest) else { continue };
        if count == MANY_MAX || packed.len() as u64 + held.size + 40 > MANY_BYTES_MAX as u64 {
            client.bring_many(&packed)?;
            (packed, count) = (Vec::new(), 0);
        }
        packed.extend_from_slice(&held.digest.0);
        packed.extend_from_slice(&held.size.to_le_bytes());
        let start = packed.len();
        match source {
            Source::List(bytes) => packed.extend_from_slice(bytes),
            Source::File { path, seen } => {
                open_again(path, seen)?.take(held.size + 1).read_to_end(&mut packed)?;
                if Digest::of(&packed[start..]) != held.digest {
                    return Err(changed(path));
                }
            }
        }
        bar.moved((packed.len() - start) as u64);
        count += 1;
    }
    if count > 0 {
        client.bring_many(&packed)?;
    }
    Ok(())
}

fn bring_large(client: &Client, held: Held, source: &Source, bar: &Transfer) -> Result<(), Error> {
    let (path, seen) = match source {
        Source::File { path, seen } => (path, seen),
        Source::List(bytes) => return bring_bytes(client, held, bytes, bar),
    };
    let mut file = open_again(path, seen)?;
    let mut bytes = vec![0; PIECE];
    send(client, held, path, bar, |at| {
        file.seek(SeekFrom::Start(at))?;
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read(&mut bytes[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        // Something was cut off its end.
        if filled == 0 { Err(changed(path)) } else { Ok(bytes[..filled].to_vec()) }
    })?;
    open_again(path, seen).map(|_| ())
}

fn bring_bytes(client: &Client, held: Held, bytes: &[u8], bar: &Transfer) -> Result<(), Error> {
    send(client, held, Path::new("a list of files"), bar, |at| {
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes[from..bytes.len().min(from + PIECE)].to_vec())
    })
}

/// Sends piece after piece until all is there.
fn send(
    client: &Client,
    mut held: Held,
    path: &Path,
    bar: &Transfer,
    mut piece: impl FnMut(u64) -> Result<Vec<u8>, Error>,
) -> Result<(), Error> {
    let mut patience = PATIENCE.0;
    while held.here < held.size {
        let bytes = piece(held.here)?;
        match client.bring_piece(&held, &bytes) {
            Ok(now) => {
                bar.moved(now.here.saturating_sub(held.here));
                held = now;
            }
            // Another brings it too, or did: it goes on from where it is.
            Err(ClientError::Refused { status: 409, .. }) if patience > 0 => {
                patience -= 1;
                thread::sleep(PATIENCE.1);
                if let Some(now) = client.held(&[held])?.first() {
                    held = *now;
                }
            }
            Err(ClientError::Refused { status: 422, .. }) => return Err(changed(path)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
