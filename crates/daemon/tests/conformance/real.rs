//! The real arm: a thread, a real clock and a database for each node, and a switchboard between them. Its machines
//! pretend, or run real processes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand_xoshiro::rand_core::SeedableRng;
use shoal_daemon::executor::process;
use shoal_daemon::{
    Clock, Driver, Executor, Home, Network, Pretend, Process, Running, Setup, Sqlite, Store, Switchboard,
    store,
};
use shoal_model::{NodeId, Time};
use shoal_protocols::Chance;
use shoal_protocols::node::{Command, Event, Key, Message, Node, Record};
use tempfile::TempDir;

use crate::arm::{Arm, NODES, configuration, others};

/// Long enough for a machine that does something else as well; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Real<M: Machine> {
    folder: TempDir,
    clock: Clock,
    started: Instant,
    switchboard: Switchboard<Node>,
    up: BTreeMap<NodeId, Up<M>>,
    told: Told,
}

type Told = Arc<Mutex<Vec<(NodeId, Event)>>>;

/// A machine that is on.
struct Up<M> {
    running: Running<Node>,
    fuse: Fuse,
    machine: M,
}

/// What runs tasks, and outlives the program that drives the node. Dropped, it is switched off.
pub trait Machine: Sized {
    /// Switches a machine on whose disk is this folder.
    fn on(home: &Path) -> Self;

    /// Its executor, for one life of the node.
    fn executor(&mut self) -> Box<dyn Executor<Node>>;
}

impl Machine for Pretend {
    fn on(_home: &Path) -> Pretend {
        Pretend::new().unwrap()
    }

    fn executor(&mut self) -> Box<dyn Executor<Node>> {
        Box::new(self.clone())
    }
}

/// A machine with real processes.
pub struct Supervised {
    home: PathBuf,
    supervisor: Option<Pid>,
}

impl Machine for Supervised {
    fn on(home: &Path) -> Supervised {
        Supervised { home: home.to_owned(), supervisor: None }
    }

    fn executor(&mut self) -> Box<dyn Executor<Node>> {
        let program = env!("CARGO_BIN_EXE_shoal-supervise").into();
        let launch = process::Launch { program, arguments: Vec::new() };
        let process = Process::open(process::Setup::new(&self.home, launch)).unwrap();
        self.supervisor = Some(Pid::from_raw(process.supervisor() as i32));
        Box::new(process)
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let Some(supervisor) = self.supervisor else { return };
        kill(supervisor, Signal::SIGKILL).unwrap();
        // Its warden ends what it leaves behind; what runs nevertheless is ended when the folder is used again.
        let lock = std::fs::File::open(self.home.join("supervisor/lock")).unwrap();
        lock.lock().unwrap();
    }
}

/// What cuts a node off from its disk, its peers and its users: before a sync, or right after one.
#[derive(Clone)]
pub struct Fuse {
    /// Half syncs until it blows; below zero for one that does not.
    left: Arc<AtomicI64>,
}

impl Fuse {
    pub fn sound() -> Fuse {
        Fuse { left: Arc::new(AtomicI64::new(-1)) }
    }

    pub fn blow(&self) {
        self.left.store(0, Ordering::SeqCst);
    }

    pub fn is_blown(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    /// Burns down by half a sync, if it burns at all.
    fn burn(&self) -> Result<(), store::Error> {
        let burning = |left| if left > 0 { Some(left - 1) } else { None };
        let _ = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, burning);
        if self.is_blown() {
            let blown = io::Error::other("the fuse has blown");
            return Err(store::Error::io("sync", Path::new("shoal.db"))(blown));
        }
        Ok(())
    }
}

/// A part of a machine that is dead once its fuse has blown.
pub struct Fused<T> {
    pub fuse: Fuse,
    pub part: T,
}

impl Store<Record> for Fused<Sqlite<Record>> {
    fn save(&mut self, record: &Record) -> Result<(), store::Error> {
        self.part.save(record)
    }

    fn erase(&mut self, key: &Key) -> Result<(), store::Error> {
        self.part.erase(key)
    }

