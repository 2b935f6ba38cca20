//! A state of the small world: a short list of numbers, and the tables that say what they stand for.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use shoal_model::{NodeId, Time};
use shoal_protocols::{KeyOf, Record};

use super::print::{Pass, Print, print};
use super::{Clocks, Explorable, Faults, node_id};

/// A state, as rules see it.
pub struct State<'a, P: Explorable, M> {
    pub(super) tables: &'a Tables<P, M>,
    pub(super) point: &'a Point,
    pub(super) clocks: Clocks,
}

impl<'a, P: Explorable, M> State<'a, P, M> {
    /// All nodes, up or down.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<P, M> {
        (0..self.tables.nodes).map(node_id)
    }

    /// Whether a node is up.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.core(node).is_some()
    }

    /// What runs on a node, if it is up.
    pub fn core(&self, node: NodeId) -> Option<&'a P> {
        self.site(node).core.as_ref()
    }

    /// The cores of all nodes that are up.
    pub fn cores(&self) -> impl Iterator<Item = (NodeId, &'a P)> + '_ {
        self.nodes().filter_map(|node| Some((node, self.core(node)?)))
    }

    /// What a node has durably saved.
    pub fn disk(&self, node: NodeId) -> &'a BTreeMap<KeyOf<P>, P::Record> {
        &self.site(node).disk
    }

    /// The time by a node's clock.
    pub fn now(&self, node: NodeId) -> Time {
        match self.clocks {
            Clocks::Shared => self.point.now,
            Clocks::Own => self.site(node).clock,
        }
    }

    /// What a node asked to be reminded of, in the order in which it is due.
    pub fn timers(&self, node: NodeId) -> impl Iterator<Item = (Time, &'a P::Timer)> {
        self.site(node).timers.iter().map(|(due, timer)| (*due, timer))
    }

    /// The actions of a node that have not ended yet.
    pub fn errands(&self, node: NodeId) -> impl Iterator<Item = &'a P::Action> {
        self.site(node).errands.iter().map(|errand| &errand.action)
    }

    /// The messages in flight: sender, receiver and content.
    pub fn in_flight(&self) -> impl Iterator<Item = (NodeId, NodeId, &'a P::Message)> {
        self.point.air(self.tables.nodes).iter().map(|&letter| {
            let Letter { from, to, message } = self.tables.letters.get(letter);
            (node_id(*from), node_id(*to), message)
        })
    }

    /// What the monitor remembers.
    pub fn monitor(&self) -> &'a M {
        self.tables.monitors.get(self.point.monitor)
    }

    /// What may still go wrong.
    pub fn faults_left(&self) -> Faults {
        self.point.left
    }

    fn site(&self, node: NodeId) -> &'a Site<P> {
        assert!((1..=self.tables.nodes as u64).contains(&node.0), "there is no node {node}");
        self.tables.sites.get(self.point.ids[node.0 as usize - 1])
    }
}

/// A state as numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    /// The sum of the prints of all that `ids` stands for.
    pub sum: Print,
    /// The time by the shared clock; zero where each node has its own.
    pub now: Time,
    /// Which commands of the script are left.
    pub script: u64,
    pub monitor: u32,
    pub left: Faults,
    /// The site of each node, then the letters in flight in ascending order.
    pub ids: Vec<u32>,
}

impl Point {
    /// Becomes a copy without giving up its memory.
    pub fn copy_from(&mut self, other: &Point) {
        let Point { sum, now, script, monitor, left, ref ids } = *other;
        self.ids.clone_from(ids);
        *self = Point { sum, now, script, monitor, left, ids: std::mem::take(&mut self.ids) };
    }

    pub fn air(&self, nodes: usize) -> &[u32] {
        &self.ids[nodes..]
    }

    /// Puts another site in the place of a node.
    pub fn set_site<P: Explorable, M>(&mut self, tables: &Tables<P, M>, node: usize, site: u32) {
        let old = tables.sites.print(self.ids[node]);
        self.sum = self.sum.wrapping_sub(old).wrapping_add(tables.sites.print(site));
        self.ids[node] = site;
    }

    pub fn add_letter<P: Explorable, M>(&mut self, tables: &Tables<P, M>, letter: u32) {
        let place = self.air(tables.nodes).partition_point(|&other| other < letter);
        self.ids.insert(tables.nodes + place, letter);
        self.sum = self.sum.wrapping_add(tables.letters.print(letter));
    }

    pub fn take_letter<P: Explorable, M>(&mut self, tables: &Tables<P, M>, letter: u32) {
        let place = self.air(tables.nodes).partition_point(|&other| other < letter);
        let taken = self.ids.remove(tables.nodes + place);
        debug_assert_eq!(taken, letter);
        self.sum = self.sum.wrapping_sub(tables.letters.print(letter));
    }

