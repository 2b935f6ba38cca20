//! Anything that anybody could say to a node over a CAN, and to one that follows `tri-pronged`.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use shoal_model::{Epoch, JobId, Machine, Needs, NodeId, Resources, Span, Time};
use shoal_protocols::Shared;
use shoal_protocols::node::{Brief, Command, Message};
use shoal_protocols::overlay::can::{
    self, Ahead, BALLOONS_MAX, Balloon, Claim, NEIGHBOURS_MAX, Peer, Place, Point, SIDE, SecondaryMessage,
    Update, VIRTUAL, Vitals, Zone,
};
use shoal_protocols::scheduling::aria;
use shoal_protocols::scheduling::tri_pronged::{
    self, Aside, HOLDS_MAX, Offer, Passed, SEEN_MAX, Search, Trail,
};

use crate::words::{ME, Word, amount, envelopes, job, life, needs, node, queues, span, time, word};

/// What happens to a node over a CAN next.
pub fn word_of_prongs() -> impl Strategy<Value = Word> {
    let message = prop_oneof![
        6 => prongs().prop_map(Message::TriPronged),
        4 => zones().prop_map(Message::Can),
        2 => secondary().prop_map(Message::Secondary),
        4 => queues().prop_map(Message::Aria),
        1 => life().prop_map(Message::Job),
    ];
    prop_oneof![
        32 => (node(), message).prop_map(|(from, message)| Word::Says(from, message)),
        24 => sound().prop_map(|message| Word::Says(NodeId(2), message)),
        24 => (0..4usize).prop_map(Word::Answers),
        1 => select(vec![Command::Drain, Command::Leave]).prop_map(Word::Asks),
        32 => word(),
    ]
    .boxed()
}

/// What makes sense, so that jobs come to wait here, and others come to ask for them.
fn sound() -> impl Strategy<Value = Message> {
    let assign = (select(envelopes()), 1..4u32).prop_map(|(envelope, epoch)| {
        let (job, epoch, limit) = (envelope.id(), Epoch(epoch), Span::from_mins(5));
        let brief = Shared::new(Brief { envelope, nodes: vec![ME].into(), index: None, riders: None });
        Message::Aria(aria::Message::Assign { job, epoch, brief, limit })
    });
    let idle = Vitals {
        machine: Shared::new(Machine::with_capacity(Resources::cores(2))),
        residual: Resources::cores(2),
        running: 0,
        waiting: 0,
        bar: 0,
        load: [0; 4],
        required: 0,
        backlog: None,
    };
    let (_, upper) = halves();
    let update = Update {
        at: Time::from_secs(10),
        claims: Shared::new(vec![Claim { zone: upper, version: 5 }]),
        point: *upper.low(),
        vitals: Some(idle.clone()),
        ahead: Default::default(),
        peers: Shared::new(Vec::new()),
    };
    let pull = tri_pronged::Message::Pull { vitals: Shared::new(idle), balance: false };
    prop_oneof![
        3 => assign,
        1 => Just(Message::TriPronged(pull)),
        1 => Just(Message::Can(can::Message::Update(Shared::new(update), true))),
    ]
    .boxed()
}

/// A count as a stranger may claim it.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..10_000u64, 1 => select(vec![u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32])]
}

fn small_count() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..4u32, 1 => select(vec![u32::MAX, u32::MAX - 1])]
}

/// How often a distance was doubled.
fn level() -> impl Strategy<Value = u8> {
    select(vec![0, 1, 2, 20, u8::MAX])
}

fn hops() -> impl Strategy<Value = u16> {
    select(vec![0, 1, 7, 63, 64, 4_095, 4_096, u16::MAX])
}

fn nodes() -> impl Strategy<Value = Vec<NodeId>> {
    prop_oneof![
        8 => vec(node(), 0..4),
        1 => select(vec![SEEN_MAX, SEEN_MAX + 1])
            .prop_map(|count| (0..count as u64).map(NodeId).collect::<Vec<_>>()),
    ]
}

/// Any cell: what is none is refused before a core hears of it, where words come in.
fn point() -> impl Strategy<Value = Point> {
    let anywhere = [0..SIDE, 0..SIDE, 0..SIDE, 0..SIDE, 0..SIDE, 0..SIDE];
    prop_oneof![3 => anywhere, 1 => select(vec![[0; 6], [SIDE - 1; 6], [SIDE / 2; 6]])]
}

