//! Scheduling: the recipes, each of which finds a place for a job in its own way.
//!
//! A recipe looks at the layers beneath it ([`Here`]), talks to its peers, and proposes placements; the node has
//! them committed and tells the recipe how that went. All recipes are asked and answer in the same words.

pub mod aria;
pub mod asap;
pub mod proactive;
pub mod sample;
pub mod tri_pronged;

use std::collections::BTreeSet;

use shoal_model::calendar::Calendar;
use shoal_model::honours::{Field, FieldSet};
use shoal_model::machine::Machine;
use shoal_model::matching::Needs;
use shoal_model::{JobId, NodeId, Resources, Span, Time};

use crate::commit::two_phase::Failure;
use crate::node::Denial;
use crate::overlay::Overlay;
use crate::protocol::{Ctx, Input, Layer};

/// No two clocks of a grid are further apart: a node that could start a job so soon, but not when it was asked to, may have
/// one that is ahead of ours.
pub(crate) const CLOCKS_APART_MOST: Span = Span::from_secs(5);

/// What lies beneath a recipe, to look at.
pub struct Here<'a> {
    /// Who is known.
    pub overlay: &'a Overlay,
    /// What is reserved on this node.
    pub calendar: &'a Calendar<Resources>,
    /// What this node is.
    pub machine: &'a Machine,
}

/// A way to find a place for a job.
pub trait Recipe: Layer<Command = Command, Event = Event> {
    /// What of a job description it can honour; anything else is refused by name.
    const HONOURS: FieldSet;

    /// Takes one input, with a look at what lies beneath.
    fn handle(&mut self, input: Input<Self>, here: &Here<'_>, ctx: &mut Ctx<'_, Self>);

    /// The neighbours may have changed.
    fn overlay_changed(&mut self, _here: &Here<'_>, _ctx: &mut Ctx<'_, Self>) {}

    /// What is reserved on this node has changed.
    fn calendar_changed(&mut self, _here: &Here<'_>, _ctx: &mut Ctx<'_, Self>) {}
}

/// A job that starts sooner than this stays where it is: a move takes a while, and must not meet the start.
pub const STAYS_WITHIN: Span = Span::from_secs(30);

/// What every recipe can honour that plans in calendars: needs and times are theirs, the rest is the node's.
pub const IN_CALENDARS: FieldSet = FieldSet::of(&[
    Field::Inputs,
    Field::Outputs,
    Field::Secrets,
    Field::Nodes,
    Field::Cores,
    Field::Memory,
    Field::Disk,
    Field::Gpus,
    Field::Resources,
    Field::Limit,
    Field::Deadline,
    Field::Begin,
    Field::Architecture,
    Field::System,
    Field::Labels,
    Field::Within,
    Field::Array,
    Field::After,
    Field::Retry,
    Field::Rerun,
    Field::AtMostOnce,
    Field::Environment,
    Field::Name,
    Field::User,
    Field::Organisation,
]);

/// What a recipe is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Find a place; ends in [`Event::Propose`], [`Event::Stuck`] or [`Event::GiveUp`].
    Plan {
        /// For this job.
        job: JobId,
        /// Which needs this.
        needs: Needs,
        /// And not there.
        avoid: BTreeSet<NodeId>,
    },
    /// What was proposed could not be committed: find another place.
    Failed {
        /// For this job.
        job: JobId,
        /// Because of this.
        why: Failure,
    },
    /// Nothing more is wanted for this job: it is placed, or over.
    Leave(JobId),
}

/// What a recipe says to the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Here is a place; to be committed.
    Propose {
        /// For this job.
        job: JobId,
        /// From then on.
        start: Time,
        /// There, by rank.
        nodes: Vec<NodeId>,
    },
    /// There is none now. The node asks again later.
    Stuck {
        /// For this job.
        job: JobId,
        /// Because of this.
        why: Stuck,
    },
    /// There is none, and the recipe was told not to wait for one: the job is over.
    GiveUp {
        /// For this job.
        job: JobId,
        /// Because of this.
        why: Stuck,
    },
    /// A node does not answer: it is no neighbour any more.
    Silent(NodeId),
}

/// Why there is no place for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Stuck {
    /// Not enough nodes that would do are known.
    #[error("it needs {needed} nodes, and of {asked} nodes asked {fit} will do")]
    TooFew {
        /// How many it needs.
        needed: u32,
        /// How many were asked.
        asked: u32,
        /// How many would do.
        fit: u32,
    },
    /// Nodes would do, but are never free together long enough.
    #[error("the nodes that will do are never free together for that long")]
    NeverFree,
    /// Not enough nodes are admitted by the user's expression.
    #[error(
        "it needs {needed} nodes, and of {asked} nodes asked {fit} will do: clause {clause} of `where` excludes {excluded}"
    )]
    Excluded {
        /// How many it needs.
        needed: u32,
        /// How many were asked.
        asked: u32,
        /// How many would do.
        fit: u32,
        /// The clause that excludes most, from 1.
        clause: u32,
        /// How many it excludes.
        excluded: u32,
    },
    /// Nodes would do, but no set of them is within the bounds of the user's criterion.
    #[error(
        "of {asked} nodes asked {fit} will do, and no set of them that was found meets the bounds of `optimise`"
    )]
    Infeasible {
        /// How many were asked.
        asked: u32,
        /// How many would do.
        fit: u32,
    },
    /// It could only end too late.
    #[error("the earliest start, {start}, is too late for its deadline")]
    TooLate {
        /// When it could start.
        start: Time,
    },
    /// Places were found, and each time somebody else was quicker.
    #[error("each place that was found was taken before it could be committed")]
    Outrun,
    /// Nodes would do, but do not take it.
    #[error("of the nodes that will do {nodes} do not take it: {why}")]
    Denied {
        /// How many have said so.
        nodes: u32,
        /// Why, as the last of them said.
        why: Denial,
    },
    /// The user holds it.
    #[error("it is held until it is released")]
    Held,
    /// It shares a place with this one, and is to run right after it or another.
    #[error("it is quick and shares the place of job {0}, which is being looked for")]
    Behind(JobId),
    /// Others of its array are looked after before it.
    #[error("others of its array are looked after before it")]
    InTurn,
    /// Another job has not ended.
    #[error("it starts after job {0}, which has not ended")]
    After(JobId),
    /// It must not run twice, and a node has yet to let go of it.
    #[error("it must not run twice, and node {0}, where it had a place, has not let go of it yet")]
    Lingers(NodeId),
    /// It is another node's, which is about to leave.
    #[error("it is being handed over by node {0}, which leaves")]
    HandedOver(NodeId),
    /// Its node leaves, and it is to be another's.
    #[error("its node leaves, and looks for another that sees to it")]
    Leaves,
    /// It is an array, and its jobs say each for itself.
    #[error("it is an array, of which {ended} of {jobs} jobs have ended")]
    Array {
        /// How many have ended.
        ended: u32,
        /// How many there are.
        jobs: u32,
    },
    /// Nobody offered to take it.
    #[error("it was asked for in {rounds} rounds, and no node that will do has offered to take it")]
    NoOffer {
        /// How often it was asked for.
        rounds: u32,
    },
    /// There was nobody to ask.
    #[error("no other node is known here, and this one will not do: is it connected to the grid?")]
    Alone,
    /// It is not to start yet.
    #[error("it is not to start before {begin}")]
    NotYet {
        /// When it is.
        begin: Time,
    },
}
