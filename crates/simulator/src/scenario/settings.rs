//! What a scenario may say, and what of it makes sense together.

use std::borrow::Cow;

use serde::Deserialize;
use shoal_model::machine::{Labels, Speed};
use shoal_model::units::SpanText;
use shoal_model::{Architecture, Machine, Name, Resources, Span, System, Thousandths};
use shoal_protocols::commit::two_phase;
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::config::Recipe;
use shoal_protocols::overlay::{self, blatant_s, can, cyclon};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Scenario;
use super::document::{Document, Places};
use super::error::{self, Error};
use crate::grid::Start;
use crate::network::latency;
use crate::workload::profiles::{self, Profiles};
use crate::workload::{Slots, Source};
use crate::{faults, network};

/// More nodes than any machine can simulate; a number beyond is a slip of the finger.
const NODES_MAX: u64 = 100_000_000;
/// The most that one kind of machine counts for in the mix.
const SHARE_MAX: u32 = 1_000;
/// How long a write takes where nothing else is said: a good disk.
const FSYNC: Span = Span::from_millis(2);
/// How long nodes gossip before jobs come, counted from when the last of them starts.
const WARM_UP: Span = Span::from_secs(60);

/// What a hard limit has beyond the time that was asked for: enough for a save and for clocks that are a little off.
const LIMIT_SLACK: Span = Span::from_secs(1);

/// How long before its slot a job is submitted where nothing else is said.
const AHEAD: Span = Span::from_secs(2);

/// A scenario as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    about: Option<String>,
    #[serde(default = "one")]
    seed: u64,
    nodes: u64,
    #[serde(default)]
    machines: Vec<Kind>,
    profiles: Option<Profiles>,
    #[serde(default = "usual_network")]
    network: network::Config,
    #[serde(default)]
    overlay: overlay::Config,
    #[serde(default = "sample")]
    recipe: Recipe,
    #[serde(default)]
    commit: two_phase::Config,
    #[serde(default)]
    heartbeat: heartbeat::Config,
    #[serde(default)]
    eager: bool,
    #[serde(default)]
    start: Start,
    fsync: Option<SpanText>,
    workload: Source,
    slots: Option<Cut>,
    #[serde(default)]
    faults: faults::Config,
    warm_up: Option<SpanText>,
    limit_slack: Option<SpanText>,
    length: Option<SpanText>,
}

/// How time is cut.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cut {
    length: SpanText,
    ahead: Option<SpanText>,
    apart: Option<SpanText>,
}

/// Machines of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    /// How many of each round of dealing out.
    #[serde(default = "one_share")]
    share: u32,
    #[serde(default = "one_core")]
    capacity: Resources,
    #[serde(default)]
    speed: Speed,
    architecture: Option<Architecture>,
    system: Option<System>,
    organisation: Option<Name>,
    #[serde(default)]
    labels: Labels,
    #[serde(default)]
    refuses: std::collections::BTreeSet<Name>,
}

/// Reads and checks a scenario.
pub(super) fn read(mut document: Document<'_>, name: String) -> Result<Scenario, Error> {
    document.resolve_file(&["workload"]);
    document.resolve_file(&["network", "latency"]);
    let text = document.plain().to_string();
    let places = document.places();
    fit_jobs_to_grid(&mut document);
    refuse_wide_jobs(&mut document);
    name_recipe(&mut document);
    name_overlay(&mut document);
    let settings: Settings = error::read(&document)?;
    let Settings { about, seed, recipe, commit, network, workload, faults, .. } = settings;

    if i64::try_from(seed).is_err() {
        return Err(places.error("seed", format!("must be at most {}, not {seed}", i64::MAX)));
    }
    let nodes = nodes(settings.nodes, &places)?;
    let overlay = overlay(beneath(&recipe, settings.overlay, &places)?, nodes, &places)?;
    settings.heartbeat.check().map_err(|error| leading_field(&places, "heartbeat", &error.to_string()))?;
    check_commit(&commit, &places)?;
    check_recipe(&recipe, &places)?;
    let warm_up = match (settings.warm_up, settings.start) {
        (Some(SpanText(span)), _) => span,
        (None, Start::Join) => crate::grid::JOIN_GAP * nodes as u64 + WARM_UP,
        (None, Start::Graph | Start::Ants) => WARM_UP,
    };
    let slots = settings.slots.map(|cut| slots(&cut, warm_up, &recipe, &places)).transpose()?;
    Ok(Scenario {
        name,
        about,
        seed,
        nodes,
        machines: match settings.profiles {
            None => machines(settings.machines, &places)?,
            Some(_) if !settings.machines.is_empty() => {
                return Err(
                    places.error("profiles", "machines are drawn, or listed in `machines`: leave one out")
                );
            }
            // As many as there may ever be: who joins later is drawn after the first.
            Some(profiles) => draw(profiles, nodes, &faults, seed, &places)?,
        },
        network,
        overlay,
        start: settings.start,
        recipe,
        commit,
        heartbeat: settings.heartbeat,
        eager: settings.eager,
        fsync: settings.fsync.map_or(FSYNC, |SpanText(span)| span),
        workload,
        slots,
        faults,
        warm_up,
        limit_slack: settings.limit_slack.map_or(LIMIT_SLACK, |SpanText(span)| span),
        length: settings.length.map(|SpanText(span)| span),
        places,
        text,
    })
}

