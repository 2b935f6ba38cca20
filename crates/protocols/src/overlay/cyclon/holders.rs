//! How many hold me? Links are directed, so a node does not know in whose caches it is.
//!
//! Whoever needs the number has it counted at nearly no cost: an entry that changes hands is taken by one side and
//! given up by the other, which changes nothing, so only what turns out otherwise is told to the node it is about
//! ([`Message::Held`]): a few entries in a thousand in a large grid. The number is exact, but for what is on its way,
//! as long as no message is lost or doubled and nobody restarts; a simulation can have that, a real grid cannot.

use shoal_model::NodeId;

use super::{Cyclon, Message, Payload};
use crate::protocol::Ctx;

/// How many hold a node, if anybody wants to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holders(Option<i32>);

impl Holders {
    /// Counts from now on.
    pub fn begin(&mut self) {
        self.0.get_or_insert(0);
    }

    /// Whether they are counted.
    pub fn are_counted(self) -> bool {
        self.0.is_some()
    }

    /// How many there are, if they are counted.
    pub fn number(self) -> Option<u32> {
        self.0.map(|holders| u32::try_from(holders).unwrap_or(0))
    }

    /// So many more, or fewer, hold this node.
    pub fn count(&mut self, by: i32) {
        if let Some(holders) = &mut self.0 {
            *holders = holders.saturating_add(by);
        }
    }

    /// A trade turned out otherwise than the node it is about must think.
    pub fn held<X: Payload>(&mut self, node: NodeId, by: i8, ctx: &mut Ctx<'_, Cyclon<X>>) {
        if !self.are_counted() {
            return;
        }
        if node == ctx.me {
            self.count(i32::from(by));
        } else {
            ctx.send(node, Message::Held(by));
        }
    }
}
