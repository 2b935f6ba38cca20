//! Whom the core is told of: those that were known before, whoever is connected from then on, how far they are, and who
//! is gone.
//!
//! Gossip alone takes a few cycles to make nodes known to each other. A small grid that has just been started would
//! have too few nodes for a wide job meanwhile.

use shoal_model::NodeId;
use shoal_protocols::node::{Command, Node};
use shoal_protocols::overlay;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::inbox::{Mailbox, Refused};
use crate::network::quic::{self, Event, Reason};

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

    /// Tells of whoever is connected, how far they are and who is gone, until the node stops. Who finds no room in the view is not taken
    /// into it.
    pub async fn meet_others(self, mailbox: Mailbox<Node>, mut events: Receiver<Event>) {
        loop {
            let told = match events.recv().await {
                Ok(event) => self.told_of(event),
                // Others tell of those that were missed here.
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            };
            // With a full mailbox there is better to do, and gossip tells of it too.
            if told.is_some_and(|command| mailbox.command(command) == Err(Refused::Stopped)) {
                return;
            }
        }
    }

    /// What the core is told of something that happened on the network.
    fn told_of(self, event: Event) -> Option<Command> {
        match (event, self) {
            (Event::Connected(node), Acquaintance::Views) => Some(Command::Meet([node].into())),
            (Event::Connected(node), Acquaintance::Links) => Some(Command::Join(node)),
            (Event::Measured { node, round_trip }, _) => Some(Command::Measured(node, round_trip)),
            // A job that asks who does not answer waits for nothing, and gossip may get round to it in a quarter of an hour.
            // Links and places have heartbeats of their own.
            (
                Event::Parted { node, reason: Reason::Leaving }
                | Event::Lost { node, .. }
                | Event::Unreachable { node, .. },
                Acquaintance::Views,
            ) => Some(Command::Gone(node)),
            (Event::Connected(_), Acquaintance::Places)
            | (
                Event::Parted { .. }
                | Event::Lost { .. }
                | Event::Refused { .. }
                | Event::RefusedBy { .. }
                | Event::Unreachable { .. }
                | Event::Admitted(_),
                _,
            ) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::Span;

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

    #[test]
    fn core_is_told_who_comes_and_how_far_they_are() {
        let round_trip = Span::from_millis(3);
        let measured = Event::Measured { node: NodeId(4), round_trip };
        for through in [Acquaintance::Views, Acquaintance::Links, Acquaintance::Places] {
            let told = through.told_of(measured.clone());
            assert_eq!(told, Some(Command::Measured(NodeId(4), round_trip)));
            assert_eq!(through.told_of(Event::Admitted(NodeId(4))), None);
        }
        let came = |through: Acquaintance| through.told_of(Event::Connected(NodeId(4)));
        assert_eq!(came(Acquaintance::Views), Some(Command::Meet([NodeId(4)].into())));
        assert_eq!(came(Acquaintance::Links), Some(Command::Join(NodeId(4))));
        assert_eq!(came(Acquaintance::Places), None, "a place is taken once");
    }

    #[test]
    fn who_is_gone_is_no_neighbour_where_views_are_kept_and_who_is_only_quiet_stays_one() {
        let (node, why) = (NodeId(4), String::new());
        let gone = [
            Event::Parted { node, reason: Reason::Leaving },
            Event::Lost { node, why: why.clone() },
            Event::Unreachable { node, why },
        ];
        for event in gone {
            assert_eq!(Acquaintance::Views.told_of(event.clone()), Some(Command::Gone(node)));
            assert_eq!(Acquaintance::Links.told_of(event.clone()), None);
            assert_eq!(Acquaintance::Places.told_of(event), None);
        }
        for reason in [Reason::Idle, Reason::Spare] {
            assert_eq!(Acquaintance::Views.told_of(Event::Parted { node, reason }), None);
        }
    }
}
