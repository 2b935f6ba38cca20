//! Storms: many small grids, each with its own faults and jobs drawn from a seed; then all heals, and must come to rest.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::RngExt;
use shoal_model::job::{After, Ended, Mode};
use shoal_model::{Envelope, Job, JobId, Machine, Name, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::Shared;
use shoal_protocols::node::{Command, Gate, config};
use shoal_protocols::overlay::{self, can};

use super::denied;
use super::{Bounds, Broken, Checks, Run, Summary, Violation, run_checked};
use crate::faults::{self, Bursts, Churn, Clocks, Disks, NoiseLevel, Partitions, Slowness};
use crate::grid::{Config, Grid, NodeLike, Start};
use crate::network::{self, latency};
use crate::processes::command_taking;
use crate::streams::{Purpose, Stream, stream};

/// What came of many runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many there were.
    pub runs: u64,
    /// What happened in those in which all promises held.
    pub summary: Summary,
    /// The others, by seed.
    pub violations: BTreeMap<u64, Violation>,
}

/// Runs one storm for each seed on so many threads; `replay` says how to run a seed again.
pub fn storm<P: NodeLike>(
    seeds: Range<u64>,
    threads: usize,
    recipe: config::Recipe,
    replay: impl Fn(u64) -> String + Sync,
) -> Tally {
    storm_of::<P>(seeds, threads, |seed| Weather::draw_for(seed, recipe), replay)
}

/// The same, with any weather for each seed.
pub fn storm_of<P: NodeLike>(
    seeds: Range<u64>,
    threads: usize,
    weather: impl Fn(u64) -> Weather + Sync,
    replay: impl Fn(u64) -> String + Sync,
) -> Tally {
    let next = AtomicU64::new(seeds.start);
    let tally = Mutex::new(Tally { runs: seeds.end.saturating_sub(seeds.start), ..Tally::default() });
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    // Not by adding blindly: beyond the last number there is comes the first.
                    let take = |seed: u64| (seed < seeds.end).then(|| seed + 1);
                    let Ok(seed) = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) else {
                        return;
                    };
                    let result = run_weather::<P>(weather(seed), replay(seed));
                    let mut tally = tally.lock().expect("no run panics here: panics are violations");
                    match result {
                        Ok(summary) => tally.summary.add(&summary),
                        Err(violation) => {
                            tally.violations.insert(seed, violation);
                        }
                    }
                }
            });
        }
    });
    tally.into_inner().expect("no run panics here: panics are violations")
}

/// Runs the storm of one seed.
pub fn run_seed<P: NodeLike>(
    seed: u64,
    recipe: config::Recipe,
    replay: String,
) -> Result<Summary, Violation> {
    run_weather::<P>(Weather::draw_for(seed, recipe), replay)
}

/// Runs a storm. A panic is a violation too: an own broken invariant.
pub fn run_weather<P: NodeLike>(weather: Weather, replay: String) -> Result<Summary, Violation> {
    let seed = weather.seed;
    let run = || {
        let (mut grid, run) = weather.clone().build::<P>(replay.clone());
        run_checked(&mut grid, Checks::all(), &run)
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        let broken = Broken::new(Time::ZERO, format!("panicked: {text}"));
        Err(Violation { check: "assertions", broken, seed, replay: replay.clone() })
    })
}

/// By when jobs of a node that leaves are another's, once all is well.
const HANDED_OVER_WITHIN: Span = Span::from_mins(5);

/// What users of a storm find best.
const CRITERIA: [Option<&str>; 7] = [
    None,
    Some("soonest"),
    Some("closest"),
    Some("closest subject to wait <= 1h"),
    Some("near(here) + 0.1 * wait"),
    Some("domains"),
    Some("spread"),
];

