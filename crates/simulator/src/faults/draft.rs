//! Makes a plan out of a configuration: each random process draws from streams of its own.

use std::collections::BTreeMap;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};
use shoal_model::{Span, Time};

use super::config::{Bursts, Churn, Clocks, Config, Disks, Joins, Listed, NoiseLevel, Partitions, Slowness};
use super::outage::{self, Outage};
use super::{Disk, Event, Fault, Plan};
use crate::clock::{Change, DRIFT_PPM_MAX};
use crate::network::partition::{Cut, Direction, Side};
use crate::network::quantity::{Factor, Odds, delay, instant, span, up_to};
use crate::network::{Error, Noise};
use crate::streams::{Purpose, key, stream};
use crate::timetable::Spell;

/// The most faults that a plan holds.
const FAULTS_MAX: usize = 10_000_000;
/// A crash midway comes after fewer effects than this; inputs with more are rare.
const EFFECTS_MIDWAY: u32 = 8;

pub(super) fn generate(config: &Config, nodes: usize, seed: u64) -> Result<Plan, Error> {
    let config = config.spelt_out();
    let from = instant("faults.from_s", config.from_s.unwrap_or_default())?;
    let until = instant("faults.until_s", config.until_s.unwrap_or_default())?;
    if until <= from {
        return Err(Error::field(
            "faults.until_s",
            format!("must be later than from_s: {until} after {from}"),
        ));
    }

    let mut draft = Draft::new(from, until, nodes, seed);
    // Joins come first: whoever joins can suffer the rest.
    draft.join(config.joins.as_ref(), &config.events)?;
    if let Some(noise) = &config.noise {
        draft.add_noise(noise)?;
    }
    if let Some(churn) = &config.churn {
        draft.add_churn(churn)?;
    }
    if let Some(bursts) = &config.bursts {
        draft.add_bursts(bursts)?;
    }
    if let Some(partitions) = &config.partitions {
        draft.add_partitions(partitions)?;
    }
    if let Some(slow) = &config.slow {
        draft.add_slowness(slow)?;
    }
    if let Some(disks) = &config.disks {
        draft.add_disks(disks)?;
    }
    if let Some(clocks) = &config.clocks {
        draft.add_clocks(clocks)?;
    }
    for (index, listed) in (0..).zip(&config.events) {
        draft.add_listed(index, listed)?;
    }
    Ok(draft.finish())
}

/// A plan in the making.
struct Draft {
    from: Time,
    until: Time,
    seed: u64,
    /// When each node starts.
    born: Vec<Time>,
    outages: BTreeMap<usize, Vec<Outage>>,
    events: Vec<Event>,
    offsets_us: BTreeMap<usize, i64>,
    faults: usize,
}

impl Draft {
    fn new(from: Time, until: Time, nodes: usize, seed: u64) -> Draft {
        Draft {
            from,
            until,
            seed,
            born: vec![Time::ZERO; nodes],
            outages: BTreeMap::new(),
            events: Vec::new(),
            offsets_us: BTreeMap::new(),
            faults: 0,
        }
    }

    fn finish(mut self) -> Plan {
        for (node, outages) in self.outages {
            self.events.extend(outage::events(node, outages));
        }
        // Stable: what was drafted first happens first.
        self.events.sort_by_key(|event| event.at);
        Plan { nodes: self.born.len(), events: self.events, offsets_us: self.offsets_us }
    }

    fn join(&mut self, joins: Option<&Joins>, listed: &[Listed]) -> Result<(), Error> {
        let mut times = Vec::new();
        for (index, fault) in (0..).zip(listed) {
            if let Listed::Join { at_s } = fault {
                times.push(instant(&listed_field(index, "at_s"), *at_s)?);
            }
        }
        if let Some(Joins { every_s, regular }) = joins {
            let every = span("faults.joins.every_s", *every_s)?;
            let mut chance = stream(self.seed, Purpose::Joins, 0);
            let mut gap = || if *regular { every } else { wait(every, &mut chance) };
            let mut at = self.from + if *regular { Span::ZERO } else { gap() };
            while at < self.until {
                self.count("faults.joins.every_s")?;
                times.push(at);
                at += gap();
            }
        }
        times.sort_unstable();
        for at in times {
            self.events.push(Event { at, fault: Fault::Join { node: self.born.len() } });
            self.born.push(at);
        }
        Ok(())
    }

