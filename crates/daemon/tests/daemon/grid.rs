//! Nodes that run for real: threads, the real clock, messages between them.

use std::collections::BTreeSet;

use shoal_daemon::{Clock, Completion, Driver, Executor, Home, Memory, Running, Setup, Sqlite, Switchboard};
use shoal_model::{NodeId, Time};
use shoal_protocols::node::{self, Config, Node};
use shoal_protocols::overlay::cyclon;

use crate::ledger::{self, Command};
use crate::support::{Diary, wait_until};

#[test]
fn ledgers_share_every_entry_over_a_network_that_loses_half() {
    let nodes = [NodeId(1), NodeId(2)];
    let switchboard = Switchboard::new();
    let folder = tempfile::tempdir().unwrap();
    let diaries = [Diary::default(), Diary::default()];
    let running: Vec<_> = [(0, 1), (1, 0)]
        .map(|(me, peer)| {
            let home = Home::at(folder.path().join(nodes[me].to_string()));
            let opened = Sqlite::open(&home.lock().unwrap()).unwrap();
            let line = switchboard.line(nodes[me], ledger::chance(me as u64)).losing(50);
            let peers = [nodes[peer]];
            let setup = ledger::setup(nodes[me], &peers, opened.records, opened.store, line, &diaries[me]);
            let driver = Driver::new(setup);
            switchboard.connect(nodes[me], driver.mailbox());
            driver.spawn().unwrap()
        })
        .into();

    for amount in 1..=20 {
        running[0].mailbox().command(Command::Add(amount)).unwrap();
        running[1].mailbox().command(Command::Add(100 * amount)).unwrap();
    }
    for diary in &diaries {
        wait_until("all entries are shared", || {
            (1..=20).all(|number| diary.has(&format!("report Shared({number})")))
        });
    }
    for (node, diary) in running.iter().zip(&diaries) {
        node.mailbox().command(Command::Audit).unwrap();
        wait_until("the audit is done", || diary.has("report Total(21210)"));
    }
    assert!(switchboard.counts().lost > 0);

    let entries: Vec<_> = running.into_iter().map(|node| node.stop().unwrap().entries).collect();
    assert_eq!(entries[0], entries[1]);
    for (node, diary) in nodes.iter().zip(&diaries) {
        assert!((1..=20).all(|number| diary.count(&format!("report Shared({number})")) == 1));
        let home = Home::at(folder.path().join(node.to_string()));
        let kept = Sqlite::<ledger::Record>::open(&home.lock().unwrap()).unwrap();
        assert_eq!(kept.records.len(), 40, "no entry is open any more, and none is lost");
    }
}

/// The executor of nodes that only gossip.
struct Unused;

impl Executor<Node> for Unused {
    fn perform(&mut self, _now: Time, action: node::Action, _completion: Completion<Node>) {
        panic!("a node that takes no jobs starts nothing: {action:?}");
    }
}

/// A CYCLON node on a thread of its own, entering through the first one.
fn spawn(me: NodeId, switchboard: &Switchboard<Node>, reports: &Diary) -> Running<Node> {
    let reports = reports.clone();
    let driver = Driver::new(Setup {
        me,
        config: Config {
            overlay: cyclon::Config { cache: 5, shuffle: 3, walk: 3, period_ms: 20, rests: 0 }.into(),
            ..Config::default()
        },
        records: vec![],
        chance: ledger::chance(me.0),
        clock: Clock::new(),
        store: Box::new(Memory::new()),
        network: Box::new(switchboard.line(me, ledger::chance(1000 + me.0))),
        executor: Box::new(Unused),
        reports: Box::new(move |_, event| reports.note(format!("{me} {event:?}"))),
    });
    driver.mailbox().command(node::Command::Join(NodeId(1))).unwrap();
    switchboard.connect(me, driver.mailbox());
    driver.spawn().unwrap()
}

fn neighbours(node: &Running<Node>) -> BTreeSet<NodeId> {
    node.mailbox().look(|node| node.overlay().neighbours().collect()).unwrap()
}

#[test]
fn cyclon_fills_the_caches_and_forgets_who_has_stopped() {
    let switchboard = Switchboard::new();
    let reports = Diary::default();
    let mut nodes: Vec<Running<Node>> = (1..=8).map(|id| spawn(NodeId(id), &switchboard, &reports)).collect();

    for node in &nodes {
        wait_until("a cache is full", || neighbours(node).len() == 5);
    }
    wait_until("somebody knows each node", || {
        nodes.iter().flat_map(neighbours).collect::<BTreeSet<_>>() == (1..=8).map(NodeId).collect()
    });

    let gone = nodes.pop().unwrap();
    gone.stop().unwrap();
    wait_until("nobody knows the stopped node", || {
        !nodes.iter().any(|node| neighbours(node).contains(&NodeId(8)))
    });
    wait_until("its silence is reported", || reports.lines().iter().any(|line| line.ends_with("Silent(n8)")));

    for node in nodes {
        let core = node.stop().unwrap();
        assert!(core.overlay().degree() > 0);
    }
    assert_eq!(switchboard.counts().overflowed, 0);
}
