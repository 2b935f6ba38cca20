//! How large a reproduction is: all seeds, one, or a tiny grid for tests.

use std::num::NonZeroU32;

use crate::reproduce::Settings;

/// How large a reproduction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub name: &'static str,
    pub nodes: u32,
    pub jobs: u32,
    /// Seeds of the paper's scenarios.
    pub seeds: u64,
    /// Seeds of what is set beside them.
    pub seeds_beside: u64,
    /// The largest grid, 200 times the smallest of the three that are compared.
    pub largest: u32,
    /// The grids on which whole runs are made: 20 and 200 times the paper's, whatever else is small; tiny ones for tests.
    pub whole: [u32; 2],
}

impl Size {
    pub fn of(settings: &Settings) -> Size {
        let size = match (settings.tiny, settings.quick) {
            (true, _) => {
                let (nodes, jobs, whole) = (60, 60, [30, 60]);
                Size { name: "tiny", nodes, jobs, seeds: 2, seeds_beside: 1, largest: 800, whole }
            }
            (false, true) => {
                let (nodes, jobs, whole) = (500, 1_000, [10_000, 100_000]);
                Size { name: "quick", nodes, jobs, seeds: 1, seeds_beside: 1, largest: 20_000, whole }
            }
            (false, false) => {
                let (nodes, jobs, whole) = (500, 1_000, [10_000, 100_000]);
                Size { name: "full", nodes, jobs, seeds: 10, seeds_beside: 2, largest: 100_000, whole }
            }
        };
        match settings.seeds.map(NonZeroU32::get).map(u64::from) {
            None => size,
            Some(seeds) => Size { seeds, seeds_beside: seeds.min(size.seeds_beside), ..size },
        }
    }

    /// The sizes of the grids on which traffic is compared: 1, 20 and 200 times as large.
    pub fn scales(&self) -> impl Iterator<Item = u32> + use<> {
        let largest = self.largest;
        [200, 10, 1].into_iter().map(move |part| largest / part)
    }
}
