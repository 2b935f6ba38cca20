//! Jobs through nodes of a scripted world. Large worlds with faults are the simulator's.

mod leaving;
mod restart;

use shoal_model::{Envelope, Job, Machine, NodeId, Nonce, Resources, Size, Span, Time};

use shoal_model::envelope::Pass;

use super::*;
use crate::protocol::Record as _;
use crate::scheduling::aria;
use crate::shared::Shared;
use crate::testing::World;

const A_MOMENT: Span = Span::from_millis(1);

fn config() -> Config {
    Config {
        work: Some(Box::new(config::Work {
            machine: Machine::with_capacity(Resources::cores(1)),
            recipe: config::Recipe::Sample(Default::default()),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_hours(1),
            eager: false,
            gate: Default::default(),
        })),
        ..Config::default()
    }
}

fn envelope(job: Job) -> Shared<Envelope> {
    Shared::new(Envelope::new(job, Nonce([1; 16])).unwrap())
}

/// How often a node said something of this kind.
fn said(world: &World<Node>, kind: &str) -> usize {
    let kind = |message: &Message| crate::protocol::Message::kind(message) == kind_number(kind);
    world.sent().iter().filter(|sent| kind(&sent.message)).count()
}

fn kind_number(kind: &str) -> usize {
    let kinds = <Message as crate::protocol::Message>::KINDS;
    kinds.iter().position(|&known| known == kind).expect("such a kind")
}

#[test]
fn owner_that_crashed_while_placing_makes_one_attempt_after_its_restart() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    world.command(NodeId(1), Command::Submit(envelope(Job::command(["true"]))));
    assert_eq!(said(&world, "prepare"), 1);
    world.crash(NodeId(1));
    world.restart(NodeId(1));
    assert_eq!(said(&world, "prepare"), 2, "{}", world.story());
}

#[test]
fn job_that_comes_again_with_another_pass_keeps_that_also_after_a_crash() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    let later = Some(world.now() + Span::from_hours(100));
    let plain = envelope(Job { begin: later, ..Job::command(["true"]) });
    let with = |bytes: &[u8]| Shared::new((*plain).clone().with_pass(Pass::new(bytes).unwrap()));
    let pass = |world: &World<Node>| {
        let owned = world.core(NodeId(1)).job(plain.id()).unwrap();
        owned.envelope().pass().map(|pass| pass.as_bytes().to_vec())
    };
    world.command(NodeId(1), Command::Submit(with(b"old")));
    assert_eq!(pass(&world).as_deref(), Some(&b"old"[..]));
    world.command(NodeId(1), Command::Submit(with(b"new")));
    world.command(NodeId(1), Command::Submit(plain.clone()));
    assert_eq!(pass(&world).as_deref(), Some(&b"new"[..]));
    world.crash(NodeId(1));
    world.restart(NodeId(1));
    assert_eq!(pass(&world).as_deref(), Some(&b"new"[..]));
}

#[test]
fn job_that_waits_with_a_place_takes_no_room_for_what_few_jobs_have() {
    let mut config = config();
    config.work.as_mut().unwrap().eager = true;
    let mut world = World::<Node>::new(1, config, A_MOMENT);
    let later = Some(world.now() + Span::from_hours(1));
    let job = envelope(Job { begin: later, ..Job::command(["true"]) });
    world.command(NodeId(1), Command::Submit(job.clone()));
    world.run_for(Span::from_mins(10));
    let owned = world.core(NodeId(1)).job(job.id()).unwrap();
    assert!(matches!(owned.phase(), Phase::Placed { .. }), "{}", world.story());
    assert!(owned.is_tidy(), "{owned:?}");
}

#[test]
fn grid_of_one_places_a_job_however_long_its_disk_takes() {
    for (delay_ms, prepares) in [(1, 1), (4, 1), (12, 3), (100, 6)] {
        let mut world = World::<Node>::new(1, config(), Span::from_millis(delay_ms));
        world.command(NodeId(1), Command::Submit(envelope(Job::command(["true"]))));
        world.run_for(Span::from_secs(2));
        let placed = world.reports().iter().any(|(_, _, event)| matches!(event, Event::Placed(..)));
        assert!(placed, "{}", world.story());
        assert_eq!(said(&world, "prepare"), prepares, "after {delay_ms} ms");
    }
}

