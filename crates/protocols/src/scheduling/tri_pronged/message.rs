//! What nodes say to each other to find a place for a job, and to move it to a better one.

use std::hash::{DefaultHasher, Hash, Hasher};

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{JobId, Needs, NodeId, Time};

use crate::overlay::can::{Point, VIRTUAL, Vitals};
use crate::protocol;
use crate::shared::Shared;

/// A search for a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Search {
    /// For which job.
    #[n(0)]
    pub job: JobId,
    /// Which of the searches for it.
    #[n(1)]
    pub round: u32,
    /// Who wants to know.
    #[n(2)]
    pub owner: NodeId,
    /// What the job needs.
    #[n(3)]
    pub needs: Needs,
    /// Where it lies.
    #[n(4)]
    pub point: Point,
    /// Who has denied the job.
    #[n(5)]
    #[cbor(default)]
    pub avoid: Vec<NodeId>,
}

impl Search {
    /// Tells a step of a search, by how often it was passed on before, from all others.
    pub(super) fn step(&self, hops: u16, residue: bool) -> u64 {
        let mut hasher = DefaultHasher::new();
        let point = self.point[VIRTUAL];
        (self.job, self.round, self.owner, point, hops, residue).hash(&mut hasher);
        hasher.finish()
    }
}

/// How far a search has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Trail {
    /// How often it was passed on.
    #[n(0)]
    pub hops: u16,
    /// How often it was pushed since it came to the owner of its point; none before.
    #[n(1)]
    pub pushes: Option<u8>,
    /// Once all nodes that might do are looked at: those that were.
    #[n(2)]
    pub seen: Vec<NodeId>,
    /// The way back.
    #[n(3)]
    pub back: Vec<NodeId>,
    /// Who was seen on the way where the job could start at once.
    #[n(4)]
    #[cbor(default)]
    pub passed: Option<Passed>,
    /// How often it has begun anew elsewhere.
    #[n(5)]
    #[cbor(default)]
    pub anew: u8,
    /// Where the job can wait if nobody will do where the search stops then.
    #[n(6)]
    #[cbor(default)]
    pub otherwise: Option<NodeId>,
}

/// A node that a search has come past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Passed {
    /// Who.
    #[n(0)]
    pub node: NodeId,
    /// Whether nothing at all ran there.
    #[n(1)]
    pub free: bool,
}

/// How far a search for what is left of a machine has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Aside {
    /// Who gets the job if nothing that is left will do.
    #[n(0)]
    pub otherwise: NodeId,
    /// How often it was passed on.
    #[n(1)]
    pub hops: u16,
    /// Whether a neighbour was tried that seemed to be in the Secondary; then it goes to the door.
    #[n(2)]
    pub led: bool,
    /// Whether it was at the door: there is no other way in.
    #[n(3)]
    pub at_door: bool,
    /// Once it is where the job lies: the nodes that were looked at.
    #[n(4)]
    pub seen: Vec<NodeId>,
    /// The way back.
    #[n(5)]
    pub back: Vec<NodeId>,
}

impl Aside {
    /// A search that has not begun; without result the job goes to this node.
    pub fn new(otherwise: NodeId) -> Aside {
        Aside { otherwise, hops: 0, led: false, at_door: false, seen: Vec::new(), back: Vec::new() }
    }
}

