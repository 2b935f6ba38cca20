//! A job for people: what the core knows of it, with the times that its story has.

use shoal_api::{JobStatus, JobUsage, Planned, State, TaskStatus};
use shoal_model::job::Work;
use shoal_model::units::{SpanText, TimeText};
use shoal_model::{Envelope, Job, JobId, NodeId, Rank, Span};
use shoal_protocols::Shared;
use shoal_protocols::commit::two_phase::Placement;
use shoal_protocols::node::{Denial, End, Exit, Node, Phase};

use super::story::{Story, state_of};
use super::words;

/// Characters of a command that are shown.
const COMMAND_SHOWN: usize = 200;
/// Tasks whose ends are shown.
const TASKS_SHOWN: usize = 1_024;

/// What the core knows of a job.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Which job.
    pub job: JobId,
    /// What was accepted.
    pub envelope: Shared<Envelope>,
    /// How far it has come.
    pub phase: Phase,
    /// Its placement as it stands.
    pub placement: Option<Placement>,
    /// Why it waits.
    pub why: Option<String>,
    /// Whether its user holds it.
    pub held: bool,
    /// Of an array: which, and for which index.
    pub of_array: Option<(JobId, u32)>,
    /// Who does not take it, and why.
    pub denied: Vec<(NodeId, Denial)>,
}

/// What a view needs besides.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The node that owns the job.
    pub owner: NodeId,
    /// The hard limit of a job that names none.
    pub limit_default: Span,
}

/// What the core knows of a job; none if it is not its owner.
pub fn facts(node: &Node, job: JobId) -> Option<Facts> {
    let owned = node.job(job)?;
    Some(Facts {
        job,
        envelope: owned.envelope().clone(),
        phase: owned.phase().clone(),
        placement: node.commit().and_then(|commit| commit.placement(job)).cloned(),
        why: owned.why().map(|why| why.to_string()),
        held: owned.is_held(),
        of_array: owned.of_array_at(),
        denied: owned.denied().collect(),
    })
}

/// A job for people.
pub fn status(facts: &Facts, story: Option<&Story>, setting: Setting) -> JobStatus {
    let job = facts.envelope.job();
    let planned = facts.placement.as_ref().map(as_planned).or_else(|| {
        let (epoch, start, span, nodes) = story?.placement(None)?;
        let placement = Placement { epoch, start, span, nodes: nodes.to_vec().into() };
        Some(as_planned(&placement))
    });
    let (state, reason, code, exits) = match &facts.phase {
        Phase::Seeking => {
            let state = if facts.held { State::Held } else { State::Waiting };
            (state, facts.why.clone(), None, Vec::new())
        }
        Phase::Placed { epoch, exits } => {
            let runs = story.is_some_and(|story| {
                story.state() == State::Running
                    && story.placement(None).is_some_and(|(placed, ..)| placed == *epoch)
            });
            let state = if runs { State::Running } else { State::Planned };
            (state, None, None, exits.iter().map(|(rank, exit)| (*rank, *exit)).collect())
        }
        Phase::Ended(end) => {
            let exits = match end {
                End::Failed(rank, exit) => vec![(*rank, *exit)],
                End::Finished
                | End::Lost
                | End::Cancelled
                | End::Expired
                | End::NoPlace
                | End::Unmet(_)
                | End::HandedOver(_) => Vec::new(),
            };
            let code = Some(words::code(*end)).filter(|_| state_of(*end).is_over());
            (state_of(*end), Some(words::end(*end)), code, exits)
        }
    };
    let started = story.and_then(Story::started).filter(|_| state != State::Waiting);
    JobStatus {
        id: facts.job,
        name: job.name.as_ref().map(ToString::to_string),
        user: job.user.as_ref().map(ToString::to_string),
        state,
        reason,
        command: command(&job.work),
        nodes: job.nodes.get(),
        resources: job.resources.to_string(),
        limit: SpanText(job.limit.unwrap_or(setting.limit_default)),
        owner: setting.owner.to_string(),
        durability: 1,
        array: facts.of_array.map(|(array, _)| array),
        index: facts.of_array.map(|(_, index)| index),
        counts: Default::default(),
        accepted: story.and_then(Story::accepted).map(TimeText),
        promised: story.and_then(Story::promised).map(TimeText),
        started: started.map(|(_, last)| TimeText(last)),
        skew: started.filter(|_| job.nodes.get() > 1).map(|(first, last)| SpanText(last.since(first))),
        ended: story.and_then(Story::ended).map(TimeText),
        code,
        usage: story.and_then(|story| usage(story, job)),
        tasks: tasks(&exits, planned.as_ref()),
        outputs: None,
        planned,
    }
}

fn as_planned(placement: &Placement) -> Planned {
    Planned {
        epoch: placement.epoch.0,
        start: TimeText(placement.start),
        end: TimeText(placement.start + placement.span),
        nodes: placement.nodes.iter().map(NodeId::to_string).collect(),
    }
}

/// What a job took, as its story has it.
fn usage(story: &Story, job: &Job) -> Option<JobUsage> {
    let (tasks, usage) = story.usage()?;
    // Of tasks shorter than a second nobody can say how busy they were: starting and ending is most of it.
    let busy = (usage.wall.as_secs() >= u64::from(tasks)).then(|| {
        let granted = u128::from(usage.wall.as_micros()) * u128::from(job.resources.cores.get());
        let used = u128::from((usage.user + usage.system).as_micros()) * 1_000 * 100;
        u32::try_from(used / granted.max(1)).unwrap_or(u32::MAX)
    });
    let millis = |span: Span| span.as_micros() / 1_000;
    Some(JobUsage {
        tasks,
        user_ms: millis(usage.user),
        system_ms: millis(usage.system),
        memory_max: Some(usage.memory_max.as_bytes()).filter(|bytes| *bytes > 0),
        busy,
    })
}

fn tasks(exits: &[(Rank, Exit)], planned: Option<&Planned>) -> Vec<TaskStatus> {
    let node = |rank: Rank| planned.and_then(|planned| planned.nodes.get(rank.0 as usize)).cloned();
    exits
        .iter()
        .take(TASKS_SHOWN)
        .map(|(rank, exit)| TaskStatus {
            rank: rank.0,
            node: node(*rank).unwrap_or_default(),
            exit: words::exit(*exit),
        })
        .collect()
}

/// What a job runs, on one line.
pub fn command(work: &Work) -> String {
    let text = match work {
        Work::Command(argv) => argv.join(" "),
        Work::Script(text) => {
            let said = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
            format!("script: {}", text.lines().find(said).unwrap_or_default().trim())
        }
    };
    let plain: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match plain.char_indices().nth(COMMAND_SHOWN) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}
