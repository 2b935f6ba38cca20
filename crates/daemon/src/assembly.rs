//! Joins all parts to a node that runs: its folder, store, executor, network, driver, service and interface.
//!
//! The one place that knows which part stands behind which trait.
//!
//! ```text
//! folder/   settings.toml   what the node is told
//!           id              who it is
//!           address, token  how clients reach it, while it runs
//!           journal, lock   what it must not forget
//!           history/        what happened to jobs, for people
//!           supervisor/, tasks/   what runs
//! ```

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use data_encoding::HEXLOWER;
use rand::SeedableRng;
use shoal_api::{Home, HomeError};
use shoal_model::NodeId;
use shoal_protocols::Chance;
use shoal_protocols::node::{self, Config, Node, Phase};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::driver::{Driver, Fault, Running};
use crate::elsewhere::{Alone, Elsewhere};
use crate::executor::process::{self, Launch, Process};
use crate::network::local::Switchboard;
use crate::network::tickets::{Closed, Tickets};
use crate::service::history::History;
use crate::service::{Parts, Service, Setting};
use crate::settings::{MachineSettings, Settings, SettingsError, found};
use crate::store::journal::Journal;
use crate::{driver, http, store};

/// Threads that answer requests: they mostly wait.
const THREADS: usize = 2;
/// Bytes of a token.
const TOKEN_BYTES: usize = 32;

/// What a node is started with.
pub struct Options {
    /// Its folder.
    pub home: Home,
    /// How its supervisor is started.
    pub launch: Launch,
    /// How jobs find their places; the grid's own way, if nobody says.
    pub recipe: Option<String>,
    /// What the machine is, where that is neither what is found nor what its settings say.
    pub machine: MachineSettings,
    /// Where the interface listens; port 0 is any that is free.
    pub listen: SocketAddr,
}

/// A node that runs.
pub struct Station {
    home: Home,
    address: SocketAddr,
    service: Arc<Service>,
    history: Arc<History>,
    running: Option<Running<Node>>,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<io::Result<()>>>,
    ended: mpsc::Receiver<Reason>,
    ends: mpsc::Sender<Reason>,
}

/// Why a node ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Somebody told the program to.
    Told,
    /// A user asked for it.
    Left,
    /// Its store failed.
    Fault,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its folder is of no use.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its settings make no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// What it saved cannot be read, or another node has it.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Nothing can run its tasks.
    #[error(transparent)]
    Executor(#[from] process::Error),
    /// Nobody could reach it.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where it should.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The interface is not for other machines.
    #[error("{0} is not on this machine: the interface listens on 127.0.0.1 or [::1] only")]
    NotLoopback(SocketAddr),
    /// The system refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Who it is cannot be read.
    #[error("{} does not hold a node's id; restore it from a backup, or start anew in an empty folder", .0.display())]
    NoId(PathBuf),
    /// It stopped at once.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Takes this program away from the terminal that started it.
pub fn detach() {
    // It fails for who leads a group already, and does no harm then.
    let _ = nix::unistd::setsid();
}

/// Starts a node; it answers once this returns.
pub fn start(options: Options) -> Result<Station, StartError> {
    let Options { home, launch, recipe, machine: over, listen } = options;
    if !listen.ip().is_loopback() {
        return Err(StartError::NotLoopback(listen));
    }
    home.create()?;
    let folder = fs::canonicalize(home.path())
        .map_err(|source| StartError::Io { doing: "find the node's folder", source })?;

    // Locked from here on: a second node in this folder changes nothing.
    let opened = Journal::open(&folder)?;
    let known = Settings::load(&folder)?;
    let mut settings = known.clone().unwrap_or_default();
    let recipe = settings.recipe(recipe.as_deref())?;
    let described = settings.machine.clone().with(over);
    let machine = described.apply(found::machine())?;
    if known.is_none() {
        settings.recipe = Some(recipe.name().to_owned());
        settings.save(&folder)?;
    }
    let me = identity(&folder)?;
    let token = token(&home)?;

    let clock = Clock::new();
    let started = clock.now();
    let history = Arc::new(History::open(&folder.join("history"), started)?);
    let executor = Process::open(process::Setup::new(&folder, launch))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .thread_name("interface")
        .build()
        .map_err(|source| StartError::Io { doing: "start threads", source })?;
    let listener = runtime
        .block_on(TcpListener::bind(listen))
        .map_err(|source| StartError::Listen { address: listen, source })?;
    let address = listener.local_addr().map_err(|source| StartError::Listen { address: listen, source })?;

    let (network, elsewhere, tickets, switchboard) = alone(me)?;
    let config = Config { work: Some(Box::new(work(&machine, recipe, &settings))), ..Config::default() };
    let reports = Arc::clone(&history);
    let driver = Driver::<Node>::new(driver::Setup {
        me,
        config,
        records: opened.records,
        chance: Chance::seed_from_u64(drawn()?),
        clock,
        store: Box::new(opened.journal),
        network,
        executor: Box::new(executor),
        reports: Box::new(move |at, event| {
            tracing::debug!("{event:?}");
            reports.note(at, event);
        }),
    });
    switchboard.connect(me, driver.mailbox());
    let running = driver.spawn().map_err(|source| StartError::Io { doing: "start a thread", source })?;
    reconcile(&running, &history, clock)?;

    let name = described.name.clone().unwrap_or_else(found::name);
    let (recipe, limit_default) = (recipe.name(), settings.limit_default());
    let setting = Setting { me, name, home: folder, machine, recipe, limit_default, clock, started };
    let mailbox = running.mailbox().clone();
    let parts = Parts { setting, mailbox, history: Arc::clone(&history), elsewhere, tickets };
    let service = Arc::new(Service::new(parts));

    let (stop, stopped) = oneshot::channel();
    let router = http::router(Arc::clone(&service), token, address);
    let served = runtime.spawn(http::serve(listener, router, async {
        let _ = stopped.await;
    }));
    home.publish(address)?;
    let (ends, ended) = mpsc::channel();
    let station = Station {
        home,
        address,
        service,
        history,
        running: Some(running),
        runtime,
        stop: Some(stop),
        served: Some(served),
        ended,
        ends,
    };
    station.watch_for_leave();
    Ok(station)
}

impl Station {
    /// Where the interface listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What users can ask.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Ends [`Station::wait`] from another thread.
    pub fn stopper(&self) -> impl Fn(Reason) + Send + 'static {
        let ends = self.ends.clone();
        move |reason| {
            let _ = ends.send(reason);
        }
    }

    /// Ends the node when the system tells this program to end.
    pub fn end_on_signals(&self) -> io::Result<()> {
        let _inside = self.runtime.enter();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = self.stopper();
        self.runtime.spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop(Reason::Told);
        });
        Ok(())
    }

    /// Waits until something ends the node, and ends it: what runs goes on, and is found again.
    pub fn wait(mut self) -> Result<Reason, Fault> {
        self.watch_the_node();
        let reason = self.ended.recv().unwrap_or(Reason::Told);
        self.home.withdraw();
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(served) = self.served.take() {
            // Who follows an output would keep it open for ever.
            let _ = self.runtime.block_on(async {
                tokio::time::timeout(std::time::Duration::from_millis(500), served).await
            });
        }
        let result = match self.running.take() {
            Some(running) => running.stop().map(|_| reason),
            None => Ok(reason),
        };
        self.history.close();
        self.runtime.shutdown_background();
        result
    }

    fn watch_for_leave(&self) {
        let (service, stop) = (Arc::clone(&self.service), self.stopper());
        self.runtime.spawn(async move {
            service.asked_to_end().await;
            stop(Reason::Left);
        });
    }

    /// A node whose store fails stops by itself; a look that is never answered tells.
    fn watch_the_node(&self) {
        let Some(running) = &self.running else { return };
        let (mailbox, stop) = (running.mailbox().clone(), self.stopper());
        let watch = thread::Builder::new().name("watch".to_owned());
        let _ = watch.spawn(move || {
            while mailbox.look(|_| ()).is_ok() {
                thread::sleep(std::time::Duration::from_secs(1));
            }
            stop(Reason::Fault);
        });
    }
}

