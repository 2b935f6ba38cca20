//! The local graph: what a node's links and its α-table say about who is how far away.

use shoal_model::NodeId;

use super::alpha::Alpha;

/// All that is known of the grid, as an undirected graph around one node.
pub struct Graph {
    nodes: Numbers,
    /// Where the neighbours of each node begin; and at the end where the last ones end.
    begins: Vec<u32>,
    ends: Vec<u16>,
    me: u16,
}

/// Further than anything.
pub const UNREACHABLE: u8 = u8::MAX;

/// Numbers for nodes, as they come: a table that is half empty, since a graph is made for each look at the rules.
struct Numbers {
    nodes: Vec<NodeId>,
    slots: Vec<u16>,
}

/// A slot without a number.
const NO_NUMBER: u16 = u16::MAX;

impl Numbers {
    /// Room for at most so many.
    fn new(most: usize) -> Numbers {
        Numbers { nodes: Vec::with_capacity(most), slots: vec![NO_NUMBER; (2 * most).next_power_of_two()] }
    }

    /// The slot of a node, and its number if it has one.
    fn find(&self, node: NodeId) -> (usize, Option<u16>) {
        let mixed = node.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut slot = mixed as usize & (self.slots.len() - 1);
        loop {
            match self.slots[slot] {
                NO_NUMBER => return (slot, None),
                number if self.nodes[usize::from(number)] == node => return (slot, Some(number)),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    fn number(&mut self, node: NodeId) -> u16 {
        let (slot, number) = self.find(node);
        number.unwrap_or_else(|| {
            let number = self.nodes.len() as u16;
            self.nodes.push(node);
            self.slots[slot] = number;
            number
        })
    }
}

impl Graph {
    pub fn new(me: NodeId, links: &[NodeId], alpha: &Alpha) -> Graph {
        let told: usize = alpha.iter().map(|known| known.neighbours.len() + 1).sum();
        let mut nodes = Numbers::new(1 + links.len() + told);
        let mut edges: Vec<(u16, u16)> = Vec::with_capacity(links.len() + told);
        let my_number = nodes.number(me);
        edges.extend(links.iter().map(|&other| (my_number, nodes.number(other))));
        for known in alpha.iter().filter(|known| known.node != me) {
            let one = nodes.number(known.node);
            // What others say of links to this node is not asked: it knows better.
            let others = known.neighbours.iter().filter(|&&other| other != me);
            edges.extend(others.map(|&other| (one, nodes.number(other))));
        }
        let mut begins = vec![0u32; nodes.nodes.len() + 1];
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
        Graph { nodes, begins, ends, me: my_number }
    }

    /// How far away each node is from this one, up to a distance; [`UNREACHABLE`] beyond.
    pub fn distances(&self, most: u8) -> Vec<u8> {
        self.search(None, most).0
    }

    /// The nodes with their distances.
    pub fn with<'a>(&'a self, distances: &'a [u8]) -> impl Iterator<Item = (NodeId, u8)> + 'a {
        self.nodes.nodes.iter().copied().zip(distances.iter().copied())
    }

    /// The distance to a node among these.
    pub fn distance_to(&self, node: NodeId, distances: &[u8]) -> u8 {
        self.nodes.find(node).1.map_or(UNREACHABLE, |number| distances[usize::from(number)])
    }

    /// Who is linked with a node, as far as is known.
    pub fn links_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let row = self.nodes.find(node).1.map_or(&[][..], |number| self.row(number));
        row.iter().map(|&other| self.nodes.nodes[usize::from(other)])
    }

    /// The shortest way to a neighbour without the link to it, if it has at most so many links: all nodes of it.
    pub fn way_round(&self, neighbour: NodeId, most: u8) -> Option<Vec<NodeId>> {
        let goal = self.nodes.find(neighbour).1?;
        let (distances, before) = self.search(Some(goal), most);
        if distances[usize::from(goal)] == UNREACHABLE {
            return None;
        }
        let mut way = vec![neighbour];
        let mut at = goal;
        while at != self.me {
            at = before[usize::from(at)];
            way.push(self.nodes.nodes[usize::from(at)]);
        }
        Some(way)
    }

    fn row(&self, number: u16) -> &[u16] {
        let at = usize::from(number);
        &self.ends[self.begins[at] as usize..self.begins[at + 1] as usize]
    }

    /// How far away nodes are, and who comes before each on the way; up to a goal, to which the link from here does not
    /// count.
    fn search(&self, goal: Option<u16>, most: u8) -> (Vec<u8>, Vec<u16>) {
        let mut distances = vec![UNREACHABLE; self.nodes.nodes.len()];
        let mut before = vec![0; self.nodes.nodes.len()];
        let mut queue = Vec::with_capacity(self.nodes.nodes.len());
        distances[usize::from(self.me)] = 0;
        queue.push(self.me);
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            let here = distances[usize::from(at)];
            if here >= most {
                break;
            }
            for &to in self.row(at) {
                if distances[usize::from(to)] != UNREACHABLE || (here == 0 && Some(to) == goal) {
                    continue;
                }
                distances[usize::from(to)] = here + 1;
                before[usize::from(to)] = at;
                // Nothing that comes later is nearer, and the last steps are most of the work.
                if Some(to) == goal {
                    return (distances, before);
                }
                queue.push(to);
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
        let all: Vec<u8> = (1..=8).map(|node| graph.distance_to(NodeId(node), &distances)).collect();
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
