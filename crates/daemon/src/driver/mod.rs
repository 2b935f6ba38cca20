//! The loop that owns a core: gives it its inputs in real time and carries out what it asks for.
//!
//! ```text
//!            ┌ messages, commands, outcomes ┐        one turn        ┌ send
//! any thread ┤ looks, stop                  ├▶ handle … handle ▶ sync ┤ act
//!            └ timers that are due          ┘   (writes pile up)     └ report, answer
//! ```
//!
//! A *turn* takes all that has come, reads the clock once, and gives it to the core in the contract's order: by
//! time, then what user and machine say, then peers by id, each in its own order, then the node's timers. What the
//! turn writes is made durable by one sync; effects asked for before its first write have left by then, those after
//! wait for it. A slow disk thus makes larger groups, not a longer queue of syncs.
//!
//! What the node says to itself, and what it wants to be reminded of at once, is part of the same turn: on a grid of one a
//! job is accepted, planned and promised by one sync instead of one for each step.
//!
//! A store that fails stops the node for good. Nothing is retried: after a failed sync nobody knows what is on the
//! disk, and only a new life that reads it can tell.

mod effects;
mod timers;

use std::collections::VecDeque;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use shoal_model::{NodeId, Time};
use shoal_protocols::{Chance, Ctx, Input, Protocol};

use crate::clock::Clock;
use crate::executor::Executor;
use crate::inbox::{Entry, Inbox, Mailbox};
use crate::network::Network;
use crate::store::{self, Store};
use effects::{Effect, Effects};
use timers::Timers;

/// What a node may say to itself in one turn before others have theirs.
const OWN_MAX: usize = 4_096;

/// A node, and all through which it reaches the world.
pub struct Driver<P: Protocol> {
    me: NodeId,
    core: P,
    chance: Chance,
    clock: Clock,
    inbox: Inbox<P>,
    effects: Effects<P>,
}

/// What a driver is made of.
pub struct Setup<P: Protocol> {
    /// The node.
    pub me: NodeId,
    /// What it is told at its making.
    pub config: P::Config,
    /// What it saved in earlier lives.
    pub records: Vec<P::Record>,
    /// Its own chance.
    pub chance: Chance,
    /// Its clock.
    pub clock: Clock,
    /// Keeps what it saves; the one that `records` came from.
    pub store: Box<dyn Store<P::Record>>,
    /// Carries what it says.
    pub network: Box<dyn Network<P::Message>>,
    /// Does what it has done.
    pub executor: Box<dyn Executor<P>>,
    /// Hears what it reports, on the thread that drives the node: must not wait.
    pub reports: Box<dyn FnMut(Time, P::Event) + Send>,
}

/// Why a node stopped without being told to.
#[derive(Debug, thiserror::Error)]
#[error("node {node} stopped for good, since it cannot keep what it promises: {source}")]
pub struct Fault {
    /// Which node.
    pub node: NodeId,
    /// What its store said.
    pub source: store::Error,
}

/// A node that runs on a thread of its own.
pub struct Running<P: Protocol> {
    mailbox: Mailbox<P>,
    thread: JoinHandle<Result<P, Fault>>,
}

impl<P: Protocol> Driver<P> {
    /// Makes the node from what it saved; nothing happens before [`Driver::run`].
    pub fn new(setup: Setup<P>) -> Driver<P> {
        let Setup { me, config, records, chance, clock, store, network, executor, reports } = setup;
        let inbox = Inbox::new();
        let effects = Effects {
            me,
            own: VecDeque::new(),
            now: clock.now(),
            timers: Timers::new(),
            mailbox: inbox.mailbox(),
            store,
            network,
            executor,
            reports,
            waiting: Vec::new(),
            written: false,
            failure: None,
        };
        Driver { me, core: P::restore(&config, me, records.into_iter()), chance, clock, inbox, effects }
    }

    /// The way into this node.
    pub fn mailbox(&self) -> Mailbox<P> {
        self.inbox.mailbox()
    }

    /// Drives the node on this thread until it is told to stop, and returns its core to look at.
    pub fn run(mut self) -> Result<P, Fault> {
        let me = self.me;
        self.drive().map_err(|source| Fault { node: me, source })?;
        Ok(self.core)
    }

