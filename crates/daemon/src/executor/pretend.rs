//! A machine that pretends: its processes take the time they are told, and do nothing else.
//!
//! It stands where the executor of real [processes](super::process) does, so that a driver can be run with jobs that cost
//! nothing: same actions, same outcomes, real time, no process. It knows three programs, `sleep SECONDS`, `true` and
//! `false`; any other ends at once with 127, as a shell says of what it does not find.
//!
//! ```text
//! node, first life ── Start ──▶┐
//!                              │ the machine's thread  ── Outcome ──▶ whoever asked last
//! node, next life ─── Adopt ──▶┘
//! ```
//!
//! A [`Pretend`] is a handle. The machine runs on while there is one, so who keeps a handle across a restart of the
//! node sees what a restart of the daemon alone does: the processes are still there, or have left their exits. When the
//! last handle is gone the machine is off, and its processes with it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use shoal_model::Time;
use shoal_model::job::Work;
use shoal_protocols::node::{Action, Exit, Node, Outcome, Task};

use super::Executor;
use crate::inbox::Completion;

/// Exits that are kept for a node that asks in its next life; the oldest are dropped beyond.
pub const EXITS_MAX: usize = 10_000;

/// What a shell says of a program that it does not find.
const NOT_FOUND: i32 = 127;

/// A handle to a machine that pretends.
#[derive(Clone, Debug)]
pub struct Pretend {
    requests: Sender<Request>,
}

/// What the machine is asked.
struct Request {
    /// What the node's clock showed.
    now: Time,
    action: Action,
    completion: Completion<Node>,
}

/// All that the machine's thread owns.
#[derive(Default)]
struct Machine {
    running: BTreeMap<Task, Process>,
    /// When each of them ends.
    ends: BTreeSet<(Instant, Task)>,
    exits: VecDeque<Outcome>,
}

/// What runs, and how it ends unless it is stopped.
struct Process {
    end: Instant,
    exit: Exit,
    completion: Completion<Node>,
}

impl Pretend {
    /// Switches a machine on.
    pub fn new() -> io::Result<Pretend> {
        let (requests, asked) = mpsc::channel();
        thread::Builder::new().name("pretend".to_owned()).spawn(move || Machine::default().run(&asked))?;
        Ok(Pretend { requests })
    }
}

impl Executor<Node> for Pretend {
    fn perform(&mut self, now: Time, action: Action, completion: Completion<Node>) {
        // The thread ends when the last handle is gone, and this is one.
        let _ = self.requests.send(Request { now, action, completion });
    }
}

