//! Room for connections: strangers make way for newcomers, and who has shown who he is stays.
//!
//! ```text
//! connects ──▶ stranger ──shows who he is──▶ known
//!                 │ too many: the one that came first, of the address that has most, is closed
//! ```
//!
//! So any number of connections that never say anything keeps nobody out: who means it says so at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

const UNPOISONED: &str = "nothing panics while it counts";

/// All connections.
pub(crate) struct Places {
    known_max: usize,
    strangers_max: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    known: usize,
    strangers: usize,
    /// Strangers by their address, in the order in which they came, and how each is told to go.
    by_address: BTreeMap<IpAddr, BTreeMap<u64, Arc<Notify>>>,
    /// Addresses by how many strangers they have.
    by_number: BTreeSet<(usize, IpAddr)>,
}

/// A connection's place.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    from: IpAddr,
    /// Where it came in.
    pub at: SocketAddr,
    leaves: Arc<Notify>,
    known: AtomicBool,
}

impl Taken {
    fn set(&mut self, from: IpAddr, change: impl FnOnce(&mut BTreeMap<u64, Arc<Notify>>)) {
        let queue = self.by_address.entry(from).or_default();
        let before = queue.len();
        change(queue);
        let after = queue.len();
        if after == 0 {
            self.by_address.remove(&from);
        }
        self.by_number.remove(&(before, from));
        if after > 0 {
            self.by_number.insert((after, from));
        }
        self.strangers = self.strangers + after - before;
    }

    fn remove(&mut self, from: IpAddr, number: u64) {
        if self.by_address.contains_key(&from) {
            self.set(from, |queue| drop(queue.remove(&number)));
        }
    }
}

impl Places {
    /// Room for so many who are known, and so many who are not.
    pub fn new(known_max: usize, strangers_max: usize) -> Arc<Places> {
        Arc::new(Places { known_max, strangers_max, taken: Mutex::default() })
    }

    /// How many strangers there are.
    pub fn strangers(&self) -> usize {
        self.taken.lock().expect(UNPOISONED).strangers
    }

    /// A place for a stranger; another may have to leave for it.
    pub fn enter(self: &Arc<Places>, from: IpAddr, at: SocketAddr) -> Arc<Place> {
        let mut taken = self.taken.lock().expect(UNPOISONED);
        if taken.strangers >= self.strangers_max
            && let Some(&(_, most)) = taken.by_number.last()
        {
            taken.set(most, |queue| {
                if let Some((_, leaves)) = queue.pop_first() {
                    leaves.notify_one();
                }
            });
        }
        let number = taken.next;
        taken.next += 1;
        let leaves = Arc::new(Notify::new());
        taken.set(from, |queue| drop(queue.insert(number, Arc::clone(&leaves))));
        let known = AtomicBool::new(false);
        Arc::new(Place { places: Arc::clone(self), number, from, at, leaves, known })
    }
}

impl Place {
    /// Who is there.
    pub fn from(&self) -> IpAddr {
        self.from
    }

    /// It is known who this is: it stays. False if too many do already.
    pub fn stays(&self) -> bool {
        if self.known.load(Ordering::Relaxed) {
            return true;
        }
        let mut taken = self.places.taken.lock().expect(UNPOISONED);
        if taken.known >= self.places.known_max {
            return false;
        }
        if !self.known.swap(true, Ordering::Relaxed) {
            taken.remove(self.from, self.number);
            taken.known += 1;
        }
        true
    }

    /// Waits until another needs the place.
    pub async fn must_leave(&self) {
        self.leaves.notified().await;
        // It was known a moment later, and another has left in vain.
        if self.known.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().expect(UNPOISONED);
        if *self.known.get_mut() {
            taken.known -= 1;
        } else {
            taken.remove(self.from, self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    fn left(place: &Place) -> bool {
        let taken = place.places.taken.lock().unwrap();
        !taken.by_address.get(&place.from).is_some_and(|queue| queue.contains_key(&place.number))
    }

    #[test]
    fn newcomer_has_the_place_of_the_first_of_those_who_are_most() {
        let places = Places::new(8, 8);
        let lone = places.enter(address(2), AT);
        let many: Vec<_> = (0..7).map(|_| places.enter(address(1), AT)).collect();
        assert!(!many.iter().any(|place| left(place)));
        let newcomer = places.enter(address(3), AT);
        assert!(left(&many[0]) && !left(&many[1]) && !left(&lone) && !left(&newcomer));
    }

    #[test]
    fn who_is_known_stays_whoever_comes() {
        let places = Places::new(8, 8);
        let known: Vec<_> = (0..8).map(|_| places.enter(address(1), AT)).collect();
        assert!(known.iter().all(|place| place.stays() && place.stays()));
        let strangers: Vec<_> = (0..1_000).map(|_| places.enter(address(1), AT)).collect();
        assert_eq!(places.taken.lock().unwrap().strangers, 8);
        assert_eq!(places.taken.lock().unwrap().known, 8);
        assert!(!strangers[999].stays(), "there is room for eight of them");
        drop(known);
        assert!(strangers[999].stays());
        drop(strangers);
        let taken = places.taken.lock().unwrap();
        assert_eq!((taken.known, taken.strangers), (0, 0));
        assert!(taken.by_address.is_empty() && taken.by_number.is_empty());
    }
}
