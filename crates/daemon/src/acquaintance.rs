//! Whom the core is told of: those that were known before, and whoever is connected from then on.
//!
//! Gossip alone takes a few cycles to make nodes known to each other. A small grid that has just been started would
//! have too few nodes for a wide job meanwhile.

use shoal_protocols::node::{Command, Node};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::inbox::{Mailbox, Refused};
use crate::network::quic::{self, Event};

/// Nodes of a former life that are met again, at most.
const KNOWN_MAX: usize = 20;

/// Speaks to whom it knew, and enters the overlay through one of them.
pub fn meet_again(mailbox: &Mailbox<Node>, network: &quic::Handle) {
    let mut known = network.known(KNOWN_MAX);
    known.retain(|&node| node != network.me());
    let Some(&first) = known.first() else { return };
    for command in [Command::Meet(known.into()), Command::Join(first)] {
        if let Err(refused) = mailbox.command(command) {
            tracing::warn!("cannot meet the others: {refused}");
        }
    }
}

/// Tells of whoever is connected, until the node stops. Who finds no room in the view is not taken into it.
pub async fn meet_others(mailbox: Mailbox<Node>, mut events: Receiver<Event>) {
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
            // Gossip tells of those that were missed here.
            | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        // With a full mailbox there is better to do, and gossip tells of it too.
        if mailbox.command(Command::Meet([node].into())) == Err(Refused::Stopped) {
            return;
        }
    }
}
