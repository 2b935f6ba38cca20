//! How jobs find their places: what a grid has agreed on, and what each node decides for itself.
//!
//! Recipe and overlay are chosen when a grid is made, and every newcomer takes them over: nodes that differ in them would
//! not understand each other. In which order a node's own queue goes is its own affair.

use serde::{Deserialize, Serialize};
use shoal_protocols::node::config::Recipe;
use shoal_protocols::overlay;
use shoal_protocols::scheduling::aria::Order;

use super::{Settings, SettingsError};

/// The recipe of a grid whose maker does not say.
pub const RECIPE_DEFAULT: &str = "sample";

/// Periods that a node lets pass between two shuffles while nothing changes around it: a shuffle in a minute. Most are
/// with somebody to whom no connection is open, and to make one costs more than all else that an idle node says.
const RESTS: u8 = 5;

/// What a node is asked for, where somebody says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The recipe.
    pub recipe: Option<String>,
    /// The overlay beneath it.
    pub overlay: Option<String>,
    /// The order of the node's queue.
    pub queue: Option<Order>,
}

/// What all nodes of a grid must agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridSettings {
    /// How jobs find their places.
    pub recipe: String,
    /// How nodes come to know each other; the recipe's usual way, where nobody has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<String>,
}

/// How jobs find their places on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planning {
    /// The recipe, with all its settings.
    pub recipe: Recipe,
    /// The overlay beneath it, with all its settings.
    pub overlay: overlay::Config,
}

impl Settings {
    /// What the folder says and whoever starts the node; what the two say of the grid must be the same.
    pub fn wish(&self, asked: Wish) -> Result<Wish, SettingsError> {
        let Wish { recipe, overlay, queue } = asked;
        Ok(Wish {
            recipe: same("recipe", self.recipe.clone(), recipe)?,
            overlay: same("overlay", self.overlay.clone(), overlay)?,
            queue: queue.or(self.queue),
        })
    }
}

impl Wish {
    /// Refuses what no grid has, whichever it is.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.recipe.is_some() {
            return self.grid().map(|_| ());
        }
        let any =
            |name: &&str| Recipe::named(name).is_some_and(|recipe| self.with(recipe.name()).grid().is_ok());
        match Recipe::NAMES.iter().any(any) {
            true => Ok(()),
            // What is wrong with it for the recipe that leaves most open.
            false => self.with("aria").grid().map(|_| ()),
        }
    }

    fn with(&self, recipe: &str) -> Wish {
        Wish { recipe: Some(recipe.to_owned()), ..self.clone() }
    }

    /// What a grid that is made with it agrees on.
    pub fn grid(&self) -> Result<GridSettings, SettingsError> {
        let recipe = self.recipe.clone().unwrap_or_else(|| RECIPE_DEFAULT.to_owned());
        let agreed = GridSettings { recipe, overlay: self.overlay.clone() };
        agreed.planning(self).map(|_| agreed)
    }
}

impl GridSettings {
    /// As they are given to newcomers.
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("settings are plain data")
    }

    /// As they were given; what is not known here is passed over.
    pub fn read(bytes: &[u8]) -> Option<GridSettings> {
        serde_json::from_slice(bytes).ok()
    }

    /// How a node of this grid plans that is asked for something; of the grid that must be what was agreed on.
    pub fn planning(&self, wish: &Wish) -> Result<Planning, SettingsError> {
        same("recipe", Some(self.recipe.clone()), wish.recipe.clone())?;
        let named = Recipe::named(&self.recipe);
        let mut recipe = named.ok_or_else(|| SettingsError::Recipe { found: self.recipe.clone() })?;
        let name = recipe.name();
        let usual = recipe.overlays()[0];
        let made = self.overlay.as_deref().unwrap_or(usual);
        same("overlay", Some(made.to_owned()), wish.overlay.clone())?;
        let overlay = recipe.overlay(made).ok_or_else(|| SettingsError::Overlay {
            found: made.to_owned(),
            recipe: name,
            known: recipe.overlays().join(" or "),
        })?;
        match (&mut recipe, wish.queue) {
            (Recipe::Aria(aria), Some(order)) => aria.queue = order,
            (
                Recipe::Sample(_) | Recipe::Asap(_) | Recipe::TriPronged(_) | Recipe::Proactive(_),
                Some(order),
            ) => {
                return Err(SettingsError::Queue { order, recipe: name });
            }
            (_, None) => {}
        }
        Ok(Planning { recipe, overlay }.restful())
    }
}

impl Planning {
    /// Gossips as rarely as a node may around which nothing changes.
    fn restful(mut self) -> Planning {
        if let overlay::Config::Cyclon(cyclon) = &mut self.overlay {
            cyclon.rests = RESTS;
        }
        if let Recipe::Proactive(proactive) = &mut self.recipe {
            proactive.helpers.random.rests = RESTS;
        }
        self
    }
}