    /// What stands for this state.
    pub fn print<P: Explorable, M>(&self, tables: &Tables<P, M>) -> Print {
        let Faults { crashes, losses, duplicates } = self.left;
        let left = u64::from(crashes) << 16 | u64::from(losses) << 8 | u64::from(duplicates);
        let rest = (self.now.as_micros(), self.script, left, tables.monitors.print(self.monitor));
        print(0, &(self.sum, rest))
    }
}

/// All that one node is: what runs on it, its disk, and what it waits for.
#[derive(Clone, Hash)]
pub(super) struct Site<P: Explorable> {
    pub node: usize,
    /// What runs here; nothing while the node is down.
    pub core: Option<P>,
    /// The node's own clock; zero where all share one.
    pub clock: Time,
    pub disk: BTreeMap<KeyOf<P>, P::Record>,
    /// By due time, then in the order asked. A crash drops them, so that lives need not be counted.
    pub timers: Vec<(Time, P::Timer)>,
    /// By print, so that the order in which they were sent is forgotten.
    pub errands: Vec<Errand<P>>,
    /// A write that is not durable yet, and all that waits for it.
    pub waiting: VecDeque<Effect<P>>,
}

impl<P: Explorable> Site<P> {
    pub fn new(node: usize) -> Site<P> {
        Site {
            node,
            core: None,
            clock: Time::ZERO,
            disk: BTreeMap::new(),
            timers: Vec::new(),
            errands: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// What a crash leaves.
    pub fn remains(&self) -> Site<P> {
        Site { clock: self.clock, disk: self.disk.clone(), ..Site::new(self.node) }
    }

    pub fn add_timer(&mut self, due: Time, timer: P::Timer) {
        let place = self.timers.partition_point(|(other, _)| *other <= due);
        self.timers.insert(place, (due, timer));
    }

    pub fn add_errand(&mut self, action: P::Action, outcomes: usize) {
        let print = print(0, &action);
        let place = self.errands.partition_point(|other| other.print < print);
        self.errands.insert(place, Errand { print, action, outcomes });
    }

    pub fn save(&mut self, record: P::Record) {
        self.disk.insert(record.key(), record);
    }
}

/// An action that has not ended yet.
#[derive(Clone, Hash)]
pub(super) struct Errand<P: Explorable> {
    pub print: Print,
    pub action: P::Action,
    /// In how many ways it can end.
    pub outcomes: usize,
}

/// What a node asked for, other than to be reminded.
#[derive(Clone, Hash)]
pub(super) enum Effect<P: Explorable> {
    Send(NodeId, P::Message),
    Save(P::Record),
    Erase(KeyOf<P>),
    Act(P::Action),
    Report(P::Event),
}

impl<P: Explorable> Effect<P> {
    pub fn is_write(&self) -> bool {
        matches!(self, Effect::Save(_) | Effect::Erase(_))
    }
}

/// A message in flight.
#[derive(Clone, Hash)]
pub(super) struct Letter<P: Explorable> {
    pub from: usize,
    pub to: usize,
    pub message: P::Message,
}

/// What the numbers of all states stand for.
pub(super) struct Tables<P: Explorable, M> {
    pub nodes: usize,
    pub sites: Table<Site<P>>,
    pub letters: Table<Letter<P>>,
    pub monitors: Table<M>,
}

impl<P: Explorable, M: Hash> Tables<P, M> {
    pub fn new(nodes: usize) -> Tables<P, M> {
        Tables { nodes, sites: Table::new(1), letters: Table::new(2), monitors: Table::new(3) }
    }
}

/// Keeps each distinct value once, under a number.
pub(super) struct Table<T> {
    salt: u64,
    values: Vec<(Print, T)>,
    numbers: HashMap<Print, u32, Pass>,
}

impl<T: Hash> Table<T> {
    fn new(salt: u64) -> Table<T> {
        Table { salt, values: Vec::new(), numbers: HashMap::default() }
    }

    /// The number of a value, a new one if it is new.
    pub fn put(&mut self, value: T) -> u32 {
        let print = print(self.salt, &value);
        *self.numbers.entry(print).or_insert_with(|| {
            let number = u32::try_from(self.values.len()).expect("memory ends before the numbers do");
            self.values.push((print, value));
            number
        })
    }
}

impl<T> Table<T> {
    pub fn get(&self, number: u32) -> &T {
        &self.values[number as usize].1
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn print(&self, number: u32) -> Print {
        self.values[number as usize].0
    }
}
