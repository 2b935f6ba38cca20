//! Tasks in cells: what their cells are made of, and how this program is spawned to make itself one. Trusted tasks that
//! have control groups begin in the same way, without walls.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use shoal_protocols::node::Task;

use super::super::layout::Layout;
use super::super::words::Order;
use super::grants::Grant;
use super::rides::Number;
use super::rubbish;
use crate::cell::{self, Cell, Failure, SECRETS};

/// How long a cell may take to stand.
const PATIENCE: Duration = Duration::from_secs(10);
/// This program, whatever its file is called by now.
pub(super) const ITSELF: &str = "/proc/self/exe";

/// The cell of a task that has its folder; the program is found already, in its image if it has one.
pub(super) fn cell_of(
    order: &Order,
    grant: &Grant,
    layout: &Layout,
    program: PathBuf,
    argv: &[OsString],
    variables: &BTreeMap<OsString, OsString>,
) -> io::Result<Cell> {
    let work = layout.attempt(order.task);
    let temporary = layout.temporary(order.task);
    fs::create_dir(&temporary)?;
    if let Some(user) = grant.user {
        cell::user::give(&work, user)?;
        cell::user::give(&temporary, user)?;
    }
    Ok(Cell {
        work,
        temporary,
        secrets: order.secrets.clone().unwrap_or_default(),
        image: order.image.as_ref().map(PathBuf::from),
        program,
        argv: argv.to_vec(),
        environment: joined(variables),
        ..walls_of(order, grant, layout)
    })
}

/// The cell of a carriage for tasks like this one, whose folders are there.
pub(super) fn carriage_of(order: &Order, grant: &Grant, layout: &Layout, ride: Number) -> Cell {
    let mut cell = Cell {
        work: layout.carriage_work(ride),
        temporary: layout.carriage_temporary(ride),
        place: Some(layout.tasks()),
        ..walls_of(order, grant, layout)
    };
    // It is one itself.
    cell.walls.processes = cell.walls.processes.map(|processes| processes.saturating_add(1));
    cell
}

fn walls_of(order: &Order, grant: &Grant, layout: &Layout) -> Cell {
    Cell {
        home: layout.home().to_owned(),
        user: grant.user,
        walls: order.walls.as_deref().cloned().unwrap_or_default(),
        gpus: grant.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty()),
        ..Cell::default()
    }
}

/// The same of a task that has control groups and no walls.
pub(super) fn open(program: PathBuf, argv: &[OsString], variables: &BTreeMap<OsString, OsString>) -> Cell {
    Cell { open: true, program, argv: argv.to_vec(), environment: joined(variables), ..Cell::default() }
}

/// Variables as `NAME=VALUE`.
pub(super) fn joined(variables: &BTreeMap<OsString, OsString>) -> Vec<OsString> {
    let joined = |(name, value): (&OsString, &OsString)| {
        let mut variable = name.clone();
        variable.push("=");
        variable.push(value);
        variable
    };
    variables.iter().map(joined).collect()
}

/// The program that runs tasks in images, looked for where the supervisor looks.
pub(super) fn bubblewrap(path: &OsStr) -> io::Result<PathBuf> {
    super::spawner::find(cell::BUBBLEWRAP.as_ref(), path, Path::new("/")).map_err(|error| {
        let missing = format!("the program `{}`, which runs tasks in images: {error}", cell::BUBBLEWRAP);
        io::Error::new(error.kind(), missing)
    })
}

/// A command that makes itself a cell, and the line on which it hears which.
pub(super) fn command() -> io::Result<(Command, UnixStream)> {
    cell::command(Path::new(ITSELF), PATIENCE)
}

/// Waits until the program of a task runs in its cell; one that does not get that far is killed.
pub(super) fn settle(child: &mut Child, line: &UnixStream, cell: &Cell) -> Result<(), Failure> {
    cell::hand_over(line, cell).inspect_err(|_| {
        // It says why and ends by itself, or it is stuck. Reaped by its number, as every other.
        let _ = child.kill();
    })
}

/// Removes what a cell has left of itself.
pub(super) fn clear(layout: &Layout, task: Task) {
    rubbish::discard(&layout.temporary(task));
    // Where its secrets were; they were in memory only.
    let _ = fs::remove_dir(layout.attempt(task).join(SECRETS));
}
