//! A node: joins the layers, and is all that a driver knows.
//!
//! ```text
//!            user                          driver
//!   Submit, Cancel │ Accepted, Placed, Ended   ▲ Start, Stop
//! ┌────────────────▼────────────────┐ ┌────────┴─────────────┐
//! │ owner: a job's life             │ │ runner: a task's life│
//! ├────────────────┬────────────────┤ └────────▲─────────────┘
//! │ recipe: where? │ heartbeat: who │          │ Confirmed, Released
//! │                │ is silent?     │          │
//! ├────────────────┴────────────────┴──────────┴─────────────┐
//! │ commit: reservations of n nodes in this node's calendar  │
//! ├──────────────────────────────────────────────────────────┤
//! │ overlay: some other nodes                                │
//! └──────────────────────────────────────────────────────────┘
//! ```
//!
//! The *owner* of a job is the node that accepted it (durability 1: its disk holds the job). It plans, watches the
//! nodes that run it, and plans again with the next epoch when one is lost.

mod after;
mod aria;
mod array;
pub mod config;
mod drain;
mod eager;
pub mod gate;
pub mod handover;
mod hold;
mod meet;
pub mod message;
mod owned;
mod owner;
mod proactive;
mod queues;
mod recall;
mod ride;
mod runner;
#[cfg(test)]
mod tests;
mod train;
mod tri_pronged;
mod watcher;
mod work;

use std::collections::BTreeSet;

use shoal_model::{JobId, NodeId, Resources, calendar};

use crate::commit::two_phase::{self, TwoPhase};
use crate::guard::heartbeat::{self, Heartbeat};
use crate::overlay::blatant_s::{self, BlatantS};
use crate::overlay::can::{self, Can, Secondary};
use crate::overlay::cyclon::{self, Cyclon};
use crate::overlay::{self, Overlay};
use crate::protocol::{Ctx, Hosts, Input, Layer, Never, Protocol};
use crate::scheduling::asap::{Asap, Tally};
use crate::scheduling::proactive::Proactive;
use crate::scheduling::sample::Sample;
use crate::scheduling::tri_pronged::TriPronged;
use crate::scheduling::{self, Here, Recipe as _};

pub use config::Config;
pub use gate::{Ask, Denial, Gate, Judge};
pub use message::{
    Action, Brief, Command, End, Event, Exit, JobMessage, Key, Message, Outcome, OwnedRecord, Record,
    Refusal, Task, Timer, Usage,
};
pub use owned::{Owned, Phase};
pub use owner::OWNED_MAX;
pub use queues::Queue;
pub use recall::recalling;
pub use runner::{START_GRACE, TaskState, WANTED_EVERY};
use work::{Recipe, Work};

/// What a node says and hears, as a layer of its own.
pub type Commit = TwoPhase<Resources, Brief>;

/// A node of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    overlay: Overlay,
    /// Whether the recipe wants to know of every change of the overlay; here, so that a shuffle need not look there.
    follows_overlay: bool,
    /// All that has to do with jobs; apart, so that a node that only gossips is small.
    work: Option<Box<Work>>,
}

impl Layer for Node {
    type Command = Command;
    type Message = Message;
    type Timer = Timer;
    type Record = Record;
    type Action = Action;
    type Outcome = Outcome;
    type Event = Event;
}

impl Protocol for Node {
    type Config = Config;

    fn restore(config: &Config, me: NodeId, records: impl Iterator<Item = Record>) -> Node {
        let mut overlay = match &config.overlay {
            overlay::Config::Cyclon(config) => {
                Overlay::Cyclon(Cyclon::restore(config, me, std::iter::empty()))
            }
            overlay::Config::BlatantS(config) => {
                Overlay::BlatantS(Box::new(BlatantS::restore(config, me, std::iter::empty())))
            }
            overlay::Config::Can(can) => {
                let machine = config.work.as_ref().map(|work| &work.machine);
                let point = machine.map(|machine| Can::point_of(can, me, machine));
                let setup = can::Setup { config: *can, point };
                Overlay::Can(Box::new(Can::restore(&setup, me, std::iter::empty())))
            }
        };
        let mut work = config.work.as_ref().map(|work| Box::new(Work::restore(work, me, records)));
        if let (Some(work), overlay::Config::Can(can)) = (&mut work, &config.overlay) {
            work.recipe.beside(can, me);
        }
        let mut follows_overlay = false;
        match work.as_ref().map(|work| &work.recipe) {
            Some(Recipe::Asap(asap)) => {
                follows_overlay = asap.follows_overlay();
                if asap.counts_holders() {
                    overlay.count_holders();
                }
            }
            Some(Recipe::Sample(_) | Recipe::Aria(_) | Recipe::TriPronged(_) | Recipe::Proactive(_))
            | None => {}
        }
        Node { overlay, follows_overlay, work }
    }

