//! Pull: a searcher asks its neighbours for their schedules at each search, and keeps none.
//!
//! ```text
//! searcher B            each neighbour x          a neighbour m's neighbours
//!     │── ScheduleRequest ───▶│                         │
//!     │◀──── ScheduleReply ───│                         │
//!     │── CacheRequest ──────▶ m ── ScheduleRequest ───▶│   m must itself pull before it answers
//!     │◀──────── CacheReply ── m ◀──── ScheduleReply ───│   (the second hop)
//! ```

use super::{Purpose, Source};

/// Nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Pull;

impl Pull {
    pub(super) fn source(&self) -> Source<'_> {
        Source::Ask { searching: Purpose::Search, answering: Purpose::Answer }
    }
}
