//! Joins all parts to a node that runs: its folder, store, executor, network, driver, service and interface.
//!
//! The one place that knows which part stands behind which trait.

mod cells;
mod clerk;

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use data_encoding::HEXLOWER;
use rand::SeedableRng;
use shoal_api::{Home, HomeError, Reached};
use shoal_protocols::Chance;
use shoal_protocols::node::{self, Config, Gate, Judge, Node, Phase};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::acquaintance::Acquaintance;
use crate::audit::{Audit, Kind, Record};
use crate::cabinet::{Cabinet, CabinetError, SqliteCabinet};
use crate::cell::offers::Offers;
use crate::clock::Clock;
use crate::depot::{self, Depot};
use crate::driver::{Driver, Fault, Running};
use crate::elsewhere::grid::{Desk, Peers};
use crate::executor::audited::Audited;
use crate::executor::process::{self, Launch, Process};
use crate::home::{self, Room};
use crate::http::Door;
use crate::http::tls::{Certificate, TlsError};
use crate::identity::{Identity, IdentityError};
use crate::inbox::Refused;
use crate::machine;
use crate::membership::{Grid, GridError, Ticket, TicketError};
use crate::network::quic::{self, JoinError};
use crate::secrets::Secrets;
use crate::service::history::History;
use crate::service::{OPEN_PER_USER, Parts, Service, Setting};
use crate::settings::{
    GridSettings, MachineSettings, NetworkSettings, Planning, Settings, SettingsError, Wish,
};
use crate::staging::Staging;
use crate::store::sqlite::Sqlite;
use crate::trust::Trust;
use crate::trust::gate::Gatekeeper;
use crate::trust::policy::{Policy, PolicyError};
use crate::trust::text::write_key;
use crate::{driver, http, store};

/// Where the interface listens, where nobody says.
const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Threads that answer requests: they mostly wait.
const THREADS: usize = 2;
/// Nodes of earlier lives that are met again.
/// Bytes of a token.
const TOKEN_BYTES: usize = 32;

/// What a node is started with.
pub struct Options {
    /// Its folder.
    pub home: Home,
    /// How its supervisor is started.
    pub launch: Launch,
    /// How jobs find their places; the grid's own way, where nobody says.
    pub wish: Wish,
    /// What the machine is, where that is neither what is found nor what its settings say.
    pub machine: MachineSettings,
    /// Where the interface listens, if that is not what its settings say; port 0 is any that is free.
    pub listen: Option<SocketAddr>,
    /// Where other nodes reach this one, if that is not what its settings say.
    pub bind: Option<SocketAddr>,
    /// The ticket with which it enters a grid, as text.
    pub join: Option<String>,
    /// How late it is.
    pub clock: Clock,
}

