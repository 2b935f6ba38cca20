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
}

impl Size {
    pub fn of(settings: &Settings) -> Size {
        let size = match (settings.tiny, settings.quick) {
            (true, _) => {
                Size { name: "tiny", nodes: 60, jobs: 60, seeds: 2, seeds_beside: 1, largest: 1_200 }
            }
            (false, true) => {
                Size { name: "quick", nodes: 500, jobs: 1_000, seeds: 1, seeds_beside: 1, largest: 20_000 }
            }
            (false, false) => {
                Size { name: "full", nodes: 500, jobs: 1_000, seeds: 10, seeds_beside: 2, largest: 100_000 }
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
