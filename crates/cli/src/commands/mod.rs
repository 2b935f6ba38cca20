//! The commands, in the shape of the command tree: a folder for each that has commands of its own.

mod act;
mod audit;
mod bench;
mod calendar;
mod completions;
mod connect;
mod demo;
mod doctor;
mod get;
mod leave;
mod logs;
mod man;
mod node;
mod nodes;
mod org;
mod policy;
mod queue;
mod run;
mod sim;
mod status;
mod submit;
mod supervise;
mod ticket;
pub mod user;
mod wait;
mod why;

use std::process::ExitCode;

use crate::context::Context;
use crate::error::Error;
use crate::later::Later;

/// What can be asked for.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show it: a grid of real nodes on this machine, jobs of every kind, a node killed on the way
    Demo(Later<demo::Arguments>),
    /// Run this machine's node: a new grid of one, or the one that its folder knows
    Node(Later<node::Arguments>),
    /// Print a ticket with which another machine joins
    Ticket(Later<ticket::Arguments>),
    /// Have commands on this machine ask a node on another one; without an address, tell how this node is reached
    Connect(Later<connect::Arguments>),
    /// Have the node take no more jobs, and end once those that it has are over
    Leave(Later<leave::Arguments>),
    /// Your key, and what shows whose it is
    #[command(subcommand)]
    User(Later<user::Command>),
    /// Organisations: their keys, whom they admit, who trusts them
    #[command(subcommand)]
    Org(Later<org::Command>),
    /// What this machine's owner allows
    #[command(subcommand)]
    Policy(Later<policy::Command>),
    /// Show what was done on this node and for whom, or check that nobody has changed it
    Audit(Later<audit::Arguments>),
    /// Sum up what users or organisations have used of the grid
    Usage(Later<audit::UsageArguments>),
    /// Submit a job, show its output, and end with its exit code
    Run(Later<run::Arguments>),
    /// Submit a job, and print its id, its planned start and its nodes
    Submit(Later<submit::Arguments>),
    /// Show a job, or the last ones
    Status(Later<status::Arguments>),
    /// Print what a job writes
    Logs(Later<logs::Arguments>),
    /// Fetch the files that a job left behind (`--out`)
    Get(Later<get::Arguments>),
    /// Wait until jobs are over, and end with their exit code
    Wait(Later<wait::Arguments>),
    /// Take jobs back
    Cancel(Later<act::Arguments>),
    /// Keep jobs from starting
    Hold(Later<act::Arguments>),
    /// Let jobs start that were held
    Release(Later<act::Arguments>),
    /// Say why a job is where it is
    Why(Later<why::Arguments>),
    /// List the nodes of the grid
    Nodes,
    /// List the jobs that have not ended, by their start
    Queue(Later<queue::Arguments>),
    /// Show what is reserved on a node
    Calendar(Later<calendar::Arguments>),
    /// Simulate a grid
    #[command(subcommand)]
    Sim(Later<sim::Command>),
    /// Measure how fast this program is
    #[command(subcommand)]
    Bench(Later<bench::Command>),
    /// Look a node's data folder and its machine over, and say what to do
    Doctor,
    /// Print completions for a shell
    Completions(Later<completions::Arguments>),
    /// Print the manual, or write a page for each command
    Man(Later<man::Arguments>),
    /// Run the tasks of a node; a node starts this by itself
    #[command(hide = true)]
    Supervise(Later<supervise::Arguments>),
}

impl Command {
    /// Does it, and says what the program ends with.
    pub fn run(self, context: &Context) -> Result<ExitCode, Error> {
        let output = context.output;
        match self {
            Command::Demo(Later(arguments)) => demo::run(&arguments, context)?,
            Command::Node(Later(arguments)) => node::run(arguments, context)?,
            Command::Ticket(Later(arguments)) => ticket::run(&arguments, context)?,
            Command::Connect(Later(arguments)) => connect::run(&arguments, context)?,
            Command::Leave(Later(arguments)) => leave::run(&arguments, context)?,
            Command::User(Later(command)) => command.run(context)?,
            Command::Org(Later(command)) => command.run(context)?,
            Command::Policy(Later(command)) => command.run(context)?,
            Command::Audit(Later(arguments)) => audit::run(&arguments, context)?,
            Command::Usage(Later(arguments)) => audit::usage(&arguments, context)?,
            Command::Run(Later(arguments)) => return run::run(arguments, context),
            Command::Submit(Later(arguments)) => submit::run(arguments, context)?,
            Command::Status(Later(arguments)) => status::run(&arguments, context)?,
            Command::Logs(Later(arguments)) => logs::run(&arguments, context)?,
            Command::Get(Later(arguments)) => get::run(&arguments, context)?,
            Command::Wait(Later(arguments)) => return wait::run(&arguments, context),
            Command::Cancel(Later(arguments)) => act::cancel(&arguments, context)?,
            Command::Hold(Later(arguments)) => act::hold(&arguments, context)?,
            Command::Release(Later(arguments)) => act::release(&arguments, context)?,
            Command::Why(Later(arguments)) => why::run(&arguments, context)?,
            Command::Nodes => nodes::run(context)?,
            Command::Queue(Later(arguments)) => queue::run(&arguments, context)?,
            Command::Calendar(Later(arguments)) => calendar::run(&arguments, context)?,
            Command::Sim(Later(command)) => command.run(output)?,
            Command::Bench(Later(command)) => command.run(output)?,
            Command::Doctor => return doctor::run(context),
            Command::Completions(Later(arguments)) => completions::run(&arguments),
            Command::Man(Later(arguments)) => man::run(&arguments)?,
            Command::Supervise(Later(arguments)) => return Ok(supervise::run(&arguments)),
        }
        Ok(ExitCode::SUCCESS)
    }
}
