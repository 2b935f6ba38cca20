//! The α-table: what a node remembers of others, as they said it themselves.

use shoal_model::{NodeId, Time};

use super::message::Known;

/// Known nodes with their neighbour lists, by id; of too many, the one heard of longest ago goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alpha {
    most: usize,
    known: Vec<Known>,
}

impl Alpha {
    pub fn new(most: u8) -> Alpha {
        Alpha { most: usize::from(most), known: Vec::new() }
    }

    /// Takes what is newer than what is known; tells whether a list is new.
    pub fn learn(&mut self, news: &Known) -> bool {
        match self.known.binary_search_by_key(&news.node, |known| known.node) {
            Ok(place) => {
                let known = &mut self.known[place];
                if known.at >= news.at {
                    return false;
                }
                known.at = news.at;
                let changed = known.neighbours != news.neighbours;
                if changed {
                    known.neighbours = news.neighbours.clone();
                }
                changed
            }
            Err(_) => {
                if self.known.len() == self.most {
                    let oldest = self.known.iter().enumerate().min_by_key(|(_, known)| known.at);
                    let (place, at) = oldest.map(|(place, known)| (place, known.at)).unwrap_or_default();
                    if at >= news.at {
                        return false;
                    }
                    self.known.remove(place);
                }
                let place = self.known.partition_point(|known| known.node < news.node);
                self.known.insert(place, news.clone());
                true
            }
        }
    }

    /// A node that is gone.
    pub fn forget(&mut self, node: NodeId) -> Option<Known> {
        let place = self.known.binary_search_by_key(&node, |known| known.node).ok()?;
        Some(self.known.remove(place))
    }

    pub fn get(&self, node: NodeId) -> Option<&Known> {
        let place = self.known.binary_search_by_key(&node, |known| known.node).ok()?;
        Some(&self.known[place])
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Known> {
        self.known.iter()
    }

    /// Whether a node has more neighbours than those known here have on average.
    pub fn exceeds_mean(&self, degree: usize) -> bool {
        let sum: usize = self.known.iter().map(|known| known.neighbours.len()).sum();
        degree * self.known.len() > sum
    }

    /// What nobody has confirmed since then.
    pub fn drop_before(&mut self, at: Time) {
        self.known.retain(|known| known.at >= at);
    }
}
