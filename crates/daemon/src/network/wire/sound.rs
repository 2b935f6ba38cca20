//! Whether what a message says can be meant: more than any node would say is nobody's message.

use shoal_model::job::MAX_NODES_PER_JOB;
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Message, handover};
use shoal_protocols::overlay::blatant_s::{self, CARRIES_MAX, Known, LINKS_MAX};
use shoal_protocols::overlay::can::{self, CLAIMS_MAX, NEIGHBOURS_MAX, Peer, Point, Vitals};
use shoal_protocols::overlay::cyclon::{self, CACHE_MAX};
use shoal_protocols::overlay::helpers;
use shoal_protocols::overlay::vicinity::VIEW_MAX;
use shoal_protocols::scheduling::tri_pronged::{self, SEEN_MAX};
use shoal_protocols::scheduling::{aria, asap, proactive};

/// Nodes that a search is told to avoid, at most.
const AVOID_MAX: usize = 4096;

/// What cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// More nodes than a cache has.
    #[error("more neighbours than a cache holds")]
    Neighbours,
    /// More zones than a node may claim.
    #[error("more zones than a node may claim")]
    Zones,
    /// A place that no space has.
    #[error("a place that lies outside the space")]
    Place,
    /// No nodes, or more than a job may have.
    #[error("a placement on no nodes, or on more than a job may have")]
    Placement,
    /// More than a machine can have.
    #[error("more than a machine can have")]
    Amount,
    /// More labels than a criterion may name.
    #[error("more labels than a criterion may name")]
    Labels,
    /// More jobs to wait for than its user named.
    #[error("more jobs to wait for than its user named")]
    After,
    /// More nodes to avoid than anybody keeps in mind.
    #[error("more nodes to avoid than anybody keeps in mind")]
    Avoid,
}

/// Refuses what no sound node says; what is right at another time is for the core to judge.
pub fn check(message: &Message) -> Result<(), Unsound> {
    match message {
        Message::Overlay(cyclon::Message::Shuffle(entries) | cyclon::Message::ShuffleReply(entries)) => {
            at_most(entries.len(), CACHE_MAX, Unsound::Neighbours)
        }
        Message::Commit(two_phase::Message::Prepare(prepare)) => {
            prepare.amount.check().map_err(|_| Unsound::Amount)
        }
        Message::Commit(two_phase::Message::Commit { brief, .. }) => placement(brief.nodes.len()),
        Message::Asap(asap::Message::Search(search)) => {
            at_most(search.avoid.len(), AVOID_MAX, Unsound::Avoid)
        }
        Message::Asap(asap::Message::SearchReply { answer: asap::Answer::Found { nodes, .. }, .. }) => {
            placement(nodes.len())
        }
        Message::Asap(asap::Message::CacheReply(_, entries)) => {
            at_most(entries.len(), CACHE_MAX, Unsound::Neighbours)
        }
        Message::BlatantS(blatant_s::Message::Discovery { seen, .. }) => {
            at_most(seen.len(), usize::from(CARRIES_MAX), Unsound::Neighbours)?;
            seen.iter().try_for_each(known)
        }
        Message::BlatantS(blatant_s::Message::Update { known: news, .. }) => known(news),
        Message::Aria(aria::Message::Assign { brief, .. }) => placement(brief.nodes.len()),
        Message::Can(message) | Message::Secondary(can::SecondaryMessage::Zones(message)) => zones(message),
        Message::TriPronged(tri_pronged::Message::Find(search, trail)) => {
            place(&search.point)?;
            at_most(search.avoid.len(), AVOID_MAX, Unsound::Avoid)?;
            at_most(trail.seen.len().max(trail.back.len()), SEEN_MAX, Unsound::Avoid)
        }
        Message::TriPronged(tri_pronged::Message::FindResidue(search, aside)) => {
            place(&search.point)?;
            at_most(search.avoid.len(), AVOID_MAX, Unsound::Avoid)?;
            at_most(aside.seen.len().max(aside.back.len()), SEEN_MAX, Unsound::Avoid)
        }
        Message::HandOver(handover::Message::Hand { job, .. }) => {
            let most = job.envelope.job().after.as_ref().map_or(0, |after| after.0.len());
            at_most(job.after.len(), most, Unsound::After)
        }
        Message::TriPronged(tri_pronged::Message::Pull { vitals: told, .. }) => vitals(told),
        Message::Proactive(proactive::Message::Helpers(message)) => helpers(message),
        Message::Proactive(proactive::Message::Ask(ask)) => {
            at_most(ask.labels.len(), proactive::LABELS_MAX, Unsound::Labels)
        }
        Message::Proactive(proactive::Message::Tell(tell)) => {
            if let proactive::Answer::Yes(offer) = &tell.answer {
                at_most(offer.labels.len(), proactive::LABELS_MAX, Unsound::Labels)?;
            }
            let known = match &tell.known {
                proactive::Known::Random(nodes) => nodes.len(),
                proactive::Known::Near(entries) => entries.len(),
            };
            at_most(known, proactive::KNOWN_MAX, Unsound::Neighbours)
        }
        Message::Overlay(
            cyclon::Message::Join
            | cyclon::Message::Walk { .. }
            | cyclon::Message::Welcome(_)
            | cyclon::Message::Held(_),
        )
        | Message::Commit(
            two_phase::Message::Vote { .. }
            | two_phase::Message::Committed { .. }
            | two_phase::Message::Refuse { .. }
            | two_phase::Message::Dropped { .. }
            | two_phase::Message::Confirm { .. }
            | two_phase::Message::Confirmed { .. }
            | two_phase::Message::Abort { .. }
            | two_phase::Message::Release { .. }
            | two_phase::Message::Released { .. }
            | two_phase::Message::Ask { .. },
        )
        | Message::Asap(
            asap::Message::SearchReply {
                answer: asap::Answer::TooFew { .. } | asap::Answer::NeverFree, ..
            }
            | asap::Message::CacheRequest(..)
            | asap::Message::ScheduleRequest(..)
            | asap::Message::ScheduleReply(..)
            | asap::Message::Update(_)
            | asap::Message::Hold
            | asap::Message::Unhold,
        )
        | Message::BlatantS(
            blatant_s::Message::Construct { .. }
            | blatant_s::Message::Optimise { .. }
            | blatant_s::Message::Linked
            | blatant_s::Message::Unlink
            | blatant_s::Message::Unlinked
            | blatant_s::Message::Ping
            | blatant_s::Message::Pong,
        )
        | Message::Aria(
            aria::Message::Request(..)
            | aria::Message::Inform(..)
            | aria::Message::Accept { .. }
            | aria::Message::Assigned { .. }
            | aria::Message::Refused { .. }
            | aria::Message::Confirm { .. }
            | aria::Message::Notify { .. }
            | aria::Message::Stay { .. }
            | aria::Message::Cancel { .. }
            | aria::Message::Cancelled { .. },
        )
        | Message::Secondary(
            can::SecondaryMessage::Knock { .. }
            | can::SecondaryMessage::Enter(_)
            | can::SecondaryMessage::Hold { .. },
        )
        | Message::TriPronged(
            tri_pronged::Message::Found { .. }
            | tri_pronged::Message::Offer(_)
            | tri_pronged::Message::Answer { .. }
            | tri_pronged::Message::Nothing,
        )
        // Needs and calendars are checked as they are read.
        | Message::Heartbeat(_)
        | Message::Sample(_)
        | Message::HandOver(
            handover::Message::Ready(_)
            | handover::Message::Declined(_)
            | handover::Message::Taken(_)
            | handover::Message::Keep(_),
        )
        | Message::Job(_) => Ok(()),
    }
}

