//! What the HTTP interface says: its types, and a client that waits for each answer.
//!
//! The daemon answers with these types and the program `shoal` reads them, so neither can misspell a field. Every path
//! begins with [`PREFIX`]; the document of all of it is the daemon's to give, at `/v1/openapi.json`.
//!
//! The [`Client`] knows no async runtime: a command that asks one question and ends must start in no time.

pub mod certificate;
pub mod client;
pub mod files;
pub mod grid;
pub mod home;
pub mod job;
pub mod logs;
pub mod problem;
pub mod secret;
pub mod trust;
pub mod usage;

pub use certificate::Fingerprint;
pub use client::{Client, ClientError, JobQuery, Signs};
pub use files::{FileList, FileView, Held, LeftOut, Unmatched};
pub use grid::{
    CalendarView, Check, Doctor, Info, Leaving, MachineView, NodeList, NodeView, QueueLevel, ReservationView,
    Ticket,
};
pub use home::{Home, HomeError, Reached};
pub use job::{
    EventView, JobForm, JobPage, JobStatus, JobUsage, OutputsView, Planned, Refusals, State, TaskStatus,
    UnknownState, Until, Why,
};
pub use logs::{LogQuery, Stream, UnknownStream};
pub use problem::Problem;
pub use trust::{OrganisationForm, Reach, RevokeForm, RevokedView, Text, TrustView, VouchForm};
pub use usage::{HostUsage, UsageView, Used};

/// What every path begins with: the version of the interface.
pub const PREFIX: &str = "/v1";
/// The kind of a submitted envelope: the one encoding of a job with its nonce.
pub const ENVELOPE: &str = "application/cbor";
/// The kind of a job written as TOML.
pub const TOML: &str = "application/toml";
/// The header that makes a job in JSON or TOML the same job when it is sent again: 32 hexadecimal digits.
pub const NONCE: &str = "shoal-nonce";
/// The header with what a user has signed, for what only a job's own user may.
pub const DEMAND: &str = "shoal-demand";
/// Jobs on one page, where nobody says.
pub const PAGE_DEFAULT: usize = 100;
/// Jobs on one page, at most.
pub const PAGE_MAX: usize = 1_000;
