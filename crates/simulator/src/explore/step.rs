//! Makes moves: from one state to the next, with what the monitor has to say about it.

use shoal_model::Time;

use super::moves::{Move, Moves};
use super::print::print;
use super::react::{Outward, Reaction, Reactions, Snap, Stimulus};
use super::report::Flaw;
use super::state::{Point, Site, State, Tables};
use super::{Clocks, Explorable, Explorer, Monitor, Rule, node_id};
use crate::world::{Saw, Sight};

/// Makes moves in the world of an explorer.
pub(super) struct Stepper<'e, P: Explorable, M> {
    pub explorer: &'e Explorer<P, M>,
    pub tables: Tables<P, M>,
    pub reactions: Reactions<P>,
    /// For each command, which earlier ones are the same.
    twins: Vec<u64>,
}

impl<'e, P: Explorable, M: Monitor<P>> Stepper<'e, P, M> {
    pub fn new(explorer: &'e Explorer<P, M>) -> Stepper<'e, P, M> {
        let nodes = explorer.configs.len();
        let prints: Vec<_> =
            explorer.script.iter().map(|(node, command)| print(5, &(node, command))).collect();
        let twins = prints.iter().enumerate().map(|(place, print)| {
            (0..place).filter(|&earlier| prints[earlier] == *print).fold(0, |mask, twin| mask | 1 << twin)
        });
        Stepper {
            explorer,
            tables: Tables::new(nodes),
            reactions: Reactions::new(nodes),
            twins: twins.collect(),
        }
    }

    /// The state in which all nodes are down and nothing has happened.
    pub fn blank(&mut self) -> Point {
        let Explorer { script, monitor, faults, configs, .. } = self.explorer;
        let script = u64::MAX.checked_shr(64 - script.len() as u32).unwrap_or(0);
        let monitor = self.tables.monitors.put(monitor.clone());
        let mut point = Point { script, monitor, left: *faults, ..Point::default() };
        for node in 0..configs.len() {
            let site = self.tables.sites.put(Site::new(node));
            point.ids.push(site);
            point.sum = point.sum.wrapping_add(self.tables.sites.print(site));
        }
        point
    }

    /// The moves that lead from the blank state to the first: all nodes start, in order.
    pub fn starts(&self) -> impl Iterator<Item = Move> + use<P, M> {
        (0..self.tables.nodes).map(|node| Move::Befall { node, stimulus: Stimulus::Start, now: Time::ZERO })
    }

    /// Lists what can happen in a state.
    pub fn moves(&self, point: &Point, moves: &mut Moves) {
        moves.list(self.explorer, &self.tables, &self.twins, point);
    }

    /// The number of the reaction that a move causes, if a node is to react.
    pub fn reaction(&mut self, point: &Point, made: Move) -> Option<u32> {
        let Move::Befall { node, stimulus, now } = made else { return None };
        Some(self.reactions.find(self.explorer, &mut self.tables, point.ids[node], stimulus, now))
    }

    /// In how many ways a crash can cut the reaction to a move short.
    pub fn cuts(&self, point: &Point, reaction: Option<u32>) -> usize {
        let reaction = reaction.filter(|_| point.left.crashes > 0);
        let cuts = |reaction: &Reaction<P>| reaction.cuts.len();
        reaction.and_then(|number| self.reactions.get(number).ok()).map_or(0, cuts)
    }

    /// How a crash cuts a reaction short.
    pub fn snap(&self, reaction: Option<u32>, cut: Option<usize>) -> Option<Snap> {
        Some(self.reactions.get(reaction?).ok()?.cuts[cut?])
    }

    /// Makes a move, cut short or not.
    pub fn make(
        &mut self,
        point: &mut Point,
        made: Move,
        reaction: Option<u32>,
        cut: Option<usize>,
    ) -> Result<(), Flaw> {
        match made {
            Move::Miss(letter) => point.take_letter(&self.tables, letter),
            Move::Pass(now) => point.now = now,
            Move::Lose(letter) => {
                point.left.losses -= 1;
                point.take_letter(&self.tables, letter);
            }
            Move::Double(letter) => {
                point.left.duplicates -= 1;
                point.add_letter(&self.tables, letter);
            }
            Move::Befall { node, stimulus, now } => {
                match stimulus {
                    Stimulus::Letter(letter) => point.take_letter(&self.tables, letter),
                    Stimulus::Command(command) => point.script &= !(1 << command),
                    Stimulus::Crash => point.left.crashes -= 1,
                    _ => {}
                }
                if self.explorer.clocks == Clocks::Shared {
                    point.now = now;
                }
                let reaction = self.reactions.get(reaction.expect("a node that something befalls reacts"));
                let reaction = reaction.map_err(|why| Flaw::new("cores do not panic", why))?;
                let Some(cut) = cut else {
                    point.set_site(&self.tables, node, reaction.site);
                    return effects(&mut self.tables, point, &reaction.effects);
                };
                let Snap { left, site, .. } = reaction.cuts[cut];
                point.left.crashes -= 1;
                point.set_site(&self.tables, node, site);
                effects(&mut self.tables, point, &reaction.effects[..usize::from(left)])?;
                let crash = Outward::See(Sight { at: now, node: node_id(node), saw: Saw::Crash });
                return effects(&mut self.tables, point, &[crash]);
            }
        }
        Ok(())
    }

    /// What the numbers of a state stand for.
    pub fn state<'a>(&'a self, point: &'a Point) -> State<'a, P, M> {
        State { tables: &self.tables, point, clocks: self.explorer.clocks }
    }

    /// Asks the rules that hold always.
    pub fn always(&self, point: &Point) -> Result<(), Flaw> {
        self.obey(point, &self.explorer.always)
    }

    /// Asks the rules that hold when nothing happens any more.
    pub fn at_rest(&self, point: &Point) -> Result<(), Flaw> {
        self.obey(point, &self.explorer.at_rest)
    }

    fn obey(&self, point: &Point, rules: &[(String, Rule<P, M>)]) -> Result<(), Flaw> {
        let state = self.state(point);
        rules.iter().try_for_each(|(name, rule)| rule(&state).map_err(|why| Flaw::new(name, &why)))
    }
}

/// Puts what left a node into the world.
fn effects<P: Explorable, M: Monitor<P>>(
    tables: &mut Tables<P, M>,
    point: &mut Point,
    effects: &[Outward<P>],
) -> Result<(), Flaw> {
    let mut monitor = None;
    for effect in effects {
        match effect {
            Outward::Send(letter) => point.add_letter(tables, *letter),
            Outward::See(sight) => {
                let monitor = monitor.get_or_insert_with(|| tables.monitors.get(point.monitor).clone());
                monitor.see(sight).map_err(|why| Flaw::new("monitor", &why))?;
            }
        }
    }
    if let Some(monitor) = monitor {
        point.monitor = tables.monitors.put(monitor);
    }
    Ok(())
}
