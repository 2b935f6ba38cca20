//! What users can ask of a node, in plain Rust: the HTTP interface and other nodes only pass it on.
//!
//! ```text
//! HTTP ───────┐                ┌── commands, looks ──▶ the node (Mailbox)
//! other nodes ┴─▶ Service ─────┼── stories ──────────▶ History ◀── what the node tells
//!                              ├── outputs ──────────▶ files of tasks
//!                              ├── files ────────────▶ Depot, Staging
//!                              └── other nodes ──────▶ Elsewhere
//! ```
//!
//! An answer to a submission comes after the job is durable: it is made by a look at the core that follows the command,
//! and looks are answered once all that was saved before them is on disk.

mod by_time;
mod files;
mod grid;
pub mod history;
mod jobs;
mod lists;
mod logs;
mod output;
mod packed;
mod reserved;
mod respond;
mod rights;
mod secrets;
mod shares;
pub mod story;
mod submit;
mod trust;
mod usage;
pub mod view;
mod why;
pub mod words;
mod wrong;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_model::{Machine, NodeId, Span, Time};
use shoal_protocols::node::Node;
use tokio::sync::{Notify, oneshot};

pub use jobs::{WAIT_MAX, read_span};
pub use lists::{ListQuery, Listing, Order};
pub use respond::Answers;
pub use rights::By;
pub use shares::{OPEN_PER_USER, SUBMITS_AT_ONCE_MAX};
pub use submit::{Submission, read_nonce};
pub use wrong::Wrong;

use crate::clock::Clock;
use crate::elsewhere::Elsewhere;
use crate::home::Room;
use crate::inbox::{Mailbox, Refused};
use crate::network::tickets::Tickets;
use crate::staging::Staging;
use crate::trust::gate::Gatekeeper;
use history::History;

/// What users can ask of a node.
pub struct Service {
    setting: Setting,
    mailbox: Mailbox<Node>,
    history: Arc<History>,
    elsewhere: Arc<dyn Elsewhere>,
    tickets: Arc<dyn Tickets>,
    gate: Option<Arc<Gatekeeper>>,
    staging: Staging,
    uploads: files::Uploads,
    shares: Arc<shares::Shares>,
    done: rights::Done,
    leaving: AtomicBool,
    /// Rings once the node shall end.
    end: Notify,
}

/// What a service knows of its node.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The node.
    pub me: NodeId,
    /// Its name for people.
    pub name: String,
    /// Its folder.
    pub home: PathBuf,
    /// What it is.
    pub machine: Machine,
    /// How jobs find their places.
    pub recipe: &'static str,
    /// How nodes come to know each other.
    pub overlay: &'static str,
    /// The hard limit of a job that names none.
    pub limit_default: Span,
    /// Jobs of one user that have not ended, at most.
    pub open_per_user: u64,
    /// Its clock.
    pub clock: Clock,
    /// When this life began.
    pub started: Time,
    /// How much room there is on its disk.
    pub room: Room,
}

/// All that a service leans on.
pub struct Parts {
    /// What it knows of its node.
    pub setting: Setting,
    /// The way into the node.
    pub mailbox: Mailbox<Node>,
    /// What the node tells.
    pub history: Arc<History>,
    /// The way to other nodes.
    pub elsewhere: Arc<dyn Elsewhere>,
    /// Who lets other machines in.
    pub tickets: Arc<dyn Tickets>,
    /// Who says whose a job is; without, in rehearsals only, nobody does.
    pub gate: Option<Arc<Gatekeeper>>,
    /// Who sees to files.
    pub staging: Staging,
}

impl Service {
    /// A service for a node that runs.
    pub fn new(parts: Parts) -> Service {
        let Parts { setting, mailbox, history, elsewhere, tickets, gate, staging } = parts;
        let leaving = AtomicBool::new(false);
        let (uploads, end) = (files::Uploads::default(), Notify::new());
        let (shares, done) = (Arc::default(), rights::Done::default());
        Service {
            setting,
            mailbox,
            history,
            elsewhere,
            tickets,
            gate,
            staging,
            uploads,
            shares,
            done,
            leaving,
            end,
        }
    }

    /// What it knows of its node.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// What the node told.
    pub fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// The way to other nodes.
    pub fn elsewhere(&self) -> &dyn Elsewhere {
        &*self.elsewhere
    }

    /// Who sees to its files.
    pub fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Waits until a user has asked for the node's end, and nothing stands against it.
    pub async fn asked_to_end(&self) {
        self.end.notified().await;
    }

    /// Sees the core, once all that was asked before is done and durable.
    pub async fn look<T: Send + 'static>(
        &self,
        see: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, Wrong> {
        let (sender, receiver) = oneshot::channel();
        // Who asked may have gone; then nobody misses the answer.
        self.mailbox.look_then(see, move |seen| drop(sender.send(seen)))?;
        receiver.await.map_err(|_| Wrong::from(Refused::Stopped))
    }

    fn now(&self) -> Time {
        self.setting.clock.now()
    }

    fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::SeqCst)
    }

    fn view(&self) -> view::Setting {
        view::Setting { owner: self.setting.me, limit_default: self.setting.limit_default }
    }
}
