//! Anything that anybody could say to a node: right, wrong, late, out of turn or out of range.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use shoal_model::calendar::{Capacity, Snapshot};
use shoal_model::job::Mode;
use shoal_model::{
    Envelope, Epoch, Job, JobId, Needs, NodeId, Nonce, Rank, Resources, Size, Span, Thousandths, Time,
};
use shoal_protocols::Shared;
use shoal_protocols::commit::two_phase::{Message as Commit, Prepare, Vote};
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::{
    Brief, Command, Denial, End, Exit, JobMessage, Message, OwnedRecord, Task, Usage, handover,
};
use shoal_protocols::overlay::cyclon::{self, Entry};
use shoal_protocols::scheduling::{aria, sample};

/// The node that has to bear it.
pub const ME: NodeId = NodeId(1);

/// What happens to the node next.
#[derive(Clone, Debug)]
pub enum Word {
    /// Somebody says something.
    Says(NodeId, Message),
    /// Somebody answers, as a sound node would, one of the last things that the node said.
    Answers(usize),
    /// The user asks for something.
    Asks(Command),
    /// The machine claims that a task has ended.
    Ends(Task, Exit),
    /// One of the tasks that the node has started ends.
    EndsStarted(usize, Exit),
    /// So many of the timers that the node asked for are due one after the other.
    Timers(usize),
    /// Time passes, and what was due meanwhile comes late.
    Passes(Span),
    /// The machine restarts, with a clock that may have been set back.
    Restarts(Span),
}

pub fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        8 => (node(), message()).prop_map(|(from, message)| Word::Says(from, message)),
        6 => (0..12usize).prop_map(Word::Answers),
        2 => command().prop_map(Word::Asks),
        1 => (task(), exit()).prop_map(|(task, exit)| Word::Ends(task, exit)),
        1 => (0..4usize, exit()).prop_map(|(place, exit)| Word::EndsStarted(place, exit)),
        4 => (1..6usize).prop_map(Word::Timers),
        1 => span().prop_map(|span| Word::Passes(span.min(Span::from_hours(20 * 365 * 24)))),
        1 => select(vec![Span::ZERO, Span::from_secs(3)]).prop_map(Word::Restarts),
    ]
}

/// The same where jobs wait in queues, and nodes hand them over.
pub fn word_of_queues() -> impl Strategy<Value = Word> {
    let message = prop_oneof![
        4 => queues().prop_map(Message::Aria),
        3 => handed().prop_map(Message::HandOver),
        2 => life().prop_map(Message::Job),
        1 => overlay().prop_map(Message::Overlay),
    ];
    prop_oneof![
        8 => (node(), message).prop_map(|(from, message)| Word::Says(from, message)),
        1 => select(vec![Command::Drain, Command::Leave]).prop_map(Word::Asks),
        24 => word(),
    ]
}

/// Few jobs, so that words often speak of the same one.
pub fn envelopes() -> Vec<Shared<Envelope>> {
    let job = || Job::command(["sleep", "5"]);
    let nodes = |count: u32, job: Job| Job { nodes: count.try_into().expect("some"), ..job };
    let jobs = [
        job(),
        nodes(2, Job { mode: Some(Mode::AtMostOnce), ..job() }),
        nodes(3, Job { retry: 2.try_into().ok(), ..job() }),
        nodes(100_000, job()),
        Job { resources: Resources::cores(2), limit: Some(Span::from_micros(1)), ..job() },
        Job {
            limit: Some(Span::from_hours(366 * 24)),
            begin: Some(Time::from_secs(250_000_000_000)),
            ..job()
        },
        Job { deadline: Some(Time::from_secs(20)), limit: Some(Span::from_secs(10)), ..job() },
        Job { priority: Some(7), ..job() },
    ];
    let shared = jobs.into_iter().enumerate().map(|(number, job)| {
        Shared::new(Envelope::new(job, Nonce([number as u8; 16])).expect("the job makes sense"))
    });
    shared.collect()
}