/// Jobs are for the grid of the scenario where they do not say for which.
///
/// A trace that is scaled to another grid has to know its own.
fn fit_jobs_to_grid(document: &mut Document<'_>) {
    let Some(nodes) = document.root.get_ref().get("nodes").cloned() else { return };
    let is_trace =
        document.get(&["workload", "kind"]).is_some_and(|kind| kind.get_ref().as_str() == Some("trace"));
    if is_trace && document.get(&["workload", "change", "scale_to_nodes"]).is_some() {
        return;
    }
    if let Some(workload) = document.table_mut(&["workload"])
        && !workload.contains_key("nodes")
    {
        workload.insert(Spanned::new(nodes.span(), Cow::Borrowed("nodes")), nodes);
    }
}

/// A trace with a job wider than the grid is refused where nothing is said: who drops such jobs should know.
fn refuse_wide_jobs(document: &mut Document<'_>) {
    let Some(kind) = document.get(&["workload", "kind"]).map(Spanned::span) else { return };
    let is_trace =
        document.get(&["workload", "kind"]).is_some_and(|kind| kind.get_ref().as_str() == Some("trace"));
    if let Some(workload) = document.table_mut(&["workload"])
        && is_trace
        && !workload.contains_key("too_wide")
    {
        let refuse = Spanned::new(kind.clone(), DeValue::String(Cow::Borrowed("refuse")));
        workload.insert(Spanned::new(kind, Cow::Borrowed("too_wide")), refuse);
    }
}

/// Writes `recipe = "x"` and `recipe = { name = "x", … }` as what they are read from: a table under its name.
fn name_recipe(document: &mut Document<'_>) {
    let root = document.root.get_mut();
    let Some(recipe) = root.get_mut("recipe") else { return };
    let span = recipe.span();
    let (name, settings) = match std::mem::replace(recipe.get_mut(), DeValue::Boolean(false)) {
        DeValue::String(name) => (Spanned::new(span.clone(), name), DeTable::new()),
        DeValue::Table(mut table) => match table.remove("name") {
            Some(name) if name.get_ref().is_str() => {
                let at = name.span();
                let name = name.get_ref().as_str().unwrap_or_default().to_owned();
                (Spanned::new(at, Cow::Owned(name)), table)
            }
            // Settings of the recipe that there is where none is named.
            None if !table.is_empty()
                && !table.keys().any(|key| Recipe::NAMES.contains(&&**key.get_ref())) =>
            {
                (Spanned::new(span.clone(), Cow::Borrowed(sample().name())), table)
            }
            other => {
                // Left as it is: the reader then says what it would have liked to find.
                table.extend(other.map(|name| (Spanned::new(span.clone(), Cow::Borrowed("name")), name)));
                *recipe.get_mut() = DeValue::Table(table);
                return;
            }
        },
        other => {
            *recipe.get_mut() = other;
            return;
        }
    };
    let settings = Spanned::new(span, DeValue::Table(settings));
    *recipe.get_mut() = DeValue::Table(DeTable::from_iter([(name, settings)]));
}

