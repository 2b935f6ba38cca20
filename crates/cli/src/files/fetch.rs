//! Fetches files from the node: verified, from where it broke off, and never over another file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use shoal_api::{Client, FileView};
use shoal_model::Digest;

use crate::error::Error;
use crate::progress::Transfer;

/// Bytes that are read at once.
const READ: usize = 256 << 10;
/// How often a file that breaks off is asked for again.
const TRIES: u32 = 5;

/// Puts a file of a job where it is wanted.
pub fn fetch(client: &Client, file: &FileView, to: &Path, over: bool, bar: &Transfer) -> Result<(), Error> {
    let cannot = |doing: &str, path: &Path, error: io::Error| {
        Error::internal(format!("cannot {doing} {}: {error}", path.display()))
    };
    match fs::symlink_metadata(to) {
        Ok(facts)
            if facts.is_file()
                && facts.len() == file.size
                && hash_of(to).is_ok_and(|(found, _)| found == file.digest) =>
        {
            bar.moved(file.size);
            return Ok(());
        }
        Ok(_) if !over => {
            return Err(Error::user(format!("{} is there, and is another", to.display()))
                .hint("--to DIR puts the files elsewhere, --force over what is there"));
        }
        Ok(_) | Err(_) => {}
    }
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, error))?;
    let part = part_of(to, &file.digest);
    let mut why = String::new();
    for _ in 0..TRIES {
        match go_on(client, file, &part, bar) {
            Ok(true) => {
                let mode = if file.executable { 0o755 } else { 0o644 };
                let named = fs::set_permissions(&part, fs::Permissions::from_mode(mode));
                named.and_then(|()| fs::rename(&part, to)).map_err(|error| cannot("name", to, error))?;
                return Ok(());
            }
            Ok(false) => why = "what came is not what the task left behind".to_owned(),
            Err(error) => why = error.message().to_owned(),
        }
    }
    Err(Error::internal(format!("cannot get `{}`: {why}", file.path))
        .hint("the same command goes on where this one ended"))
}

/// Where a file is while it comes.
fn part_of(to: &Path, digest: &Digest) -> PathBuf {
    let name = to.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    to.with_file_name(format!(".{name}.{digest:?}.part"))
}

/// Fetches what is missing of a file; says whether the whole is right, and drops it if not.
fn go_on(client: &Client, file: &FileView, part: &Path, bar: &Transfer) -> Result<bool, Error> {
    let (mut hasher, at) = match hash_into(part) {
        Ok((hasher, at)) if at <= file.size => (hasher, at),
        _ => {
            let _ = fs::remove_file(part);
            (blake3::Hasher::new(), 0)
        }
    };
    let mut options = File::options();
    let mut to =
        options.append(true).create(true).mode(0o600).custom_flags(nix::libc::O_NOFOLLOW).open(part)?;
    bar.at_least(at);
    if at < file.size {
        let mut from = client.file(&file.digest, at, &file.holders)?;
        let mut bytes = vec![0; READ];
        let mut left = file.size - at;
        // Whatever more is sent is not waited for.
        while left > 0 {
            let read = from.read(&mut bytes)?;
            if read == 0 {
                break;
            }
            let now = read.min(usize::try_from(left).unwrap_or(usize::MAX));
            hasher.update(&bytes[..now]);
            to.write_all(&bytes[..now])?;
            bar.moved(now as u64);
            left -= now as u64;
        }
        if left > 0 {
            return Err(Error::internal("the file broke off"));
        }
    }
    to.sync_all()?;
    let right = hasher.finalize().as_bytes() == &file.digest.0;
    if !right {
        fs::remove_file(part)?;
    }
    Ok(right)
}

fn hash_of(path: &Path) -> io::Result<(Digest, u64)> {
    let (hasher, size) = hash_into(path)?;
    Ok((Digest(*hasher.finalize().as_bytes()), size))
}

fn hash_into(path: &Path) -> io::Result<(blake3::Hasher, u64)> {
    let mut file = File::options().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(path)?;
    let mut hasher = blake3::Hasher::new();
    let (mut bytes, mut size) = (vec![0; READ], 0);
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok((hasher, size)),
            read => {
                hasher.update(&bytes[..read]);
                size += read as u64;
            }
        }
    }
}