    fn drive(&mut self) -> Result<(), store::Error> {
        self.turn(self.clock.now(), [Entry::Input(Input::Boot)])?;
        loop {
            let until = match self.effects.own.is_empty() {
                // A timer that is due later than the system can count is never due.
                true => self.effects.timers.next().and_then(|at| self.clock.instant(at)),
                false => Some(Instant::now()),
            };
            let arrived = self.inbox.take(until);
            let now = self.clock.now();
            let due = std::iter::from_fn(|| self.effects.timers.take_due(now)).collect();
            let entries = in_order(self.me, now, arrived.entries, due);
            self.turn(now, entries)?;
            if arrived.stop {
                return Ok(());
            }
        }
    }

    fn turn(&mut self, now: Time, entries: impl IntoIterator<Item = Entry<P>>) -> Result<(), store::Error> {
        self.effects.now = now;
        let mut looks = Vec::new();
        for entry in entries {
            match entry {
                Entry::Input(input) => self.give(input),
                Entry::Look(look) => looks.push(look),
            }
        }
        self.hear_itself();
        for look in looks {
            let answer = look(&self.core);
            self.effects.ask(Effect::Answer(answer));
        }
        self.effects.commit()
    }

    /// Gives the core what it said to itself, and what it wants to be reminded of by now.
    fn hear_itself(&mut self) {
        let now = self.effects.now;
        for _ in 0..OWN_MAX {
            let next = match self.effects.own.pop_front() {
                Some(message) => Input::Message { from: self.me, message },
                None => match self.effects.timers.take_due(now) {
                    Some((_, timer)) => Input::Timer(timer),
                    None => return,
                },
            };
            self.give(next);
        }
    }

    /// Has the core handle an input; nothing more after a write that failed.
    fn give(&mut self, input: Input<P>) {
        if self.effects.failure.is_none() {
            let mut ctx = Ctx::new(self.effects.now, self.me, &mut self.chance, &mut self.effects);
            self.core.handle(input, &mut ctx);
        }
    }
}

impl<P> Driver<P>
where
    P: Protocol + Send + 'static,
{
    /// Drives the node on a thread of its own.
    pub fn spawn(self) -> std::io::Result<Running<P>> {
        let mailbox = self.mailbox();
        let thread = thread::Builder::new().name(format!("node {}", self.me)).spawn(|| self.run())?;
        Ok(Running { mailbox, thread })
    }
}

impl<P: Protocol> Running<P> {
    /// The way into the node.
    pub fn mailbox(&self) -> &Mailbox<P> {
        &self.mailbox
    }

    /// Has the node stop once it has handled what came before, and waits for that.
    pub fn stop(self) -> Result<P, Fault> {
        self.mailbox.stop();
        self.join()
    }

