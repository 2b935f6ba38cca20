//! The agenda of a shard: a timing wheel that hands out what is due, earliest first.
//!
//! Most of what is put in is due within seconds, in no order at all; a heap would pay a cache miss per level for
//! each. The wheel puts an entry into the slot of its time and sorts a slot only when its turn comes. A slot is a list
//! of chunks, so that a miss brings several entries. What is due beyond one turn of the wheel waits
//! with all else of its turn, in no order either, until that comes.
//!
//! Slots are the wider the fewer machines there are, so that some dozens of entries come up at once: enough to have
//! their memory fetched ahead ([`Wheel::coming`]), few enough to be sorted quickly. Nor are they wider than the quickest
//! message takes, unless that is next to nothing: what is sent is then due in a later slot than the one that is open,
//! where it costs least to put in. Where slots have few entries nevertheless, a stretch of several is opened at once;
//! should it fill up, what is left of all but the first of them goes back.
//!
//! Costs: O(1) to put in (beyond a turn O(log t), with t turns that have entries) and O(log k) amortised to take out, with k entries in a slot; 18 bytes an entry where slots are full, 128 in a slot of its own.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use shoal_model::{Span, Time};

/// Slots of a turn: 16.8 s of the narrowest, 9 minutes of the widest.
const SLOTS: u64 = 1 << 16;
/// Microseconds of a slot as a power of two, at least: 256 µs.
const SLOT_BITS_LEAST: u32 = 8;
/// And at most: 8 ms.
const SLOT_BITS_MOST: u32 = 13;
/// So many entries are opened together, if as many slots as a stretch may have hold them.
const TOGETHER: usize = 16;
const STRETCH: u64 = 1 << 13;
/// So many entries of an open stretch are too many to put one in between.
const CROWD: usize = 2 * TOGETHER;
/// So many entries that came late are put in one by one; with more of them all are sorted again.
const FEW: usize = 8;
/// Entries of a chunk: with its links it takes two cache lines.
const CHUNK: usize = 7;
const NONE: u32 = u32::MAX;

/// Something that is due: when, for which node of the shard, and where to find the rest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// When.
    pub at: Time,
    /// For which node, by its place in the shard.
    pub node: u32,
    /// Where the content lies; the wheel does not look.
    pub what: u32,
}

/// The agenda of a shard.
#[derive(Debug)]
pub struct Wheel {
    /// The first chunk of each slot of this turn.
    heads: Box<[u32]>,
    /// Which slots have entries, a bit each.
    filled: Box<[u64]>,
    chunks: Vec<Chunk>,
    /// The first of the unused chunks.
    unused: u32,
    slot_bits: u32,
    /// What is left of the slots whose turn it is, earliest first.
    open: VecDeque<Due>,
    /// What came into the open slots since these were last looked at.
    late: Vec<Due>,
    /// The number of the first open slot since time zero; slots before it are past.
    first: u64,
    /// And of the last; those between are open too.
    last: u64,
    /// What is due in later turns, by turn: the number of its slots over those of a turn.
    far: BTreeMap<u64, Vec<Due>>,
    near: usize,
}

#[derive(Debug)]
#[repr(align(64))]
struct Chunk {
    dues: [Due; CHUNK],
    len: u32,
    next: u32,
}

impl Wheel {
    /// An empty agenda for this many machines, whose quickest message takes so long.
    pub fn new(machines: usize, least_delay: Span) -> Wheel {
        let few = 28u32.saturating_sub(machines.max(1).ilog2());
        let bits = least_delay.as_micros().checked_ilog2().map_or(few, |delay| delay.min(few));
        Wheel {
            heads: vec![NONE; SLOTS as usize].into_boxed_slice(),
            filled: vec![0; SLOTS as usize / 64].into_boxed_slice(),
            // A machine that only gossips has one timer, and rarely a message under way.
            chunks: Vec::with_capacity(machines / 5),
            unused: NONE,
            slot_bits: bits.clamp(SLOT_BITS_LEAST, SLOT_BITS_MOST),
            open: VecDeque::new(),
            late: Vec::new(),
            first: 0,
            last: 0,
            far: BTreeMap::new(),
            near: 0,
        }
    }

    /// What comes up in the open slots, earliest first.
    pub fn coming(&self) -> impl Iterator<Item = &Due> {
        self.open.iter()
    }

