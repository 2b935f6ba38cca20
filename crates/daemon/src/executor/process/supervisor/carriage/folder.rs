//! Where the folders of tasks lie while they ride, and how they come to their places: whatever goes wrong, no output is lost.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use shoal_protocols::node::Task;

use super::super::super::layout::{self, CARRIAGE, Layout};
use super::super::rides::Number;
use super::super::{output, rubbish};

/// Where the folder of a task lies that rides.
pub(in super::super) struct Folder {
    /// While it rides.
    pub riding: PathBuf,
    /// Before and after, and always as it sees it itself.
    pub home: PathBuf,
}

impl Folder {
    pub fn of(layout: &Layout, ride: Number, task: Task) -> Folder {
        Folder { riding: layout.riding(ride, task), home: layout.attempt(task) }
    }

    /// Makes it.
    pub fn make(&self, user: Option<u32>) -> io::Result<()> {
        if fs::symlink_metadata(&self.home).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::create_dir(&self.riding)?;
        lchown(&self.riding, user, user)
    }

    /// Whether its task was begun: its outputs are made before that.
    pub fn was_begun(&self) -> bool {
        let [stdout, _] = output::NAMES;
        [&self.riding, &self.home].into_iter().any(|folder| fs::symlink_metadata(folder.join(stdout)).is_ok())
    }

    /// Says in the outputs of a task why it was not let in.
    pub fn explain(&self, reason: &str) {
        output::explain(&self.riding, reason);
    }

    /// Shows it where it is looked for.
    pub fn show(&self) {
        if let Err(error) = symlink(&self.riding, &self.home)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            eprintln!("what is written in {} cannot be read yet: {error}", self.riding.display());
        }
    }

    /// Moves it to its place when its task has ended, if it is not there. If that cannot be done it is shown there.
    pub fn alight(&self) {
        // Its ride and the keeper may both be about to: of two that exchange it with its link, the second would undo it.
        static TURN: Mutex<()> = Mutex::new(());
        let moved = layout::place(&self.riding, &self.home).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
                self.replace_link()
            }
            _ => Err(error),
        });
        match moved {
            // It is there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                eprintln!("cannot move {} to its place: {error}", self.riding.display());
                self.show();
            }
            Ok(()) => {}
        }
    }

    /// Takes the place of the link that shows it.
    fn replace_link(&self) -> io::Result<()> {
        let Folder { riding, home } = self;
        if !fs::symlink_metadata(riding)?.is_dir() || !fs::symlink_metadata(home)?.is_symlink() {
            return Err(io::Error::other("something else is there"));
        }
        match renameat2(AT_FDCWD, riding, AT_FDCWD, home, RenameFlags::RENAME_EXCHANGE) {
            Ok(()) => fs::remove_file(riding),
            // There are file systems that exchange nothing. For an instant it is nowhere, then.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                fs::remove_file(home)?;
                layout::place(riding, home)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes the folders of a carriage.
pub(in super::super) fn make_room(layout: &Layout, ride: Number) -> io::Result<()> {
    fs::create_dir_all(layout.tasks())?;
    // Nobody else's to enter: everybody may write into the one that its tasks find as `/tmp`.
    DirBuilder::new().mode(0o700).create(layout.carriage(ride))?;
    for (folder, mode) in [(layout.carriage_work(ride), 0o755), (layout.carriage_temporary(ride), 0o1777)] {
        fs::create_dir(&folder)?;
        // Whatever the mask is.
        fs::set_permissions(folder, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Removes the folders of a carriage that has ended, with what its tasks have left.
pub(in super::super) fn dismantle(layout: &Layout, ride: Number) {
    clear(layout, &layout.carriage(ride));
}

/// The same of all that an earlier supervisor has left. Nothing of their tasks may be alive.
pub(in super::super) fn salvage(layout: &Layout) -> io::Result<()> {
    let entries = match fs::read_dir(layout.tasks()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for carriage in entries {
        let carriage = carriage?.path();
        if carriage.as_os_str().as_encoded_bytes().ends_with(CARRIAGE.as_bytes()) {
            clear(layout, &carriage);
        }
    }
    Ok(())
}

/// Brings home what still lies in a carriage, and removes the rest: of a folder that cannot be moved, nothing.
fn clear(layout: &Layout, carriage: &Path) {
    let work = carriage.join("work");
    for entry in fs::read_dir(&work).into_iter().flatten().flatten() {
        let (riding, home) = (entry.path(), layout.tasks().join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => Folder { riding, home }.alight(),
            // The link of one that is at its place.
            _ => drop(fs::remove_file(riding)),
        }
    }
    match fs::remove_dir(&work) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            eprintln!("{} stays, with what cannot be moved from there: {error}", work.display());
        }
        _ => rubbish::discard(carriage),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use shoal_model::{Epoch, JobId, Rank};

    use super::*;

    const RIDE: Number = 7;

    fn task(number: u8) -> Task {
        Task { job: JobId([number; 16]), epoch: Epoch(1), rank: Rank(0) }
    }

    /// The folder of one that rides and has written something.
    fn ridden(layout: &Layout, number: u8) -> Folder {
        let folder = Folder::of(layout, RIDE, task(number));
        folder.make(None).unwrap();
        fs::write(folder.riding.join("stdout"), "written").unwrap();
        folder
    }

    fn is_home(folder: &Folder) -> bool {
        let is_folder = fs::symlink_metadata(&folder.home).is_ok_and(|facts| facts.is_dir());
        is_folder && fs::read_to_string(folder.home.join("stdout")).unwrap() == "written"
    }

    #[test]
    fn folder_comes_home_whether_it_was_shown_or_not_and_however_often_it_is_told() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::create(home.path()).unwrap();
        make_room(&layout, RIDE).unwrap();
        let all = Barrier::new(4);
        for number in 0..200 {
            let folder = ridden(&layout, number);
            if number > 0 {
                folder.show();
                assert_eq!(fs::read_to_string(folder.home.join("stdout")).unwrap(), "written");
            }
            assert!(folder.was_begun());
            let alight = || {
                all.wait();
                folder.alight();
            };
            std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(alight))));
            assert!(is_home(&folder) && !folder.riding.exists());
        }
        dismantle(&layout, RIDE);
        assert!(!layout.carriage(RIDE).exists());
    }

    #[test]
    fn what_lies_in_a_carriage_is_brought_home_before_that_is_removed_and_takes_the_place_of_nothing() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::create(home.path()).unwrap();
        make_room(&layout, RIDE).unwrap();
        let [plain, shown, barred] = [1, 2, 3].map(|number| ridden(&layout, number));
        shown.show();
        fs::create_dir(&barred.home).unwrap();
        fs::write(layout.carriage_temporary(RIDE).join("left"), "").unwrap();
        salvage(&layout).unwrap();
        assert!(is_home(&plain) && is_home(&shown));
        assert!(!barred.home.join("stdout").exists());
        assert_eq!(
            fs::read_to_string(barred.riding.join("stdout")).unwrap(),
            "written",
            "it stays where it is"
        );
        fs::remove_dir(&barred.home).unwrap();
        salvage(&layout).unwrap();
        assert!(is_home(&barred) && !layout.carriage(RIDE).exists());
    }
}
