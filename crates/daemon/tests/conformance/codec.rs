//! Every record that simulated nodes save under faults comes back from a database, and from a journal, as it went in.

use std::collections::{BTreeMap, BTreeSet};

use shoal_daemon::{Home, Journal, Sqlite, Store};
use shoal_model::{Job, NodeId, Time};
use shoal_protocols::Record as _;
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Key, OwnedRecord, Record};
use shoal_simulator::faults::{self, Preset};
use shoal_simulator::network::latency;
use shoal_simulator::world::Saw;

use crate::arm::NODES;
use crate::simulated::grid;

/// What happens to the disk of each node in a run with everything at once going wrong, in order.
fn writes(seed: u64) -> BTreeMap<NodeId, Vec<Result<Record, Key>>> {
    let latency = latency::Config::Uniform(latency::Uniform { min_ms: 1.0, max_ms: 50.0 });
    let faults = faults::Config { preset: Preset::Heavy, until_s: Some(900.0), ..Default::default() };
    let mut grid = grid(seed, NODES as usize, latency, faults);
    for number in 0..60u8 {
        let at = Time::from_secs(30 + 15 * u64::from(number));
        let entry = NodeId(1 + u64::from(number) % NODES);
        let argv: &[&str] = if number % 7 == 0 { &["false"] } else { &["sleep", "20.5"] };
        let job = Job {
            nodes: (1 + u32::from(number) % 3).try_into().unwrap(),
            retry: (number % 2 == 0).then(|| 2.try_into().unwrap()),
            environment: (number % 3 == 0).then(|| Box::new([("SEED".into(), number.to_string())].into())),
            ..Job::command(argv.iter().copied())
        };
        grid.submit(at, entry, shoal_model::Envelope::new(job, shoal_model::Nonce([number; 16])).unwrap());
    }
    grid.world().run_before(Time::from_secs(1_800));
    let mut writes: BTreeMap<NodeId, Vec<Result<Record, Key>>> = BTreeMap::new();
    for sight in grid.world().sights() {
        match sight.saw {
            Saw::Save(record) => writes.entry(sight.node).or_default().push(Ok(record)),
            Saw::Erase(key) => writes.entry(sight.node).or_default().push(Err(key)),
            _ => {}
        }
    }
    writes
}

/// The kinds of record that there are, told apart as far as their encodings differ.
fn kind(record: &Record) -> &'static str {
    match record {
        Record::Commit(two_phase::Record::Tenure(tenure)) => {
            match (&tenure.placed, tenure.releasing.is_empty()) {
                (None, true) => "tenure, asking",
                (Some(_), _) => "tenure, placed",
                (None, false) => "tenure, releasing",
            }
        }
        Record::Commit(two_phase::Record::Lock(lock)) => {
            if lock.confirmed {
                "lock, confirmed"
            } else {
                "lock"
            }
        }
        Record::Owned(OwnedRecord { end: None, .. }) => "owned",
        Record::Owned(OwnedRecord { end: Some(_), .. }) => "owned, ended",
        Record::Exits(..) => "exits",
        Record::Aria(_) => "aria",
        Record::Task(_, _, None) => "task",
        Record::Task(_, _, Some(_)) => "task, ended",
    }
}

#[test]
fn every_record_of_a_faulty_run_comes_back_from_its_store() {
    let mut kinds = BTreeSet::new();
    for (node, writes) in writes(3) {
        let folder = tempfile::tempdir().unwrap();
        let lock = Home::at(folder.path().join("home")).lock().unwrap();
        let mut stores: [Box<dyn Store<Record>>; 2] = [
            Box::new(Journal::open(folder.path()).unwrap().journal),
            Box::new(Sqlite::open(&lock).unwrap().store),
        ];
        let mut expected: BTreeMap<Key, Record> = BTreeMap::new();
        for write in writes {
            match write {
                Ok(record) => {
                    let bytes = minicbor::to_vec(&record).unwrap();
                    assert_eq!(bytes.len(), minicbor::len(&record), "{record:?}");
                    assert_eq!(minicbor::decode::<Record>(&bytes).unwrap(), record);
                    kinds.insert(kind(&record));
                    stores.iter_mut().for_each(|store| store.save(&record).unwrap());
                    expected.insert(record.key(), record);
                }
                Err(key) => {
                    let bytes = minicbor::to_vec(key).unwrap();
                    assert_eq!(minicbor::decode::<Key>(&bytes).unwrap(), key);
                    stores.iter_mut().for_each(|store| store.erase(&key).unwrap());
                    expected.remove(&key);
                }
            }
        }
        stores.iter_mut().for_each(|store| store.sync().unwrap());
        drop(stores);
        let expected: Vec<Record> = expected.into_values().collect();
        assert_eq!(Journal::<Record>::open(folder.path()).unwrap().records, expected, "of {node}");
        assert_eq!(Sqlite::<Record>::open(&lock).unwrap().records, expected, "of {node}");
    }
    let all = [
        "exits",
        "lock",
        "lock, confirmed",
        "owned",
        "owned, ended",
        "task",
        "task, ended",
        "tenure, asking",
        "tenure, placed",
        "tenure, releasing",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
}
