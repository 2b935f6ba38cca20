//! Drives nodes in real time: the same cores as in the simulator, with a clock, a disk and peers that are real.
//!
//! ```text
//!                       ┌────────────────── Driver: one thread owns the core ─────────────────┐
//! users ── command ──▶┐ │                                                                     │
//! users ── look ─────▶│ │  take all that   ┌────────┐   save   ┌───────┐   then, in the order │
//! peers ── message ──▶├▶│  has come, and ─▶│  core  ├─────────▶│ store │── asked: send, act,  │
//! tasks ── outcome ──▶│ │  what is due     │ (Node) │          │ sync  │   report, answer     │
//! stop ──────────────▶┘ │        ▲         └───┬────┘          └───────┘                      │
//!     Mailbox           │        └── timers ◀──┘ wake                                         │
//!                       └─────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The core decides; nothing here does. What a driver owes to it is listed in [`shoal_protocols::protocol`]; who keeps
//! which of these duties:
//!
//! | duty | kept by |
//! |---|---|
//! | nothing leaves before what was saved first is durable | [`driver`]: one sync for all that a turn wrote |
//! | records survive, or the node says that they have not | [`store`]: [`Sqlite`], checked when it is opened |
//! | one daemon in a folder, and none in one of a newer version | [`home`] |
//! | a failed write stops the node; nothing is retried | [`driver`] and [`store`]: a [`Fault`] |
//! | the clock never runs backwards in one life | [`clock`] |
//! | a flood of messages keeps out neither users nor outcomes | [`inbox`]: a bound for each class |
//! | each action ends at most once, also across lives | [`executor`]: a [`Completion`] is used up |
//! | a task starts at most once, also across lives | [`executor::process`]: on disk before the fork |
//! | who sends is who it says it is | [`network`]: known by its key, and by its [`membership`] of the grid |
//!
//! A node in real time, from its folder to its end:
//!
//! ```
//! # use rand_xoshiro::rand_core::SeedableRng;
//! # use shoal_daemon::{Clock, Driver, Home, Pretend, Setup, Sqlite, Switchboard};
//! # use shoal_model::NodeId;
//! # use shoal_protocols::{Chance, node::{Config, Node}};
//! # let folder = tempfile::tempdir()?;
//! # let switchboard = Switchboard::<Node>::new();
//! # let me = NodeId(1);
//! let lock = Home::at(folder.path()).lock()?;
//! let opened = Sqlite::open(&lock)?;
//! let driver = Driver::<Node>::new(Setup {
//!     me,
//!     config: Config::default(),
//!     records: opened.records,
//!     chance: Chance::seed_from_u64(7),
//!     clock: Clock::new(),
//!     store: Box::new(opened.store),
//!     network: Box::new(switchboard.line(me, Chance::seed_from_u64(8))),
//!     executor: Box::new(Pretend::new()?),
//!     reports: Box::new(|at, event| eprintln!("{at} {event:?}")),
//! });
//! switchboard.connect(me, driver.mailbox());
//! let running = driver.spawn()?;
//! let known = running.mailbox().look(|node| node.overlay().degree())?;
//! assert_eq!(known, 0, "nobody has told it of others");
//! running.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! That real nodes tell their users what simulated ones do is `tests/conformance`: one script for each conversation, and
//! an arm for each way to run it. A machine is a [`Pretend`], which only takes time, or a [`Process`], which runs programs.
//! Users reach a node through its [`service`], over [`http`] or from other nodes ([`elsewhere`]); [`assembly`] joins all.
//! What is here for now, and what takes its place behind the same trait: the [`Switchboard`] joins nodes of one process,
//! [`network::quic`] those of a grid. A node's records are in a database that its owner can look into; the supervisor of its
//! tasks, which is to stay small, and the stories of jobs keep a [`Journal`], a plain file.

mod acquaintance;
pub mod assembly;
pub mod audit;
mod bounded;
pub mod cabinet;
pub mod cell;
pub mod clock;
pub mod depot;
pub mod doctor;
pub mod driver;
pub mod elsewhere;
pub mod executor;
pub mod home;
pub mod http;
pub mod identity;
pub mod inbox;
pub mod machine;
pub mod membership;
pub mod network;
mod places;
pub mod relay;
pub mod secrets;
pub mod service;
pub mod settings;
pub mod staging;
pub mod store;
pub mod trust;

pub use cabinet::{Cabinet, MemoryCabinet};
pub use clock::Clock;
pub use driver::{Driver, Fault, Running, Setup};
pub use executor::pretend::Pretend;
pub use executor::process::Process;
pub use executor::{Executor, Idle};
pub use home::Home;
pub use identity::Identity;
pub use inbox::{Completion, Mailbox, Refused};
pub use membership::Grid;
pub use network::Network;
pub use network::local::Switchboard;
pub use store::Store;
pub use store::journal::Journal;
pub use store::memory::Memory;
pub use store::sqlite::Sqlite;