/// All that a seed stands for.
#[derive(Clone, Debug)]
pub struct Weather {
    /// From which all chance flows.
    pub seed: u64,
    /// How many nodes there are.
    pub nodes: usize,
    /// How jobs find their places.
    pub recipe: config::Recipe,
    /// How nodes come to know each other.
    pub overlay: overlay::Config,
    /// What they are.
    pub machines: Vec<Machine>,
    /// How long messages take, in milliseconds.
    pub delay_ms: (f64, f64),
    /// How long a write takes.
    pub fsync: Span,
    /// What goes wrong.
    pub faults: faults::Config,
    /// What users ask for.
    pub asks: Vec<Ask>,
    /// Who is about to leave, and when that is said: it hands its jobs over, and stays.
    pub leavers: Vec<(Time, NodeId)>,
    /// Whether plans get better while jobs wait.
    pub eager: bool,
    /// Who may run where.
    pub gate: Gate,
    /// Whether each message is kept, for a look at what happened.
    pub story: bool,
}

/// What a user asks for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// When.
    pub at: Time,
    /// Of whom.
    pub node: NodeId,
    /// For what.
    pub envelope: Envelope,
    /// When the user asks for the same again, if ever.
    pub again: Option<Time>,
    /// When the user takes it back, if ever.
    pub cancel: Option<Time>,
    /// Whose the jobs are that it is to start after.
    pub after: Vec<(JobId, NodeId)>,
    /// From when to when the user holds it, if ever.
    pub hold: Option<(Time, Time)>,
}

impl Weather {
    /// What a seed stands for.
    pub fn draw(seed: u64) -> Weather {
        Weather::draw_plain(seed).with_wishes()
    }

    /// What a seed stands for where jobs find their places by a recipe.
    pub fn draw_for(seed: u64, recipe: config::Recipe) -> Weather {
        let weather = Weather::draw(seed).with_recipe(recipe).with_ways();
        match recipe {
            config::Recipe::Proactive(_) => weather.with_criteria().with_trains(),
            config::Recipe::Aria(_) => weather.with_leavers(),
            config::Recipe::TriPronged(_) => weather.with_leavers().with_residues(),
            config::Recipe::Sample(_) | config::Recipe::Asap(_) => weather.with_trains(),
        }
    }

    /// The same, but jobs find their places by this recipe, over the overlay that is usual for it.
    pub fn with_recipe(self, recipe: config::Recipe) -> Weather {
        Weather { recipe, overlay: recipe.usual_overlay(), ..self }
    }

    /// What a seed stands for where some machines' owners deny a user, from the start or from some time on.
    pub fn draw_owned(seed: u64) -> Weather {
        Weather::draw_plain(seed).with_owners().with_wishes()
    }

    /// Whether some owner denies a job that some user asks for.
    pub fn denies(&self) -> bool {
        let users = self.asks.iter().filter_map(|ask| ask.envelope.job().user.as_ref());
        let denied = |user: &Name| {
            let whom = self.machines.iter().filter_map(|machine| machine.labels.get(denied::DENIES));
            whom.into_iter().any(|name| name.as_str() == user.as_str())
        };
        users.into_iter().any(denied)
    }

    /// Owners of some machines, never of all, deny a user. Who leaves for good may be the last to allow a job, and a gang
    /// may need all: those are left alone.
    fn with_owners(mut self) -> Weather {
        let mut chance = stream(self.seed, Purpose::Storm, 3);
        let leaves = self.faults.churn.as_ref().is_some_and(|churn| churn.gone > 0.0);
        let name = |text: &str| text.parse::<Name>().expect("a name");
        let until = self.faults.until_s.unwrap_or(100.0) as u64;
        for machine in self.machines.iter_mut().skip(1).filter(|_| !leaves) {
            machine.labels.insert(name(denied::DENIES), "mallory".parse().expect("a line"));
            if chance.random() {
                let from = chance.random_range(20..until.max(21)).to_string();
                machine.labels.insert(name(denied::DENIES_FROM), from.parse().expect("a line"));
            }
        }
        for ask in &mut self.asks {
            let mut job = ask.envelope.job().clone();
            // One that must not run twice is lost where it is denied at its start.
            let alone = job.nodes.get() == 1 && job.mode() == Mode::Rerun;
            job.user = Some(name(if alone && chance.random() { "mallory" } else { "alice" }));
            ask.envelope = Envelope::new(job, ask.envelope.nonce()).expect("the job makes sense");
        }
        self.gate = denied::gate();
        self
    }

