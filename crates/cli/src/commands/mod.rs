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

/// What can be asked for.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show it: a grid of real nodes on this machine, jobs of every kind, a node killed on the way
    Demo(demo::Arguments),
    /// Run this machine's node: a new grid of one, or the one that its folder knows
    Node(node::Arguments),
    /// Print a ticket with which another machine joins
    Ticket(ticket::Arguments),
    /// Have commands on this machine ask a node on another one; without an address, tell how this node is reached
    Connect(connect::Arguments),
    /// Have the node take no more jobs, and end once those that it has are over
    Leave(leave::Arguments),
    /// Your key, and what shows whose it is
    #[command(subcommand)]
    User(user::Command),
    /// Organisations: their keys, whom they admit, who trusts them
    #[command(subcommand)]
    Org(org::Command),
    /// What this machine's owner allows
    #[command(subcommand)]
    Policy(policy::Command),
    /// Show what was done on this node and for whom, or check that nobody has changed it
    Audit(audit::Arguments),
    /// Sum up what users or organisations have used of the grid
    Usage(audit::UsageArguments),
    /// Submit a job, show its output, and end with its exit code
    Run(run::Arguments),
    /// Submit a job, and print its id, its planned start and its nodes
    Submit(submit::Arguments),
    /// Show a job, or the last ones
    Status(status::Arguments),
    /// Print what a job writes
    Logs(logs::Arguments),
    /// Fetch the files that a job left behind (`--out`)
    Get(get::Arguments),
    /// Wait until jobs are over, and end with their exit code
    Wait(wait::Arguments),
    /// Take jobs back
    Cancel(act::Arguments),
    /// Keep jobs from starting
    Hold(act::Arguments),
    /// Let jobs start that were held
    Release(act::Arguments),
    /// Say why a job is where it is
    Why(why::Arguments),
    /// List the nodes of the grid
    Nodes,
    /// List the jobs that have not ended, by their start
    Queue(queue::Arguments),
    /// Show what is reserved on a node
    Calendar(calendar::Arguments),
    /// Simulate a grid
    #[command(subcommand)]
    Sim(sim::Command),
    /// Measure how fast this program is
    #[command(subcommand)]
    Bench(bench::Command),
    /// Look a node's data folder and its machine over, and say what to do
    Doctor,
    /// Print completions for a shell
    Completions(completions::Arguments),
    /// Print the manual, or write a page for each command
    Man(man::Arguments),
    /// Run the tasks of a node; a node starts this by itself
    #[command(hide = true)]
    Supervise(supervise::Arguments),
}

impl Command {
    /// Does it, and says what the program ends with.
    pub fn run(self, context: &Context) -> Result<ExitCode, Error> {
        let output = context.output;
        match self {
            Command::Demo(arguments) => demo::run(&arguments, context)?,
            Command::Node(arguments) => node::run(arguments, context)?,
            Command::Ticket(arguments) => ticket::run(&arguments, context)?,
            Command::Connect(arguments) => connect::run(&arguments, context)?,
            Command::Leave(arguments) => leave::run(&arguments, context)?,
            Command::User(command) => command.run(context)?,
            Command::Org(command) => command.run(context)?,
            Command::Policy(command) => command.run(context)?,
            Command::Audit(arguments) => audit::run(&arguments, context)?,
            Command::Usage(arguments) => audit::usage(&arguments, context)?,
            Command::Run(arguments) => return run::run(arguments, context),
            Command::Submit(arguments) => submit::run(arguments, context)?,
            Command::Status(arguments) => status::run(&arguments, context)?,
            Command::Logs(arguments) => logs::run(&arguments, context)?,
            Command::Get(arguments) => get::run(&arguments, context)?,
            Command::Wait(arguments) => return wait::run(&arguments, context),
            Command::Cancel(arguments) => act::cancel(&arguments, context)?,
            Command::Hold(arguments) => act::hold(&arguments, context)?,
            Command::Release(arguments) => act::release(&arguments, context)?,
            Command::Why(arguments) => why::run(&arguments, context)?,
            Command::Nodes => nodes::run(context)?,
            Command::Queue(arguments) => queue::run(&arguments, context)?,
            Command::Calendar(arguments) => calendar::run(&arguments, context)?,
            Command::Sim(command) => command.run(output)?,
            Command::Bench(command) => command.run(output)?,
            Command::Doctor => return doctor::run(context),
            Command::Completions(arguments) => completions::run(&arguments),
            Command::Man(arguments) => man::run(&arguments)?,
            Command::Supervise(arguments) => return Ok(supervise::run(&arguments)),
        }
        Ok(ExitCode::SUCCESS)
    }
}
