//! Whom the core is told of: those that were known before, and whoever is connected from then on.
//!
//! Gossip alone takes a few cycles to make nodes known to each other. A small grid that has just been started would
//! have too few nodes for a wide job meanwhile.

use shoal_model::NodeId;
use shoal_protocols::node::{Command, Node};
use shoal_protocols::overlay;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::inbox::{Mailbox, Refused};
use crate::network::quic::{self, Event};

/// Nodes of a former life that are met again, at most.
const KNOWN_MAX: usize = 20;
/// Nodes through which ants' links are sought, where it is not known who is still there.
const THROUGH_MAX: usize = 5;

/// How the overlay gets to know somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquaintance {
    /// A view takes in whoever is met.
    Views,
    /// A link has two ends: who has too few asks whoever is met for one.
    Links,
    /// A place is taken once, through somebody who has one.
    Places,
}

impl Acquaintance {
    /// How this overlay does.
    pub fn through(overlay: overlay::Config) -> Acquaintance {
        match overlay {
            overlay::Config::Cyclon(_) => Acquaintance::Views,
            overlay::Config::BlatantS(_) => Acquaintance::Links,
            overlay::Config::Can(_) => Acquaintance::Places,
        }
    }

    /// Speaks to whom it knew, and enters the overlay through them: through others at each start, by a number that is drawn,
    /// since some may be gone for good.
    pub fn meet_again(self, mailbox: &Mailbox<Node>, network: &quic::Handle, drawn: u64) {
        let mut known = network.known(KNOWN_MAX);
        known.retain(|&node| node != network.me());
        let first = drawn.checked_rem(known.len() as u64).unwrap_or(0);
        known.rotate_left(first as usize);
        for command in self.commands(known) {
            if let Err(refused) = mailbox.command(command) {
                tracing::warn!("cannot meet the others: {refused}");
            }
        }
    }

    fn commands(self, known: Vec<NodeId>) -> Vec<Command> {
        let through = match self {
            Acquaintance::Views | Acquaintance::Places => 1,
            Acquaintance::Links => THROUGH_MAX,
        };
        let joins: Vec<Command> = known.iter().take(through).map(|&node| Command::Join(node)).collect();
        let meets = !known.is_empty() && self == Acquaintance::Views;
        meets.then(|| Command::Meet(known.into())).into_iter().chain(joins).collect()
    }

    /// Tells of whoever is connected, until the node stops. Who finds no room in the view is not taken into it.
    pub async fn meet_others(self, mailbox: Mailbox<Node>, mut events: Receiver<Event>) {
        let command = |node| match self {
            Acquaintance::Views => Some(Command::Meet([node].into())),
            Acquaintance::Links => Some(Command::Join(node)),
            Acquaintance::Places => None,
        };
        loop {
            let node = match events.recv().await {
                Ok(Event::Connected(node)) => node,
                Ok(
                    Event::Parted { .. }
                    | Event::Lost { .. }
                    | Event::Refused { .. }
                    | Event::RefusedBy { .. }
                    | Event::Unreachable { .. }
                    | Event::Admitted(_),
                )
                // Others tell of those that were missed here.
                | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            let Some(command) = command(node) else { return };
            // With a full mailbox there is better to do, and gossip tells of it too.
            if mailbox.command(command) == Err(Refused::Stopped) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ones_are_met_as_the_overlay_takes_them() {
        let known: Vec<NodeId> = (1..=8).map(NodeId).collect();
        let joins = |most| (1..=most).map(|node| Command::Join(NodeId(node))).collect::<Vec<_>>();
        let views = Acquaintance::Views.commands(known.clone());
        assert_eq!(views, [vec![Command::Meet(known.clone().into())], joins(1)].concat());
        assert_eq!(Acquaintance::Links.commands(known.clone()), joins(5));
        assert_eq!(Acquaintance::Places.commands(known), joins(1));
        assert!(Acquaintance::Views.commands(Vec::new()).is_empty(), "nobody is known");
    }
}
