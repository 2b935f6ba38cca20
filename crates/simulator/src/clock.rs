//! A node's clock against the world's: offset, drift, and jumps, in exact integer arithmetic.
//!
//! A node's `now` is monotonic time plus a slewed offset, so what it reads never goes back. A jump forward shows at
//! once, as after a machine was suspended. A jump back is slewed: the clock runs [`SLEW_PPM`] slower than it would,
//! until the jump is worked off; a jump forward in the meantime pays the rest of it first.
//!
//! The whole life of a clock is known from the start, so that reading it needs no state and no order.

use shoal_model::{Span, Time};

/// How much slower a clock runs while it works off a jump back, in parts per million.
pub const SLEW_PPM: i64 = 100_000;
/// The fastest drift either way, in parts per million; with [`SLEW_PPM`] it leaves every clock running forward.
pub const DRIFT_PPM_MAX: i32 = 100_000;

const MILLION: i64 = 1_000_000;
/// World time that it takes to work off one unit of a jump back.
const SLEW_TIME: i128 = (MILLION / SLEW_PPM) as i128;

/// Reads local time from world time, and the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// None for the clock that shows world time: most clocks of most worlds.
    pieces: Option<Box<[Piece]>>,
}

/// Something that happens to a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// From now on it gains so many parts per million (loses, if negative), within [`DRIFT_PPM_MAX`].
    Drift {
        /// Parts per million gained.
        ppm: i32,
    },
    /// It is set forward (back, if negative) by so many microseconds.
    Jump {
        /// Microseconds forward.
        by_us: i64,
    },
}

/// A stretch of world time during which a clock runs at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    world: i128,
    local: i128,
    /// Local microseconds per million of the world's; above zero.
    rate: i128,
}

impl Clock {
    /// The clock that is ahead of the world by `offset_us` at its start, and suffers `changes`, sorted by time.
    ///
    /// # Panics
    /// If the changes are out of order or a drift exceeds [`DRIFT_PPM_MAX`].
    pub fn new(offset_us: i64, changes: &[(Time, Change)]) -> Clock {
        assert!(changes.is_sorted_by_key(|&(at, _)| at), "changes of a clock are given in order of time");
        if offset_us == 0 && changes.is_empty() {
            return Clock::default();
        }

        let mut course = Course::start(offset_us);
        for &(at, change) in changes {
            course.run_until(at);
            course.suffer(change);
        }
        course.settle();
        Clock { pieces: Some(course.pieces.into_boxed_slice()) }
    }

    /// Whether it is known to show the world's time, always.
    pub fn is_true(&self) -> bool {
        self.pieces.is_none()
    }

    /// What the clock reads at this instant of the world.
    pub fn local(&self, world: Time) -> Time {
        let Some(pieces) = &self.pieces else { return world };
        if world == Time::NEVER {
            return Time::NEVER;
        }
        let world = i128::from(world.as_micros());
        // The first piece starts at zero, so there is always one.
        let piece = &pieces[pieces.partition_point(|piece| piece.world <= world) - 1];
        clamped(piece.local_at(world))
    }

    /// The first instant of the world at which the clock reads `local` or more: when a timer set to it fires.
    pub fn world_at_local(&self, local: Time) -> Time {
        let Some(pieces) = &self.pieces else { return local };
        if local == Time::NEVER {
            return Time::NEVER;
        }
        // A clock before zero reads zero.
        if local == Time::ZERO {
            return Time::ZERO;
        }
        let local = i128::from(local.as_micros());
        let after = pieces.partition_point(|piece| piece.local < local);
        let Some(before) = after.checked_sub(1) else { return Time::ZERO };
        let reached = pieces[before].world_at(local);
        let world = pieces.get(after).map_or(reached, |next| reached.min(next.world));
        clamped(world)
    }

    /// How much of the world's time passes from `now` until `wait` has passed on this clock.
    pub fn world_span(&self, now: Time, wait: Span) -> Span {
        self.world_at_local(self.local(now) + wait).since(now)
    }
}

impl Piece {
    fn local_at(&self, world: i128) -> i128 {
        self.local + (world - self.world) * self.rate / i128::from(MILLION)
    }

