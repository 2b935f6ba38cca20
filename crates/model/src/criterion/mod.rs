//! What is best: the user's own cost of a set of nodes and a start.
//!
//! ```text
//! criterion := ["minimise"] sum ["subject" "to" bound {"and" bound}]
//! bound     := sum ("<" | "<=" | ">" | ">=") sum
//! sum       := product {("+" | "-") product}
//! product   := factor {("*" | "/") factor}
//! factor    := number | span | name ["(" word ")"] | "(" sum ")" | "-" factor
//! ```
//!
//! Such as `closest`, `closest subject to wait <= 1h`, `2 * closest + 5ms * domains`. Lengths of time and plain numbers
//! are told apart: `closest + domains` is refused, and `5ms * domains` says what a domain is worth. There are no loops
//! and no variables, so an evaluation takes as many steps as there are tokens. All arithmetic is in whole numbers
//! (billionths), and stops at the largest instead of wrapping round: the same set costs the same on every machine.

mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::expression::ExpressionError;
use crate::id::NodeId;
use crate::text::Name;
use crate::time::Span;
use crate::units::SpanText;

/// A number in billionths; of a length of time, nanoseconds.
pub type Fixed = i128;

/// One, as a [`Fixed`].
pub const ONE: Fixed = 1_000_000_000;
/// The largest number that there is; sums and products stop here.
pub const FIXED_MAX: Fixed = 1 << 96;

/// What can be measured of a set of nodes and a start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// `soonest`, or `wait`: how long until the start.
    Wait,
    /// `finish`: how long until the hard limit's end, on the slowest node.
    Finish,
    /// `closest`: how far the nodes are from the point in their middle, in sum.
    Closest,
    /// `spread`: the same, the more the better.
    Spread,
    /// `near(X)`: how far the nodes are from a node, in sum; `near(here)` is the node that took the job.
    Near(Option<NodeId>),
    /// `domains`: how many organisations, or values of a label, the nodes belong to; the more the better.
    Domains(Option<Name>),
    /// `fastest`: how long the job takes on the slowest node.
    Fastest,
    /// `cheapest`: what the nodes ask for, in sum: their label `price`.
    Cheapest,
}

impl Measure {
    /// Whether more of it is better: then it counts against the cost.
    pub fn is_better_when_more(&self) -> bool {
        match self {
            Measure::Spread | Measure::Domains(_) => true,
            Measure::Wait
            | Measure::Finish
            | Measure::Closest
            | Measure::Near(_)
            | Measure::Fastest
            | Measure::Cheapest => false,
        }
    }

    fn is_time(&self) -> bool {
        match self {
            Measure::Domains(_) | Measure::Cheapest => false,
            Measure::Wait
            | Measure::Finish
            | Measure::Closest
            | Measure::Spread
            | Measure::Near(_)
            | Measure::Fastest => true,
        }
    }

    /// Whether it depends on when the job starts.
    pub fn needs_start(&self) -> bool {
        matches!(self, Measure::Wait | Measure::Finish)
    }
}

/// What somebody knows of a set of nodes and a start.
pub trait Facts {
    /// How much there is of it; none if nobody knows.
    fn measure(&self, measure: &Measure) -> Option<Fixed>;
}

/// What a set of nodes and a start cost. The least is the best; what misses a bound is worse than all that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost {
    /// By how much bounds are missed, in sum; 0 if all are met.
    pub missed: Fixed,
    /// What is minimised.
    pub value: Fixed,
}

impl Cost {
    /// What cannot be had at all: something is divided by zero, or unknown.
    pub const IMPOSSIBLE: Cost = Cost { missed: FIXED_MAX, value: FIXED_MAX };

    /// Whether all bounds are met.
    pub fn is_feasible(&self) -> bool {
        self.missed == 0
    }
}

/// What is best, as the user says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Criterion {
    cost: Term,
    bounds: Vec<Bound>,
}

