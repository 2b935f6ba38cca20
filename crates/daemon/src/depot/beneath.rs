//! A folder that may be anybody's: what is opened in it lies in it, whatever its owner does meanwhile.
//!
//! Every step goes through the open folder (`openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`), so that a link, a
//! `..` or a folder that is swapped for a link between two steps leads nowhere. What is opened is judged by the open file,
//! not by its name: a plain file with one name only, since a second name could be of a file elsewhere.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, mkdirat};
use shoal_model::job::check_inside;

/// How deep folders may lie in each other.
pub const DEPTH_MAX: usize = 64;
/// Names that are looked at in one folder with all below it.
pub const NAMES_MAX: usize = 1_000_000;

/// What a folder is that cannot be opened; nobody knows what is in it.
pub const CLOSED: &str = "a folder that cannot be opened";

/// An open folder.
pub struct Beneath(OwnedFd);

/// Something in a folder that is no plain file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// Where.
    pub path: String,
    /// What it is.
    pub what: &'static str,
}

/// What is in a folder with all below it, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Plain files.
    pub files: Vec<String>,
    /// All else but folders.
    pub odd: Vec<Odd>,
}

impl Beneath {
    /// Opens a folder of ours: its own name is trusted, all below is not.
    pub fn open(path: &Path) -> io::Result<Beneath> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        Ok(Beneath(nix::fcntl::open(path, flags, Mode::empty())?))
    }

    /// Opens a plain file to read it.
    pub fn read(&self, path: &str) -> io::Result<File> {
        // A pipe would be waited for, and a device may do anything when it is opened: the first is refused by what
        // it turns out to be, and the second cannot be made without being root.
        let file = File::from(self.resolve(
            path,
            OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY,
            Mode::empty(),
        )?);
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(odd(kind(facts.file_type())));
        }
        if facts.nlink() != 1 {
            return Err(odd("a file with several names"));
        }
        Ok(file)
    }

    /// Makes a new file, with the folders above it.
    pub fn create(&self, path: &str, executable: bool) -> io::Result<File> {
        let inside = check_inside(path);
        inside.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let mode = if executable { Mode::from_bits_truncate(0o700) } else { Mode::from_bits_truncate(0o600) };
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let Some((above, name)) = path.rsplit_once('/') else {
            return Ok(self.resolve(path, flags, mode)?.into());
        };
        let folder = self.make_folders(above)?;
        Ok(folder.resolve(name, flags, mode)?.into())
    }

    fn make_folders(&self, path: &str) -> io::Result<Beneath> {
        let mut folder = Beneath(self.0.try_clone()?);
        for part in path.split('/') {
            match mkdirat(&folder.0, part, Mode::from_bits_truncate(0o700)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = folder.folder(part)?;
        }
        Ok(folder)
    }

    /// Opens a folder in it.
    pub fn folder(&self, path: &str) -> io::Result<Beneath> {
        Ok(Beneath(self.resolve(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty())?))
    }

    /// All that lies in it, sorted by path. Links are not followed.
    pub fn walk(&self) -> io::Result<Found> {
        let mut found = Found::default();
        let mut names = 0;
        self.walk_into("", 0, &mut names, &mut found)?;
        found.files.sort_unstable();
        found.odd.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn walk_into(&self, above: &str, depth: usize, names: &mut usize, found: &mut Found) -> io::Result<()> {
        // The open folder, and not what its name leads to by now.
        for entry in std::fs::read_dir(format!("/proc/self/fd/{}", self.0.as_raw_fd()))? {
            let entry = entry?;
            *names += 1;
            if *names > NAMES_MAX {
                return Err(io::Error::other(format!("more than {NAMES_MAX} names")));
            }
            let name = entry.file_name();
            let path =
                |name: &str| if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
            let Some(name) = name.to_str() else {
                found.odd.push(Odd { path: path(&name.to_string_lossy()), what: "a name that is not UTF-8" });
                continue;
            };
            let (path, sort) = (path(name), entry.file_type()?);
            if sort.is_dir() {
                if depth + 1 >= DEPTH_MAX {
                    found.odd.push(Odd { path, what: "a folder that lies too deep" });
                } else {
                    match self.folder(name) {
                        Ok(folder) => folder.walk_into(&path, depth + 1, names, found)?,
                        // Somebody has removed it meanwhile.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(_) => found.odd.push(Odd { path, what: CLOSED }),
                    }
                }
            } else if check_inside(&path).is_err() {
                found.odd.push(Odd { path, what: "a name with a control character, `\\` or an outer space" });
            } else if sort.is_file() {
                found.files.push(path);
            } else {
                found.odd.push(Odd { path, what: kind(sort) });
            }
        }
        Ok(())
    }

    fn resolve(&self, path: &str, flags: OFlag, mode: Mode) -> io::Result<OwnedFd> {
        let how = OpenHow::new().flags(flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).mode(mode).resolve(
            ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV,
        );
        loop {
            match openat2(self.0.as_fd(), path, how) {
                // Something was renamed at this moment; BENEATH asks to be asked again.
                Err(Errno::EAGAIN) => {}
                opened => return Ok(opened?),
            }
        }
    }
}

fn kind(sort: std::fs::FileType) -> &'static str {
    if sort.is_symlink() {
        "a link"
    } else if sort.is_fifo() {
        "a pipe"
    } else if sort.is_socket() {
        "a socket"
    } else if sort.is_dir() {
        "a folder"
    } else {
        "a device"
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, and no plain file"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use nix::unistd::mkfifo;

    use super::*;

    /// A folder `in` with a secret beside it.
    fn scene() -> (tempfile::TempDir, Beneath) {
        let around = tempfile::tempdir().unwrap();
        fs::create_dir(around.path().join("in")).unwrap();
        fs::write(around.path().join("secret"), "secret").unwrap();
        let beneath = Beneath::open(&around.path().join("in")).unwrap();
        (around, beneath)
    }

    #[test]
    fn nothing_is_read_outside_the_folder() {
        let (around, beneath) = scene();
        let inside = around.path().join("in");
        symlink("../secret", inside.join("link")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        fs::hard_link(around.path().join("secret"), inside.join("hard")).unwrap();
        mkfifo(&inside.join("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
        let secret = around.path().join("secret");
        for path in
            ["../secret", "link", "up/secret", "hard", "pipe", secret.to_str().unwrap(), "/etc/passwd", "."]
        {
            assert!(beneath.read(path).is_err(), "{path}");
        }
        fs::write(inside.join("plain"), "x").unwrap();
        assert!(beneath.read("plain").is_ok());
    }

    #[test]
    fn nothing_is_written_outside_the_folder() {
        let (around, beneath) = scene();
        let inside = around.path().join("in");
        symlink("..", inside.join("up")).unwrap();
        symlink("../new", inside.join("link")).unwrap();
        for path in ["../new", "up/new", "link", "a/../../new", "/tmp/new", ""] {
            assert!(beneath.create(path, false).is_err(), "{path}");
        }
        assert!(!around.path().join("new").exists());
        assert!(beneath.create("a/b/c", true).is_ok());
        assert!(beneath.create("a/b/c", true).is_err(), "never over another");
    }

    #[test]
    fn walk_tells_files_from_all_else_and_follows_no_link() {
        let (around, beneath) = scene();
        let inside = around.path().join("in");
        fs::create_dir(inside.join("sub")).unwrap();
        fs::write(inside.join("sub/b"), "").unwrap();
        fs::write(inside.join("a"), "").unwrap();
        symlink("..", inside.join("up")).unwrap();
        mkfifo(&inside.join("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
        fs::write(inside.join(std::ffi::OsStr::new("back\\slash")), "").unwrap();
        use std::os::unix::ffi::OsStrExt;
        fs::write(inside.join(std::ffi::OsStr::from_bytes(b"no\xffutf8")), "").unwrap();
        let found = beneath.walk().unwrap();
        assert_eq!(found.files, ["a", "sub/b"]);
        let odd: Vec<&str> = found.odd.iter().map(|odd| odd.what).collect();
        assert_eq!(odd.len(), 4, "{:?}", found.odd);
        assert!(odd.contains(&"a link") && odd.contains(&"a pipe"));
    }

    /// Somebody swaps a folder for a link again and again while files are read through it.
    #[test]
    fn swap_during_the_copy_leads_nowhere() {
        let (around, beneath) = scene();
        let inside = around.path().join("in");
        fs::create_dir(around.path().join("other")).unwrap();
        fs::write(around.path().join("other/file"), "secret").unwrap();
        fs::create_dir(inside.join("real")).unwrap();
        fs::write(inside.join("real/file"), "fine").unwrap();
        symlink("../other", inside.join("evil")).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = fs::rename(inside.join("real"), inside.join("sub"));
                    let _ = fs::rename(inside.join("sub"), inside.join("real"));
                    let _ = fs::rename(inside.join("evil"), inside.join("sub"));
                    let _ = fs::rename(inside.join("sub"), inside.join("evil"));
                }
            });
            let (mut fine, mut links, mut other) = (0, 0, None);
            let began = std::time::Instant::now();
            // Until both have been met often, however the two threads take turns.
            while (fine < 100 || links < 100) && other.is_none() && began.elapsed().as_secs() < 60 {
                match beneath.read("sub/file") {
                    Ok(mut file) => {
                        let mut text = String::new();
                        match io::Read::read_to_string(&mut file, &mut text) {
                            Ok(_) if text == "fine" => fine += 1,
                            _ => other = Some(text),
                        }
                    }
                    Err(error) if error.raw_os_error() == Some(Errno::ELOOP as i32) => links += 1,
                    Err(_) => {}
                }
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(other, None);
            assert!(fine >= 100 && links >= 100, "{fine} files and {links} links were met");
        });
    }
}
