//! What a node has to give: always the same, or by the hours of the week as its owner's policy says.

use std::sync::Arc;

use minicbor::{CborLen, Decode, Decoder, Encode, Encoder, decode, encode};

use crate::amount::Amount;
use crate::time::{Span, Time};

/// How long it takes until weekly capacity repeats.
pub const WEEK: Span = Span::from_hours(7 * 24);

/// More steps than this make no weekly capacity: one for each quarter of an hour.
pub const WEEK_STEPS_MAX: usize = 7 * 24 * 4;

/// How much there is at every instant, for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Capacity<A>(Shape<A>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Shape<A> {
    Constant(A),
    /// Shared: most nodes of an owner keep the same hours.
    Weekly(Arc<Week<A>>),
}

/// A week that is not the same throughout. It begins where the driver's time does, whenever the owner's does.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Week<A> {
    /// Rising offsets, each with what there is from there to the next; neighbours differ.
    steps: Vec<(Span, A)>,
    most: A,
    least: A,
}

/// Why something is no capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// A week needs something to say.
    #[error("weekly capacity has no steps: give at least one (offset, amount)")]
    NoSteps,
    /// See [`WEEK_STEPS_MAX`].
    #[error("weekly capacity has {0} steps: give at most {WEEK_STEPS_MAX}")]
    TooManySteps(usize),
    /// Offsets must rise and stay within the week.
    #[error("offset {0} in weekly capacity: offsets must rise and be less than a week")]
    Offset(Span),
    /// See [`Amount::in_range`].
    #[error("capacity is half of its number's range or more: give less")]
    OutOfRange,
}

impl<A: Amount> Capacity<A> {
    /// The same amount at every instant.
    pub fn constant(amount: A) -> Result<Capacity<A>, CapacityError> {
        if amount.in_range() { Ok(Capacity(Shape::Constant(amount))) } else { Err(CapacityError::OutOfRange) }
    }

    /// Amounts by offset in the week, each until the next and the last until the first of the week after.
    ///
    /// `week_start` is any instant at which a week begins.
    pub fn weekly(week_start: Time, steps: Vec<(Span, A)>) -> Result<Capacity<A>, CapacityError> {
        if steps.len() > WEEK_STEPS_MAX {
            return Err(CapacityError::TooManySteps(steps.len()));
        }
        let mut before = None;
        for (offset, amount) in &steps {
            if *offset >= WEEK || before.is_some_and(|before| before >= offset) {
                return Err(CapacityError::Offset(*offset));
            }
            if !amount.in_range() {
                return Err(CapacityError::OutOfRange);
            }
            before = Some(offset);
        }
        let Some((_, last)) = steps.last() else { return Err(CapacityError::NoSteps) };
        let mut before = last.clone();
        let mut kept: Vec<(Span, A)> = Vec::with_capacity(steps.len());
        for (offset, amount) in &steps {
            if *amount != before {
                kept.push((in_week(week_start + *offset), amount.clone()));
                before = amount.clone();
            }
        }
        if kept.is_empty() {
            return Capacity::constant(before);
        }
        kept.sort_by_key(|&(offset, _)| offset);
        let most = kept.iter().fold(before.clone(), |most, (_, amount)| most.most(amount));
        let least = kept.iter().fold(before, |least, (_, amount)| least.least(amount));
        Ok(Capacity(Shape::Weekly(Arc::new(Week { steps: kept, most, least }))))
    }

    /// What there is at an instant, and the first instant after it at which that may change.
    pub fn at(&self, time: Time) -> (&A, Time) {
        match &self.0 {
            Shape::Constant(amount) => (amount, Time::NEVER),
            Shape::Weekly(week) => {
                let offset = in_week(time);
                let next = week.steps.partition_point(|&(step, _)| step <= offset);
                let current = next.checked_sub(1).unwrap_or(week.steps.len() - 1);
                let end = week.steps.get(next).map_or(WEEK + week.steps[0].0, |&(step, _)| step);
                (&week.steps[current].1, time + end.saturating_sub(offset))
            }
        }
    }

    /// The most there ever is, component by component.
    pub fn most(&self) -> &A {
        match &self.0 {
            Shape::Constant(amount) => amount,
            Shape::Weekly(week) => &week.most,
        }
    }

    /// The least there ever is, component by component.
    pub fn least(&self) -> &A {
        match &self.0 {
            Shape::Constant(amount) => amount,
            Shape::Weekly(week) => &week.least,
        }
    }

    /// Whether it changes in the course of a week.
    pub fn is_weekly(&self) -> bool {
        matches!(self.0, Shape::Weekly(_))
    }

