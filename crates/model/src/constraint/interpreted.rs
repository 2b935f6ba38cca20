//! Everything else that CEL can say, by its interpreter.

use std::collections::HashMap;
use std::fmt;

use cel::{Context, Value};

use crate::expression::ExpressionError;
use crate::expression::token::{Token, What};
use crate::machine::Machine;
use crate::units::{Size, parse_span};

/// A part of a constraint, compiled by CEL.
pub(super) struct Program(cel::Program);

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

impl Program {
    /// Whether it holds; what comes to nothing, or to anything but true, does not.
    pub fn holds(&self, machine: &Machine) -> bool {
        self.value(machine) == Some(true)
    }

    fn value(&self, machine: &Machine) -> Option<bool> {
        let mut context = Context::default();
        let attributes = attributes(machine);
        for (name, value) in &attributes {
            context.add_variable_from_value(*name, value.clone());
        }
        let node: HashMap<String, Value> =
            attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        context.add_variable_from_value("node", node);
        match self.0.execute(&context) {
            Ok(Value::Bool(holds)) => Some(holds),
            Ok(_) | Err(_) => None,
        }
    }
}

fn attributes(machine: &Machine) -> Vec<(&'static str, Value)> {
    let capacity = &machine.capacity;
    let count = |thousandths: u32| Value::Float(f64::from(thousandths) / 1_000.0);
    let size = |size: Size| Value::Int(i64::try_from(size.as_bytes()).unwrap_or(i64::MAX));
    let organisation = machine.organisation.as_ref().map_or("", |name| name.as_str());
    let labels: HashMap<String, Value> = machine
        .labels
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), Value::from(value.as_str())))
        .collect();
    let resources: HashMap<String, Value> =
        capacity.named().map(|(name, much)| (name.as_str().to_owned(), count(much.get()))).collect();
    vec![
        ("cores", count(capacity.cores.get())),
        ("gpus", count(capacity.gpus.get())),
        ("speed", count(machine.speed.thousandths())),
        ("memory", size(capacity.memory)),
        ("disk", size(capacity.disk)),
        ("org", Value::from(organisation)),
        ("organisation", Value::from(organisation)),
        ("arch", Value::from(machine.architecture.as_str())),
        ("architecture", Value::from(machine.architecture.as_str())),
        ("system", Value::from(machine.system.as_str())),
        ("labels", Value::from(labels)),
        ("resources", Value::from(resources)),
    ]
}

/// Compiles the tokens up to the last, which ends them. CEL has no units: sizes become bytes, spans seconds.
pub(super) fn read(text: &str, tokens: &[Token<'_>]) -> Result<Program, ExpressionError> {
    let end = &tokens[tokens.len() - 1];
    let first = tokens[0].column;
    let mut source = String::new();
    let mut at = tokens[0].from;
    for token in &tokens[..tokens.len() - 1] {
        source.push_str(&text[at..token.from]);
        at = token.until;
        match token.what {
            What::Quantity(quantity) => source.push_str(&in_plain_numbers(quantity, token.column)?),
            What::Number(_) | What::Name(_) | What::Text(_) | What::Sign(_) | What::End => {
                source.push_str(&text[token.from..token.until]);
            }
        }
    }
    if source.trim().is_empty() {
        let what = format!("expected a comparison, found {}", end.what.described());
        return Err(ExpressionError::new(end.column, what));
    }
    let program = cel::Program::compile(&source).map_err(|errors| {
        let Some(error) = errors.errors.first() else {
            return ExpressionError::new(first, "no expression of CEL");
        };
        // Columns of the source differ from the user's where a unit was replaced before.
        let offset = usize::try_from(error.pos.1).unwrap_or(0);
        let column = (first + offset).min(end.column);
        let what = error.msg.lines().next().unwrap_or("no expression of CEL").trim();
        ExpressionError::new(column, format!("CEL does not understand this ({what})"))
    })?;
    let program = Program(program);
    // Tried on a plain machine: what comes to a number or a text there always will.
    let machine = Machine::with_capacity(crate::resources::Resources::cores(1));
    let mut context = Context::default();
    for (name, value) in attributes(&machine) {
        context.add_variable_from_value(name, value);
    }
    match program.0.execute(&context) {
        Ok(Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::String(_)) => {
            Err(ExpressionError::new(first, "this is a value, not a condition: compare it with something"))
        }
        Ok(_) | Err(_) => Ok(program),
    }
}

fn in_plain_numbers(quantity: &str, column: usize) -> Result<String, ExpressionError> {
    if let Ok(size) = quantity.parse::<Size>() {
        return Ok(size.as_bytes().to_string());
    }
    match parse_span(quantity) {
        Ok(span) => Ok(span.as_secs().to_string()),
        Err(error) => Err(ExpressionError::new(
            column + error.column() - 1,
            format!("{} in `{quantity}`: expected a size, as in 8GiB", error.problem()),
        )),
    }
}