    fn add_noise(&mut self, level: &NoiseLevel) -> Result<(), Error> {
        let NoiseLevel { loss, duplication, reorder, reorder_ms } = *level;
        let noise = Noise::parse("faults.noise", loss, duplication, reorder, reorder_ms)?;
        self.events.push(Event { at: self.from, fault: Fault::Storm { until: self.until, noise } });
        Ok(())
    }

    fn add_churn(&mut self, churn: &Churn) -> Result<(), Error> {
        let failure = span("faults.churn.mean_time_to_failure_s", churn.mean_time_to_failure_s)?;
        let repair = span("faults.churn.mean_time_to_repair_s", churn.mean_time_to_repair_s)?;
        let gone = Odds::parse("faults.churn.gone", churn.gone)?;
        let disk_lost = Odds::parse("faults.churn.disk_lost", churn.disk_lost)?;
        let midway = Odds::parse("faults.churn.midway", churn.midway)?;

        for node in 0..self.born.len() {
            let mut chance = stream(self.seed, Purpose::Churn, node as u64);
            let mut at = self.start(node) + wait(failure, &mut chance);
            while at < self.until {
                self.count("faults.churn.mean_time_to_failure_s")?;
                let gone = gone.hit(&mut chance);
                let disk = if disk_lost.hit(&mut chance) { Disk::Lost } else { Disk::Kept };
                let after_effects = midway.hit(&mut chance).then(|| up_to(EFFECTS_MIDWAY - 1, &mut chance));
                let repaired = (at + wait(repair, &mut chance)).min(self.until);
                let until = if gone { Time::NEVER } else { repaired };
                self.take_down(node, Outage { from: at, until, after_effects, disk });
                at = until + wait(failure, &mut chance);
            }
        }
        Ok(())
    }

    fn add_bursts(&mut self, bursts: &Bursts) -> Result<(), Error> {
        let every = span("faults.bursts.every_s", bursts.every_s)?;
        let repair = span("faults.bursts.mean_time_to_repair_s", bursts.mean_time_to_repair_s)?;
        Odds::parse("faults.bursts.share", bursts.share)?;

        let mut times = stream(self.seed, Purpose::Bursts, 0);
        let mut at = self.from + wait(every, &mut times);
        let mut burst = 1;
        while at < self.until {
            let own = key(self.seed, Purpose::Bursts, burst);
            let struck = Side::draw(self.born.len(), bursts.share, own);
            for node in (0..self.born.len()).filter(|&node| struck.has(node)) {
                if at < self.born[node] {
                    continue;
                }
                self.count("faults.bursts.every_s")?;
                let mut chance = stream(own, Purpose::Bursts, node as u64);
                let until = (at + wait(repair, &mut chance)).min(self.until);
                self.take_down(node, Outage { from: at, until, after_effects: None, disk: Disk::Kept });
            }
            at += wait(every, &mut times);
            burst += 1;
            self.count("faults.bursts.every_s")?;
        }
        Ok(())
    }

    fn add_partitions(&mut self, partitions: &Partitions) -> Result<(), Error> {
        let every = span("faults.partitions.every_s", partitions.every_s)?;
        let length = span("faults.partitions.length_s", partitions.length_s)?;
        let one_way = Odds::parse("faults.partitions.one_way", partitions.one_way)?;
        Odds::parse("faults.partitions.share_max", partitions.share_max)?;

        let mut times = stream(self.seed, Purpose::Partitions, 0);
        let mut from = self.from + wait(every, &mut times);
        let mut index = 1;
        while from < self.until {
            self.count("faults.partitions.every_s")?;
            let own = key(self.seed, Purpose::Partitions, index);
            let mut chance = stream(own, Purpose::Partitions, 0);
            let until = (from + wait(length, &mut chance)).min(self.until);
            let direction = match (one_way.hit(&mut chance), chance.random()) {
                (false, _) => Direction::Both,
                (true, true) => Direction::Out,
                (true, false) => Direction::In,
            };
            let nodes = self.born.len();
            // At least one node: a cut between some and none is no cut.
            let share = (chance.random::<f64>() * partitions.share_max).max(1.0 / nodes.max(1) as f64);
            let side = Side::draw(nodes, share, own);
            let cut = Cut { name: format!("cut {index}"), from, until, side, direction };
            self.events.push(Event { at: from, fault: Fault::Cut(cut) });
            from += wait(every, &mut times);
            index += 1;
        }
        Ok(())
    }

