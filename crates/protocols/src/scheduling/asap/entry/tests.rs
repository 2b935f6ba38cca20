//! One entry node, whose searchers and commits are the test; whole conversations are tested in simulated grids.

use std::num::NonZeroU32;

use rand::SeedableRng;
use shoal_model::calendar::{Calendar, Capacity};
use shoal_model::{Machine, Resources};

use super::*;
use crate::overlay::Overlay;
use crate::overlay::cyclon::{self, Cyclon};
use crate::protocol::{Chance, Input, KeyOf, Layer, Out, Protocol};
use crate::scheduling::{Command, Recipe};

const ME: NodeId = NodeId(1);
const SEARCHERS: [NodeId; 3] = [NodeId(2), NodeId(3), NodeId(4)];
const JOB: JobId = JobId([7; 16]);

/// What a layer said and reported; no other effect matters here.
struct Heard<P: Layer> {
    sent: Vec<(NodeId, P::Message)>,
    events: Vec<P::Event>,
}

impl<P: Layer> Heard<P> {
    fn nothing() -> Heard<P> {
        Heard { sent: Vec::new(), events: Vec::new() }
    }
}

impl<P: Layer> Out<P> for Heard<P> {
    fn send(&mut self, to: NodeId, message: P::Message) {
        self.sent.push((to, message));
    }

    fn wake(&mut self, _: Time, _: P::Timer) {}

    fn save(&mut self, _: P::Record) {}

    fn erase(&mut self, _: KeyOf<P>) {}

    fn act(&mut self, _: P::Action) {}

    fn report(&mut self, event: P::Event) {
        self.events.push(event);
    }
}

/// What came of an input: in which round who was asked to search, and what the node is told.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Asks(u32, BTreeSet<NodeId>),
    Says(Event),
}

struct Scene {
    asap: Asap,
    overlay: Overlay,
    chance: Chance,
}

impl Scene {
    fn new(config: Config) -> Scene {
        let mut chance = Chance::seed_from_u64(1);
        let mut cyclon = Cyclon::restore(&cyclon::Config::default(), ME, std::iter::empty());
        let meet = Input::Command(cyclon::Command::Meet(SEARCHERS.into()));
        cyclon.handle(meet, &mut Ctx::new(Time::ZERO, ME, &mut chance, &mut Heard::nothing()));
        Scene { asap: Asap::new(config), overlay: Overlay::Cyclon(cyclon), chance }
    }

    fn tell(&mut self, input: Input<Asap>) -> Vec<Next> {
        let (machine, mut heard) = (Machine::with_capacity(Resources::cores(1)), Heard::nothing());
        let calendar = Calendar::new(Capacity::constant(Resources::cores(1)).expect("a machine"));
        let here = Here { overlay: &self.overlay, calendar: &calendar, machine: &machine };
        let mut ctx = Ctx::new(Time::ZERO, ME, &mut self.chance, &mut heard);
        self.asap.handle(input, &here, &mut ctx);
        let asked = heard.sent.into_iter().filter_map(|(to, message)| match message {
            Message::Search(search) => Some((search.round, to)),
            _ => None,
        });
        let mut rounds: BTreeMap<u32, BTreeSet<NodeId>> = BTreeMap::new();
        for (round, to) in asked {
            rounds.entry(round).or_default().insert(to);
        }
        let asks = rounds.into_iter().map(|(round, who)| Next::Asks(round, who));
        asks.chain(heard.events.into_iter().map(Next::Says)).collect()
    }

    fn plan(&mut self, begin: Option<Time>) -> Vec<Next> {
        let needs = Needs::new(Resources::cores(1), Span::from_mins(1));
        let needs = Needs { nodes: NonZeroU32::new(2).unwrap(), begin, ..needs };
        self.tell(Input::Command(Command::Plan { job: JOB, needs, avoid: BTreeSet::new() }))
    }

    /// The searchers answer one after the other, each with a start, in minutes, and nodes of its own.
    fn answer(&mut self, round: u32, minutes: [u64; 3]) -> Vec<Next> {
        let mut next = Vec::new();
        for (from, minute) in SEARCHERS.into_iter().zip(minutes) {
            assert_eq!(next, [], "a round is closed by its last answer");
            let answer = Answer::Found { start: minutes_in(minute), nodes: nodes_of(from).into() };
            let message = Message::SearchReply { job: JOB, round, answer };
            next = self.tell(Input::Message { from, message });
        }
        next
    }

    fn refuse(&mut self) -> Vec<Next> {
        let why = Failure::Refused { by: NodeId(20), next: None };
        self.tell(Input::Command(Command::Failed { job: JOB, why }))
    }
}