    /// The first instant at which this piece, were it endless, reads `local`, which lies after its start.
    fn world_at(&self, local: i128) -> i128 {
        let scaled = (local - self.local) * i128::from(MILLION);
        self.world + (scaled + self.rate - 1) / self.rate
    }
}

/// A clock's life as it is laid out, piece by piece.
struct Course {
    pieces: Vec<Piece>,
    world: i128,
    local: i128,
    ppm: i64,
    /// What is left to work off of jumps back.
    debt: i128,
}

impl Course {
    fn start(offset_us: i64) -> Course {
        Course { pieces: Vec::new(), world: 0, local: i128::from(offset_us), ppm: 0, debt: 0 }
    }

    fn run_until(&mut self, at: Time) {
        let at = i128::from(at.as_micros());
        if self.debt > 0 && self.debt_end() <= at {
            self.run_piece(self.debt_end());
        }
        if self.world < at {
            self.run_piece(at);
        }
    }

    /// Lays the endless last piece, after that in which the debt is worked off.
    fn settle(&mut self) {
        if self.debt > 0 {
            self.run_piece(self.debt_end());
        }
        let last = self.piece();
        self.pieces.push(last);
    }

    fn suffer(&mut self, change: Change) {
        match change {
            Change::Drift { ppm } => {
                assert!(ppm.abs() <= DRIFT_PPM_MAX, "drift of {ppm} ppm, at most {DRIFT_PPM_MAX}");
                self.ppm = i64::from(ppm);
            }
            Change::Jump { by_us } => {
                let by_us = i128::from(by_us);
                self.local += (by_us - self.debt).max(0);
                self.debt = (self.debt - by_us).max(0);
            }
        }
    }

    fn debt_end(&self) -> i128 {
        self.world + self.debt * SLEW_TIME
    }

    fn piece(&self) -> Piece {
        let slew = if self.debt > 0 { SLEW_PPM } else { 0 };
        Piece { world: self.world, local: self.local, rate: i128::from(MILLION + self.ppm - slew) }
    }

    fn run_piece(&mut self, until: i128) {
        let piece = self.piece();
        self.pieces.push(piece);
        self.local = piece.local_at(until);
        self.debt = (self.debt - (until - self.world) / SLEW_TIME).max(0);
        self.world = until;
    }
}

