//! One run: a size of grid and of job, what is asked of it, a variant of the recipe, or the centralised reference.

use std::fmt;

use minicbor::{Decode, Encode};
use shoal_protocols::scheduling::proactive::Variant;

use super::super::runs::Kept;
use super::aim::Aim;

/// The four sizes of figure 1: nodes of the grid, and of a job.
pub const SIZES: [(u32, u32); 4] = [(800, 64), (800, 128), (10_000, 64), (10_000, 128)];
/// The candidates for each node wanted that are compared beside the paper's 2.
pub const ALPHAS: [u8; 2] = [1, 4];
/// The size on which they are compared.
pub const SWEPT: (u32, u32) = SIZES[0];

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// As the paper names it; a quick run is smaller.
    pub size: (u32, u32),
    pub scene: Scene,
    pub way: Way,
}

/// What the grid is like, and what is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scene {
    /// The paper's: the closest nodes of a grid that has nothing else to do.
    Paper,
    /// The same with so many iterations, in this manner.
    Often(u8, Manner),
    /// Other criteria in a grid of unlike machines, whose calendars are full to so many per cent.
    Busy(u8, Aim),
}

/// How iterations follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
    /// One after the other.
    InTurn,
    /// All at once.
    AtOnce,
}

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Somebody who knows everything.
    Central,
    /// The basic variant, with so many candidates for each node wanted.
    Basic(u8),
    /// The proactive variant.
    Proactive(u8),
}

impl Way {
    /// The variant and its α, if it is one.
    pub fn variant(self) -> Option<(Variant, u8)> {
        match self {
            Way::Central => None,
            Way::Basic(alpha) => Some((Variant::Basic, alpha)),
            Way::Proactive(alpha) => Some((Variant::Proactive, alpha)),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nodes, wanted) = self.size;
        write!(f, "{nodes}x{wanted} ")?;
        match self.way {
            Way::Central => write!(f, "central"),
            Way::Basic(alpha) => write!(f, "basic alpha={alpha}"),
            Way::Proactive(alpha) => write!(f, "proactive alpha={alpha}"),
        }?;
        match self.scene {
            Scene::Paper => Ok(()),
            Scene::Often(iterations, Manner::InTurn) => write!(f, " {iterations} in turn"),
            Scene::Often(iterations, Manner::AtOnce) => write!(f, " {iterations} at once"),
            Scene::Busy(percent, aim) => write!(f, " {} {percent}% busy", aim.name()),
        }
    }
}

/// What was seen of a run.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct Seen {
    /// Of each query, what its best set cost after each iteration, in milliseconds.
    #[n(0)]
    pub courses: Vec<Vec<f64>>,
    /// Of the centralised reference: by the genetic algorithm alone, and by the better of that and geometry.
    #[n(1)]
    pub central: Option<(f64, f64)>,
    /// Bytes per node and cycle of the helper overlay.
    #[n(2)]
    pub bytes: f64,
    #[n(3)]
    pub inputs: u64,
    /// Of each query, the same as `central`, where what is best differs from query to query.
    #[n(4)]
    pub centrals: Vec<(f64, f64)>,
    /// Messages of a query: questions and answers, and those of its commits.
    #[n(5)]
    pub messages: (f64, f64),
    /// Of each query, after how many seconds its last iteration was over.
    #[n(6)]
    pub seconds: Vec<f64>,
    /// How much of their time the calendars are booked.
    #[n(7)]
    pub booked: f64,
    /// The same before the last query, when all others have been taken back.
    #[n(8)]
    pub booked_at_last: f64,
}

impl Kept for Seen {
    fn inputs(&self) -> u64 {
        self.inputs
    }
}