    /// Waits until the node stops; a panic of its core goes on here.
    pub fn join(self) -> Result<P, Fault> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Sorts what a turn takes as the contract asks: by time, then as if a node's timers were what it says to itself.
///
/// Looks come last: who asks for something and then looks sees it done.
fn in_order<P: Protocol>(
    me: NodeId,
    now: Time,
    arrived: Vec<Entry<P>>,
    due: Vec<(Time, P::Timer)>,
) -> impl Iterator<Item = Entry<P>> {
    let arrived = arrived.into_iter().map(|entry| {
        let (class, sender) = match &entry {
            Entry::Input(Input::Message { from, .. }) => (2, *from),
            Entry::Input(_) => (1, me),
            Entry::Look(_) => (4, me),
        };
        ((now, class, sender), entry)
    });
    let due = due.into_iter().map(|(at, timer)| ((at, 3, me), Entry::Input(Input::Timer(timer))));
    let mut turn: Vec<_> = arrived.chain(due).collect();
    // Stable: what one sender said, and what is due at one time, stays as it came.
    turn.sort_by_key(|(key, _)| *key);
    turn.into_iter().map(|(_, entry)| entry)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use rand_xoshiro::rand_core::SeedableRng;
    use shoal_model::{Envelope, Job, Machine, Nonce, Resources, Span};
    use shoal_protocols::node::{self, Node};
    use shoal_protocols::overlay::cyclon::{self, Cycle, Cyclon, Message};
    use shoal_protocols::{Never, Shared};

    use super::*;
    use crate::{Idle, Pretend, Switchboard};

    /// A store that sees at its sync whether somebody was answered before.
    struct Witness(Arc<AtomicBool>);

    impl Store<Never> for Witness {
        fn save(&mut self, never: &Never) -> Result<(), store::Error> {
            match *never {}
        }

        fn erase(&mut self, never: &Never) -> Result<(), store::Error> {
            match *never {}
        }

        fn sync(&mut self) -> Result<(), store::Error> {
            assert!(!self.0.load(Ordering::SeqCst), "answered before the sync");
            Ok(())
        }
    }

    #[test]
    fn look_is_answered_once_all_that_it_saw_is_durable() {
        let answered = Arc::new(AtomicBool::new(false));
        let mut driver = Driver::<Cyclon>::new(Setup {
            me: NodeId(1),
            config: cyclon::Config::default(),
            records: vec![],
            chance: Chance::seed_from_u64(1),
            clock: Clock::new(),
            store: Box::new(Witness(Arc::clone(&answered))),
            network: Box::new(Switchboard::<Cyclon>::new().line(NodeId(1), Chance::seed_from_u64(2))),
            executor: Box::new(Idle),
            reports: Box::new(|_, _| ()),
        });
        // As if an input before it had saved something: an overlay has no records.
        driver.effects.written = true;
        let flag = Arc::clone(&answered);
        let look = Entry::Look(Box::new(|_: &Cyclon| Box::new(move || flag.store(true, Ordering::SeqCst))));
        driver.turn(Time::ZERO, [look]).unwrap();

        assert!(answered.load(Ordering::SeqCst));
    }

    /// A store that counts its syncs.
    struct Counting(Arc<AtomicUsize>);

    impl Store<node::Record> for Counting {
        fn save(&mut self, _record: &node::Record) -> Result<(), store::Error> {
            Ok(())
        }

        fn erase(&mut self, _key: &node::Key) -> Result<(), store::Error> {
            Ok(())
        }

        fn sync(&mut self) -> Result<(), store::Error> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    #[test]
    fn job_on_a_grid_of_one_is_accepted_and_planned_by_one_sync() {
        let work = node::config::Work {
            machine: Machine::with_capacity(Resources::cores(2)),
            recipe: node::config::Recipe::named("sample").unwrap(),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_hours(1),
            eager: true,
            gate: Default::default(),
        };
        let syncs = Arc::new(AtomicUsize::new(0));
        let (me, clock) = (NodeId(1), Clock::new());
        let mut driver = Driver::<Node>::new(Setup {
            me,
            config: node::Config { work: Some(Box::new(work)), ..Default::default() },
            records: vec![],
            chance: Chance::seed_from_u64(1),
            clock,
            store: Box::new(Counting(Arc::clone(&syncs))),
            network: Box::new(Switchboard::<Node>::new().line(me, Chance::seed_from_u64(2))),
            executor: Box::new(Pretend::new().unwrap()),
            reports: Box::new(|_, _| ()),
        });
        driver.turn(clock.now(), [Entry::Input(Input::Boot)]).unwrap();
        let envelope = Envelope::new(Job::command(["true"]), Nonce([1; 16])).unwrap();
        let id = envelope.id();
        let submit = node::Command::Submit(Shared::new(envelope));
        driver.turn(clock.now(), [Entry::Input(Input::Command(submit))]).unwrap();

        assert!(matches!(driver.core.job(id).unwrap().phase(), node::Phase::Placed { .. }));
        assert_eq!(syncs.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn turn_goes_by_time_then_user_peers_timers_looks() {
        let say = |from: u64, steps: u8| {
            let newcomer = cyclon::Entry { node: NodeId(9), age: 0, payload: () };
            let message = Message::Walk { newcomer, steps };
            Entry::Input(Input::Message { from: NodeId(from), message })
        };
        let arrived = vec![
            Entry::Look(Box::new(|_: &Cyclon| Box::new(|| ()))),
            say(3, 1),
            say(2, 1),
            say(3, 0),
            Entry::Input(Input::Command(cyclon::Command::Join(NodeId(2)))),
        ];
        let due = vec![(Time::from_secs(4), Cycle), (Time::from_secs(5), Cycle)];

        let story: Vec<String> = in_order(NodeId(1), Time::from_secs(5), arrived, due)
            .map(|entry| match entry {
                Entry::Input(Input::Timer(_)) => "timer".to_owned(),
                Entry::Input(Input::Command(_)) => "command".to_owned(),
                Entry::Input(Input::Message { from, message: Message::Walk { steps, .. } }) => {
                    format!("{from}:{steps}")
                }
                Entry::Input(other) => panic!("nobody said {other:?}"),
                Entry::Look(_) => "look".to_owned(),
            })
            .collect();

        assert_eq!(story, ["timer", "command", "n2:1", "n3:1", "n3:0", "timer", "look"]);
    }
}