    fn add_slowness(&mut self, slow: &Slowness) -> Result<(), Error> {
        let every = span("faults.slow.every_s", slow.every_s)?;
        let length = span("faults.slow.length_s", slow.length_s)?;
        let value = Factor::parse("faults.slow.factor", slow.factor)?;
        self.add_spells("faults.slow.every_s", Purpose::Slowness, every, length, |node, from, until| {
            Fault::Slow(Spell { node, from, until, value })
        })
    }

    fn add_disks(&mut self, disks: &Disks) -> Result<(), Error> {
        let every = span("faults.disks.every_s", disks.every_s)?;
        let length = span("faults.disks.length_s", disks.length_s)?;
        let value = Span::from_micros(u64::from(delay("faults.disks.fsync_ms", disks.fsync_ms)?));
        self.add_spells("faults.disks.every_s", Purpose::Disks, every, length, |node, from, until| {
            Fault::SlowDisk(Spell { node, from, until, value })
        })
    }

    fn add_spells(
        &mut self,
        field: &str,
        purpose: Purpose,
        every: Span,
        length: Span,
        fault: impl Fn(usize, Time, Time) -> Fault,
    ) -> Result<(), Error> {
        for node in 0..self.born.len() {
            let mut chance = stream(self.seed, purpose, node as u64);
            let mut from = self.start(node) + wait(every, &mut chance);
            while from < self.until {
                self.count(field)?;
                let until = (from + wait(length, &mut chance)).min(self.until);
                self.events.push(Event { at: from, fault: fault(node, from, until) });
                from = until + wait(every, &mut chance);
            }
        }
        Ok(())
    }

    fn add_clocks(&mut self, clocks: &Clocks) -> Result<(), Error> {
        let offset_us = delay("faults.clocks.offset_ms", clocks.offset_ms)?;
        let jump_us = delay("faults.clocks.jump_ms", clocks.jump_ms)?;
        let jump_every =
            clocks.jump_every_s.map(|every| span("faults.clocks.jump_every_s", every)).transpose()?;
        if jump_every.is_some() != (jump_us > 0) {
            return Err(Error::field(
                "faults.clocks.jump_ms",
                "goes with `jump_every_s`: set both, or neither",
            ));
        }
        let drift_ppm = i32::try_from(clocks.drift_ppm).unwrap_or(i32::MAX);
        check_drift("faults.clocks.drift_ppm", drift_ppm)?;

        for node in 0..self.born.len() {
            let mut chance = stream(self.seed, Purpose::Clocks, node as u64);
            let offset = up_to(offset_us, &mut chance);
            if offset > 0 {
                self.offsets_us.insert(node, i64::from(offset));
            }
            let ppm = chance.random_range(-drift_ppm..=drift_ppm);
            if ppm != 0 {
                self.count("faults.clocks.drift_ppm")?;
                self.drift(node, self.from, self.until, ppm);
            }
            let Some(every) = jump_every else { continue };
            let mut at = self.from + wait(every, &mut chance);
            while at < self.until {
                self.count("faults.clocks.jump_every_s")?;
                let by_us = chance.random_range(-i64::from(jump_us)..=i64::from(jump_us));
                self.events.push(Event { at, fault: Fault::Clock { node, change: Change::Jump { by_us } } });
                at += wait(every, &mut chance);
            }
        }
        Ok(())
    }

