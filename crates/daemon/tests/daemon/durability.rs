//! Nothing that follows from a record leaves before the record is durable, and nothing at all after a failure.

use std::io;
use std::path::Path;
use std::sync::mpsc;

use shoal_daemon::{Driver, Memory, Refused, store};
use shoal_model::NodeId;

use crate::ledger::{self, Command, Ledger, Record};
use crate::support::{Diary, NotedNetwork, NotedStore, wait_until};

const ME: NodeId = NodeId(1);
const PEER: NodeId = NodeId(2);

/// A ledger with one peer that never answers, in a world that writes everything down.
fn driver(
    diary: &Diary,
    before_sync: impl FnMut(usize) -> Result<(), store::Error> + Send + 'static,
) -> Driver<Ledger> {
    let store = NotedStore { store: Memory::<Record>::new(), diary: diary.clone(), before_sync, syncs: 0 };
    Driver::new(ledger::setup(ME, &[PEER], vec![], store, NotedNetwork(diary.clone()), diary))
}

fn failure() -> store::Error {
    store::Error::io("sync", Path::new("disk"))(io::Error::other("the disk is gone"))
}

#[test]
fn effects_after_a_save_leave_once_it_is_durable_and_in_order() {
    let diary = Diary::default();
    let driver = driver(&diary, |_| Ok(()));
    driver.mailbox().command(Command::Add(5)).unwrap();
    driver.mailbox().stop();
    driver.run().unwrap();

    let expected = [
        "save Entry(n1, 1)",
        "save Open(1)",
        "sync",
        "durable",
        "report Added(1)",
        "send n2 Copy { number: 1, amount: 5 }",
    ];
    assert_eq!(diary.lines(), expected);
}

#[test]
fn what_comes_while_the_disk_is_busy_shares_one_sync() {
    let diary = Diary::default();
    let (entered, busy) = mpsc::channel();
    let (release, free) = mpsc::channel();
    let running = driver(&diary, move |_| {
        entered.send(()).unwrap();
        free.recv().unwrap();
        Ok(())
    })
    .spawn()
    .unwrap();

    running.mailbox().command(Command::Add(5)).unwrap();
    busy.recv().unwrap();
    for _ in 0..50 {
        running.mailbox().command(Command::Add(1)).unwrap();
    }
    let answer = {
        let mailbox = running.mailbox().clone();
        std::thread::spawn(move || mailbox.look(|ledger| ledger.entries.len()))
    };
    assert_eq!(diary.lines(), ["save Entry(n1, 1)", "save Open(1)", "sync"]);

    release.send(()).unwrap();
    busy.recv().unwrap();
    let lines = diary.lines();
    assert!(diary.has("report Added(1)") && !diary.has("report Added(2)"), "{lines:#?}");
    assert_eq!(diary.count("sync"), 2);

    release.send(()).unwrap();
    wait_until("all entries are reported", || diary.has("report Added(51)"));
    assert_eq!(answer.join().unwrap(), Ok(51));
    assert_eq!(diary.count("sync"), 2);
    running.stop().unwrap();
}

#[test]
fn failed_sync_stops_the_node_for_good_and_nothing_leaves() {
    let diary = Diary::default();
    let running = driver(&diary, |sync| if sync == 2 { Err(failure()) } else { Ok(()) }).spawn().unwrap();
    let mailbox = running.mailbox().clone();
    mailbox.command(Command::Add(5)).unwrap();
    wait_until("the first entry is reported", || diary.has("report Added(1)"));
    mailbox.command(Command::Add(6)).unwrap();

    let fault = running.join().unwrap_err();
    assert_eq!(
        fault.to_string(),
        "node n1 stopped for good, since it cannot keep what it promises: cannot sync disk: the disk is gone"
    );
    assert_eq!(mailbox.command(Command::Add(7)), Err(Refused::Stopped));
    assert_eq!(mailbox.look(|_| ()), Err(Refused::Stopped));
    let lines = diary.lines();
    assert_eq!(diary.count("sync"), 2, "{lines:#?}");
    assert_eq!(diary.count("durable"), 1, "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "sync");
    assert!(!lines.iter().any(|line| line.contains("number: 2") || line.contains("Added(2)")), "{lines:#?}");
}

/// A store that refuses the second record of the first entry.
struct Refusing(Diary);

impl shoal_daemon::Store<Record> for Refusing {
    fn save(&mut self, record: &Record) -> Result<(), store::Error> {
        self.0.note("save");
        if matches!(record, Record::Open { .. }) { Err(failure()) } else { Ok(()) }
    }

    fn erase(&mut self, _key: &ledger::Key) -> Result<(), store::Error> {
        self.0.note("erase");
        Ok(())
    }

    fn sync(&mut self) -> Result<(), store::Error> {
        self.0.note("sync");
        Ok(())
    }
}

#[test]
fn refused_write_stops_the_node_before_its_sync_and_before_later_inputs() {
    let diary = Diary::default();
    let network = NotedNetwork(diary.clone());
    let driver = Driver::new(ledger::setup(ME, &[PEER], vec![], Refusing(diary.clone()), network, &diary));
    driver.mailbox().command(Command::Add(5)).unwrap();
    driver.mailbox().command(Command::Add(6)).unwrap();
    driver.mailbox().stop();

    assert!(driver.run().is_err());
    assert_eq!(diary.lines(), ["save", "save"]);
}