#[test]
fn job_starts_wherever_its_owner_crashed_while_placing_it_on_itself() {
    for crash_ms in 0..8 {
        let mut world = World::<Node>::new(1, config(), A_MOMENT);
        world.command(NodeId(1), Command::Submit(envelope(Job::command(["true"]))));
        world.run_for(Span::from_millis(crash_ms));
        if world.story().contains("does Start") {
            break;
        }
        world.crash(NodeId(1));
        world.restart(NodeId(1));
        world.run_for(Span::from_secs(60));
        assert!(world.story().contains("does Start"), "crash after {crash_ms} ms\n{}", world.story());
    }
}

#[test]
fn job_that_lacks_nodes_looks_again_as_soon_as_somebody_is_met() {
    let mut world = World::<Node>::new(2, config(), A_MOMENT);
    let wide = Job { nodes: 2.try_into().unwrap(), ..Job::command(["true"]) };
    world.command(NodeId(1), Command::Submit(envelope(wide)));
    world.run_for(Span::from_secs(1));
    assert_eq!(said(&world, "prepare"), 0);
    world.command(NodeId(1), Command::Meet([NodeId(2)].into()));
    world.run_for(Span::from_secs(1));
    assert!(world.story().contains("does Start"), "{}", world.story());
}

#[test]
fn meeting_who_is_known_already_makes_nobody_look_again() {
    let mut world = World::<Node>::new(2, config(), A_MOMENT);
    world.command(NodeId(1), Command::Meet([NodeId(2)].into()));
    let wide = Job { nodes: 3.try_into().unwrap(), ..Job::command(["true"]) };
    world.command(NodeId(1), Command::Submit(envelope(wide)));
    world.run_for(Span::from_secs(1));
    let asked = said(&world, "probe");
    for _ in 0..10 {
        world.command(NodeId(1), Command::Meet([NodeId(2)].into()));
        world.run_for(Span::from_millis(300));
    }
    assert_eq!(said(&world, "probe"), asked, "{}", world.story());
}

/// Node 2 has a job placed on node 1, as far as that lets it.
fn place(world: &mut World<Node>, prepare: two_phase::Prepare<Resources>, brief: Shared<Brief>) {
    let (job, epoch) = (prepare.job, prepare.epoch);
    for message in [
        two_phase::Message::Prepare(Box::new(prepare)),
        two_phase::Message::Commit { job, epoch, brief },
        two_phase::Message::Confirm { job, epoch },
    ] {
        world.tell(NodeId(1), Input::Message { from: NodeId(2), message: Message::Commit(message) });
    }
}

#[test]
fn time_is_not_given_for_a_brief_of_another_job_or_for_other_nodes() {
    let (wanted, other) = (envelope(Job::command(["true"])), envelope(Job::command(["false"])));
    let me = NodeId(1);
    let briefs = [(&wanted, vec![NodeId(2), me], 1), (&other, vec![me], 0), (&wanted, vec![NodeId(2)], 0)];
    for (envelope, nodes, locks) in briefs {
        let mut world = World::<Node>::new(2, config(), A_MOMENT);
        let (job, epoch) = (wanted.id(), shoal_model::Epoch(1));
        let (start, span) = (Time::from_secs(60), Span::from_secs(60));
        let prepare = two_phase::Prepare { job, epoch, start, span, amount: Resources::cores(1) };
        let brief =
            Shared::new(Brief { envelope: envelope.clone(), nodes: nodes.into(), index: None, riders: None });
        place(&mut world, prepare, brief);
        let commit = world.core(me).commit().expect("the node takes jobs");
        assert_eq!(commit.locks().count(), locks, "{}", world.story());
        assert_eq!(world.core(me).tasks().count(), locks);
    }
}

