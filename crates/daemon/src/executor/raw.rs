//! What a machine can do at most: programs started with nothing around them but a cell, if they are to have one, to
//! measure executors against.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use crate::cell::{self, Cell};

/// The program that does nothing.
pub const NOTHING: &str = "/bin/true";
/// How long a cell may take to stand.
const PATIENCE: Duration = Duration::from_secs(10);

/// How programs are run.
#[derive(Clone, Copy, Debug)]
pub enum Bare<'a> {
    /// As they are.
    Open,
    /// Each in a cell of its own, which this program makes itself.
    InCells(&'a Path),
}

/// How long so many threads take to run a program that does nothing so often, a folder and two outputs made for each.
///
/// The folders stay: some file systems are slow to make files for a while after many were removed.
pub fn spawn(bare: Bare<'_>, tasks: usize, threads: usize, folder: &Path) -> io::Result<Duration> {
    fs::create_dir(folder)?;
    let next = AtomicUsize::new(0);
    let first = cell::user::users_of(folder);
    let began = Instant::now();
    let work = |user: u32| -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= tasks {
                return Ok(());
            }
            let place = folder.join(number.to_string());
            match bare {
                Bare::Open => spawn_one(&place)?,
                Bare::InCells(program) => spawn_in_cell(program, folder, &place, user)?,
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (first..).take(threads).map(|user| scope.spawn(move || work(user))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(began.elapsed())
}

fn spawn_one(folder: &Path) -> io::Result<()> {
    let mut command = Command::new(NOTHING);
    prepare(&mut command, folder)?;
    let status = command.stdin(Stdio::null()).spawn()?.wait()?;
    check(status)
}

/// The same in a cell, as of a node with this folder.
fn spawn_in_cell(program: &Path, home: &Path, folder: &Path, user: u32) -> io::Result<()> {
    let (mut command, line) = cell::command(program, PATIENCE)?;
    prepare(&mut command, folder)?;
    let temporary = folder.with_extension("tmp");
    fs::create_dir(&temporary)?;
    let user = geteuid().is_root().then_some(user);
    if let Some(user) = user {
        cell::user::give(folder, user)?;
        cell::user::give(&temporary, user)?;
    }
    let (work, home, program) = (folder.to_owned(), home.to_owned(), NOTHING.into());
    let cell = Cell { work, temporary, home, user, program, argv: vec![NOTHING.into()], ..Cell::default() };
    let mut child = command.spawn()?;
    // The other end of the line lies in it.
    drop(command);
    let stands = cell::hand_over(&line, &cell).inspect_err(|_| drop(child.kill()));
    let status = child.wait()?;
    stands.map_err(io::Error::other)?;
    check(status)
}

fn prepare(command: &mut Command, folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    let stdout = File::create_new(folder.join("stdout"))?;
    let stderr = File::create_new(folder.join("stderr"))?;
    command.current_dir(folder).process_group(0).stdout(stdout).stderr(stderr);
    Ok(())
}

fn check(status: ExitStatus) -> io::Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{NOTHING}: {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_has_a_folder_with_two_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("raw");
        assert!(spawn(Bare::Open, 7, 3, &place).unwrap() > Duration::ZERO);
        let made: Vec<_> = fs::read_dir(&place).unwrap().flatten().collect();
        assert_eq!(made.len(), 7);
        assert!(made.iter().all(|entry| entry.path().join("stderr").is_file()));
        assert!(spawn(Bare::Open, 1, 1, &place).is_err(), "the folder is there");
    }
}