    /// Users ask for arrays, for jobs after others and for holds, and plans may get better.
    fn with_wishes(mut self) -> Weather {
        let mut chance = stream(self.seed, Purpose::Storm, 1);
        self.eager = chance.random();
        for number in 0..self.asks.len() {
            let after = number.checked_sub(1).filter(|_| chance.random_bool(0.2));
            let after = after.map(|last| &self.asks[chance.random_range(0..=last)]);
            let after = after.map(|ask| (ask.envelope.id(), ask.node));
            let ended = if chance.random() { Ended::Ok } else { Ended::Any };
            let array =
                chance.random_bool(0.15).then(|| ["1-4", "1-6%2", "3,5-9:2%1"][chance.random_range(0..3)]);
            let hold = chance.random_bool(0.15).then(|| {
                let from = Span::from_millis(chance.random_range(0..60_000));
                (from, from + Span::from_millis(chance.random_range(0..60_000)))
            });
            let ask = &mut self.asks[number];
            let job = Job {
                array: array.map(|array| Box::new(array.parse().expect("an array"))),
                after: after.map(|(job, _)| Box::new(After([(job, ended)].into()))),
                ..ask.envelope.job().clone()
            };
            ask.envelope = Envelope::new(job, ask.envelope.nonce()).expect("the job makes sense");
            ask.after = after.into_iter().collect();
            ask.hold = hold.map(|(from, to)| (ask.at + from, ask.at + to));
        }
        self
    }

    /// A node or two are about to leave, of at least three; where others are gone for good, one of at least six.
    fn with_leavers(mut self) -> Weather {
        let mut chance = stream(self.seed, Purpose::Storm, 4);
        let gone = self.faults.churn.as_ref().is_some_and(|churn| churn.gone > 0.0);
        let until = self.faults.until_s.unwrap_or(100.0) as u64;
        let most = if gone { usize::from(self.nodes > 5) } else { self.nodes - 2 };
        let count = chance.random_range(0..=2).min(most);
        let leaves = |_| {
            let at = Time::from_millis(chance.random_range(20_000..1_000 * until.max(21)));
            (at, NodeId(chance.random_range(1..=self.nodes as u64)))
        };
        self.leavers = (0..count).map(leaves).collect();
        self
    }

    /// In some, a user asks for an array of which most jobs take no time at all: they share places.
    fn with_trains(mut self) -> Weather {
        let mut chance = stream(self.seed, Purpose::Storm, 7);
        if !chance.random_bool(0.1) {
            return self;
        }
        let slow = ["0.2", "3", "20"][chance.random_range(0..3)];
        let every = chance.random_range(17..80).to_string();
        let job = Job {
            array: Some(Box::new("1-120".parse().expect("an array"))),
            retry: NonZeroU16::new(chance.random_range(0..2)),
            // Where plans do not get better, each waits until the time of the one before is over.
            limit: Some(Span::from_secs(25)),
            ..Job::command(["sometimes", slow, &every])
        };
        let at = Time::from_millis(chance.random_range(20_000..60_000));
        let later = |chance: &mut Stream| at + Span::from_millis(chance.random_range(0..20_000));
        let hold = chance.random_bool(0.2).then(|| later(&mut chance));
        let ask = Ask {
            at,
            node: NodeId(chance.random_range(1..=self.nodes as u64)),
            envelope: Envelope::new(job, Nonce([7; 16])).expect("the job makes sense"),
            again: None,
            cancel: chance.random_bool(0.2).then(|| later(&mut chance)),
            after: Vec::new(),
            hold: hold.map(|from| (from, from + Span::from_secs(10))),
        };
        self.asks.push(ask);
        self
    }

