//! The neighbours of the overlay with their schedules, for the policies that keep them.

use std::collections::BTreeMap;

use shoal_model::{NodeId, Span, Time};

use super::schedule::Schedule;
use crate::overlay::cyclon::Cyclon;

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
    pub fn follow(&mut self, overlay: &Cyclon, now: Time, renew_before: Time) -> Vec<(NodeId, Change)> {
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