impl Machine {
    fn run(&mut self, asked: &Receiver<Request>) {
        loop {
            let request = match self.ends.first() {
                None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((end, _)) => asked.recv_timeout(end.saturating_duration_since(Instant::now())),
            };
            match request {
                Ok(request) => self.perform(request),
                Err(RecvTimeoutError::Timeout) => self.end_what_is_due(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn perform(&mut self, Request { now, action, completion }: Request) {
        match action {
            // A job that pretends needs no files.
            Action::Stage { .. } => {}
            Action::Start { task, brief, stop_at, short, behind } => {
                let limit = Duration::from_micros(stop_at.since(now).as_micros());
                let (takes, code) = plan(&brief.envelope.job().work);
                let stopped = if short { Exit::CutShort } else { Exit::Overran };
                let (takes, exit) = if takes > limit { (limit, stopped) } else { (takes, Exit::Code(code)) };
                let before = behind.and_then(|behind| self.running.get(&behind)).map(|before| before.end);
                let wait = before.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()));
                self.start(task, wait.saturating_add(takes), exit, completion);
            }
            Action::Adopt(task) => match self.running.get_mut(&task) {
                Some(process) => process.completion = completion,
                None => {
                    let exit = self.exits.iter().rev().find(|exit| exit.0 == task);
                    completion.complete(exit.cloned().unwrap_or(Outcome::unmeasured(task, Exit::Lost)));
                }
            },
            Action::Stop(task) => {
                if let Some(process) = self.running.get_mut(&task) {
                    process.exit = Exit::Stopped;
                    self.end(task);
                }
            }
        }
    }

    fn start(&mut self, task: Task, takes: Duration, exit: Exit, completion: Completion<Node>) {
        let Some(end) = Instant::now().checked_add(takes) else {
            // Longer than the system can count: it would never end, and nobody would hear of it.
            completion.complete(Outcome::unmeasured(task, Exit::NotStarted));
            return;
        };
        if let Entry::Vacant(room) = self.running.entry(task) {
            room.insert(Process { end, exit, completion });
            self.ends.insert((end, task));
        }
    }

    fn end_what_is_due(&mut self) {
        let now = Instant::now();
        while let Some(&(end, task)) = self.ends.first().filter(|(end, _)| *end <= now) {
            debug_assert!(self.running.get(&task).is_some_and(|process| process.end == end));
            self.end(task);
        }
    }

    fn end(&mut self, task: Task) {
        let Some(Process { end, exit, completion }) = self.running.remove(&task) else { return };
        self.ends.remove(&(end, task));
        if self.exits.len() == EXITS_MAX {
            self.exits.pop_front();
        }
        self.exits.push_back(Outcome::unmeasured(task, exit));
        completion.complete(Outcome::unmeasured(task, exit));
    }
}

/// How long a program takes, and the code that it ends with.
fn plan(work: &Work) -> (Duration, i32) {
    let Work::Command(argv) = work else { return (Duration::ZERO, NOT_FOUND) };
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    match argv.as_slice() {
        ["sleep", seconds] => match seconds.parse().map(Duration::try_from_secs_f64) {
            Ok(Ok(takes)) => (takes, 0),
            Ok(Err(_)) | Err(_) => (Duration::ZERO, 1),
        },
        ["true"] => (Duration::ZERO, 0),
        ["false"] => (Duration::ZERO, 1),
        _ => (Duration::ZERO, NOT_FOUND),
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Envelope, Epoch, Job, JobId, NodeId, Nonce, Rank, Span};
    use shoal_protocols::node::Brief;
    use shoal_protocols::{Input, Shared};

    use super::*;
    use crate::inbox::{self, Inbox};

    const TASK: Task = Task { job: JobId([7; 16]), epoch: Epoch(1), rank: Rank(0) };
    /// Only a failing test waits for it.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn start(argv: &[&str], limit: Span) -> Action {
        let envelope = Envelope::new(Job::command(argv.iter().copied()), Nonce([1; 16])).unwrap();
        let brief = Shared::new(Brief {
            envelope: Shared::new(envelope),
            nodes: vec![NodeId(1)].into(),
            index: None,
            riders: None,
        });
        Action::Start { task: TASK, brief, stop_at: Time::ZERO + limit, short: false, behind: None }
    }

    /// A node's inbox, and what came into it.
    struct Node1(Inbox<Node>);

    impl Node1 {
        fn new() -> Node1 {
            Node1(Inbox::new())
        }

        fn asks(&self, machine: &mut Pretend, action: Action) {
            machine.perform(Time::ZERO, action, self.0.mailbox().completion());
        }

        fn hears(&self) -> Vec<Exit> {
            let arrived = self.0.take(Some(Instant::now() + PATIENCE));
            arrived
                .entries
                .into_iter()
                .map(|entry| match entry {
                    inbox::Entry::Input(Input::Done(Outcome(TASK, exit, _))) => exit,
                    _ => panic!("only outcomes of the task come"),
                })
                .collect()
        }
    }

    #[test]
    fn programs_end_as_their_names_say() {
        let known: [(&[&str], Exit); 6] = [
            (&["sleep", "0.001"], Exit::Code(0)),
            (&["true"], Exit::Code(0)),
            (&["false"], Exit::Code(1)),
            (&["sleep", "soon"], Exit::Code(1)),
            (&["sleep", "-1"], Exit::Code(1)),
            (&["fortune"], Exit::Code(NOT_FOUND)),
        ];
        for (argv, exit) in known {
            let (node, mut machine) = (Node1::new(), Pretend::new().unwrap());
            node.asks(&mut machine, start(argv, Span::from_secs(9)));
            assert_eq!(node.hears(), [exit], "{argv:?}");
        }
    }

    #[test]
    fn process_takes_its_time_but_no_more_than_its_limit() {
        let (node, mut machine) = (Node1::new(), Pretend::new().unwrap());
        let began = Instant::now();
        node.asks(&mut machine, start(&["sleep", "1e12"], Span::from_millis(20)));
        assert_eq!(node.hears(), [Exit::Overran]);
        assert!(began.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn stopped_process_ends_once_and_a_second_start_is_none() {
        let (node, mut machine) = (Node1::new(), Pretend::new().unwrap());
        node.asks(&mut machine, start(&["sleep", "1000"], Span::from_hours(1)));
        node.asks(&mut machine, start(&["true"], Span::from_hours(1)));
        node.asks(&mut machine, Action::Stop(TASK));
        node.asks(&mut machine, Action::Stop(TASK));
        assert_eq!(node.hears(), [Exit::Stopped]);
    }

    #[test]
    fn next_life_of_a_node_finds_what_runs_and_how_the_rest_ended() {
        let (first, mut machine) = (Node1::new(), Pretend::new().unwrap());
        first.asks(&mut machine, start(&["sleep", "1000"], Span::from_millis(50)));
        drop(first);

        let second = Node1::new();
        second.asks(&mut machine, Action::Adopt(TASK));
        assert_eq!(second.hears(), [Exit::Overran]);
        drop(second);

        let third = Node1::new();
        third.asks(&mut machine, Action::Adopt(TASK));
        assert_eq!(third.hears(), [Exit::Overran]);
    }

    #[test]
    fn machine_that_was_off_has_lost_its_processes() {
        let (node, mut machine) = (Node1::new(), Pretend::new().unwrap());
        node.asks(&mut machine, start(&["sleep", "1000"], Span::from_hours(1)));
        let mut machine = Pretend::new().unwrap();
        node.asks(&mut machine, Action::Adopt(TASK));
        assert_eq!(node.hears(), [Exit::Lost]);
    }
}
