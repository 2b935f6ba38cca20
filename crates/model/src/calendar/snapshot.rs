//! A calendar as others see it: what is used when, not by whom; shared, not copied.

use minicbor::{CborLen, Decode, Decoder, Encode, Encoder, decode, encode};

use crate::amount::Amount;
use crate::calendar::capacity::Capacity;
use crate::calendar::profile::{Profile, Steps};
use crate::calendar::reservation::Interval;
use crate::calendar::timeline::{Against, Timeline, View, Window};
use crate::time::{Span, Time};

/// More steps than this make no snapshot.
pub const STEPS_MAX: usize = 1 << 20;
/// The next steps that travel as they are.
pub const STEPS_FINE: usize = 8_192;
/// The steps that all later ones travel as, about: an offer of a node with 100,000 reservations is no larger than one
/// with some thousands.
pub const STEPS_COARSE: usize = 8_192;

/// The use and capacity of one node at one version of its calendar.
///
/// A clone is two or three pointers and the capacity. Equality and hash look at the content: the version, the
/// capacity and every step, however the tree below came to its shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot<A: Amount> {
    version: u64,
    timeline: Timeline<A>,
}

/// Why steps make no snapshot; `step` counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepsError {
    /// See [`STEPS_MAX`].
    #[error("more than {STEPS_MAX} steps")]
    TooMany,
    /// Each instant once, in order, and before the end of time.
    #[error("step {step}: its time does not rise, or is the end of time")]
    Time {
        /// Which step.
        step: usize,
    },
    /// Nobody can use what is not there.
    #[error("step {step}: more is used than there is at {at}")]
    OverCapacity {
        /// Which step.
        step: usize,
        /// When capacity is first exceeded.
        at: Time,
    },
    /// Every reservation ends.
    #[error("the last step does not end all use")]
    Endless,
}

impl<A: Amount> Snapshot<A> {
    pub(super) fn new(version: u64, timeline: Timeline<A>) -> Snapshot<A> {
        Snapshot { version, timeline }
    }

    /// The snapshot with these steps, as [`Snapshot::steps`] gives them; without `whole` it is the same as `firm`.
    pub fn from_steps(
        version: u64,
        capacity: Capacity<A>,
        firm: &[(Time, A)],
        whole: Option<&[(Time, A)]>,
    ) -> Result<Snapshot<A>, StepsError> {
        let firm = checked(&capacity, firm)?;
        let whole = whole.map(|whole| checked(&capacity, whole)).transpose()?.filter(|whole| *whole != firm);
        Ok(Snapshot { version, timeline: Timeline { capacity, firm, whole } })
    }

    /// The calendar's version when the snapshot was taken.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Use and capacity.
    pub fn timeline(&self) -> &Timeline<A> {
        &self.timeline
    }

    /// Each instant where use changes, with the use from there on.
    pub fn steps(&self, view: View) -> Steps<'_, A> {
        self.timeline.steps(view)
    }

    /// Whether whole use may differ from firm use: else its steps need not be sent.
    pub fn has_views_apart(&self) -> bool {
        self.timeline.whole.is_some()
    }

    /// See [`Timeline::earliest_fit`].
    pub fn earliest_fit(&self, from: Time, span: Span, amount: &A, against: Against) -> Option<Time> {
        self.timeline.earliest_fit(from, span, amount, against)
    }

    /// See [`Timeline::free_during`].
    pub fn free_during(&self, interval: Interval, amount: &A, against: Against) -> bool {
        self.timeline.free_during(interval, amount, against)
    }

    /// See [`Timeline::fit_windows`].
    pub fn fit_windows<'a>(
        &'a self,
        from: Time,
        span: Span,
        amount: &'a A,
        against: Against,
    ) -> impl Iterator<Item = Window> + use<'a, A> {
        self.timeline.fit_windows(from, span, amount, against)
    }
}

/// A snapshot as it travels.
#[derive(Encode, Decode, CborLen)]
struct Wire<A: Amount> {
    #[n(0)]
    version: u64,
    #[n(1)]
    capacity: Capacity<A>,
    #[n(2)]
    firm: Vec<(Time, A)>,
    #[n(3)]
    whole: Option<Vec<(Time, A)>>,
}

impl<A: Amount> Snapshot<A> {
    fn wire(&self) -> Wire<A> {
        let steps = |view| self.coarse(self.steps(view).collect());
        Wire {
            version: self.version,
            capacity: self.timeline.capacity().clone(),
            firm: steps(View::Firm),
            whole: self.has_views_apart().then(|| steps(View::Whole)),
        }
    }

