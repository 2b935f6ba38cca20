//! The executor of real processes, with real processes: what they leave behind, and who survives whose death.

mod carriages;
mod cells;
mod deaths;
mod grants;
mod limits;
mod lines;
mod machine;
mod memory;
mod outcomes;
mod rides;
mod strangers;
