//! Outputs and events as they come: of jobs here and elsewhere, followed over new placements.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use shoal_api::{EventView, JobStatus, LogQuery, Problem, State, Until};
use shoal_model::units::TimeText;
use shoal_model::{Epoch, JobId, NodeId, Rank};
use shoal_protocols::node::{Event, Task, TaskState};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::history::Told;
use super::jobs::WAIT_MAX;
use super::output::Output;
use super::{By, Service, Wrong, story};
use crate::elsewhere::{Body, EVENTS, PARTS_WAITING_MAX, PLAIN, Parts, Question, Reply};
use crate::executor::process::folder_of;

/// The shortest pause before an output is looked at again; doubles while nothing comes.
const PAUSE_LEAST: Duration = Duration::from_millis(5);
/// The longest such pause.
const PAUSE_MOST: Duration = Duration::from_millis(100);
/// Before an output that broke off is asked for again.
const PAUSE_BROKEN: Duration = Duration::from_millis(500);
/// A line that says nothing goes to a listener so often, so that one who has gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

impl Service {
    /// An output of a job that this node accepted, wherever its task runs.
    pub async fn logs(self: &Arc<Self>, job: JobId, query: LogQuery, by: By) -> Result<Reply, Wrong> {
        let status = self.status(job).await?;
        if self.is_array(job).await? {
            let problem =
                Problem::new(format!("job {job} is an array: each of its jobs has outputs of its own"));
            let hint = "`shoal logs ARRAY --index N` shows those of one";
            return Err(Wrong { status: 404, problem: problem.hint(hint) });
        }
        if query.rank >= status.nodes {
            let last = status.nodes - 1;
            let problem = Problem::new(format!("job {job} has no rank {}: its last is {last}", query.rank));
            return Err(Wrong { status: 404, problem: problem.field("rank") });
        }
        if !query.follow {
            let Some((node, query)) = self.run_node(&status, query)? else {
                let why = status.reason.map(|why| format!(" ({why})")).unwrap_or_default();
                let problem = Problem::new(format!("job {job} has not run yet: it is {}{why}", status.state));
                return Err(Wrong { status: 404, problem: problem.hint("`shoal logs -f` waits for it") });
            };
            return self.output_at(node, job, query, by).await;
        }
        let (sender, breaker, parts) = Parts::breakable();
        let service = Arc::clone(self);
        tokio::spawn(async move {
            if !service.follow(job, query, by, &sender).await {
                breaker.break_off();
            }
        });
        Ok(Reply::parts(PLAIN, parts))
    }

    /// Passes an output on until the job is over: that of each placement after the other. False if it could not be had to
    /// its end.
    async fn follow(
        self: Arc<Self>,
        job: JobId,
        mut query: LogQuery,
        by: By,
        to: &mpsc::Sender<Bytes>,
    ) -> bool {
        let (mut reading, mut seen) = (None, None);
        loop {
            let Ok(status) = self.wait(job, Until::Started, WAIT_MAX).await else { return false };
            let place = self.run_node(&status, query).ok().flatten();
            let epoch = place.as_ref().and_then(|(_, query)| query.epoch);
            let mut again = false;
            match place {
                Some((node, mut wanted)) if epoch != seen => {
                    // The output of another placement is read from its beginning.
                    if reading.replace(epoch).is_some_and(|before| before != epoch) {
                        (query.offset, query.tail) = (0, None);
                        (wanted.offset, wanted.tail) = (0, None);
                    }
                    let passed = match self.output_at(node, job, wanted, by.clone()).await {
                        Ok(reply) => pass_on(reply, to).await,
                        Err(wrong) if wrong.status == 404 => Passed::All,
                        Err(_) => Passed::BrokeOff(0),
                    };
                    match passed {
                        Passed::All => seen = epoch,
                        // A node that was killed may be back soon, and its task goes on meanwhile.
                        Passed::BrokeOff(bytes) if query.tail.is_none() && !status.state.is_over() => {
                            query.offset += bytes;
                            again = true;
                            tokio::time::sleep(PAUSE_BROKEN).await;
                        }
                        Passed::BrokeOff(_) => return false,
                        Passed::Unwanted => return true,
                    }
                }
                _ if status.state.is_over() || status.state == State::HandedOver => return true,
                // It was passed on to its end, and its owner has yet to hear of that.
                _ => tokio::time::sleep(PAUSE_LEAST).await,
            }
            if (query.epoch.is_some() && !again) || to.is_closed() {
                return true;
            }
        }
    }