    fn add_listed(&mut self, index: u64, listed: &Listed) -> Result<(), Error> {
        let field = |name: &str| listed_field(index, name);
        let while_from = |at_s: f64, for_s: f64| -> Result<(Time, Time), Error> {
            let from = instant(&field("at_s"), at_s)?;
            Ok((from, from + span(&field("for_s"), for_s)?))
        };
        match listed {
            Listed::Crash { at_s, node, for_s, disk, after_effects } => {
                let (from, until) = while_from(*at_s, *for_s)?;
                let node = self.known(&field("node"), *node, from)?;
                self.take_down(node, Outage { from, until, after_effects: *after_effects, disk: *disk });
            }
            Listed::Leave { at_s, node } => {
                let from = instant(&field("at_s"), *at_s)?;
                let node = self.known(&field("node"), *node, from)?;
                let disk = Disk::Lost;
                self.take_down(node, Outage { from, until: Time::NEVER, after_effects: None, disk });
            }
            // Already there.
            Listed::Join { .. } => {}
            Listed::Slow { at_s, node, for_s, factor } => {
                let (from, until) = while_from(*at_s, *for_s)?;
                let node = self.known(&field("node"), *node, from)?;
                let value = Factor::parse(&field("factor"), *factor)?;
                self.events.push(Event { at: from, fault: Fault::Slow(Spell { node, from, until, value }) });
            }
            Listed::SlowDisk { at_s, node, for_s, fsync_ms } => {
                let (from, until) = while_from(*at_s, *for_s)?;
                let node = self.known(&field("node"), *node, from)?;
                let value = Span::from_micros(u64::from(delay(&field("fsync_ms"), *fsync_ms)?));
                self.events
                    .push(Event { at: from, fault: Fault::SlowDisk(Spell { node, from, until, value }) });
            }
            Listed::Drift { at_s, node, for_s, ppm } => {
                let (from, until) = while_from(*at_s, *for_s)?;
                let node = self.known(&field("node"), *node, from)?;
                check_drift(&field("ppm"), *ppm)?;
                self.drift(node, from, until, *ppm);
            }
            Listed::Jump { at_s, node, by_ms } => {
                let at = instant(&field("at_s"), *at_s)?;
                let node = self.known(&field("node"), *node, at)?;
                let size = i64::from(delay(&field("by_ms"), by_ms.abs())?);
                let by_us = if *by_ms < 0.0 { -size } else { size };
                self.events.push(Event { at, fault: Fault::Clock { node, change: Change::Jump { by_us } } });
            }
            Listed::Cut { at_s, for_s, name, group, direction } => {
                let (from, until) = while_from(*at_s, *for_s)?;
                let own = key(key(self.seed, Purpose::Partitions, 0), Purpose::Partitions, index);
                let side = group.build(&field("group"), self.born.len(), own)?;
                let cut = Cut { name: name.clone(), from, until, side, direction: *direction };
                self.events.push(Event { at: from, fault: Fault::Cut(cut) });
            }
        }
        Ok(())
    }

    fn drift(&mut self, node: usize, from: Time, until: Time, ppm: i32) {
        for (at, ppm) in [(from, ppm), (until, 0)] {
            self.events.push(Event { at, fault: Fault::Clock { node, change: Change::Drift { ppm } } });
        }
    }

    fn take_down(&mut self, node: usize, outage: Outage) {
        self.outages.entry(node).or_default().push(outage);
    }

    /// When random faults of this node begin.
    fn start(&self, node: usize) -> Time {
        self.from.max(self.born[node])
    }

    fn known(&self, field: &str, node: usize, at: Time) -> Result<usize, Error> {
        match self.born.get(node) {
            None => {
                let nodes = self.born.len();
                Err(Error::field(field, format!("node {node} is not among the {nodes}, which count from 0")))
            }
            Some(&born) if at < born => Err(Error::field(
                field,
                format!("node {node} joins only at {born}, after this fault at {at}"),
            )),
            Some(_) => Ok(node),
        }
    }

    /// Counts a random fault, so that a rate out of all proportion is refused before memory is full.
    fn count(&mut self, field: &str) -> Result<(), Error> {
        self.faults += 1;
        if self.faults > FAULTS_MAX {
            let what = format!("gives more than {FAULTS_MAX} faults: make it longer, or the window shorter");
            return Err(Error::field(field, what));
        }
        Ok(())
    }
}

fn listed_field(index: u64, name: &str) -> String {
    format!("faults.events[{index}].{name}")
}

fn check_drift(field: &str, ppm: i32) -> Result<(), Error> {
    if !(-DRIFT_PPM_MAX..=DRIFT_PPM_MAX).contains(&ppm) {
        return Err(Error::field(field, format!("must be at most {DRIFT_PPM_MAX} either way, not {ppm}")));
    }
    Ok(())
}

/// How long it takes until something happens that happens at random, all instants alike.
fn wait(mean: Span, chance: &mut impl Rng) -> Span {
    let times: f64 = Exp1.sample(chance);
    // The conversion stops at the ends of its type. At least one step, so that time goes on.
    Span::from_micros(((mean.as_micros() as f64 * times) as u64).max(1))
}
