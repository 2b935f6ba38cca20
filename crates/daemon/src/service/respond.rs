//! Answers questions: of users about jobs anywhere, and of other nodes about what is here.

use std::sync::Arc;

use axum::body::Bytes;
use shoal_api::Text;
use shoal_model::units::TimeText;
use shoal_model::{Epoch, JobId, NodeId, Rank, Span, Time};
use shoal_protocols::node::Task;
use tokio::sync::mpsc;

use super::{By, Service, Wrong};
use crate::elsewhere::{Later, Question, Reply, Responder};
use crate::trust::demand::Verb;

impl Service {
    /// Has the node that owns a job answer a question about it: this one, or another.
    pub async fn ask_owner(
        self: &Arc<Self>,
        prefix: &str,
        question: impl FnOnce(JobId) -> Question,
    ) -> Result<Reply, Wrong> {
        let (job, owner) = self.find(prefix).await?;
        let question = question(job);
        if owner == self.setting.me {
            return self.answer_here(question, owner).await;
        }
        self.ask_node(owner, &question).await
    }

    /// The same for something that not everybody may: `demand` is what the user has signed, if anything.
    pub async fn demand(
        self: &Arc<Self>,
        prefix: &str,
        verb: Verb,
        demand: Option<String>,
        question: impl FnOnce(JobId, By) -> Question,
    ) -> Result<Reply, Wrong> {
        let (job, owner) = self.find(prefix).await?;
        let question = question(job, self.by(job, verb, demand)?);
        if owner == self.setting.me {
            return self.answer_here(question, owner).await;
        }
        self.ask_node(owner, &question).await
    }

    /// Has another node answer a question.
    pub(super) async fn ask_node(&self, node: NodeId, question: &Question) -> Result<Reply, Wrong> {
        let parts = self.elsewhere.ask(node, question.write()).await?;
        Ok(Reply::receive(node, parts, question.patience()).await?)
    }

    /// Answers a question of a node from what is here.
    pub async fn answer_here(self: &Arc<Self>, question: Question, from: NodeId) -> Result<Reply, Wrong> {
        Ok(match question {
            Question::Find { prefix } => Reply::json(200, &self.owned_beginning(&prefix).await?),
            Question::Status { job } => Reply::json(200, &self.counted_status(job).await?),
            Question::Cancel { job, by } => {
                self.may(job, Verb::Cancel, by).await?;
                Reply::json(200, &self.cancel(job).await?)
            }
            Question::Hold { job, by } => {
                self.may(job, Verb::Hold, by).await?;
                Reply::json(200, &self.hold(job).await?)
            }
            Question::Release { job, by } => {
                self.may(job, Verb::Release, by).await?;
                Reply::json(200, &self.release(job).await?)
            }
            Question::Why { job } => Reply::json(200, &self.why(job).await?),
            Question::Wait { job, until, most_ms } => {
                Reply::json(200, &self.wait(job, until, Span::from_millis(most_ms)).await?)
            }
            Question::Events { job } => self.job_events(job).await?,
            Question::Logs { job, query, by } => {
                let by = self.may(job, Verb::Logs, by).await?;
                self.logs(job, query, by).await?
            }
            Question::Output { job, query, by } => {
                let epoch = Epoch(query.epoch.unwrap_or_default());
                let task = Task { job, epoch, rank: Rank(query.rank) };
                self.may_have(task, Verb::Logs, &by, from).await?;
                self.output(job, query).await?
            }
            Question::Blob { digest, from, plain } => self.blob(digest, from, plain).await?,
            Question::Blobs { digests } => self.blobs(digests).await?,
            Question::Keep { job, epoch, rank, outputs, holder } => {
                self.keep(Task { job, epoch, rank }, outputs, holder).await?
            }
            Question::Outputs { job, epoch, rank, by } => {
                let task = Task { job, epoch, rank };
                self.may_have(task, Verb::Files, &by, from).await?;
                self.outputs(task)?
            }
            Question::Files { job, by } => {
                let by = self.may(job, Verb::Files, by).await?;
                Reply::json(200, &self.files(job, &by).await?)
            }
            Question::Secrets { job, epoch, rank, key } => {
                self.secrets_for(from, Task { job, epoch, rank }, &key).await?
            }
            Question::Node => Reply::json(200, &self.node().await?),
            Question::Machine => Reply::json(200, &self.setting.machine),
            Question::List { order, query } => Reply::json(200, &self.list(&query, order).await?),
            Question::Free { job, resources, limit_us, begin } => {
                let begin = begin.map_or(Time::ZERO, |begin| begin.0);
                let from = self.free_for(job, resources, Span::from_micros(limit_us), begin).await?;
                Reply::json(200, &from.map(TimeText))
            }
            Question::Notices { digest } => Reply::json(200, &self.notices(&digest)?),
            Question::Usage => Reply::json(200, &self.own_usage()?),
            Question::Notice { text } => Reply::json(200, &self.take_notice(&Text { text })?),
            Question::Calendar { span_ms } => {
                Reply::json(200, &self.calendar(Span::from_millis(span_ms)).await?)
            }
        })
    }
}

/// Answers other nodes for a service.
pub struct Answers(pub Arc<Service>);

impl Responder for Answers {
    fn respond(&self, from: NodeId, question: Bytes, answer: mpsc::Sender<Bytes>) -> Later<'_, ()> {
        Box::pin(async move {
            let reply = match Question::read(&question) {
                Ok(question) => {
                    self.0.answer_here(question, from).await.unwrap_or_else(|wrong| wrong.reply())
                }
                Err(why) => {
                    tracing::debug!("node {from} asks {why}");
                    Wrong::nonsense(why).reply()
                }
            };
            reply.send(answer).await;
        })
    }
}
