//! `shoal demo`: a grid of real nodes on this machine, jobs of every kind, a node killed on the way, and an account of it.

use std::io::Read;
use std::time::Instant;

use serde::Serialize;
use shoal_api::{Client, JobStatus, LogQuery, Until};
use shoal_daemon::trust::user::Folder;
use shoal_model::{Job, Span};

use super::submit::submit_as;
use super::user::signs;
use super::wait::until_over;
use crate::context::Context;
use crate::error::Error;
use crate::grid::{Grid, Member, Shape};
use crate::job::Beside;
use crate::output::Table;
use crate::show::{self, Clock};

/// How long a plan is waited for.
const PLAN: Span = Span::from_secs(10);
/// The fewest nodes that the story needs: a gang of three, one of which dies, and a spare.
const NODES_LEAST: u16 = 4;

/// What kind of grid.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many nodes
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(i64::from(NODES_LEAST)..=64))]
    nodes: u16,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Account {
    nodes: u16,
    seconds: f64,
    jobs: Vec<Told>,
}

/// A job of the demo, and what it was for.
#[derive(Debug, Serialize)]
struct Told {
    kind: &'static str,
    job: JobStatus,
}

/// Says what happens, when it happens.
struct Voice(Instant);

impl Voice {
    fn say(&self, text: impl AsRef<str>) {
        eprintln!("{:6.2}s  {}", self.0.elapsed().as_secs_f64(), text.as_ref());
    }
}

/// Who plays it: a user with keys of their own, which are gone with the grid.
struct Player {
    voice: Voice,
    keys: Folder,
}

impl Player {
    fn submit(&self, client: &Client, job: Job, plan: Span) -> Result<JobStatus, Error> {
        submit_as(&self.keys, client, job, &Beside::default(), plan)
    }

    fn say(&self, text: impl AsRef<str>) {
        self.voice.say(text);
    }
}

/// Runs the demo.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let began = Instant::now();
    let voice = Voice(began);
    voice.say(format!("starting {} nodes, each a process of its own on this machine", arguments.nodes));
    let nodes = arguments.nodes.into();
    let mut grid = Grid::start(Shape { nodes, cores: 1, prefix: "shoal-demo-", settings: "" })?;
    let client = grid.node(0).client()?;
    voice.say("all of them know each other; none of them is the head");
    let player = Player { voice, keys: Folder::at(&grid.folder().join("user")) };

    let told = vec![
        single(&grid, &player)?,
        gang(&grid, &player)?,
        deadline(&client, &player)?,
        array(&client, &player)?,
        survivor(&mut grid, &client, &player)?,
    ];
    player.say("ending all nodes");
    drop(grid);

    let account = Account { nodes: arguments.nodes, seconds: began.elapsed().as_secs_f64(), jobs: told };
    context.output.print(&account, || table(&account))
}

fn shell(script: &str) -> Job {
    Job { limit: Some(Span::from_mins(1)), ..Job::command(["sh", "-c", script]) }
}

fn promised(client: &Client, job: Job, what: &str, player: &Player) -> Result<JobStatus, Error> {
    let status = player.submit(client, job, PLAN)?;
    player.say(format!("{what}: {}", show::promise(&status, &Clock::read())));
    Ok(status)
}

