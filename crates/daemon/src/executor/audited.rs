//! An executor that has every start and every end written down, with whose task it was and what it used.

use std::sync::Arc;

use shoal_model::Time;
use shoal_protocols::node::{Action, Brief, Node, Outcome, Task};

use super::Executor;
use crate::audit::{Audit, Kind, Record};
use crate::clock::Clock;
use crate::inbox::Completion;
use crate::service::words;
use crate::trust::gate::Gatekeeper;

/// An executor whose deeds are written down.
pub struct Audited {
    inner: Box<dyn Executor<Node>>,
    audit: Arc<Audit>,
    gate: Arc<Gatekeeper>,
    clock: Clock,
}

impl Audited {
    /// The same executor, with a clerk.
    pub fn new(
        inner: Box<dyn Executor<Node>>,
        audit: Arc<Audit>,
        gate: Arc<Gatekeeper>,
        clock: Clock,
    ) -> Audited {
        Audited { inner, audit, gate, clock }
    }

    fn record(&self, kind: Kind, task: Task, brief: &Brief, now: Time) -> Record {
        let text = format!("rank {}, placement {}", task.rank.0, task.epoch.0);
        let bearer = self.gate.bearer(&brief.envelope, now).ok();
        Record {
            job: Some(task.job.to_string()),
            user: bearer.as_ref().map(|bearer| bearer.name.to_string()),
            organisation: bearer.and_then(|bearer| bearer.organisation).map(|name| name.to_string()),
            ..Record::new(kind, text)
        }
    }
}

impl Executor<Node> for Audited {
    fn perform(&mut self, now: Time, action: Action, completion: Completion<Node>) {
        let completion = match &action {
            Action::Start { task, brief, .. } => {
                let started = self.record(Kind::Started, *task, brief, now);
                self.audit.note(now, started.clone());
                let (audit, clock) = (Arc::clone(&self.audit), self.clock);
                let cores = u64::from(brief.envelope.job().resources.cores.get());
                completion.watched(move |Outcome(_, exit, usage)| {
                    let end = clock.now();
                    // It may have waited for another to end.
                    let took = usage.as_ref().map_or_else(|| end.since(now), |usage| usage.wall);
                    let millis = took.as_micros() / 1_000;
                    let text = format!("{}: {}", started.text, words::exit(*exit));
                    let used = Some(millis.saturating_mul(cores) / 1_000);
                    audit.note(end, Record { kind: Kind::Ended, core_milliseconds: used, text, ..started });
                })
            }
            Action::Stage { .. } | Action::Adopt(_) | Action::Stop(_) => completion,
        };
        self.inner.perform(now, action, completion);
    }
}
