//! What users ask about jobs that this node accepted: status, waiting, taking back; and how a job is found.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use shoal_api::{JobStatus, Problem, State, Until};
use shoal_model::job::Array;
use shoal_model::units::SpanText;
use shoal_model::{JobId, NodeId, Span, Time};
use shoal_protocols::node::{Command, Node, Phase, Refusal, TaskState};
use tokio::task::JoinSet;

use super::{Service, Wrong, view};
use crate::elsewhere::{PATIENCE, Question, Reply};

/// Jobs that a shortened id may mean, as many as are listed.
const CANDIDATES_MAX: usize = 10;
/// How long one is waited for that has said that it stops.
const STOPPED_PATIENCE: Duration = Duration::from_millis(500);
/// Jobs of an array that are counted; of a larger one only how many have ended is told.
const COUNTED_MAX: u32 = 200_000;
/// How many of them at once.
const COUNTED_AT_ONCE: usize = 1_000;
/// The longest that an answer is waited for in one go.
pub const WAIT_MAX: Span = Span::from_mins(1);

impl Service {
    /// What is known of a job that this node accepted.
    pub async fn status(&self, job: JobId) -> Result<JobStatus, Wrong> {
        let facts = self.look(move |node| view::facts(node, job)).await?;
        let facts = facts.ok_or_else(|| Wrong::unknown(&job.to_string()))?;
        Ok(view::status(&facts, self.history.story(job).as_ref(), self.view()))
    }

    /// The same, and of an array how many of its jobs are in each state.
    pub async fn counted_status(&self, job: JobId) -> Result<JobStatus, Wrong> {
        let mut status = self.status(job).await?;
        let envelope = self.look(move |node| Some(node.job(job)?.envelope().clone())).await?;
        let array = envelope.as_ref().and_then(|envelope| envelope.job().array.as_ref());
        self.note_outputs(&mut status).await;
        // One job of an array has its envelope too.
        if let Some(array) = array.filter(|_| status.array.is_none()) {
            status.counts = self.counts(job, array);
        }
        Ok(status)
    }

    /// Whether a job stands for others, and does not run itself.
    pub(super) async fn is_array(&self, job: JobId) -> Result<bool, Wrong> {
        self.look(move |node| {
            // One job of an array has its envelope too.
            node.job(job).is_some_and(|owned| owned.array().is_some())
        })
        .await
    }

    /// How many jobs of an array are in each state; those of which nothing is known yet wait.
    fn counts(&self, job: JobId, array: &Array) -> BTreeMap<State, u64> {
        if array.tasks() > COUNTED_MAX {
            return BTreeMap::new();
        }
        let indexes = std::iter::successors(array.next(None), |&index| array.next(Some(index)));
        let ids: Vec<JobId> = indexes.map(|index| job.of_index(index)).collect();
        let mut counts = BTreeMap::new();
        // In parts, so that nobody else waits long.
        for some in ids.chunks(COUNTED_AT_ONCE) {
            for state in self.history.states(some) {
                *counts.entry(state.unwrap_or(State::Waiting)).or_default() += 1;
            }
        }
        counts
    }

    /// Takes a job back, and says how far it is then.
    pub async fn cancel(&self, job: JobId) -> Result<JobStatus, Wrong> {
        self.tell(job, Command::Cancel(job)).await
    }

    /// Has a job, or all of an array that has not started, not start.
    pub async fn hold(&self, job: JobId) -> Result<JobStatus, Wrong> {
        let status = self.tell(job, Command::Hold(job)).await?;
        match status.state {
            State::Held => Ok(status),
            _ => Err(Wrong { status: 409, problem: Problem::new(Refusal::Started.to_string()) }),
        }
    }

    /// Lets a job start that was held.
    pub async fn release(&self, job: JobId) -> Result<JobStatus, Wrong> {
        self.tell(job, Command::Release(job)).await
    }

    /// Asks the node for something about a job, and says how far the job is then: durable, as all that is answered.
    pub(super) async fn tell(&self, job: JobId, command: Command) -> Result<JobStatus, Wrong> {
        let status = self.status(job).await?;
        if status.state.is_over() {
            let how = status.reason.clone().unwrap_or_default();
            let problem = Problem::new(format!("job {job} is over: {how}"));
            return Err(Wrong { status: 409, problem });
        }
        self.mailbox.command(command)?;
        let status = self.status(job).await?;
        // Then it was not done, or may come to nothing.
        if !self.look(move |node| node.owns(job)).await? {
            let why = format!("job {job} is just being handed over to another node: ask again in a moment");
            return Err(Wrong { status: 409, problem: Problem::new(why) });
        }
        Ok(status)
    }

    /// Waits until a job is so far, or the time is up, and says how far it is then.
    pub async fn wait(&self, job: JobId, until: Until, most: Span) -> Result<JobStatus, Wrong> {
        let watch = self.history.watch(job);
        let wait = Duration::from_micros(most.min(WAIT_MAX).as_micros());
        let end = tokio::time::Instant::now() + wait;
        loop {
            let rings = watch.rings();
            tokio::pin!(rings);
            // From now on no ring is missed.
            rings.as_mut().enable();
            let status = self.status(job).await?;
            let there = match until {
                Until::Planned => status.state != State::Waiting || status.reason.is_some(),
                Until::Started => status.state == State::Running || status.state.is_over(),
                Until::Ended => status.state.is_over(),
            };
            // Who asks again is led to the node that has it now.
            let there = there || status.state == State::HandedOver;
            if there || tokio::time::timeout_at(end, rings).await.is_err() {
                return Ok(status);
            }
        }
    }

