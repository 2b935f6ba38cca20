//! Measures of who knows whom: in-degrees, clustering, path lengths, components.
//!
//! A link goes from the node that knows to the node that is known; its nodes are numbered from 0. Whatever an overlay
//! claims of its shape can be checked here, by tests and in reports.

use shoal_model::NodeId;

/// Who knows whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Where each node's links begin in `links`; one more than there are nodes.
    begins: Vec<u32>,
    links: Vec<u32>,
}

/// How far nodes are from each other, in links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Pairs of different nodes of which the first reaches the second.
    pub reached: u64,
    /// Pairs of which it does not.
    pub unreached: u64,
    /// The links of the shortest paths of all pairs together.
    pub links: u64,
    /// The links of the longest of them.
    pub longest: u32,
}

/// How values lie about their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation from it.
    pub deviation: f64,
    /// The least of them.
    pub least: u32,
    /// The greatest of them.
    pub most: u32,
}

/// How many sources one search for paths serves: one per bit of a word.
const SOURCES_AT_ONCE: usize = 64;

impl Graph {
    /// So many nodes with these links, which may repeat.
    ///
    /// # Panics
    /// If a link names a node that is not there.
    pub fn new(nodes: usize, links: &[(u32, u32)]) -> Graph {
        let mut begins = vec![0; nodes + 1];
        for &(from, to) in links {
            assert!((to as usize) < nodes, "node {to} is not among the {nodes}");
            begins[from as usize + 1] += 1;
        }
        for node in 0..nodes {
            begins[node + 1] += begins[node];
        }
        let mut free = begins.clone();
        let mut sorted = vec![0; links.len()];
        for &(from, to) in links {
            let place = &mut free[from as usize];
            sorted[*place as usize] = to;
            *place += 1;
        }
        Graph { begins, links: sorted }
    }

