//! A node: joins the layers, and is all that a driver knows.

use shoal_model::NodeId;

use crate::overlay::cyclon::{self, Cyclon};
use crate::protocol::{self, Ctx, Hosts, Input, Never, Protocol};

/// A node of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    overlay: Cyclon,
}

/// What nodes say to each other.
#[derive(Clone, Debug)]
pub enum Message {
    /// Between overlays.
    Overlay(cyclon::Message),
}

/// What a node asked to be reminded of.
#[derive(Clone, Debug)]
pub enum Timer {
    /// By the overlay.
    Overlay(cyclon::Cycle),
}

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = cyclon::Message::<()>::KINDS;

    fn kind(&self) -> usize {
        match self {
            Message::Overlay(message) => message.kind(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Overlay(message) => message.bytes(),
        }
    }
}

impl Protocol for Node {
    type Config = cyclon::Config;
    type Command = cyclon::Command;
    type Message = Message;
    type Timer = Timer;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = cyclon::Event;

    fn restore(config: &cyclon::Config, me: NodeId, records: impl Iterator<Item = Never>) -> Node {
        Node { overlay: Cyclon::restore(config, me, records) }
    }

    fn handle(&mut self, input: Input<Node>, ctx: &mut Ctx<'_, Node>) {
        let inner = match input {
            Input::Boot => Input::Boot,
            Input::Command(command) => Input::Command(command),
            Input::Message { from, message: Message::Overlay(message) } => Input::Message { from, message },
            Input::Timer(Timer::Overlay(timer)) => Input::Timer(timer),
            Input::Done(never) => match never {},
        };
        for event in ctx.layer(|ctx| self.overlay.handle(inner, ctx)) {
            ctx.report(event);
        }
    }
}

impl Node {
    /// The overlay, to look at.
    pub fn overlay(&self) -> &Cyclon {
        &self.overlay
    }
}

impl Hosts<Cyclon> for Node {
    fn message(message: cyclon::Message) -> Message {
        Message::Overlay(message)
    }

    fn timer(timer: cyclon::Cycle) -> Timer {
        Timer::Overlay(timer)
    }

    fn record(never: Never) -> Never {
        never
    }

    fn key(never: Never) -> Never {
        never
    }

    fn action(never: Never) -> Never {
        never
    }
}
