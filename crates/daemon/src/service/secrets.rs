//! Secrets of jobs: taken from users before the job, given to the hosts that its tasks were placed on.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use shoal_api::Problem;
use shoal_model::{Job, JobId, NodeId};
use shoal_protocols::node::{Phase, Task};

use super::{Service, Wrong, view};
use crate::cell::Secret;
use crate::elsewhere::{PLAIN, Reply};
use crate::identity::node_id;
use crate::secrets::Unkept;
use crate::trust::text::read_key;

impl Service {
    /// Keeps the secrets of a job that is about to be submitted: each value in base64, by name.
    pub async fn keep_secrets(&self, job: JobId, values: BTreeMap<String, String>) -> Result<(), Wrong> {
        let mut secrets = Vec::new();
        for (name, value) in values {
            let wrong = |_| {
                let problem = Problem::new(format!("the secret `{name}` is not base64")).field(name.clone());
                Wrong::impossible(problem)
            };
            let value = BASE64.decode(value.as_bytes()).map_err(wrong)?;
            secrets.push(Secret { name, value });
        }
        if self.look(move |node| view::facts(node, job)).await?.is_some() {
            let problem = Problem::new("that job was accepted, and its secrets do not change any more");
            return Err(Wrong { status: 409, problem });
        }
        let kept = self.staging.secrets().clone();
        super::files::blocking(move || {
            kept.keep(job, secrets).map_err(|error| match error {
                Unkept::TooMuch(what) => Wrong { status: 413, problem: Problem::new(what).field("secrets") },
                error @ Unkept::Io(_) => Wrong { status: 507, problem: Problem::new(error.to_string()) },
            })
        })
        .await
    }

    /// Refuses a job whose secrets are not here.
    pub(super) fn judge_secrets(&self, id: JobId, job: &Job) -> Result<(), Wrong> {
        let Some(names) = &job.secrets else { return Ok(()) };
        if self.staging.secrets().of(id, names).is_some() {
            return Ok(());
        }
        let problem = Problem::new("`secrets`: the node was not told what they are").field("secrets");
        Err(Wrong::impossible(problem.hint("`shoal submit --secret NAME` tells it; see docs/security.md")))
    }

    /// The secrets of a job for a task that was placed on another node, sealed to its key.
    pub(super) async fn secrets_for(&self, from: NodeId, task: Task, key: &str) -> Result<Reply, Wrong> {
        let key = read_key(key).map_err(|error| Wrong::nonsense(error.to_string()))?;
        if node_id(&key) != from {
            return Err(Wrong::not_yours());
        }
        let id = task.job;
        let facts = self.look(move |node| view::facts(node, id)).await?.ok_or_else(Wrong::not_yours)?;
        // Where it was placed before nobody needs them any more.
        let Phase::Placed { epoch, .. } = &facts.phase else { return Err(Wrong::not_yours()) };
        if *epoch != task.epoch {
            return Err(Wrong::not_yours());
        }
        let story = self.history.story(id);
        let placed = match &facts.placement {
            Some(placement) => Some((placement.epoch, placement.nodes.to_vec())),
            None => story
                .as_ref()
                .and_then(|story| story.placement(Some(task.epoch)))
                .map(|(epoch, _, _, nodes)| (epoch, nodes.to_vec())),
        };
        let there = placed.is_some_and(|(epoch, nodes)| {
            epoch == task.epoch && nodes.get(task.rank.0 as usize) == Some(&from)
        });
        if !there {
            return Err(Wrong::not_yours());
        }
        let job = facts.envelope.job();
        let names = job.secrets.as_deref().map(Vec::as_slice).unwrap_or_default();
        let sealed = self.staging.secrets().for_host(facts.envelope.id(), names, task, &key);
        let sealed = sealed.ok_or_else(|| Wrong::unavailable("the secrets of that job are not here"))?;
        let mut reply = Reply::json(200, &());
        reply.head.kind = PLAIN.to_owned();
        reply.body = crate::elsewhere::Body::Whole(sealed.into());
        Ok(reply)
    }
}