/// A coordinator that lies, or whose picture of the machine is old, cannot have it run what its owner does not want.
#[test]
fn time_is_not_given_for_what_the_owner_or_the_job_itself_excludes() {
    let jobs = [
        (Job { organisation: "physics".parse().ok(), ..Job::command(["true"]) }, 1),
        (Job { organisation: "biology".parse().ok(), ..Job::command(["true"]) }, 0),
        (Job { constraint: "cores >= 1".parse().ok(), ..Job::command(["true"]) }, 1),
        (Job { constraint: "memory >= 64GiB".parse().ok(), ..Job::command(["true"]) }, 0),
    ];
    for (job, locks) in jobs {
        let mut config = config();
        config.work.as_mut().expect("it takes jobs").machine.refuses.insert("biology".parse().unwrap());
        let mut world = World::<Node>::new(2, config, A_MOMENT);
        let (me, envelope, epoch) = (NodeId(1), envelope(job), shoal_model::Epoch(1));
        let (start, span) = (Time::from_secs(60), Span::from_secs(60));
        let job = envelope.id();
        let prepare = two_phase::Prepare { job, epoch, start, span, amount: Resources::cores(1) };
        let brief = Shared::new(Brief { envelope, nodes: vec![me].into(), index: None, riders: None });
        place(&mut world, prepare, brief);
        let commit = world.core(me).commit().expect("the node takes jobs");
        assert_eq!(commit.locks().count(), locks, "{}", world.story());
        assert_eq!(commit.calendar().len(), locks, "nothing is held for it either");
    }
}

/// Denies nobody: what is not as it was signed is denied all the same.
#[derive(Debug)]
struct Everybody;

impl Judge for Everybody {
    fn judge(&self, _ask: &Ask<'_>) -> Result<(), Denial> {
        Ok(())
    }
}

fn guarded(recipe: config::Recipe) -> Config {
    let mut config = config();
    let work = config.work.as_mut().expect("it takes jobs");
    (work.gate, work.recipe) = (Gate::with(std::sync::Arc::new(Everybody)), recipe);
    Config { overlay: recipe.usual_overlay(), ..config }
}

fn denials(world: &World<Node>) -> usize {
    let denied =
        Message::Job(JobMessage::Denied(envelope(signed()).id(), shoal_model::Epoch(1), Denial::NotAsSigned));
    world.sent().iter().filter(|sent| sent.message == denied).count()
}

/// A job of one core for a minute.
fn signed() -> Job {
    Job { limit: Some(Span::from_mins(1)), ..Job::command(["true"]) }
}

#[test]
fn time_is_not_given_beyond_what_was_signed() {
    let minute = Span::from_mins(1);
    for (span, cores, locks) in [(minute, 1, 1), (minute * 2, 1, 0), (minute, 0, 0)] {
        let mut world = World::<Node>::new(2, guarded(config::Recipe::Sample(Default::default())), A_MOMENT);
        let (me, envelope, epoch) = (NodeId(1), envelope(signed()), shoal_model::Epoch(1));
        let (job, start, amount) = (envelope.id(), Time::from_secs(60), Resources::cores(cores));
        let prepare = two_phase::Prepare { job, epoch, start, span, amount };
        place(
            &mut world,
            prepare,
            Shared::new(Brief { envelope, nodes: vec![me].into(), index: None, riders: None }),
        );
        let commit = world.core(me).commit().expect("the node takes jobs");
        assert_eq!((commit.locks().count(), denials(&world)), (locks, 1 - locks), "{}", world.story());
    }
}

/// Node 2 assigns a job to node 1.
fn assign(world: &mut World<Node>, limit: Span) {
    let (envelope, epoch) = (envelope(signed()), shoal_model::Epoch(1));
    let job = envelope.id();
    let brief = Shared::new(Brief { envelope, nodes: vec![NodeId(1)].into(), index: None, riders: None });
    let message = Message::Aria(aria::Message::Assign { job, epoch, brief, limit });
    world.tell(NodeId(1), Input::Message { from: NodeId(2), message });
}

#[test]
fn job_is_not_taken_into_a_queue_for_longer_than_was_signed() {
    let minute = Span::from_mins(1);
    for (limit, denied) in [(minute, 0), (minute * 2, 1)] {
        let mut world = World::<Node>::new(2, guarded(config::Recipe::Aria(Default::default())), A_MOMENT);
        assign(&mut world, limit);
        assert_eq!((denials(&world), said(&world, "assigned")), (denied, 1 - denied), "{}", world.story());
    }
}

#[test]
fn draining_node_takes_no_assignment() {
    for drains in [false, true] {
        let mut world = World::<Node>::new(2, guarded(config::Recipe::Aria(Default::default())), A_MOMENT);
        if drains {
            world.command(NodeId(1), Command::Drain);
        }
        assign(&mut world, Span::from_mins(1));
        let (taken, refused) = (said(&world, "assigned"), said(&world, "denied"));
        assert_eq!((taken, refused), (usize::from(!drains), usize::from(drains)), "{}", world.story());
    }
}

