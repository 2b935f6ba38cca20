//! The address book: where nodes are, as they themselves have signed it; bounded, and kept across lives.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shoal_model::envelope::PublicKey;
use shoal_model::{NodeId, Time};

use super::record::{AddressRecord, Known, RecordError};
use crate::cabinet::{Cabinet, CabinetError};
use crate::membership::GridId;

/// Nodes in a book, at most; the one that was not used for longest makes room.
pub const BOOK_MAX: usize = 4096;
/// Nodes that were mentioned and are not in the book, at most.
const MENTIONED_MAX: usize = 4096;
/// How long the answer to a question after a node is waited for before it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

const DRAWER: &str = "addresses";

/// Where nodes are.
pub(super) struct Book {
    grid: GridId,
    entries: HashMap<NodeId, Entry>,
    /// Who was mentioned and is unknown: by whom, and when that one was asked.
    mentioned: HashMap<NodeId, (NodeId, Option<Instant>)>,
    /// What is not kept yet.
    dirty: BTreeSet<NodeId>,
    /// Counts uses: the larger, the later.
    uses: u64,
}

struct Entry {
    known: Arc<Known>,
    used: u64,
    /// When this record took the place of an older one.
    changed: Option<Instant>,
    /// Whether it has said that it stops, and has not been spoken with since.
    stopped: bool,
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// It is new, or newer than what was known.
    News(NodeId),
    /// Nothing that was not known.
    Old,
    /// Another key has this id.
    Taken,
    /// Worth nothing.
    Refused(RecordError),
}

impl Book {
    /// The book that was kept; records that are worth nothing any more are left out.
    pub fn open(grid: GridId, cabinet: &dyn Cabinet, now: Time) -> Result<Book, CabinetError> {
        let mut book = Book {
            grid,
            entries: HashMap::new(),
            mentioned: HashMap::new(),
            dirty: BTreeSet::new(),
            uses: 0,
        };
        for (_, bytes) in cabinet.list(DRAWER)? {
            if let Ok(record) = minicbor::decode::<AddressRecord>(&bytes) {
                book.learn(record, now);
            }
        }
        book.dirty.clear();
        for entry in book.entries.values_mut() {
            entry.changed = None;
        }
        Ok(book)
    }

    /// Takes a record in.
    pub fn learn(&mut self, record: AddressRecord, now: Time) -> Learned {
        let claim = match record.claim() {
            Ok(claim) => claim,
            Err(error) => return Learned::Refused(error),
        };
        let before = self.entries.get(&claim.node);
        if let Some(before) = before {
            if before.known.member.key != claim.key {
                return Learned::Taken;
            }
            if before.known.number >= claim.number {
                return Learned::Old;
            }
        }
        let changed = before.map(|_| Instant::now());
        match record.verify(self.grid, now) {
            Err(error) => Learned::Refused(error),
            Ok(known) => {
                self.uses += 1;
                let entry = Entry { known: Arc::new(known), used: self.uses, changed, stopped: false };
                self.entries.insert(claim.node, entry);
                self.dirty.insert(claim.node);
                self.mentioned.remove(&claim.node);
                self.make_room();
                Learned::News(claim.node)
            }
        }
    }

    /// Where a node is.
    pub fn get(&mut self, node: NodeId) -> Option<Arc<Known>> {
        self.uses += 1;
        let entry = self.entries.get_mut(&node)?;
        entry.used = self.uses;
        Some(Arc::clone(&entry.known))
    }

    /// The record of a node that has changed since an instant.
    pub fn changed_since(&self, node: NodeId, since: Instant) -> Option<&Arc<Known>> {
        let entry = self.entries.get(&node)?;
        entry.changed.is_some_and(|changed| changed > since).then_some(&entry.known)
    }

    /// Notes whether a node has stopped, as it said itself.
    pub fn note_stopped(&mut self, node: NodeId, stopped: bool) {
        if let Some(entry) = self.entries.get_mut(&node) {
            entry.stopped = stopped;
        }
    }

    /// Whether a node has said that it stops, and has not been spoken with since.
    pub fn has_stopped(&self, node: NodeId) -> bool {
        self.entries.get(&node).is_some_and(|entry| entry.stopped)
    }

    /// Whose key a node has.
    pub fn key(&self, node: NodeId) -> Option<PublicKey> {
        self.entries.get(&node).map(|entry| entry.known.member.key)
    }

    /// The nodes that were used last, latest first.
    pub fn recent(&self, most: usize) -> Vec<Arc<Known>> {
        let mut entries: Vec<&Entry> = self.entries.values().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        entries.into_iter().take(most).map(|entry| Arc::clone(&entry.known)).collect()
    }

    /// Notes that a node spoke of another; whether it should be asked where that one is.
    pub fn mentioned(&mut self, node: NodeId, by: NodeId) -> bool {
        if self.entries.contains_key(&node) {
            return false;
        }
        if self.mentioned.len() >= MENTIONED_MAX && !self.mentioned.contains_key(&node) {
            // Rather forget all than be filled by whoever makes up names.
            self.mentioned.clear();
        }
        let (teller, asked) = self.mentioned.entry(node).or_insert((by, None));
        *teller = by;
        let ask = asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN);
        if ask {
            *asked = Some(Instant::now());
        }
        ask
    }

    /// Who spoke last of a node that is unknown.
    pub fn teller(&self, node: NodeId) -> Option<NodeId> {
        self.mentioned.get(&node).map(|(teller, _)| *teller)
    }

    /// How many nodes are in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// What is to be kept, and what is to be forgotten.
    pub fn take_dirty(&mut self) -> Vec<(NodeId, Option<AddressRecord>)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty
            .into_iter()
            .map(|node| (node, self.entries.get(&node).map(|entry| entry.known.record.clone())))
            .collect()
    }

    fn make_room(&mut self) {
        while self.entries.len() > BOOK_MAX {
            let Some(oldest) = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(node, _)| *node)
            else {
                return;
            };
            self.entries.remove(&oldest);
            self.dirty.insert(oldest);
        }
    }
}

