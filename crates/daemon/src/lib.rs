//! Drives nodes in real time: the same cores as in the simulator, with a clock, a disk and peers that are real.
//!
//! [`driver`] is the loop that owns a core; what it reaches the world through are traits, one room each:
//! [`store`] keeps records, [`network`] carries messages, [`executor`] does what only a machine can do.

pub mod clock;
pub mod driver;
pub mod executor;
pub mod inbox;
pub mod network;
pub mod store;

pub use clock::Clock;
pub use driver::{Driver, Fault, Running, Setup};
pub use executor::pretend::Pretend;
pub use executor::{Executor, Idle};
pub use inbox::{Completion, Mailbox, Refused};
pub use network::Network;
pub use network::local::Switchboard;
pub use store::Store;
pub use store::journal::Journal;
pub use store::memory::Memory;