pub fn job() -> impl Strategy<Value = JobId> {
    let mut jobs: Vec<JobId> = envelopes().iter().map(|envelope| envelope.id()).collect();
    jobs.extend([JobId([0; 16]), JobId([255; 16])]);
    select(jobs)
}

pub fn node() -> impl Strategy<Value = NodeId> {
    select(vec![ME, NodeId(2), NodeId(3), NodeId(4), NodeId(0), NodeId(u64::MAX)])
}

pub fn epoch() -> impl Strategy<Value = Epoch> {
    select(vec![0, 1, 1, 2, 3, u32::MAX - 1, u32::MAX]).prop_map(Epoch)
}

pub fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        6 => (0..120_000u64).prop_map(Time::from_millis),
        1 => (0..3u64).prop_map(|before| Time::from_micros(u64::MAX - before)),
        1 => any::<u64>().prop_map(Time::from_micros),
    ]
}

pub fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        4 => (1..60_000u64).prop_map(Span::from_millis),
        1 => select(vec![0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX]).prop_map(Span::from_micros),
    ]
}

pub fn amount() -> impl Strategy<Value = Resources> {
    let named =
        |count| Resources::cores(1).with_named("fpga".parse().expect("a name"), Thousandths::new(count));
    let cores = |thousandths| {
        let mut cores = Resources::NONE;
        cores.cores = Thousandths::new(thousandths);
        cores
    };
    select(vec![
        Resources::cores(1),
        Resources::cores(1),
        Resources::cores(2),
        Resources::NONE,
        Resources::cores(3),
        cores(1),
        cores(u32::MAX),
        Resources::NONE.with_gpus(Thousandths::new(1 << 31)),
        Resources::NONE.with_memory(Size::from_bytes(u64::MAX)),
        Resources::cores(1).with_memory(Size::from_bytes(1 << 63)),
        named(1),
        named(u32::MAX),
    ])
}

fn brief() -> impl Strategy<Value = Shared<Brief>> {
    let nodes = prop_oneof![
        3 => Just(vec![ME]),
        3 => vec(node(), 0..5),
        1 => Just(vec![NodeId(3); 70_000]),
    ];
    (select(envelopes()), nodes).prop_map(|(envelope, nodes)| {
        Shared::new(Brief { envelope, nodes: nodes.into(), index: None, riders: None })
    })
}

fn task() -> impl Strategy<Value = Task> {
    (job(), epoch(), select(vec![0, 1, 2, u32::MAX])).prop_map(|(job, epoch, rank)| Task {
        job,
        epoch,
        rank: Rank(rank),
    })
}

fn exit() -> impl Strategy<Value = Exit> {
    select(vec![
        Exit::Code(0),
        Exit::Code(0),
        Exit::Code(i32::MIN),
        Exit::Signal(i32::MAX),
        Exit::Overran,
        Exit::Stopped,
        Exit::Lost,
        Exit::NotStarted,
        Exit::CutShort,
        Exit::GivenBack,
    ])
}

fn end() -> impl Strategy<Value = Option<End>> {
    prop_oneof![
        select(vec![None, Some(End::Finished), Some(End::Lost), Some(End::Cancelled)]),
        exit().prop_map(|exit| Some(End::Failed(Rank(7), exit))),
        job().prop_map(|job| Some(End::Unmet(job))),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => select(envelopes()).prop_map(Command::Submit),
        1 => job().prop_map(Command::Cancel),
        1 => job().prop_map(Command::Hold),
        1 => job().prop_map(Command::Release),
        1 => (select(envelopes()), job(), node())
            .prop_map(|(envelope, job, owner)| Command::SubmitAfter(envelope, [(job, owner)].into())),
        1 => node().prop_map(Command::Join),
        1 => vec(node(), 0..70).prop_map(|nodes| Command::Meet(nodes.into())),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        1 => overlay().prop_map(Message::Overlay),
        5 => commit().prop_map(Message::Commit),
        1 => any::<(bool, u64)>().prop_map(|(ping, number)| {
            Message::Heartbeat(if ping { heartbeat::Message::Ping(number) } else { heartbeat::Message::Pong(number) })
        }),
        2 => recipe().prop_map(Message::Sample),
        2 => life().prop_map(Message::Job),
    ]
}