fn zone() -> impl Strategy<Value = Zone> {
    let cuts = vec((0..6usize, 1..SIDE, any::<bool>()), 0..5).prop_map(|cuts| {
        cuts.into_iter().fold(Zone::WHOLE, |zone, (along, part, upper)| {
            let length = u64::from(zone.length(along));
            let at = zone.low()[along] + (length * u64::from(part) / u64::from(SIDE)) as u32;
            if at == zone.low()[along] {
                return zone;
            }
            let (below, above) = zone.cut(along, at);
            if upper { above } else { below }
        })
    });
    let end = || select(vec![0, 1, SIDE / 2, SIDE - 1, SIDE, SIDE + 1, u32::MAX]);
    let deep = || select(vec![[0u16; 2], [1, 2], [u16::MAX; 2]]);
    // What comes over the wire is any six numbers, twice: nobody has cut these.
    let wild = (
        [end(), end(), end(), end(), end(), end()],
        [end(), end(), end(), end(), end(), end()],
        [deep(), deep(), deep(), deep(), deep(), deep()],
    );
    let wild = wild.prop_map(|zone| {
        let bytes = minicbor::to_vec(zone).expect("a vector takes all");
        minicbor::decode(&bytes).expect("these are the fields of a zone")
    });
    prop_oneof![6 => cuts, 1 => wild]
}

fn claim() -> impl Strategy<Value = Claim> {
    let version = select(vec![0, 1, 1, 2, 3, 17, u32::MAX - 1, u32::MAX]);
    (zone(), version).prop_map(|(zone, version)| Claim { zone, version })
}

fn claims() -> BoxedStrategy<Shared<Vec<Claim>>> {
    prop_oneof![
        8 => vec(claim(), 0..3),
        1 => claim().prop_map(|claim| vec![claim; can::CLAIMS_MAX + 1]),
    ]
    .prop_map(Shared::new)
    .boxed()
}

fn peer() -> BoxedStrategy<Peer> {
    (node(), claims()).prop_map(|(node, claims)| Peer { node, claims }).boxed()
}

fn peers() -> BoxedStrategy<Vec<Peer>> {
    let many = claims().prop_map(|claims| {
        (100..180).map(|node| Peer { node: NodeId(node), claims: claims.clone() }).collect::<Vec<_>>()
    });
    prop_oneof![16 => vec(peer(), 0..4), 1 => many].boxed()
}

fn vitals() -> BoxedStrategy<Vitals> {
    let capacity = prop_oneof![3 => Just(Resources::cores(2)), 1 => amount()];
    let load = [count(), count(), count(), count()];
    let jobs = (small_count(), small_count(), small_count());
    (capacity, amount(), jobs, load, count(), option::of(span()))
        .prop_map(|(capacity, residual, (running, waiting, bar), load, required, backlog)| Vitals {
            machine: Shared::new(Machine::with_capacity(capacity)),
            residual,
            running,
            waiting,
            bar,
            load,
            required,
            backlog,
        })
        .boxed()
}

fn ahead() -> impl Strategy<Value = Ahead> {
    (count(), count(), count(), count()).prop_map(|(nodes, cores, required, free)| Ahead {
        nodes,
        cores,
        required,
        free,
    })
}

fn zones() -> BoxedStrategy<can::Message> {
    let ahead = [ahead(), ahead(), ahead(), ahead(), ahead(), ahead()];
    let update = (time(), claims(), point(), option::of(vitals()), ahead, peers()).prop_map(
        |(at, claims, point, vitals, ahead, peers)| {
            Shared::new(Update { at, claims, point, vitals, ahead, peers: Shared::new(peers) })
        },
    );
    let balloon = (node(), time(), point(), vitals())
        .prop_map(|(node, at, point, vitals)| Shared::new(Balloon { node, at, point, vitals }));
    prop_oneof![
        2 => (node(), point(), hops())
            .prop_map(|(newcomer, point, hops)| can::Message::Join { newcomer, point, hops }),
        2 => (claim(), peers())
            .prop_map(|(claim, around)| can::Message::Welcome { claim: Box::new(claim), around }),
        1 => Just(can::Message::Taken),
        8 => (update, any::<bool>()).prop_map(|(update, ask)| can::Message::Update(update, ask)),
        2 => claim().prop_map(|claim| can::Message::Grant(Box::new(claim))),
        2 => (balloon, hops()).prop_map(|(balloon, hops)| can::Message::Tie(balloon, hops)),
        1 => time().prop_map(can::Message::Tied),
        1 => time().prop_map(can::Message::Untie),
        1 => (any::<bool>(), level()).prop_map(|(up, level)| can::Message::Leap { up, level }),
        3 => (any::<bool>(), level(), claims(), option::of(peer()))
            .prop_map(|(up, level, claims, next)| can::Message::Landed { up, level, claims, next }),
    ]
    .boxed()
}

fn secondary() -> BoxedStrategy<SecondaryMessage> {
    prop_oneof![
        6 => zones().prop_map(SecondaryMessage::Zones),
        1 => (node(), hops()).prop_map(|(newcomer, hops)| SecondaryMessage::Knock { newcomer, hops }),
        2 => option::of(node()).prop_map(SecondaryMessage::Enter),
        1 => (node(), any::<bool>(), hops())
            .prop_map(|(node, open, hops)| SecondaryMessage::Hold { node, open, hops }),
    ]
    .boxed()
}

