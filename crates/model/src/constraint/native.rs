//! The common shapes of a constraint, as code of our own.

use super::Attribute;
use crate::expression::ExpressionError;
use crate::expression::token::{Token, What};
use crate::machine::Machine;
use crate::units::{Size, Thousandths};

/// What must hold.
#[derive(Debug)]
pub(super) enum Test {
    Compare(Attribute, Order, Value),
    Among(Attribute, Vec<Value>),
    /// Whether there is such a label.
    Labelled(Box<str>),
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// A number in thousandths, or in bytes; or a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    Text(Box<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Count,
    Size,
    Text,
}

impl Attribute {
    fn kind(&self) -> Kind {
        match self {
            Attribute::Cores | Attribute::Gpus | Attribute::Speed | Attribute::Resource(_) => Kind::Count,
            Attribute::Memory | Attribute::Disk => Kind::Size,
            Attribute::Organisation | Attribute::Architecture | Attribute::System | Attribute::Label(_) => {
                Kind::Text
            }
        }
    }

    fn number(&self, machine: &Machine) -> Option<u64> {
        let capacity = &machine.capacity;
        Some(match self {
            Attribute::Cores => capacity.cores.get().into(),
            Attribute::Gpus => capacity.gpus.get().into(),
            Attribute::Speed => machine.speed.thousandths().into(),
            Attribute::Resource(name) => capacity.get(name).get().into(),
            Attribute::Memory => capacity.memory.as_bytes(),
            Attribute::Disk => capacity.disk.as_bytes(),
            Attribute::Organisation | Attribute::Architecture | Attribute::System | Attribute::Label(_) => {
                return None;
            }
        })
    }

    fn text<'a>(&self, machine: &'a Machine) -> Option<&'a str> {
        match self {
            Attribute::Organisation => machine.organisation.as_ref().map(|name| name.as_str()),
            Attribute::Architecture => Some(machine.architecture.as_str()),
            Attribute::System => Some(machine.system.as_str()),
            Attribute::Label(name) => machine.labels.get(&**name).map(|value| value.as_str()),
            Attribute::Cores
            | Attribute::Gpus
            | Attribute::Speed
            | Attribute::Memory
            | Attribute::Disk
            | Attribute::Resource(_) => None,
        }
    }
}

impl Test {
    pub fn holds(&self, machine: &Machine) -> bool {
        match self {
            Test::Compare(attribute, order, value) => match value {
                Value::Number(value) => {
                    attribute.number(machine).is_some_and(|found| order.holds(found.cmp(value)))
                }
                // What a machine does not say is the empty text.
                Value::Text(value) => order.holds(attribute.text(machine).unwrap_or_default().cmp(value)),
            },
            Test::Among(attribute, values) => values.iter().any(|value| match value {
                Value::Number(value) => attribute.number(machine) == Some(*value),
                Value::Text(value) => attribute.text(machine).unwrap_or_default() == &**value,
            }),
            Test::Labelled(name) => machine.labels.contains_key(&**name),
            Test::Not(test) => !test.holds(machine),
            Test::All(tests) => tests.iter().all(|test| test.holds(machine)),
            Test::Any(tests) => tests.iter().any(|test| test.holds(machine)),
        }
    }
}

impl Order {
    fn holds(self, found: std::cmp::Ordering) -> bool {
        match self {
            Order::Is => found.is_eq(),
            Order::IsNot => found.is_ne(),
            Order::Below => found.is_lt(),
            Order::AtMost => found.is_le(),
            Order::Above => found.is_gt(),
            Order::AtLeast => found.is_ge(),
        }
    }

    /// With its sides changed over.
    fn mirrored(self) -> Order {
        match self {
            Order::Is | Order::IsNot => self,
            Order::Below => Order::Above,
            Order::AtMost => Order::AtLeast,
            Order::Above => Order::Below,
            Order::AtLeast => Order::AtMost,
        }
    }
}

/// Reads tokens up to the last, which ends them; none if they are of a shape that only CEL knows.
pub(super) fn read(tokens: &[Token<'_>]) -> Result<Option<Test>, ExpressionError> {
    let mut reader = Reader { tokens, at: 0 };
    let Some(test) = reader.any()? else { return Ok(None) };
    Ok((reader.at == tokens.len() - 1).then_some(test))
}

struct Reader<'a, 't> {
    tokens: &'a [Token<'t>],
    at: usize,
}

type Read<T> = Result<Option<T>, ExpressionError>;

/// What has been read, or that only CEL knows the shape.
macro_rules! known {
    ($read:expr) => {
        match $read? {
            Some(read) => read,
            None => return Ok(None),
        }
    };
}

