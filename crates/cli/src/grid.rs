//! A grid of real nodes on this machine, each a process of its own in a folder of its own; gone with its last word.

mod interrupt;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::slice::Split;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shoal_api::{Client, Home};
use shoal_daemon::executor::process;
use shoal_daemon::trust::user;
use shoal_model::Span;
use tempfile::TempDir;

use crate::commands::user::signs;
use crate::error::Error;
use interrupt::Minded;

/// How long a node may take to answer, or to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a ticket lasts.
const TICKET: Span = Span::from_mins(10);

/// What kind of grid.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many nodes.
    pub nodes: usize,
    /// Cores of each.
    pub cores: u32,
    /// The beginning of its folder's name.
    pub prefix: &'static str,
    /// What is in each node's `node.toml` from the start.
    pub settings: &'static str,
}

/// All nodes.
pub struct Grid {
    members: Vec<Member>,
    shape: Shape,
    /// Removed when the grid is.
    folder: TempDir,
    /// Until then it ends with this process.
    _minded: Minded,
}

/// A node.
pub struct Member {
    folder: PathBuf,
    home: Home,
    cores: u32,
    child: Option<Child>,
}

impl Grid {
    /// Starts nodes, which enter one grid and know each other.
    pub fn start(shape: Shape) -> Result<Grid, Error> {
        let folder = tempfile::Builder::new().prefix(shape.prefix).tempdir()?;
        let minded = Minded::new(folder.path())?;
        let nodes = shape.nodes;
        let mut grid = Grid { members: Vec::with_capacity(nodes), shape, folder, _minded: minded };
        for _ in 0..nodes {
            grid.add()?;
        }
        let all = |grid: &Grid| -> Result<bool, Error> {
            // The last to come must be known to all, and know all.
            for member in [grid.members.first(), grid.members.last()].into_iter().flatten() {
                if member.client()?.nodes()?.nodes.iter().filter(|node| node.up).count() < nodes {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let began = Instant::now();
        while !all(&grid)? {
            if began.elapsed() > PATIENCE {
                return Err(Error::internal("the nodes of the grid do not find each other"));
            }
            thread::sleep(PAUSE * 20);
        }
        Ok(grid)
    }

    /// One node more.
    fn add(&mut self) -> Result<(), Error> {
        let ticket = match self.members.first() {
            Some(first) => Some(first.client()?.ticket(TICKET, None, false)?.ticket),
            None => None,
        };
        let folder = self.folder.path().join(format!("node-{}", self.members.len() + 1));
        let home = Home::choose(Some(&folder))?;
        home.create()?;
        if !self.shape.settings.is_empty() {
            std::fs::write(folder.join("node.toml"), self.shape.settings)?;
        }
        let mut member = Member { home, folder, cores: self.shape.cores, child: None };
        member.up(ticket.as_deref())?;
        self.members.push(member);
        Ok(())
    }

    /// Ends all nodes, and hands over their folder: some file systems are slow for a while after many files were removed.
    pub fn end(mut self) -> Result<TempDir, Error> {
        self.end_all();
        let empty = tempfile::tempdir()?;
        Ok(std::mem::replace(&mut self.folder, empty))
    }

    fn end_all(&mut self) {
        for member in &mut self.members {
            member.stop();
        }
        for member in &self.members {
            // Supervisors would end by themselves once nothing runs any more; their tasks end with them.
            let began = Instant::now();
            while began.elapsed() < PATIENCE {
                let left = [member.supervisors(), member.tasks().unwrap_or_default()].concat();
                if left.is_empty() {
                    break;
                }
                for pid in left {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
                thread::sleep(PAUSE);
            }
            // Its warden would have done so.
            process::supervisor::tidy(&member.folder);
        }
        self.members.clear();
    }

    /// The node with this number, from 0.
    pub fn node(&self, number: usize) -> &Member {
        &self.members[number]
    }

    /// The same, to be killed and started.
    pub fn node_mut(&mut self, number: usize) -> &mut Member {
        &mut self.members[number]
    }

    /// Takes the nodes out, so that several threads can have them; to be [put back](Grid::put_back).
    pub fn take(&mut self) -> Vec<Member> {
        std::mem::take(&mut self.members)
    }

    /// Puts back what was taken, in the same order.
    pub fn put_back(&mut self, members: Vec<Member>) {
        self.members = members;
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Member] {
        &self.members
    }

    /// A folder for what belongs to the grid, and is gone with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The node with this id.
    pub fn by_id(&mut self, id: &str) -> Result<&mut Member, Error> {
        for member in &mut self.members {
            if member.client()?.info()?.node.id == id {
                return Ok(member);
            }
        }
        Err(Error::internal(format!("no node of this grid is {id}")))
    }
}

impl Member {
    /// A way to ask it.
    pub fn client(&self) -> Result<Client, Error> {
        Ok(Client::of(&self.home)?.signing(signs(self.user())))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The keys of whoever submits to it: of one and the same person, at all nodes.
    pub fn user(&self) -> user::Folder {
        user::Folder::at(&self.folder.with_file_name("user"))
    }

    /// Its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// This program with other words, for this node.
    pub fn command(&self, words: &[&str]) -> Result<Command, Error> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--home").arg(&self.folder).args(words);
        // Keys of its own: whoever shows or measures a grid leaves nothing in the user's folder.
        command.env(user::VARIABLE, self.user().path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }

    /// Starts it, and waits until it answers.
    pub fn up(&mut self, ticket: Option<&str>) -> Result<(), Error> {
        self.begin(ticket)?;
        self.await_answer()
    }

    /// Starts it.
    pub fn begin(&mut self, ticket: Option<&str>) -> Result<(), Error> {
        let log = File::options().create(true).append(true).open(self.folder.with_extension("log"))?;
        let cores = self.cores.to_string();
        let mut command = self.command(&["node", "--listen", "127.0.0.1:0", "--cores", &cores])?;
        command.args(["--memory", "1GiB"]);
        if let Some(ticket) = ticket {
            command.args(["--join", ticket]);
        }
        // A group of its own: Ctrl-C is for who made the grid, which then ends its nodes.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let _not_overlooked = interrupt::hold();
        self.child = Some(command.stderr(log).spawn()?);
        Ok(())
    }

    /// Waits until it answers.
    pub fn await_answer(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            let Some(child) = &mut self.child else {
                return Err(Error::internal("the node was not started"));
            };
            if let Some(status) = child.try_wait()? {
                return Err(Error::internal(format!("a node of the grid ended by itself: {status}"))
                    .hint(self.last_words()));
            }
            let pid = child.id();
            if self.client().is_ok_and(|client| client.info().is_ok_and(|info| info.pid == pid)) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(Error::internal("a node of the grid does not answer").hint(self.last_words()));
            }
            thread::sleep(PAUSE);
        }
    }

    /// The end of its log.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.folder.with_extension("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("; ")
    }

    /// Ends the process at once, as a power cut would.
    pub fn kill(&mut self) -> Result<(), Error> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Tells it to end, and waits for that: what runs goes on.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Ok(pid) = i32::try_from(child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let _ = child.wait();
    }

    /// The processes of its tasks.
    pub fn tasks(&self) -> Result<Vec<i32>, Error> {
        Ok(process::seen(&self.folder)?.processes)
    }

    /// The processes that supervise its tasks: the supervisor and its warden.
    pub fn supervisors(&self) -> Vec<i32> {
        let home = self.folder.canonicalize().unwrap_or_default();
        running(|mut words| {
            words.any(|word| word == b"supervise")
                && words.any(|word| word == home.as_os_str().as_encoded_bytes())
        })
    }
}

impl Drop for Grid {
    fn drop(&mut self) {
        // Not while somebody else does.
        drop(interrupt::hold());
        self.end_all();
    }
}

/// The processes of this machine whose command lines pass.
fn running(passes: impl Fn(Split<'_, u8, fn(&u8) -> bool>) -> bool) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    let ours = |pid: &i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        passes(words.split(|byte| *byte == 0))
    };
    numbers.filter(ours).collect()
}
