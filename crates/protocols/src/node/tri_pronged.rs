//! The recipe `tri-pronged` in the node: places are found in a CAN, and who has a job is told as with `aria`.

use shoal_model::{Amount, Machine, NodeId, Span, Time};

use super::message::Event;
use super::{Node, Recipe, Work};
use crate::overlay::Overlay;
use crate::overlay::can::{self, Can, Residue, Secondary, Vitals};
use crate::protocol::{Ctx, Input, Protocol};
use crate::queue::backfill::Shares;
use crate::scheduling::aria::{self, Aria};
use crate::scheduling::tri_pronged::{self, TriPronged};
use crate::shared::Shared;

/// What a node that follows the recipe keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Prongs {
    pub aria: Aria,
    pub prongs: TriPronged,
    /// What is left of this machine, where that is found in a CAN of its own.
    secondary: Option<Secondary>,
    machine: Shared<Machine>,
    /// Up to which change of the queue others have been told.
    told: Option<u64>,
}

impl Prongs {
    pub fn restore(
        config: tri_pronged::Config,
        me: NodeId,
        machine: &Machine,
        records: impl Iterator<Item = aria::Record>,
    ) -> Prongs {
        Prongs {
            aria: Aria::restore(config.seats(), me, machine, records).let_others_find(),
            prongs: TriPronged::new(config),
            secondary: None,
            machine: Shared::new(machine.clone()),
            told: None,
        }
    }

    /// What others are told of this node's work.
    fn vitals(&self, now: Time) -> Vitals {
        let queue = self.aria.queue();
        let capacity = &self.machine.capacity;
        let taken = capacity.minus(queue.free());
        let mut load = taken.shares(capacity);
        let mut required = u64::from(taken.cores.get());
        let mut waiting = 0;
        for task in queue.waiting() {
            waiting += 1;
            required = required.saturating_add(u64::from(task.amount.cores.get()));
            let more = task.amount.shares(capacity);
            load = std::array::from_fn(|at| load[at].saturating_add(more[at]));
        }
        Vitals {
            machine: self.machine.clone(),
            residual: queue.free().clone(),
            running: u32::try_from(queue.running().count()).unwrap_or(u32::MAX),
            waiting,
            bar: queue.bar(),
            load,
            required,
            backlog: self.prongs.counts_estimates().then(|| self.backlog(now)),
        }
    }

    /// How long the cores would take for all that runs and waits here.
    fn backlog(&self, now: Time) -> Span {
        let work = self.aria.queue().work(now);
        let sum = work.fold(0u128, |sum, (span, amount)| {
            sum + u128::from(span.as_micros()) * u128::from(amount.cores.get())
        });
        let cores = u128::from(self.machine.capacity.cores.get().max(1));
        Span::from_micros(u64::try_from(sum / cores).unwrap_or(u64::MAX))
    }
}

impl Node {
    /// What this node does about its own and others' queues, if it follows the recipe `tri-pronged`.
    pub fn tri_pronged(&self) -> Option<&TriPronged> {
        match &self.work.as_ref()?.recipe {
            Recipe::TriPronged(prongs) => Some(&prongs.prongs),
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Aria(_) | Recipe::Proactive(_) => None,
        }
    }

    /// What this node knows of the CAN of what is left of machines, where there is one.
    pub fn secondary(&self) -> Option<&Secondary> {
        match &self.work.as_ref()?.recipe {
            Recipe::TriPronged(prongs) => prongs.secondary.as_ref(),
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Aria(_) | Recipe::Proactive(_) => None,
        }
    }

    pub(super) fn tell_can(&mut self, input: Input<Can>, ctx: &mut Ctx<'_, Node>) {
        let Overlay::Can(can) = &mut self.overlay else { return };
        for event in ctx.layer(|ctx| can.handle(input, ctx)) {
            match event {
                can::Event::Silent(node) => ctx.report(Event::Silent(node)),
                can::Event::Left => ctx.report(Event::Left),
            }
        }
        self.overlay_changed(ctx);
    }

    pub(super) fn tell_secondary(&mut self, input: Input<Secondary>, ctx: &mut Ctx<'_, Node>) {
        let (Some(work), Overlay::Can(can)) = (&mut self.work, &self.overlay) else { return };
        let Recipe::TriPronged(recipe) = &mut work.recipe else { return };
        if let Some(secondary) = &mut recipe.secondary {
            let heard = ctx.layer(|ctx| secondary.handle(input, can, ctx));
            assert!(heard.is_empty(), "what is left has nothing to say to its node");
        }
    }

    pub(super) fn tell_prongs(
        &mut self,
        tell: impl FnOnce(&mut TriPronged, &tri_pronged::Here<'_>, &mut Ctx<'_, TriPronged>),
        ctx: &mut Ctx<'_, Node>,
    ) {
        let (Some(work), Overlay::Can(can)) = (&mut self.work, &self.overlay) else { return };
        let Work { recipe: Recipe::TriPronged(recipe), machine, .. } = work.as_mut() else { return };
        let Prongs { aria, prongs, secondary, .. } = recipe.as_mut();
        let here = tri_pronged::Here { can, secondary: secondary.as_ref(), seats: aria, machine };
        for event in ctx.layer(|ctx| tell(prongs, &here, ctx)) {
            match event {
                tri_pronged::Event::Found { job, round, node } => {
                    self.tell_aria(|aria, _, ctx| aria.offer(job, round, node, ctx), ctx);
                }
                tri_pronged::Event::Expect { job, overtaken, entered, at_once } => {
                    let expected = aria::Expected { overtaken, entered, at_once };
                    self.tell_aria(|aria, _, _| aria.expect(job, expected), ctx);
                }
                tri_pronged::Event::Hold(held) => {
                    self.tell_aria(|aria, _, ctx| aria.hold(held, ctx), ctx);
                }
                tri_pronged::Event::Move { job, to } => {
                    self.tell_aria(|aria, _, ctx| aria.move_to(job, to, ctx), ctx);
                }
            }
        }
    }

    /// If what waits and runs here has changed, neighbours hear of it with the next heartbeat, and what is left moves.
    pub(super) fn queue_changed(&mut self, ended: bool, ctx: &mut Ctx<'_, Node>) {
        let (Some(work), Overlay::Can(can)) = (&mut self.work, &mut self.overlay) else { return };
        let Recipe::TriPronged(recipe) = &mut work.recipe else { return };
        let changes = Some(recipe.aria.changes());
        let changed = std::mem::replace(&mut recipe.told, changes) != changes;
        if changed {
            let vitals = recipe.vitals(ctx.now);
            can.describe(vitals.clone());
            let heard = ctx.layer(|ctx| can.move_balloon(ctx));
            assert!(heard.is_empty(), "a balloon moves without a word to its node");
            if let Some(secondary) = &mut recipe.secondary {
                let heard = ctx.layer(|ctx| secondary.follow(vitals, can, ctx));
                assert!(heard.is_empty(), "what is left has nothing to say to its node");
            }
        }
        if changed || ended {
            self.tell_prongs(|prongs, here, ctx| prongs.queue_changed(ended, here, ctx), ctx);
        }
    }
}

impl Recipe {
    /// Where what is left of machines has a CAN of its own, it is beside the first.
    pub(super) fn beside(&mut self, config: &can::Config, me: NodeId) {
        match (self, config.space, config.residue) {
            (Recipe::TriPronged(prongs), can::Kind::Resources, Residue::Dual) => {
                prongs.secondary = Some(Secondary::new(config, me));
            }
            (Recipe::TriPronged(_), _, _)
            | (Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Aria(_) | Recipe::Proactive(_), _, _) => {}
        }
    }
}