fn output(member: &Member, job: &JobStatus, rank: u32, player: &Player) -> Result<String, Error> {
    let client = member.client()?.signing(signs(player.keys.clone()));
    let mut text = String::new();
    client.logs(&job.id.to_string(), &LogQuery { rank, ..LogQuery::default() })?.read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// A job goes in at one node, and its output comes out at another.
fn single(grid: &Grid, player: &Player) -> Result<Told, Error> {
    let client = grid.node(1).client()?;
    let status =
        promised(&client, shell("echo hello from $SHOAL_NODELIST"), "a job, given to node 2", player)?;
    let ended = until_over(&client, &status.id.to_string())?;
    let said = output(grid.node(2), &ended, 0, player)?;
    player.say(format!("{}; node 3, asked for its output: {said}", ended.state));
    Ok(Told { kind: "single", job: ended })
}

/// Three nodes start together.
fn gang(grid: &Grid, player: &Player) -> Result<Told, Error> {
    let client = grid.node(0).client()?;
    let job = Job { nodes: 3.try_into().expect("some"), ..shell("echo rank $SHOAL_RANK of $SHOAL_NODES") };
    let status = promised(&client, job, "a gang of three", player)?;
    let ended = until_over(&client, &status.id.to_string())?;
    let said: Vec<String> =
        (0..3).map(|rank| output(grid.node(0), &ended, rank, player)).collect::<Result<_, _>>()?;
    let skew = ended.skew.map(|skew| skew.to_string()).unwrap_or_default();
    player.say(format!("{}, its ranks started {skew} apart: {}", ended.state, said.join(", ")));
    Ok(Told { kind: "gang", job: ended })
}

/// One that can be done by its deadline; one that cannot is refused at once.
fn deadline(client: &Client, player: &Player) -> Result<Told, Error> {
    let now = Clock::read().now();
    let late = Job { deadline: Some(now + Span::from_secs(1)), ..shell("sleep 1") };
    match player.submit(client, late, PLAN) {
        Err(refused) => {
            player.say(format!("a job that cannot end in time is refused: {}", refused.message()))
        }
        Ok(taken) => player.say(format!("a job that cannot end in time is {}", taken.state)),
    }
    let job = Job { deadline: Some(now + Span::from_mins(5)), ..shell("sleep 0.2") };
    let status = promised(client, job, "a job with a deadline in five minutes", player)?;
    Ok(Told { kind: "deadline", job: until_over(client, &status.id.to_string())? })
}

/// A job for each of forty indexes.
fn array(client: &Client, player: &Player) -> Result<Told, Error> {
    let indexes = "1-40".parse().map_err(|_| Error::internal("an array that makes no sense"))?;
    let job = Job { array: Some(Box::new(indexes)), ..shell("echo $SHOAL_ARRAY_INDEX") };
    player.say("an array of forty jobs");
    let status = player.submit(client, job, Span::ZERO)?;
    let ended = until_over(client, &status.id.to_string())?;
    player.say(format!("{}: all forty", ended.state));
    Ok(Told { kind: "array", job: ended })
}

/// A node is killed under a gang, which runs again on others; the node comes back.
fn survivor(grid: &mut Grid, client: &Client, player: &Player) -> Result<Told, Error> {
    // The first time it sleeps, the second time it ends.
    let script = "test $SHOAL_EPOCH -gt 1 || sleep 1000; echo epoch $SHOAL_EPOCH";
    let job = Job { nodes: 3.try_into().expect("some"), ..shell(script) };
    let status = promised(client, job, "a gang of three that takes long", player)?;
    let id = status.id.to_string();
    let runs = client.wait(&id, Until::Started, Span::from_secs(50))?;
    let own = client.info()?.node.id;
    let nodes = runs.planned.as_ref().map(|planned| planned.nodes.clone()).unwrap_or_default();
    let victim = nodes.iter().find(|node| **node != own).cloned();
    let victim = victim.ok_or_else(|| Error::internal("the gang has no place"))?;
    let member = grid.by_id(&victim)?;
    member.kill()?;
    player.say(format!("node {victim} was killed under it (kill -9)"));
    let ended = until_over(client, &id)?;
    let epoch = ended.planned.as_ref().map_or(0, |planned| planned.epoch);
    player.say(format!("its owner noticed, and placed it anew: {} with placement {epoch}", ended.state));
    member.up(None)?;
    player.say(format!("node {victim} was started again, and is back"));
    Ok(Told { kind: "gang, a node killed", job: ended })
}

fn table(account: &Account) -> Table {
    let clock = Clock::read();
    let mut table = Table::texts(["kind", "job", "state", "promised", "started", "nodes"])
        .titled(format!("{} nodes, {:.1} s", account.nodes, account.seconds));
    for Told { kind, job } in &account.jobs {
        let time =
            |at: Option<shoal_model::units::TimeText>| at.map_or_else(String::new, |at| clock.show(at.0));
        let nodes = job.planned.as_ref().map_or_else(String::new, |planned| show::nodes(&planned.nodes));
        table.row([
            (*kind).to_owned(),
            show::short(job),
            job.state.to_string(),
            time(job.promised),
            time(job.started),
            nodes,
        ]);
    }
    table
}
