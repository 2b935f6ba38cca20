//! What the fuzzer calls: one function for each target. The workspace's tests call the same ones.

pub mod decoders;

// What the supervisor's words are made of, where they look for it.
use shoal_daemon::cell;

/// The target of this name.
pub fn target(name: &str) -> decoders::Target {
    let found = decoders::TARGETS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no target is called {name}")).1
}
