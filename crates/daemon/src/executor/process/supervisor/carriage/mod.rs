//! Carriages: cells that quick tasks of one array ride through one after the other, instead of a cell for each.
//!
//! ```text
//! ride ── spawns ──▶ this program, as `carriage`: puts up the walls of a cell, and stays behind them
//!   │── Rider ──────▶   makes its outputs, spawns its program, waits for its end
//!   ◀────────── Rode ──   how it ended, and whether anything of it is left
//!
//! outside                               inside
//! tasks/RIDE.ride/work/TASK  ═══════▶  tasks/TASK     its working folder, where it always lies
//! tasks/RIDE.ride/tmp        ═══════▶  /tmp, /var/tmp
//! ```
//!
//! To put up walls and to take them down takes several times as long as a task that does nothing. Those of an array are
//! the same owner's and do the same, so what they share is no secret between them: the walls, and the user that they are.
//! What one of them leaves is not the next one's: its folder is moved out of the carriage when it has ended, and as soon
//! as a process, a file in `/tmp`, shared memory or a queue is left, nobody else rides in that carriage.
//!
//! While it rides, a task's folder lies in one that it cannot change: that takes a user of its own, and so a node that runs
//! as root. When the keeper takes over a task in its ride, a link shows its folder where it is looked for, until its end.

pub mod inside;
mod strings;

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, lchown, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use minicbor::{Decode, Encode};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use shoal_protocols::node::{Exit, Task, Usage};

use super::super::layout::{CARRIAGE, Layout};
use super::rides::Number;
use super::{confine, output, reaper, rubbish, system};
use crate::cell::{Cell, Failure, cbor};

pub(super) use strings::Strings;

/// The argument with which this program makes itself a carriage; see [`inside::main`].
pub const WORD: &str = "carriage";
/// How long one may take to stand.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a word: a script, arguments and environment are smaller.
const WORD_MAX: usize = 16 << 20;
/// The bytes before it, which say how long it is.
const HEAD: usize = 4;

/// A task that is to ride.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Rider {
    /// Its working folder, which is there and empty.
    #[cbor(n(0), with = "cbor::path")]
    pub folder: PathBuf,
    /// What is to be put there for it to run.
    #[n(1)]
    pub script: Option<String>,
    /// The program.
    #[cbor(n(2), with = "cbor::path")]
    pub program: PathBuf,
    /// What it is called, and its arguments.
    #[n(3)]
    pub argv: Strings,
    /// Its variables.
    #[n(4)]
    pub environment: Strings,
}

/// What has come of a task that was to ride.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) enum Rode {
    /// It has ended.
    #[n(0)]
    Ended {
        /// How.
        #[n(0)]
        exit: Exit,
        /// What it took.
        #[n(1)]
        usage: Usage,
        /// Whether nothing of it is left.
        #[n(2)]
        clean: bool,
    },
    /// Its program did not run.
    #[n(1)]
    Failed(#[n(0)] Failure),
}

/// A carriage, as its ride knows it.
pub(super) struct Carriage {
    pid: Pid,
    line: UnixStream,
}

/// A command that makes itself a carriage, and the line on which it hears which.
pub(super) fn command() -> io::Result<(Command, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(confine::ITSELF);
    command.arg(WORD).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).process_group(0).env_clear();
    Ok((command, ours))
}

impl Carriage {
    /// Hands its cell to a process that was spawned for it, and waits until its walls stand; one that does not get that far is
    /// killed.
    pub fn settle(mut child: Child, line: UnixStream, cell: &Cell) -> Result<Carriage, Failure> {
        let stands = || {
            line.set_read_timeout(Some(PATIENCE))?;
            say(&line, cell)?;
            let stands = hear::<Result<(), Failure>>(&line)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            line.set_read_timeout(None)?;
            Ok(stands)
        };
        let lost = |error: io::Error| Err(Failure::Wall(format!("it does not answer: {error}")));
        stands().unwrap_or_else(lost).inspect_err(|_| {
            // Reaped by its number, as every other.
            let _ = child.kill();
        })?;
        Ok(Carriage { pid: Pid::from_raw(child.id() as i32), line })
    }

    /// Its process, which leads a group of its own.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Has a task begin to ride.
    pub fn admit(&self, rider: &Rider) -> io::Result<()> {
        say(&self.line, rider)
    }

    /// Waits for what has come of it.
    pub fn hear(&self) -> io::Result<Rode> {
        hear(&self.line)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Says that nobody else will ride, and waits until it has ended, whoever reaps it.
    pub fn stop(self) {
        drop(self.line);
        reaper::await_end(self.pid);
    }
}

/// Where the folder of a task lies that rides.
pub(super) struct Folder {
    /// While it rides.
    pub riding: PathBuf,
    /// Before and after, and always as it sees it itself.
    pub home: PathBuf,
}

impl Folder {
    pub fn of(layout: &Layout, ride: Number, task: Task) -> Folder {
        Folder { riding: layout.riding(ride, task), home: layout.attempt(task) }
    }