    /// In some, what is left of busy machines has a CAN of its own.
    fn with_residues(mut self) -> Weather {
        let dual = stream(self.seed, Purpose::Storm, 5).random_bool(0.3);
        if let overlay::Config::Can(can) = &mut self.overlay
            && dual
        {
            can.residue = can::Residue::Dual;
        }
        self
    }

    /// In some, nodes know each other by other ways than the usual one: all that carry the recipe.
    fn with_ways(mut self) -> Weather {
        let ways = self.recipe.overlays();
        let way = ways[stream(self.seed, Purpose::Storm, 6).random_range(0..ways.len())];
        self.overlay = self.recipe.overlay(way).expect("one that carries the recipe");
        self
    }

    /// Users say what is best, and which nodes will do; some jobs wait long enough to be moved.
    fn with_criteria(self) -> Weather {
        let mut chance = stream(self.seed, Purpose::Storm, 2);
        self.with_jobs(|at, job| {
            let criterion = CRITERIA[chance.random_range(0..CRITERIA.len())];
            job.criterion = criterion.map(|text| text.parse().expect("a criterion"));
            job.constraint = chance.random_bool(0.3).then(|| "cores >= 1".parse().expect("a constraint"));
            if chance.random_bool(0.3) && job.deadline.is_none() {
                job.begin = Some(at + Span::from_secs(chance.random_range(30..120)));
            }
        })
    }

    /// As bad as it may become: a fifth of all messages is lost, others are doubled and come late, nodes crash. Each job is
    /// one that every recipe can place: of one node.
    pub fn at_its_worst(mut self) -> Weather {
        self.faults.noise =
            Some(NoiseLevel { loss: 0.2, duplication: 0.1, reorder: 0.2, reorder_ms: 3_000.0 });
        self.faults.churn.get_or_insert(Churn {
            mean_time_to_failure_s: 300.0,
            mean_time_to_repair_s: 40.0,
            gone: 0.0,
            disk_lost: 0.0,
            midway: 0.5,
        });
        self.with_jobs(|_, job| job.nodes = NonZeroU32::MIN)
    }

    /// Other jobs, which get other ids.
    fn with_jobs(mut self, mut change: impl FnMut(Time, &mut Job)) -> Weather {
        let mut renamed: BTreeMap<JobId, JobId> = BTreeMap::new();
        for ask in &mut self.asks {
            let mut job = ask.envelope.job().clone();
            change(ask.at, &mut job);
            if let Some(after) = &mut job.after {
                after.0 = after
                    .0
                    .iter()
                    .map(|(id, ended)| (renamed.get(id).copied().unwrap_or(*id), *ended))
                    .collect();
            }
            for (id, _) in &mut ask.after {
                *id = renamed.get(id).copied().unwrap_or(*id);
            }
            let before = ask.envelope.id();
            ask.envelope = Envelope::new(job, ask.envelope.nonce()).expect("the job makes sense");
            renamed.insert(before, ask.envelope.id());
        }
        self
    }