pub fn overlay() -> impl Strategy<Value = cyclon::Message> {
    let entry = || (node(), any::<u16>()).prop_map(|(node, age)| Entry { node, age, payload: () });
    let entries = prop_oneof![
        vec(entry(), 0..9),
        (0..3u64).prop_map(|from| {
            (0..3_000).map(|number| Entry { node: NodeId(from + number), age: 0, payload: () }).collect()
        }),
    ];
    let entries = entries.prop_map(Vec::into_boxed_slice).boxed();
    prop_oneof![
        entries.clone().prop_map(cyclon::Message::Shuffle),
        entries.prop_map(cyclon::Message::ShuffleReply),
        Just(cyclon::Message::Join),
        (entry(), any::<u8>()).prop_map(|(newcomer, steps)| cyclon::Message::Walk { newcomer, steps }),
        entry().prop_map(cyclon::Message::Welcome),
    ]
}

fn commit() -> impl Strategy<Value = Commit<Resources, Brief>> {
    let vote = prop_oneof![Just(Vote::Yes), option::of(time()).prop_map(Vote::No)];
    prop_oneof![
        5 => (job(), epoch(), time(), span(), amount()).prop_map(|(job, epoch, start, span, amount)| {
            Commit::Prepare(Box::new(Prepare { job, epoch, start, span, amount }))
        }),
        2 => (job(), epoch(), vote).prop_map(|(job, epoch, vote)| Commit::Vote { job, epoch, vote }),
        3 => (job(), epoch(), brief()).prop_map(|(job, epoch, brief)| Commit::Commit { job, epoch, brief }),
        1 => (job(), epoch()).prop_map(|(job, epoch)| Commit::Committed { job, epoch }),
        1 => (job(), epoch()).prop_map(|(job, epoch)| Commit::Refuse { job, epoch }),
        1 => (job(), epoch()).prop_map(|(job, epoch)| Commit::Dropped { job, epoch }),
        3 => (job(), epoch()).prop_map(|(job, epoch)| Commit::Confirm { job, epoch }),
        1 => (job(), epoch()).prop_map(|(job, epoch)| Commit::Confirmed { job, epoch }),
        1 => (job(), epoch()).prop_map(|(job, epoch)| Commit::Abort { job, epoch }),
        1 => (job(), epoch()).prop_map(|(job, upto)| Commit::Release { job, upto }),
        1 => (job(), epoch()).prop_map(|(job, upto)| Commit::Released { job, upto }),
        1 => (job(), epoch()).prop_map(|(job, epoch)| Commit::Ask { job, epoch }),
    ]
}

pub fn needs() -> impl Strategy<Value = Needs> {
    (amount(), span(), 1..4u32, option::of(time())).prop_map(|(amount, limit, nodes, begin)| Needs {
        nodes: nodes.try_into().expect("some"),
        begin,
        ..Needs::new(amount, limit)
    })
}

fn recipe() -> impl Strategy<Value = sample::Message> {
    prop_oneof![
        (job(), any::<u32>(), needs()).prop_map(|(job, round, needs)| sample::Message::Probe {
            job,
            round,
            needs: Box::new(needs),
        }),
        (job(), 1..3u32, option::of(calendar())).prop_map(|(job, round, calendar)| {
            sample::Message::Offer { job, round, calendar: calendar.map(Box::new) }
        }),
    ]
}

