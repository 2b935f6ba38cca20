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
/// What is further is not looked for.
const FURTHEST: u8 = UNREACHABLE - 1;

/// What a look around from a node has found.
pub struct Survey {
    /// By number.
    distances: Vec<u8>,
    /// How many links the shortest ring has that each of the node's own is part of, in their order; [`UNREACHABLE`] for none.
    pub rings: Vec<u8>,
}

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

    /// Looks around from this node.
    pub fn survey(&self) -> Survey {
        let count = self.nodes.nodes.len();
        let mut distances = vec![UNREACHABLE; count];
        // By which of this node's links each was reached: what is reached by two of them closes a ring with both.
        let mut by = vec![0u8; count];
        let mut queue = Vec::with_capacity(count);
        distances[usize::from(self.me)] = 0;
        let own = self.row(self.me);
        for (link, &to) in own.iter().enumerate() {
            distances[usize::from(to)] = 1;
            by[usize::from(to)] = link as u8;
            queue.push(to);
        }
        let mut rings = vec![UNREACHABLE; own.len()];
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            let (here, link) = (distances[usize::from(at)], by[usize::from(at)]);
            if here == FURTHEST {
                break;
            }
            for &to in self.row(at) {
                let there = &mut distances[usize::from(to)];
                let other = &mut by[usize::from(to)];
                if *there == UNREACHABLE {
                    *there = here + 1;
                    *other = link;
                    queue.push(to);
                } else if *other != link && to != self.me {
                    let ring = here.saturating_add(*there).saturating_add(1);
                    for link in [link, *other] {
                        let shortest = &mut rings[usize::from(link)];
                        *shortest = ring.min(*shortest);
                    }
                }
            }
        }
        Survey { distances, rings }
    }

    /// The nodes that a survey found this far away or further.
    pub fn from_distance<'a>(&'a self, survey: &'a Survey, least: u8) -> impl Iterator<Item = NodeId> + 'a {
        let all = self.nodes.nodes.iter().zip(&survey.distances);
        all.filter(move |&(_, &distance)| distance >= least && distance != UNREACHABLE).map(|(&node, _)| node)
    }

    /// The distance to a node; [`UNREACHABLE`] if no way is known.
    pub fn distance_to(&self, node: NodeId, survey: &Survey) -> u8 {
        self.nodes.find(node).1.map_or(UNREACHABLE, |number| survey.distances[usize::from(number)])
    }

    /// Who is linked with a node, as far as is known.
    pub fn links_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let row = self.nodes.find(node).1.map_or(&[][..], |number| self.row(number));
        row.iter().map(|&other| self.nodes.nodes[usize::from(other)])
    }

    /// Whether a neighbour can be reached without the link to it, over at most so many of the links that will do.
    pub fn has_way_round(
        &self,
        neighbour: NodeId,
        most: u8,
        will_do: impl Fn(NodeId, NodeId) -> bool,
    ) -> bool {
        let Some(goal) = self.nodes.find(neighbour).1 else { return false };
        let mut distances = vec![UNREACHABLE; self.nodes.nodes.len()];
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
            let from = self.nodes.nodes[usize::from(at)];
            for &to in self.row(at) {
                let there = usize::from(to);
                let is_the_link = here == 0 && to == goal;
                if distances[there] != UNREACHABLE || is_the_link || !will_do(from, self.nodes.nodes[there]) {
                    continue;
                }
                // Nothing that comes later is nearer, and the last steps are most of the work.
                if to == goal {
                    return true;
                }
                distances[there] = here + 1;
                queue.push(to);
            }
        }
        false
    }

    fn row(&self, number: u16) -> &[u16] {
        let at = usize::from(number);
        &self.ends[self.begins[at] as usize..self.begins[at + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use shoal_model::Time;

    use super::super::message::Known;
    use super::*;
    use crate::shared::Shared;
    use crate::testing::cases;

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
        let survey = graph.survey();
        let all: Vec<u8> = (1..=8).map(|node| graph.distance_to(NodeId(node), &survey)).collect();
        assert_eq!(all, [0, 1, 2, 3, 4, 3, 2, 1]);
        assert_eq!(graph.distance_to(NodeId(99), &survey), UNREACHABLE);
        let far: Vec<NodeId> = graph.from_distance(&survey, 3).collect();
        assert_eq!(far, [4, 5, 6].map(NodeId));
        assert_eq!(survey.rings, [8, 8]);
    }

    #[test]
    fn way_round_is_found_if_it_is_short_enough_and_all_its_links_will_do() {
        let graph = ring(6);
        assert!(graph.has_way_round(NodeId(2), 5, |_, _| true));
        assert!(!graph.has_way_round(NodeId(2), 4, |_, _| true));
        assert!(!graph.has_way_round(NodeId(2), 5, |one, other| one.max(other) != NodeId(5)));
    }

    proptest! {
        #![proptest_config(cases(300))]

        /// What one look around tells of all links is what a search for each of them finds.
        #[test]
        fn shortest_ring_of_each_link_is_the_way_round_and_the_link(
            links in prop::collection::btree_set(1u64..30, 1..7),
            known in prop::collection::btree_map(1u64..30, prop::collection::btree_set(0u64..30, 0..4), 0..25),
        ) {
            let nodes = |ids: BTreeSet<u64>| ids.into_iter().map(NodeId).collect::<Vec<_>>();
            let links = nodes(links);
            let mut alpha = Alpha::new(50);
            for (node, neighbours) in known {
                let neighbours = Shared::new(nodes(neighbours));
                alpha.learn(&Known { node: NodeId(node), at: Time::ZERO, neighbours });
            }
            let graph = Graph::new(NodeId(0), &links, &alpha);
            let survey = graph.survey();
            prop_assert_eq!(survey.rings.len(), links.len());
            for (&link, &ring) in links.iter().zip(&survey.rings) {
                let shortest = (0..FURTHEST).find(|&most| graph.has_way_round(link, most, |_, _| true));
                prop_assert_eq!(shortest.map_or(UNREACHABLE, |links| links + 1), ring);
            }
        }
    }
}