#[test]
fn cancelled_job_is_let_go_even_if_its_owner_crashed_before_it_could_say_so() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    let begin = Some(Time::from_secs(600));
    let job = envelope(Job { begin, ..Job::command(["true"]) });
    world.command(NodeId(1), Command::Submit(job.clone()));
    world.run_for(Span::from_secs(1));
    let placed =
        world.saved(NodeId(1)).find(|record| record.key() == Key::Commit(two_phase::Key::Tenure(job.id())));
    let placed = placed.expect("the job is placed").clone();
    world.command(NodeId(1), Command::Cancel(job.id()));
    world.crash(NodeId(1));
    world.unsave(NodeId(1), placed);
    world.restart(NodeId(1));

    world.run_for(Span::from_hours(1));
    assert!(!world.story().contains("does Start"), "{}", world.story());
    let node = world.core(NodeId(1)).commit().expect("the node takes jobs");
    assert_eq!((node.locks().count(), node.jobs().count()), (0, 0));
    assert_eq!(world.saved(NodeId(1)).count(), 1, "of the job only its end is left");
}

#[test]
fn placement_that_a_crash_kept_from_being_told_is_told_after_the_restart() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    let begin = Some(Time::from_secs(600));
    world.command(NodeId(1), Command::Submit(envelope(Job { begin, ..Job::command(["true"]) })));
    world.run_for(Span::from_secs(1));
    let told = |world: &World<Node>| {
        let placed = world.reports().iter().filter_map(|(_, _, event)| match event {
            Event::Placed(_, placement) => Some(placement.clone()),
            _ => None,
        });
        placed.collect::<Vec<_>>()
    };
    let before = told(&world);
    world.crash(NodeId(1));
    world.restart(NodeId(1));
    assert_eq!(told(&world), [before.clone(), before].concat(), "{}", world.story());
}

const JOB_START: Time = Time::from_secs(60);
const JOB_SPAN: Span = Span::from_secs(60);

/// Node 2 has a job placed on node 1 up to the commit, and says no more.
fn commit(world: &mut World<Node>, job: &Shared<Envelope>, start: Time) {
    let (id, epoch) = (job.id(), shoal_model::Epoch(1));
    let prepare = two_phase::Prepare { job: id, epoch, start, span: JOB_SPAN, amount: Resources::cores(1) };
    let brief = Shared::new(Brief {
        envelope: job.clone(),
        nodes: vec![NodeId(1)].into(),
        index: None,
        riders: None,
    });
    for message in
        [two_phase::Message::Prepare(Box::new(prepare)), two_phase::Message::Commit { job: id, epoch, brief }]
    {
        world.tell(NodeId(1), Input::Message { from: NodeId(2), message: Message::Commit(message) });
    }
}

fn confirm(world: &mut World<Node>, job: &Shared<Envelope>) {
    let message = two_phase::Message::Confirm { job: job.id(), epoch: shoal_model::Epoch(1) };
    world.tell(NodeId(1), Input::Message { from: NodeId(2), message: Message::Commit(message) });
}

fn long_job(name: &str) -> Shared<Envelope> {
    envelope(Job::command(["sleep", name]))
}

/// Two nodes that do not hear each other, and a job that the second has committed on the first.
fn committed() -> (World<Node>, Shared<Envelope>) {
    let mut world = World::<Node>::new(2, config(), A_MOMENT);
    world.network(|_| Vec::new());
    world.run_for(Span::from_secs(40));
    let job = long_job("1");
    commit(&mut world, &job, JOB_START);
    (world, job)
}

#[test]
fn every_task_starts_at_its_time_in_whichever_order_they_were_promised_also_after_a_crash() {
    for crash in [None, Some(100), Some(300)] {
        let mut world = World::<Node>::new(2, config(), A_MOMENT);
        world.network(|_| Vec::new());
        for (start, name) in [(200, "1"), (60, "2"), (500, "3"), (280, "4"), (400, "5")] {
            let job = long_job(name);
            commit(&mut world, &job, Time::from_secs(start));
            confirm(&mut world, &job);
        }
        if let Some(crash) = crash {
            world.run_until(Time::from_secs(crash));
            world.crash(NodeId(1));
            world.restart(NodeId(1));
        }
        world.run_until(Time::from_secs(600));
        let starts = world.story().lines().filter(|line| line.contains(" does Start "));
        let started: Vec<&str> = starts.filter_map(|line| line.split(' ').next()).collect();
        let expected = [60, 200, 280, 400, 500].map(|start| Time::from_secs(start).to_string());
        assert_eq!(started, expected, "{crash:?}: {}", world.story());
    }
}

