//! Every figure and claim: what the paper says, and what a claim is judged by.

use crate::reproduce::finding::Known;

/// What only we measure.
const fn figure(id: &'static str) -> Known {
    Known { id, paper: None, unit: "", claim: None }
}

/// What the paper says in words.
const fn claim(id: &'static str, claim: &'static str) -> Known {
    Known { id, paper: None, unit: "", claim: Some(claim) }
}

/// Every figure and claim of the paper, and what we set beside it. A ratio is that of a cost to the better centralised
/// one, which knows all nodes.
pub const KNOWN: &[Known] = &[
    claim(
        "proactive/fig1/800x64",
        "proactive is below basic at every iteration; figure: basic over proactive after all iterations",
    ),
    claim(
        "proactive/fig1/800x128",
        "proactive is below basic at every iteration; figure: basic over proactive after all iterations",
    ),
    claim(
        "proactive/fig1/10000x64",
        "proactive is below basic at every iteration; figure: basic over proactive after all iterations",
    ),
    claim(
        "proactive/fig1/10000x128",
        "proactive is below basic at every iteration; figure: basic over proactive after all iterations",
    ),
    claim(
        "proactive/fig1/iterations",
        "proactive reaches its good value in very few iterations (after 3 within 20 % of that after 20, all sizes); figure: the largest of the four",
    ),
    claim(
        "proactive/fig1/close_to_central",
        "proactive closely approaches centralised (ratio at most 1.2 after 10 iterations, all sizes); figure: the largest of the four",
    ),
    claim(
        "proactive/fig1/close_to_central_ga",
        "the same beside the genetic algorithm over all nodes; figure: the largest of the four",
    ),
    Known {
        id: "proactive/traffic",
        paper: Some(1_280.0),
        unit: "bytes",
        claim: Some("each node spends 1,280 bytes per helper overlay and cycle (no more)"),
    },
    claim(
        "proactive/claim/random_is_reasonable",
        "basic gives a valid schedule in its first iteration, and never gets worse; figure: its ratio after all iterations, mean over sizes",
    ),
    claim(
        "proactive/claim/scale",
        "the gap between basic and proactive grows with the grid (both sizes of job); figure: the gap of the larger grid over that of the smaller, the lesser of both",
    ),
    claim(
        "proactive/claim/alpha",
        "more candidates or iterations make a better set (1, 2 and 4 for each node wanted; 10 and 20 iterations; both variants); figure: proactive with 4 over 1",
    ),
    figure("proactive/ratio/800x64/basic/3"),
    figure("proactive/ratio/800x64/basic/10"),
    figure("proactive/ratio/800x64/basic/20"),
    figure("proactive/ratio/800x64/proactive/3"),
    figure("proactive/ratio/800x64/proactive/10"),
    figure("proactive/ratio/800x64/proactive/20"),
    figure("proactive/ratio/800x128/basic/3"),
    figure("proactive/ratio/800x128/basic/10"),
    figure("proactive/ratio/800x128/basic/20"),
    figure("proactive/ratio/800x128/proactive/3"),
    figure("proactive/ratio/800x128/proactive/10"),
    figure("proactive/ratio/800x128/proactive/20"),
    figure("proactive/ratio/10000x64/basic/3"),
    figure("proactive/ratio/10000x64/basic/10"),
    figure("proactive/ratio/10000x64/basic/20"),
    figure("proactive/ratio/10000x64/proactive/3"),
    figure("proactive/ratio/10000x64/proactive/10"),
    figure("proactive/ratio/10000x64/proactive/20"),
    figure("proactive/ratio/10000x128/basic/3"),
    figure("proactive/ratio/10000x128/basic/10"),
    figure("proactive/ratio/10000x128/basic/20"),
    figure("proactive/ratio/10000x128/proactive/3"),
    figure("proactive/ratio/10000x128/proactive/10"),
    figure("proactive/ratio/10000x128/proactive/20"),
    figure("proactive/central_ga/800x64"),
    figure("proactive/central_ga/800x128"),
    figure("proactive/central_ga/10000x64"),
    figure("proactive/central_ga/10000x128"),
    figure("proactive/alpha/1/basic"),
    figure("proactive/alpha/1/proactive"),
    figure("proactive/alpha/2/basic"),
    figure("proactive/alpha/2/proactive"),
    figure("proactive/alpha/4/basic"),
    figure("proactive/alpha/4/proactive"),
];
