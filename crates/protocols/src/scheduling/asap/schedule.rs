//! A node's schedule as others keep it: what the machine is and when it is free, shared and never changed.

use minicbor::decode::{self, Decoder};
use minicbor::{CborLen, Decode, Encode};
use shoal_model::calendar::{Snapshot, Timeline, View};
use shoal_model::{Machine, Resources, Time};

use crate::shared::Shared;

/// A node's schedule; a clone is one pointer.
pub type Schedule = Shared<Sheet>;

/// What the machine is, and when it is free.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, CborLen)]
pub struct Sheet {
    /// When its node was last started. Versions of calendars begin anew with each life.
    #[n(0)]
    born: Time,
    #[n(1)]
    machine: Shared<Machine>,
    #[n(2)]
    calendar: Snapshot<Resources>,
    /// Counted once, because a schedule is sent to many; not told, because whoever reads it counts again.
    #[cbor(skip)]
    steps: u32,
}

impl<'b, C> Decode<'b, C> for Sheet {
    fn decode(decoder: &mut Decoder<'b>, ctx: &mut C) -> Result<Sheet, decode::Error> {
        #[derive(Decode)]
        struct Wire {
            #[n(0)]
            born: Time,
            #[n(1)]
            machine: Shared<Machine>,
            #[n(2)]
            calendar: Snapshot<Resources>,
        }
        let Wire { born, machine, calendar } = Wire::decode(decoder, ctx)?;
        Ok(Sheet::new(born, machine, calendar))
    }
}

/// What a schedule is accounted for besides its steps: node, version and machine.
const SHEET_BYTES: u64 = 96;
/// What each step is accounted for: a time and what is used from then on.
const STEP_BYTES: u64 = 24;

impl Sheet {
    /// The schedule of a machine with this calendar.
    pub fn new(born: Time, machine: Shared<Machine>, calendar: Snapshot<Resources>) -> Sheet {
        let steps = calendar.steps(View::Firm).count() as u32;
        Sheet { born, machine, calendar, steps }
    }

    /// What the machine is.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// When it is free.
    pub fn timeline(&self) -> &Timeline<Resources> {
        self.calendar.timeline()
    }

    /// Which state of the calendar this is: a larger one is later.
    pub fn version(&self) -> (Time, u64) {
        (self.born, self.calendar.version())
    }

    /// What it is accounted for on the wire.
    pub fn bytes(&self) -> u64 {
        SHEET_BYTES + STEP_BYTES * u64::from(self.steps)
    }

    /// Whether the two say the same of all that is yet to come.
    pub fn same_from(&self, other: &Sheet, now: Time) -> bool {
        let (ours, theirs) = (self.timeline(), other.timeline());
        let used = |line: &Timeline<Resources>| line.used_at(now, View::Firm);
        let later = |(time, _): &(Time, Resources)| *time > now;
        ours == theirs
            || ours.capacity() == theirs.capacity()
                && used(ours) == used(theirs)
                && ours.steps(View::Firm).filter(later).eq(theirs.steps(View::Firm).filter(later))
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::calendar::{Against, Booking, Calendar, Capacity, Interval, Key};
    use shoal_model::{Epoch, JobId, Span};

    use super::*;

    fn sheet(busy: &[(u64, u64)]) -> Sheet {
        let mut calendar = Calendar::new(Capacity::constant(Resources::cores(1)).unwrap());
        for (number, &(start, end)) in busy.iter().enumerate() {
            let key = Key { job: JobId::from_number(number as u64), epoch: Epoch(1) };
            let interval = Interval::new(Time::from_secs(start), Time::from_secs(end)).unwrap();
            calendar.book(key, interval, Resources::cores(1), Booking::Firm, Against::Firm).unwrap();
        }
        let machine = Shared::new(Machine::with_capacity(Resources::cores(1)));
        Sheet::new(Time::ZERO + Span::from_secs(1), machine, calendar.snapshot())
    }

    #[test]
    fn what_is_past_makes_no_difference() {
        let at = Time::from_secs;
        assert!(sheet(&[(0, 10), (20, 30)]).same_from(&sheet(&[(20, 30)]), at(10)));
        assert!(!sheet(&[(0, 10), (20, 30)]).same_from(&sheet(&[(20, 30)]), at(9)));
        assert!(!sheet(&[(20, 30)]).same_from(&sheet(&[(20, 31)]), at(25)));
        assert!(sheet(&[(20, 30)]).same_from(&sheet(&[(21, 30)]), at(25)));
    }

    #[test]
    fn a_schedule_is_accounted_for_by_its_steps() {
        assert_eq!(sheet(&[]).bytes(), SHEET_BYTES);
        assert_eq!(sheet(&[(0, 10), (20, 30)]).bytes(), SHEET_BYTES + 4 * STEP_BYTES);
    }
}