    /// The graph of these nodes, numbered as they come; links to others are left out.
    pub fn among<I>(nodes: &[NodeId], neighbours: impl Fn(NodeId) -> I) -> Graph
    where
        I: IntoIterator<Item = NodeId>,
    {
        let mut numbers: Vec<(NodeId, u32)> = nodes.iter().copied().zip(0..).collect();
        numbers.sort_unstable();
        let number = |node| numbers.binary_search_by_key(&node, |&(node, _)| node).map(|at| numbers[at].1);
        let links: Vec<(u32, u32)> = (0..)
            .zip(nodes)
            .flat_map(|(from, &node)| neighbours(node).into_iter().map(move |to| (from, to)))
            .filter_map(|(from, to)| Some((from, number(to).ok()?)))
            .collect();
        Graph::new(nodes.len(), &links)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.begins.len() - 1
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Whom a node knows.
    pub fn known_to(&self, node: usize) -> &[u32] {
        &self.links[self.begins[node] as usize..self.begins[node + 1] as usize]
    }

    /// By how many each node is known.
    pub fn in_degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.nodes()];
        for &to in &self.links {
            degrees[to as usize] += 1;
        }
        degrees
    }

    /// The same graph with each link going both ways, once, and none from a node to itself.
    pub fn undirected(&self) -> Graph {
        let mut links: Vec<(u32, u32)> = (0..self.nodes() as u32)
            .flat_map(|from| self.known_to(from as usize).iter().map(move |&to| (from, to)))
            .filter(|(from, to)| from != to)
            .flat_map(|(from, to)| [(from, to), (to, from)])
            .collect();
        links.sort_unstable();
        links.dedup();
        Graph::new(self.nodes(), &links)
    }

    /// The mean over all nodes of the share of pairs of neighbours that are neighbours of each other, whichever way
    /// the links go; a node with fewer than two counts as 0. Of a random graph: mean degree / nodes.
    pub fn clustering(&self) -> f64 {
        let graph = self.undirected();
        let mut marked_by = vec![usize::MAX; graph.nodes()];
        let local = |node: usize| {
            let neighbours = graph.known_to(node);
            for &neighbour in neighbours {
                marked_by[neighbour as usize] = node;
            }
            // Each pair is seen from both of its ends.
            let seen = neighbours
                .iter()
                .flat_map(|&neighbour| graph.known_to(neighbour as usize))
                .filter(|&&other| marked_by[other as usize] == node)
                .count();
            let degree = neighbours.len();
            if degree < 2 { 0.0 } else { seen as f64 / (degree * (degree - 1)) as f64 }
        };
        (0..graph.nodes()).map(local).sum::<f64>() / graph.nodes().max(1) as f64
    }

    /// The shortest paths from these nodes to all others, along the links.
    pub fn paths(&self, sources: impl IntoIterator<Item = usize>) -> Paths {
        let sources: Vec<usize> = sources.into_iter().collect();
        let mut paths = Paths::default();
        for sources in sources.chunks(SOURCES_AT_ONCE) {
            self.search(sources, &mut paths);
        }
        paths
    }

    /// The sizes of the parts that hang together, whichever way the links go, greatest first.
    pub fn components(&self) -> Vec<usize> {
        let mut parents: Vec<u32> = (0..self.nodes() as u32).collect();
        for from in 0..self.nodes() {
            for &to in self.known_to(from) {
                let (one, other) = (root(&mut parents, from as u32), root(&mut parents, to));
                parents[one as usize] = other;
            }
        }
        let mut sizes = vec![0; self.nodes()];
        for node in 0..self.nodes() as u32 {
            sizes[root(&mut parents, node) as usize] += 1;
        }
        sizes.retain(|&size| size > 0);
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        sizes
    }

    /// Whether all nodes hang together, whichever way the links go.
    pub fn is_connected(&self) -> bool {
        self.components().len() <= 1
    }

    /// Breadth first from all sources at once: a bit per source says who has been reached.
    fn search(&self, sources: &[usize], paths: &mut Paths) {
        let mut seen = vec![0u64; self.nodes()];
        for (bit, &source) in sources.iter().enumerate() {
            seen[source] |= 1 << bit;
        }
        let mut front = seen.clone();
        let mut reached = 0;
        for steps in 1.. {
            let mut next = vec![0u64; self.nodes()];
            for (node, &bits) in front.iter().enumerate().filter(|&(_, &bits)| bits != 0) {
                for &to in self.known_to(node) {
                    next[to as usize] |= bits;
                }
            }
            let mut fresh = 0;
            for (next, seen) in next.iter_mut().zip(&mut seen) {
                *next &= !*seen;
                *seen |= *next;
                fresh += u64::from(next.count_ones());
            }
            if fresh == 0 {
                break;
            }
            reached += fresh;
            paths.links += fresh * u64::from(steps);
            paths.longest = paths.longest.max(steps);
            front = next;
        }
        paths.reached += reached;
        paths.unreached += sources.len() as u64 * (self.nodes() as u64 - 1) - reached;
    }
}

impl Paths {
    /// The mean length of the paths of the pairs that have one.
    pub fn mean(&self) -> f64 {
        self.links as f64 / self.reached.max(1) as f64
    }
}

impl Spread {
    /// The spread of these values; all zero if there are none.
    pub fn of(values: &[u32]) -> Spread {
        let count = values.len().max(1) as f64;
        let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
        let squares = values.iter().map(|&value| (f64::from(value) - mean).powi(2));
        Spread {
            mean,
            deviation: (squares.sum::<f64>() / count).sqrt(),
            least: values.iter().copied().min().unwrap_or(0),
            most: values.iter().copied().max().unwrap_or(0),
        }
    }
}

