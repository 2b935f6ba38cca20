//! Arrays: one job, run once for each index, as in `1-1000%50` or `1,5,10-100:10`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use minicbor::decode::{self, Decoder};
use minicbor::{CborLen, Decode, Encode};

use crate::units::{clipped, serde_as_text};

/// The largest index.
pub const MAX_ARRAY_INDEX: u32 = 999_999_999;
/// Indexes of one array.
pub const MAX_ARRAY_TASKS: u32 = 1_000_000;
/// Ranges of one array.
pub const MAX_ARRAY_RANGES: usize = 1_000;

/// Indexes in rising order, and how many of them may run at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, CborLen)]
pub struct Array {
    #[n(0)]
    ranges: Vec<IndexRange>,
    #[n(1)]
    at_once: Option<NonZeroU32>,
}

/// Every `step`th index from `first` to `last`, which is one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, CborLen)]
pub struct IndexRange {
    #[n(0)]
    first: u32,
    #[n(1)]
    last: u32,
    #[n(2)]
    step: NonZeroU32,
}

/// What is wrong with an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// A part that cannot be read.
    #[error("`{part}` in the array `{text}`: expected {expected}, as in 1-1000%50 or 1,5,10-100:10")]
    Part {
        /// The array.
        text: Box<str>,
        /// The part that is wrong.
        part: Box<str>,
        /// What should be there.
        expected: &'static str,
    },
    /// No index at all.
    #[error("an array without an index")]
    Empty,
    /// A range that ends before it begins.
    #[error("the range {first}-{last} ends before it begins")]
    Backwards {
        /// Where it begins.
        first: u32,
        /// Where it ends.
        last: u32,
    },
    /// A range that does not come after the one before.
    #[error("the index {0} is not above the ones before it: ranges must rise and not overlap")]
    Order(u32),
    /// Beyond [`MAX_ARRAY_INDEX`].
    #[error("the index {0} is above {MAX_ARRAY_INDEX}")]
    Index(u32),
    /// Beyond [`MAX_ARRAY_RANGES`].
    #[error("{0} ranges, at most {MAX_ARRAY_RANGES}")]
    Ranges(usize),
    /// Beyond [`MAX_ARRAY_TASKS`].
    #[error("{0} indexes, at most {MAX_ARRAY_TASKS}")]
    Tasks(u64),
}

impl Array {
    /// An array of these ranges, which must rise and not overlap.
    pub fn new(ranges: Vec<IndexRange>, at_once: Option<NonZeroU32>) -> Result<Array, ArrayError> {
        let highest = ranges.last().ok_or(ArrayError::Empty)?.last;
        if ranges.len() > MAX_ARRAY_RANGES {
            return Err(ArrayError::Ranges(ranges.len()));
        }
        if let Some(pair) = ranges.windows(2).find(|pair| pair[1].first <= pair[0].last) {
            return Err(ArrayError::Order(pair[1].first));
        }
        if highest > MAX_ARRAY_INDEX {
            return Err(ArrayError::Index(highest));
        }
        let array = Array { ranges, at_once };
        match array.count() {
            count if count > u64::from(MAX_ARRAY_TASKS) => Err(ArrayError::Tasks(count)),
            _ => Ok(array),
        }
    }

    /// How many indexes there are; at least one.
    pub fn tasks(&self) -> u32 {
        self.count() as u32
    }

    /// How many may run at once; all, if the user does not say.
    pub fn at_once(&self) -> Option<NonZeroU32> {
        self.at_once
    }

    /// The indexes, rising.
    pub fn indexes(&self) -> impl Iterator<Item = u32> {
        self.ranges.iter().flat_map(|range| (range.first..=range.last).step_by(range.step.get() as usize))
    }

    /// The first index, or the first above another.
    pub fn next(&self, above: Option<u32>) -> Option<u32> {
        let Some(above) = above else { return Some(self.ranges.first()?.first) };
        let range = self.ranges.get(self.ranges.partition_point(|range| range.last <= above))?;
        let steps = above.checked_sub(range.first).map_or(0, |past| past / range.step + 1);
        Some(range.first + steps * range.step.get())
    }

    /// Whether this is one of the indexes.
    pub fn contains(&self, index: u32) -> bool {
        let at = self.ranges.partition_point(|range| range.last < index);
        self.ranges.get(at).is_some_and(|range| {
            index >= range.first && (index - range.first).is_multiple_of(range.step.get())
        })
    }

    fn count(&self) -> u64 {
        self.ranges.iter().map(|range| u64::from((range.last - range.first) / range.step) + 1).sum()
    }
}

impl IndexRange {
    /// Every `step`th index from `first` to at most `last`.
    pub fn new(first: u32, last: u32, step: NonZeroU32) -> Result<IndexRange, ArrayError> {
        let Some(length) = last.checked_sub(first) else {
            return Err(ArrayError::Backwards { first, last });
        };
        // One way to write each set of indexes: the last one is reached, and a single one has step 1.
        let last = last - length % step;
        Ok(IndexRange { first, last, step: if first == last { NonZeroU32::MIN } else { step } })
    }
}

impl FromStr for Array {
    type Err = ArrayError;