    /// Puts an entry in, and says whether it is among those that come up. It must not be due before what was last taken
    /// out.
    pub fn put(&mut self, due: Due) -> bool {
        let slot = self.slot_of(due.at);
        if slot <= self.last {
            self.late.push(due);
            return true;
        }
        if slot < self.first + SLOTS {
            self.link(slot, due);
        } else {
            self.far.entry(slot / SLOTS).or_default().push(due);
        }
        false
    }

    /// When the earliest entry is due, if it is due before `until`.
    ///
    /// `tie` orders entries for one node at one time.
    pub fn next_before(&mut self, until: Time, tie: impl Fn(u32, u32) -> Ordering) -> Option<Time> {
        if !self.late.is_empty() {
            self.let_in(&tie);
        }
        if self.open.is_empty() {
            self.open_next(until, tie);
        }
        self.open.front().map(|due| due.at).filter(|&at| at < until)
    }

    /// Takes the earliest entry out, if it is due before `until`.
    pub fn take_before(&mut self, until: Time, tie: impl Fn(u32, u32) -> Ordering) -> Option<Due> {
        self.next_before(until, tie)?;
        self.open.pop_front()
    }

    /// How many entries there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.near + self.open.len() + self.late.len() + self.far.values().map(Vec::len).sum::<usize>()
    }

    fn link(&mut self, slot: u64, due: Due) {
        let place = (slot % SLOTS) as usize;
        let head = self.heads[place];
        self.near += 1;
        if let Some(chunk) = self.chunks.get_mut(head as usize)
            && (chunk.len as usize) < CHUNK
        {
            chunk.dues[chunk.len as usize] = due;
            chunk.len += 1;
            return;
        }
        let chunk = Chunk { dues: [due; CHUNK], len: 1, next: head };
        self.heads[place] = if self.unused == NONE {
            self.chunks.push(chunk);
            u32::try_from(self.chunks.len() - 1).expect("fewer than 2^32 chunks")
        } else {
            let index = self.unused;
            self.unused = std::mem::replace(&mut self.chunks[index as usize], chunk).next;
            index
        };
        self.filled[place / 64] |= 1 << (place % 64);
    }

    /// Puts what came late to its place.
    fn let_in(&mut self, tie: impl Fn(u32, u32) -> Ordering) {
        let mut late = std::mem::take(&mut self.late);
        if late.len() > FEW {
            self.open.extend(late.drain(..));
            self.open.make_contiguous().sort_unstable_by(|a, b| order(a, b, &tie));
        }
        if self.open.len() >= CROWD {
            self.give_back();
        }
        for due in late.drain(..) {
            let slot = self.slot_of(due.at);
            if slot > self.last {
                self.link(slot, due);
                continue;
            }
            let place = self.open.partition_point(|other| order(other, &due, &tie) == Ordering::Less);
            self.open.insert(place, due);
        }
        self.late = late;
    }

    /// Moves on to the next slots that have entries and begin before `until`, and sorts these.
    fn open_next(&mut self, until: Time, tie: impl Fn(u32, u32) -> Ordering) {
        self.turn_over(until);
        while self.open.len() < TOGETHER
            && let Some(slot) = self.next_filled()
            && self.start_of(slot) < until
        {
            // A slot that is full enough by itself is opened by itself, or it would be given back again and again.
            let head = self.heads[(slot % SLOTS) as usize] as usize;
            if self.open.is_empty() {
                self.first = slot;
            } else if slot >= self.first + STRETCH
                || slot / SLOTS > self.first / SLOTS
                || self.chunks[head].next != NONE
            {
                break;
            }
            self.open_slot(slot);
        }
        self.open.make_contiguous().sort_unstable_by(|a, b| order(a, b, &tie));
    }

    /// Begins the next turn that something waits for, if nothing is due before that and it begins before `until`.
    fn turn_over(&mut self, until: Time) {
        let Some(begin) = self.far.keys().next().map(|turn| turn * SLOTS) else { return };
        if self.start_of(begin) >= until || self.next_filled().is_some_and(|slot| slot < begin) {
            return;
        }
        let (_, dues) = self.far.pop_first().expect("there is one");
        self.first = begin;
        for due in dues {
            self.link(self.slot_of(due.at), due);
        }
        self.open_slot(begin);
    }

    /// Adds the entries of a slot to those that are open.
    fn open_slot(&mut self, slot: u64) {
        self.last = slot;
        let before = self.open.len();
        let place = (slot % SLOTS) as usize;
        let mut index = std::mem::replace(&mut self.heads[place], NONE);
        self.filled[place / 64] &= !(1 << (place % 64));
        while index != NONE {
            let chunk = &mut self.chunks[index as usize];
            self.open.extend(&chunk.dues[..chunk.len as usize]);
            let next = std::mem::replace(&mut chunk.next, self.unused);
            self.unused = index;
            index = next;
        }
        self.near -= self.open.len() - before;
    }

    /// Closes all open slots but the first that has something left.
    fn give_back(&mut self) {
        let Some(slot) = self.open.front().map(|due| self.slot_of(due.at)) else { return };
        // Somebody who looked ahead may have opened what is due later than what came since; that has no slots any more.
        if self.first <= slot && slot < self.last {
            self.last = slot;
            while let Some(&due) = self.open.back()
                && self.slot_of(due.at) > slot
            {
                self.open.pop_back();
                self.link(self.slot_of(due.at), due);
            }
        }
    }

    fn slot_of(&self, at: Time) -> u64 {
        at.as_micros() >> self.slot_bits
    }

    fn start_of(&self, slot: u64) -> Time {
        Time::from_micros(slot << self.slot_bits)
    }

    /// The first slot from the last open one on that has entries, within one turn.
    fn next_filled(&self) -> Option<u64> {
        if self.near == 0 {
            return None;
        }
        let start = self.last % SLOTS;
        let words = SLOTS / 64;
        let first = start / 64;
        for step in 0..=words {
            let index = (first + step) % words;
            let mut word = self.filled[index as usize];
            // The word of the open slot is looked at twice: first from the slot on, at last up to it.
            if step == 0 {
                word &= u64::MAX << (start % 64);
            } else if step == words {
                word &= !(u64::MAX << (start % 64));
            }
            if word != 0 {
                let place = index * 64 + u64::from(word.trailing_zeros());
                return Some(self.last + (place + SLOTS - start) % SLOTS);
            }
        }
        None
    }
}