fn minutes_in(minutes: u64) -> Time {
    Time::ZERO + Span::from_mins(minutes)
}

/// Each searcher finds two nodes of its own.
fn nodes_of(searcher: NodeId) -> Vec<NodeId> {
    vec![NodeId(10 * searcher.0), NodeId(10 * searcher.0 + 1)]
}

fn proposes(searcher: NodeId, minute: u64) -> [Next; 1] {
    let (start, nodes) = (minutes_in(minute), nodes_of(searcher));
    [Next::Says(Event::Propose { job: JOB, start, nodes })]
}

fn asks(round: u32) -> [Next; 1] {
    [Next::Asks(round, SEARCHERS.into())]
}

const OUTRUN: Event = Event::GiveUp { job: JOB, why: Stuck::Outrun };

#[test]
fn place_before_the_job_may_begin_is_dropped() {
    let mut scene = Scene::new(Config::default());
    assert_eq!(scene.plan(Some(minutes_in(10))), asks(1));
    assert_eq!(scene.answer(1, [9, 12, 10]), proposes(SEARCHERS[2], 10), "not sooner, but then");
    assert_eq!(scene.refuse(), proposes(SEARCHERS[1], 12));
    assert_eq!(scene.refuse(), asks(2), "the early one is no alternative either");
}

#[test]
fn any_place_will_do_for_a_job_that_may_begin_at_once() {
    let mut scene = Scene::new(Config::default());
    scene.plan(None);
    assert_eq!(scene.answer(1, [9, 12, 10]), proposes(SEARCHERS[0], 9));
}

#[test]
fn refused_place_is_followed_by_the_next_best_until_all_are_used_up() {
    let mut scene = Scene::new(Config::default());
    scene.plan(None);
    assert_eq!(scene.answer(1, [5, 2, 4]), proposes(SEARCHERS[1], 2));
    assert_eq!(scene.refuse(), proposes(SEARCHERS[2], 4));
    assert_eq!(scene.refuse(), proposes(SEARCHERS[0], 5));
    assert_eq!(scene.refuse(), asks(2));
}

#[test]
fn of_equal_places_the_first_that_was_told_is_tried_first() {
    let mut scene = Scene::new(Config::default());
    scene.plan(None);
    assert_eq!(scene.answer(1, [3, 2, 2]), proposes(SEARCHERS[1], 2));
    assert_eq!(scene.refuse(), proposes(SEARCHERS[2], 2));
}

#[test]
fn next_best_with_a_node_that_was_silent_is_passed_over() {
    let mut scene = Scene::new(Config::default());
    scene.plan(None);
    scene.answer(1, [5, 2, 4]);
    let silent = nodes_of(SEARCHERS[2])[0];
    let why = Failure::Silent(vec![silent]);
    let next = scene.tell(Input::Command(Command::Failed { job: JOB, why }));
    let [proposed] = proposes(SEARCHERS[0], 5);
    assert_eq!(next, [Next::Says(Event::Silent(silent)), proposed]);
}

#[test]
fn without_alternatives_a_refused_place_begins_all_anew() {
    let mut scene = Scene::new(Config { alternatives: false, ..Config::default() });
    scene.plan(None);
    assert_eq!(scene.answer(1, [5, 2, 4]), proposes(SEARCHERS[1], 2));
    assert_eq!(scene.refuse(), asks(2), "two more places were found, and are not tried");
}

#[test]
fn job_is_given_up_after_as_many_new_rounds_as_there_are_retries() {
    for retries in [0, 1, 3] {
        let mut scene = Scene::new(Config { retries, ..Config::default() });
        let mut next = scene.plan(None);
        for round in 1..=u32::from(retries) + 1 {
            assert_eq!(next, asks(round), "with {retries} retries");
            assert_eq!(scene.answer(round, [5, 2, 4]), proposes(SEARCHERS[1], 2));
            assert_eq!(scene.refuse(), proposes(SEARCHERS[2], 4));
            assert_eq!(scene.refuse(), proposes(SEARCHERS[0], 5));
            next = scene.refuse();
        }
        assert_eq!(next, [Next::Says(OUTRUN)], "with {retries} retries");
        assert_eq!(scene.asap.searches(), 0);
    }
}

#[test]
fn job_that_may_wait_is_stuck_after_its_last_round_and_not_over() {
    let mut scene = Scene::new(Config { retries: 0, give_up: false, ..Config::default() });
    scene.plan(None);
    scene.answer(1, [5, 2, 4]);
    scene.refuse();
    scene.refuse();
    assert_eq!(scene.refuse(), [Next::Says(Event::Stuck { job: JOB, why: Stuck::Outrun })]);
}
