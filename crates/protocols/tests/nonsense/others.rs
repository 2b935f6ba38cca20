//! Anything that anybody could say to nodes that follow `asap` and `proactive`, or have links that ants keep.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use shoal_model::calendar::Snapshot;
use shoal_model::{Coordinates, Machine, NodeId, Resources, Speed};
use shoal_protocols::Shared;
use shoal_protocols::node::{Command, Message};
use shoal_protocols::overlay::blatant_s;
use shoal_protocols::overlay::cyclon::{self, Entry};
use shoal_protocols::overlay::helpers::{self, Kind, Profile};
use shoal_protocols::scheduling::asap::{self, Schedule, Sheet, Ticket};
use shoal_protocols::scheduling::proactive::{self, KNOWN_MAX, LABELS_MAX};

use crate::words::{Word, amount, calendar, job, needs, node, span, time, word, word_of_queues};

/// What happens to a node of the recipe `asap` next.
pub fn word_of_calendars() -> impl Strategy<Value = Word> {
    prop_oneof![
        2 => (node(), asap_message()).prop_map(|(from, message)| Word::Says(from, Message::Asap(message))),
        3 => word(),
    ]
}

/// What happens to a node of the recipe `proactive` next.
pub fn word_of_criteria() -> impl Strategy<Value = Word> {
    prop_oneof![
        2 => (node(), proactive_message())
            .prop_map(|(from, message)| Word::Says(from, Message::Proactive(message))),
        1 => (node(), span()).prop_map(|(node, span)| Word::Asks(Command::Measured(node, span))),
        1 => node().prop_map(|node| Word::Asks(Command::Gone(node))),
        3 => word(),
    ]
}

/// What happens to a node over BLATANT-S next.
pub fn word_of_ants() -> impl Strategy<Value = Word> {
    prop_oneof![
        2 => (node(), ant()).prop_map(|(from, ant)| Word::Says(from, Message::BlatantS(ant))),
        1 => node().prop_map(|node| Word::Asks(Command::Gone(node))),
        3 => word_of_queues(),
    ]
}

fn nodes() -> impl Strategy<Value = Vec<NodeId>> {
    prop_oneof![8 => vec(node(), 0..5), 1 => Just((0..3_000).map(NodeId).collect::<Vec<_>>())]
}

/// The first questions of a node have small numbers.
fn ticket() -> impl Strategy<Value = Ticket> {
    prop_oneof![6 => 0..6u64, 1 => Just(u64::MAX)].prop_map(Ticket)
}

fn schedule() -> BoxedStrategy<Schedule> {
    let capacity = prop_oneof![3 => Just(Resources::cores(2)), 1 => amount()];
    (time(), capacity, calendar())
        .prop_map(|(born, capacity, calendar): (_, _, Snapshot<Resources>)| {
            Shared::new(Sheet::new(born, Shared::new(Machine::with_capacity(capacity)), calendar))
        })
        .boxed()
}

fn asap_message() -> BoxedStrategy<asap::Message> {
    use asap::{Answer, Message, Purpose};
    let search = (job(), 0..4u32, needs(), time(), span(), nodes()).prop_map(
        |(job, round, needs, from, patience, avoid)| asap::Search {
            job,
            round,
            needs,
            from,
            patience,
            avoid,
        },
    );
    let answer = prop_oneof![
        4 => (time(), nodes()).prop_map(|(start, nodes)| Answer::Found { start, nodes: nodes.into() }),
        1 => any::<(u32, u32)>().prop_map(|(known, fit)| Answer::TooFew { known, fit }),
        1 => Just(Answer::NeverFree),
    ];
    let purpose =
        select(vec![Purpose::Search, Purpose::Answer, Purpose::Poll, Purpose::Enter, Purpose::Counted]);
    prop_oneof![
        3 => search.prop_map(|search| Message::Search(Box::new(search))),
        3 => (job(), 0..4u32, answer)
            .prop_map(|(job, round, answer)| Message::SearchReply { job, round, answer }),
        1 => (ticket(), span(), job()).prop_map(|(ticket, span, job)| Message::CacheRequest(ticket, span, job)),
        2 => (ticket(), vec((node(), schedule()), 0..5))
            .prop_map(|(ticket, known)| Message::CacheReply(ticket, known.into())),
        1 => (ticket(), purpose, option::of(job()))
            .prop_map(|(ticket, purpose, job)| Message::ScheduleRequest(ticket, purpose, job)),
        2 => (ticket(), schedule()).prop_map(|(ticket, schedule)| Message::ScheduleReply(ticket, schedule)),
        1 => schedule().prop_map(Message::Update),
        1 => Just(Message::Hold),
        1 => Just(Message::Unhold),
    ]
    .boxed()
}

fn coordinates() -> impl Strategy<Value = Coordinates> {
    let part = || prop_oneof![3 => -100_000..100_000i64, 1 => select(vec![i64::MIN, i64::MAX])];
    ([part(), part(), part(), part()], part()).prop_map(|(at, height)| Coordinates::new(at, height))
}