    /// Steps as they travel: of many that are far away several become one, which uses the most that any of them does. So
    /// whoever plans by them finds a place that is free, though perhaps not the earliest.
    fn coarse(&self, steps: Vec<(Time, A)>) -> Vec<(Time, A)> {
        let Some((end, far)) = steps.get(STEPS_FINE..).and_then(<[_]>::split_last) else { return steps };
        if far.len() <= STEPS_COARSE {
            return steps;
        }
        let idle = Timeline::new(self.timeline.capacity().clone());
        let each = far.len().div_ceil(STEPS_COARSE);
        let mut coarse = steps[..STEPS_FINE].to_vec();
        for (first, some) in (0..).step_by(each).zip(far.chunks(each)) {
            let until = far.get(first + each).map_or(end.0, |next| next.0);
            let most = some[1..].iter().fold(some[0].1.clone(), |most, (_, used)| most.most(used));
            // Where there is less at some hours, the most of the others may be too much for those.
            let fits = Interval::new(some[0].0, until)
                .is_some_and(|interval| idle.first_blocked(interval, &most, Against::Firm).is_none());
            if fits {
                coarse.push((some[0].0, most));
            } else {
                coarse.extend_from_slice(some);
            }
        }
        coarse.push(end.clone());
        coarse
    }
}

impl<C, A: Amount + Encode<C>> Encode<C> for Snapshot<A> {
    fn encode<W: encode::Write>(
        &self,
        encoder: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        self.wire().encode(encoder, ctx)
    }
}

impl<C, A: Amount + Encode<C> + CborLen<C>> CborLen<C> for Snapshot<A> {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.wire().cbor_len(ctx)
    }
}

/// Refuses what [`Snapshot::from_steps`] refuses.
impl<'b, C, A: Amount + Decode<'b, C>> Decode<'b, C> for Snapshot<A> {
    fn decode(decoder: &mut Decoder<'b>, ctx: &mut C) -> Result<Snapshot<A>, decode::Error> {
        let at = decoder.position();
        let Wire { version, capacity, firm, whole } = Wire::decode(decoder, ctx)?;
        Snapshot::from_steps(version, capacity, &firm, whole.as_deref())
            .map_err(|error| decode::Error::custom(error).at(at))
    }
}

fn checked<A: Amount>(capacity: &Capacity<A>, steps: &[(Time, A)]) -> Result<Profile<A>, StepsError> {
    if steps.len() > STEPS_MAX {
        return Err(StepsError::TooMany);
    }
    // Amounts first: only then are their differences safe to sum up.
    for (step, (time, used)) in steps.iter().enumerate() {
        let rises = step == 0 || steps[step - 1].0 < *time;
        if !rises || *time == Time::NEVER {
            return Err(StepsError::Time { step });
        }
        if !used.fits_in(capacity.most()) {
            return Err(StepsError::OverCapacity { step, at: *time });
        }
    }
    if steps.last().is_some_and(|(_, used)| *used != A::default()) {
        return Err(StepsError::Endless);
    }
    let idle = Timeline::new(capacity.clone());
    for (step, pair) in steps.windows(2).enumerate() {
        let Some(interval) = Interval::new(pair[0].0, pair[1].0) else {
            return Err(StepsError::Time { step });
        };
        if let Some(at) = idle.first_blocked(interval, &pair[0].1, Against::Firm) {
            return Err(StepsError::OverCapacity { step, at });
        }
    }
    Ok(Profile::from_steps(steps.iter().cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowded_calendar_travels_small_and_promises_nothing_that_is_not_free() {
        const STEPS: u64 = 100_000;
        let used = |step: u64| if step.is_multiple_of(50) { 0 } else { 1 + (step % 7) as u32 };
        let steps = (0..STEPS).map(|step| (Time::from_secs(step), used(step)));
        let steps: Vec<(Time, u32)> = steps.chain([(Time::from_secs(STEPS), 0)]).collect();
        let whole = Snapshot::from_steps(3, Capacity::constant(8).unwrap(), &steps, None).unwrap();
        let bytes = minicbor::to_vec(&whole).unwrap();
        assert!(bytes.len() < 512 << 10, "{} bytes", bytes.len());
        assert_eq!(minicbor::len(&whole), bytes.len());
        let seen: Snapshot<u32> = decode(&bytes).unwrap();
        assert_eq!(seen.version(), 3);
        let second = Span::from_secs(1);
        for (from, amount) in [(0, 8), (7_000, 8), (50_000, 1), (50_000, 4), (50_000, 8), (99_999, 8)] {
            let find = |calendar: &Snapshot<u32>| {
                calendar.earliest_fit(Time::from_secs(from), second, &amount, Against::Firm).unwrap()
            };
            let (found, best) = (find(&seen), find(&whole));
            assert!(found >= best);
            let interval = Interval::new(found, found + second).unwrap();
            assert!(whole.free_during(interval, &amount, Against::Firm), "{amount} from {from} at {found}");
            assert!(from > 7_000 || found == best, "what is near is as it was");
        }
    }
}