impl<'t> Reader<'_, 't> {
    fn what(&self) -> &What<'t> {
        // The last token ends the clause, and is not part of it.
        if self.at + 1 >= self.tokens.len() { &What::End } else { &self.tokens[self.at].what }
    }

    fn column(&self) -> usize {
        self.tokens[self.at.min(self.tokens.len() - 1)].column
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = matches!(self.what(), What::Sign(other) if *other == sign);
        self.at += usize::from(found);
        found
    }

    fn any(&mut self) -> Read<Test> {
        let mut tests = vec![known!(self.all())];
        while self.eat("||") {
            tests.push(known!(self.all()));
        }
        Ok(if tests.len() == 1 { tests.pop() } else { Some(Test::Any(tests)) })
    }

    fn all(&mut self) -> Read<Test> {
        let mut tests = vec![known!(self.one())];
        while self.eat("&&") {
            tests.push(known!(self.one()));
        }
        Ok(if tests.len() == 1 { tests.pop() } else { Some(Test::All(tests)) })
    }

    fn one(&mut self) -> Read<Test> {
        if self.eat("!") {
            return Ok(Some(Test::Not(Box::new(known!(self.one())))));
        }
        if self.eat("(") {
            let inner = known!(self.any());
            return Ok(self.eat(")").then_some(inner));
        }
        let column = self.column();
        if let Some(attribute) = self.attribute() {
            if matches!(self.what(), What::Name("in")) {
                self.at += 1;
                return self.among(attribute);
            }
            let Some(order) = self.order() else { return Ok(None) };
            let value = known!(self.value(&attribute));
            return Ok(Some(Test::Compare(attribute, order, value)));
        }
        if let (What::Text(label), true) = (self.what().clone(), self.is_in_labels()) {
            self.at += 3;
            return Ok(Some(Test::Labelled(label.into())));
        }
        // A value first, then the attribute.
        let from = self.at;
        self.at += 1;
        let Some(order) = self.order() else { return Ok(None) };
        let Some(attribute) = self.attribute() else { return Ok(None) };
        let until = std::mem::replace(&mut self.at, from);
        let value = self.value(&attribute);
        self.at = until;
        let _ = column;
        Ok(Some(Test::Compare(attribute, order.mirrored(), known!(value))))
    }

    fn is_in_labels(&self) -> bool {
        let at =
            |place: usize| self.tokens[..self.tokens.len() - 1].get(self.at + place).map(|token| &token.what);
        matches!((at(1), at(2)), (Some(What::Name("in")), Some(What::Name("labels"))))
    }

    fn among(&mut self, attribute: Attribute) -> Read<Test> {
        if !self.eat("[") {
            return Ok(None);
        }
        let mut values = Vec::new();
        while !self.eat("]") {
            values.push(known!(self.value(&attribute)));
            if !self.eat(",") && !matches!(self.what(), What::Sign("]")) {
                return Ok(None);
            }
        }
        Ok(Some(Test::Among(attribute, values)))
    }

    fn order(&mut self) -> Option<Order> {
        let order = match self.what() {
            What::Sign("==") => Order::Is,
            What::Sign("!=") => Order::IsNot,
            What::Sign("<") => Order::Below,
            What::Sign("<=") => Order::AtMost,
            What::Sign(">") => Order::Above,
            What::Sign(">=") => Order::AtLeast,
            _ => return None,
        };
        self.at += 1;
        Some(order)
    }

    /// An attribute by its name; the reader stays where it was if there is none.
    fn attribute(&mut self) -> Option<Attribute> {
        let from = self.at;
        let found = self.attribute_here();
        if found.is_none() {
            self.at = from;
        }
        found
    }

    fn attribute_here(&mut self) -> Option<Attribute> {
        if matches!(self.what(), What::Name("node")) {
            self.at += 1;
            if !self.eat(".") {
                return None;
            }
        }
        let What::Name(name) = self.what().clone() else { return None };
        self.at += 1;
        let attribute = match name {
            "cores" => Attribute::Cores,
            "gpus" => Attribute::Gpus,
            "speed" => Attribute::Speed,
            "memory" => Attribute::Memory,
            "disk" => Attribute::Disk,
            "org" | "organisation" => Attribute::Organisation,
            "arch" | "architecture" => Attribute::Architecture,
            "system" => Attribute::System,
            "labels" => Attribute::Label(self.member()?),
            "resources" => Attribute::Resource(self.member()?),
            _ => return None,
        };
        // What goes on, `memory / 2` or `org.size()`, is not for us.
        match self.what() {
            What::Sign("+" | "-" | "*" | "/" | "%" | "." | "[" | "(") => None,
            _ => Some(attribute),
        }
    }

    /// `.NAME` or `["NAME"]`.
    fn member(&mut self) -> Option<Box<str>> {
        if self.eat(".") {
            let What::Name(name) = self.what().clone() else { return None };
            self.at += 1;
            return Some(name.into());
        }
        if self.eat("[") {
            let What::Text(name) = self.what().clone() else { return None };
            self.at += 1;
            return self.eat("]").then(|| name.into());
        }
        None
    }

    /// A value of the attribute's kind; a value of another kind is an error, anything else is not for us.
    fn value(&mut self, attribute: &Attribute) -> Read<Value> {
        let column = self.column();
        let wrong = |what: String| Err(ExpressionError::new(column, what));
        let value = match (attribute.kind(), self.what().clone()) {
            (Kind::Text, What::Text(text)) => Value::Text(text.into()),
            (Kind::Text, What::Number(text) | What::Quantity(text)) => {
                return wrong(format!("expected a text in quotes, found `{text}`"));
            }
            (Kind::Count, What::Number(text)) => match text.parse::<Thousandths>() {
                Ok(count) => Value::Number(count.get().into()),
                Err(error) => return wrong(error.to_string()),
            },
            (Kind::Count, What::Quantity(text)) => {
                return wrong(format!("expected a plain number, found `{text}`"));
            }
            (Kind::Size, What::Quantity(text)) => match text.parse::<Size>() {
                Ok(size) => Value::Number(size.as_bytes()),
                Err(error) => return wrong(error.to_string()),
            },
            (Kind::Size, What::Number("0")) => Value::Number(0),
            (Kind::Size, What::Number(text)) => {
                return wrong(format!("a size without a unit: expected {text}GiB, or {text}MiB"));
            }
            (Kind::Size | Kind::Count, What::Text(text)) => {
                return wrong(format!("expected a number, found the text \"{text}\""));
            }
            (Kind::Text | Kind::Count | Kind::Size, What::Name(_) | What::Sign(_) | What::End) => {
                return Ok(None);
            }
        };
        self.at += 1;
        // What goes on is not for us.
        match self.what() {
            What::Sign("+" | "-" | "*" | "/" | "%" | "." | "[" | "(" | "?") => Ok(None),
            _ => Ok(Some(value)),
        }
    }
}