#[test]
fn task_that_starts_late_has_its_whole_time_where_there_is_room() {
    let late = Span::from_secs(4);
    for (next, stop_at, short) in [(None, 124, false), (Some(124), 124, false), (Some(122), 120, true)] {
        let (mut world, job) = committed();
        if let Some(next) = next {
            commit(&mut world, &long_job("2"), Time::from_secs(next));
        }
        world.run_for(JOB_START.since(Time::from_secs(40)) + late);
        confirm(&mut world, &job);
        world.run_for(A_MOMENT);
        let stop_at = format!("stop_at: {:?}, short: {short}", Time::from_secs(stop_at));
        assert!(world.story().contains(&stop_at), "{stop_at}\n{}", world.story());
    }
}

#[test]
fn reservation_is_made_longer_once_though_a_crash_came_before_the_start() {
    let mut world = World::<Node>::new(2, config(), A_MOMENT);
    world.network(|_| Vec::new());
    let job = long_job("1");
    commit(&mut world, &job, JOB_START);
    confirm(&mut world, &job);
    for late in [2, 3] {
        world.speak(NodeId(1), |node, ctx| {
            let work = node.work.as_mut().expect("the node takes jobs");
            let by = Span::from_secs(late);
            let heard = ctx.layer(|ctx| {
                assert!(work.commit.lengthen(job.id(), shoal_model::Epoch(1), by, ctx), "there is room");
            });
            assert!(heard.is_empty());
        });
        world.crash(NodeId(1));
        world.restart(NodeId(1));
        let commit = world.core(NodeId(1)).commit().expect("the node takes jobs");
        let spans: Vec<_> = commit.locks().map(|(lock, _)| (lock.span, lock.time())).collect();
        assert_eq!(spans, [(JOB_SPAN + Span::from_secs(late), JOB_SPAN)]);
    }
}

#[test]
fn task_that_would_start_too_late_does_not() {
    let (mut world, job) = committed();
    world.run_for(Span::from_secs(20) + START_GRACE + A_MOMENT);
    confirm(&mut world, &job);
    world.run_for(A_MOMENT);
    assert!(!world.story().contains("does Start"), "{}", world.story());
    let states: Vec<_> = world.core(NodeId(1)).tasks().map(|(_, state)| state).collect();
    assert_eq!(states, [TaskState::Ended(Exit::NotStarted)]);
}

#[test]
fn task_that_its_owner_does_not_know_is_stopped_once_the_two_can_talk() {
    let (mut world, job) = committed();
    confirm(&mut world, &job);
    world.run_for(Span::from_secs(60));
    assert!(!world.story().contains("does Stop"), "{}", world.story());
    world.network(|_| vec![A_MOMENT]);
    world.run_for(WANTED_EVERY + A_MOMENT * 2);
    assert!(world.story().contains("does Stop"), "{}", world.story());
}

#[test]
fn owner_that_is_heard_of_again_is_told_at_once_what_it_has_missed() {
    let (mut world, job) = committed();
    confirm(&mut world, &job);
    world.run_for(Span::from_secs(25));
    let (task, _) = world.core(NodeId(1)).tasks().next().expect("it runs");
    world.tell(NodeId(1), Input::Done(Outcome::unmeasured(task, Exit::Lost)));
    world.run_for(Span::from_hours(1));
    let told = said(&world, "ended");
    let ping = Message::Heartbeat(heartbeat::Message::Ping(1));
    world.tell(NodeId(1), Input::Message { from: NodeId(2), message: ping.clone() });
    assert_eq!(said(&world, "ended"), told + 1);
    world.tell(NodeId(1), Input::Message { from: NodeId(3), message: ping });
    assert_eq!(said(&world, "ended"), told + 1, "others need not know");
}