    /// Makes it, and those of its carriage if they are not there.
    pub fn make(&self, layout: &Layout, ride: Number, user: Option<u32>) -> io::Result<()> {
        if fs::symlink_metadata(&self.home).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        match fs::create_dir(&self.riding) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_room(layout, ride)?;
                fs::create_dir(&self.riding)?;
            }
            made => made?,
        }
        lchown(&self.riding, user, user)
    }

    /// Shows it where it is looked for.
    pub fn show(&self) {
        if let Err(error) = symlink(&self.riding, &self.home)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            eprintln!("what is written in {} cannot be read yet: {error}", self.riding.display());
        }
    }

    /// Moves it to its place when its task has ended, if it is not there.
    pub fn alight(&self) {
        let Folder { riding, home } = self;
        let moved = match renameat2(AT_FDCWD, riding, AT_FDCWD, home, RenameFlags::RENAME_NOREPLACE) {
            // A link shows it.
            Err(Errno::EEXIST) if fs::symlink_metadata(riding).is_ok_and(|facts| facts.is_dir()) => {
                renameat2(AT_FDCWD, riding, AT_FDCWD, home, RenameFlags::RENAME_EXCHANGE)
                    .map_err(io::Error::from)
                    .and_then(|()| fs::remove_file(riding))
            }
            Ok(()) | Err(Errno::ENOENT | Errno::EEXIST) => Ok(()),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = moved {
            eprintln!("cannot move {} to its place: {error}", riding.display());
        }
    }
}

fn make_room(layout: &Layout, ride: Number) -> io::Result<()> {
    let carriage = layout.carriage(ride);
    fs::create_dir_all(layout.tasks())?;
    // Nobody else's to enter: everybody may write into the one that its tasks find as `/tmp`.
    DirBuilder::new().mode(0o700).create(carriage)?;
    for (folder, mode) in [(layout.carriage_work(ride), 0o755), (layout.carriage_temporary(ride), 0o1777)] {
        fs::create_dir(&folder)?;
        // Whatever the mask is.
        fs::set_permissions(folder, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Says in the outputs of a task why it was not let in.
pub(super) fn explain(folder: &Path, reason: &str) {
    for name in output::NAMES {
        // That it cannot be said is no reason to fail; that it has ended thus is told, too.
        let _ = output::create(&folder.join(name));
    }
    output::say(&folder.join(output::NAMES[1]), reason);
}

/// Removes the folders of a carriage that has ended.
pub(super) fn dismantle(layout: &Layout, ride: Number) {
    remove(&layout.carriage(ride));
}

fn remove(folder: &Path) {
    match rubbish::remove(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            eprintln!("cannot remove {}, which stays: {error}", folder.display());
        }
        _ => {}
    }
}

/// Brings home what an earlier supervisor has left in carriages. Nothing of their tasks may be alive.
pub(super) fn salvage(layout: &Layout) -> io::Result<()> {
    let entries = match fs::read_dir(layout.tasks()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for carriage in entries {
        let carriage = carriage?.path();
        if !carriage.as_os_str().as_encoded_bytes().ends_with(CARRIAGE.as_bytes()) {
            continue;
        }
        for folder in fs::read_dir(carriage.join("work")).into_iter().flatten() {
            let folder = folder?;
            let home = layout.tasks().join(folder.file_name());
            if fs::symlink_metadata(&home).is_ok_and(|facts| facts.is_symlink()) {
                fs::remove_file(&home)?;
            }
            if folder.file_type()?.is_dir() {
                fs::rename(folder.path(), home)?;
            }
        }
        remove(&carriage);
    }
    Ok(())
}

/// Sends a signal to the task in a carriage, with its group; says whether there was any.
pub(super) fn signal(carriage: Pid, signal: Signal) -> bool {
    let children = system::children_of(carriage).unwrap_or_default();
    // Between the look and this the number would have to go once around to hit another process.
    children.into_iter().filter(|&child| killpg(child, signal).is_ok()).count() > 0
}

fn say(line: &UnixStream, word: &impl Encode<()>) -> io::Result<()> {
    let mut bytes = vec![0; HEAD];
    minicbor::encode(word, &mut bytes).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - HEAD).map_err(io::Error::other)?;
    bytes[..HEAD].copy_from_slice(&length.to_le_bytes());
    let mut line = line;
    line.write_all(&bytes)
}

/// The next word; none if there will be no more. Nobody says two before the other has answered.
fn hear<W: for<'b> Decode<'b, ()>>(line: &UnixStream) -> io::Result<Option<W>> {
    let mut line = line;
    // Most words come whole at once.
    let mut bytes = vec![0; 4_096];
    let mut heard = 0;
    while heard < HEAD {
        match line.read(&mut bytes[heard..]) {
            Ok(0) if heard == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => heard += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = bytes[..HEAD].iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    if length > WORD_MAX {
        return Err(io::Error::other(format!("a word of {length} bytes, at most {WORD_MAX}")));
    }
    let whole = HEAD + length;
    if heard > whole {
        return Err(io::Error::other("more than one word"));
    }
    bytes.resize(whole, 0);
    line.read_exact(bytes.get_mut(heard..).unwrap_or_default())?;
    minicbor::decode(&bytes[HEAD..]).map(Some).map_err(io::Error::other)
}
