//! The neighbours of the overlay with their schedules, for the policies that keep them.

use std::collections::BTreeMap;

use shoal_model::{NodeId, Span, Time};

use super::schedule::Schedule;
use crate::overlay::Overlay;

/// How long to wait for the schedule of a new entry before asking again.
const ASK_AGAIN: Span = Span::from_secs(5);

/// The neighbours of the overlay with their latest known schedules.
///
/// Kept beside the overlay's own cache instead of in it, so that a shuffle stays what it is; an entry that leaves the
/// overlay's cache leaves here too, with its schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Cache {
    entries: BTreeMap<NodeId, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    schedule: Option<Schedule>,
    asked_at: Option<Time>,
}

/// What has become of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It has entered the cache, has not answered, or has to be asked anew.
    Ask,
    /// It has left the cache.
    Left,
}

impl Cache {
    /// Follows the overlay, and says whom to ask and who has left; asks anew who was asked before `renew_before`.
    pub fn follow(&mut self, overlay: &Overlay, now: Time, renew_before: Time) -> Vec<(NodeId, Change)> {
        let mut changes = Vec::new();
        let mut before = std::mem::take(&mut self.entries);
        for node in overlay.neighbours() {
            let mut entry = before.remove(&node).unwrap_or(Entry { schedule: None, asked_at: None });
            let ask = entry.asked_at.is_none_or(|asked_at| {
                asked_at < renew_before || entry.schedule.is_none() && now >= asked_at + ASK_AGAIN
            });
            if ask {
                entry.asked_at = Some(now);
                changes.push((node, Change::Ask));
            }
            self.entries.insert(node, entry);
        }
        changes.extend(before.into_keys().map(|node| (node, Change::Left)));
        changes
    }

    /// Keeps a neighbour's schedule unless a later one is known; false if it is no neighbour.
    pub fn put(&mut self, node: NodeId, schedule: Schedule) -> bool {
        let Some(entry) = self.entries.get_mut(&node) else { return false };
        if entry.schedule.as_ref().is_none_or(|known| known.version() < schedule.version()) {
            entry.schedule = Some(schedule);
        }
        true
    }

    /// The neighbours whose schedules are known.
    pub fn schedules(&self) -> impl Iterator<Item = (NodeId, &Schedule)> {
        self.entries.iter().filter_map(|(&node, entry)| Some((node, entry.schedule.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::calendar::{Against, Booking, Calendar, Capacity, Interval, Key};
    use shoal_model::{Epoch, JobId, Machine, Resources};

    use super::super::schedule::Sheet;
    use super::*;
    use crate::overlay::cyclon::{self, Command, Cyclon};
    use crate::shared::Shared;
    use crate::testing::World;

    const ME: NodeId = NodeId(1);

    fn knows(nodes: &[u64]) -> Overlay {
        let mut world = World::<Cyclon>::new(1, cyclon::Config::default(), Span::ZERO);
        world.command(ME, Command::Meet(nodes.iter().map(|&node| NodeId(node)).collect()));
        Overlay::Cyclon(world.core(ME).clone())
    }

    /// A schedule of the life that began then, after so many changes.
    fn schedule(born: u64, changes: u64) -> Schedule {
        let mut calendar = Calendar::new(Capacity::constant(Resources::cores(1)).unwrap());
        for change in 0..changes {
            let key = Key { job: JobId::from_number(change), epoch: Epoch(1) };
            let interval = Interval::starting(Time::from_secs(10 * change), Span::from_secs(10)).unwrap();
            calendar.book(key, interval, Resources::cores(1), Booking::Firm, Against::Firm).unwrap();
        }
        let machine = Shared::new(Machine::with_capacity(Resources::cores(1)));
        Shared::new(Sheet::new(Time::from_secs(born), machine, calendar.snapshot()))
    }

    #[test]
    fn the_newest_schedule_counts_and_a_new_life_is_newer_than_any_version() {
        let mut cache = Cache::default();
        cache.follow(&knows(&[2]), Time::ZERO, Time::ZERO);
        let known = |cache: &Cache| cache.schedules().next().map(|(_, schedule)| schedule.version());
        assert!(cache.put(NodeId(2), schedule(1, 5)));
        assert!(cache.put(NodeId(2), schedule(1, 3)), "a late one is no stranger's");
        assert_eq!(known(&cache), Some((Time::from_secs(1), 5)));
        assert!(cache.put(NodeId(2), schedule(9, 0)), "versions began anew after a restart");
        assert_eq!(known(&cache), Some((Time::from_secs(9), 0)));
        assert!(!cache.put(NodeId(3), schedule(1, 0)), "of one that is no neighbour nothing is kept");
    }

    #[test]
    fn entries_come_and_go_with_the_overlay() {
        let mut cache = Cache::default();
        let at = Time::from_secs;
        let follow =
            |cache: &mut Cache, nodes: &[u64], now, renew| cache.follow(&knows(nodes), at(now), at(renew));
        let (ask, left) = (|node| (NodeId(node), Change::Ask), |node| (NodeId(node), Change::Left));
        assert_eq!(follow(&mut cache, &[2, 3], 1, 0), [ask(2), ask(3)]);
        cache.put(NodeId(2), schedule(1, 0));
        assert_eq!(follow(&mut cache, &[2, 4], 2, 0), [ask(4), left(3)]);
        assert_eq!(follow(&mut cache, &[2, 4], 7, 0), [ask(4)], "who has not answered is asked again");
        assert_eq!(follow(&mut cache, &[2, 4], 8, 2), [ask(2)], "and whose lease is half over");
        assert_eq!(follow(&mut cache, &[4], 9, 0), [left(2)]);
        assert_eq!(follow(&mut cache, &[2, 4], 10, 0), [ask(2)]);
        assert_eq!(cache.schedules().count(), 0, "an entry that left has lost its schedule");
    }
}
