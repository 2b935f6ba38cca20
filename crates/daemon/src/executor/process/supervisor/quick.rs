//! How quick tasks are spawned: what those of a ride have in common is made once, in the form in which the system takes it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use minicbor::{Decode, Encode};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use nix::unistd::Pid;

use super::output;
use super::strings::Strings;
use crate::cell::cbor;

/// What tasks run that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Common {
    /// The program.
    #[cbor(n(0), with = "cbor::path")]
    pub program: PathBuf,
    /// What it is called, and its arguments.
    #[n(1)]
    pub argv: Strings,
    /// Their variables, but for those that say which of them one is.
    #[n(2)]
    pub variables: Strings,
}

impl Common {
    /// What the program is called.
    pub fn name(&self) -> &OsStr {
        self.argv.iter().next().map_or(OsStr::new(""), |name| OsStr::from_bytes(name.to_bytes()))
    }
}

/// Why a task was not spawned.
#[derive(Debug)]
pub(super) enum Unspawned {
    /// There is no room for one more process.
    Process(io::Error),
    /// Its outputs could not be made.
    Outputs(io::Error),
    /// Its program could not be run.
    Program(io::Error),
}

/// How they are spawned.
pub(super) struct Spawn {
    attributes: PosixSpawnAttr,
    actions: PosixSpawnFileActions,
}

impl Spawn {
    /// In groups of their own, with outputs that they make in their folders, and nothing of what this process does with signals.
    pub fn new() -> nix::Result<Spawn> {
        let mut attributes = PosixSpawnAttr::init()?;
        let flags = [
            PosixSpawnFlags::POSIX_SPAWN_SETPGROUP,
            PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
            PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
        ];
        attributes.set_flags(flags.into_iter().collect())?;
        attributes.set_pgroup(Pid::from_raw(0))?;
        attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE]))?;
        attributes.set_sigmask(&SigSet::empty())?;
        let mut actions = PosixSpawnFileActions::init()?;
        for (number, name) in [1, 2].into_iter().zip(output::NAMES) {
            let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_EXCL;
            actions.add_open(number, name, flags, Mode::from_bits_truncate(0o666))?;
        }
        Ok(Spawn { attributes, actions })
    }

    /// Starts a task in the folder that this thread is in, with these variables of its own; says which process leads it.
    ///
    /// What it reads is what this process reads: both that spawn so have `/dev/null` there.
    pub fn begin(&self, common: &Common, own: &Strings) -> Result<Pid, Unspawned> {
        let argv: Vec<_> = common.argv.iter().collect();
        let environment: Vec<_> = common.variables.iter().chain(own.iter()).collect();
        let leader = posix_spawn(&common.program, &self.actions, &self.attributes, &argv, &environment);
        let made = || output::NAMES.iter().any(|name| fs::symlink_metadata(name).is_ok());
        let all_made = || output::NAMES.iter().all(|name| fs::symlink_metadata(name).is_ok());
        leader.map_err(|errno| match errno {
            // They are made on the way.
            Errno::EAGAIN | Errno::ENOMEM if !made() => Unspawned::Process(errno.into()),
            _ if all_made() => Unspawned::Program(errno.into()),
            _ => Unspawned::Outputs(errno.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_are_alike_are_called_the_same() {
        let argv = Strings::words(["sh", "-c"].map(OsStr::new)).unwrap();
        assert_eq!(Common { argv, ..Common::default() }.name(), "sh");
        assert_eq!(Common::default().name(), "", "nothing is run");
    }
}
