//! `shoal node`: this machine's node, in the foreground or behind.

use std::fs::File;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use shoal_api::{Client, Home};
use shoal_daemon::Clock;
use shoal_daemon::assembly::{self, Options, Reason};
use shoal_daemon::executor::process::Launch;
use shoal_daemon::settings::{MachineSettings, Wish};
use shoal_model::machine::Labels;
use shoal_model::units::SpanText;
use shoal_model::{Line, Name, Size, Span, Thousandths};
use shoal_protocols::scheduling::aria::Order;
use tracing_subscriber::EnvFilter;

use crate::context::Context;
use crate::error::Error;

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks whether it does.
const PAUSE: Duration = Duration::from_millis(10);
/// Lines of its log that are shown when it does not.
const LOG_SHOWN: usize = 10;
/// What the system's allocator is told: to give back at once what was large and is freed, and to have all threads share two
/// heaps, where what one frees is of use to others. With one they would stand in line at the node's start; left to itself it
/// keeps much of what a long queue took then. It heeds variables, and those only when a program begins.
const FRUGAL: [(&str, &str); 3] =
    [("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_TRIM_THRESHOLD_", "131072"), ("MALLOC_ARENA_MAX", "2")];

/// What kind of node.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Come back once the node answers, and leave it running; its log is in its folder
    #[arg(long)]
    background: bool,
    /// How jobs find their places; chosen once, when the grid is made
    #[arg(long, value_name = "NAME")]
    recipe: Option<String>,
    /// How nodes come to know each other, where the recipe leaves a choice: cyclon, blatant-s or can with aria; chosen once,
    /// when the grid is made
    #[arg(long, value_name = "NAME")]
    overlay: Option<String>,
    /// In which order this node's queue goes, with the recipe aria: easy where nobody says, or fcfs, conservative, sjf, edf,
    /// priority, reservation, mixed
    #[arg(long, value_name = "ORDER")]
    queue: Option<Order>,
    /// Enter a grid, with a ticket that `shoal ticket` printed on one of its nodes
    #[arg(long, value_name = "TICKET")]
    join: Option<String>,
    /// Where other nodes reach this one; port 0 is any that is free, and stays the same from then on
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where programs reach the node: 127.0.0.1:0 where nobody says (port 0 is any that is free), and in TLS where that is
    /// not on loopback
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// A name for people; else the machine's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Cores for jobs; else all
    #[arg(long, value_name = "COUNT")]
    cores: Option<Thousandths>,
    /// Memory for jobs; else most of it
    #[arg(long, visible_alias = "mem", value_name = "SIZE")]
    memory: Option<Size>,
    /// Disk for jobs
    #[arg(long, value_name = "SIZE")]
    disk: Option<Size>,
    /// GPUs for jobs
    #[arg(long, value_name = "COUNT")]
    gpus: Option<Thousandths>,
    /// Whose machine it is
    #[arg(long, value_name = "NAME")]
    organisation: Option<Name>,
    /// Run no jobs on behalf of this organisation; may be given again
    #[arg(long, value_name = "NAME")]
    refuse: Vec<Name>,
    /// Say something of the machine, as in zone=basement; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(Name, Line)>,
    /// Print a systemd unit that runs this node, and end
    #[arg(long)]
    print_unit: bool,
    /// Away from the terminal; `--background` starts this by itself
    #[arg(long, hide = true)]
    detached: bool,
    /// Have a clock that is wrong by this much, to see what comes of it
    #[arg(long, hide = true, value_name = "SPAN")]
    clock_ahead: Option<SpanText>,
}

fn label(text: &str) -> Result<(Name, Line), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let name = name.parse::<Name>().map_err(|error| error.to_string())?;
    Ok((name, value.parse::<Line>().map_err(|error| error.to_string())?))
}

/// What is logged unless `SHOAL_LOG` says otherwise. The network would write down where it is for each packet.
const LOGGED: &str = "info,iroh=warn,noq=warn";