type Network = Box<dyn crate::network::Network<node::Message>>;
type Surroundings = (Network, Arc<dyn Elsewhere>, Arc<dyn Tickets>, Switchboard<Node>);

fn drawn() -> Result<u64, StartError> {
    let bytes = shoal_api::secret::draw();
    bytes.map(u64::from_le_bytes).map_err(|source| StartError::Io { doing: "draw chance", source })
}

/// The parts of a node that knows no other.
fn alone(me: NodeId) -> Result<Surroundings, StartError> {
    let switchboard = Switchboard::<Node>::new();
    let line = switchboard.line(me, Chance::seed_from_u64(drawn()?));
    Ok((Box::new(line), Arc::new(Alone), Arc::new(Closed), switchboard))
}

fn work(
    machine: &shoal_model::Machine,
    recipe: node::config::Recipe,
    settings: &Settings,
) -> node::config::Work {
    node::config::Work {
        machine: machine.clone(),
        recipe,
        commit: shoal_protocols::commit::two_phase::Config::default(),
        heartbeat: shoal_protocols::guard::heartbeat::Config::default(),
        limit_default: settings.limit_default(),
    }
}

/// Fills the stories up with what the node remembers, before anybody asks.
fn reconcile(running: &Running<Node>, history: &History, clock: Clock) -> Result<(), StartError> {
    let see = |node: &Node| {
        node.owned()
            .map(|(job, owned)| match owned.phase() {
                Phase::Ended(end) => (job, Some(*end)),
                Phase::Seeking | Phase::Placed { .. } => (job, None),
            })
            .collect::<Vec<_>>()
    };
    let jobs = running.mailbox().look(see).map_err(|refused| StartError::Io {
        doing: "start the node",
        source: io::Error::other(refused.to_string()),
    })?;
    history.reconcile(clock.now(), jobs);
    Ok(())
}

/// Who the node in a folder is: drawn once, and kept.
fn identity(home: &Path) -> Result<NodeId, StartError> {
    let path = home.join("id");
    match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map_err(|_| StartError::NoId(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = NodeId(drawn()?.max(1));
            let new = home.join("id.new");
            fs::write(&new, format!("{id}\n"))
                .and_then(|()| fs::File::open(&new)?.sync_all())
                .and_then(|()| fs::rename(&new, &path))
                .map_err(|source| StartError::Io { doing: "write the node's id", source })?;
            Ok(id)
        }
        Err(source) => Err(StartError::Io { doing: "read the node's id", source }),
    }
}

/// What clients must show: drawn once, and kept.
fn token(home: &Home) -> Result<String, StartError> {
    match home.token() {
        Err(HomeError::NotRunning(_)) => {
            let bytes = shoal_api::secret::draw::<TOKEN_BYTES>()
                .map_err(|source| StartError::Io { doing: "draw a token", source })?;
            let token = HEXLOWER.encode(&bytes);
            home.keep_token(&token)?;
            Ok(token)
        }
        known => Ok(known?),
    }
}