fn known(known: &Known) -> Result<(), Unsound> {
    at_most(known.neighbours.len(), LINKS_MAX, Unsound::Neighbours)
}

fn placement(nodes: usize) -> Result<(), Unsound> {
    if nodes == 0 {
        Err(Unsound::Placement)
    } else {
        at_most(nodes, MAX_NODES_PER_JOB as usize, Unsound::Placement)
    }
}

fn zones(message: &can::Message) -> Result<(), Unsound> {
    match message {
        can::Message::Welcome { around, .. } => peers(around),
        can::Message::Join { point, .. } => place(point),
        can::Message::Update(update, _) => {
            place(&update.point)?;
            at_most(update.claims.len(), CLAIMS_MAX, Unsound::Zones)?;
            update.vitals.as_ref().map_or(Ok(()), vitals)?;
            peers(&update.peers)
        }
        can::Message::Tie(balloon, _) => {
            place(&balloon.point)?;
            vitals(&balloon.vitals)
        }
        can::Message::Landed { claims, next, .. } => {
            at_most(claims.len(), CLAIMS_MAX, Unsound::Zones)?;
            peers(next.as_slice())
        }
        can::Message::Taken
        | can::Message::Grant(_)
        | can::Message::Tied(_)
        | can::Message::Untie(_)
        | can::Message::Leap { .. } => Ok(()),
    }
}

/// How far it is to a place is reckoned before anybody asks whether there is such a place.
fn place(point: &Point) -> Result<(), Unsound> {
    if can::is_cell(point) { Ok(()) } else { Err(Unsound::Place) }
}

fn peers(peers: &[Peer]) -> Result<(), Unsound> {
    at_most(peers.len(), NEIGHBOURS_MAX, Unsound::Neighbours)?;
    peers.iter().try_for_each(|peer| at_most(peer.claims.len(), CLAIMS_MAX, Unsound::Zones))
}

fn vitals(vitals: &Vitals) -> Result<(), Unsound> {
    vitals.residual.check().map_err(|_| Unsound::Amount)
}

fn at_most(count: usize, most: usize, unsound: Unsound) -> Result<(), Unsound> {
    if count > most { Err(unsound) } else { Ok(()) }
}

fn helpers(message: &helpers::Message) -> Result<(), Unsound> {
    match message {
        helpers::Message::Random(
            cyclon::Message::Shuffle(entries) | cyclon::Message::ShuffleReply(entries),
        ) => at_most(entries.len(), CACHE_MAX, Unsound::Neighbours),
        helpers::Message::Ask(_, entries) | helpers::Message::Tell(_, entries) => {
            at_most(entries.len(), usize::from(VIEW_MAX), Unsound::Neighbours)
        }
        helpers::Message::Random(
            cyclon::Message::Join
            | cyclon::Message::Walk { .. }
            | cyclon::Message::Welcome(_)
            | cyclon::Message::Held(_),
        )
        | helpers::Message::Ping
        | helpers::Message::Pong(..) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::NodeId;
    use shoal_protocols::overlay::can::{DIMENSIONS_MAX, SIDE};

    use super::*;

    #[test]
    fn place_outside_the_space_is_nobodys() {
        let join = |at: u32| {
            let mut point = [0; DIMENSIONS_MAX];
            point[1] = at;
            Message::Can(can::Message::Join { newcomer: NodeId(1), point, hops: 0 })
        };
        assert_eq!(check(&join(SIDE - 1)), Ok(()));
        assert_eq!(check(&join(SIDE)), Err(Unsound::Place));
    }
}