fn profile() -> impl Strategy<Value = Profile> {
    let slot = (time(), time());
    (coordinates(), any::<u32>(), slot, any::<[u8; 4]>()).prop_map(
        |(coordinates, error, (free_from, free_until), likeness)| Profile {
            coordinates,
            error,
            free_from,
            free_until,
            likeness,
            ..Profile::default()
        },
    )
}

fn near(most: usize) -> BoxedStrategy<Box<[Entry<Profile>]>> {
    let entry = |(node, age, payload)| Entry { node, age, payload };
    prop_oneof![
        8 => vec((node(), any::<u16>(), profile()).prop_map(entry), 0..5),
        1 => profile().prop_map(move |profile| {
            (0..most as u64 + 1).map(|id| entry((NodeId(id), 0, profile))).collect::<Vec<_>>()
        }),
    ]
    .prop_map(Vec::into_boxed_slice)
    .boxed()
}

fn kind() -> impl Strategy<Value = Kind> {
    select(Kind::ALL.to_vec())
}

fn helpers_message() -> BoxedStrategy<helpers::Message> {
    let random = || {
        near(500).prop_map(|entries| {
            let told = entries.iter().map(|entry| Entry {
                node: entry.node,
                age: entry.age,
                payload: (entry.age % 2 == 0).then_some(entry.payload),
            });
            told.collect::<Box<[_]>>()
        })
    };
    prop_oneof![
        1 => random().prop_map(|entries| helpers::Message::Random(cyclon::Message::Shuffle(entries))),
        1 => random().prop_map(|entries| helpers::Message::Random(cyclon::Message::ShuffleReply(entries))),
        2 => (kind(), near(500)).prop_map(|(kind, near)| helpers::Message::Ask(kind, near)),
        2 => (kind(), near(500)).prop_map(|(kind, near)| helpers::Message::Tell(kind, near)),
        1 => Just(helpers::Message::Ping),
        2 => (coordinates(), any::<u32>()).prop_map(|(at, error)| helpers::Message::Pong(at, error)),
    ]
    .boxed()
}

fn proactive_message() -> BoxedStrategy<proactive::Message> {
    use proactive::{Answer, Ask, Known, Message, Offer, Tell};
    let names = || vec(select(vec!["zone", "rack"]), 0..3);
    let names = prop_oneof![8 => names(), 1 => Just(vec!["zone"; LABELS_MAX + 1])];
    let names = names.prop_map(|names| names.iter().map(|name| name.parse().expect("a name")).collect());
    let ask = (job(), 0..4u32, needs(), option::of(kind()), names)
        .prop_map(|(job, round, needs, overlay, labels)| Ask { job, round, needs, overlay, labels });
    let speed =
        select(vec![1, 1_000, u32::MAX]).prop_map(|speed| Speed::new(speed.try_into().expect("some")));
    let offer = (calendar(), speed, any::<u32>(), vec(any::<u32>(), 0..LABELS_MAX + 2))
        .prop_map(|(calendar, speed, price, labels)| Offer { calendar, speed, price, labels });
    let answer = prop_oneof![
        4 => offer.prop_map(Answer::Yes),
        1 => Just(Answer::Unfit),
        1 => any::<u8>().prop_map(Answer::Excluded),
    ];
    let known = prop_oneof![
        nodes().prop_map(|nodes| Known::Random(nodes.into())),
        near(KNOWN_MAX).prop_map(Known::Near),
    ];
    let tell = (job(), 0..4u32, profile(), answer, known)
        .prop_map(|(job, round, profile, answer, known)| Tell { job, round, profile, answer, known });
    prop_oneof![
        2 => helpers_message().prop_map(|message| Message::Helpers(Box::new(message))),
        2 => ask.prop_map(|ask| Message::Ask(Box::new(ask))),
        3 => tell.prop_map(|tell| Message::Tell(Box::new(tell))),
    ]
    .boxed()
}

fn ant() -> BoxedStrategy<blatant_s::Message> {
    use blatant_s::{Known, Message};
    let known = || {
        (node(), time(), nodes()).prop_map(|(node, at, neighbours)| Known {
            node,
            at,
            neighbours: Shared::new(neighbours),
        })
    };
    let seen = prop_oneof![
        8 => vec(known(), 0..5),
        1 => known().prop_map(|known| vec![known; blatant_s::CARRIES_MAX as usize + 1]),
    ];
    prop_oneof![
        3 => (seen, any::<u8>()).prop_map(|(seen, hops)| Message::Discovery { seen, hops }),
        2 => (node(), any::<u8>()).prop_map(|(newcomer, passes)| Message::Construct { newcomer, passes }),
        2 => (node(), any::<u8>(), any::<u8>())
            .prop_map(|(far, passes, apart)| Message::Optimise { far, passes, apart }),
        2 => select(vec![Message::Linked, Message::Unlink, Message::Unlinked]),
        2 => (known(), any::<u8>()).prop_map(|(known, hops)| Message::Update { known, hops }),
        1 => select(vec![Message::Ping, Message::Pong]),
    ]
    .boxed()
}
