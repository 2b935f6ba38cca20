//! Which row of the file holds which key.
//!
//! A key is known by 32 bits of its hash, which is drawn anew for each life: that takes less room than the keys themselves,
//! where hundreds of thousands wait. The file has the keys, and whatever is changed there is found by its row and its key,
//! so that two keys with one hash never share a row.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use rusqlite::{Connection, TransactionBehavior, params};

use super::sum;

/// Keys with what is to lie under them; nothing is to erase.
pub(super) type Group = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Which row of the file holds which key.
#[derive(Debug)]
pub(super) struct Rows<S = RandomState> {
    of: HashMap<u32, u32, S>,
    /// The rows of keys whose hash is that of another, which came first, and rows with very high numbers.
    twins: BTreeMap<Box<[u8]>, i64>,
    /// The highest number that a row has had in this life.
    last: i64,
}

/// What a write has changed.
enum Change<'a> {
    New(&'a [u8], i64),
    Gone(&'a [u8]),
}

impl<S: BuildHasher + Default> Rows<S> {
    pub fn new() -> Rows<S> {
        Rows { of: HashMap::default(), twins: BTreeMap::new(), last: 0 }
    }

    /// Notes where a key lies that was not there before.
    pub fn put(&mut self, key: &[u8], row: i64) {
        self.last = self.last.max(row);
        let hash = self.hash(key);
        let noted = u32::try_from(row).is_ok_and(|low| *self.of.entry(hash).or_insert(low) == low);
        if !noted {
            self.twins.insert(key.into(), row);
        }
    }

    fn hash(&self, key: &[u8]) -> u32 {
        self.of.hasher().hash_one(key) as u32
    }

    /// Where a key lies, if anywhere; or where its twin does.
    fn get(&self, key: &[u8]) -> Option<i64> {
        self.twins.get(key).copied().or_else(|| self.of.get(&self.hash(key)).map(|&row| row.into()))
    }

    fn remove(&mut self, key: &[u8]) {
        if self.twins.remove(key).is_none() {
            let hash = self.hash(key);
            self.of.remove(&hash);
        }
    }

    /// Writes a group as one transaction.
    pub fn write(&mut self, connection: &mut Connection, group: &Group) -> rusqlite::Result<()> {
        let mut changes = Vec::new();
        let mut last = self.last;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction
                .prepare_cached("INSERT INTO records (id, key, value, crc) VALUES (?1, ?2, ?3, ?4)")?;
            let mut update = transaction
                .prepare_cached("UPDATE records SET value = ?3, crc = ?4 WHERE id = ?1 AND key = ?2")?;
            let mut erase = transaction.prepare_cached("DELETE FROM records WHERE id = ?1 AND key = ?2")?;
            for (key, value) in group {
                let row = self.get(key);
                let Some(value) = value else {
                    if let Some(row) = row
                        && erase.execute(params![row, key])? > 0
                    {
                        changes.push(Change::Gone(key));
                    }
                    continue;
                };
                let crc = sum(key, value);
                if let Some(row) = row
                    && update.execute(params![row, key, value, crc])? > 0
                {
                    continue;
                }
                last += 1;
                insert.execute(params![last, key, value, crc])?;
                changes.push(Change::New(key, last));
            }
        }
        transaction.commit()?;
        // Only now: a write that failed has changed nothing.
        for change in changes {
            match change {
                Change::New(key, row) => self.put(key, row),
                Change::Gone(key) => self.remove(key),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasherDefault, Hasher};

    use super::*;

    /// Knows three hashes only.
    #[derive(Default)]
    struct Coarse(u64);

    impl Hasher for Coarse {
        fn finish(&self) -> u64 {
            self.0 % 3
        }

        fn write(&mut self, bytes: &[u8]) {
            self.0 = bytes.iter().fold(self.0, |sum, &byte| sum + u64::from(byte));
        }
    }

    #[test]
    fn rows_with_very_high_numbers_are_found_too() {
        let mut rows: Rows = Rows::new();
        let high = i64::from(u32::MAX) + 7;
        for (key, row) in [(b"a", 1), (b"b", high), (b"c", high - 7)] {
            rows.put(key, row);
        }
        assert_eq!([b"a", b"b", b"c"].map(|key| rows.get(key)), [Some(1), Some(high), Some(high - 7)]);
        rows.remove(b"b");
        assert_eq!([b"a", b"b"].map(|key| rows.get(key)), [Some(1), None]);
    }

    #[test]
    fn keys_of_one_hash_have_rows_of_their_own() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::records_with_sums(&connection).unwrap();
        let mut rows: Rows<BuildHasherDefault<Coarse>> = Rows::new();
        let mut expected = BTreeMap::new();
        let mut next = 1_u64;
        for round in 0..40_u8 {
            let mut group = Group::new();
            for _ in 0..6 {
                // Any numbers will do, as long as keys come again.
                next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (key, erased) = (vec![(next >> 40) as u8 % 16], (next >> 60).is_multiple_of(3));
                group.insert(key, (!erased).then(|| vec![round]));
            }
            rows.write(&mut connection, &group).unwrap();
            for (key, value) in group {
                match value {
                    Some(value) => drop(expected.insert(key, value)),
                    None => drop(expected.remove(&key)),
                }
            }
            if round % 4 == 3 {
                rows = Rows::new();
                let mut select = connection.prepare("SELECT key, id FROM records ORDER BY id").unwrap();
                let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
                found.map(Result::unwrap).for_each(|(key, row): (Vec<u8>, i64)| rows.put(&key, row));
            }
            let mut select = connection.prepare("SELECT key, value FROM records").unwrap();
            let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            let found: Vec<(Vec<u8>, Vec<u8>)> = found.map(Result::unwrap).collect();
            assert_eq!(found.len(), expected.len(), "each key once, in round {round}");
            assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected, "round {round}");
        }
        assert!(!rows.twins.is_empty(), "there were twins");
    }
}
