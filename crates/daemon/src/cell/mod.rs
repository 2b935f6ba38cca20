//! The cell of a task: what it sees of the machine, what it may touch, and how much it may take.
//!
//! ```text
//! supervisor ── spawns ──▶ this program, as `confine` ───────── execs ──▶ the task's program
//!      │                    enters its control groups                     (or bubblewrap, with an image)
//!      │                    a user namespace, if it is not root; mounts and shared memory of its own
//!      └── Cell ──────────▶ a root of its own, made of few things; secrets in memory
//!                           limits; a user of its own, if it was root; no new privileges
//!                           Landlock: what is seen is not changed; no signals to others
//!      ◀── why not, or ──── all walls stand
//! ```
//!
//! The walls are put up by the process that becomes the task, between its spawn and its exec: nothing of the task runs
//! before they stand, and no code of ours runs in a forked copy of the supervisor. If one cannot be put up, the task does
//! not start. What a machine can offer is in [`offers`].
//!
//! A task that is trusted and has control groups begins in the same way, [open](Cell::open): it waits until it was put into
//! them, and no wall is put up. A cell that many quick tasks share, one after the other, is a *carriage*: its process puts up
//! the same walls and stays, to run one program after the other behind them (`supervisor/carriage`).
//!
//! Left out: the network is the machine's, and processes of others are seen (not touched): their arguments too.

pub(crate) mod cbor;
mod image;
mod limits;
pub mod offers;
mod rules;
pub(crate) mod user;
mod view;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use minicbor::{Decode, Encode};
use nix::sys::prctl;
use nix::sys::stat::{Mode, umask};

pub use image::{BUBBLEWRAP, WORK, find_inside};

/// The argument with which this program makes itself a cell; see [`main`].
pub const CONFINE: &str = "confine";
/// The most bytes of a cell's description: arguments and secrets are smaller.
const CELL_MAX: u64 = 16 << 20;
/// What is said once all walls stand: no failure begins like this.
const STANDS: u8 = 0xf5;
/// The folder of secrets within a task's folder.
pub const SECRETS: &str = ".secrets";

/// All that makes a cell, and the program to be run in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Cell {
    /// The task's working folder, in which it may do what it likes; of a carriage the folder that holds those of its tasks.
    #[cbor(n(0), with = "cbor::path")]
    pub work: PathBuf,
    /// The folder that it finds as `/tmp`.
    #[cbor(n(1), with = "cbor::path")]
    pub temporary: PathBuf,
    /// The node's folder, of which it sees nothing else.
    #[cbor(n(2), with = "cbor::path")]
    pub home: PathBuf,
    /// The number of its user; with none it stays who it is, in a user namespace.
    #[n(3)]
    pub user: Option<u32>,
    /// What else it may see and do.
    #[n(4)]
    pub walls: Walls,
    /// Control groups to enter.
    #[cbor(n(5), with = "cbor::paths")]
    pub groups: Vec<PathBuf>,
    /// What it may know and nobody else, by name.
    #[n(6)]
    pub secrets: Vec<Secret>,
    /// The root of the file system that it finds instead of the machine's.
    #[cbor(n(7), with = "cbor::maybe_path")]
    pub image: Option<PathBuf>,
    /// The program; bubblewrap, if there is an image.
    #[cbor(n(8), with = "cbor::path")]
    pub program: PathBuf,
    /// What it is called, and its arguments.
    #[cbor(n(9), with = "cbor::words")]
    pub argv: Vec<OsString>,
    /// Its variables, as `NAME=VALUE`. They reach nothing but itself: a loader would heed them before any wall stands.
    #[cbor(n(10), with = "cbor::words")]
    pub environment: Vec<OsString>,
    /// Whether it was granted GPUs.
    #[n(11)]
    pub gpus: bool,
    /// Whether it has no walls: the program is trusted, and only waits until it is in its control groups.
    #[n(12)]
    pub open: bool,
    /// Where the working folder lies inside, if not where it lies outside.
    #[cbor(n(13), with = "cbor::maybe_path")]
    pub place: Option<PathBuf>,
}

impl Cell {
    /// Where the working folder lies inside.
    fn place(&self) -> &Path {
        self.place.as_deref().unwrap_or(&self.work)
    }
}

