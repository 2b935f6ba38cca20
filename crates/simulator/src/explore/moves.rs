//! What can happen in a state.

use shoal_model::Time;

use super::react::Stimulus;
use super::state::{Point, Site, Tables};
use super::{Clocks, Explorable, Explorer, Monitor, Timers};

/// Something that can happen in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// This befalls a node at a time.
    Befall { node: usize, stimulus: Stimulus, now: Time },
    /// A letter comes in where nobody is.
    Miss(u32),
    /// The shared clock advances.
    Pass(Time),
    /// A letter is lost.
    Lose(u32),
    /// A letter is doubled.
    Double(u32),
}

/// What can happen, and what that says of the state.
#[derive(Default)]
pub(super) struct Moves {
    /// In an order that depends on nothing but the state.
    pub list: Vec<Move>,
    /// Whether something happens without a fault or a restart.
    pub busy: bool,
    /// Whether a timer is due beyond the horizon.
    pub beyond: bool,
}

impl Moves {
    /// Lists what can happen; `twins` says for each command which earlier ones are the same.
    pub fn list<P: Explorable, M: Monitor<P>>(
        &mut self,
        explorer: &Explorer<P, M>,
        tables: &Tables<P, M>,
        twins: &[u64],
        point: &Point,
    ) {
        self.list.clear();
        self.beyond = false;
        let site = |node: usize| tables.sites.get(point.ids[node]);
        let clock = |site: &Site<P>| match explorer.clocks {
            Clocks::Shared => point.now,
            Clocks::Own => site.clock,
        };
        let befall = |node: usize, stimulus| Move::Befall { node, stimulus, now: clock(site(node)) };

        for letter in distinct(point.air(tables.nodes)) {
            let to = tables.letters.get(letter).to;
            let up = site(to).core.is_some();
            self.list.push(if up { befall(to, Stimulus::Letter(letter)) } else { Move::Miss(letter) });
        }
        for (command, twins) in twins.iter().enumerate() {
            // Of equal commands the first is given first: another order would be the same.
            if point.script >> command & 1 == 1 && point.script & twins == 0 {
                let node = explorer.script[command].0.0 as usize - 1;
                if site(node).core.is_some() {
                    self.list.push(befall(node, Stimulus::Command(command as u16)));
                }
            }
        }
        for node in 0..tables.nodes {
            let site = site(node);
            for (errand, content) in site.errands.iter().enumerate() {
                if errand > 0 && site.errands[errand - 1].print == content.print {
                    continue;
                }
                for outcome in 0..content.outcomes as u16 {
                    self.list.push(befall(node, Stimulus::Done { errand: errand as u16, outcome }));
                }
            }
            if !site.waiting.is_empty() {
                self.list.push(befall(node, Stimulus::Durable));
            }
        }
        self.time(explorer, tables, point);
        self.busy = !self.list.is_empty();

        let down = |node: &usize| site(*node).core.is_none();
        self.list.extend((0..tables.nodes).filter(down).map(|node| befall(node, Stimulus::Start)));
        if point.left.losses > 0 {
            self.list.extend(distinct(point.air(tables.nodes)).map(Move::Lose));
        }
        if point.left.duplicates > 0 {
            self.list.extend(distinct(point.air(tables.nodes)).map(Move::Double));
        }
        if point.left.crashes > 0 {
            let up = (0..tables.nodes).filter(|node| !down(node));
            self.list.extend(up.map(|node| befall(node, Stimulus::Crash)));
        }
    }

    /// Lists which timers may fire, and which clocks may advance.
    fn time<P: Explorable, M: Monitor<P>>(
        &mut self,
        explorer: &Explorer<P, M>,
        tables: &Tables<P, M>,
        point: &Point,
    ) {
        let due = |node: usize| tables.sites.get(point.ids[node]).timers.first().map(|(due, _)| *due);
        let shared = (0..tables.nodes).filter_map(due).min();
        for node in 0..tables.nodes {
            let Some(due) = due(node) else { continue };
            let now = match explorer.clocks {
                Clocks::Shared if Some(due) != shared => continue,
                Clocks::Shared => point.now,
                Clocks::Own => tables.sites.get(point.ids[node]).clock,
            };
            if due > explorer.limits.horizon {
                self.beyond = true;
            } else if due <= now || explorer.timers == Timers::First {
                self.list.push(Move::Befall { node, stimulus: Stimulus::Timer, now: due.max(now) });
            } else if explorer.clocks == Clocks::Own {
                self.list.push(Move::Befall { node, stimulus: Stimulus::Wait, now: due });
            } else {
                // The first node that is due speaks for all.
                self.list.push(Move::Pass(due));
                return;
            }
        }
    }
}

/// Each of the numbers once; they are in order.
fn distinct(numbers: &[u32]) -> impl Iterator<Item = u32> + '_ {
    let fresh = |place: &usize| *place == 0 || numbers[place - 1] != numbers[*place];
    (0..numbers.len()).filter(fresh).map(|place| numbers[place])
}
