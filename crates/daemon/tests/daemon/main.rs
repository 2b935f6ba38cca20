//! The driver with a small protocol that saves, sends, waits and acts, and with CYCLON.

mod durability;
mod grid;
mod journal;
mod ledger;
mod recovery;
mod support;