/// What a task may see besides the system and its own folder, and how much it may take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Walls {
    /// Folders and files that it may read, and run programs from.
    #[n(0)]
    pub read: Vec<String>,
    /// Folders and files that it may change, too.
    #[n(1)]
    pub write: Vec<String>,
    /// Processes and threads at once; as many as the system allows, where nobody says.
    #[n(2)]
    pub processes: Option<u64>,
    /// Files that each of its processes may have open.
    #[n(3)]
    pub files: Option<u64>,
    /// Bytes of all files in its folder and its `/tmp`.
    #[n(4)]
    pub disk: Option<u64>,
    /// Bytes of memory that its processes share by `/dev/shm`.
    #[n(5)]
    pub shared: Option<u64>,
}

/// What a task may know and nobody else. Does not show itself.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Secret {
    /// What the task calls it: the name of its file.
    #[n(0)]
    pub name: String,
    /// What it is.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub value: Vec<u8>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a task has no cell, or no program runs in it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, thiserror::Error)]
pub enum Failure {
    /// A wall cannot be put up.
    #[error("cannot isolate it: {0}")]
    #[n(0)]
    Wall(#[n(0)] String),
    /// The program cannot be run.
    #[error("{said}")]
    #[n(1)]
    Program {
        /// The system's number for it.
        #[n(0)]
        errno: Option<i32>,
        /// What the system said.
        #[n(1)]
        said: String,
    },
}

/// Puts a wall up, or says which one does not stand.
type Put<T = ()> = Result<T, Failure>;

fn wall(what: impl std::fmt::Display) -> impl FnOnce(nix::Error) -> Failure {
    move |error| Failure::Wall(format!("{what}: {}", error.desc()))
}

fn wall_io(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::Wall(format!("{what}: {error}"))
}

/// Makes this process a cell and runs its program there: the whole life of a process that is called with [`CONFINE`].
///
/// Reads its [`Cell`] from standard input, which is a socket, and says there that all walls stand, or why nothing came of
/// it. That the socket is closed after the first is how the other end learns that the program runs.
pub fn main() -> ExitCode {
    let Ok(line) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    let mut bytes = Vec::new();
    let read = (&line).take(CELL_MAX).read_to_end(&mut bytes).map_err(wall_io("its description is cut off"));
    let failure = match read.and_then(|_| decode(&bytes)).and_then(|cell| enter(&cell, &line)) {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    // Nobody to tell is nothing to do. What was said before stays said.
    let _ = minicbor::to_vec(&failure).map(|said| (&line).write_all(&said));
    ExitCode::FAILURE
}

fn decode(bytes: &[u8]) -> Put<Cell> {
    minicbor::decode(bytes).map_err(|error| Failure::Wall(format!("its description makes no sense: {error}")))
}

/// A command by which this program makes itself a cell, and the line on which it hears which. Our end waits so long;
/// the other lies in the command, and must be nobody's but the child's.
pub fn command(program: &Path, patience: Duration) -> io::Result<(Command, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(patience))?;
    ours.set_write_timeout(Some(patience))?;
    let mut command = Command::new(program);
    command.arg(CONFINE).stdin(OwnedFd::from(theirs));
    Ok((command, ours))
}

/// Hands a cell to a process that was spawned for it, and waits until its program runs there.
pub fn hand_over(line: &UnixStream, cell: &Cell) -> Put {
    let lost = |error: io::Error| Failure::Wall(format!("it does not answer: {error}"));
    let bytes = minicbor::to_vec(cell).map_err(|error| Failure::Wall(error.to_string()))?;
    let mut to = line;
    // One that ends before it has read everything says why.
    let sent = to.write_all(&bytes).and_then(|()| line.shutdown(std::net::Shutdown::Write));
    let mut said = Vec::new();
    line.take(CELL_MAX).read_to_end(&mut said).map_err(lost)?;
    let (stands, rest) = match said.split_first() {
        Some((&STANDS, rest)) => (true, rest),
        _ => (false, &said[..]),
    };
    match (stands, rest) {
        (true, []) => sent.map_err(lost),
        (false, []) => Err(Failure::Wall("it was ended before its walls stood".to_owned())),
        (_, rest) => {
            Err(minicbor::decode(rest).unwrap_or_else(|_| Failure::Wall("it makes no sense".to_owned())))
        }
    }
}

/// What never is: the program has taken this one's place.
enum Never {}

fn enter(cell: &Cell, line: &UnixStream) -> Put<Never> {
    let mut command = Command::new(&cell.program);
    if !cell.open {
        put_up_walls(cell)?;
    }
    match &cell.image {
        Some(root) => image::describe(cell, root, &mut command)?,
        None => {
            let (name, arguments) = cell.argv.split_first().ok_or_else(no_program)?;
            command.arg0(name).args(arguments);
        }
    }
    let mut line = line;
    line.write_all(&[STANDS]).map_err(wall_io("nobody hears that its walls stand"))?;
    let error = command.stdin(Stdio::null()).env_clear().envs(variables(cell)).exec();
    Err(not_run(&error, &cell.program, cell))
}

/// Why a program does not run in a cell.
pub(crate) fn not_run(error: &io::Error, program: &Path, cell: &Cell) -> Failure {
    let mut said = error.to_string();
    let hidden = matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound);
    if hidden && !is_readable(program, cell) {
        said.push_str("; the task is isolated, and that is not among what it may read");
    }
    Failure::Program { errno: error.raw_os_error(), said }
}