    fn sync(&mut self) -> Result<(), store::Error> {
        self.fuse.burn()?;
        self.part.sync()?;
        self.fuse.burn()
    }

    fn tidy(&mut self) -> Result<(), store::Error> {
        self.part.tidy()
    }
}

impl<N: Network<Message>> Network<Message> for Fused<N> {
    fn send(&mut self, to: NodeId, message: Message) {
        if !self.fuse.is_blown() {
            self.part.send(to, message);
        }
    }
}

impl<M: Machine> Real<M> {
    /// The folder of a node.
    pub fn home(&self, node: NodeId) -> PathBuf {
        self.folder.path().join(node.to_string())
    }

    /// Stops only the program that drives the node; what runs on its machine runs on.
    pub fn kill(&mut self, node: NodeId) -> M {
        let Up { running, fuse, machine } = self.up.remove(&node).expect("the node is up");
        fuse.blow();
        self.switchboard.disconnect(node);
        running.mailbox().stop();
        // Told to stop, or stopped by a sync that failed: dead in any case.
        drop(running.join());
        machine
    }

    /// Starts the program again on its machine.
    pub fn start(&mut self, me: NodeId, mut machine: M) {
        let opened = Sqlite::open(&Home::at(self.home(me)).lock().unwrap()).unwrap();
        let fuse = Fuse::sound();
        let line = self.switchboard.line(me, Chance::seed_from_u64(1_000 + me.0));
        let (told, cut) = (Arc::clone(&self.told), fuse.clone());
        let driver = Driver::new(Setup {
            me,
            config: configuration(me),
            records: opened.records,
            chance: Chance::seed_from_u64(me.0),
            clock: self.clock,
            store: Box::new(Fused { fuse: fuse.clone(), part: opened.store }),
            network: Box::new(Fused { fuse: fuse.clone(), part: line }),
            executor: machine.executor(),
            reports: Box::new(move |_, event| {
                if !cut.is_blown() {
                    told.lock().unwrap().push((me, event));
                }
            }),
        });
        self.switchboard.connect(me, driver.mailbox());
        self.up.insert(me, Up { running: driver.spawn().unwrap(), fuse, machine });
        self.command(me, others(me));
    }

    /// Has the machine die after so many half syncs: odd ones are lost, even ones done but told to nobody.
    pub fn crash_after(&mut self, node: NodeId, half_syncs: i64) {
        self.up[&node].fuse.left.store(half_syncs, Ordering::SeqCst);
    }

    /// Whether a machine has died of its fuse.
    pub fn is_dead(&self, node: NodeId) -> bool {
        self.up[&node].fuse.is_blown()
    }
}

impl<M: Machine> Arm for Real<M> {
    fn new() -> Real<M> {
        let mut arm = Real {
            folder: tempfile::tempdir().unwrap(),
            clock: Clock::new(),
            started: Instant::now(),
            switchboard: Switchboard::new(),
            up: BTreeMap::new(),
            told: Told::default(),
        };
        for node in (1..=NODES).map(NodeId) {
            arm.restart(node);
        }
        arm
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn command(&mut self, node: NodeId, command: Command) {
        self.up[&node].running.mailbox().command(command).unwrap();
    }

    fn crash(&mut self, node: NodeId) {
        drop(self.kill(node));
    }

    fn restart(&mut self, node: NodeId) {
        let machine = M::on(&self.home(node));
        self.start(node, machine);
    }

    fn told(&mut self) -> Vec<(NodeId, Event)> {
        self.told.lock().unwrap().clone()
    }

    fn look<T: Send + 'static>(&mut self, node: NodeId, see: impl FnOnce(&Node) -> T + Send + 'static) -> T {
        self.up[&node].running.mailbox().look(see).unwrap()
    }

    fn wait(&mut self) -> bool {
        std::thread::sleep(Duration::from_millis(2));
        self.started.elapsed() < PATIENCE
    }
}

impl<M: Machine> Drop for Real<M> {
    fn drop(&mut self) {
        // Before its machine is off: a node that is alive would have its supervisor started again.
        for node in self.up.keys().copied().collect::<Vec<_>>() {
            drop(self.kill(node));
        }
    }
}
