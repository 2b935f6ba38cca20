//! The local graph: what a node's links and its α-table say about who is how far away.

use shoal_model::NodeId;

use super::alpha::Alpha;

/// All that is known of the grid, as an undirected graph around one node.
pub struct Graph {
    /// By id.
    nodes: Vec<NodeId>,
    /// Where the neighbours of each node begin; and at the end where the last ones end.
    begins: Vec<u32>,
    ends: Vec<u16>,
    me: u16,
}

/// Further than anything.
pub const UNREACHABLE: u8 = u8::MAX;

impl Graph {
    pub fn new(me: NodeId, links: &[NodeId], alpha: &Alpha) -> Graph {
        // What others say of links to this node is not asked: it knows better.
        let told = || {
            let lists = alpha.iter().filter(move |known| known.node != me);
            lists.flat_map(move |known| known.neighbours.iter().map(move |&other| (known.node, other)))
        };
        let edges =
            || links.iter().map(move |&other| (me, other)).chain(told().filter(move |edge| edge.1 != me));
        let mut nodes: Vec<NodeId> = alpha.iter().map(|known| known.node).chain([me]).collect();
        nodes.extend(edges().map(|(_, other)| other));
        nodes.sort_unstable();
        nodes.dedup();
        let place = |node: NodeId| nodes.binary_search(&node).expect("all nodes of edges are listed") as u16;
        let edges: Vec<(u16, u16)> = edges().map(|(one, other)| (place(one), place(other))).collect();
        let mut begins = vec![0u32; nodes.len() + 1];
        for &(one, other) in &edges {
            begins[usize::from(one) + 1] += 1;
            begins[usize::from(other) + 1] += 1;
        }
        for place in 1..begins.len() {
            begins[place] += begins[place - 1];
        }
        let mut next = begins.clone();
        let mut ends = vec![0; edges.len() * 2];
        let mut put = |from: u16, to: u16| {
            let next = &mut next[usize::from(from)];
            ends[*next as usize] = to;
            *next += 1;
        };
        for (one, other) in edges {
            put(one, other);
            put(other, one);
        }
        let me = place(me);
        Graph { nodes, begins, ends, me }
    }

    /// How far away each node is from this one, up to a distance; [`UNREACHABLE`] beyond.
    pub fn distances(&self, most: u8) -> Vec<u8> {
        self.search(None, None, most).0
    }

    /// The nodes with their distances.
    pub fn with<'a>(&'a self, distances: &'a [u8]) -> impl Iterator<Item = (NodeId, u8)> + 'a {
        self.nodes.iter().copied().zip(distances.iter().copied())
    }

    /// The distance to a node among these.
    pub fn distance_to(&self, node: NodeId, distances: &[u8]) -> u8 {
        self.nodes.binary_search(&node).map_or(UNREACHABLE, |place| distances[place])
    }

    /// The shortest way to a neighbour without the link to it, if it has at most so many links: all nodes of it.
    pub fn way_round(&self, neighbour: NodeId, most: u8) -> Option<Vec<NodeId>> {
        let goal = self.nodes.binary_search(&neighbour).ok()? as u16;
        let (distances, before) = self.search(Some(goal), Some((self.me, goal)), most);
        if distances[usize::from(goal)] == UNREACHABLE {
            return None;
        }
        let mut way = vec![neighbour];
        let mut at = goal;
        while at != self.me {
            at = before[usize::from(at)];
            way.push(self.nodes[usize::from(at)]);
        }
        Some(way)
    }

    fn search(&self, goal: Option<u16>, without: Option<(u16, u16)>, most: u8) -> (Vec<u8>, Vec<u16>) {
        let mut distances = vec![UNREACHABLE; self.nodes.len()];
        let mut before = vec![0; self.nodes.len()];
        let mut queue = Vec::with_capacity(self.nodes.len());
        distances[usize::from(self.me)] = 0;
        queue.push(self.me);
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            let here = distances[usize::from(at)];
            if here >= most || goal == Some(at) {
                break;
            }
            let row = self.begins[usize::from(at)] as usize..self.begins[usize::from(at) + 1] as usize;
            for &to in &self.ends[row] {
                if distances[usize::from(to)] == UNREACHABLE && Some((at, to)) != without {
                    distances[usize::from(to)] = here + 1;
                    before[usize::from(to)] = at;
                    queue.push(to);
                }
            }
        }
        (distances, before)
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::Time;

    use super::super::message::Known;
    use super::*;
    use crate::shared::Shared;

    /// A ring of so many nodes, seen from node 1.
    fn ring(size: u64) -> Graph {
        let mut alpha = Alpha::new(50);
        for node in 2..=size {
            let neighbours = vec![NodeId(node - 1), NodeId(node % size + 1)];
            let known = Known { node: NodeId(node), at: Time::ZERO, neighbours: Shared::new(neighbours) };
            alpha.learn(&known);
        }
        Graph::new(NodeId(1), &[NodeId(2), NodeId(size)], &alpha)
    }

    #[test]
    fn distances_in_a_ring_are_those_of_the_shorter_way() {
        let graph = ring(8);
        let distances = graph.distances(20);
        let all: Vec<u8> = graph.with(&distances).map(|(_, distance)| distance).collect();
        assert_eq!(all, [0, 1, 2, 3, 4, 3, 2, 1]);
        assert_eq!(graph.distance_to(NodeId(99), &distances), UNREACHABLE);
        assert_eq!(graph.distance_to(NodeId(5), &graph.distances(3)), UNREACHABLE, "further than was asked");
    }

    #[test]
    fn way_round_is_found_if_it_is_short_enough() {
        let graph = ring(6);
        let way = graph.way_round(NodeId(2), 5).expect("five links the other way");
        assert_eq!(way, [2, 3, 4, 5, 6, 1].map(NodeId));
        assert_eq!(graph.way_round(NodeId(2), 4), None);
    }
}
