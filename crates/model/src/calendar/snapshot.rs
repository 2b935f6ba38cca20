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
        Wire {
            version: self.version,
            capacity: self.timeline.capacity().clone(),
            firm: self.steps(View::Firm).collect(),
            whole: self.has_views_apart().then(|| self.steps(View::Whole).collect()),
        }
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