    /// What a seed stood for when jobs had fewer wishes: the weather of seeds that once broke a promise.
    pub fn draw_plain(seed: u64) -> Weather {
        let mut chance = stream(seed, Purpose::Storm, 0);
        let nodes = chance.random_range(3..=12);
        let cores: Vec<u32> = (0..3).map(|_| chance.random_range(1..=4)).collect();
        let until_s = f64::from(chance.random_range(120..=400));
        let faults = draw_faults(until_s, &mut chance);
        // Offers that come after a second are too late for the recipe.
        let delay_ms = (5.0, f64::from(chance.random_range(20..=400)));
        let fsync = Span::from_micros(chance.random_range(0..20_000));
        // Whoever leaves for good leaves too few for the largest gangs.
        let leaves = faults.churn.as_ref().is_some_and(|churn| churn.gone > 0.0);
        let gang_most = if leaves { 1 } else { nodes.min(5) };
        let cores_most = cores.iter().copied().min().unwrap_or(1);
        let asks = (0..chance.random_range(5..=20))
            .map(|number| draw_ask(number, nodes, gang_most, cores_most, until_s, &mut chance))
            .collect();
        let machines =
            cores.into_iter().map(|cores| Machine::with_capacity(Resources::cores(cores))).collect();
        let recipe = config::Recipe::Sample(Default::default());
        Weather {
            seed,
            nodes,
            recipe,
            overlay: overlay::Config::default(),
            machines,
            delay_ms,
            fsync,
            faults,
            asks,
            leavers: Vec::new(),
            eager: false,
            gate: Gate::OPEN,
            story: false,
        }
    }

    /// The same, with each message kept.
    pub fn with_story(self) -> Weather {
        Weather { story: true, ..self }
    }

    /// The grid, with all that users will ask of it, and how it is to be watched.
    pub fn build<P: NodeLike>(self, replay: String) -> (Grid<P>, Run) {
        let Weather { seed, nodes, recipe, overlay, machines, delay_ms, fsync, faults, .. } = self;
        let Weather { asks, leavers, eager, gate, story, .. } = self;
        let (min_ms, max_ms) = delay_ms;
        let config = Config {
            seed,
            nodes,
            network: network::Config::calm(latency::Config::Uniform(latency::Uniform { min_ms, max_ms })),
            faults,
            fsync,
            overlay,
            start: Start::Join,
            work: config::Work {
                machine: machines[0].clone(),
                recipe,
                commit: Default::default(),
                heartbeat: Default::default(),
                limit_default: Span::from_mins(5),
                eager,
                gate,
            },
            machines,
            threads: 1,
            watch: true,
            story,
        };
        let mut grid: Grid<P> = Grid::build(config).expect("a storm's faults make sense");
        let bounds = Bounds::default();
        let healed_from = grid.healed_from();
        let until = healed_from + bounds.progress;
        for &(at, node) in &leavers {
            grid.world().command(at, node, Command::Drain);
        }
        for Ask { at, node, envelope, again, cancel, after, hold } in asks {
            let (job, envelope) = (envelope.id(), Shared::new(envelope));
            for at in [Some(at), again].into_iter().flatten() {
                let submit = match after.as_slice() {
                    [] => Command::Submit(envelope.clone()),
                    after => Command::SubmitAfter(envelope.clone(), after.into()),
                };
                grid.world().command(at, node, submit);
            }
            if let Some((from, to)) = hold {
                grid.world().command(from, node, Command::Hold(job));
                // Said twice, in case that the node was down.
                for at in [to, healed_from.max(to)] {
                    grid.world().command(at, node, Command::Release(job));
                }
                // Whoever has it by then: nobody can leave later than this.
                for heir in (1..=nodes as u64).filter(|_| !leavers.is_empty()) {
                    let at = healed_from.max(to) + HANDED_OVER_WITHIN;
                    grid.world().command(at, NodeId(heir), Command::Release(job));
                }
            }
            if let Some(cancel) = cancel {
                grid.world().command(cancel, node, Command::Cancel(job));
            }
        }
        let run = Run { seed, replay, step: Span::from_secs(1), bounds, until, stop_at_rest: true };
        (grid, run)
    }
}

