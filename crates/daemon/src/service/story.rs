//! What happened to a job, with times: what the core forgets, or never knew.
//!
//! Told, never acted upon: what is promised is in the node's records, and a story that is lost costs a user a date.

use minicbor::{CborLen, Decode, Encode};
use shoal_api::{EventView, State};
use shoal_model::units::{SpanText, TimeText};
use shoal_model::{Epoch, JobId, NodeId, Span, Time};
use shoal_protocols::Record;
use shoal_protocols::node::{End, Event, Usage};

/// Events of one job that are kept: its first ones, and the last.
pub const EVENTS_MAX: usize = 64;
/// How many of them are its first ones.
const FIRST_KEPT: usize = 8;
/// Nodes of a placement that a story names.
pub const NODES_MAX: usize = 1_024;

/// What happened to a job, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Story {
    /// The job.
    #[n(0)]
    pub job: JobId,
    /// What happened to it.
    #[n(1)]
    pub events: Vec<(Time, What)>,
    /// Events that were left out.
    #[n(2)]
    pub left_out: u32,
}

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum What {
    /// It is on a disk.
    #[n(0)]
    Accepted,
    /// It waits, and why.
    #[n(1)]
    Waiting(#[n(0)] Box<str>),
    /// It has a place.
    #[n(2)]
    Placed {
        /// Which of its placements.
        #[n(0)]
        epoch: Epoch,
        /// When it starts.
        #[n(1)]
        start: Time,
        /// How long it may run.
        #[n(2)]
        span: Span,
        /// Where, by rank; the first of them, if they are very many.
        #[n(3)]
        nodes: Box<[NodeId]>,
    },
    /// It has lost its place.
    #[n(3)]
    Unplaced {
        /// Which of its placements.
        #[n(0)]
        epoch: Epoch,
        /// Because of this node.
        #[n(1)]
        by: Option<NodeId>,
    },
    /// Tasks of it run.
    #[n(4)]
    Started {
        /// Of which placement.
        #[n(0)]
        epoch: Epoch,
        /// How many of them.
        #[n(1)]
        tasks: u32,
        /// When the first of them started.
        #[n(2)]
        first: Time,
        /// When the last of them started.
        #[n(3)]
        last: Time,
    },
    /// It has ended.
    #[n(5)]
    Ended(#[n(0)] End),
    /// Its user holds it, or no longer.
    #[n(6)]
    Held(#[n(0)] bool),
    /// Tasks of it have ended, and took this together.
    #[n(7)]
    Took {
        /// Of which placement.
        #[n(0)]
        epoch: Epoch,
        /// How many of them.
        #[n(1)]
        tasks: u32,
        /// Processor time of all of them, and the most memory that any had.
        #[n(2)]
        usage: Usage,
    },
}

impl Record for Story {
    type Key = JobId;

    fn key(&self) -> JobId {
        self.job
    }
}

/// What an event of a node is to a story: of which job, and what; none for what is about no job, or about one that was
/// refused.
pub fn of_event(event: &Event) -> Option<(JobId, What)> {
    Some(match event {
        Event::Accepted(job) => (*job, What::Accepted),
        Event::Waiting(job, why) => (*job, What::Waiting(why.to_string().into())),
        Event::Placed(job, placement) => {
            let nodes = placement.nodes.iter().copied().take(NODES_MAX).collect();
            let (epoch, start, span) = (placement.epoch, placement.start, placement.span);
            (*job, What::Placed { epoch, start, span, nodes })
        }
        Event::Unplaced { job, epoch, by } => (*job, What::Unplaced { epoch: *epoch, by: *by }),
        Event::Started(task, at) => {
            (task.job, What::Started { epoch: task.epoch, tasks: 1, first: *at, last: *at })
        }
        Event::Took(task, usage) => (task.job, What::Took { epoch: task.epoch, tasks: 1, usage: **usage }),
        Event::Ended(job, end) => (*job, What::Ended(*end)),
        Event::Held(job, held) => (*job, What::Held(*held)),
        // Told by hosts too, of jobs that are not theirs; the owner knows who denies its job.
        Event::Denied { .. }
        | Event::Refused(..)
        | Event::Suspected(_)
        | Event::Back(_)
        | Event::Silent(_)
        | Event::Unwatched(_)
        | Event::Slept(_)
        | Event::Left => return None,
    })
}

impl Story {
    /// A story that has not begun.
    pub fn new(job: JobId) -> Story {
        Story { job, events: Vec::new(), left_out: 0 }
    }

    /// Adds what happened; false if it is no news.
    pub fn add(&mut self, at: Time, what: What) -> bool {
        let news = match (&what, self.last().map(|(_, last)| last)) {
            // What is known of a placement's tasks together is one event, whatever came between.
            (What::Started { epoch, first, .. }, _) if self.start_of(*epoch).is_some() => {
                return self.add_start(*epoch, *first);
            }
            (What::Took { epoch, usage, .. }, _) if self.took(*epoch).is_some() => {
                return self.add_usage(*epoch, usage);
            }
            // Told again after a restart.
            (What::Accepted, Some(_)) | (What::Ended(_), Some(What::Ended(_))) => false,
            (What::Waiting(why), Some(What::Waiting(before))) => why != before,
            (What::Held(held), Some(What::Held(before))) => held != before,
            // Said of a job that was not held.
            (What::Held(false), _) => false,
            (What::Placed { epoch, start, .. }, _) => self.placed(*epoch) != Some(*start),
            _ => true,
        };
        if !news {
            return false;
        }
        if self.events.len() >= EVENTS_MAX {
            self.events.remove(FIRST_KEPT);
            self.left_out += 1;
        }
        // Very many stories are kept, and most have two events for a long time: no room for more than there are.
        self.events.reserve_exact(1);
        self.events.push((at, what));
        true
    }

    /// How far the job has come.
    pub fn state(&self) -> State {
        match self.last() {
            Some((_, What::Held(true))) => State::Held,
            None
            | Some((_, What::Accepted | What::Waiting(_) | What::Unplaced { .. } | What::Held(false))) => {
                State::Waiting
            }
            Some((_, What::Placed { .. })) => State::Planned,
            Some((_, What::Started { .. } | What::Took { .. })) => State::Running,
            Some((_, What::Ended(end))) => state_of(*end),
        }
    }

    /// When the job was accepted, or first heard of.
    pub fn accepted(&self) -> Option<Time> {
        self.events.first().map(|(at, _)| *at)
    }

    /// The start that was promised first.
    pub fn promised(&self) -> Option<Time> {
        self.events.iter().find_map(|(_, what)| match what {
            What::Placed { start, .. } => Some(*start),
            What::Accepted
            | What::Waiting(_)
            | What::Unplaced { .. }
            | What::Started { .. }
            | What::Took { .. }
            | What::Ended(_)
            | What::Held(_) => None,
        })
    }

    /// The last placement, or that with a given number.
    pub fn placement(&self, wanted: Option<Epoch>) -> Option<(Epoch, Time, Span, &[NodeId])> {
        self.events.iter().rev().find_map(|(_, what)| match what {
            What::Placed { epoch, start, span, nodes } if wanted.is_none_or(|wanted| wanted == *epoch) => {
                Some((*epoch, *start, *span, &**nodes))
            }
            What::Placed { .. }
            | What::Accepted
            | What::Waiting(_)
            | What::Unplaced { .. }
            | What::Started { .. }
            | What::Took { .. }
            | What::Ended(_)
            | What::Held(_) => None,
        })
    }

    /// When the first and the last task of the last placement started.
    pub fn started(&self) -> Option<(Time, Time)> {
        self.events.iter().rev().find_map(|(_, what)| match what {
            What::Started { first, last, .. } => Some((*first, *last)),
            What::Accepted
            | What::Waiting(_)
            | What::Placed { .. }
            | What::Unplaced { .. }
            | What::Took { .. }
            | What::Ended(_)
            | What::Held(_) => None,
        })
    }

    /// When the job ended.
    pub fn ended(&self) -> Option<Time> {
        match self.last() {
            Some((at, What::Ended(_))) => Some(*at),
            _ => None,
        }
    }

    /// The last that happened to the job: what a task took that was stopped is told after the job's end.
    fn last(&self) -> Option<&(Time, What)> {
        self.events.iter().rev().find(|(_, what)| !matches!(what, What::Took { .. }))
    }

    /// The story for people.
    pub fn views(&self) -> Vec<EventView> {
        self.events.iter().map(|(at, what)| view(*at, self.job, what)).collect()
    }

    /// What the tasks of the last placement took: how many have ended, and their sums.
    pub fn usage(&self) -> Option<(u32, Usage)> {
        let (last, ..) = self.placement(None)?;
        match self.events.get(self.took(last)?) {
            Some((_, What::Took { tasks, usage, .. })) => Some((*tasks, *usage)),
            Some(_) | None => None,
        }
    }

    /// One more task of a placement has started.
    fn add_start(&mut self, wanted: Epoch, at: Time) -> bool {
        let nodes = self.nodes_of(wanted);
        let place = self.start_of(wanted);
        let Some((_, What::Started { tasks, first, last, .. })) =
            place.and_then(|place| self.events.get_mut(place))
        else {
            return false;
        };
        // All have, and one says so again.
        if nodes.is_some_and(|nodes| *tasks >= nodes) {
            return false;
        }
        *tasks += 1;
        *first = (*first).min(at);
        *last = (*last).max(at);
        true
    }

    /// One more task of a placement has ended, and took this.
    fn add_usage(&mut self, wanted: Epoch, more: &Usage) -> bool {
        let nodes = self.nodes_of(wanted);
        let place = self.took(wanted);
        let Some((_, What::Took { tasks, usage, .. })) = place.and_then(|place| self.events.get_mut(place))
        else {
            return false;
        };
        if nodes.is_some_and(|nodes| *tasks >= nodes) {
            return false;
        }
        *tasks += 1;
        usage.user = usage.user + more.user;
        usage.system = usage.system + more.system;
        usage.memory_max = usage.memory_max.max(more.memory_max);
        usage.wall = usage.wall + more.wall;
        true
    }

    fn start_of(&self, wanted: Epoch) -> Option<usize> {
        let is = |what: &What| matches!(what, What::Started { epoch, .. } if *epoch == wanted);
        self.events.iter().rposition(|(_, what)| is(what))
    }

    fn took(&self, wanted: Epoch) -> Option<usize> {
        let is = |what: &What| matches!(what, What::Took { epoch, .. } if *epoch == wanted);
        self.events.iter().rposition(|(_, what)| is(what))
    }

    fn placed(&self, wanted: Epoch) -> Option<Time> {
        self.placement(Some(wanted)).map(|(_, start, ..)| start)
    }

    fn nodes_of(&self, epoch: Epoch) -> Option<u32> {
        let nodes = self.placement(Some(epoch)).map(|(_, _, _, nodes)| nodes.len());
        // Of so many not all are named.
        nodes.filter(|nodes| (1..NODES_MAX).contains(nodes)).map(|nodes| nodes as u32)
    }
}

/// How far a job has come that has ended so.
pub fn state_of(end: End) -> State {
    match end {
        End::Finished => State::Finished,
        End::Failed(..) => State::Failed,
        End::Lost => State::Lost,
        End::Cancelled => State::Cancelled,
        End::Expired => State::Expired,
        End::NoPlace => State::NoPlace,
        End::Unmet(_) => State::Unmet,
        End::HandedOver(_) => State::HandedOver,
    }
}

/// Something that happened to a job, for people.
pub fn view(at: Time, job: JobId, what: &What) -> EventView {
    let (kind, text) = match what {
        What::Accepted => ("accepted", "accepted: on this node's disk".to_owned()),
        What::Waiting(why) => ("waiting", format!("waits: {why}")),
        What::Placed { start, nodes, .. } => {
            ("planned", format!("planned for {} on {}", TimeText(*start), listed(nodes)))
        }
        What::Unplaced { by: Some(node), .. } => ("unplaced", format!("lost its place: node {node}")),
        What::Unplaced { by: None, .. } => ("unplaced", "lost its place".to_owned()),
        What::Started { tasks: 1, .. } => ("started", "started".to_owned()),
        What::Started { tasks, first, last, .. } => {
            let apart = SpanText(last.since(*first));
            ("started", format!("{tasks} tasks started, {apart} apart"))
        }
        What::Took { tasks, usage, .. } => ("took", super::words::usage(*tasks, usage)),
        What::Ended(end) => ("ended", super::words::end(*end)),
        What::Held(true) => ("held", "held".to_owned()),
        What::Held(false) => ("released", "released".to_owned()),
    };
    EventView { at: TimeText(at), job: Some(job), kind: kind.to_owned(), text }
}

/// Nodes in a sentence; the first of them, if they are many.
fn listed(nodes: &[NodeId]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = nodes.iter().take(SHOWN).map(NodeId::to_string).collect();
    match nodes.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Rank, Size};
    use shoal_protocols::node::Exit;

    use super::*;

    const JOB: JobId = JobId([7; 16]);

    fn placed(epoch: u32, nodes: u64) -> What {
        let nodes = (1..=nodes).map(NodeId).collect();
        What::Placed { epoch: Epoch(epoch), start: Time::from_secs(10), span: Span::from_secs(5), nodes }
    }

    fn started(epoch: u32, at: u64) -> What {
        let at = Time::from_secs(at);
        What::Started { epoch: Epoch(epoch), tasks: 1, first: at, last: at }
    }

    #[test]
    fn story_tells_how_far_a_job_has_come() {
        let mut story = Story::new(JOB);
        let mut states = Vec::new();
        let failed = End::Failed(Rank(0), Exit::Code(3));
        let told = [
            What::Accepted,
            What::Waiting("no room".into()),
            placed(1, 1),
            What::Unplaced { epoch: Epoch(1), by: Some(NodeId(1)) },
            placed(2, 1),
            started(2, 11),
            What::Ended(failed),
        ];
        for (at, what) in (1..).zip(told) {
            assert!(story.add(Time::from_secs(at), what));
            states.push(story.state().name());
        }
        assert_eq!(states, ["waiting", "waiting", "planned", "waiting", "planned", "running", "failed"]);
        assert_eq!(story.accepted(), Some(Time::from_secs(1)));
        assert_eq!(story.ended(), Some(Time::from_secs(7)));
        assert_eq!(story.placement(None).map(|(epoch, ..)| epoch), Some(Epoch(2)));
    }

    #[test]
    fn what_is_told_again_after_a_restart_is_no_news() {
        let mut story = Story::new(JOB);
        let told = [What::Accepted, placed(1, 1), started(1, 10)];
        for what in &told {
            assert!(story.add(Time::from_secs(1), what.clone()));
        }
        for what in told {
            assert!(!story.add(Time::from_secs(2), what));
        }
        assert_eq!(story.events.len(), 3);
    }

    #[test]
    fn starts_of_a_gang_are_one_event_with_its_skew() {
        let mut story = Story::new(JOB);
        story.add(Time::from_secs(1), placed(1, 3));
        for at in [12, 10, 11, 15] {
            story.add(Time::from_secs(at), started(1, at));
        }
        assert_eq!(story.started(), Some((Time::from_secs(10), Time::from_secs(12))));
        let text = story.views().pop().unwrap().text;
        assert_eq!(text, "3 tasks started, 2s apart");
    }

    fn took(epoch: u32, millis: u64, mebibytes: u64) -> What {
        let usage = Usage {
            user: Span::from_millis(millis),
            system: Span::from_millis(1),
            memory_max: Size::from_bytes(mebibytes << 20),
            wall: Span::from_secs(1),
        };
        What::Took { epoch: Epoch(epoch), tasks: 1, usage }
    }

    #[test]
    fn what_the_tasks_of_a_placement_took_is_one_event() {
        let mut story = Story::new(JOB);
        story.add(Time::from_secs(1), placed(1, 2));
        story.add(Time::from_secs(10), started(1, 10));
        assert!(story.add(Time::from_secs(11), took(1, 20, 5)));
        assert_eq!(story.state(), State::Running);
        // The first task may have ended before it is heard that the second has started.
        story.add(Time::from_secs(11), started(1, 11));
        assert!(story.add(Time::from_secs(12), took(1, 30, 4)));
        assert!(!story.add(Time::from_secs(12), took(1, 30, 4)), "two tasks cannot end three times");
        assert_eq!(story.started(), Some((Time::from_secs(10), Time::from_secs(11))));
        let (tasks, usage) = story.usage().unwrap();
        assert_eq!((tasks, usage.user, usage.system), (2, Span::from_millis(50), Span::from_millis(2)));
        assert_eq!(usage.memory_max, Size::from_bytes(5 << 20));
        let text = story.views().pop().unwrap().text;
        assert_eq!(
            text,
            "2 tasks took 0.052s of processor time (0.002s of it the system), 5 MiB of memory at most"
        );
    }

    #[test]
    fn what_a_task_took_that_was_stopped_with_its_job_does_not_bring_that_back() {
        let mut story = Story::new(JOB);
        let events = [
            What::Accepted,
            placed(1, 2),
            What::Ended(End::Cancelled),
            took(1, 7, 1),
            What::Ended(End::Cancelled),
        ];
        for (at, what) in (0..).zip(events) {
            story.add(Time::from_secs(at), what);
        }
        assert_eq!((story.state(), story.ended()), (State::Cancelled, Some(Time::from_secs(2))));
        assert_eq!(story.usage().map(|(tasks, usage)| (tasks, usage.user)), Some((1, Span::from_millis(7))));
        assert_eq!(story.views().len(), 4, "the end was told again");
    }

    #[test]
    fn usage_of_a_later_placement_counts_alone() {
        let mut story = Story::new(JOB);
        for what in [placed(1, 1), started(1, 10), took(1, 20, 9)] {
            story.add(Time::from_secs(10), what);
        }
        for what in
            [What::Unplaced { epoch: Epoch(1), by: None }, placed(2, 1), started(2, 20), took(2, 7, 1)]
        {
            story.add(Time::from_secs(20), what);
        }
        assert_eq!(story.usage().map(|(_, usage)| usage.user), Some(Span::from_millis(7)));
        story.add(Time::from_secs(30), placed(3, 1));
        assert_eq!(story.usage(), None, "of its last one nothing is known");
    }

    #[test]
    fn long_story_keeps_its_beginning_and_its_end() {
        let mut story = Story::new(JOB);
        story.add(Time::from_secs(1), What::Accepted);
        for n in 0..200_u32 {
            story.add(Time::from_secs(2), placed(n, 1));
            story.add(Time::from_secs(3), What::Unplaced { epoch: Epoch(n), by: None });
        }
        assert_eq!(story.events.len(), EVENTS_MAX);
        assert_eq!(story.left_out as usize, 401 - EVENTS_MAX);
        assert_eq!(story.events[0].1, What::Accepted);
        assert_eq!(story.events.last().unwrap().1, What::Unplaced { epoch: Epoch(199), by: None });
        let bytes = minicbor::to_vec(&story).unwrap();
        assert_eq!(minicbor::decode::<Story>(&bytes).unwrap(), story);
    }
}
