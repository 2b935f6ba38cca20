//! A whole CAN at once, as if its nodes had joined one after the other: for grids that are laid out before they start.

use shoal_model::NodeId;

use super::config::{Config, Kind};
use super::join::{between, halves};
use super::message::{Claim, Peer};
use super::zone::{Point, SIDE, Space, Zone};
use crate::shared::Shared;

/// What a node has of a CAN that was laid out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Where it lies.
    pub point: Point,
    /// Its zone.
    pub claim: Claim,
    /// Its neighbours.
    pub around: Vec<Peer>,
}

/// A cut, or a zone.
enum Tree {
    Cut { along: usize, at: u32, below: usize, above: usize },
    Leaf(usize),
}

/// The places of nodes that join in this order; a node that lies where another does is moved in the virtual dimension.
pub fn lay_out(config: &Config, nodes: &[(NodeId, Point)]) -> Vec<Place> {
    let space = config.space();
    let mut points: Vec<Point> = Vec::with_capacity(nodes.len());
    let mut zones: Vec<Zone> = Vec::with_capacity(nodes.len());
    let mut tree: Vec<Tree> = Vec::new();
    for &(_, point) in nodes {
        let mut point = point;
        let newcomer = points.len();
        if newcomer == 0 {
            tree.push(Tree::Leaf(0));
            points.push(point);
            zones.push(Zone::WHOLE);
            continue;
        }
        let (at, owner, part) = loop {
            let at = leaf_of(&tree, &point);
            let Tree::Leaf(owner) = tree[at] else { unreachable!("a walk down the tree ends at a leaf") };
            let part = match config.space {
                Kind::Torus(_) => halves(&zones[owner], space.dimensions, &point),
                Kind::Resources => between(&zones[owner], &points[owner], &point, space.dimensions),
            };
            if let Some(part) = part {
                break (at, owner, part);
            }
            let along = space.dimensions - 1;
            point[along] = (point[along].wrapping_add(0x5bd1_e995)) % SIDE;
        };
        let rest = zones[owner].without(&part);
        let [rest] = rest[..] else { unreachable!("one cut leaves one part") };
        let along = (0..space.dimensions).find(|&d| rest.length(d) != zones[owner].length(d));
        let along = along.expect("the zone was cut");
        let part_above = rest.low()[along] < part.low()[along];
        let (below, above) = if part_above { (owner, newcomer) } else { (newcomer, owner) };
        let cut_at = part.low()[along].max(rest.low()[along]);
        let (first, second) = (tree.len(), tree.len() + 1);
        tree.push(Tree::Leaf(below));
        tree.push(Tree::Leaf(above));
        tree[at] = Tree::Cut { along, at: cut_at, below: first, above: second };
        zones[owner] = rest;
        zones.push(part);
        points.push(point);
    }
    let claims: Vec<Shared<Vec<Claim>>> = zones
        .iter()
        .map(|&zone| Shared::new(vec![Claim { zone, version: u32::from(zone.depth()).max(1) }]))
        .collect();
    zones
        .iter()
        .enumerate()
        .map(|(index, zone)| {
            let mut around = Vec::new();
            touching(&tree, 0, Zone::WHOLE, zone, &zones, space, &mut |other| {
                if other != index {
                    around.push(other);
                }
            });
            around.sort_unstable();
            Place {
                point: points[index],
                claim: claims[index][0],
                around: around
                    .into_iter()
                    .map(|other| Peer { node: nodes[other].0, claims: claims[other].clone() })
                    .collect(),
            }
        })
        .collect()
}

fn leaf_of(tree: &[Tree], point: &Point) -> usize {
    let mut at = 0;
    while let Tree::Cut { along, at: cut, below, above } = tree[at] {
        at = if point[along] < cut { below } else { above };
    }
    at
}

/// Calls `found` for each zone that touches `zone`.
fn touching(
    tree: &[Tree],
    at: usize,
    whole: Zone,
    zone: &Zone,
    zones: &[Zone],
    space: Space,
    found: &mut impl FnMut(usize),
) {
    match tree[at] {
        Tree::Leaf(leaf) => {
            if zones[leaf].touches(zone, space) {
                found(leaf);
            }
        }
        Tree::Cut { along, at: cut, below, above } => {
            let (low, high) = whole.cut(along, cut);
            for (child, part) in [(below, low), (above, high)] {
                if part.touches(zone, space) || part.overlaps(zone) {
                    touching(tree, child, part, zone, zones, space, found);
                }
            }
        }
    }
}