/// Runs a node, or starts one behind.
pub fn run(arguments: Arguments, context: &Context) -> Result<(), Error> {
    let home = context.home()?;
    if arguments.print_unit {
        print!("{}", unit(&home)?);
        return Ok(());
    }
    if arguments.background {
        return behind(&home, context);
    }
    begin_frugally();
    if arguments.detached {
        assembly::detach();
    }
    let filter = EnvFilter::try_from_env("SHOAL_LOG").unwrap_or_else(|_| EnvFilter::new(LOGGED));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    let machine = MachineSettings {
        name: arguments.name,
        cores: arguments.cores,
        memory: arguments.memory,
        disk: arguments.disk,
        gpus: arguments.gpus,
        organisation: arguments.organisation,
        refuses: arguments.refuse.into_iter().collect(),
        labels: arguments.label.into_iter().collect::<Labels>(),
    };
    let launch = Launch::itself(["supervise"]);
    let wish = Wish { recipe: arguments.recipe, overlay: arguments.overlay, queue: arguments.queue };
    let station = assembly::start(Options {
        home,
        launch,
        wish,
        machine,
        listen: arguments.http,
        bind: arguments.listen,
        join: arguments.join,
        clock: Clock::new().ahead_by(arguments.clock_ahead.map_or(Span::ZERO, |ahead| ahead.0)),
    })?;
    station.end_on_signals()?;
    let setting = station.service().setting();
    tracing::info!(
        "node {} ({}) with {}, recipe {} over {}, folder {}, {}",
        setting.me,
        setting.name,
        setting.machine.capacity,
        setting.recipe,
        setting.overlay,
        setting.home.display(),
        match station.reached().certificate {
            None => format!("http://{}", station.address()),
            Some(shown) => format!("https://{}, certificate {shown}", station.address()),
        }
    );
    match station.wait() {
        Ok(Reason::Told) => tracing::info!("told to end; what runs goes on"),
        Ok(Reason::Left) => tracing::info!("left"),
        Ok(Reason::Fault) => return Err(Error::internal("the node stopped by itself; see above")),
        Err(fault) => {
            return Err(Error::internal(fault.to_string()).hint("mend the cause, and start it again"));
        }
    }
    Ok(())
}

/// Begins anew as a program that gives back what it frees, unless it is one already. What somebody else has set stays.
fn begin_frugally() {
    let unset = FRUGAL.iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let unset: Vec<_> = unset.copied().collect();
    if unset.is_empty() {
        return;
    }
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_else(|| "shoal".into());
    // It comes back only where it cannot be; then the node takes more memory.
    let _ = Command::new("/proc/self/exe").arg0(name).args(words).envs(unset).exec();
}

/// Starts the same node in a process of its own, and waits until it answers.
fn behind(home: &Home, context: &Context) -> Result<(), Error> {
    if let Ok(client) = Client::of(home)
        && let Ok(info) = client.info()
    {
        return Err(Error::user(format!("node {} runs in {} already", info.node.id, home.path().display())));
    }
    shoal_daemon::Home::at(home.path()).prepare().map_err(|error| Error::config(error.to_string()))?;
    let log_path = home.path().join("log");
    let open = || File::options().create(true).append(true).open(&log_path);
    let wrong = |error| Error::config(format!("cannot write {}: {error}", log_path.display()));
    let (log, also) = (open().map_err(wrong)?, open().map_err(wrong)?);
    let before = log.metadata().map_or(0, |facts| facts.len());
    let given = std::env::args_os().skip(1).filter(|word| word != "--background");
    let mut child = Command::new("/proc/self/exe")
        .arg0("shoal")
        .args(given)
        .arg("--detached")
        .arg("--home")
        .arg(home.path())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(also)
        .spawn()?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let told = Error::internal(format!("the node ended at once: {status}"));
            return Err(last_lines(&log_path, before).into_iter().fold(told, Error::hint));
        }
        if let Ok(client) = Client::of(home)
            && let Ok(info) = client.info()
            && info.pid == child.id()
        {
            let line = || format!("node {} runs in {} (process {})", info.node.id, info.home, info.pid);
            return context.output.print(&info, line);
        }
        if began.elapsed() > PATIENCE {
            let told = Error::internal("the node does not answer");
            return Err(told.hint(format!("see {}", log_path.display())));
        }
        thread::sleep(PAUSE);
    }
}

/// The last lines that were written to a file after a byte.
fn last_lines(path: &std::path::Path, after: u64) -> Vec<String> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(text.get(after as usize..).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_SHOWN)..].iter().map(|line| (*line).to_owned()).collect()
}

/// A unit for systemd. Only the node itself is ended with it: its supervisor and what it runs go on. Its control group is its
/// own, so that it can cap what tasks take.
fn unit(home: &Home) -> Result<String, Error> {
    let program = std::env::current_exe()?;
    Ok(format!(
        "[Unit]\n\
         Description=Shoal node\n\
         After=network-online.target\n\
         \n\
         [Service]\n\
         ExecStart=\"{}\" node --home \"{}\"\n\
         Restart=on-failure\n\
         RestartSec=1\n\
         KillMode=process\n\
         Delegate=yes\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        program.display(),
        home.path().display()
    ))
}
