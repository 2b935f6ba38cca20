//! Matchmaking among what is left of machines: in the Secondary, from where the job lies upwards.

use shoal_model::NodeId;

use super::find::{Rank, SEEN_MAX, best};
use super::message::{Aside, Message, Search};
use super::{Here, TriPronged};
use crate::overlay::can::{DOOR, Hop, Secondary};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// A search that was passed on more often than this has lost its way: points move faster than word of them.
const HOPS_MAX: u16 = 64;

impl TriPronged {
    pub(super) fn on_find_residue(
        &mut self,
        search: Shared<Search>,
        mut aside: Box<Aside>,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        aside.hops = aside.hops.saturating_add(1);
        if aside.seen.len() > SEEN_MAX || aside.back.len() > SEEN_MAX {
            return;
        }
        let inside = here.secondary.filter(|secondary| secondary.is_in());
        let next = match inside {
            _ if aside.hops > HOPS_MAX => None,
            Some(secondary) if aside.seen.is_empty() => match secondary.can().next_hop(&search.point) {
                Hop::To(next) => Some(next),
                Hop::Here | Hop::Stuck => match self.look_here(&search, &mut aside, secondary, here, ctx) {
                    Look::Found => return,
                    Look::On(next) => next,
                },
            },
            Some(secondary) => match self.look_here(&search, &mut aside, secondary, here, ctx) {
                Look::Found => return,
                Look::On(next) => next,
            },
            None if aside.seen.is_empty() => way_in(&mut aside, here, ctx),
            // It has left meanwhile, and whoever has not heard of that need not ask again.
            None => {
                if !aside.seen.contains(&ctx.me) {
                    aside.seen.push(ctx.me);
                }
                aside.back.pop()
            }
        };
        match next {
            Some(next) => ctx.send(next, Message::FindResidue(search, aside)),
            None => tell(&search, aside.otherwise, ctx),
        }
    }

    /// Looks at this node and those around it, and says who is next: as many as a job may be pushed.
    fn look_here(
        &self,
        search: &Search,
        aside: &mut Aside,
        secondary: &Secondary,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) -> Look {
        if !aside.seen.contains(&ctx.me) {
            aside.seen.push(ctx.me);
            let own = here.can.own_vitals().map(|vitals| (ctx.me, vitals));
            if let Some((Rank::Free | Rank::Room, node)) =
                best(search, own.into_iter().chain(secondary.can().vitals()))
            {
                tell(search, node, ctx);
                return Look::Found;
            }
        }
        if aside.seen.len() > usize::from(self.config.pushes) {
            return Look::On(None);
        }
        let unseen = secondary.can().reaching(&search.point).find(|node| !aside.seen.contains(node));
        Look::On(match unseen {
            Some(next) => {
                aside.back.push(ctx.me);
                Some(next)
            }
            None => aside.back.pop(),
        })
    }
}

/// What came of a look.
enum Look {
    /// A place.
    Found,
    /// None yet, and who is next, if anybody.
    On(Option<NodeId>),
}

/// From a node that is not in the Secondary to one that is: a neighbour that seems to be, then whoever is known at the door.
fn way_in(aside: &mut Aside, here: &Here<'_>, ctx: &Ctx<'_, TriPronged>) -> Option<NodeId> {
    let likely = here.can.vitals().find(|(_, vitals)| vitals.is_partly_used()).map(|(node, _)| node);
    if let Some(node) = likely.filter(|_| !std::mem::replace(&mut aside.led, true)) {
        return Some(node);
    }
    match here.can.next_hop(&DOOR) {
        _ if aside.at_door => None,
        Hop::Here => {
            aside.at_door = true;
            here.secondary?.holder(ctx.now).filter(|&node| node != ctx.me)
        }
        Hop::To(next) => Some(next),
        Hop::Stuck => None,
    }
}

fn tell(search: &Search, node: NodeId, ctx: &mut Ctx<'_, TriPronged>) {
    let Search { job, round, owner, .. } = *search;
    ctx.send(owner, Message::Found { job, round, node: Some(node) });
}
