//! The networked arm: as the real one, but each node has a key, a socket and a runtime of its own, and joined by a ticket.
//!
//! A node's id follows from its key, so what a script calls node 1 has another name here: words are translated on their
//! way in and out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::SeedableRng;
use shoal_daemon::membership::Terms;
use shoal_daemon::network::quic::{self, Handle, NoAnswers, Settings};
use shoal_daemon::{
    Cabinet, Clock, Driver, Grid, Home, Identity, MemoryCabinet, Pretend, Running, Setup, Sqlite,
};
use shoal_model::{NodeId, Time};
use shoal_protocols::Chance;
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::{Command, Config, Event, Message, Node};
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};

use crate::arm::{Arm, ENTRY, NODES, configuration, others};
use crate::real::{Fuse, Fused, PATIENCE};

pub struct Networked {
    folder: TempDir,
    clock: Clock,
    started: Instant,
    /// What belongs to a machine also while it is off, by the script's names.
    machines: BTreeMap<NodeId, (Identity, Arc<MemoryCabinet>)>,
    up: BTreeMap<NodeId, Up>,
    /// As the nodes themselves told it.
    told: Arc<Mutex<Vec<(NodeId, Event)>>>,
}

/// A machine that is on.
struct Up {
    running: Running<Node>,
    fuse: Fuse,
    handle: Handle,
    runtime: Runtime,
}

fn settings() -> Settings {
    Settings { bind: ([127, 0, 0, 1], 0).into(), ..Settings::default() }
}

fn new_runtime() -> Runtime {
    runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

impl Networked {
    fn start(&mut self, name: NodeId) {
        let (identity, cabinet) = &self.machines[&name];
        let runtime = new_runtime();
        let grid = Arc::new(Grid::load(identity, cabinet.clone()).unwrap().unwrap());
        let kept: Arc<dyn Cabinet> = cabinet.clone();
        let start = quic::start(settings(), identity, grid, kept, self.clock, Arc::new(NoAnswers));
        let handle = runtime.block_on(start).unwrap();
        let home = self.folder.path().join(name.to_string());
        std::fs::create_dir_all(&home).unwrap();
        let opened = Sqlite::open(&Home::at(&home).lock().unwrap()).unwrap();
        let fuse = Fuse::sound();
        let (told, cut) = (Arc::clone(&self.told), fuse.clone());
        let driver = Driver::new(Setup {
            me: handle.me(),
            config: patient(configuration(name)),
            records: opened.records,
            chance: Chance::seed_from_u64(name.0),
            clock: self.clock,
            store: Box::new(Fused { fuse: fuse.clone(), part: opened.store }),
            network: handle.line(),
            executor: Box::new(Pretend::new().unwrap()),
            reports: Box::new(move |_, event| {
                if !cut.is_blown() {
                    told.lock().unwrap().push((name, event));
                }
            }),
        });
        handle.listen(driver.mailbox());
        self.up.insert(name, Up { running: driver.spawn().unwrap(), fuse, handle, runtime });
    }

    /// Lets a machine in with a ticket of the first.
    fn join(&mut self, name: NodeId) {
        let first = &self.up[&ENTRY];
        let ticket = first.handle.ticket(Terms::default()).unwrap();
        let (identity, cabinet) = (Identity::generate(), Arc::new(MemoryCabinet::new()));
        let settings = settings();
        let join = quic::join(&settings, &identity, &ticket, cabinet.clone(), self.clock);
        first.runtime.block_on(join).unwrap();
        self.machines.insert(name, (identity, cabinet));
    }

    fn real(&self, name: NodeId) -> NodeId {
        self.machines[&name].0.node()
    }

    fn name(&self, real: NodeId) -> NodeId {
        let found = self.machines.iter().find(|(_, (identity, _))| identity.node() == real);
        *found.expect("nodes speak of nodes of the grid").0
    }

    fn translated(&self, event: Event) -> Event {
        match event {
            Event::Placed(job, mut placement) => {
                placement.nodes = placement.nodes.iter().map(|&node| self.name(node)).collect();
                Event::Placed(job, placement)
            }
            Event::Unplaced { job, epoch, by } => {
                Event::Unplaced { job, epoch, by: by.map(|node| self.name(node)) }
            }
            Event::Suspected(node) => Event::Suspected(self.name(node)),
            Event::Back(node) => Event::Back(self.name(node)),
            Event::Silent(node) => Event::Silent(self.name(node)),
            Event::Unwatched(node) => Event::Unwatched(self.name(node)),
            other => other,
        }
    }
}

/// Whoever has died without a word and is back may be unreachable until the others notice that their connections to it are dead,
/// which takes six seconds: heartbeats outlast that.
fn patient(mut config: Config) -> Config {
    if let Some(work) = &mut config.work {
        let heartbeat =
            heartbeat::Config { timeout_least_ms: 2_500, timeout_most_ms: 5_000, ..work.heartbeat };
        work.heartbeat = heartbeat;
    }
    config
}

impl Arm for Networked {
    fn new() -> Networked {
        let clock = Clock::new();
        let (identity, cabinet) = (Identity::generate(), Arc::new(MemoryCabinet::new()));
        Grid::create(&identity, "conformance".parse().unwrap(), vec![], cabinet.clone(), clock.now())
            .unwrap();
        let mut arm = Networked {
            folder: tempfile::tempdir().unwrap(),
            clock,
            started: Instant::now(),
            machines: [(ENTRY, (identity, cabinet))].into(),
            up: BTreeMap::new(),
            told: Arc::default(),
        };
        arm.start(ENTRY);
        for name in (1..=NODES).map(NodeId).filter(|name| *name != ENTRY) {
            arm.join(name);
            arm.start(name);
            let entry = arm.real(ENTRY);
            arm.up[&name].handle.line().send(entry, Message::Heartbeat(heartbeat::Message::Pong(0)));
        }
        arm.wait_until("the first knows all", |arm| {
            arm.up[&ENTRY].handle.known(NODES as usize).len() as u64 == NODES - 1
        });
        for name in (1..=NODES).map(NodeId) {
            arm.command(name, others(name));
        }
        arm
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn command(&mut self, node: NodeId, command: Command) {
        let command = match command {
            Command::Meet(nodes) => Command::Meet(nodes.iter().map(|node| self.real(*node)).collect()),
            Command::Join(node) => Command::Join(self.real(node)),
            other => other,
        };
        self.up[&node].running.mailbox().command(command).unwrap();
    }

    fn crash(&mut self, node: NodeId) {
        let Up { running, fuse, handle, runtime } = self.up.remove(&node).expect("the node is up");
        fuse.blow();
        // Without a word to anybody: sockets close because their owners are gone.
        runtime.shutdown_background();
        drop(handle);
        running.mailbox().stop();
        drop(running.join());
    }

    fn restart(&mut self, node: NodeId) {
        self.start(node);
        self.command(node, others(node));
    }

    fn told(&mut self) -> Vec<(NodeId, Event)> {
        let told = self.told.lock().unwrap().clone();
        told.into_iter().map(|(name, event)| (name, self.translated(event))).collect()
    }

    fn look<T: Send + 'static>(&mut self, node: NodeId, see: impl FnOnce(&Node) -> T + Send + 'static) -> T {
        self.up[&node].running.mailbox().look(see).unwrap()
    }

    fn wait(&mut self) -> bool {
        std::thread::sleep(Duration::from_millis(2));
        self.started.elapsed() < PATIENCE
    }
}

impl Drop for Networked {
    fn drop(&mut self) {
        for node in self.up.keys().copied().collect::<Vec<_>>() {
            self.crash(node);
        }
    }
}
