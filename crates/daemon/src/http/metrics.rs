//! Figures for Prometheus: counted where they happen, or looked up when they are asked for.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::network::quic::{Counts, Traffic};
use crate::service::{Service, Wrong};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: String,
    path: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Said {
    way: &'static str,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Way {
    way: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct For {
    reason: &'static str,
}

/// All figures of a node.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Histogram,
    jobs: Family<InState, Gauge>,
    queue: Family<Named, Gauge>,
    queue_most: Family<Named, Gauge>,
    tasks: Gauge,
    up: Gauge,
    fetched: Gauge,
    depot: Gauge,
    network: Network,
}

/// What is said to other nodes and heard from them.
#[derive(Default)]
struct Network {
    messages: Family<Said, Counter>,
    message_bytes: Family<Said, Counter>,
    datagram_bytes: Family<Way, Counter>,
    dropped: Family<For, Counter>,
    connections: Gauge,
    connected: Counter,
    dials_failed: Counter,
    refused: Counter,
    addresses: Gauge,
}

impl Metrics {
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("shoal");
        let requests = Family::<Answered, Counter>::default();
        registry.register("http_requests", "Requests that were answered", requests.clone());
        // From a tenth of a millisecond to a minute and a half.
        let seconds = Histogram::new(exponential_buckets(0.000_1, 2.5, 16));
        registry.register("http_request_seconds", "How long answers took to begin", seconds.clone());
        let jobs = Family::<InState, Gauge>::default();
        registry.register("jobs", "Jobs that this node accepted and remembers, by state", jobs.clone());
        let queue = Family::<Named, Gauge>::default();
        registry.register("kept", "What the node keeps that others can fill", queue.clone());
        let queue_most = Family::<Named, Gauge>::default();
        registry.register("kept_most", "The limit of each", queue_most.clone());
        let (tasks, up) = (Gauge::default(), Gauge::default());
        registry.register("tasks_running", "Tasks that run here", tasks.clone());
        registry.register("up_seconds", "How long the node has run", up.clone());
        let (fetched, depot) = (Gauge::default(), Gauge::default());
        registry.register(
            "files_fetched_bytes",
            "Bytes of files that came from other nodes in this life",
            fetched.clone(),
        );
        registry.register("depot_bytes", "Bytes of files that are kept here", depot.clone());
        let network = Network::default();
        network.register(&mut registry);
        Metrics { registry, requests, seconds, jobs, queue, queue_most, tasks, up, fetched, depot, network }
    }

    /// Counts an answer. The path is one of ours, so that there are not more of them than we have.
    pub fn answered(&self, method: &str, path: &str, status: u16, took: Duration) {
        const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
        let method = if METHODS.contains(&method) { method } else { "other" };
        let labels = Answered { method: method.to_owned(), path: path.to_owned(), status };
        self.requests.get_or_create(&labels).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// All figures as of now.
    pub async fn write(&self, service: &Service) -> Result<String, Wrong> {
        for (state, count) in service.history().counts() {
            self.jobs.get_or_create(&InState { state: state.name() }).set(signed(count));
        }
        for queue in service.look(|node| node.queues()).await? {
            let name = Named { name: queue.name.to_owned() };
            self.queue.get_or_create(&name).set(signed(queue.len as u64));
            self.queue_most.get_or_create(&name).set(signed(queue.most as u64));
        }
        let info = service.info().await?;
        self.tasks.set(signed(info.node.running));
        let staging = service.staging();
        self.fetched.set(signed(staging.fetched()));
        self.depot.set(signed(staging.depot().used().0));
        self.up.set(signed(info.up.0.as_micros() / 1_000_000));
        self.network.set(service.elsewhere().counts());
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            let _ = write!(text, "# EOF");
        }
        Ok(text)
    }
}

impl Network {
    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("network");
        registry.register("messages", "Messages of nodes, by way and kind", self.messages.clone());
        registry.register("message_bytes", "Bytes of these, with their frames", self.message_bytes.clone());
        registry.register("datagram_bytes", "Bytes of all datagrams", self.datagram_bytes.clone());
        registry.register("dropped", "Messages that went no further, by reason", self.dropped.clone());
        registry.register("connections", "Connections that are open", self.connections.clone());
        registry.register("connected", "Connections that were made and confirmed", self.connected.clone());
        registry.register("dials_failed", "Nodes that could not be reached", self.dials_failed.clone());
        registry.register("refused", "Connections that were refused here", self.refused.clone());
        registry.register("addresses", "Nodes whose addresses are known", self.addresses.clone());
    }

    fn set(&self, counts: Counts) {
        let to = |counter: &Counter, count| counter.inner().store(count, Ordering::Relaxed);
        for (way, table) in [("sent", &counts.sent), ("received", &counts.received)] {
            for (&kind, &Traffic { messages, bytes }) in table {
                to(&self.messages.get_or_create(&Said { way, kind }), messages);
                to(&self.message_bytes.get_or_create(&Said { way, kind }), bytes);
            }
        }
        to(&self.datagram_bytes.get_or_create(&Way { way: "sent" }), counts.udp_sent);
        to(&self.datagram_bytes.get_or_create(&Way { way: "received" }), counts.udp_received);
        for (why, messages) in counts.dropped {
            to(&self.dropped.get_or_create(&For { reason: why.name() }), messages);
        }
        self.connections.set(signed(counts.connections));
        self.addresses.set(signed(counts.addresses));
        to(&self.connected, counts.connected);
        to(&self.dials_failed, counts.dials_failed);
        to(&self.refused, counts.refused);
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