    fn handle(&mut self, input: Input<Node>, ctx: &mut Ctx<'_, Node>) {
        match input {
            Input::Boot => {
                self.boot_overlay(ctx);
                self.boot_commit(ctx);
                self.boot_recipe(ctx);
                self.boot_runner(ctx);
                self.boot_handover(ctx);
                self.boot_owner(ctx);
                self.tell_aria(|aria, _, ctx| aria.begin(ctx), ctx);
            }
            Input::Command(Command::Join(introducer)) => {
                self.join(introducer, ctx);
            }
            Input::Command(Command::Meet(nodes)) => {
                self.meet(nodes, ctx);
            }
            Input::Command(Command::Measured(node, round_trip)) => {
                self.tell_proactive(|proactive, _, _| proactive.measured(node, round_trip), ctx);
            }
            Input::Command(Command::Gone(node)) => {
                self.on_silent(node, ctx);
                self.tell_proactive(|proactive, _, _| proactive.gone(node), ctx);
            }
            Input::Command(Command::Settle(place)) => self.take_place(*place, ctx),
            Input::Command(Command::Submit(envelope)) => self.submit(envelope, &[], ctx),
            Input::Command(Command::SubmitAfter(envelope, after)) => self.submit(envelope, &after, ctx),
            Input::Command(Command::Cancel(job)) => self.cancel(job, ctx),
            Input::Command(Command::Hold(job)) => self.hold(job, ctx),
            Input::Command(Command::Release(job)) => self.release(job, ctx),
            Input::Command(Command::Drain) => self.drain(ctx),
            Input::Command(Command::Leave) => self.leave(ctx),
            Input::Message { from, message } => self.on_message(from, message, ctx),
            Input::Timer(timer) => self.on_timer(timer, ctx),
            Input::Done(Outcome(task, exit, usage)) => self.on_exit(task, exit, usage, ctx),
        }
    }

    fn glance(&self) -> u64 {
        let overlay = match &self.overlay {
            Overlay::Cyclon(cyclon) => cyclon.glance(),
            Overlay::BlatantS(blatant) => blatant.degree() as u64,
            Overlay::Can(can) => can.glance(),
        };
        overlay ^ self.work.as_ref().map_or(0, |work| work.glance())
    }
}

impl Node {
    /// Who is known.
    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// What is reserved here, and what this node coordinates; none if it takes no jobs.
    pub fn commit(&self) -> Option<&Commit> {
        self.work.as_ref().map(|work| &work.commit)
    }

    /// The jobs that this node owns.
    pub fn owned(&self) -> impl Iterator<Item = (JobId, &Owned)> {
        self.work.iter().flat_map(|work| work.owned.iter().map(|(&job, owned)| (job, &**owned)))
    }

    /// A job that this node owns.
    pub fn job(&self, job: JobId) -> Option<&Owned> {
        self.work.as_ref()?.owned.get(&job).map(|owned| &**owned)
    }

    /// What has become of a task of this node.
    pub fn task(&self, task: Task) -> Option<TaskState> {
        self.work.as_ref()?.tasks.get(&task).map(|running| running.state)
    }

    /// Whose a task of this node is, as long as it is known here.
    pub fn owner_of(&self, task: Task) -> Option<NodeId> {
        self.work.as_ref()?.tasks.get(&task).map(runner::Running::owner)
    }

    /// The tasks of this node, and what has become of them.
    pub fn tasks(&self) -> impl Iterator<Item = (Task, TaskState)> {
        self.work.iter().flat_map(|work| work.tasks.iter().map(|(&task, running)| (task, running.state)))
    }

