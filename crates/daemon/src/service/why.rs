//! Why a job is where it is, in plain words: the sentence, what stands against it on each node, and its story.

use shoal_api::{JobStatus, Refusals, State, Why};
use shoal_model::calendar::Against;
use shoal_model::matching::{Needs, mismatches};
use shoal_model::units::{SpanText, TimeText};
use shoal_model::{Envelope, JobId, Machine, NodeId, Resources, Span, Time};

use super::{Service, Wrong, view};
use crate::elsewhere::Question;

impl Service {
    /// Why a job that this node accepted is where it is.
    pub async fn why(&self, job: JobId) -> Result<Why, Wrong> {
        let facts = self.look(move |node| view::facts(node, job)).await?;
        let facts = facts.ok_or_else(|| Wrong::unknown(&job.to_string()))?;
        let story = self.history.story(job);
        let status = view::status(&facts, story.as_ref(), self.view());
        let mut nodes = Vec::new();
        if !status.state.is_over() {
            nodes.push(self.refusals(self.setting.me, &facts.envelope, &self.setting.machine));
            for (node, machine) in self.machines_of_others().await {
                nodes.push(self.refusals(node, &facts.envelope, &machine));
            }
        }
        // What a host has said itself counts more than what is known of its machine.
        for (node, denial) in &facts.denied {
            let node = node.to_string();
            let reason = format!("does not take it: {denial}");
            match nodes.iter_mut().find(|known| known.node == node) {
                Some(known) => known.reasons.push(reason),
                None => nodes.push(Refusals { node, reasons: vec![reason], free_from: None }),
            }
        }
        // What has a place, or looks for one, waits for room.
        if matches!(status.state, State::Planned | State::Waiting) {
            self.note_room(&facts.envelope, job, &mut nodes).await?;
        }
        let answer = self.answer(&status, &nodes);
        Ok(Why { answer, nodes, story: story.map(|story| story.views()).unwrap_or_default(), job: status })
    }

    /// Notes from when on the nodes that would do have room for a job.
    async fn note_room(&self, envelope: &Envelope, job: JobId, nodes: &mut [Refusals]) -> Result<(), Wrong> {
        let needs = Needs::of(envelope.job(), self.setting.limit_default);
        let begin = needs.begin.unwrap_or_default();
        let here = self.free_for(job, needs.resources.clone(), needs.limit, begin).await?;
        let mut free = vec![(self.setting.me, here)];
        let question = Question::Free {
            job,
            resources: needs.resources.clone(),
            limit_us: needs.limit.as_micros(),
            begin: needs.begin.map(TimeText),
        };
        for (node, from) in self.ask_all::<Option<TimeText>>(&question).await {
            free.push((node, from.map(|from| from.0)));
        }
        for (node, from) in free {
            let node = node.to_string();
            let known = nodes.iter_mut().find(|known| known.node == node && known.reasons.is_empty());
            if let Some(known) = known {
                known.free_from = from.map(TimeText);
            }
        }
        Ok(())
    }

    /// From when on this node has room for a job, its own place aside; none where nothing is planned ahead.
    pub(super) async fn free_for(
        &self,
        job: JobId,
        resources: Resources,
        limit: Span,
        begin: Time,
    ) -> Result<Option<Time>, Wrong> {
        let from = self.now().max(begin);
        self.look(move |node| {
            let commit = node.commit()?;
            commit.calendar().without(job).earliest_fit(from, limit, &resources, Against::Firm)
        })
        .await
    }

    /// What each other node is, of those that answer.
    async fn machines_of_others(&self) -> Vec<(NodeId, Machine)> {
        self.ask_all(&Question::Machine).await
    }

    /// What all other nodes are; none if not all of them answer.
    pub(super) async fn machines(&self) -> Option<Vec<Machine>> {
        let known = self.elsewhere.members().len();
        let machines: Vec<Machine> =
            self.machines_of_others().await.into_iter().map(|(_, machine)| machine).collect();
        (machines.len() >= known).then_some(machines)
    }

    fn refusals(&self, node: NodeId, envelope: &Envelope, machine: &Machine) -> Refusals {
        let needs = Needs::of(envelope.job(), self.setting.limit_default);
        let mut reasons: Vec<String> =
            mismatches(&needs, machine).map(|mismatch| mismatch.to_string()).collect();
        // Where a clock is so wrong that every start is over or far off, no host comes to deny the job.
        let gate = self.gate.as_ref().filter(|_| envelope.job().nodes.get() > 1);
        reasons.extend(gate.and_then(|gate| gate.clocks().off(node)));
        Refusals { node: node.to_string(), reasons, free_from: None }
    }

    fn answer(&self, job: &JobStatus, nodes: &[Refusals]) -> String {
        let now = self.now();
        match job.state {
            State::Held => "it is held back: `shoal release` lets it go on".to_owned(),
            State::Waiting => {
                let refuse = nodes.iter().filter(|node| !node.reasons.is_empty()).count();
                let why = job.reason.clone().unwrap_or_else(|| "a place is being looked for".to_owned());
                match refuse {
                    0 => format!("it waits: {why}"),
                    _ => format!(
                        "it waits: {why}; {refuse} of {} nodes that answered will not do",
                        nodes.len()
                    ),
                }
            }
            State::Planned => match &job.planned {
                Some(planned) if planned.start.0 > now => format!(
                    "it starts at {}, in {}: the nodes that will do are taken until then, or it may not begin before",
                    planned.start,
                    SpanText(planned.start.0.since(now))
                ),
                _ => "its time has come, and its tasks are being started".to_owned(),
            },
            State::Running => match &job.started {
                Some(TimeText(started)) => {
                    let since = SpanText(now.since(*started));
                    format!("it has run for {since}, and is stopped after {} at the latest", job.limit)
                }
                None => "it runs".to_owned(),
            },
            State::Finished
            | State::Failed
            | State::Lost
            | State::Cancelled
            | State::Expired
            | State::NoPlace
            | State::Unmet
            | State::HandedOver => job.reason.clone().unwrap_or_else(|| job.state.to_string()),
        }
    }
}
