//! What users ask about nodes: who is there, what is reserved, how this one feels, and its leaving.

use std::sync::atomic::Ordering;

use shoal_api::{
    CalendarView, Check, Doctor, Info, Leaving, MachineView, NodeList, NodeView, PREFIX, QueueLevel, Ticket,
};
use shoal_model::units::{SpanText, TimeText};
use shoal_model::{Machine, Name, NodeId, Resources, Span};
use shoal_protocols::node::{Command, Node};

use super::jobs::until;
use super::{Service, Wrong, reserved};
use crate::elsewhere::{Question, Reply};

/// A queue that is fuller than this, in percent, is no longer well.
const FULL_PERCENT: usize = 90;

impl Service {
    /// This node.
    pub async fn node(&self) -> Result<NodeView, Wrong> {
        let (open, running) = self.busy().await?;
        let now = self.now();
        let used = self.look(move |node| reserved::used(node, now)).await?;
        Ok(NodeView {
            id: self.setting.me.to_string(),
            name: self.setting.name.clone(),
            up: true,
            machine: Some(machine_view(&self.setting.machine)),
            used: if used.is_none() { "nothing".to_owned() } else { used.to_string() },
            used_cores_thousandths: used.cores.get().into(),
            running,
            open,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// All nodes that are known; those that do not answer are listed as such.
    pub async fn nodes(&self) -> Result<NodeList, Wrong> {
        let mut nodes = vec![self.node().await?];
        let mut silent: std::collections::BTreeSet<NodeId> = self.elsewhere.members().into_iter().collect();
        for (node, view) in self.ask_all::<NodeView>(&Question::Node).await {
            silent.remove(&node);
            nodes.push(view);
        }
        nodes.extend(silent.into_iter().map(|node| NodeView {
            id: node.to_string(),
            name: String::new(),
            up: false,
            machine: None,
            used: String::new(),
            used_cores_thousandths: 0,
            running: 0,
            open: 0,
            version: String::new(),
        }));
        Ok(NodeList { nodes })
    }

    /// What is reserved on this node from now on.
    pub async fn calendar(&self, span: Span) -> Result<CalendarView, Wrong> {
        let from = self.now();
        let until = until(from, span);
        let limit = self.setting.limit_default;
        let reservations = self.look(move |node| reserved::from(node, from, until, limit)).await?;
        let capacity = &self.setting.machine.capacity;
        Ok(CalendarView {
            node: self.setting.me.to_string(),
            capacity: capacity.to_string(),
            cores_thousandths: capacity.cores.get().into(),
            from: TimeText(from),
            until: TimeText(until),
            more: reservations.len() > reserved::MOST,
            reservations: reservations.into_iter().take(reserved::MOST).collect(),
        })
    }

    /// What is reserved on another node.
    pub async fn calendar_of(&self, node: NodeId, span: Span) -> Result<Reply, Wrong> {
        if node == self.setting.me {
            return Ok(Reply::json(200, &self.calendar(span).await?));
        }
        self.ask_node(node, &Question::Calendar { span_ms: span.as_micros() / 1_000 }).await
    }

    /// This node, and the program that drives it.
    pub async fn info(&self) -> Result<Info, Wrong> {
        let now = self.now();
        Ok(Info {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            interface: PREFIX.trim_start_matches('/').to_owned(),
            node: self.node().await?,
            recipe: self.setting.recipe.to_owned(),
            overlay: self.setting.overlay.to_owned(),
            home: self.setting.home.display().to_string(),
            pid: std::process::id(),
            durability: 1,
            started: TimeText(self.setting.started),
            up: SpanText(Span::from_secs(now.since(self.setting.started).as_micros() / 1_000_000)),
            leaving: self.is_leaving(),
        })
    }

    /// How this node feels.
    pub async fn doctor(&self) -> Result<Doctor, Wrong> {
        let queues = self.look(|node| node.queues()).await?;
        let full = |queue: &&shoal_protocols::node::Queue| queue.len * 100 > queue.most.max(1) * FULL_PERCENT;
        let fullest: Vec<&str> =
            queues.iter().filter(|queue| queue.most > 1).filter(full).map(|queue| queue.name).collect();
        let log = self.setting.home.join("supervisor/log");
        let complaints = std::fs::read_to_string(&log).unwrap_or_default();
        let last = complaints.lines().last().map(str::to_owned);
        let free = |name: &str| Check {
            name: name.to_owned(),
            well: fullest.is_empty(),
            found: match fullest[..] {
                [] => "all have room".to_owned(),
                _ => format!("nearly full: {}", fullest.join(", ")),
            },
        };
        let checks = vec![
            Check {
                name: "node".to_owned(),
                well: true,
                found: "it answers, and its disk takes what it saves".to_owned(),
            },
            free("queues"),
            Check {
                name: "supervisor".to_owned(),
                well: last.is_none(),
                found: last.unwrap_or_else(|| "it has not complained".to_owned()),
            },
        ];
        let level = |queue: shoal_protocols::node::Queue| QueueLevel {
            name: queue.name.to_owned(),
            len: queue.len as u64,
            most: queue.most as u64,
        };
        Ok(Doctor { checks, queues: queues.into_iter().map(level).collect() })
    }

    /// A ticket for another machine.
    pub fn ticket(&self, lasts: Span, organisation: Option<Name>, admitter: bool) -> Result<Ticket, Wrong> {
        self.tickets.issue(lasts, organisation, admitter).map_err(|no| Wrong::unavailable(no.to_string()))
    }

    /// Takes no more jobs, and ends once those that it has are over, or at once: what runs then goes on without it.
    ///
    /// Asked again until it is done.
    pub async fn leave(&self, now: bool) -> Result<Leaving, Wrong> {
        self.leaving.store(true, Ordering::SeqCst);
        if !now {
            // Nobody else finds a place here any more. Said again, it is the same.
            self.mailbox.command(Command::Drain)?;
        }
        let (open, running) = self.busy().await?;
        let at = self.setting.clock.now();
        let drained = self.look(move |node| node.is_drained(at)).await?;
        if drained && !now {
            // What the overlay has it look after goes to others last: until then it finds them there.
            self.mailbox.command(Command::Leave)?;
        }
        let done = now || drained && self.look(Node::has_left).await?;
        if done {
            self.end.notify_one();
        }
        Ok(Leaving { running, open, done })
    }
}

/// A machine for people.
pub fn machine_view(machine: &Machine) -> MachineView {
    let Resources { cores, memory, gpus, .. } = &machine.capacity;
    let labels = machine.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    MachineView {
        capacity: machine.capacity.to_string(),
        cores_thousandths: cores.get().into(),
        memory_bytes: memory.as_bytes(),
        gpus_thousandths: gpus.get().into(),
        architecture: machine.architecture.to_string(),
        system: machine.system.to_string(),
        organisation: machine.organisation.as_ref().map(ToString::to_string),
        labels,
    }
}