/// Some kinds of fault, not all: what is rare in company is seen alone.
fn draw_faults(until_s: f64, chance: &mut Stream) -> faults::Config {
    let mut between = |least: f64, most: f64| least + chance.random::<f64>() * (most - least);
    let noise = NoiseLevel {
        loss: between(0.0, 0.15),
        duplication: between(0.0, 0.15),
        reorder: between(0.01, 0.2),
        reorder_ms: between(100.0, 4_000.0),
    };
    let mut churn = Churn {
        mean_time_to_failure_s: between(80.0, 500.0),
        mean_time_to_repair_s: between(2.0, 60.0),
        gone: 0.0,
        disk_lost: 0.0,
        midway: 0.5,
    };
    let bursts = Bursts {
        every_s: between(60.0, 300.0),
        share: between(0.2, 0.7),
        mean_time_to_repair_s: between(2.0, 40.0),
    };
    let partitions = Partitions {
        every_s: between(40.0, 200.0),
        length_s: between(2.0, 60.0),
        share_max: 0.5,
        one_way: 0.4,
    };
    let slow = Slowness { every_s: between(60.0, 300.0), length_s: 30.0, factor: between(2.0, 20.0) };
    let disks = Disks { every_s: between(60.0, 300.0), length_s: 30.0, fsync_ms: between(50.0, 1_500.0) };
    let clocks = Clocks {
        // All in all less than what nodes count on.
        offset_ms: between(0.0, 1_000.0),
        drift_ppm: between(0.0, 500.0) as u32,
        jump_every_s: Some(between(60.0, 300.0)),
        jump_ms: between(1.0, 400.0),
    };
    let rare = chance.random_range(0..10);
    churn.gone = if rare == 0 { 0.2 } else { 0.0 };
    churn.disk_lost = if rare == 1 { 0.2 } else { 0.0 };
    let mut often = || chance.random_bool(0.6);
    faults::Config {
        from_s: Some(20.0),
        until_s: Some(until_s),
        noise: often().then_some(noise),
        churn: often().then_some(churn),
        bursts: often().then_some(bursts),
        partitions: often().then_some(partitions),
        slow: often().then_some(slow),
        disks: often().then_some(disks),
        clocks: often().then_some(clocks),
        ..faults::Config::default()
    }
}

fn draw_ask(
    number: u8,
    nodes: usize,
    gang_most: usize,
    cores_most: u32,
    until_s: f64,
    chance: &mut Stream,
) -> Ask {
    let secs = |least: u64, most: u64, chance: &mut Stream| {
        Span::from_millis(chance.random_range(least * 1_000..=most * 1_000))
    };
    let at = Time::from_secs(15) + secs(0, until_s as u64, chance);
    let takes = match chance.random_range(0..4) {
        0 => Span::ZERO,
        1 => secs(0, 5, chance),
        _ => secs(5, 60, chance),
    };
    let overruns = chance.random_bool(0.1);
    let limit = if overruns { secs(1, 10, chance) } else { takes + secs(1, 30, chance) };
    let fails = chance.random_bool(0.15);
    let single = chance.random_bool(0.25);
    let retries = chance.random_range(0..=3);
    let begin = chance.random_bool(0.2).then(|| at + secs(0, 90, chance));
    let deadline = chance.random_bool(0.2).then(|| begin.unwrap_or(at) + limit + secs(1, 300, chance));
    let job = Job {
        nodes: chance.random_range(1..=gang_most as u32).try_into().expect("at least one"),
        resources: Resources::cores(chance.random_range(1..=cores_most)),
        limit: Some(limit),
        begin,
        deadline,
        retry: NonZeroU16::new(retries).filter(|_| !single),
        mode: single.then_some(Mode::AtMostOnce),
        ..if fails { Job::command(["false"]) } else { command_taking(takes) }
    };
    Ask {
        at,
        node: NodeId(chance.random_range(1..=nodes as u64)),
        envelope: Envelope::new(job, Nonce([number; 16])).expect("the job makes sense"),
        again: chance.random_bool(0.1).then(|| at + secs(0, 60, chance)),
        cancel: chance.random_bool(0.15).then(|| at + secs(0, 90, chance)),
        after: Vec::new(),
        hold: None,
    }
}
