//! How slow answers are lately, to know how long to wait for the next.

use shoal_model::Span;

/// The slowest recent answer, if any has come; fades by an eighth with each quicker one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Pace(Option<Span>);

impl Pace {
    pub fn slowest(self) -> Option<Span> {
        self.0
    }

    pub fn answered_after(&mut self, span: Span) {
        let faded = self.0.map_or(Span::ZERO, |slowest| Span::from_micros(slowest.as_micros() / 8 * 7));
        self.0 = Some(span.max(faded));
    }
}
