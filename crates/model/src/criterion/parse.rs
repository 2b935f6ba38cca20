//! Reads a criterion, and says at which column it makes no sense.

use super::{Bound, Criterion, FIXED_MAX, Fixed, Measure, ONE, Order, Sign, Term, fixed};
use crate::expression::token::{Token, What, tokens};
use crate::expression::{DEPTH_MAX, ExpressionError, suggestion};
use crate::units::parse_span;

const NAMES: [&str; 9] =
    ["soonest", "wait", "finish", "closest", "spread", "near", "domains", "fastest", "cheapest"];

/// A term, and what it is: a plain number (0), a length of time (1), such a length squared (2) …
struct Typed {
    term: Term,
    times: i8,
    column: usize,
}

pub(super) fn criterion(text: &str) -> Result<Criterion, ExpressionError> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0 };
    if reader.is_name("minimise") || reader.is_name("minimize") {
        reader.at += 1;
    }
    let cost = reader.sum()?;
    if matches!(cost.term, Term::Number(_) | Term::Span(_)) {
        return Err(ExpressionError::new(cost.column, "a cost that is the same for every set of nodes"));
    }
    let mut bounds = Vec::new();
    if reader.eat_name("subject") {
        if !reader.eat_name("to") {
            return Err(reader.expected("`to` after `subject`"));
        }
        bounds.push(reader.bound()?);
        while reader.eat_name("and") {
            bounds.push(reader.bound()?);
        }
    }
    match reader.peek().what {
        What::End => Ok(Criterion { cost: cost.term, bounds }),
        What::Sign("<" | "<=" | ">" | ">=") => {
            Err(reader.expected("a cost first, then its bounds, as in `soonest subject to …`"))
        }
        _ if bounds.is_empty() => Err(reader.expected("a sign, `subject to`, or the end")),
        _ => Err(reader.expected("a sign, `and`, or the end")),
    }
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> &'a Token<'a> {
        // The last token is the end, which nobody steps over.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> &'a Token<'a> {
        let token = self.peek();
        if token.what != What::End {
            self.at += 1;
        }
        token
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek().what, What::Name(found) if found.eq_ignore_ascii_case(name))
    }

    fn eat_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek().what, What::Sign(other) if other == sign);
        self.at += usize::from(found);
        found
    }

    fn expected(&self, what: &str) -> ExpressionError {
        let token = self.peek();
        ExpressionError::new(token.column, format!("expected {what}, found {}", token.what.described()))
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        if self.depth == DEPTH_MAX {
            return Err(ExpressionError::new(self.peek().column, format!("nested deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn bound(&mut self) -> Result<Bound, ExpressionError> {
        let left = self.sum()?;
        let column = self.peek().column;
        let order = match self.peek().what {
            What::Sign("<") => Order::Below,
            What::Sign("<=") => Order::AtMost,
            What::Sign(">") => Order::Above,
            What::Sign(">=") => Order::AtLeast,
            _ => return Err(self.expected("`<`, `<=`, `>` or `>=`")),
        };
        self.at += 1;
        let right = self.sum()?;
        same(&left, &right, "compare", column)?;
        Ok(Bound { left: left.term, order, right: right.term })
    }

    fn sum(&mut self) -> Result<Typed, ExpressionError> {
        let mut left = self.product()?;
        loop {
            let column = self.peek().column;
            let sign = match self.peek().what {
                What::Sign("+") => Sign::Plus,
                What::Sign("-") => Sign::Minus,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.product()?;
            same(&left, &right, "add", column)?;
            left = both(sign, left, right, |left, _| left);
        }
    }

    fn product(&mut self) -> Result<Typed, ExpressionError> {
        let mut left = self.factor()?;
        loop {
            let column = self.peek().column;
            let times = match self.peek().what {
                What::Sign("*") => true,
                What::Sign("/") => false,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.factor()?;
            if times {
                left = both(Sign::Times, left, right, |left, right| left + right);
            } else {
                if matches!(right.term, Term::Number(0) | Term::Span(0)) {
                    return Err(ExpressionError::new(column, "division by zero"));
                }
                left = both(Sign::Over, left, right, |left, right| left - right);
            }
            if left.times.unsigned_abs() > 8 {
                return Err(ExpressionError::new(column, "lengths of time multiplied more than eight times"));
            }
        }
    }

    fn factor(&mut self) -> Result<Typed, ExpressionError> {
        let token = self.next();
        let column = token.column;
        let typed = |term, times| Ok(Typed { term, times, column });
        match token.what {
            What::Number(text) => typed(Term::Number(number(text, column)?), 0),
            What::Quantity(text) => {
                let span = parse_span(text).map_err(|error| {
                    let at = column + error.column() - 1;
                    ExpressionError::new(
                        at,
                        format!("{} in `{text}`: expected a span, as in 1h30m", error.problem()),
                    )
                })?;
                typed(Term::Span(fixed(span)), 1)
            }
            What::Sign("-") => {
                let inner = self.deeper(Self::factor)?;
                typed(Term::Minus(Box::new(inner.term)), inner.times)
            }
            What::Sign("(") => {
                let inner = self.deeper(Self::sum)?;
                if !self.eat(")") {
                    return Err(self.expected("`)`"));
                }
                Ok(Typed { column, ..inner })
            }
            What::Name(name) => {
                let measure = self.measure(name, column)?;
                let times = i8::from(measure.is_time());
                typed(Term::Measure(measure), times)
            }
            What::Text(_) | What::Sign(_) | What::End => Err(ExpressionError::new(
                column,
                format!("expected a number, a span or a name, found {}", token.what.described()),
            )),
        }
    }

    fn measure(&mut self, name: &str, column: usize) -> Result<Measure, ExpressionError> {
        let argument = self.argument()?;
        let none = |measure: Measure| match &argument {
            None => Ok(measure),
            Some((_, at)) => Err(ExpressionError::new(*at, format!("`{name}` takes nothing in brackets"))),
        };
        match name.to_ascii_lowercase().as_str() {
            "soonest" | "wait" => none(Measure::Wait),
            "finish" => none(Measure::Finish),
            "closest" => none(Measure::Closest),
            "spread" => none(Measure::Spread),
            "fastest" => none(Measure::Fastest),
            "cheapest" => none(Measure::Cheapest),
            "near" => match argument {
                Some(("here", _)) => Ok(Measure::Near(None)),
                Some((node, at)) => node.parse().map(|node| Measure::Near(Some(node))).map_err(|_| {
                    ExpressionError::new(at, format!("`{node}` is no node: expected a node's id, or `here`"))
                }),
                None => Err(ExpressionError::new(
                    self.peek().column,
                    "near what? Expected a node's id or `here` in brackets, as in near(here)",
                )),
            },
            "domains" => match argument {
                None => Ok(Measure::Domains(None)),
                Some((label, at)) => label
                    .parse()
                    .map(|label| Measure::Domains(Some(label)))
                    .map_err(|error| ExpressionError::new(at, format!("{error}"))),
            },
            "subject" | "to" | "and" => {
                Err(ExpressionError::new(column, format!("expected a cost before `{name}`, as in `soonest`")))
            }
            other => Err(ExpressionError::new(
                column,
                format!(
                    "unknown name `{}`: {}",
                    crate::units::clipped(name),
                    suggestion(other, NAMES.into_iter())
                ),
            )),
        }
    }

    /// The one word in brackets, with its column.
    fn argument(&mut self) -> Result<Option<(&'a str, usize)>, ExpressionError> {
        if !self.eat("(") {
            return Ok(None);
        }
        let Token { what, column, .. } = self.peek();
        let word = match what {
            What::Name(word) | What::Text(word) | What::Number(word) | What::Quantity(word) => *word,
            What::Sign(_) | What::End => return Err(self.expected("a word, or a text in quotes")),
        };
        self.at += 1;
        if !self.eat(")") {
            return Err(self.expected("`)`"));
        }
        Ok(Some((word, *column)))
    }
}

fn both(sign: Sign, left: Typed, right: Typed, times: impl Fn(i8, i8) -> i8) -> Typed {
    let Typed { term, times: left_times, column } = left;
    let times = times(left_times, right.times);
    Typed { term: Term::Both(sign, Box::new(term), Box::new(right.term)), times, column }
}

/// Refuses to add or compare what is not of one kind.
fn same(left: &Typed, right: &Typed, what: &str, column: usize) -> Result<(), ExpressionError> {
    if left.times == right.times {
        return Ok(());
    }
    let bare = [left, right].into_iter().find(|typed| matches!(typed.term, Term::Number(_)));
    if let (Some(bare), 1) = (bare, left.times.max(right.times)) {
        return Err(ExpressionError::new(
            bare.column,
            "a number without a unit: expected a span, as in 10s or 1h30m",
        ));
    }
    let (left, right) = (kind(left.times), kind(right.times));
    Err(ExpressionError::new(
        column,
        format!("cannot {what} {left} and {right}: multiply by what one is worth, as in 5ms * domains"),
    ))
}

fn kind(times: i8) -> String {
    match times {
        0 => "a plain number".to_owned(),
        1 => "a length of time".to_owned(),
        power => format!("a length of time to the power of {power}"),
    }
}

fn number(text: &str, column: usize) -> Result<Fixed, ExpressionError> {
    let wrong =
        |what: &str| ExpressionError::new(column, format!("`{}`: {what}", crate::units::clipped(text)));
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 9 || !decimals.chars().all(|c| c.is_ascii_digit()) {
        return Err(wrong("expected a number with at most nine decimals"));
    }
    let whole: Fixed = whole.parse().map_err(|_| wrong("too large"))?;
    if whole >= FIXED_MAX / ONE {
        return Err(wrong("too large"));
    }
    let fraction: Fixed = format!("{decimals:0<9}").parse().map_err(|_| wrong("no number"))?;
    Ok(whole * ONE + fraction)
}
