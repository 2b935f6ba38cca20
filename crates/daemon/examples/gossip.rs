//! Measures what it costs to be one of a grid that has nothing to do: nodes of one process gossip over real sockets.
//!
//! `cargo run -p shoal-daemon --example gossip -- 32 120` runs 32 nodes, lets the grid form and settle for 120 s, and then
//! counts for 60 s what each node sends and receives, in bytes of datagrams. A third number sets how many seconds a
//! connection stays open after the last word.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::SeedableRng;
use shoal_daemon::membership::Terms;
use shoal_daemon::network::quic::{self, Counts, Handle, NoAnswers, Settings};
use shoal_daemon::{Cabinet, Clock, Driver, Grid, Identity, Memory, MemoryCabinet, Pretend, Running, Setup};
use shoal_protocols::Chance;
use shoal_protocols::node::{Command, Config, Node};

const COUNT_FOR: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (nodes, settle) = (number(32)?, number(120)?);
    let idle = Duration::from_secs(number(Settings::default().idle.as_secs())?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(nodes, Duration::from_secs(settle), idle))
}

async fn measure(nodes: u64, settle: Duration, idle: Duration) -> Result<(), Box<dyn Error>> {
    let settings = Settings { bind: ([127, 0, 0, 1], 0).into(), idle, ..Settings::default() };
    let mut grid: Vec<(Handle, Running<Node>)> = Vec::new();
    for _ in 0..nodes {
        let identity = Identity::generate();
        let cabinet: Arc<dyn Cabinet> = Arc::new(MemoryCabinet::new());
        let clock = Clock::new();
        let own = match grid.first() {
            None => Grid::create(&identity, "gossip".parse()?, vec![], Arc::clone(&cabinet), clock.now())?,
            Some((first, _)) => {
                let ticket = first.ticket(Terms::default())?;
                quic::join(&settings, &identity, &ticket, Arc::clone(&cabinet), clock).await?
            }
        };
        let responder = Arc::new(NoAnswers);
        let handle =
            quic::start(settings.clone(), &identity, Arc::new(own), cabinet, clock, responder).await?;
        let driver = Driver::<Node>::new(Setup {
            me: handle.me(),
            config: Config::default(),
            records: vec![],
            chance: Chance::seed_from_u64(handle.me().0),
            clock,
            store: Box::new(Memory::new()),
            network: handle.line(),
            executor: Box::new(Pretend::new()?),
            reports: Box::new(|_, _| ()),
        });
        handle.listen(driver.mailbox());
        if let Some((first, _)) = grid.first() {
            driver.mailbox().command(Command::Join(first.me()))?;
        }
        grid.push((handle, driver.spawn()?));
    }
    tokio::time::sleep(settle).await;
    let count =
        |grid: &[(Handle, Running<Node>)]| grid.iter().map(|(handle, _)| handle.counts()).collect::<Vec<_>>();
    let (start, before) = (Instant::now(), count(&grid));
    tokio::time::sleep(COUNT_FOR).await;
    let (seconds, after) = (start.elapsed().as_secs_f64(), count(&grid));

    let rate = |of: fn(&Counts) -> u64| {
        let sum = |counts: &[Counts]| counts.iter().map(of).sum::<u64>();
        (sum(&after) - sum(&before)) as f64 / seconds / nodes as f64
    };
    let degrees: Vec<usize> = grid
        .iter()
        .map(|(_, running)| running.mailbox().look(|node| node.overlay().degree()))
        .collect::<Result<_, _>>()?;
    println!("nodes                      {nodes}");
    println!("bytes sent /s per node     {:.0}", rate(|counts| counts.udp_sent));
    println!("bytes received /s per node {:.0}", rate(|counts| counts.udp_received));
    println!(
        "messages sent /s per node  {:.3}",
        rate(|counts| counts.sent.values().map(|kind| kind.messages).sum())
    );
    println!(
        "in them, bytes /s per node {:.0}",
        rate(|counts| counts.sent.values().map(|kind| kind.bytes).sum())
    );
    println!("new connections /s         {:.3}", rate(|counts| counts.connected));
    println!(
        "open connections per node  {:.1}",
        after.iter().map(|counts| counts.connections).sum::<u64>() as f64 / nodes as f64
    );
    println!("least neighbours           {}", degrees.iter().min().copied().unwrap_or(0));
    println!(
        "dropped                    {:?}",
        after.iter().flat_map(|counts| counts.dropped.clone()).collect::<Vec<_>>()
    );
    for (handle, running) in grid {
        running.stop()?;
        handle.close().await;
    }
    Ok(())
}