    /// The node that ran or runs a task, and the question to it; none if it has not run.
    fn run_node(&self, status: &JobStatus, query: LogQuery) -> Result<Option<(NodeId, LogQuery)>, Wrong> {
        let no_epoch = |epoch: u32| {
            let problem = Problem::new(format!("job {} has no placement {epoch}", status.id)).field("epoch");
            Wrong { status: 404, problem }
        };
        let current = status.planned.as_ref().filter(|_| status.started.is_some() || status.state.is_over());
        let (epoch, node) = match (query.epoch, current) {
            (Some(epoch), Some(planned)) if planned.epoch == epoch => {
                (epoch, planned.nodes.get(query.rank as usize).cloned())
            }
            (Some(epoch), _) => {
                let story = self.history.story(status.id).ok_or_else(|| no_epoch(epoch))?;
                let placement = story.placement(Some(Epoch(epoch))).ok_or_else(|| no_epoch(epoch))?;
                (epoch, placement.3.get(query.rank as usize).map(NodeId::to_string))
            }
            (None, Some(planned)) => (planned.epoch, planned.nodes.get(query.rank as usize).cloned()),
            (None, None) => return Ok(None),
        };
        let node = node.and_then(|node| node.parse().ok());
        Ok(node.map(|node| (node, LogQuery { epoch: Some(epoch), ..query })))
    }

    /// An output of a task that runs on a node.
    async fn output_at(
        self: &Arc<Self>,
        node: NodeId,
        job: JobId,
        query: LogQuery,
        by: By,
    ) -> Result<Reply, Wrong> {
        if node == self.setting.me {
            return self.output(job, query).await;
        }
        self.ask_node(node, &Question::Output { job, query, by }).await
    }

    /// An output of a task that ran or runs here.
    pub(super) async fn output(self: &Arc<Self>, job: JobId, query: LogQuery) -> Result<Reply, Wrong> {
        let task = Task { job, epoch: Epoch(query.epoch.unwrap_or_default()), rank: Rank(query.rank) };
        let path = folder_of(&self.setting.home, task).join(query.stream.name());
        let mut pause = PAUSE_LEAST;
        let output = loop {
            match Output::open(&path, query.offset, query.tail) {
                Ok(output) => break output,
                // The supervisor has yet to make it.
                Err(_) if query.follow && self.runs(task).await => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MOST);
                }
                Err(error) => {
                    let what = format!("no {} of job {job} is here: {error}", query.stream);
                    let problem = Problem::new(what);
                    let hint = "outputs are kept until many later jobs have ended";
                    return Err(Wrong { status: 404, problem: problem.hint(hint) });
                }
            }
        };
        let (sender, parts) = mpsc::channel(PARTS_WAITING_MAX);
        let service = Arc::clone(self);
        tokio::spawn(async move { service.read(output, task, query.follow, sender).await });
        Ok(Reply::parts(PLAIN, parts))
    }

    /// Reads an output to its end, or to that of its task.
    async fn read(&self, output: Output, task: Task, follow: bool, to: mpsc::Sender<Bytes>) {
        let mut reading = Some(output);
        let (mut pause, mut last) = (PAUSE_LEAST, false);
        while let Some(mut output) = reading.take() {
            // Files may lie on slow disks.
            let read = tokio::task::spawn_blocking(move || {
                let part = output.next();
                (output, part)
            });
            let Ok((output, Ok(part))) = read.await else { return };
            reading = Some(output);
            if !part.is_empty() {
                pause = PAUSE_LEAST;
                if to.send(part).await.is_err() {
                    return;
                }
                continue;
            }
            if last || !follow {
                return;
            }
            // Whether it runs is asked before the file is read for the last time: what it wrote last is not missed.
            if !self.runs(task).await {
                last = true;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE_MOST),
                () = to.closed() => return,
            }
        }
    }

    /// Whether a task waits or runs here.
    async fn runs(&self, task: Task) -> bool {
        let state = self.look(move |node| node.task(task)).await;
        match state {
            Ok(Some(TaskState::Waiting | TaskState::Running | TaskState::Stopping)) => true,
            Ok(Some(TaskState::Ended(_)) | None) | Err(_) => false,
        }
    }

    /// What happened to a job that this node accepted, and what happens to it until it is over.
    pub async fn job_events(self: &Arc<Self>, job: JobId) -> Result<Reply, Wrong> {
        self.status(job).await?;
        let (story, next, mut told) = self.history.follow(job);
        let (sender, parts) = mpsc::channel(PARTS_WAITING_MAX);
        tokio::spawn(async move {
            let mut over = false;
            for (at, what) in story.into_iter().flat_map(|story| story.events) {
                over = matches!(what, story::What::Ended(_));
                if sender.send(event_line(None, &story::view(at, job, &what))).await.is_err() {
                    return;
                }
            }
            while !over {
                let told = tokio::select! {
                    told = told.recv() => told,
                    () = tokio::time::sleep(KEEP_ALIVE) => {
                        if sender.send(Bytes::from_static(b":\n\n")).await.is_err() { return }
                        continue;
                    }
                    () = sender.closed() => return,
                };
                let told = match told {
                    Ok(told) => told,
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                };
                let Some((of, what)) = story::of_event(&told.event).filter(|(of, _)| *of == job) else {
                    continue;
                };
                // It is in the story.
                if told.number < next {
                    continue;
                }
                over = matches!(what, story::What::Ended(_));
                let line = event_line(Some(told.number), &story::view(told.at, of, &what));
                if sender.send(line).await.is_err() {
                    return;
                }
            }
        });
        Ok(Reply::parts(EVENTS, parts))
    }

    /// All that this node tells, from now on or from after an event that was heard.
    pub fn events(&self, after: Option<u64>) -> Reply {
        let (missed, mut told) = self.history.listen(after);
        let (sender, parts) = mpsc::channel(PARTS_WAITING_MAX);
        tokio::spawn(async move {
            for told in missed {
                if sender.send(told_line(&told)).await.is_err() {
                    return;
                }
            }
            loop {
                let line = tokio::select! {
                    told = told.recv() => match told {
                        Ok(told) => told_line(&told),
                        Err(RecvError::Lagged(missed)) => Bytes::from(format!(": {missed} events were missed\n\n")),
                        Err(RecvError::Closed) => return,
                    },
                    () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b":\n\n"),
                    () = sender.closed() => return,
                };
                if sender.send(line).await.is_err() {
                    return;
                }
            }
        });
        Reply::parts(EVENTS, parts)
    }
}

