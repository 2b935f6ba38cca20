//! The explorer finds what is there to be found, and nothing else.

mod counts;
mod crashes;
mod cyclon;
mod messages;
mod time;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use shoal_model::NodeId;
use shoal_protocols::{Ctx, Input, Layer, Message, Protocol, Record};

use super::*;
use crate::world::Saw;

const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);
const N3: NodeId = NodeId(3);

/// What a toy does upon an input.
type Play = fn(&mut Toy, Input<Toy>, &mut Ctx<'_, Toy>);

/// A node that remembers numbers under names, and does what its play says.
#[derive(Clone)]
struct Toy {
    me: NodeId,
    play: Play,
    facts: BTreeMap<&'static str, u64>,
}

impl Toy {
    fn get(&self, name: &'static str) -> u64 {
        self.facts.get(name).copied().unwrap_or(0)
    }

    fn set(&mut self, name: &'static str, value: u64) {
        self.facts.insert(name, value);
    }
}

/// The play is the same in all states, and its address is not the same in all runs.
impl Hash for Toy {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.facts.hash(hasher);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Word(&'static str);

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Message for Word {
    const KINDS: &'static [&'static str] = &["word"];

    fn kind(&self) -> usize {
        0
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

/// A number under a name, to be remembered after a crash.
#[derive(Clone, Debug, Hash)]
struct Fact(&'static str, u64);

impl Record for Fact {
    type Key = &'static str;

    fn key(&self) -> &'static str {
        self.0
    }
}

impl Layer for Toy {
    type Command = Word;
    type Message = Word;
    type Timer = Word;
    type Record = Fact;
    type Action = Word;
    type Outcome = Word;
    type Event = Word;
}

impl Protocol for Toy {
    type Config = Play;

    fn restore(play: &Play, me: NodeId, records: impl Iterator<Item = Fact>) -> Toy {
        Toy { me, play: *play, facts: records.map(|Fact(name, value)| (name, value)).collect() }
    }

    fn handle(&mut self, input: Input<Toy>, ctx: &mut Ctx<'_, Toy>) {
        (self.play)(self, input, ctx);
    }
}

fn toys(nodes: u32, play: Play) -> Explorer<Toy> {
    Explorer::new(nodes, |_| play, ())
}

/// Lets one node enter, and no other after it, as long as the grid lives.
#[derive(Clone, Default, Hash)]
struct OneEnters(Option<NodeId>);

impl Monitor<Toy> for OneEnters {
    fn see(&mut self, sight: &Sight<Toy>) -> Result<(), String> {
        match (&sight.saw, self.0) {
            (Saw::Event(Word("enter")), Some(first)) if first != sight.node => {
                Err(format!("{first} is in, and {} enters", sight.node))
            }
            (Saw::Event(Word("enter")), _) => {
                self.0 = Some(sight.node);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn rule(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

fn crashes(crashes: u8) -> Faults {
    Faults { crashes, ..Faults::default() }
}
