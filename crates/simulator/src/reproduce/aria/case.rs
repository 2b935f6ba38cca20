//! The runs: the paper's 26 scenarios, and how some of them are varied.

use std::fmt;

use super::large;
use crate::scenario::Library;

/// The scenarios of this paper, so that the program needs no files.
pub(crate) const LIBRARY: Library = &[
    ("FCFS", include_str!("../../../../../scenarios/aria/FCFS.toml")),
    ("iFCFS", include_str!("../../../../../scenarios/aria/iFCFS.toml")),
    ("SJF", include_str!("../../../../../scenarios/aria/SJF.toml")),
    ("iSJF", include_str!("../../../../../scenarios/aria/iSJF.toml")),
    ("Mixed", include_str!("../../../../../scenarios/aria/Mixed.toml")),
    ("iMixed", include_str!("../../../../../scenarios/aria/iMixed.toml")),
    ("Deadline", include_str!("../../../../../scenarios/aria/Deadline.toml")),
    ("iDeadline", include_str!("../../../../../scenarios/aria/iDeadline.toml")),
    ("DeadlineH", include_str!("../../../../../scenarios/aria/DeadlineH.toml")),
    ("iDeadlineH", include_str!("../../../../../scenarios/aria/iDeadlineH.toml")),
    ("LowLoad", include_str!("../../../../../scenarios/aria/LowLoad.toml")),
    ("iLowLoad", include_str!("../../../../../scenarios/aria/iLowLoad.toml")),
    ("HighLoad", include_str!("../../../../../scenarios/aria/HighLoad.toml")),
    ("iHighLoad", include_str!("../../../../../scenarios/aria/iHighLoad.toml")),
    ("Expanding", include_str!("../../../../../scenarios/aria/Expanding.toml")),
    ("iExpanding", include_str!("../../../../../scenarios/aria/iExpanding.toml")),
    ("Precise", include_str!("../../../../../scenarios/aria/Precise.toml")),
    ("iPrecise", include_str!("../../../../../scenarios/aria/iPrecise.toml")),
    ("Accuracy25", include_str!("../../../../../scenarios/aria/Accuracy25.toml")),
    ("iAccuracy25", include_str!("../../../../../scenarios/aria/iAccuracy25.toml")),
    ("AccuracyBad", include_str!("../../../../../scenarios/aria/AccuracyBad.toml")),
    ("iAccuracyBad", include_str!("../../../../../scenarios/aria/iAccuracyBad.toml")),
    ("iInform1", include_str!("../../../../../scenarios/aria/iInform1.toml")),
    ("iInform4", include_str!("../../../../../scenarios/aria/iInform4.toml")),
    ("iInform15m", include_str!("../../../../../scenarios/aria/iInform15m.toml")),
    ("iInform30m", include_str!("../../../../../scenarios/aria/iInform30m.toml")),
];

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The scenario, by the paper's name.
    pub scene: &'static str,
    pub variant: Variant,
    pub seed: u64,
}

/// How a run differs from its scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Not at all.
    Paper,
    /// Offers are waited for so many seconds.
    Wait(u32),
    /// The ants go on.
    Live,
    /// Another overlay: CYCLON, with the settings for real use.
    Cyclon,
    /// One scheduler that knows everything, in place of the nodes.
    Central,
    /// Every job could run on a tenth of the machines or more.
    Plenty,
    /// A grid of so many nodes at the same load of each, drawn at random with four links of each; the first jobs.
    Scale(u32),
    /// The same, with a hop limit that reaches about as many nodes whatever the size.
    Flat(u32),
    /// The same, with all jobs.
    Whole(u32),
}

impl Case {
    /// How it differs from its scenario, in the words of one.
    pub fn changes(&self) -> String {
        let mut changes = format!("seed = {}\n", self.seed);
        changes += &match self.variant {
            Variant::Paper | Variant::Central | Variant::Plenty => String::new(),
            Variant::Wait(secs) => format!("recipe.accept_wait_ms = {}\n", secs * 1_000),
            Variant::Live => {
                "overlay.ant_ms = 900000\noverlay.evaporate_ms = 120000\noverlay.rules_ms = 900000\n"
                    .to_owned()
            }
            Variant::Cyclon => "start = \"graph\"\noverlay = { kind = \"cyclon\" }\n".to_owned(),
            Variant::Scale(nodes) | Variant::Flat(nodes) | Variant::Whole(nodes) => {
                large::changes(self.scene, self.variant, nodes)
            }
        };
        changes
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scene)?;
        match self.variant {
            Variant::Paper => {}
            Variant::Wait(secs) => write!(f, ", offers wait {secs} s")?,
            Variant::Live => f.write_str(", ants go on")?,
            Variant::Cyclon => f.write_str(", CYCLON beneath")?,
            Variant::Central => f.write_str(", one scheduler that knows everything")?,
            Variant::Plenty => f.write_str(", jobs for many machines")?,
            Variant::Scale(nodes) => write!(f, ", {nodes} nodes")?,
            Variant::Flat(nodes) => write!(f, ", {nodes} nodes, fewer hops")?,
            Variant::Whole(nodes) => write!(f, ", {nodes} nodes, all jobs")?,
        }
        write!(f, ", seed {}", self.seed)
    }
}