/// The node that stands for a node's component; shortens the way to it.
fn root(parents: &mut [u32], mut node: u32) -> u32 {
    while parents[node as usize] != node {
        let parent = parents[node as usize];
        parents[node as usize] = parents[parent as usize];
        node = parent;
    }
    node
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    /// 0 → 1 → 2 → 0, 2 → 3, and 4 ↔ 5 apart.
    fn ring_with_tail() -> Graph {
        Graph::new(6, &[(0, 1), (1, 2), (2, 0), (2, 3), (4, 5), (5, 4)])
    }

    #[test]
    fn in_degree_counts_who_knows_a_node() {
        assert_eq!(ring_with_tail().in_degrees(), [1, 1, 1, 1, 1, 1]);
        assert_eq!(Graph::new(3, &[(0, 2), (1, 2), (1, 2)]).in_degrees(), [0, 0, 3]);
    }

    #[test]
    fn undirected_graph_has_each_link_once_both_ways() {
        let both = Graph::new(4, &[(0, 1), (1, 0), (1, 1), (2, 1), (2, 1)]).undirected();
        let known: Vec<&[u32]> = (0..4).map(|node| both.known_to(node)).collect();
        assert_eq!(known, [&[1][..], &[0, 2], &[1], &[]]);
    }

    #[test]
    fn clustering_is_the_mean_share_of_linked_pairs_of_neighbours() {
        // 0 and 1: all pairs; 2: one of three (0–1, not 0–3, 1–3); 3: one neighbour; 4, 5: one each.
        let expected = (1.0 + 1.0 + 1.0 / 3.0) / 6.0;
        assert!((ring_with_tail().clustering() - expected).abs() < 1e-12);
        let complete: Vec<(u32, u32)> =
            (0..5).flat_map(|one| (0..one).map(move |other| (one, other))).collect();
        assert_eq!(Graph::new(5, &complete).clustering(), 1.0);
        assert_eq!(Graph::new(4, &[(1, 0), (2, 0), (3, 0)]).clustering(), 0.0);
    }

    #[test]
    fn paths_go_along_the_links() {
        // From 0: 1, 2, 3 links to 1, 2, 3; 1: 2 to 0, 1 to 2, 2 to 3; 2: 1, 2, 1; 3 reaches nobody; 4 and 5: 1.
        let paths = ring_with_tail().paths(0..6);
        assert_eq!(paths, Paths { reached: 11, unreached: 19, links: 6 + 5 + 4 + 2, longest: 3 });
        assert_eq!(ring_with_tail().paths([1]).mean(), 5.0 / 3.0);
        assert_eq!(Graph::new(1, &[]).paths([0]), Paths::default());
    }

    #[test]
    fn more_sources_than_bits_are_searched_in_turns() {
        let ring: Vec<(u32, u32)> = (0..100).map(|node| (node, (node + 1) % 100)).collect();
        let links = 100 * (1..100).sum::<u64>();
        let paths = Graph::new(100, &ring).paths(0..100);
        assert_eq!(paths, Paths { reached: 9_900, unreached: 0, links, longest: 99 });
    }

    #[test]
    fn components_ignore_the_direction() {
        assert_eq!(ring_with_tail().components(), [4, 2]);
        assert_eq!(Graph::new(4, &[(0, 3), (1, 3)]).components(), [3, 1]);
        assert!(Graph::new(3, &[(0, 2), (1, 2)]).is_connected());
        assert!(!ring_with_tail().is_connected());
    }

    #[test]
    fn links_out_of_the_chosen_nodes_are_left_out() {
        let nodes = [NodeId(9), NodeId(4), NodeId(7)];
        let graph = Graph::among(&nodes, |node| [NodeId(node.0 + 3), NodeId(node.0 - 2)]);
        // 9 knows 12 and 7; 4 knows 7 and 2; 7 knows 10 and 5.
        assert_eq!(graph, Graph::new(3, &[(0, 2), (1, 2)]));
    }

    #[test]
    fn spread_is_that_of_the_values() {
        let spread = Spread { mean: 5.0, deviation: 2.0, least: 2, most: 9 };
        assert_eq!(Spread::of(&[2, 4, 4, 4, 5, 5, 7, 9]), spread);
        assert_eq!(Spread::of(&[]), Spread { mean: 0.0, deviation: 0.0, least: 0, most: 0 });
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 64,
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn nodes_of_a_component_and_no_others_reach_each_other_without_direction(
            links in prop::collection::vec((0u32..40, 0u32..40), 0..60),
        ) {
            let graph = Graph::new(40, &links).undirected();
            let within: u64 = graph.components().iter().map(|&size| (size * (size - 1)) as u64).sum();
            let paths = graph.paths(0..40);
            prop_assert_eq!((paths.reached, paths.unreached), (within, 40 * 39 - within));
        }
    }
}