/// How far an answer was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    /// To its end.
    All,
    /// So many bytes of it; more did not come.
    BrokeOff(u64),
    /// Nobody takes it any more.
    Unwanted,
}

/// Passes the parts of an answer on.
async fn pass_on(reply: Reply, to: &mpsc::Sender<Bytes>) -> Passed {
    if reply.head.status != 200 {
        return Passed::All;
    }
    let mut bytes = 0;
    match reply.body {
        Body::Whole(whole) => match to.send(whole).await {
            Ok(()) => Passed::All,
            Err(_) => Passed::Unwanted,
        },
        Body::Parts(mut parts) => loop {
            tokio::select! {
                part = parts.recv() => match part {
                    None if parts.broke_off() => return Passed::BrokeOff(bytes),
                    None => return Passed::All,
                    Some(part) => {
                        bytes += part.len() as u64;
                        if to.send(part).await.is_err() {
                            return Passed::Unwanted;
                        }
                    }
                },
                () = to.closed() => return Passed::Unwanted,
            }
        },
    }
}

fn told_line(told: &Told) -> Bytes {
    let view = match story::of_event(&told.event) {
        Some((job, what)) => story::view(told.at, job, &what),
        None => node_event(told),
    };
    event_line(Some(told.number), &view)
}

/// What is told of no job in particular, or of one that was refused.
fn node_event(told: &Told) -> EventView {
    let (kind, job, text) = match &told.event {
        Event::Refused(job, why) => ("refused", Some(*job), format!("refused: {why}")),
        Event::Denied { job, by, why } => ("denied", Some(*job), format!("node {by} does not run it: {why}")),
        Event::Suspected(node) => ("suspected", None, format!("node {node} is silent")),
        Event::Back(node) => ("back", None, format!("node {node} is back")),
        Event::Silent(node) => ("silent", None, format!("node {node} is no longer a neighbour")),
        Event::Unwatched(node) => ("unwatched", None, format!("node {node} cannot be watched as well")),
        Event::Left => ("left", None, "the overlay does without this node".to_owned()),
        Event::Slept(span) => ("slept", None, format!("this node was away for {span}")),
        Event::Accepted(job)
        | Event::Waiting(job, _)
        | Event::Placed(job, _)
        | Event::Unplaced { job, .. }
        | Event::Held(job, _)
        | Event::Ended(job, _) => ("told", Some(*job), String::new()),
        Event::Started(task, _) | Event::Took(task, _) => ("told", Some(task.job), String::new()),
    };
    EventView { at: TimeText(told.at), job, kind: kind.to_owned(), text }
}

/// An event as the interface sends it.
fn event_line(number: Option<u64>, event: &EventView) -> Bytes {
    let data = serde_json::to_string(event).unwrap_or_default();
    let id = number.map(|number| format!("id: {number}\n")).unwrap_or_default();
    format!("{id}event: {}\ndata: {data}\n\n", event.kind).into()
}