fn clamped(micros: i128) -> Time {
    Time::from_micros(u64::try_from(micros.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    fn drift(at: u64, ppm: i32) -> (Time, Change) {
        (secs(at), Change::Drift { ppm })
    }

    fn jump(at: u64, by_secs: i64) -> (Time, Change) {
        (secs(at), Change::Jump { by_us: by_secs * MILLION })
    }

    #[test]
    fn default_clock_shows_world_time() {
        let clock = Clock::new(0, &[]);
        assert_eq!(clock, Clock::default());
        assert_eq!(clock.local(secs(7)), secs(7));
        assert_eq!(clock.world_at_local(secs(7)), secs(7));
    }

    #[test]
    fn drift_adds_up_exactly() {
        let clock = Clock::new(0, &[drift(0, 100), drift(1_000, 0)]);
        assert_eq!(clock.local(secs(1_000)), Time::from_millis(1_000_100));
        assert_eq!(clock.local(secs(2_000)), Time::from_millis(2_000_100));
        assert_eq!(clock.world_at_local(Time::from_millis(1_000_100)), secs(1_000));
    }

    #[test]
    fn jump_forward_shows_at_once_and_skipped_readings_are_reached_with_it() {
        let clock = Clock::new(0, &[jump(10, 5)]);
        assert_eq!(clock.local(Time::from_micros(9_999_999)), Time::from_micros(9_999_999));
        assert_eq!(clock.local(secs(10)), secs(15));
        assert_eq!(clock.world_at_local(secs(12)), secs(10));
    }

    #[test]
    fn jump_back_is_slewed_and_then_worked_off() {
        let clock = Clock::new(0, &[jump(10, -2)]);
        assert_eq!(clock.local(secs(10)), secs(10));
        assert_eq!(clock.local(secs(20)), secs(19));
        assert_eq!(clock.local(secs(30)), secs(28));
        assert_eq!(clock.local(secs(100)), secs(98));
    }

    #[test]
    fn jump_forward_pays_the_rest_of_a_jump_back_first() {
        let clock = Clock::new(0, &[jump(10, -2), jump(20, 3)]);
        assert_eq!(clock.local(secs(20)), secs(21));
        assert_eq!(clock.local(secs(30)), secs(31));
    }

    #[test]
    fn clock_that_is_behind_reads_zero_until_the_world_has_caught_up() {
        let clock = Clock::new(-5 * MILLION, &[]);
        assert_eq!(clock.local(secs(3)), Time::ZERO);
        assert_eq!(clock.local(secs(8)), secs(3));
        assert_eq!(clock.world_at_local(Time::ZERO), Time::ZERO);
        assert_eq!(clock.world_at_local(secs(3)), secs(8));
    }

    #[test]
    fn never_stays_never() {
        let clock = Clock::new(-5, &[drift(0, -50)]);
        assert_eq!(clock.local(Time::NEVER), Time::NEVER);
        assert_eq!(clock.world_at_local(Time::NEVER), Time::NEVER);
    }

    #[test]
    fn slow_clock_waits_longer_in_world_time() {
        let clock = Clock::new(0, &[drift(0, -100_000)]);
        assert_eq!(clock.world_span(secs(10), Span::from_secs(9)), Span::from_secs(10));
    }

    fn change() -> impl Strategy<Value = (Time, Change)> {
        let change = prop_oneof![
            (-DRIFT_PPM_MAX..=DRIFT_PPM_MAX).prop_map(|ppm| Change::Drift { ppm }),
            (-5_000_000i64..5_000_000).prop_map(|by_us| Change::Jump { by_us }),
        ];
        (0u64..100_000_000).prop_map(Time::from_micros).prop_flat_map(move |at| (Just(at), change.clone()))
    }

    fn clock() -> impl Strategy<Value = Clock> {
        (-10_000_000i64..10_000_000, prop::collection::vec(change(), 0..6)).prop_map(
            |(offset, mut changes)| {
                changes.sort_by_key(|&(at, _)| at);
                Clock::new(offset, &changes)
            },
        )
    }

    proptest! {
        #[test]
        fn local_time_never_goes_back(clock in clock(), at in 0u64..200_000_000, later in 0u64..50_000) {
            let (here, there) = (Time::from_micros(at), Time::from_micros(at + later));
            prop_assert!(clock.local(here) <= clock.local(there));
        }

        #[test]
        fn timer_fires_at_the_first_instant_that_reads_its_time(clock in clock(), local in 0u64..200_000_000) {
            let local = Time::from_micros(local);
            let world = clock.world_at_local(local);
            prop_assert!(clock.local(world) >= local);
            if let Some(before) = world.as_micros().checked_sub(1) {
                prop_assert!(clock.local(Time::from_micros(before)) < local);
            }
        }

        #[test]
        fn timer_for_what_the_clock_reads_now_is_not_in_the_future(clock in clock(), world in 0u64..200_000_000) {
            let world = Time::from_micros(world);
            prop_assert!(clock.world_at_local(clock.local(world)) <= world);
        }

        #[test]
        fn what_jumps_and_offset_sum_up_to_is_what_remains(
            offset in -10_000_000i64..10_000_000,
            jumps in prop::collection::vec((0u64..100_000_000, -5_000_000i64..5_000_000), 0..6),
        ) {
            let mut changes: Vec<_> = jumps
                .iter()
                .map(|&(at, by_us)| (Time::from_micros(at), Change::Jump { by_us }))
                .collect();
            changes.sort_by_key(|&(at, _)| at);
            let clock = Clock::new(offset, &changes);

            let world = Time::from_secs(10_000);
            let total = offset + jumps.iter().map(|&(_, by_us)| by_us).sum::<i64>();
            let error = clock.local(world).as_micros() as i64 - (world.as_micros() as i64 + total);
            // Slewing that is cut into by the next jump may leave the fraction of a microsecond.
            prop_assert!(error.abs() <= jumps.len() as i64, "off by {error} us");
        }
    }
}
