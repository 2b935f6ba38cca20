//! A core of the grid itself, explored: three nodes that shuffle.

use shoal_protocols::overlay::cyclon::{Command, Config, Cyclon};

use super::*;

#[test]
fn caches_hold_no_node_twice_and_never_their_own() {
    let config = Config { cache: 2, shuffle: 2, walk: 1, period_ms: 1_000, rests: 0 };
    let report = Explorer::<Cyclon>::new(3, |_| config, ())
        .command(N1, Command::Join(N2))
        .command(N3, Command::Join(N2))
        .faults(Faults { crashes: 1, losses: 1, duplicates: 1 })
        .limits(Limits { states: 20_000, horizon: Time::from_secs(2), ..Limits::default() })
        .always("a cache is a set of others", |state| {
            state.cores().try_for_each(|(me, core)| {
                let mut nodes: Vec<NodeId> = core.neighbours().collect();
                nodes.sort();
                nodes.dedup();
                rule(nodes.len() == core.degree() && !nodes.contains(&me), &format!("not at {me}"))
            })
        })
        .run();
    assert_eq!(report.violation, None);
    assert!(report.cut.states, "{report}");
}
