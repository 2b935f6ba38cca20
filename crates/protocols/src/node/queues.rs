//! What a node keeps that peers or users can fill, with the limit of each: for whoever checks from outside.

use super::after::AWAITED_MAX;
use super::ride::RIDING_MAX;
use super::{Node, OWNED_MAX, Phase, Recipe};
use crate::commit::two_phase::LOCKS_MAX;
use crate::overlay::Overlay;
use crate::overlay::blatant_s::LINKS_MAX;
use crate::overlay::can::{BALLOONS_MAX, GHOSTS_MAX, NEIGHBOURS_MAX};
use crate::overlay::cyclon::CACHE_MAX;

/// Something that a node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// What it is called.
    pub name: &'static str,
    /// How many there are.
    pub len: usize,
    /// How many there may be.
    pub most: usize,
}

impl Node {
    /// All that this node keeps and that peers or users can fill.
    pub fn queues(&self) -> Vec<Queue> {
        let queue = |name, len, most| Queue { name, len, most };
        let mut queues = match &self.overlay {
            Overlay::Cyclon(cyclon) => vec![queue("neighbours", cyclon.degree(), CACHE_MAX)],
            Overlay::BlatantS(blatant) => {
                let (remembered, most) = blatant.remembers();
                vec![queue("links", blatant.degree(), LINKS_MAX), queue("remembered nodes", remembered, most)]
            }
            Overlay::Can(can) => vec![
                queue("neighbours", can.degree(), NEIGHBOURS_MAX),
                queue("zones of the dead", can.ghosts(), GHOSTS_MAX),
                queue("balloons", can.balloons().count(), BALLOONS_MAX),
            ],
        };
        let Some(work) = &self.work else { return queues };
        let open = work.owned.values().filter(|owned| !matches!(owned.phase(), Phase::Ended(_))).count();
        let reasons = work.heartbeat.watched().map(|node| work.heartbeat.reasons(node).count()).sum();
        let heartbeat = work.heartbeat.config();
        queues.extend([
            queue("owned jobs", work.owned.len(), OWNED_MAX),
            queue("locks and unheard ends", work.commit.locks().count() + work.commit.finished(), LOCKS_MAX),
            queue("nodes that wait for jobs", work.awaited.len(), AWAITED_MAX),
            queue("tasks", work.tasks.len() - work.riding, LOCKS_MAX),
            queue("tasks that ride with others", work.riding, RIDING_MAX),
            queue("coordinated jobs", work.commit.jobs().count(), work.owned.len()),
            queue("watched nodes", work.heartbeat.watched().count(), heartbeat.nodes_max as usize),
            queue("reasons for watching", reasons, heartbeat.reasons_max as usize),
        ]);
        match &work.recipe {
            Recipe::Sample(sample) => queues.push(queue("searches", sample.searches(), open)),
            Recipe::Asap(asap) => {
                queues.push(queue("searches", asap.searches(), open));
                queues.extend(asap.queues().map(|(name, len, most)| queue(name, len, most)));
            }
            Recipe::Proactive(proactive) => {
                queues.push(queue("searches", proactive.searches(), open));
                queues.extend(proactive.queues().map(|(name, len, most)| queue(name, len, most)));
            }
            Recipe::Aria(aria) => {
                queues.push(queue("searches", aria.searches(), open));
                queues.extend(aria.queues().map(|(name, len, most)| queue(name, len, most)));
            }
            Recipe::TriPronged(recipe) => {
                if let Some(second) = self.secondary() {
                    let can = second.can();
                    queues.push(queue("neighbours of what is left", can.degree(), NEIGHBOURS_MAX));
                    queues.push(queue("zones of what was left", can.ghosts(), GHOSTS_MAX));
                }
                queues.push(queue("searches", recipe.aria.searches(), open));
                queues.extend(recipe.aria.queues().map(|(name, len, most)| queue(name, len, most)));
                queues.extend(recipe.prongs.queues().map(|(name, len, most)| queue(name, len, most)));
            }
        }
        queues
    }
}
