//! Jobs of other nodes, asked for through any.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rand_xoshiro::rand_core::SeedableRng;
use shoal_api::{JobStatus, LogQuery, NodeList, State, Until, Why};
use shoal_daemon::depot::Depot;
use shoal_daemon::elsewhere::local::Exchange;
use shoal_daemon::elsewhere::{Body, Question, Reply, Responder};
use shoal_daemon::executor::process::{Launch, Setup as ProcessSetup};
use shoal_daemon::home::Room;
use shoal_daemon::network::tickets::{NoTicket, Tickets};
use shoal_daemon::service::history::History;
use shoal_daemon::service::{Answers, By, Parts, Service, Setting};
use shoal_daemon::staging::Staging;
use shoal_daemon::{Clock, Driver, Home, Memory, Process, Running, Setup, Switchboard};
use shoal_model::{Envelope, Job, JobId, Machine, Name, NodeId, Nonce, Resources, Span};
use shoal_protocols::Chance;
use shoal_protocols::node::config::{Recipe, Work};
use shoal_protocols::node::{Command, Config, Node};
use tempfile::TempDir;

/// A node that lets nobody in.
struct Closed;

impl Tickets for Closed {
    fn issue(
        &self,
        _lasts: Span,
        _organisation: Option<Name>,
        _admitter: bool,
    ) -> Result<shoal_api::Ticket, NoTicket> {
        Err(NoTicket("closed".to_owned()))
    }
}

struct Station {
    me: NodeId,
    service: Arc<Service>,
    _answers: Arc<dyn Responder>,
    running: Running<Node>,
}

struct Grid {
    stations: Vec<Station>,
    switchboard: Switchboard<Node>,
    folder: TempDir,
}

impl Grid {
    /// Nodes that know each other, each with so many cores.
    fn of(cores: &[u32]) -> Grid {
        let folder = tempfile::tempdir().unwrap();
        let switchboard = Switchboard::<Node>::new();
        let exchange = Exchange::default();
        let ids: Vec<NodeId> = (1..=cores.len() as u64).map(NodeId).collect();
        let mut grid = Grid { stations: Vec::new(), switchboard, folder };
        for (&me, &cores) in ids.iter().zip(cores) {
            grid.add(me, cores, &exchange);
        }
        for station in &grid.stations {
            let others = ids.iter().copied().filter(|node| *node != station.me).collect();
            station.running.mailbox().command(Command::Meet(others)).unwrap();
        }
        grid
    }

    fn add(&mut self, me: NodeId, cores: u32, exchange: &Exchange) {
        let home = self.folder.path().join(me.to_string());
        std::fs::create_dir_all(&home).unwrap();
        let home = home.canonicalize().unwrap();
        let machine = Machine::with_capacity(Resources::cores(cores));
        let limit_default = Span::from_mins(10);
        let work = Work {
            machine: machine.clone(),
            recipe: Recipe::named("sample").unwrap(),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default,
            eager: true,
            gate: Default::default(),
        };
        let clock = Clock::new();
        let history = Arc::new(History::open(&home.join("history"), clock.now()).unwrap());
        let program = env!("CARGO_BIN_EXE_shoal-supervise").into();
        let launch = Launch { program, arguments: Vec::new() };
        let reports = Arc::clone(&history);
        let depot = Arc::new(Depot::open(&home).unwrap());
        let identity = shoal_daemon::identity::Identity::from_bytes(&[1; 32]);
        let secrets = shoal_daemon::secrets::Secrets::new(&home, &identity);
        let staging = Staging::new(me, &home, depot, secrets, tokio::runtime::Handle::current());
        staging.connect(Arc::new(exchange.line(me)));
        let processes = ProcessSetup { files: Some(staging.clone()), ..ProcessSetup::new(&home, launch) };
        let driver = Driver::<Node>::new(Setup {
            me,
            config: Config { work: Some(Box::new(work)), ..Config::default() },
            records: Vec::new(),
            chance: Chance::seed_from_u64(me.0),
            clock,
            store: Box::new(Memory::new()),
            network: Box::new(self.switchboard.line(me, Chance::seed_from_u64(me.0 + 100))),
            executor: Box::new(Process::open(processes).unwrap()),
            reports: Box::new(move |at, event| reports.note(at, event)),
        });
        self.switchboard.connect(me, driver.mailbox());
        let running = driver.spawn().unwrap();
        let room = Room::of(&Home::at(&home));
        let setting = Setting {
            me,
            name: me.to_string(),
            home,
            machine,
            recipe: "sample",
            overlay: "cyclon",
            limit_default,
            open_per_user: shoal_daemon::service::OPEN_PER_USER,
            clock,
            started: clock.now(),
            room,
        };
        let service = Arc::new(Service::new(Parts {
            setting,
            mailbox: running.mailbox().clone(),
            history,
            elsewhere: Arc::new(exchange.line(me)),
            tickets: Arc::new(Closed),
            gate: None,
            staging,
        }));
        let answers: Arc<dyn Responder> = Arc::new(Answers(Arc::clone(&service)));
        let weak: Weak<dyn Responder> = Arc::downgrade(&answers);
        exchange.connect(me, weak);
        self.stations.push(Station { me, service, _answers: answers, running });
    }

