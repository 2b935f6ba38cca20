//! Every message that simulated nodes send under faults comes back from its frame as it went in.

use std::collections::BTreeSet;

use shoal_daemon::network::wire::{self, HEAD, Head};
use shoal_model::job::{After, Ended};
use shoal_model::{Envelope, Epoch, Job, JobId, Machine, Needs, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::node::{Command, Denial, JobMessage, Message, Node, OwnedRecord, config, handover};
use shoal_protocols::overlay::{self, blatant_s, can, cyclon};
use shoal_protocols::scheduling::{aria, asap, proactive, tri_pronged};
use shoal_protocols::{Message as _, Shared};
use shoal_simulator::faults::{self, Preset};
use shoal_simulator::grid::Grid;
use shoal_simulator::network::latency;
use shoal_simulator::world::Saw;

use crate::simulated::settings;

const NODES: u64 = 12;

fn cyclon() -> overlay::Config {
    cyclon::Config::default().into()
}

/// How jobs come: how many seconds apart, and how wide.
#[derive(Clone, Copy)]
struct Pace {
    apart: u64,
    widest: u32,
}

/// Gangs of up to six, now and then.
const GANGS: Pace = Pace { apart: 15, widest: 6 };
/// Jobs of one node, so many at once that they queue.
const RUSH: Pace = Pace { apart: 1, widest: 1 };

/// All that is said in a run with everything at once going wrong.
fn said(seed: u64, overlay: overlay::Config, recipe: Option<config::Recipe>, pace: Pace) -> Vec<Message> {
    let latency = latency::Config::Uniform(latency::Uniform { min_ms: 1.0, max_ms: 50.0 });
    let faults = faults::Config { preset: Preset::Heavy, until_s: Some(600.0), ..Default::default() };
    let mut settings = settings(seed, NODES as usize, latency, faults);
    settings.story = true;
    settings.overlay = overlay;
    if let Some(recipe) = recipe {
        settings.work.recipe = recipe;
    }
    let mut grid: Grid<Node> = Grid::build(settings).expect("the network makes sense");
    let mut last: Option<(JobId, NodeId)> = None;
    for number in 0..40u8 {
        let at = Time::from_secs(30 + pace.apart * u64::from(number));
        let entry = NodeId(1 + u64::from(number) % NODES);
        let job = Job {
            nodes: (1 + u32::from(number) % pace.widest).try_into().unwrap(),
            environment: (number % 3 == 0).then(|| Box::new([("SEED".into(), number.to_string())].into())),
            after: last
                .filter(|_| number % 4 == 3)
                .map(|(job, _)| Box::new(After([(job, Ended::Any)].into()))),
            ..Job::command(["sleep", "20.5"])
        };
        let envelope = Envelope::new(job, Nonce([number; 16])).unwrap();
        let (job, owners) = (envelope.id(), last.into_iter().collect());
        grid.world().command(at, entry, Command::SubmitAfter(Shared::new(envelope), owners));
        last = Some((job, entry));
    }
    grid.world().run_before(Time::from_secs(1_200));
    let sights = grid.world().sights();
    sights
        .into_iter()
        .filter_map(|sight| if let Saw::Send(_, message) = sight.saw { Some(message) } else { None })
        .collect()
}

fn come_back(messages: Vec<Message>, kinds: &mut BTreeSet<&'static str>) {
    assert!(messages.len() > 1_000, "{} messages are few", messages.len());
    one_by_one(messages, kinds);
}

fn one_by_one(messages: Vec<Message>, kinds: &mut BTreeSet<&'static str>) {
    let mut bytes = Vec::new();
    for message in messages {
        bytes.clear();
        wire::write(&message, &mut bytes).unwrap();
        let head = Head::read(bytes[..HEAD].try_into().unwrap()).unwrap();
        assert_eq!(head.length, bytes.len() - HEAD);
        assert_eq!(wire::read(head.kind, &bytes[HEAD..]).unwrap(), message);
        kinds.insert(Message::KINDS[message.kind()]);
    }
}

/// What nodes of a CAN say only when they meet, leave, or have too much to do, and hosts where an owner denies something.
fn needing_luck() -> Vec<Message> {
    let machine = Shared::new(Machine::with_capacity(Resources::cores(4)));
    let vitals = can::Vitals {
        machine,
        residual: Resources::cores(2),
        running: 1,
        waiting: 3,
        bar: 2,
        load: [1, 2, 3, 4],
        required: 5_000,
        backlog: Some(Span::from_secs(9)),
    };
    let claim = can::Claim { zone: can::Zone::WHOLE.cut(2, 77).1, version: 9 };
    let balloon =
        can::Balloon { node: NodeId(4), at: Time::from_secs(5), point: [7; 6], vitals: vitals.clone() };
    let needs = Needs::new(Resources::cores(1), Span::from_secs(60));
    let job = JobId([3; 16]);
    let offer = tri_pronged::Offer { job, needs, overtaken: 4, entered: Time::from_secs(6), at_once: true };
    let search = tri_pronged::Search {
        job,
        round: 2,
        owner: NodeId(6),
        needs: offer.needs.clone(),
        point: [5; 6],
        avoid: vec![NodeId(9)],
    };
    let aside = tri_pronged::Aside { seen: vec![NodeId(3)], ..tri_pronged::Aside::new(NodeId(7)) };
    let peer = can::Peer { node: NodeId(2), claims: Shared::new(vec![claim]) };
    let update = can::Update {
        at: Time::from_secs(7),
        claims: Shared::new(vec![claim]),
        point: [6; 6],
        vitals: Some(vitals.clone()),
        ahead: [can::Ahead { nodes: 1, cores: 2, required: 3, free: 4 }; 6],
        peers: Shared::new(vec![peer.clone()]),
    };
    let zones = [
        can::Message::Join { newcomer: NodeId(5), point: [4; 6], hops: 1 },
        can::Message::Welcome { claim: Box::new(claim), around: vec![peer.clone()] },
        can::Message::Update(Shared::new(update), true),
        can::Message::Taken,
        can::Message::Grant(Box::new(claim)),
        can::Message::Tie(Shared::new(balloon), 3),
        can::Message::Tied(Time::from_secs(9)),
        can::Message::Untie(Time::from_secs(8)),
        can::Message::Leap { up: true, level: 3 },
        can::Message::Landed { up: false, level: 2, claims: Shared::new(vec![claim]), next: Some(peer) },
    ];
    let beside = [
        can::SecondaryMessage::Knock { newcomer: NodeId(5), hops: 2 },
        can::SecondaryMessage::Enter(None),
        can::SecondaryMessage::Enter(Some(NodeId(8))),
        can::SecondaryMessage::Hold { node: NodeId(8), open: true, hops: 1 },
    ];
    let beside = beside.into_iter().chain(zones.clone().map(can::SecondaryMessage::Zones));
    let said = [
        Message::TriPronged(tri_pronged::Message::FindResidue(Shared::new(search), Box::new(aside))),
        Message::TriPronged(tri_pronged::Message::Offer(Shared::new(offer))),
        Message::TriPronged(tri_pronged::Message::Answer { job, yes: true }),
        Message::TriPronged(tri_pronged::Message::Pull { vitals: Shared::new(vitals), balance: true }),
        Message::TriPronged(tri_pronged::Message::Nothing),
        Message::Job(JobMessage::Denied(job, Epoch(2), Denial::Revoked)),
        Message::Job(JobMessage::Denied(job, Epoch(3), Denial::Rule(u32::MAX))),
    ];
    let envelope = Shared::new(Envelope::new(Job::command(["true"]), Nonce([5; 16])).unwrap());
    let handed = OwnedRecord { numbered: Epoch(7), held: true, ..OwnedRecord::accepted(envelope) };
    let handed = handover::Message::Hand { job: Shared::new(handed), yours: true };
    let handed = [
        handed,
        handover::Message::Ready(job),
        handover::Message::Declined(job),
        handover::Message::Taken(job),
        handover::Message::Keep(job),
    ];
    let moved = Message::Job(JobMessage::Moved(job, NodeId(9)));
    let said = said.into_iter().chain([moved]).chain(handed.map(Message::HandOver));
    let overlays = zones.into_iter().map(Message::Can).chain(beside.map(Message::Secondary));
    overlays.chain(said).collect()
}

#[test]
fn every_message_of_faulty_runs_comes_back_from_its_frame() {
    let mut kinds = BTreeSet::new();
    for seed in [3, 5, 6] {
        come_back(said(seed, cyclon(), None, GANGS), &mut kinds);
    }
    for policy in [asap::Policy::Push, asap::Policy::Pull, asap::Policy::Poll] {
        let recipe = config::Recipe::Asap(asap::Config { policy, ..Default::default() });
        come_back(said(4, cyclon(), Some(recipe), GANGS), &mut kinds);
    }
    for seed in [7, 8] {
        let recipe = config::Recipe::Aria(aria::Config {
            inform_period_ms: 5_000,
            threshold_ms: 1_000,
            ..aria::Config::real()
        });
        come_back(said(seed, blatant_s::Config::default().into(), Some(recipe), RUSH), &mut kinds);
    }
    for (seed, variant) in [(9, proactive::Variant::Proactive), (10, proactive::Variant::Basic)] {
        let recipe = config::Recipe::Proactive(proactive::Config { variant, ..proactive::Config::real() });
        come_back(said(seed, cyclon(), Some(recipe), GANGS), &mut kinds);
    }
    let real = config::Recipe::TriPronged(tri_pronged::Config::real());
    let zones = can::Config { period_ms: 2_000, ..can::Config::real() };
    come_back(said(9, zones.into(), Some(real), GANGS), &mut kinds);
    one_by_one(needing_luck(), &mut kinds);
    // Who holds whom is counted only where it is measured; the overlay of profiles begins with those that are known;
    // nobody here has ten thousand jobs to refuse one more; and that a move is declined needs luck.
    let rare: BTreeSet<&str> =
        ["held", "profiles_held", "profiles_join", "profiles_walk", "profiles_welcome", "refused", "stay"]
            .into();
    let missing: Vec<_> =
        Message::KINDS.iter().filter(|kind| !kinds.contains(*kind) && !rare.contains(*kind)).collect();
    assert!(missing.is_empty(), "{missing:?} was never said");
}