/// What was made and cannot be changed; or what is asked for, where nothing was made yet.
fn same(
    what: &'static str,
    made: Option<String>,
    found: Option<String>,
) -> Result<Option<String>, SettingsError> {
    match (made, found) {
        (Some(made), Some(found)) if made != found => Err(SettingsError::Other { what, made, found }),
        (made, found) => Ok(made.or(found)),
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocols::queue::Policy;

    use super::*;

    fn wish(recipe: &str, overlay: &str, queue: &str) -> Wish {
        let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Wish { recipe: said(recipe), overlay: said(overlay), queue: queue.parse().ok() }
    }

    fn told(result: Result<impl std::fmt::Debug, SettingsError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn recipe_is_the_grids_and_one_that_exists() {
        let made = Settings { recipe: Some("asap".to_owned()), ..Settings::default() };
        assert_eq!(made.wish(wish("", "", "")).unwrap().recipe.as_deref(), Some("asap"));
        assert_eq!(made.wish(wish("asap", "", "")).unwrap().recipe.as_deref(), Some("asap"));
        let changed = "this grid was made with the recipe `asap`, which cannot be changed to `sample`";
        assert_eq!(told(made.wish(wish("sample", "", ""))), changed);
        let asap = wish("asap", "", "").grid().unwrap();
        assert_eq!(told(asap.planning(&wish("sample", "", ""))), changed);
        assert!(told(wish("smaple", "", "").grid()).contains("expected sample or asap"));
        assert_eq!(Wish::default().grid().unwrap().recipe, RECIPE_DEFAULT);
    }

    #[test]
    fn overlay_is_the_grids_and_one_that_carries_the_recipe() {
        let ants = wish("aria", "blatant-s", "").grid().unwrap();
        let newcomer = GridSettings::read(&ants.write()).unwrap().planning(&Wish::default()).unwrap();
        assert!(matches!(newcomer.overlay, overlay::Config::BlatantS(_)), "as was agreed on, unasked");
        let changed = "this grid was made with the overlay `blatant-s`, which cannot be changed to `cyclon`";
        assert_eq!(told(ants.planning(&wish("", "cyclon", ""))), changed);
        let usual = wish("aria", "", "").grid().unwrap();
        assert!(usual.planning(&wish("aria", "cyclon", "")).is_ok(), "what is usual need not have been said");
        let refused = told(wish("asap", "can", "").grid());
        assert_eq!(refused, "the recipe asap does not stand on the overlay `can`: expected cyclon");
        let refused = told(wish("aria", "cylcon", "").grid());
        assert_eq!(
            refused,
            "the recipe aria does not stand on the overlay `cylcon`: expected cyclon or blatant-s or can"
        );
    }

    #[test]
    fn whoever_joins_may_leave_the_recipe_to_the_grid_but_asks_for_nothing_that_no_grid_has() {
        for (overlay, queue) in [("", ""), ("can", ""), ("blatant-s", "sjf"), ("", "edf")] {
            assert!(wish("", overlay, queue).check().is_ok(), "{overlay} {queue}");
        }
        assert!(told(wish("", "cylcon", "").check()).contains("expected cyclon or blatant-s or can"));
        assert!(told(wish("", "can", "").grid()).contains("sample"), "a grid that is made here has a recipe");
    }

    #[test]
    fn every_cyclon_of_a_real_node_rests() {
        for recipe in Recipe::NAMES {
            let planning = wish(recipe, "", "").grid().unwrap().planning(&Wish::default()).unwrap();
            assert!(planning.overlay.as_cyclon().is_none_or(|cyclon| cyclon.rests > 0), "{recipe}");
            if let Recipe::Proactive(proactive) = planning.recipe {
                assert!(proactive.helpers.random.rests > 0);
            }
        }
    }

    #[test]
    fn every_recipe_stands_on_the_overlays_that_it_names() {
        for recipe in Recipe::NAMES.iter().filter_map(|name| Recipe::named(name)) {
            for overlay in recipe.overlays() {
                assert!(recipe.overlay(overlay).is_some(), "{} on {overlay}", recipe.name());
            }
        }
    }

    #[test]
    fn order_of_a_queue_is_the_nodes_own_affair_where_there_are_queues() {
        let grid = wish("aria", "", "").grid().unwrap();
        let queue = |wish: &Wish| match grid.planning(wish).unwrap().recipe {
            Recipe::Aria(aria) => aria.queue,
            other => panic!("{other:?}"),
        };
        assert_eq!(queue(&Wish::default()), Order::Each(Policy::Easy));
        assert_eq!(queue(&wish("", "", "sjf")), Order::Each(Policy::Sjf));
        let kept = Settings { queue: Some(Order::Each(Policy::Edf)), ..Settings::default() };
        assert_eq!(queue(&kept.wish(Wish::default()).unwrap()), Order::Each(Policy::Edf));
        assert_eq!(queue(&kept.wish(wish("", "", "fcfs")).unwrap()), Order::Each(Policy::Fcfs));
        let refused = told(wish("asap", "", "sjf").grid());
        assert_eq!(
            refused,
            "queue = `sjf`: nodes have queues of their own order with the recipe aria, not with asap"
        );
    }
}
