//! What a node says of itself in the helper overlays, and how far two nodes are apart by it.

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};
use shoal_model::calendar::Timeline;
use shoal_model::{Amount, Coordinates, Machine, Name, Resources, Span, Time};

use crate::overlay::cyclon::Payload;
use crate::overlay::vicinity::Metric;

/// A first gap shorter than this is no slot.
pub const GAP_MIN: Span = Span::from_mins(10);
/// A slot without an end is taken to end so long from now.
pub const SLOT_MAX: Span = Span::from_hours(7 * 24);

/// By what nodes are near to each other: there is one helper overlay for each.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen, Serialize, Deserialize,
)]
#[cbor(index_only)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// By their network coordinates.
    #[n(0)]
    Coordinates,
    /// By how long both are free in their first free slots.
    #[n(1)]
    FirstSlot,
    /// By what their machines have.
    #[n(2)]
    Resources,
    /// By whose they are.
    #[n(3)]
    Organisation,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Coordinates, Kind::FirstSlot, Kind::Resources, Kind::Organisation];
}

/// A set of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Kind>", into = "Vec<Kind>")]
pub struct Kinds(u8);

impl Kinds {
    /// The set of these.
    pub fn of(kinds: &[Kind]) -> Kinds {
        Kinds(kinds.iter().fold(0, |set, &kind| set | 1 << kind as u8))
    }

    /// All in the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |&kind| self.0 & 1 << kind as u8 != 0)
    }
}

impl From<Vec<Kind>> for Kinds {
    fn from(kinds: Vec<Kind>) -> Kinds {
        Kinds::of(&kinds)
    }
}

impl From<Kinds> for Vec<Kind> {
    fn from(kinds: Kinds) -> Vec<Kind> {
        kinds.iter().collect()
    }
}

/// What a node says of itself. Small and of one size: it travels with every entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Profile {
    /// Where it is.
    #[n(0)]
    pub coordinates: Coordinates,
    /// How sure it is of that, in millionths; 0 is certain.
    #[n(1)]
    pub error: u32,
    /// From when on it is free.
    #[n(2)]
    pub free_from: Time,
    /// Until when.
    #[n(3)]
    pub free_until: Time,
    /// What its machine has: cores, memory, GPUs and speed, each eight times its binary logarithm.
    #[n(4)]
    pub likeness: [u8; 4],
    /// A number for its organisation; 0 if it has none. Two may share one, which makes them neighbours for nothing.
    #[n(5)]
    pub organisation: u32,
}

/// Bytes of a profile: coordinates and error 24, slot 16, machine 4, organisation 4.
pub const PROFILE_BYTES: u64 = 48;

/// A node that has only been named has said nothing of itself yet.
impl Payload for Option<Profile> {
    fn bytes(&self) -> u64 {
        PROFILE_BYTES
    }
}

impl Payload for Profile {
    fn bytes(&self) -> u64 {
        PROFILE_BYTES
    }
}

impl Profile {
    /// The same with what the machine is.
    pub fn of_machine(self, machine: &Machine) -> Profile {
        let Resources { cores, memory, gpus, .. } = &machine.capacity;
        let likeness = [
            eighths(u64::from(cores.get())),
            eighths(memory.as_bytes() >> 20),
            eighths(u64::from(gpus.get())),
            eighths(u64::from(machine.speed.thousandths())),
        ];
        Profile { likeness, organisation: machine.organisation.as_ref().map_or(0, tag), ..self }
    }

    /// The same with the first free slot of a calendar: the first gap of [`GAP_MIN`] or more in which all is free.
    pub fn of_calendar<A: Amount>(self, calendar: &Timeline<A>, amount: &A, now: Time) -> Profile {
        let against = shoal_model::calendar::Against::Firm;
        let first = calendar.fit_windows(now, GAP_MIN, amount, against).next();
        let (free_from, free_until) = first.map_or((Time::ZERO, Time::ZERO), |window| {
            let latest = now + SLOT_MAX;
            (window.first.min(latest), window.last.map_or(latest, |last| (last + GAP_MIN).min(latest)))
        });
        Profile { free_from, free_until, ..self }
    }

    /// How long both are free.
    pub fn overlap(&self, other: &Profile) -> Span {
        self.free_until.min(other.free_until).since(self.free_from.max(other.free_from))
    }
}