/// A calendar as a stranger may claim to have it: idle, busy, full to the end of time, or with odd hours.
pub fn calendar() -> impl Strategy<Value = Snapshot<Resources>> {
    let hours = vec((0..168u64, 0..4u32), 1..5).prop_map(|mut steps| {
        steps.sort_by_key(|step| step.0);
        steps.dedup_by_key(|step| step.0);
        let steps = steps.into_iter().map(|(hour, cores)| (Span::from_hours(hour), Resources::cores(cores)));
        Capacity::weekly(Time::ZERO, steps.collect())
    });
    let capacity = prop_oneof![
        amount().prop_filter_map("in range", |amount| Capacity::constant(amount).ok()),
        hours.prop_filter_map("sound hours", Result::ok),
    ];
    let steps = vec((time(), amount()), 0..4).prop_map(|mut steps| {
        steps.sort_by_key(|step| step.0);
        steps.dedup_by_key(|step| step.0);
        steps
    });
    (any::<u64>(), capacity, steps, time()).prop_map(|(version, capacity, mut steps, end)| {
        steps.retain(|step| step.0 < end);
        steps.push((end, Resources::NONE));
        let told = Snapshot::from_steps(version, capacity.clone(), &steps, None);
        told.or_else(|_| Snapshot::from_steps(version, capacity, &[], None))
            .expect("an idle calendar is sound")
    })
}

pub fn queues() -> impl Strategy<Value = aria::Message> {
    let token = || select(vec![0, 7, u32::MAX]);
    prop_oneof![
        4 => (epoch(), brief(), span()).prop_map(|(epoch, brief, limit)| {
            aria::Message::Assign { job: brief.job(), epoch, brief, limit }
        }),
        2 => (job(), epoch(), token(), time())
            .prop_map(|(job, epoch, token, start)| aria::Message::Assigned { job, epoch, token, start }),
        1 => (job(), epoch()).prop_map(|(job, epoch)| aria::Message::Refused { job, epoch }),
        2 => (job(), epoch(), token())
            .prop_map(|(job, epoch, token)| aria::Message::Confirm { job, epoch, token }),
        1 => (job(), epoch(), any::<u32>(), node())
            .prop_map(|(job, epoch, turn, to)| aria::Message::Notify { job, epoch, turn, to }),
        1 => (job(), epoch(), 0..3u32)
            .prop_map(|(job, epoch, turn)| aria::Message::Stay { job, epoch, turn }),
        1 => (job(), epoch()).prop_map(|(job, epoch)| aria::Message::Cancel { job, epoch }),
        2 => (job(), epoch()).prop_map(|(job, epoch)| aria::Message::Cancelled { job, epoch }),
    ]
}

fn handed() -> impl Strategy<Value = handover::Message> {
    let record = (select(envelopes()), epoch(), option::of(node()), end(), vec((job(), node()), 0..3));
    let record = record.prop_map(|(envelope, numbered, from, end, after)| {
        let end = end.filter(|_| numbered.0 == 3);
        let from = from.filter(|_| numbered.0 == 2);
        Shared::new(OwnedRecord { numbered, from, end, after, ..OwnedRecord::accepted(envelope) })
    });
    prop_oneof![
        4 => (record, any::<bool>()).prop_map(|(job, yours)| handover::Message::Hand { job, yours }),
        2 => job().prop_map(handover::Message::Ready),
        1 => job().prop_map(handover::Message::Declined),
        1 => job().prop_map(handover::Message::Taken),
        1 => job().prop_map(handover::Message::Keep),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(user, system, memory)| Usage {
        user: Span::from_micros(user),
        system: Span::from_micros(system),
        memory_max: Size::from_bytes(memory),
        wall: Span::from_micros(user ^ system),
    })
}

pub fn life() -> impl Strategy<Value = JobMessage> {
    prop_oneof![
        (task(), time()).prop_map(|(task, at)| JobMessage::Started(task, at)),
        (task(), exit(), option::of(usage())).prop_map(|(task, exit, usage)| JobMessage::Ended(
            task,
            exit,
            usage.map(Box::new)
        )),
        task().prop_map(JobMessage::Noted),
        task().prop_map(JobMessage::Inquire),
        task().prop_map(JobMessage::Sooner),
        task().prop_map(JobMessage::Go),
        job().prop_map(JobMessage::Await),
        (job(), end()).prop_map(|(job, end)| JobMessage::Over(job, end)),
        (job(), epoch()).prop_map(|(job, epoch)| JobMessage::Denied(job, epoch, Denial::NoRule)),
        (job(), node()).prop_map(|(job, node)| JobMessage::Moved(job, node)),
    ]
}