    fn service(&self, number: usize) -> &Arc<Service> {
        &self.stations[number].service
    }

    async fn submit(&self, at: usize, job: Job, nonce: u8) -> JobStatus {
        let envelope = Envelope::new(job, Nonce([nonce; 16])).unwrap();
        self.service(at).submit(envelope, Span::from_secs(10)).await.unwrap().1
    }

    /// Asks through a node about a job, whosever it is.
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        through: usize,
        job: &str,
        question: impl FnOnce(JobId) -> Question,
    ) -> T {
        let reply = self.service(through).ask_owner(job, question).await.unwrap();
        reply.read().await.expect("an answer that makes sense")
    }
}

impl Drop for Grid {
    fn drop(&mut self) {
        for station in self.stations.drain(..) {
            let _ = station.running.stop();
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

async fn bytes(reply: Reply) -> String {
    let mut all = Vec::new();
    match reply.body {
        Body::Whole(bytes) => all.extend_from_slice(&bytes),
        Body::Parts(mut parts) => {
            while let Some(part) = parts.recv().await {
                all.extend_from_slice(&part);
            }
        }
    }
    String::from_utf8(all).unwrap()
}

#[test]
fn any_node_answers_for_a_job_of_another_wherever_it_runs() {
    runtime().block_on(async {
        let grid = Grid::of(&[1, 4, 1]);
        // It fits on the second node alone, is the first one's, and is asked for through the third.
        let script = "echo begun; sleep 0.3; echo done";
        let job = Job { resources: Resources::cores(4), ..Job::command(["sh", "-c", script]) };
        let accepted = grid.submit(0, job, 1).await;
        let planned = accepted.planned.expect("it has a place");
        assert_eq!((accepted.owner.as_str(), planned.nodes), ("n1", vec!["n2".to_owned()]));
        let id = accepted.id.to_string();

        let query = LogQuery { follow: true, ..LogQuery::default() };
        let logs =
            grid.service(2).ask_owner(&id[..10], |job| Question::Logs { job, query, by: By::default() });
        let output =
            tokio::time::timeout(Duration::from_secs(30), async { bytes(logs.await.unwrap()).await });
        assert_eq!(output.await.unwrap(), "begun\ndone\n");
        let wait = |job| Question::Wait { job, until: Until::Ended, most_ms: 30_000 };
        let ended: JobStatus = grid.ask(2, &id, wait).await;
        assert_eq!((ended.state, ended.owner.as_str()), (State::Finished, "n1"));
        let events = grid.service(2).ask_owner(&id, |job| Question::Events { job }).await.unwrap();
        let told = tokio::time::timeout(Duration::from_secs(30), bytes(events)).await.unwrap();
        assert!(told.contains("event: accepted") && told.contains("event: ended"), "{told}");
        let why: Why = grid.ask(2, &id, |job| Question::Why { job }).await;
        assert_eq!(why.answer, "finished");
    });
}

#[test]
fn job_of_another_node_can_be_taken_back_and_unknown_ones_are_told() {
    runtime().block_on(async {
        let grid = Grid::of(&[2, 2]);
        let status = grid.submit(0, Job::command(["sleep", "60"]), 1).await;
        let id = status.id.to_string();
        let cancelled: JobStatus = grid.ask(1, &id, |job| Question::Cancel { job, by: By::default() }).await;
        assert_eq!(cancelled.state, State::Cancelled);
        let again =
            grid.service(1).ask_owner(&id, |job| Question::Cancel { job, by: By::default() }).await.unwrap();
        assert_eq!(again.head.status, 409, "the owner's refusal comes through as it is");
        let nobody = grid.service(1).ask_owner(&"0".repeat(32), |job| Question::Status { job }).await;
        assert_eq!(nobody.unwrap_err().status, 404);
    });
}

#[test]
fn job_too_large_for_all_is_refused_with_the_most_there_is_and_nodes_are_listed() {
    runtime().block_on(async {
        let grid = Grid::of(&[1, 3, 2]);
        let large = Job { resources: Resources::cores(4), ..Job::command(["true"]) };
        let envelope = Envelope::new(large, Nonce([9; 16])).unwrap();
        let refused = grid.service(0).submit(envelope, Span::ZERO).await.unwrap_err();
        assert!(refused.problem.error.ends_with("no node has more than 3"), "{:?}", refused.problem);
        let NodeList { nodes } = grid.service(0).nodes().await.unwrap();
        let listed: Vec<(&str, bool)> = nodes.iter().map(|node| (node.id.as_str(), node.up)).collect();
        assert_eq!(listed, [("n1", true), ("n2", true), ("n3", true)]);
    });
}