fn order(a: &Due, b: &Due, tie: impl Fn(u32, u32) -> Ordering) -> Ordering {
    (a.at, a.node).cmp(&(b.at, b.node)).then_with(|| tie(a.what, b.what))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted list: what comes out is the earliest, whatever was put in between and whoever looked ahead.
        #[test]
        fn entries_come_out_by_time_node_and_tie(
            machines in prop::sample::select(vec![0, 1, 100_000, 10_000_000]),
            least_delay in prop::sample::select(vec![0, 1, 1_000, 100_000]),
            steps in prop::collection::vec(
                (0u64..1_200_000_000, 0u32..4, 0u32..1000, prop::sample::select(vec![1, 1, 1, 40]), 0usize..6, 0u64..6),
                1..60,
            ),
        ) {
            let mut wheel = Wheel::new(machines, Span::from_micros(least_delay));
            let mut naive: Vec<Due> = Vec::new();
            let mut now = Time::ZERO;
            let tie = |a: u32, b: u32| a.cmp(&b);
            for (drawn, node, what, puts, takes, ahead) in steps {
                for put in 0..puts {
                    // At once, in one of the next slots, soon, or beyond a turn of the wheel.
                    let drawn = (drawn + put * 7_919_113) % 1_200_000_000;
                    let delay = match (drawn + ahead) % 4 {
                        0 => drawn % 700,
                        1 => drawn % 30_000,
                        2 => drawn % 40_000_000,
                        _ => drawn,
                    };
                    let due = Due { at: now + Span::from_micros(delay), node, what: what + put as u32 };
                    wheel.put(due);
                    naive.push(due);
                }
                naive.sort_unstable();
                if ahead > 0 {
                    let until = now + Span::from_micros(drawn >> (4 * ahead));
                    let next = naive.first().map(|due| due.at).filter(|&at| at < until);
                    prop_assert_eq!(wheel.next_before(until, tie), next);
                }
                for _ in 0..takes {
                    let until = naive.first().map_or(Time::ZERO, |due| due.at + Span::from_micros(1));
                    prop_assert_eq!(wheel.take_before(until - Span::from_micros(1), tie), None);
                    let expected = (!naive.is_empty()).then(|| naive.remove(0));
                    prop_assert_eq!(wheel.take_before(until, tie), expected);
                    now = expected.map_or(now, |due| due.at);
                }
                prop_assert_eq!(wheel.len(), naive.len());
            }
            for due in naive {
                prop_assert_eq!(wheel.take_before(Time::NEVER, tie), Some(due));
            }
            prop_assert_eq!(wheel.take_before(Time::NEVER, tie), None);
        }
    }
}
