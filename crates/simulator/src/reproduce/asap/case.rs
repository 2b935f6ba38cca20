//! The runs that the experiments need: which jobs, which scheduler, which seed.

use std::fmt;

use crate::baseline::Baseline;
use crate::workload::Piece;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub jobs: Jobs,
    pub ends: Ends,
    pub by: Scheduler,
    pub seed: u64,
}

/// Which jobs come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Jobs {
    /// Those of the trace.
    Original,
    /// The same in less time.
    Compressed,
    /// Those of one piece of the trace, a day in the paper, on an empty grid.
    Piece(Piece),
    /// Those of the generator, which are narrow, whatever the trace is.
    Narrow,
    /// Those of the median piece, stretched to ask for the same share of a grid of so many nodes.
    Spread(u32),
}

/// When jobs end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ends {
    /// When the time that they asked for is over.
    AsAsked,
    /// When they really did.
    Early,
}

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheduler {
    Asap(Asap),
    Central(Baseline),
    Flood,
}

/// The recipe, as far as the experiments vary it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asap {
    pub policy: Policy,
    pub overlay: Overlay,
    pub degree: u8,
    pub tries: Tries,
}

/// How calendars get from node to node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    Push,
    Pull,
    Poll,
}

/// Whether neighbours change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overlay {
    Dynamic,
    Static,
}

/// What happens when a chosen node is no longer free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tries {
    /// The next best answer is tried, then all begins again.
    Several,
    /// The job has failed.
    One,
}

impl Asap {
    /// The paper's own: push on a shuffled overlay of degree 20.
    pub const PAPER: Asap =
        Asap { policy: Policy::Push, overlay: Overlay::Dynamic, degree: 20, tries: Tries::Several };
}

impl Policy {
    pub const ALL: [Policy; 3] = [Policy::Push, Policy::Pull, Policy::Poll];

    pub fn name(self) -> &'static str {
        match self {
            Policy::Push => "push",
            Policy::Pull => "pull",
            Policy::Poll => "poll",
        }
    }
}

impl Overlay {
    pub fn name(self) -> &'static str {
        match self {
            Overlay::Dynamic => "dynamic",
            Overlay::Static => "static",
        }
    }
}

impl Scheduler {
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Asap(_) => "asap",
            Scheduler::Central(baseline) => baseline.name(),
            Scheduler::Flood => "flood",
        }
    }
}

impl Case {
    /// A run of the recipe in which jobs end as asked.
    pub fn asap(jobs: Jobs, asap: Asap, seed: u64) -> Case {
        Case { jobs, ends: Ends::AsAsked, by: Scheduler::Asap(asap), seed }
    }

    /// The built-in scenario that it is a variant of.
    pub fn scenario(&self) -> &'static str {
        match self.jobs {
            Jobs::Original | Jobs::Narrow | Jobs::Spread(_) => "fig4a",
            Jobs::Compressed => "fig4b",
            Jobs::Piece(_) => "table1",
        }
    }

    /// How it differs from that scenario, in the words of one.
    pub fn changes(&self) -> String {
        let mut changes = format!("seed = {}\n", self.seed);
        match self.ends {
            Ends::AsAsked => {}
            Ends::Early => changes += "workload.length = \"run\"\n",
        }
        match self.jobs {
            Jobs::Piece(Piece::Median) => changes += "workload.change.window.piece = \"median\"\n",
            Jobs::Original
            | Jobs::Compressed
            | Jobs::Piece(Piece::Busiest)
            | Jobs::Narrow
            | Jobs::Spread(_) => {}
        }
        if let Scheduler::Asap(asap) = self.by {
            changes += &format!("recipe.policy = \"{}\"\n", asap.policy.name());
            changes += &format!("overlay.cache = {}\n", asap.degree);
            match asap.overlay {
                Overlay::Dynamic => {}
                Overlay::Static => changes += "overlay.period_ms = 0\n",
            }
            match asap.tries {
                Tries::Several => {}
                Tries::One => changes += "recipe.retries = 0\nrecipe.alternatives = false\n",
            }
        }
        changes
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.jobs {
            Jobs::Original => f.write_str("original")?,
            Jobs::Compressed => f.write_str("compressed")?,
            Jobs::Piece(Piece::Busiest) => f.write_str("busiest piece")?,
            Jobs::Piece(Piece::Median) => f.write_str("median piece")?,
            Jobs::Narrow => f.write_str("narrow jobs")?,
            Jobs::Spread(nodes) => write!(f, "median piece for {nodes} nodes")?,
        }
        match self.ends {
            Ends::AsAsked => {}
            Ends::Early => f.write_str(", ends early")?,
        }
        write!(f, ", {}", self.by.name())?;
        if let Scheduler::Asap(Asap { policy, overlay, degree, tries }) = self.by {
            write!(f, " {} {} degree {degree}", policy.name(), overlay.name())?;
            match tries {
                Tries::Several => {}
                Tries::One => f.write_str(" one try")?,
            }
        }
        write!(f, ", seed {}", self.seed)
    }
}