impl Metric<Profile> for Kind {
    fn distance(&self, from: &Profile, to: &Profile) -> u64 {
        match self {
            Kind::Coordinates => from.coordinates.distance(&to.coordinates),
            Kind::FirstSlot => u64::MAX - from.overlap(to).as_micros(),
            Kind::Resources => {
                let pairs = from.likeness.iter().zip(&to.likeness);
                pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum()
            }
            Kind::Organisation => u64::from(from.organisation != to.organisation),
        }
    }
}

/// Eight times the binary logarithm of a number and one: two machines of which one has twice as much are 8 apart.
fn eighths(number: u64) -> u8 {
    let number = number.saturating_add(1);
    let whole = number.ilog2();
    // The three bits after the leading one: straight lines between powers of two.
    let rest = if whole >= 3 { number >> (whole - 3) } else { number << (3 - whole) } & 7;
    (whole * 8 + rest as u32) as u8
}

/// A number for a name (FNV-1a), never 0.
pub fn tag(name: &Name) -> u32 {
    tag_of(name.as_str())
}

/// The same for any text.
pub fn tag_of(text: &str) -> u32 {
    let start = 0x811c_9dc5_u32;
    let hash = text.bytes().fold(start, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use shoal_model::calendar::{Against, Booking, Calendar, Capacity, Interval, Key};
    use shoal_model::{Epoch, JobId, Size};

    use super::*;

    #[test]
    fn the_first_slot_is_the_first_gap_that_is_long_enough() {
        let mut calendar = Calendar::new(Capacity::constant(1_u32).unwrap());
        for (job, from, length) in [(1, 0, 60), (2, 60 + 300, 600), (3, 960 + 1_200, 600)] {
            let key = Key { job: JobId::from_number(job), epoch: Epoch(1) };
            let interval = Interval::starting(Time::from_secs(from), Span::from_secs(length)).unwrap();
            calendar.book(key, interval, 1, Booking::Firm, Against::Firm).unwrap();
        }
        let profile = Profile::default().of_calendar(calendar.timeline(), &1, Time::from_secs(10));
        assert_eq!((profile.free_from, profile.free_until), (Time::from_secs(960), Time::from_secs(2_160)));

        let idle = Profile::default().of_calendar(
            Calendar::new(Capacity::constant(1_u32).unwrap()).timeline(),
            &1,
            Time::from_secs(10),
        );
        assert_eq!(idle.free_until, Time::from_secs(10) + SLOT_MAX);
        assert_eq!(profile.overlap(&idle), Span::from_secs(1_200));
        assert!(Kind::FirstSlot.distance(&idle, &idle) < Kind::FirstSlot.distance(&idle, &profile));
    }

    #[test]
    fn machines_are_alike_by_what_they_have() {
        let machine = |cores: u32, gib: u64| {
            let capacity = Resources::cores(cores).with_memory(Size::from_gib(gib));
            Profile::default().of_machine(&Machine::with_capacity(capacity))
        };
        let apart = |a: &Profile, b: &Profile| Kind::Resources.distance(a, b);
        assert_eq!(apart(&machine(8, 16), &machine(8, 16)), 0);
        assert_eq!(apart(&machine(8, 16), &machine(16, 16)), 8);
        assert!(apart(&machine(8, 16), &machine(9, 16)) < 4);
        assert!(apart(&machine(8, 16), &machine(64, 256)) > apart(&machine(8, 16), &machine(16, 32)));
    }

    #[test]
    fn nodes_of_one_organisation_are_near() {
        let of = |name: Option<&str>| {
            let mut machine = Machine::with_capacity(Resources::cores(1));
            machine.organisation = name.map(|name| name.parse().unwrap());
            Profile::default().of_machine(&machine)
        };
        let apart = |a, b| Kind::Organisation.distance(&of(a), &of(b));
        assert_eq!(apart(Some("physics"), Some("physics")), 0);
        assert_eq!(apart(Some("physics"), Some("biology")), 1);
        assert_eq!(apart(Some("physics"), None), 1);
    }

    #[test]
    fn a_profile_takes_no_more_than_it_is_accounted_for_and_a_frame() {
        let far = i64::from(shoal_model::coordinates::PART_MAX);
        let profile = Profile {
            coordinates: Coordinates::new([far; 4], far),
            error: u32::MAX,
            free_from: Time::from_secs(1_800_000_000),
            free_until: Time::from_secs(1_800_000_000),
            likeness: [255; 4],
            organisation: u32::MAX,
        };
        let bytes = minicbor::to_vec(profile).unwrap();
        assert!(bytes.len() as u64 <= PROFILE_BYTES + 24, "{}", bytes.len());
        assert_eq!(minicbor::decode::<Profile>(&bytes).unwrap(), profile);
    }
}