/// A job that could move.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Offer {
    /// Which.
    #[n(0)]
    pub job: JobId,
    /// What it needs.
    #[n(1)]
    pub needs: Needs,
    /// How often it was overtaken (BC).
    #[n(2)]
    pub overtaken: u32,
    /// When it entered the queue of its first run node.
    #[n(3)]
    pub entered: Time,
    /// Whether to start at once, or to wait there.
    #[n(4)]
    pub at_once: bool,
}

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// Find a place; goes on until one is found. Answered to the owner by [`Message::Found`].
    #[n(0)]
    Find(#[n(0)] Shared<Search>, #[n(1)] Box<Trail>),
    /// This one will do; or nobody will.
    #[n(1)]
    Found {
        /// For which job.
        #[n(0)]
        job: JobId,
        /// Which of the searches for it.
        #[n(1)]
        round: u32,
        /// Who.
        #[n(2)]
        node: Option<NodeId>,
    },
    /// Would you take this? Answered by [`Message::Answer`].
    #[n(2)]
    Offer(#[n(0)] Shared<Offer>),
    /// I would, and keep room for it for a moment; or not.
    #[n(3)]
    Answer {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Whether.
        #[n(1)]
        yes: bool,
    },
    /// I have room; what have you? Answered by [`Message::Offer`] or [`Message::Nothing`].
    #[n(4)]
    Pull {
        /// What I am, have to do and have left.
        #[n(0)]
        vitals: Shared<Vitals>,
        /// Whether a job would only wait at mine instead.
        #[n(1)]
        balance: bool,
    },
    /// Nothing for you.
    #[n(5)]
    Nothing,
    /// Find something that is left of a machine and has room at once, in the Secondary. Answered to the owner by
    /// [`Message::Found`].
    #[n(6)]
    FindResidue(#[n(0)] Shared<Search>, #[n(1)] Box<Aside>),
}

/// JobRoute and JobPush carry a job's profile.
const PROFILE_BYTES: u64 = 1_024;
/// MigrateOffer and PullRequest.
const OFFER_BYTES: u64 = 128;
/// Everything else.
const SHORT_BYTES: u64 = 64;

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] =
        &["find", "found", "offer", "answer", "pull", "nothing", "find_residue"];

    fn kind(&self) -> usize {
        match self {
            Message::Find(..) => 0,
            Message::Found { .. } => 1,
            Message::Offer(_) => 2,
            Message::Answer { .. } => 3,
            Message::Pull { .. } => 4,
            Message::Nothing => 5,
            Message::FindResidue(..) => 6,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Find(..) | Message::FindResidue(..) => PROFILE_BYTES,
            Message::Offer(_) | Message::Pull { .. } => OFFER_BYTES,
            Message::Found { .. } | Message::Answer { .. } | Message::Nothing => SHORT_BYTES,
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Find(search, trail) => {
                mention(search.owner);
                trail.back.iter().for_each(|&node| mention(node));
                trail.passed.iter().for_each(|passed| mention(passed.node));
                trail.otherwise.iter().for_each(|&node| mention(node));
            }
            Message::FindResidue(search, aside) => {
                mention(search.owner);
                mention(aside.otherwise);
                aside.back.iter().for_each(|&node| mention(node));
            }
            Message::Found { node, .. } => node.iter().for_each(|&node| mention(node)),
            Message::Offer(_) | Message::Answer { .. } | Message::Pull { .. } | Message::Nothing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Resources, Span};

    use super::*;
    use crate::protocol::Message as _;

    fn search(round: u32, virtual_at: u32) -> Search {
        let needs = Needs::new(Resources::cores(1), Span::from_secs(1));
        let mut point = Point::default();
        point[VIRTUAL] = virtual_at;
        Search { job: JobId([1; 16]), round, owner: NodeId(1), needs, point, avoid: Vec::new() }
    }

    #[test]
    fn whoever_a_search_may_name_is_mentioned_on_its_way() {
        let passed = Some(Passed { node: NodeId(2), free: true });
        let trail = Trail { back: vec![NodeId(3)], passed, otherwise: Some(NodeId(4)), ..Trail::default() };
        let mut named = Vec::new();
        Message::Find(Shared::new(search(1, 0)), Box::new(trail)).mentions(&mut |node| named.push(node.0));
        named.sort_unstable();
        assert_eq!(named, [1, 2, 3, 4]);
    }

    #[test]
    fn steps_of_other_searches_are_other_steps() {
        let step = search(1, 7).step(3, false);
        assert_eq!(search(1, 7).step(3, false), step, "what the network doubles");
        let others = [(1, 7, 4, false), (2, 7, 3, false), (1, 8, 3, false), (1, 7, 3, true)];
        for (round, virtual_at, hops, residue) in others {
            assert_ne!(search(round, virtual_at).step(hops, residue), step);
        }
    }
}