/// An overlay that names no kind is CYCLON.
fn name_overlay(document: &mut Document<'_>) {
    if let Some(overlay) = document.table_mut(&["overlay"])
        && !overlay.contains_key("kind")
    {
        let kind = DeValue::String(Cow::Borrowed("cyclon"));
        overlay.insert(Spanned::new(0..0, Cow::Borrowed("kind")), Spanned::new(0..0, kind));
    }
}

fn nodes(nodes: u64, places: &Places) -> Result<usize, Error> {
    match nodes {
        0 => Err(places.error("nodes", "must be at least 1: a grid has nodes")),
        1..=NODES_MAX => Ok(nodes as usize),
        _ => Err(places.error("nodes", format!("must be at most {NODES_MAX}, not {nodes}"))),
    }
}

/// The overlay beneath a recipe. One that stands on a CAN has one where a scenario names no kind, so that it can be run
/// with every recipe.
fn beneath(recipe: &Recipe, overlay: overlay::Config, places: &Places) -> Result<overlay::Config, Error> {
    match (recipe, overlay) {
        (Recipe::TriPronged(_), overlay::Config::Cyclon(_)) if !places.has("overlay.kind") => {
            Ok(can::Config::default().into())
        }
        (Recipe::TriPronged(_), overlay::Config::Cyclon(_) | overlay::Config::BlatantS(_)) => {
            Err(places.error("overlay.kind", "must be \"can\": the recipe tri-pronged finds places in one"))
        }
        (
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Aria(_) | Recipe::Proactive(_),
            overlay::Config::Can(can::Config { residue: can::Residue::Dual, .. }),
        ) => {
            let why = "must not be \"dual\": only the recipe tri-pronged looks for what is left of machines";
            Err(places.error("overlay.residue", why))
        }
        (
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Aria(_) | Recipe::Proactive(_),
            overlay::Config::Can(can::Config { shortcuts: true, .. }),
        ) => {
            let why = "must not be true: only the searches of the recipe tri-pronged go by shortcuts";
            Err(places.error("overlay.shortcuts", why))
        }
        (Recipe::TriPronged(_), overlay::Config::Can(_))
        | (Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Aria(_) | Recipe::Proactive(_), _) => Ok(overlay),
    }
}

/// The overlay, its defaults cut to the size of the grid; what was asked for and cannot be is an error.
fn overlay(overlay: overlay::Config, nodes: usize, places: &Places) -> Result<overlay::Config, Error> {
    match overlay {
        overlay::Config::Cyclon(overlay) => cyclon(overlay, nodes, places).map(overlay::Config::Cyclon),
        overlay::Config::BlatantS(overlay) => {
            overlay.check().map_err(|error: blatant_s::ConfigError| {
                leading_field(places, "overlay", &error.to_string())
            })?;
            Ok(overlay::Config::BlatantS(overlay))
        }
        overlay::Config::Can(overlay) => {
            overlay
                .check()
                .map_err(|error: can::ConfigError| leading_field(places, "overlay", &error.to_string()))?;
            Ok(overlay::Config::Can(overlay))
        }
    }
}

fn cyclon(mut overlay: cyclon::Config, nodes: usize, places: &Places) -> Result<cyclon::Config, Error> {
    let others = nodes - 1;
    if !places.has("overlay.cache") {
        overlay.cache = overlay.cache.min(u8::try_from(others.max(1)).unwrap_or(u8::MAX));
    } else if usize::from(overlay.cache) >= nodes {
        let what =
            format!("{} neighbours in a grid of {nodes} nodes: must be at most {others}", overlay.cache);
        return Err(places.error("overlay.cache", what));
    }
    if !places.has("overlay.shuffle") {
        overlay.shuffle = overlay.shuffle.min(overlay.cache);
    }
    overlay.check().map_err(|error| leading_field(places, "overlay", &error.to_string()))?;
    Ok(overlay)
}

fn check_commit(commit: &two_phase::Config, places: &Places) -> Result<(), Error> {
    let two_phase::Config { hold_ms, patience_ms, tries } = *commit;
    let zero = [("hold_ms", hold_ms), ("patience_ms", patience_ms), ("tries", tries.into())];
    match zero.into_iter().find(|(_, value)| *value == 0) {
        Some((field, _)) => Err(places.error(&format!("commit.{field}"), "must be at least 1")),
        None => Ok(()),
    }
}