    /// The schedules that this node has carried in this life, if it follows the recipe `asap`.
    pub fn schedules_carried(&self) -> Option<Tally> {
        match &self.work.as_ref()?.recipe {
            Recipe::Asap(asap) => Some(asap.tally()),
            Recipe::Sample(_) | Recipe::Aria(_) | Recipe::TriPronged(_) | Recipe::Proactive(_) => None,
        }
    }

    /// Whom this node watches, and for which job.
    pub fn watches(&self) -> impl Iterator<Item = (NodeId, JobId)> {
        self.work.iter().flat_map(|work| {
            let heartbeat = &work.heartbeat;
            heartbeat.watched().flat_map(|node| heartbeat.reasons(node).map(move |&job| (node, job)))
        })
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Node>) {
        let message = match message {
            Message::Overlay(message) => {
                self.tell_cyclon(Input::Message { from, message }, ctx);
                return;
            }
            Message::BlatantS(message) => {
                self.tell_blatant_s(Input::Message { from, message }, ctx);
                return;
            }
            Message::Can(message) => {
                self.tell_can(Input::Message { from, message }, ctx);
                return;
            }
            Message::Secondary(message) => {
                self.tell_secondary(Input::Message { from, message }, ctx);
                return;
            }
            message => message,
        };
        let Some(work) = &mut self.work else { return };
        let heard = ctx.layer(|ctx| work.heartbeat.heard(from, ctx));
        self.on_heartbeat(heard, ctx);
        if self.refuses(from, &message, ctx) || self.denies(from, &message, ctx) {
            return;
        }
        match message {
            Message::Overlay(_) | Message::BlatantS(_) | Message::Can(_) | Message::Secondary(_) => {}
            Message::Commit(message) => {
                if let two_phase::Message::Confirmed { job, epoch } = message {
                    self.note_running(from, job, epoch, ctx);
                }
                if let two_phase::Message::Release { job, upto } = message {
                    self.release_rider(from, job, upto, ctx);
                }
                self.on_commit_message(from, message, ctx);
            }
            Message::Heartbeat(message) => {
                self.tell_heartbeat(Input::Message { from, message }, ctx);
                if matches!(message, heartbeat::Message::Ping(_)) {
                    self.tell_all(from, ctx);
                }
            }
            Message::Sample(message) => self.tell_sample(Input::Message { from, message }, ctx),
            Message::Asap(message) => self
                .tell_asap(|asap, here, ctx| asap.handle(Input::Message { from, message }, here, ctx), ctx),
            Message::Aria(message) => {
                self.heard_of_task(from, &message, ctx);
                self.tell_aria(
                    |aria, here, ctx| aria.handle(Input::Message { from, message }, here, ctx),
                    ctx,
                );
            }
            Message::TriPronged(message) => self.tell_prongs(
                |prongs, here, ctx| prongs.handle(Input::Message { from, message }, here, ctx),
                ctx,
            ),
            Message::Proactive(message) => self.tell_proactive(
                |proactive, here, ctx| proactive.handle(Input::Message { from, message }, here, ctx),
                ctx,
            ),
            Message::Job(JobMessage::Started(task, at)) => self.on_started(from, task, at, ctx),
            Message::Job(JobMessage::Ended(task, exit, usage)) => self.on_ended(from, task, exit, usage, ctx),
            Message::Job(JobMessage::Noted(task)) => self.on_noted(from, task, ctx),
            Message::Job(JobMessage::Inquire(task)) => self.on_inquire(from, task, ctx),
            Message::Job(JobMessage::Sooner(task)) => self.on_sooner(from, task, ctx),
            Message::Job(JobMessage::Go(task)) => self.on_go(from, task, ctx),
            Message::Job(JobMessage::Await(job)) => self.on_await(from, job, ctx),
            Message::Job(JobMessage::Over(job, end)) => self.on_over(from, job, end, ctx),
            Message::Job(JobMessage::Denied(job, epoch, why)) => self.on_denied(from, job, epoch, why, ctx),
            Message::Job(JobMessage::Moved(job, to)) => self.on_moved(from, job, to, ctx),
            Message::HandOver(message) => self.on_hand_over(from, message, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Ctx<'_, Node>) {
        match timer {
            Timer::Overlay(timer) => self.tell_cyclon(Input::Timer(timer), ctx),
            Timer::BlatantS(timer) => self.tell_blatant_s(Input::Timer(timer), ctx),
            Timer::Can(timer) => self.tell_can(Input::Timer(timer), ctx),
            Timer::Secondary(timer) => self.tell_secondary(Input::Timer(timer), ctx),
            Timer::Commit(timer) => self.tell_commit(Input::Timer(timer), ctx),
            Timer::Heartbeat(timer) => self.tell_heartbeat(Input::Timer(timer), ctx),
            Timer::Sample(timer) => self.tell_sample(Input::Timer(timer), ctx),
            Timer::Asap(timer) => {
                self.tell_asap(|asap, here, ctx| asap.handle(Input::Timer(timer), here, ctx), ctx)
            }
            Timer::Aria(timer) => {
                self.tell_aria(|aria, here, ctx| aria.handle(Input::Timer(timer), here, ctx), ctx)
            }
            Timer::TriPronged(timer) => {
                self.tell_prongs(|prongs, here, ctx| prongs.handle(Input::Timer(timer), here, ctx), ctx)
            }
            Timer::Proactive(timer) => self
                .tell_proactive(|proactive, here, ctx| proactive.handle(Input::Timer(timer), here, ctx), ctx),
            Timer::Again(job) => self.on_again(job, ctx),
            Timer::Await(job, question) => self.ask_after(job, question, ctx),
            Timer::Launch(array) => self.launch(array, ctx),
            Timer::Overdue(job, epoch, reminder) => self.on_overdue(job, epoch, reminder, ctx),
            Timer::Late(job, epoch) => self.on_late(job, epoch, ctx),
            Timer::AnyLate => self.on_any_late(ctx),
            Timer::Improve => self.on_improve(None, ctx),
            Timer::ImproveAfter(start, job) => self.on_improve(Some((start, job)), ctx),
            Timer::Look(job) => self.on_look(job, ctx),
            Timer::Hand(job, reminder) => self.on_hand_time(job, reminder, ctx),
            Timer::Ready(job, question) => self.ask_whether_ours(job, question, ctx),
            Timer::Start(task) => self.on_start(task, ctx),
            Timer::AnyStart => self.on_any_start(ctx),
            Timer::Wanted(task) => self.on_wanted(task, ctx),
            Timer::Tell(task, reminder) => self.on_tell(task, reminder, ctx),
            Timer::Trim(task) => self.on_trim(task, ctx),
            Timer::Begun(task) => self.on_begun(task, ctx),
        }
    }

    fn tell_cyclon(&mut self, input: Input<Cyclon>, ctx: &mut Ctx<'_, Node>) {
        let Overlay::Cyclon(cyclon) = &mut self.overlay else { return };
        for event in ctx.layer(|ctx| cyclon.handle(input, ctx)) {
            let cyclon::Event::Silent(node) = event;
            ctx.report(Event::Silent(node));
        }
        self.overlay_changed(ctx);
    }

    fn tell_blatant_s(&mut self, input: Input<BlatantS>, ctx: &mut Ctx<'_, Node>) {
        let Overlay::BlatantS(blatant) = &mut self.overlay else { return };
        for event in ctx.layer(|ctx| blatant.handle(input, ctx)) {
            let blatant_s::Event::Silent(node) = event;
            ctx.report(Event::Silent(node));
        }
        self.overlay_changed(ctx);
    }

    fn boot_overlay(&mut self, ctx: &mut Ctx<'_, Node>) {
        match &self.overlay {
            Overlay::Cyclon(_) => self.tell_cyclon(Input::Boot, ctx),
            Overlay::BlatantS(_) => self.tell_blatant_s(Input::Boot, ctx),
            Overlay::Can(_) => {
                self.tell_can(Input::Boot, ctx);
                self.tell_secondary(Input::Boot, ctx);
            }
        }
    }

    /// A node that does not answer makes room for another in the cache.
    fn on_silent(&mut self, node: NodeId, ctx: &mut Ctx<'_, Node>) {
        if self.overlay.neighbours().any(|neighbour| neighbour == node) {
            match &mut self.overlay {
                Overlay::Cyclon(cyclon) => cyclon.forget(node),
                Overlay::BlatantS(blatant) => {
                    let heard = ctx.layer(|ctx| blatant.forget(node, ctx));
                    assert!(heard.is_empty(), "who says that a node is silent need not hear it");
                }
                // A zone has an owner until heartbeats say otherwise.
                Overlay::Can(_) => return,
            }
            ctx.report(Event::Silent(node));
            self.overlay_changed(ctx);
        }
    }

    fn tell_commit(&mut self, input: Input<Commit>, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let (version, promised) = (work.commit.calendar().version(), work.commit.promised());
        let heard = ctx.layer(|ctx| work.commit.handle(input, ctx));
        let room = work.commit.promised() < promised;
        if work.commit.calendar().version() != version {
            self.calendar_changed(ctx);
        }
        for event in heard {
            self.on_commit(event, ctx);
        }
        if room {
            self.offer_room(ctx);
        }
    }

    fn on_commit(&mut self, event: two_phase::Event, ctx: &mut Ctx<'_, Node>) {
        match event {
            two_phase::Event::Placed(job, placement) => self.on_placed(job, placement, ctx),
            two_phase::Event::Failed { job, why, .. } => self.on_failed(job, why, ctx),
            two_phase::Event::Unplaced { job, epoch, by } => self.on_unplaced(job, epoch, by, ctx),
            two_phase::Event::Confirmed(job, epoch) => self.on_confirmed(job, epoch, ctx),
            two_phase::Event::Released(job, epoch) => self.on_released(job, epoch, ctx),
        }
    }

    fn boot_commit(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let mut unready = BTreeSet::new();
        for event in ctx.layer(|ctx| work.commit.handle(Input::Boot, ctx)) {
            match event {
                // There may be very many: they are offered what room there is together.
                two_phase::Event::Confirmed(job, epoch) => {
                    if !self.expect(job, epoch, ctx) {
                        unready.insert(calendar::Key { job, epoch });
                    }
                }
                // The owner is about to look for a place for every job that has none, and must not do so twice.
                two_phase::Event::Unplaced { job, epoch, by } => {
                    if self.unended(job).is_some() {
                        ctx.report(Event::Unplaced { job, epoch, by });
                    }
                }
                event => self.on_commit(event, ctx),
            }
        }
        self.offer_again(&unready, ctx);
    }

    fn tell_heartbeat(&mut self, input: Input<Heartbeat<JobId>>, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let heard = ctx.layer(|ctx| work.heartbeat.handle(input, ctx));
        self.on_heartbeat(heard, ctx);
    }

    fn on_heartbeat(&mut self, heard: Vec<heartbeat::Event<JobId>>, ctx: &mut Ctx<'_, Node>) {
        for event in heard {
            match event {
                heartbeat::Event::Suspected { node, .. } => self.on_suspected(node, ctx),
                heartbeat::Event::Back { node, .. } => ctx.report(Event::Back(node)),
                heartbeat::Event::Refused { node, .. } => ctx.report(Event::Unwatched(node)),
                heartbeat::Event::Slept { late_by } => ctx.report(Event::Slept(late_by)),
            }
        }
    }

    fn plan(&mut self, command: scheduling::Command, ctx: &mut Ctx<'_, Node>) {
        match self.work.as_ref().map(|work| &work.recipe) {
            Some(Recipe::Sample(_)) => self.tell_sample(Input::Command(command), ctx),
            Some(Recipe::Asap(_)) => {
                self.tell_asap(|asap, here, ctx| asap.handle(Input::Command(command), here, ctx), ctx);
            }
            Some(Recipe::Aria(_) | Recipe::TriPronged(_)) => self.plan_by_aria(command, ctx),
            Some(Recipe::Proactive(_)) => self.tell_proactive(
                |proactive, here, ctx| proactive.handle(Input::Command(command), here, ctx),
                ctx,
            ),
            None => {}
        }
    }

    fn boot_recipe(&mut self, ctx: &mut Ctx<'_, Node>) {
        match self.work.as_ref().map(|work| &work.recipe) {
            Some(Recipe::Sample(_)) => self.tell_sample(Input::Boot, ctx),
            Some(Recipe::Asap(_)) => {
                self.tell_asap(|asap, here, ctx| asap.handle(Input::Boot, here, ctx), ctx)
            }
            Some(Recipe::Aria(_)) => self.boot_aria(ctx),
            Some(Recipe::TriPronged(_)) => {
                self.boot_aria(ctx);
                self.tell_prongs(|prongs, here, ctx| prongs.handle(Input::Boot, here, ctx), ctx);
            }
            Some(Recipe::Proactive(_)) => {
                self.tell_proactive(|proactive, here, ctx| proactive.handle(Input::Boot, here, ctx), ctx)
            }
            None => {}
        }
    }

    fn overlay_changed(&mut self, ctx: &mut Ctx<'_, Node>) {
        if !self.follows_overlay {
            return;
        }
        match self.work.as_ref().map(|work| &work.recipe) {
            Some(Recipe::Asap(_)) => self.tell_asap(Asap::overlay_changed, ctx),
            Some(Recipe::Sample(_) | Recipe::Aria(_) | Recipe::TriPronged(_) | Recipe::Proactive(_))
            | None => {}
        }
    }

    fn calendar_changed(&mut self, ctx: &mut Ctx<'_, Node>) {
        match self.work.as_ref().map(|work| &work.recipe) {
            Some(Recipe::Asap(_)) => self.tell_asap(Asap::calendar_changed, ctx),
            Some(Recipe::Proactive(_)) => self.tell_proactive(Proactive::calendar_changed, ctx),
            Some(Recipe::Sample(_) | Recipe::Aria(_) | Recipe::TriPronged(_)) | None => {}
        }
    }

    fn tell_sample(&mut self, input: Input<Sample>, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let Work { recipe, commit, machine, .. } = work.as_mut();
        let here = Here { overlay: &self.overlay, calendar: commit.calendar(), machine };
        let Recipe::Sample(sample) = recipe else { return };
        let heard = ctx.layer(|ctx| sample.handle(input, &here, ctx));
        self.on_plan(heard, ctx);
    }

    fn tell_asap(
        &mut self,
        tell: impl FnOnce(&mut Asap, &Here<'_>, &mut Ctx<'_, Asap>),
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(work) = &mut self.work else { return };
        let Work { recipe, commit, machine, .. } = work.as_mut();
        let here = Here { overlay: &self.overlay, calendar: commit.calendar(), machine };
        let Recipe::Asap(asap) = recipe else { return };
        let heard = ctx.layer(|ctx| tell(asap, &here, ctx));
        self.on_plan(heard, ctx);
    }

    fn on_plan(&mut self, heard: Vec<scheduling::Event>, ctx: &mut Ctx<'_, Node>) {
        for event in heard {
            match event {
                scheduling::Event::Propose { job, start, nodes } => self.on_propose(job, start, nodes, ctx),
                scheduling::Event::Stuck { job, why } => self.on_stuck(job, why, ctx),
                scheduling::Event::GiveUp { job, why } => self.on_given_up(job, why, ctx),
                scheduling::Event::Silent(node) => self.on_silent(node, ctx),
            }
        }
    }
}

/// What the layers without records and actions ask for, wrapped.
macro_rules! hosts_without_records {
    ($layer:ty, $message:ident, $timer:ident) => {
        impl Hosts<$layer> for Node {
            fn message(message: <$layer as Layer>::Message) -> Message {
                Message::$message(message)
            }

            fn timer(timer: <$layer as Layer>::Timer) -> Timer {
                Timer::$timer(timer)
            }

            fn record(never: Never) -> Record {
                match never {}
            }

            fn key(never: Never) -> Key {
                match never {}
            }

            fn action(never: Never) -> Action {
                match never {}
            }
        }
    };
}

hosts_without_records!(Cyclon, Overlay, Overlay);
hosts_without_records!(BlatantS, BlatantS, BlatantS);
hosts_without_records!(Can, Can, Can);
hosts_without_records!(Secondary, Secondary, Secondary);
hosts_without_records!(Heartbeat<JobId>, Heartbeat, Heartbeat);
hosts_without_records!(Sample, Sample, Sample);
hosts_without_records!(Asap, Asap, Asap);
hosts_without_records!(TriPronged, TriPronged, TriPronged);
hosts_without_records!(Proactive, Proactive, Proactive);

impl Hosts<Commit> for Node {
    fn message(message: two_phase::Message<Resources, Brief>) -> Message {
        Message::Commit(message)
    }

    fn timer(timer: two_phase::Timer) -> Timer {
        Timer::Commit(timer)
    }

    fn record(record: two_phase::Record<Resources, Brief>) -> Record {
        Record::Commit(record)
    }

    fn key(key: two_phase::Key) -> Key {
        Key::Commit(key)
    }

    fn action(never: Never) -> Action {
        match never {}
    }
}