/// A gang on two nodes whose tasks both run, the first node's its owner.
fn running_gang() -> (World<Node>, Task) {
    let mut world = World::<Node>::new(2, config(), A_MOMENT);
    let wide = Job { nodes: 2.try_into().unwrap(), ..Job::command(["true"]) };
    world.command(NodeId(1), Command::Meet([NodeId(2)].into()));
    world.command(NodeId(1), Command::Submit(envelope(wide)));
    world.run_for(Span::from_secs(2));
    let (task, _) = world.core(NodeId(2)).tasks().next().expect("it runs there, too");
    (world, task)
}

#[test]
fn owner_tells_once_what_a_task_took_however_often_it_hears_of_its_end() {
    let (mut world, task) = running_gang();
    let usage = Usage { user: Span::from_secs(7), memory_max: Size::from_mib(3), ..Usage::default() };
    let end = |usage| Outcome(task, Exit::Code(0), Some(Box::new(usage)));
    world.tell(NodeId(2), Input::Done(end(usage)));
    world.run_for(Span::from_secs(1));
    let again = Message::Job(JobMessage::Ended(task, Exit::Code(0), Some(Box::new(usage))));
    world.tell(NodeId(1), Input::Message { from: NodeId(2), message: again });
    world.run_for(Span::from_secs(1));
    let took = Event::Took(task, Box::new(usage));
    assert_eq!(world.reports().iter().filter(|(.., event)| *event == took).count(), 1, "{}", world.story());
}

#[test]
fn what_a_task_took_that_was_stopped_is_told_once_and_by_its_node_only() {
    let (mut world, task) = running_gang();
    world.command(NodeId(1), Command::Cancel(task.job));
    world.run_for(Span::from_secs(1));
    let usage = Usage { user: Span::from_secs(7), ..Usage::default() };
    let end = Message::Job(JobMessage::Ended(task, Exit::Signal(15), Some(Box::new(usage))));
    world.tell(NodeId(1), Input::Message { from: NodeId(1), message: end.clone() });
    let told = |world: &World<Node>| {
        let took = Event::Took(task, Box::new(usage));
        world.reports().iter().filter(|(.., event)| *event == took).count()
    };
    assert_eq!(told(&world), 0, "it is not this one's to tell");
    world.tell(NodeId(2), Input::Done(Outcome(task, Exit::Signal(15), Some(Box::new(usage)))));
    world.run_for(Span::from_secs(1));
    assert_eq!(told(&world), 1, "{}", world.story());
    world.tell(NodeId(1), Input::Message { from: NodeId(2), message: end });
    assert_eq!(told(&world), 1);
    let owned = world.core(NodeId(1)).job(task.job).expect("it is remembered");
    assert_eq!(owned.parting.len(), 1, "the other has not said anything");
}

#[test]
fn start_at_a_time_that_no_clock_shows_is_told_as_one_that_some_may() {
    let (mut world, task) = running_gang();
    let other = Task { epoch: task.epoch, ..task };
    let late = Time::NEVER;
    // The owner has heard of the real one; a crash makes it forget that, and a liar is the first to tell again.
    world.crash(NodeId(1));
    world.restart(NodeId(1));
    let message = Message::Job(JobMessage::Started(other, late));
    world.tell(NodeId(1), Input::Message { from: NodeId(2), message });
    let last = world.reports().iter().rev().find_map(|(now, _, event)| match event {
        Event::Started(of, at) if *of == task => Some((*now, *at)),
        _ => None,
    });
    let (now, at) = last.expect("it is told again");
    assert!(at <= now + Span::from_secs(5), "{at:?}");
}

#[test]
fn job_is_not_in_its_own_way_when_asap_looks_for_another_place() {
    use crate::scheduling::asap::{self, Purpose, Ticket};
    let mut config = config();
    config.work.as_mut().expect("it takes jobs").recipe = config::Recipe::Asap(Default::default());
    let mut world = World::<Node>::new(2, config, A_MOMENT);
    world.run_for(Span::from_secs(40));
    let job = long_job("1");
    commit(&mut world, &job, JOB_START);
    for (without, free) in [(Some(job.id()), true), (None, false), (Some(long_job("2").id()), false)] {
        let message = Message::Asap(asap::Message::ScheduleRequest(Ticket(7), Purpose::Search, without));
        world.tell(NodeId(1), Input::Message { from: NodeId(2), message });
        let Some(Message::Asap(asap::Message::ScheduleReply(_, schedule))) =
            world.sent().last().map(|sent| sent.message.clone())
        else {
            panic!("no schedule\n{}", world.story());
        };
        let interval = calendar::Interval::starting(JOB_START, JOB_SPAN).unwrap();
        let line = schedule.timeline();
        let against = calendar::Against::Firm;
        assert_eq!(line.free_during(interval, &Resources::cores(1), against), free, "{without:?}");
    }
}