fn check_recipe(recipe: &Recipe, places: &Places) -> Result<(), Error> {
    match recipe {
        Recipe::Sample(sample) if sample.wait_ms == 0 => {
            Err(places.error("recipe.wait_ms", "must be at least 1: offers take time"))
        }
        Recipe::Sample(_) => Ok(()),
        Recipe::Asap(asap) => asap.check().map_err(|error| places.error("recipe", error.to_string())),
        Recipe::Proactive(proactive) => {
            proactive.check().map_err(|error| leading_field(places, "recipe", &error.to_string()))
        }
        Recipe::Aria(aria) => {
            aria.check().map_err(|error| leading_field(places, "recipe", &error.to_string()))
        }
        Recipe::TriPronged(prongs) => {
            prongs.check().map_err(|error| leading_field(places, "recipe", &error.to_string()))
        }
    }
}

fn slots(cut: &Cut, warm_up: Span, recipe: &Recipe, places: &Places) -> Result<Slots, Error> {
    let or = |text: &Option<SpanText>, usual: Span| text.as_ref().map_or(usual, |SpanText(span)| *span);
    let slots =
        Slots { length: cut.length.0, ahead: or(&cut.ahead, AHEAD), apart: or(&cut.apart, Span::ZERO) };
    if slots.length == Span::ZERO {
        return Err(places.error("slots.length", "must be longer than nothing"));
    }
    if !warm_up.as_micros().is_multiple_of(slots.length.as_micros()) {
        return Err(places.error("warm_up", format!("must be whole slots of {}", slots.length)));
    }
    match recipe {
        Recipe::Asap(asap) if Span::from_millis(asap.slot_ms.into()) != slots.length => {
            let what = format!("must be that of the recipe, whose slot_ms is {}", asap.slot_ms);
            Err(places.error("slots.length", what))
        }
        Recipe::Asap(_)
        | Recipe::Sample(_)
        | Recipe::Aria(_)
        | Recipe::TriPronged(_)
        | Recipe::Proactive(_) => Ok(slots),
    }
}

fn draw(
    profiles: Profiles,
    nodes: usize,
    faults: &faults::Config,
    seed: u64,
    places: &Places,
) -> Result<Vec<Machine>, Error> {
    let plan = faults::Plan::generate(faults, nodes, seed).map_err(|error| match error {
        network::Error::Field { field, what } => places.error(&field, what),
        error => Error::Network(error),
    })?;
    Ok(profiles::machines(profiles, plan.nodes(), seed))
}

fn machines(kinds: Vec<Kind>, places: &Places) -> Result<Vec<Machine>, Error> {
    let mut machines = Vec::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let field = |name: &str| format!("machines.{number}.{name}");
        let Kind { share, capacity, speed, architecture, system, organisation, labels, refuses } = kind;
        if share == 0 || share > SHARE_MAX {
            return Err(places.error(&field("share"), format!("must be 1 to {SHARE_MAX}, not {share}")));
        }
        if capacity.cores < Thousandths::ONE {
            return Err(places.error(&field("capacity"), "has no core, and each job takes one on each node"));
        }
        let base = Machine::with_capacity(capacity);
        let machine = Machine {
            speed,
            architecture: architecture.unwrap_or_else(|| base.architecture.clone()),
            system: system.unwrap_or_else(|| base.system.clone()),
            organisation,
            labels,
            refuses,
            ..base
        };
        machines.extend(std::iter::repeat_n(machine, share as usize));
    }
    if machines.is_empty() {
        machines.push(Machine::with_capacity(one_core()));
    }
    Ok(machines)
}

/// The error of a layer, whose message begins with the field: `cache = 0: must be …`.
fn leading_field(places: &Places, table: &str, message: &str) -> Error {
    let (field, what) = message.split_once(" = ").unwrap_or(("", message));
    places.error(format!("{table}.{field}").trim_end_matches('.'), what)
}

fn usual_network() -> network::Config {
    network::Config::calm(latency::Config::Uniform(latency::Uniform { min_ms: 10.0, max_ms: 200.0 }))
}

fn sample() -> Recipe {
    Recipe::Sample(Default::default())
}

fn one_core() -> Resources {
    Resources::cores(1)
}

fn one() -> u64 {
    1
}

fn one_share() -> u32 {
    1
}
