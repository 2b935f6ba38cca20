//! A node with its socket, its driver and its cabinet, and patience to wait for what it does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::SeedableRng;
use shoal_daemon::membership::{Grid, Terms, Ticket};
use shoal_daemon::network::quic::{self, Event, Handle, JoinError, NoAnswers, Responder, Settings};
use shoal_daemon::{
    Cabinet, Clock, Completion, Driver, Executor, Identity, Memory, MemoryCabinet, Running, Setup,
};
use shoal_model::{NodeId, Time};
use shoal_protocols::Chance;
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::{self, Config, Message, Node};
use shoal_protocols::overlay::{self, cyclon};
use tokio::sync::broadcast::Receiver;

/// Long enough for a machine that does something else as well; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Station {
    pub identity: Identity,
    pub cabinet: Arc<MemoryCabinet>,
    pub handle: Handle,
    pub driver: Option<Running<Node>>,
}

/// What a node of these tests is told: it takes no jobs, and shuffles rarely unless it is asked to.
pub fn quiet() -> Config {
    Config {
        overlay: overlay::Config::Cyclon(cyclon::Config { period_ms: 3_600_000, ..Default::default() }),
        ..Config::default()
    }
}

pub fn settings() -> Settings {
    Settings { bind: ([127, 0, 0, 1], 0).into(), ..Settings::default() }
}

struct Unused;

impl Executor<Node> for Unused {
    fn perform(&mut self, _now: Time, action: node::Action, _completion: Completion<Node>) {
        panic!("a node that takes no jobs starts nothing: {action:?}");
    }
}

impl Station {
    /// The first node of a grid.
    pub async fn first() -> Station {
        Station::first_with(settings(), Arc::new(NoAnswers)).await
    }

    pub async fn first_with(settings: Settings, responder: Arc<dyn Responder>) -> Station {
        let identity = Identity::generate();
        let cabinet = Arc::new(MemoryCabinet::new());
        let kept: Arc<dyn Cabinet> = cabinet.clone();
        Grid::create(&identity, "lab".parse().unwrap(), b"recipe".to_vec(), kept, Clock::new().now())
            .unwrap();
        Station::start(identity, cabinet, settings, responder).await
    }

    /// One more node, with a ticket of another.
    pub async fn join(other: &Station) -> Station {
        Station::join_with(other, settings(), Arc::new(NoAnswers)).await
    }

    pub async fn join_with(other: &Station, settings: Settings, responder: Arc<dyn Responder>) -> Station {
        let (identity, cabinet) = (Identity::generate(), Arc::new(MemoryCabinet::new()));
        enter(&identity, &other.ticket(), &cabinet).await.unwrap();
        Station::start(identity, cabinet, settings, responder).await
    }

    /// A life of a node that belongs to a grid.
    pub async fn start(
        identity: Identity,
        cabinet: Arc<MemoryCabinet>,
        settings: Settings,
        responder: Arc<dyn Responder>,
    ) -> Station {
        let grid = Arc::new(Grid::load(&identity, cabinet.clone()).unwrap().unwrap());
        let kept: Arc<dyn Cabinet> = cabinet.clone();
        let handle = quic::start(settings, &identity, grid, kept, Clock::new(), responder).await.unwrap();
        let me = handle.me();
        let driver = Driver::<Node>::new(Setup {
            me,
            config: quiet(),
            records: vec![],
            chance: Chance::seed_from_u64(me.0),
            clock: Clock::new(),
            store: Box::new(Memory::new()),
            network: handle.line(),
            executor: Box::new(Unused),
            reports: Box::new(|_, _| ()),
        });
        handle.listen(driver.mailbox());
        let driver = Some(driver.spawn().unwrap());
        Station { identity, cabinet, handle, driver }
    }

    pub fn me(&self) -> NodeId {
        self.handle.me()
    }

    pub fn ticket(&self) -> Ticket {
        self.handle.ticket(Terms::default()).unwrap()
    }

    pub fn say(&self, to: &Station) {
        self.say_to(to.me());
    }

    pub fn say_to(&self, to: NodeId) {
        self.handle.line().send(to, Message::Heartbeat(heartbeat::Message::Pong(7)));
    }

    /// How many such words have come.
    pub fn heard(&self) -> u64 {
        self.handle.counts().received.get("pong").map_or(0, |traffic| traffic.messages)
    }

    pub async fn hears(&self, words: u64) {
        eventually("a word arrives", || self.heard() >= words).await;
    }

    /// Ends this life as a stop does.
    pub async fn stop(mut self) -> (Identity, Arc<MemoryCabinet>) {
        if let Some(driver) = self.driver.take() {
            driver.stop().unwrap();
        }
        self.handle.close().await;
        (self.identity.clone(), Arc::clone(&self.cabinet))
    }
}

/// Takes a ticket to its issuer.
pub async fn enter(
    identity: &Identity,
    ticket: &Ticket,
    cabinet: &Arc<MemoryCabinet>,
) -> Result<Grid, JoinError> {
    quic::join(&settings(), identity, ticket, cabinet.clone(), Clock::new()).await
}

/// Waits until something holds.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits for an event.
pub async fn event(events: &mut Receiver<Event>, what: &str, is: impl Fn(&Event) -> bool) -> Event {
    let wait = async {
        loop {
            let event = events.recv().await.expect("the network is there");
            if is(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}