/// Puts the walls of a cell up around this process and all that comes of it.
pub(crate) fn put_up_walls(cell: &Cell) -> Put {
    // Folders on the way to the task's own are for its user to pass.
    let mask = umask(Mode::S_IWGRP | Mode::S_IWOTH);
    let put = put_up(cell);
    umask(mask);
    put
}

fn put_up(cell: &Cell) -> Put {
    for group in &cell.groups {
        let path = group.join("cgroup.procs");
        std::fs::write(&path, "0").map_err(wall_io(format_args!("cannot enter {}", group.display())))?;
    }
    view::leave(cell.user.is_none())?;
    view::make(cell)?;
    limits::set(&cell.walls)?;
    if let Some(number) = cell.user {
        user::become_user(number)?;
    }
    prctl::set_no_new_privs().map_err(wall("it could gain privileges"))?;
    match cell.image {
        Some(_) => rules::restrict_scopes(),
        None => rules::restrict(cell),
    }
}

/// The variables of the program: of bubblewrap only those that say whose it is, for it sets the task's itself.
fn variables(cell: &Cell) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    let all = split(&cell.environment);
    all.filter(|(name, _)| cell.image.is_none() || name.as_bytes().starts_with(b"SHOAL_"))
}

/// Names and values of variables.
pub(crate) fn split(variables: &[OsString]) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    variables.iter().filter_map(|variable| {
        let at = variable.as_bytes().iter().position(|byte| *byte == b'=')?;
        let (name, value) = variable.as_bytes().split_at(at);
        Some((OsStr::from_bytes(name), OsStr::from_bytes(&value[1..])))
    })
}

fn no_program() -> Failure {
    Failure::Program { errno: None, said: "the command is empty".to_owned() }
}

fn is_readable(program: &Path, cell: &Cell) -> bool {
    program.starts_with(cell.place()) || is_shown(program, &cell.walls)
}

/// Whether a cell with these walls shows a place, besides the task's own folder.
pub fn is_shown(path: &Path, walls: &Walls) -> bool {
    let given = walls.read.iter().chain(&walls.write).map(Path::new);
    rules::SYSTEM.iter().map(Path::new).chain(given).any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn cell_comes_back_from_its_bytes_and_secrets_do_not_show_themselves() {
        let cell = Cell {
            work: "/work".into(),
            image: Some("/srv/image".into()),
            user: Some(7),
            walls: Walls { read: vec!["/data".to_owned()], processes: Some(3), ..Walls::default() },
            groups: vec!["/a".into(), "/b".into()],
            secrets: vec![Secret { name: "token".to_owned(), value: b"hush".to_vec() }],
            argv: vec!["a".into(), OsString::from_vec(vec![0xff])],
            ..Cell::default()
        };
        let bytes = minicbor::to_vec(&cell).unwrap();
        assert_eq!(decode(&bytes).unwrap(), cell);
        assert!(!format!("{cell:?}").contains(&format!("{:?}", b"hush".to_vec())), "{cell:?}");
        assert!(decode(&bytes[1..]).is_err());
    }
}