#[test]
fn draining_node_refuses_others_and_takes_its_own() {
    let mut world = World::<Node>::new(2, config(), A_MOMENT);
    let (me, other) = (NodeId(1), NodeId(2));
    world.command(me, Command::Drain);
    let (job, epoch) = (envelope(Job::command(["false"])).id(), shoal_model::Epoch(1));
    let (start, span) = (Time::from_secs(60), Span::from_secs(60));
    let prepare = two_phase::Prepare { job, epoch, start, span, amount: Resources::cores(1) };
    let message = Message::Commit(two_phase::Message::Prepare(Box::new(prepare)));
    world.tell(me, Input::Message { from: other, message });
    let refusals = world.sent().iter().filter(|sent| {
        let refused = two_phase::Message::Vote { job, epoch, vote: two_phase::Vote::No(None) };
        matches!(&sent.message, Message::Commit(message) if *message == refused)
    });
    assert_eq!(refusals.count(), 1, "{}", world.story());
    assert_eq!(world.core(me).commit().map(|commit| commit.locks().count()), Some(0));

    world.command(me, Command::Submit(envelope(Job::command(["true"]))));
    world.run_for(Span::from_secs(2));
    assert!(world.story().contains("does Start"), "{}", world.story());
}

/// A job that brings a file of so many bytes along.
fn with_file(size: u64) -> Shared<Envelope> {
    use shoal_model::job::{Content, Files, Kind, Staged};
    let content = Content { kind: Kind::File, size, digest: shoal_model::Digest([1; 32]) };
    let files = Files { inputs: vec![Staged::new("a", "a").unwrap().with(content)], outputs: vec![] };
    envelope(Job { files: Some(Box::new(files)), ..Job::command(["true"]) })
}

#[test]
fn files_travel_when_a_job_is_committed_and_it_is_planned_no_earlier_than_they_can_be_there() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    world.command(NodeId(1), Command::Submit(with_file(320 << 20)));
    world.run_for(Span::from_secs(5));
    assert!(world.story().contains("does Stage"), "{}", world.story());
    assert!(!world.story().contains("does Start"), "{}", world.story());
    world.run_for(Span::from_secs(10));
    assert!(world.story().contains("does Start"), "{}", world.story());

    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    world.command(NodeId(1), Command::Submit(with_file(1_000)));
    world.run_for(Span::from_secs(2));
    assert!(world.story().contains("does Start"), "what is there in a moment is no reason to wait");
}

#[test]
fn files_are_asked_for_again_after_a_crash() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    world.command(NodeId(1), Command::Submit(with_file(320 << 20)));
    world.run_for(Span::from_secs(2));
    world.crash(NodeId(1));
    world.restart(NodeId(1));
    world.run_for(Span::from_secs(1));
    assert_eq!(world.story().matches("does Stage").count(), 2, "{}", world.story());
}

#[test]
fn job_whose_files_cannot_be_had_is_planned_anew_and_fails_in_the_end() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    let envelope = with_file(1_000);
    let job = envelope.id();
    world.command(NodeId(1), Command::Submit(envelope));
    for epoch in 1..=3 {
        world.run_for(Span::from_secs(30));
        let task = Task { job, epoch: shoal_model::Epoch(epoch), rank: shoal_model::Rank(0) };
        assert_eq!(world.core(NodeId(1)).task(task), Some(TaskState::Running), "{}", world.story());
        world.tell(NodeId(1), Input::Done(Outcome::unmeasured(task, Exit::Unstaged)));
    }
    world.run_for(Span::from_secs(30));
    let owned = world.core(NodeId(1)).job(job).expect("it is known");
    assert_eq!(owned.phase(), &Phase::Ended(End::Failed(shoal_model::Rank(0), Exit::Unstaged)));
}