    /// The steps of a week that begins at the driver's zero.
    fn steps(&self) -> Vec<Step<A>> {
        match &self.0 {
            Shape::Constant(amount) => vec![Step { offset: Span::ZERO, amount: amount.clone() }],
            Shape::Weekly(week) => week
                .steps
                .iter()
                .map(|(offset, amount)| Step { offset: *offset, amount: amount.clone() })
                .collect(),
        }
    }
}

fn in_week(time: Time) -> Span {
    Span::from_micros(time.as_micros() % WEEK.as_micros())
}

/// A step as it travels.
#[derive(Encode, Decode, CborLen)]
struct Step<A> {
    #[n(0)]
    offset: Span,
    #[n(1)]
    amount: A,
}

impl<C, A: Amount + Encode<C>> Encode<C> for Capacity<A> {
    fn encode<W: encode::Write>(
        &self,
        encoder: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        self.steps().encode(encoder, ctx)
    }
}

impl<C, A: Amount + Encode<C> + CborLen<C>> CborLen<C> for Capacity<A> {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.steps().cbor_len(ctx)
    }
}

impl<'b, C, A: Amount + Decode<'b, C>> Decode<'b, C> for Capacity<A> {
    fn decode(decoder: &mut Decoder<'b>, ctx: &mut C) -> Result<Capacity<A>, decode::Error> {
        let steps = Vec::<Step<A>>::decode(decoder, ctx)?;
        let steps = steps.into_iter().map(|step| (step.offset, step.amount)).collect();
        Capacity::weekly(Time::ZERO, steps).map_err(decode::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: u64) -> Span {
        Span::from_hours(hours)
    }

    #[test]
    fn week_repeats_from_its_start() {
        let start = Time::ZERO + hours(30);
        let week = Capacity::weekly(start, vec![(hours(8), 4u32), (hours(160), 9)]).unwrap();
        for weeks in [0, 1, 1_000] {
            let start = start + WEEK * weeks;
            assert_eq!(week.at(start), (&9, start + hours(8)), "the last step reaches into the next week");
            assert_eq!(week.at(start + hours(8)), (&4, start + hours(160)));
            assert_eq!(week.at(start + hours(161)), (&9, start + hours(7 * 24 + 8)));
        }
        assert_eq!((*week.most(), *week.least()), (9, 4));
        assert_eq!(week.at(Time::NEVER).1, Time::NEVER);
    }

    #[test]
    fn equal_capacities_are_equal_however_they_were_told() {
        let told = |start, steps: &[(u64, u32)]| {
            let steps = steps.iter().map(|&(offset, amount)| (hours(offset), amount)).collect();
            Capacity::weekly(Time::ZERO + hours(start), steps).unwrap()
        };
        assert_eq!(told(5, &[(0, 3), (9, 3)]), Capacity::constant(3).unwrap());
        assert_eq!(told(0, &[(0, 3), (9, 3), (10, 4)]), told(160, &[(8, 3), (18, 4)]));
    }

    #[test]
    fn nonsense_is_refused_also_from_the_wire() {
        let weekly = |steps: &[(u64, u32)]| {
            Capacity::weekly(Time::ZERO, steps.iter().map(|&(o, a)| (hours(o), a)).collect())
        };
        assert_eq!(weekly(&[]), Err(CapacityError::NoSteps));
        assert_eq!(weekly(&[(3, 1), (3, 2)]), Err(CapacityError::Offset(hours(3))));
        assert_eq!(weekly(&[(168, 1)]), Err(CapacityError::Offset(WEEK)));
        assert_eq!(weekly(&[(0, 1 << 31)]), Err(CapacityError::OutOfRange));
        assert_eq!(Capacity::constant(u32::MAX), Err(CapacityError::OutOfRange));
        let many = (0..=WEEK_STEPS_MAX as u64).map(|step| (Span::from_mins(step), step as u32 % 2)).collect();
        assert_eq!(Capacity::weekly(Time::ZERO, many), Err(CapacityError::TooManySteps(WEEK_STEPS_MAX + 1)));

        let good = weekly(&[(3, 1), (4, 2)]).unwrap();
        let bytes = minicbor::to_vec(&good).unwrap();
        assert_eq!(bytes.len(), minicbor::len(&good));
        assert_eq!(decode::<Capacity<u32>>(&bytes).unwrap(), good);
        let bad = minicbor::to_vec(vec![Step { offset: WEEK, amount: 1u32 }]).unwrap();
        assert!(decode::<Capacity<u32>>(&bad).is_err());
    }
}