    fn from_str(text: &str) -> Result<Array, ArrayError> {
        let wrong =
            |part: &str, expected| ArrayError::Part { text: clipped(text), part: clipped(part), expected };
        // `parse` alone would take a plus sign too.
        let number = |part: &str, expected| match part.parse() {
            Ok(number) if part.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
            _ => Err(wrong(part, expected)),
        };
        let non_zero = |part: &str, expected| {
            NonZeroU32::new(number(part, expected)?).ok_or_else(|| wrong(part, expected))
        };
        let (ranges, at_once) = match text.trim().split_once('%') {
            Some((ranges, at_once)) => {
                (ranges, Some(non_zero(at_once, "how many at once, at least 1, after `%`")?))
            }
            None => (text.trim(), None),
        };
        let ranges = ranges.split(',').map(|range| {
            let (span, step) = match range.split_once(':') {
                Some((span, step)) => (span, non_zero(step, "a step of at least 1 after `:`")?),
                None => (range, NonZeroU32::MIN),
            };
            match span.split_once('-') {
                Some((first, last)) => {
                    IndexRange::new(number(first, "an index")?, number(last, "an index")?, step)
                }
                None if range.contains(':') => Err(wrong(range, "a range before the step")),
                None => {
                    let index = number(span, "an index or a range")?;
                    IndexRange::new(index, index, step)
                }
            }
        });
        Array::new(ranges.collect::<Result<_, _>>()?, at_once)
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, range) in self.ranges.iter().enumerate() {
            f.write_str(if n > 0 { "," } else { "" })?;
            write!(f, "{range}")?;
        }
        match self.at_once {
            Some(at_once) => write!(f, "%{at_once}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for IndexRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.last > self.first {
            write!(f, "-{}", self.last)?;
        }
        if self.step > NonZeroU32::MIN {
            write!(f, ":{}", self.step)?;
        }
        Ok(())
    }
}

serde_as_text!(Array, "an array in quotes, as in \"1-1000%50\"");

impl<'b, C> Decode<'b, C> for Array {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Array, decode::Error> {
        #[derive(Decode)]
        struct Wire {
            #[n(0)]
            ranges: Vec<IndexRange>,
            #[n(1)]
            at_once: Option<NonZeroU32>,
        }
        let at = d.position();
        let Wire { ranges, at_once } = Wire::decode(d, ctx)?;
        Array::new(ranges, at_once).map_err(|error| decode::Error::custom(error).at(at))
    }
}

impl<'b, C> Decode<'b, C> for IndexRange {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<IndexRange, decode::Error> {
        #[derive(Decode)]
        struct Wire {
            #[n(0)]
            first: u32,
            #[n(1)]
            last: u32,
            #[n(2)]
            step: NonZeroU32,
        }
        let at = d.position();
        let Wire { first, last, step } = Wire::decode(d, ctx)?;
        IndexRange::new(first, last, step).map_err(|error| decode::Error::custom(error).at(at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::array;

    #[test]
    fn arrays_read_as_slurm_writes_them() {
        let array: Array = "1-1000%50".parse().unwrap();
        assert_eq!((array.tasks(), array.at_once()), (1_000, NonZeroU32::new(50)));
        let array: Array = "1,5,10-35:10".parse().unwrap();
        assert_eq!(array.indexes().collect::<Vec<_>>(), [1, 5, 10, 20, 30]);
        assert_eq!(array.to_string(), "1,5,10-30:10");
        assert_eq!("3-4:7".parse::<Array>().unwrap().to_string(), "3");
    }

    #[test]
    fn arrays_without_sense_are_refused_with_their_part() {
        let refused = [
            ("", "`` in the array ``: expected an index or a range, as in 1-1000%50 or 1,5,10-100:10"),
            ("1-", "`` in the array `1-`: expected an index, as in 1-1000%50 or 1,5,10-100:10"),
            ("+1", "`+1` in the array `+1`: expected an index or a range, as in 1-1000%50 or 1,5,10-100:10"),
            (
                "1-9%0",
                "`0` in the array `1-9%0`: expected how many at once, at least 1, after `%`, as in 1-1000%50 or 1,5,10-100:10",
            ),
            (
                "1-9:0",
                "`0` in the array `1-9:0`: expected a step of at least 1 after `:`, as in 1-1000%50 or 1,5,10-100:10",
            ),
            (
                "1:2",
                "`1:2` in the array `1:2`: expected a range before the step, as in 1-1000%50 or 1,5,10-100:10",
            ),
            ("9-1", "the range 9-1 ends before it begins"),
            ("1-5,5-9", "the index 5 is not above the ones before it: ranges must rise and not overlap"),
            ("1000000000", "the index 1000000000 is above 999999999"),
            ("0-1000000", "1000001 indexes, at most 1000000"),
        ];
        for (text, message) in refused {
            assert_eq!(text.parse::<Array>().unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn arrays_read_back_what_they_write(array in array()) {
            prop_assert_eq!(&array.to_string().parse::<Array>().unwrap(), &array);
            let bytes = minicbor::to_vec(&array).unwrap();
            prop_assert_eq!(&minicbor::decode::<Array>(&bytes).unwrap(), &array);
            prop_assert_eq!(array.indexes().count(), array.tasks() as usize);
        }

        #[test]
        fn an_index_is_contained_if_and_only_if_it_is_listed(array in array()) {
            let listed: Vec<u32> = array.indexes().collect();
            prop_assert!(listed.is_sorted());
            for index in 0..400 {
                prop_assert_eq!(array.contains(index), listed.contains(&index), "{}", index);
            }
        }
    }
}
