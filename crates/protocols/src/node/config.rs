//! What a node is told at its making.

use serde::{Deserialize, Serialize};
use shoal_model::{Machine, Span};

use super::gate::Gate;
use crate::commit::two_phase;
use crate::guard::heartbeat;
use crate::overlay;
use crate::scheduling::{aria, asap, proactive, sample, tri_pronged};

/// What a node is told at its making.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// How it comes to know others.
    pub overlay: overlay::Config,
    /// What it does with jobs; a node without takes none, and only gossips.
    pub work: Option<Box<Work>>,
}

/// What a node that takes jobs is told.
#[derive(Clone, Debug)]
pub struct Work {
    /// What it is.
    pub machine: Machine,
    /// How jobs find their places.
    pub recipe: Recipe,
    /// How placements are committed.
    pub commit: two_phase::Config,
    /// How failures are noticed.
    pub heartbeat: heartbeat::Config,
    /// The hard limit of a job that names none.
    pub limit_default: Span,
    /// Whether plans get better while jobs wait: tasks start early where there is room, and owners look for better
    /// places. Without it a plan never moves, as in the papers that say so.
    pub eager: bool,
    /// Who may run here.
    pub gate: Gate,
}

/// How jobs find their places, with the settings of the recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// See [`crate::scheduling::sample`].
    Sample(sample::Config),
    /// See [`crate::scheduling::asap`].
    Asap(asap::Config),
    /// See [`crate::scheduling::aria`].
    Aria(aria::Config),
    /// See [`crate::scheduling::tri_pronged`]; over the overlay CAN.
    TriPronged(tri_pronged::Config),
    /// See [`crate::scheduling::proactive`].
    Proactive(proactive::Config),
}

impl Recipe {
    /// The names of all recipes.
    pub const NAMES: &'static [&'static str] = &["sample", "asap", "aria", "tri-pronged", "proactive"];

    /// The recipe with this name, with the values for real use.
    pub fn named(name: &str) -> Option<Recipe> {
        match name {
            "sample" => Some(Recipe::Sample(sample::Config::default())),
            "asap" => Some(Recipe::Asap(asap::Config::real())),
            "aria" => Some(Recipe::Aria(aria::Config::real())),
            "tri-pronged" => Some(Recipe::TriPronged(tri_pronged::Config::real())),
            "proactive" => Some(Recipe::Proactive(proactive::Config::real())),
            _ => None,
        }
    }

    /// The names of the overlays that it stands on in real use, the usual one first.
    pub fn overlays(&self) -> &'static [&'static str] {
        match self {
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Proactive(_) => &["cyclon"],
            Recipe::Aria(_) => &["cyclon", "blatant-s", "can"],
            Recipe::TriPronged(_) => &["can"],
        }
    }

    /// The overlay that it stands on where nobody says otherwise, with the values for real use.
    pub fn usual_overlay(&self) -> overlay::Config {
        self.overlay(self.overlays()[0]).expect("a recipe stands on what it names")
    }

    /// The overlay with this name, with the values for real use, if the recipe stands on it.
    pub fn overlay(&self, name: &str) -> Option<overlay::Config> {
        if !self.overlays().contains(&name) {
            return None;
        }
        match name {
            "cyclon" => Some(overlay::cyclon::Config::default().into()),
            "blatant-s" => Some(overlay::blatant_s::Config::default().into()),
            "can" => {
                // Only its searches go by shortcuts.
                let shortcuts = matches!(self, Recipe::TriPronged(_));
                Some(overlay::can::Config { shortcuts, ..overlay::can::Config::real() }.into())
            }
            _ => None,
        }
    }

    /// The recipe's name.
    pub fn name(&self) -> &'static str {
        match self {
            Recipe::Sample(_) => "sample",
            Recipe::Asap(_) => "asap",
            Recipe::Aria(_) => "aria",
            Recipe::TriPronged(_) => "tri-pronged",
            Recipe::Proactive(_) => "proactive",
        }
    }
}
