//! A grid of real nodes on this machine, each a process of its own in a folder of its own; gone with its last word.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shoal_api::{Client, Home};
use shoal_model::Span;
use tempfile::TempDir;

use crate::error::Error;

/// How long a node may take to answer, or to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a ticket lasts.
const TICKET: Span = Span::from_mins(10);

/// All nodes.
pub struct Grid {
    members: Vec<Member>,
    /// Removed when the grid is.
    _folder: TempDir,
}

/// A node.
pub struct Member {
    folder: PathBuf,
    home: Home,
    child: Option<Child>,
}

impl Grid {
    /// Starts so many nodes of one core each, which enter one grid.
    pub fn start(nodes: usize) -> Result<Grid, Error> {
        let folder = tempfile::Builder::new().prefix("shoal-demo-").tempdir()?;
        let mut grid = Grid { members: Vec::with_capacity(nodes), _folder: folder };
        for number in 0..nodes {
            let ticket = match grid.members.first() {
                Some(first) => Some(first.client()?.ticket(TICKET)?.ticket),
                None => None,
            };
            let folder = grid._folder.path().join(format!("node-{}", number + 1));
            let mut member = Member { home: Home::choose(Some(&folder))?, folder, child: None };
            member.up(ticket.as_deref())?;
            grid.members.push(member);
        }
        Ok(grid)
    }

    /// The node with this number, from 0.
    pub fn node(&self, number: usize) -> &Member {
        &self.members[number]
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
        Ok(Client::of(&self.home)?)
    }

    /// Starts it, and waits until it answers.
    pub fn up(&mut self, ticket: Option<&str>) -> Result<(), Error> {
        std::fs::create_dir_all(&self.folder)?;
        let log = File::options().create(true).append(true).open(self.folder.with_extension("log"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("node").arg("--home").arg(&self.folder);
        command.args(["--listen", "127.0.0.1:0", "--cores", "1", "--memory", "1GiB"]);
        if let Some(ticket) = ticket {
            command.args(["--join", ticket]);
        }
        // A group of its own: Ctrl-C is for the demo, which then ends its nodes.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let pid = child.id();
        self.child = Some(child);
        let began = Instant::now();
        loop {
            if self.client().is_ok_and(|client| client.info().is_ok_and(|info| info.pid == pid)) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(Error::internal("a node of the demo does not answer"));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Ends the process at once, as a power cut would.
    pub fn kill(&mut self) -> Result<(), Error> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Has it take back what it owns, and end.
    fn end(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Ok(client) = self.client()
            && let Ok(page) = client.queue(&Default::default())
        {
            for job in page.jobs {
                let _ = client.cancel(&job.id.to_string());
            }
        }
        if let Ok(pid) = i32::try_from(child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let _ = child.wait();
    }
}

impl Drop for Grid {
    fn drop(&mut self) {
        for member in &mut self.members {
            member.end();
        }
        // Their supervisors end by themselves, once nothing runs any more.
    }
}