/// A part of a criterion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Term {
    Number(Fixed),
    /// A length of time in nanoseconds.
    Span(Fixed),
    Measure(Measure),
    Minus(Box<Term>),
    Both(Sign, Box<Term>, Box<Term>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sign {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bound {
    left: Term,
    order: Order,
    right: Term,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Order {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Criterion {
    /// As soon as possible: what is best where the user does not say.
    pub const SOONEST: Criterion = Criterion { cost: Term::Measure(Measure::Wait), bounds: Vec::new() };

    /// What a set costs of which these are the facts.
    pub fn cost(&self, facts: &impl Facts) -> Cost {
        let Some(value) = self.cost.value(facts, true) else { return Cost::IMPOSSIBLE };
        let mut missed: Fixed = 0;
        for bound in &self.bounds {
            let Some(by) = bound.missed_by(facts) else { return Cost::IMPOSSIBLE };
            missed = clamp(missed.saturating_add(by));
        }
        Cost { missed, value }
    }

    /// All that it measures, in the order in which it stands there.
    pub fn measures(&self) -> Vec<&Measure> {
        let mut found = Vec::new();
        self.cost.measures(&mut found);
        for Bound { left, right, .. } in &self.bounds {
            left.measures(&mut found);
            right.measures(&mut found);
        }
        found
    }

    /// Whether the start matters, besides that there is one.
    pub fn needs_start(&self) -> bool {
        self.measures().iter().any(|measure| measure.needs_start())
    }

    /// The one thing that is minimised, if there is nothing else to it.
    pub fn only(&self) -> Option<&Measure> {
        match &self.cost {
            Term::Measure(measure) if self.bounds.is_empty() => Some(measure),
            Term::Measure(_) | Term::Number(_) | Term::Span(_) | Term::Minus(_) | Term::Both(..) => None,
        }
    }

    /// What is measured first, which says among which nodes to look.
    pub fn first(&self) -> Option<&Measure> {
        self.measures().first().copied()
    }
}

impl Term {
    /// In a cost, what is better when there is more of it counts as less.
    fn value(&self, facts: &impl Facts, as_cost: bool) -> Option<Fixed> {
        let value = match self {
            Term::Number(number) | Term::Span(number) => *number,
            Term::Measure(measure) => {
                let found = facts.measure(measure)?;
                if as_cost && measure.is_better_when_more() { -found } else { found }
            }
            Term::Minus(term) => -term.value(facts, as_cost)?,
            Term::Both(sign, left, right) => {
                let (left, right) = (left.value(facts, as_cost)?, right.value(facts, as_cost)?);
                match sign {
                    Sign::Plus => left.saturating_add(right),
                    Sign::Minus => left.saturating_sub(right),
                    Sign::Times => times(left, right),
                    Sign::Over => over(left, right)?,
                }
            }
        };
        Some(clamp(value))
    }

    fn measures<'a>(&'a self, found: &mut Vec<&'a Measure>) {
        match self {
            Term::Number(_) | Term::Span(_) => {}
            Term::Measure(measure) => found.push(measure),
            Term::Minus(term) => term.measures(found),
            Term::Both(_, left, right) => {
                left.measures(found);
                right.measures(found);
            }
        }
    }
}

impl Bound {
    fn missed_by(&self, facts: &impl Facts) -> Option<Fixed> {
        let (left, right) = (self.left.value(facts, false)?, self.right.value(facts, false)?);
        let over = match self.order {
            Order::Below => left - right + 1,
            Order::AtMost => left - right,
            Order::Above => right - left + 1,
            Order::AtLeast => right - left,
        };
        Some(over.max(0))
    }
}

fn clamp(number: Fixed) -> Fixed {
    number.clamp(-FIXED_MAX, FIXED_MAX)
}

/// Both are below 2^96, so their product may not fit: then a factor gives up what is below one.
fn times(left: Fixed, right: Fixed) -> Fixed {
    match left.checked_mul(right) {
        Some(product) => product / ONE,
        None => (left / ONE).saturating_mul(right),
    }
}

fn over(left: Fixed, right: Fixed) -> Option<Fixed> {
    match left.checked_mul(ONE) {
        Some(scaled) => scaled.checked_div(right),
        None => left.checked_div(right).map(|quotient| quotient.saturating_mul(ONE)),
    }
}

/// A span as a number.
pub fn fixed(span: Span) -> Fixed {
    Fixed::from(span.as_micros()) * 1_000
}

impl FromStr for Criterion {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Criterion, ExpressionError> {
        parse::criterion(text)
    }
}

/// With the brackets that it needs and no others, so that what was not nested too deeply to be read is not when it is written.
impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cost)?;
        for (place, bound) in self.bounds.iter().enumerate() {
            f.write_str(if place == 0 { " subject to " } else { " and " })?;
            let order = match bound.order {
                Order::Below => "<",
                Order::AtMost => "<=",
                Order::Above => ">",
                Order::AtLeast => ">=",
            };
            write!(f, "{} {order} {}", bound.left, bound.right)?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Rank::Sum)
    }
}

/// What may stand at a place without brackets: anything, all but sums, or neither sums nor products.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Sum,
    Product,
    Factor,
}

impl Term {
    fn write(&self, f: &mut fmt::Formatter<'_>, place: Rank) -> fmt::Result {
        match self {
            Term::Number(number) => {
                write!(f, "{}", number / ONE)?;
                match number % ONE {
                    0 => Ok(()),
                    rest => write!(f, ".{}", format!("{rest:09}").trim_end_matches('0')),
                }
            }
            // What was read is whole microseconds.
            Term::Span(nanos) => write!(f, "{}", SpanText(Span::from_micros((nanos / 1_000) as u64))),
            Term::Measure(measure) => write!(f, "{measure}"),
            Term::Minus(term) => {
                f.write_str("-")?;
                term.write(f, Rank::Factor)
            }
            Term::Both(sign, left, right) => {
                // Reading takes the leftmost two together first.
                let (sign, rank, behind) = match sign {
                    Sign::Plus => ("+", Rank::Sum, Rank::Product),
                    Sign::Minus => ("-", Rank::Sum, Rank::Product),
                    Sign::Times => ("*", Rank::Product, Rank::Factor),
                    Sign::Over => ("/", Rank::Product, Rank::Factor),
                };
                let (open, close) = if rank < place { ("(", ")") } else { ("", "") };
                f.write_str(open)?;
                left.write(f, rank)?;
                write!(f, " {sign} ")?;
                right.write(f, behind)?;
                f.write_str(close)
            }
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Wait => f.write_str("wait"),
            Measure::Finish => f.write_str("finish"),
            Measure::Closest => f.write_str("closest"),
            Measure::Spread => f.write_str("spread"),
            Measure::Near(None) => f.write_str("near(here)"),
            Measure::Near(Some(node)) => write!(f, "near(\"{node}\")"),
            Measure::Domains(None) => f.write_str("domains"),
            Measure::Domains(Some(label)) => write!(f, "domains(\"{label}\")"),
            Measure::Fastest => f.write_str("fastest"),
            Measure::Cheapest => f.write_str("cheapest"),
        }
    }
}

/// The better of two costs comes first.
pub fn better(a: &Cost, b: &Cost) -> bool {
    a.cmp(b) == Ordering::Less
}

#[cfg(test)]
mod tests;
