//! The driver with a small protocol that saves, sends, waits and acts, and with CYCLON.

mod durability;
mod full;
mod grid;
mod journal;
mod killed;
mod ledger;
mod note;
mod recovery;
mod sqlite;
mod support;