fn search() -> BoxedStrategy<Shared<Search>> {
    (job(), 0..4u32, node(), needs(), point(), nodes())
        .prop_map(|(job, round, owner, needs, point, avoid)| {
            Shared::new(Search { job, round, owner, needs, point, avoid })
        })
        .boxed()
}

fn trail() -> impl Strategy<Value = Box<Trail>> {
    let passed = (node(), any::<bool>()).prop_map(|(node, free)| Passed { node, free });
    let so_far = (hops(), option::of(any::<u8>()), any::<u8>());
    (so_far, nodes(), nodes(), option::of(passed), option::of(node())).prop_map(
        |((hops, pushes, anew), seen, back, passed, otherwise)| {
            Box::new(Trail { hops, pushes, seen, back, passed, anew, otherwise })
        },
    )
}

fn aside() -> impl Strategy<Value = Box<Aside>> {
    (node(), hops(), any::<(bool, bool)>(), nodes(), nodes()).prop_map(
        |(otherwise, hops, (led, at_door), seen, back)| {
            Box::new(Aside { otherwise, hops, led, at_door, seen, back })
        },
    )
}

fn prongs() -> BoxedStrategy<tri_pronged::Message> {
    let offer = (job(), needs(), small_count(), time(), any::<bool>()).prop_map(
        |(job, needs, overtaken, entered, at_once)| Offer { job, needs, overtaken, entered, at_once },
    );
    let shared = |vitals: Vitals| Shared::new(vitals);
    prop_oneof![
        4 => (search(), trail()).prop_map(|(search, trail)| tri_pronged::Message::Find(search, trail)),
        2 => (job(), 0..4u32, option::of(node()))
            .prop_map(|(job, round, node)| tri_pronged::Message::Found { job, round, node }),
        3 => offer.prop_map(|offer| tri_pronged::Message::Offer(Shared::new(offer))),
        2 => (job(), any::<bool>()).prop_map(|(job, yes)| tri_pronged::Message::Answer { job, yes }),
        4 => (vitals().prop_map(shared), any::<bool>())
            .prop_map(|(vitals, balance)| tri_pronged::Message::Pull { vitals, balance }),
        1 => Just(tri_pronged::Message::Nothing),
        2 => (search(), aside())
            .prop_map(|(search, aside)| tri_pronged::Message::FindResidue(search, aside)),
    ]
    .boxed()
}

/// The lower half of the space along the virtual dimension is this node's.
pub fn half_of_the_space_is_ours() -> Word {
    let (zone, _) = halves();
    let place = Place { point: *zone.low(), claim: Claim { zone, version: 1 }, around: Vec::new() };
    Word::Asks(Command::Settle(Box::new(place)))
}

fn halves() -> (Zone, Zone) {
    Zone::WHOLE.cut(VIRTUAL, SIDE / 2)
}

/// More nodes than anybody could keep in mind, each of which has a zone, a balloon and a job for this node.
pub fn crowd() -> impl Iterator<Item = Word> {
    let (ours, mut theirs) = halves();
    let count = NEIGHBOURS_MAX.max(BALLOONS_MAX).max(HOLDS_MAX) as u64 + 100;
    let slice = SIDE / (count as u32 + 1);
    (2..count + 2).flat_map(move |id| {
        let node = NodeId(id);
        let (zone, rest) = theirs.cut(0, theirs.low()[0] + slice);
        theirs = rest;
        let vitals = Vitals {
            machine: Shared::new(Machine::with_capacity(Resources::cores(2))),
            residual: Resources::cores(1),
            running: 1,
            waiting: 0,
            bar: 0,
            load: [0; 4],
            required: 0,
            backlog: None,
        };
        let update = Update {
            at: Time::from_secs(1),
            claims: Shared::new(vec![Claim { zone, version: 1 }]),
            point: *zone.low(),
            vitals: None,
            ahead: Default::default(),
            peers: Shared::new(Vec::new()),
        };
        let balloon = Balloon { node, at: Time::from_secs(1), point: *ours.low(), vitals };
        let offer = Offer {
            job: JobId::from_number(id),
            needs: Needs::new(Resources::cores(1), Span::from_secs(60)),
            overtaken: 0,
            entered: Time::ZERO,
            at_once: false,
        };
        [
            Message::Can(can::Message::Update(Shared::new(update), false)),
            Message::Can(can::Message::Tie(Shared::new(balloon), 0)),
            Message::TriPronged(tri_pronged::Message::Offer(Shared::new(offer))),
        ]
        .map(|message| Word::Says(node, message))
    })
}
