//! Which nodes will do: an expression over what a machine is, in CEL.
//!
//! `memory >= 8GiB && org == "physics"`. Attributes: `cores`, `gpus`, `speed`, `memory`, `disk`, `org`, `arch`, `system`,
//! `labels.NAME` and `resources.NAME`, all also after `node.`. Sizes have units. Comparisons of an attribute with a
//! value, `in` a list, `&&`, `||`, `!` and brackets are compiled to code of our own (some tens of nanoseconds each);
//! any other CEL goes to its interpreter (some tens of microseconds). What loops over lists is refused: an evaluation takes no
//! more steps than the expression has tokens.

mod interpreted;
mod native;

use std::str::FromStr;

use crate::expression::token::{Token, What, tokens};
use crate::expression::{DEPTH_MAX, ExpressionError, suggestion};
use crate::machine::Machine;
use crate::text::Expression;

/// Which nodes will do; read once, asked for many machines.
#[derive(Debug)]
pub struct Constraint {
    /// All must hold.
    clauses: Vec<Clause>,
}

/// One of the parts that `&&` joins at the top.
#[derive(Debug)]
struct Clause {
    /// Where it begins, from 1.
    column: usize,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Native(native::Test),
    Interpreted(interpreted::Program),
}

/// What a machine is asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Attribute {
    Cores,
    Gpus,
    Speed,
    Memory,
    Disk,
    Organisation,
    Architecture,
    System,
    Label(Box<str>),
    Resource(Box<str>),
}

/// The names of attributes, as users write them.
const NAMES: [&str; 12] = [
    "cores",
    "gpus",
    "speed",
    "memory",
    "disk",
    "org",
    "organisation",
    "arch",
    "architecture",
    "system",
    "labels",
    "resources",
];
/// What CEL calls by these names goes over a list, or could take long.
const LOOPS: [&str; 7] = ["all", "exists", "exists_one", "map", "filter", "reduce", "matches"];
/// Other words of CEL.
const WORDS: [&str; 4] = ["true", "false", "null", "in"];

impl Constraint {
    /// Whether a machine will do.
    pub fn admits(&self, machine: &Machine) -> bool {
        self.refusal(machine).is_none()
    }

    /// The number of the first clause that a machine does not meet, from 0; none if it will do.
    pub fn refusal(&self, machine: &Machine) -> Option<usize> {
        self.clauses.iter().position(|clause| match &clause.test {
            Test::Native(test) => !test.holds(machine),
            Test::Interpreted(program) => !program.holds(machine),
        })
    }

    /// Where a clause begins, from 1.
    pub fn column(&self, clause: usize) -> Option<usize> {
        self.clauses.get(clause).map(|clause| clause.column)
    }

    /// How many clauses there are.
    pub fn clauses(&self) -> usize {
        self.clauses.len()
    }

    /// Whether all of it is code of our own.
    pub fn is_native(&self) -> bool {
        self.clauses.iter().all(|clause| matches!(clause.test, Test::Native(_)))
    }
}

/// The number of the first clause of an expression that a machine does not meet; none if it will do or nobody asks.
///
/// An expression that makes no sense admits nobody: it was refused where it came in.
pub fn refusal(expression: Option<&Expression>, machine: &Machine) -> Option<usize> {
    match expression?.as_str().parse::<Constraint>() {
        Ok(constraint) => constraint.refusal(machine),
        Err(_) => Some(0),
    }
}

impl FromStr for Constraint {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Constraint, ExpressionError> {
        let tokens = tokens(text)?;
        check_depth(&tokens)?;
        check_names(&tokens)?;
        let mut clauses = Vec::new();
        for part in split(&tokens) {
            let column = part[0].column;
            let test = match native::read(part)? {
                Some(test) => Test::Native(test),
                None => Test::Interpreted(interpreted::read(text, part)?),
            };
            clauses.push(Clause { column, test });
        }
        Ok(Constraint { clauses })
    }
}

/// The parts between the `&&` at the top, each with the token behind it; all in one if there is a `||` or `?` beside.
fn split<'a, 't>(tokens: &'a [Token<'t>]) -> Vec<&'a [Token<'t>]> {
    let (mut depth, mut cuts, mut whole) = (0_usize, Vec::new(), false);
    for (place, token) in tokens.iter().enumerate() {
        match token.what {
            What::Sign("(" | "[" | "{") => depth += 1,
            What::Sign(")" | "]" | "}") => depth = depth.saturating_sub(1),
            What::Sign("&&") if depth == 0 => cuts.push(place),
            What::Sign("||" | "?") if depth == 0 => whole = true,
            _ => {}
        }
    }
    if whole {
        cuts.clear();
    }
    cuts.push(tokens.len() - 1);
    let mut from = 0;
    let part = |until: usize| {
        let part = &tokens[from..=until];
        from = until + 1;
        part
    };
    cuts.into_iter().map(part).collect()
}

/// Brackets and signs in a row: what a reader's own stack has to hold.
fn check_depth(tokens: &[Token<'_>]) -> Result<(), ExpressionError> {
    let (mut depth, mut run) = (0_usize, 0_usize);
    for token in tokens {
        match token.what {
            What::Sign("(" | "[" | "{" | "?") => depth += 1,
            What::Sign(")" | "]" | "}") => depth = depth.saturating_sub(1),
            _ => {}
        }
        run = if matches!(token.what, What::Sign("!" | "-" | ".")) { run + 1 } else { 0 };
        if depth + run > DEPTH_MAX {
            return Err(ExpressionError::new(token.column, format!("nested deeper than {DEPTH_MAX}")));
        }
    }
    Ok(())
}

/// Every name is one that is known, and nothing loops.
fn check_names(tokens: &[Token<'_>]) -> Result<(), ExpressionError> {
    for (place, token) in tokens.iter().enumerate() {
        let What::Name(name) = token.what else { continue };
        let before =
            |sign: &str| place > 0 && matches!(tokens[place - 1].what, What::Sign(found) if found == sign);
        let called = matches!(tokens.get(place + 1).map(|next| &next.what), Some(What::Sign("(")));
        if called && LOOPS.contains(&name) {
            return Err(ExpressionError::new(
                token.column,
                format!("`{name}` may take long, and is not allowed: compare attributes, or use `in`"),
            ));
        }
        let of_node = before(".") && matches!(tokens[place.saturating_sub(2)].what, What::Name("node"));
        if called || WORDS.contains(&name) || (before(".") && !of_node) || (name == "node" && !before(".")) {
            continue;
        }
        if !NAMES.contains(&name) {
            let what = format!(
                "unknown attribute `{}`: {}",
                crate::units::clipped(name),
                suggestion(name, NAMES.into_iter())
            );
            return Err(ExpressionError::new(token.column, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