/// A node that runs.
pub struct Station {
    home: Home,
    reached: Reached,
    address: SocketAddr,
    service: Arc<Service>,
    history: Arc<History>,
    audit: Arc<Audit>,
    cabinet: Arc<dyn Cabinet>,
    network: quic::Handle,
    running: Option<Running<Node>>,
    runtime: Runtime,
    /// Held as long as the node runs.
    _lock: home::Lock,
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
    /// It has no certificate to show to other machines.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Its data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] home::Error),
    /// Who it is cannot be read.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Who it was is lost.
    #[error(
        "{} is gone, and without it this node is no member of its grid; put it back from a copy, or name another folder \
         with --home and join again",
        .0.display()
    )]
    KeyGone(std::path::PathBuf),
    /// What it had accepted is lost.
    #[error(
        "{} is gone or empty, and with it all jobs that this node has accepted; put it back from a copy, or name another \
         folder with --home and join again",
        .0.display()
    )]
    RecordsGone(std::path::PathBuf),
    /// What lies beside its records cannot be read.
    #[error(transparent)]
    Cabinet(#[from] CabinetError),
    /// Its grid.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// What was given as a ticket.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// It does not get into the grid.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// It belongs to another grid already.
    #[error(
        "the node in this folder belongs to another grid than the ticket's; name another folder with --home"
    )]
    OtherGrid,
    /// The grid's settings are of another version.
    #[error("this version of shoal cannot read what the nodes of this grid agree on; run a newer version")]
    GridSettings,
    /// What the machine is cannot be told.
    #[error(transparent)]
    Machine(#[from] machine::Error),
    /// Other nodes cannot reach it.
    #[error(transparent)]
    Network(#[from] quic::StartError),
    /// Whom its owner allows makes no sense.
    #[error("{}: {source}", path.display())]
    Policy {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong, and where.
        source: PolicyError,
    },
    /// Its files cannot be found.
    #[error(transparent)]
    Depot(#[from] depot::Error),
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
    let Options { home, launch, wish, machine: over, listen, bind, join, clock } = options;
    let ticket = join.as_deref().map(str::parse::<Ticket>).transpose()?;
    // Locked from here on: a second node in this folder changes nothing.
    let lock = crate::Home::at(home.path()).lock()?;
    let folder = fs::canonicalize(home.path())
        .map_err(|source| StartError::Io { doing: "find the node's folder", source })?;
    let mut settings = Settings::load(&folder)?.unwrap_or_default();
    settings.check()?;
    let described = settings.machine.clone().with(over);
    let found = machine::detect(&folder, &machine::Overrides::default())?;
    let all_cores = found.capacity.cores;
    let mut machine = described.apply(found)?;
    let offers = Offers::find().tried(&launch.program);
    if offers.images && offers.lack().is_none() {
        machine.labels.extend(settings.images.keys().filter_map(cells::label));
    }
    let started = clock.now();
    let cabinet: Arc<dyn Cabinet> = Arc::new(SqliteCabinet::open(&lock)?);
    if Grid::is_kept(&*cabinet)? {
        // A new key would be that of another node, which is no member of the grid that is kept here.
        let key = lock.home().key();
        if !key.exists() {
            return Err(StartError::KeyGone(key));
        }
        let records = lock.home().database();
        if store::sqlite::is_blank(&records)? {
            return Err(StartError::RecordsGone(records));
        }
    }
    // Both are read as a whole, which takes a while where very many jobs wait: at the same time.
    let (opened, history) = thread::scope(|scope| {
        let history = scope.spawn(|| History::open(&folder.join("history"), started));
        let opened = Sqlite::open(&lock);
        (opened, history.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (mut opened, history) = (opened?, Arc::new(history?));
    opened.store.fill_log();
    let identity = Identity::open(&folder)?;
    let me = identity.node();
    let token = token(&home)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .thread_name("interface")
        .build()
        .map_err(|source| StartError::Io { doing: "start threads", source })?;

    let NetworkSettings { advertise, relays, lan, .. } = settings.network.clone();
    let mut place = quic::Settings { advertise, relays, lan, ..Default::default() };
    // Port 0 is any the first time, and the same from then on.
    let kept = settings
        .network
        .listen
        .filter(|kept| bind.is_none_or(|bind| bind.port() == 0 && bind.ip() == kept.ip()));
    place.bind = kept.or(bind).unwrap_or(place.bind);
    let wish = settings.wish(wish)?;
    // Before anything is joined or made: what no grid is made with, none that is joined has; and a node that nobody can
    // reach, or whose owner's rules make no sense, does not begin.
    wish.check()?;
    let wrong_policy = |source| StartError::Policy { path: Policy::path(&folder), source };
    Policy::load(&folder).map_err(wrong_policy)?;
    let listen = listen.or(settings.http.listen).unwrap_or(LISTEN_DEFAULT);
    let listener = runtime
        .block_on(TcpListener::bind(listen))
        .map_err(|source| StartError::Listen { address: listen, source })?;
    let address = listener.local_addr().map_err(|source| StartError::Listen { address: listen, source })?;
    // Given back at once: the network takes it when it starts.
    let taken = |error: io::Error| quic::StartError::Bind { bind: place.bind, why: error.to_string() };
    drop(UdpSocket::bind(place.bind).map_err(taken)?);
    let grid = match (Grid::load(&identity, Arc::clone(&cabinet))?, ticket) {
        (Some(grid), Some(ticket)) if grid.id() != ticket.grid => return Err(StartError::OtherGrid),
        (Some(grid), _) => grid,
        (None, Some(ticket)) => {
            let joined =
                runtime.block_on(quic::join(&place, &identity, &ticket, Arc::clone(&cabinet), clock))?;
            // Whoever came with a ticket that names relays may be reached by these only, and uses them from then on.
            if place.relays.is_empty() && !ticket.relays.is_empty() {
                place.relays.clone_from(&ticket.relays);
                settings.network.relays = ticket.relays;
                settings.save(&folder)?;
            }
            joined
        }
        (None, None) => {
            let wanted = wish.grid()?;
            let name = "grid".parse().expect("a name");
            let organisation = described.organisation.clone();
            Grid::create_of(organisation, &identity, name, wanted.write(), Arc::clone(&cabinet), started)?
        }
    };
    let agreed = GridSettings::read(grid.settings()).ok_or(StartError::GridSettings)?;
    let Planning { recipe, overlay } = agreed.planning(&wish)?;

    let grid = Arc::new(grid);
    let trust = Arc::new(Trust::open(Arc::clone(&grid), Arc::clone(&cabinet), clock)?);
    // Whose the machine is: as its owner says, and else as the ticket said with which it came.
    machine.organisation = machine.organisation.or_else(|| trust.organisation());
    let gate = Arc::new(
        Gatekeeper::open(trust, machine.organisation.clone(), &folder)
            .map_err(wrong_policy)?
            .with_cells(settings.tasks.isolate, offers.lack()),
    );

    let audit = Audit::open(&folder).map_err(|source| StartError::Io { doing: "open audit.log", source })?;
    let audit = Arc::new(audit);
    let opened_with = format!("shoal {}, node {me}", env!("CARGO_PKG_VERSION"));
    audit.note(started, Record::new(Kind::Opened, opened_with));
    clerk::write_revocations(&gate, &audit, clock);

    let secure = settings.http.is_secure(listen);
    let certificate = secure.then(|| Certificate::open(&folder, &settings.http)).transpose()?;

    let desk = Arc::new(Desk::new(runtime.handle().clone()));
    let answers: Arc<dyn quic::Responder> = Arc::clone(&desk) as Arc<dyn quic::Responder>;
    let network = runtime.block_on(quic::start(
        place.clone(),
        &identity,
        grid,
        Arc::clone(&cabinet),
        clock,
        answers,
    ))?;
    let listen = Some(port_to_keep(&place, &network));
    if settings.network.listen != listen {
        settings.network.listen = listen;
        settings.save(&folder)?;
    }
    let measured = network.clone();
    gate.clocks().learn(move |node| measured.ahead_us(node));
    let peers = Arc::new(Peers(network.clone()));
    let depot = Arc::new(Depot::open(&folder)?);
    let secrets = Secrets::new(&folder, &identity);
    let staging = Staging::new(me, &folder, depot, secrets, runtime.handle().clone());
    staging.connect(Arc::clone(&peers) as _);
    let keep = settings.tasks.keep(all_cores, machine.capacity.cores);
    let names = names(&network);
    let executor = Process::open(process::Setup {
        names,
        keep,
        cells: cells::of(&settings.tasks, &gate, clock),
        images: settings.images.clone(),
        secrets: {
            let staging = staging.clone();
            Box::new(move |task, _| staging.told(task))
        },
        files: Some(staging.clone()),
        ..process::Setup::new(&folder, launch)
    })?;
    let config = Config { overlay, work: Some(Box::new(work(&machine, recipe, &settings, &gate))) };
    let (reports, written) = (Arc::clone(&history), Arc::clone(&audit));
    let driver = Driver::<Node>::new(driver::Setup {
        me,
        config,
        records: opened.records,
        chance: Chance::seed_from_u64(drawn()?),
        clock,
        store: Box::new(opened.store),
        network: network.line(),
        executor: Box::new(Audited::new(Box::new(executor), Arc::clone(&audit), Arc::clone(&gate), clock)),
        reports: Box::new(move |at, event| {
            tracing::debug!("{event:?}");
            clerk::write_event(&written, me, at, &event);
            reports.note(at, event);
        }),
    });
    let connected = network.events();
    network.listen(driver.mailbox());
    let running = driver.spawn().map_err(|source| StartError::Io { doing: "start a thread", source })?;
    reconcile(&running, &history, clock)?;
    let acquaintance = Acquaintance::through(overlay);
    acquaintance.meet_again(running.mailbox(), &network, drawn()?);
    runtime.spawn(acquaintance.meet_others(running.mailbox().clone(), connected));

    let name =
        described.name.clone().or_else(|| machine::host(Path::new("/"))).unwrap_or_else(|| me.to_string());
    let limit_default = settings.limit_default();
    let (recipe, overlay) = (recipe.name(), overlay.name());
    let room = Room::of(lock.home());
    let open_per_user = settings.jobs.open_per_user.unwrap_or(OPEN_PER_USER);
    let setting = Setting {
        me,
        name,
        home: folder,
        machine,
        recipe,
        overlay,
        limit_default,
        open_per_user,
        clock,
        started,
        room,
    };
    let mailbox = running.mailbox().clone();
    let (elsewhere, tickets) = (Arc::clone(&peers) as _, peers as _);
    staging.tidy_up(mailbox.clone());
    let renewals = mailbox.clone();
    let parts = Parts {
        setting,
        mailbox,
        history: Arc::clone(&history),
        elsewhere,
        tickets,
        staging,
        gate: Some(Arc::clone(&gate)),
    };
    let service = Arc::new(Service::new(parts));
    desk.open(Arc::clone(&service));

    let (stop, stopped) = oneshot::channel();
    let (fingerprint, acceptor) = certificate.map(|shown| (shown.fingerprint, shown.acceptor)).unzip();
    let names = settings.http.names.clone();
    let requests_per_second = settings.http.requests_per_second.unwrap_or(http::REQUESTS_PER_SECOND);
    let router =
        http::router(Arc::clone(&service), Door { token, address, names, secure, requests_per_second });
    let served = runtime.spawn(http::serve(listener, acceptor, router, async {
        let _ = stopped.await;
    }));
    let reached = Reached { address: from_here(address).to_string(), certificate: fingerprint };
    home.publish(&reached, Some(&write_key(&gate.trust().grid().0)))?;
    let (ends, ended) = mpsc::channel();
    let station = Station {
        home,
        reached,
        address,
        service,
        history,
        audit: Arc::clone(&audit),
        cabinet,
        network,
        running: Some(running),
        runtime,
        _lock: lock,
        stop: Some(stop),
        served: Some(served),
        ended,
        ends,
    };
    station.watch_for_leave();
    station.runtime.spawn(Arc::clone(&station.service).compare_notices());
    station.runtime.spawn(clerk::renew_passes(Arc::clone(&gate), renewals, clock));
    station.runtime.spawn(clerk::watch_policy(gate, audit, clock));
    Ok(station)
}

/// An address of this machine at which it reaches itself.
fn from_here(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, address.port())
}

/// Where this node listens from now on: the port stays the same from life to life, since others look for it there.
fn port_to_keep(place: &quic::Settings, network: &quic::Handle) -> SocketAddr {
    let port = network.addresses().first().map_or(place.bind.port(), SocketAddr::port);
    SocketAddr::new(place.bind.ip(), if place.advertise.is_empty() { port } else { place.bind.port() })
}

/// What nodes are called where tasks look for each other: by an address where there is one.
fn names(network: &quic::Handle) -> Box<dyn Fn(shoal_model::NodeId) -> String + Send> {
    let network = network.clone();
    Box::new(move |node| {
        let own = network.addresses().first().copied().filter(|_| node == network.me());
        let known = || network.record(node)?.addresses.first().copied();
        own.or_else(known).map_or_else(|| node.to_string(), |address| address.ip().to_string())
    })
}

impl Station {
    /// Where the interface listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How programs on this machine reach the interface.
    pub fn reached(&self) -> &Reached {
        &self.reached
    }

    /// Where other nodes find this one.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.network.addresses()
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
        self.audit.close();
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(std::time::Duration::from_secs(1), self.network.close()).await;
        });
        self.runtime.shutdown_background();
        self.cabinet.close();
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
            // One that is busy has not stopped.
            while mailbox.look(|_| ()) != Err(Refused::Stopped) {
                thread::sleep(std::time::Duration::from_secs(1));
            }
            stop(Reason::Fault);
        });
    }
}

fn drawn() -> Result<u64, StartError> {
    let bytes = shoal_api::secret::draw();
    bytes.map(u64::from_le_bytes).map_err(|source| StartError::Io { doing: "draw chance", source })
}

fn work(
    machine: &shoal_model::Machine,
    recipe: node::config::Recipe,
    settings: &Settings,
    gate: &Arc<Gatekeeper>,
) -> node::config::Work {
    node::config::Work {
        machine: machine.clone(),
        recipe,
        commit: shoal_protocols::commit::two_phase::Config::default(),
        heartbeat: shoal_protocols::guard::heartbeat::Config::default(),
        limit_default: settings.limit_default(),
        eager: true,
        gate: Gate::with(Arc::clone(gate) as Arc<dyn Judge>),
    }
}

/// Fills the stories up with what the node remembers, before anybody asks.
fn reconcile(running: &Running<Node>, history: &History, clock: Clock) -> Result<(), StartError> {
    let see = |node: &Node| {
        node.owned()
            .filter(|(_, owned)| !owned.is_pending())
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