    /// Finds the job whose id begins so, and the node that owns it.
    ///
    /// What this node knows comes first: others are asked only for what it does not know.
    pub async fn find(&self, prefix: &str) -> Result<(JobId, NodeId), Wrong> {
        let prefix = &prefix.to_ascii_lowercase();
        if prefix.is_empty() || prefix.len() > 32 || !prefix.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let shown: String = prefix.chars().take(40).collect();
            let problem = Problem::new(format!("`{shown}` is not a job id: expected hexadecimal digits"));
            return Err(Wrong { status: 400, problem: problem.field("job") });
        }
        let known = self.known_beginning(prefix).await?;
        let here = known.iter().filter(|(_, owner)| *owner == self.setting.me);
        let here: Vec<JobId> = here.map(|(job, _)| *job).collect();
        match here[..] {
            [job] => return Ok((job, self.setting.me)),
            [] => {}
            _ => return Err(Wrong::ambiguous(prefix, &here)),
        }
        let mut found: Vec<(JobId, NodeId)> = Vec::new();
        for (node, jobs) in self.ask_all::<Vec<JobId>>(&Question::Find { prefix: prefix.clone() }).await {
            found.extend(jobs.into_iter().take(CANDIDATES_MAX).map(|job| (job, node)));
        }
        // An heir may have one of its own by now; it is asked where nobody says that it has the job.
        found.sort_unstable();
        found.extend(known);
        found.sort_by_key(|(job, _)| *job);
        found.dedup_by_key(|(job, _)| *job);
        match found[..] {
            [] => Err(Wrong::unknown(prefix)),
            [one] => Ok(one),
            _ => Err(Wrong::ambiguous(prefix, &found.iter().map(|(job, _)| *job).collect::<Vec<_>>())),
        }
    }

    /// The jobs that this node owns and whose ids begin so.
    pub(super) async fn owned_beginning(&self, prefix: &str) -> Result<Vec<JobId>, Wrong> {
        let known = self.known_beginning(prefix).await?;
        Ok(known.into_iter().filter(|(_, owner)| *owner == self.setting.me).map(|(job, _)| job).collect())
    }

    /// The jobs that this node owns or has handed over, whose ids begin so, and whose they are.
    async fn known_beginning(&self, prefix: &str) -> Result<Vec<(JobId, NodeId)>, Wrong> {
        // A whole id may be of a job whose story is forgotten.
        let jobs = match prefix.parse::<JobId>() {
            Ok(job) => vec![job],
            Err(_) => self.history.beginning(prefix, CANDIDATES_MAX),
        };
        let me = self.setting.me;
        let owner = move |node: &Node, job| node.heir_of(job).or_else(|| node.owns(job).then_some(me));
        self.look(move |node| jobs.into_iter().filter_map(|job| Some((job, owner(node, job)?))).collect())
            .await
    }

    /// Asks all other nodes at once; who does not answer in time, or not in full, is left out.
    pub(super) async fn ask_all<T>(&self, question: &Question) -> Vec<(NodeId, T)>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.ask_all_within(question, PATIENCE).await
    }

    /// The same, with less patience.
    pub(super) async fn ask_all_within<T>(&self, question: &Question, patience: Duration) -> Vec<(NodeId, T)>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let question = question.write();
        let mut asked = JoinSet::new();
        for node in self.elsewhere.members() {
            // It may be back, and would say so at once.
            let patience =
                if self.elsewhere.has_stopped(node) { patience.min(STOPPED_PATIENCE) } else { patience };
            let (elsewhere, question) = (std::sync::Arc::clone(&self.elsewhere), question.clone());
            asked.spawn(async move {
                let ask = async {
                    let parts = elsewhere.ask(node, question).await.ok()?;
                    Reply::receive(node, parts, patience).await.ok()?.read::<T>().await
                };
                Some((node, tokio::time::timeout(patience, ask).await.ok()??))
            });
        }
        let mut replies = Vec::new();
        while let Some(answer) = asked.join_next().await {
            replies.extend(answer.ok().flatten());
        }
        replies.sort_by_key(|(node, _)| *node);
        replies
    }

    /// How many jobs of this node have not ended, and how many tasks run here.
    pub(super) async fn busy(&self) -> Result<(u64, u64), Wrong> {
        self.look(|node| {
            let open = node.owned().filter(|(_, owned)| !matches!(owned.phase(), Phase::Ended(_))).count();
            let runs = |state| matches!(state, TaskState::Running | TaskState::Stopping);
            let running = node.tasks().filter(|(_, state)| runs(*state)).count();
            ((open + node.untold_heirs()) as u64, running as u64)
        })
        .await
    }
}

/// Reads a span of a question; a default where there is none.
pub fn read_span(field: &str, text: Option<&str>, default: Span) -> Result<Span, Wrong> {
    let Some(text) = text else { return Ok(default) };
    text.parse::<SpanText>().map(|span| span.0).map_err(|error| {
        let problem = Problem::new(format!("`{field}`: {error}")).field(field);
        Wrong { status: 400, problem }
    })
}

/// The latest time that a calendar is asked for.
pub(super) fn until(now: Time, span: Span) -> Time {
    now + span.min(shoal_model::job::MAX_TIME_LIMIT)
}
