//! The times at which a node is down, from whatever cause, brought into one order of crashes and restarts.

use shoal_model::Time;

use super::{Disk, Event, Fault};

/// A while during which a node is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    pub(super) from: Time,
    /// [`Time::NEVER`] for a node that is gone.
    pub(super) until: Time,
    pub(super) after_effects: Option<u32>,
    pub(super) disk: Disk,
}

/// The crashes and restarts of a node: outages that meet are one, and last until each of them is over.
pub(super) fn events(node: usize, mut outages: Vec<Outage>) -> Vec<Event> {
    outages.sort_by_key(|outage| outage.from);
    let mut apart: Vec<Outage> = Vec::new();
    for outage in outages {
        match apart.last_mut() {
            Some(last) if outage.from <= last.until => {
                last.until = last.until.max(outage.until);
                last.disk = last.disk.max(outage.disk);
            }
            _ => apart.push(outage),
        }
    }
    let events = apart.into_iter().flat_map(|Outage { from, until, after_effects, disk }| {
        if until == Time::NEVER {
            return [Some(Event { at: from, fault: Fault::Leave { node } }), None];
        }
        let crash = Fault::Crash { node, after_effects, disk };
        [Some(Event { at: from, fault: crash }), Some(Event { at: until, fault: Fault::Restart { node } })]
    });
    events.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(from: u64, until: u64) -> Outage {
        Outage {
            from: Time::from_secs(from),
            until: Time::from_secs(until),
            after_effects: None,
            disk: Disk::Kept,
        }
    }

    fn crash(at: u64, disk: Disk) -> Event {
        Event { at: Time::from_secs(at), fault: Fault::Crash { node: 3, after_effects: None, disk } }
    }

    fn restart(at: u64) -> Event {
        Event { at: Time::from_secs(at), fault: Fault::Restart { node: 3 } }
    }

    #[test]
    fn outages_that_meet_are_one() {
        let lost = Outage { disk: Disk::Lost, ..outage(15, 18) };
        let events = events(3, vec![outage(40, 50), lost, outage(10, 20), outage(20, 30)]);
        assert_eq!(events, [crash(10, Disk::Lost), restart(30), crash(40, Disk::Kept), restart(50)]);
    }

    #[test]
    fn node_that_is_gone_does_not_restart() {
        let gone = Outage { until: Time::NEVER, ..outage(40, 0) };
        let events = events(3, vec![gone, outage(10, 20), outage(60, 70)]);
        let leave = Event { at: Time::from_secs(40), fault: Fault::Leave { node: 3 } };
        assert_eq!(events, [crash(10, Disk::Kept), restart(20), leave]);
    }
}