/// Keeps what a book has to keep.
pub(super) fn keep(
    cabinet: &dyn Cabinet,
    dirty: impl IntoIterator<Item = (NodeId, Option<AddressRecord>)>,
) -> Result<(), CabinetError> {
    for (node, record) in dirty {
        let key = node.0.to_be_bytes();
        match record {
            Some(record) => {
                let bytes = minicbor::to_vec(record).expect("writing to memory does not fail");
                cabinet.put(DRAWER, &key, &bytes)?;
            }
            None => cabinet.remove(DRAWER, &key)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cabinet::MemoryCabinet;
    use crate::identity::Identity;
    use crate::membership::Grid;

    const NOW: Time = Time::from_secs(1_000);

    /// A grid, and the records that a member of it makes.
    fn grid() -> (Grid, Identity) {
        let identity = Identity::from_bytes(&[1; 32]);
        let cabinet = Arc::new(MemoryCabinet::new());
        (Grid::create(&identity, "lab".parse().unwrap(), vec![], cabinet, NOW).unwrap(), identity)
    }

    fn record(grid: &Grid, identity: &Identity, port: u16, number: u64) -> AddressRecord {
        AddressRecord::new(identity, grid.chain(), vec![([127, 0, 0, 1], port).into()], vec![], number)
    }

    fn book(grid: &Grid) -> Book {
        Book::open(grid.id(), &MemoryCabinet::new(), NOW).unwrap()
    }

    #[test]
    fn newer_record_takes_the_place_of_an_older_one_and_never_the_other_way() {
        let (grid, identity) = grid();
        let (mut book, node) = (book(&grid), identity.node());
        assert_eq!(book.learn(record(&grid, &identity, 2, 2), NOW), Learned::News(node));
        assert_eq!(book.learn(record(&grid, &identity, 1, 1), NOW), Learned::Old);
        let start = Instant::now();
        assert!(book.changed_since(node, start).is_none());
        assert_eq!(book.learn(record(&grid, &identity, 3, 3), NOW), Learned::News(node));
        assert_eq!(book.get(node).unwrap().addresses, vec![([127, 0, 0, 1], 3).into()]);
        assert!(book.changed_since(node, start).is_some());
    }

    #[test]
    fn record_of_a_stranger_or_changed_on_its_way_is_refused() {
        let (grid, identity) = grid();
        let mut book = book(&grid);
        let stranger = Identity::from_bytes(&[9; 32]);
        let forged = record(&grid, &stranger, 1, 1);
        assert_eq!(
            book.learn(forged, NOW),
            Learned::Refused(RecordError::Chain(crate::membership::ChainError::OtherKey))
        );
        let mut bytes = minicbor::to_vec(record(&grid, &identity, 1, 1)).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(book.learn(minicbor::decode(&bytes).unwrap(), NOW), Learned::Refused(RecordError::Forged));
        assert_eq!(book.len(), 0);
    }

    #[test]
    fn book_is_found_again_after_a_restart() {
        let (grid, identity) = grid();
        let cabinet = MemoryCabinet::new();
        let mut book = Book::open(grid.id(), &cabinet, NOW).unwrap();
        book.learn(record(&grid, &identity, 1, 1), NOW);
        keep(&cabinet, book.take_dirty()).unwrap();
        assert!(book.take_dirty().is_empty());
        let mut again = Book::open(grid.id(), &cabinet, NOW).unwrap();
        assert_eq!(again.get(identity.node()), book.get(identity.node()));
    }

    #[test]
    fn unknown_node_is_asked_after_once_in_a_while() {
        let (grid, identity) = grid();
        let mut book = book(&grid);
        assert!(book.mentioned(NodeId(7), NodeId(2)));
        assert!(!book.mentioned(NodeId(7), NodeId(3)), "asked a moment ago");
        assert_eq!(book.teller(NodeId(7)), Some(NodeId(3)));
        book.learn(record(&grid, &identity, 1, 1), NOW);
        assert!(!book.mentioned(identity.node(), NodeId(2)));
    }

    #[test]
    fn those_who_were_not_used_for_longest_make_room() {
        let (first, identity) = grid();
        let mut book = book(&first);
        book.learn(record(&first, &identity, 1, 1), NOW);
        let known = book.get(identity.node()).unwrap();
        for number in 0..BOOK_MAX as u64 + 5 {
            book.uses += 1;
            let entry = Entry { known: Arc::clone(&known), used: book.uses, changed: None, stopped: false };
            book.entries.insert(NodeId(number), entry);
        }
        book.make_room();
        assert_eq!(book.len(), BOOK_MAX);
        assert!(book.get(identity.node()).is_none() && book.get(NodeId(BOOK_MAX as u64)).is_some());
    }
}
