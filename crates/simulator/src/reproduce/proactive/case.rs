//! One run: a size of grid and of job, a variant of the recipe, or the centralised reference.

use std::fmt;

use minicbor::{Decode, Encode};
use shoal_protocols::scheduling::proactive::Variant;

use super::super::runs::Kept;

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
    pub way: Way,
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
        match self.way {
            Way::Central => write!(f, "{nodes}x{wanted} central"),
            Way::Basic(alpha) => write!(f, "{nodes}x{wanted} basic alpha={alpha}"),
            Way::Proactive(alpha) => write!(f, "{nodes}x{wanted} proactive alpha={alpha}"),
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
}

impl Kept for Seen {
    fn inputs(&self) -> u64 {
        self.inputs
    }
}
