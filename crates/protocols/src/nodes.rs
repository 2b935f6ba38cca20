//! The nodes of a job, by rank: one of them mostly, which then takes no room of its own.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use minicbor::decode::{self, Decode, Decoder};
use minicbor::encode::{self, CborLen, Encode, Encoder, Write};
use shoal_model::NodeId;

/// Nodes in an order; read and written as any list.
#[derive(Clone, Default)]
pub struct Nodes(Kept);

#[derive(Clone, Default)]
enum Kept {
    #[default]
    None,
    One(NodeId),
    /// Boxed twice, so that one is small.
    Several(Box<Box<[NodeId]>>),
}

/// Very many jobs have them.
const _: () = assert!(size_of::<Nodes>() <= 16);

impl Deref for Nodes {
    type Target = [NodeId];

    fn deref(&self) -> &[NodeId] {
        match &self.0 {
            Kept::None => &[],
            Kept::One(node) => std::slice::from_ref(node),
            Kept::Several(nodes) => nodes,
        }
    }
}

impl From<Vec<NodeId>> for Nodes {
    fn from(nodes: Vec<NodeId>) -> Nodes {
        match *nodes {
            [] => Nodes(Kept::None),
            [node] => Nodes(Kept::One(node)),
            [..] => Nodes(Kept::Several(Box::new(nodes.into()))),
        }
    }
}

impl From<Nodes> for Vec<NodeId> {
    fn from(nodes: Nodes) -> Vec<NodeId> {
        match nodes.0 {
            Kept::None => Vec::new(),
            Kept::One(node) => vec![node],
            Kept::Several(nodes) => nodes.into_vec(),
        }
    }
}

impl FromIterator<NodeId> for Nodes {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Nodes {
        Vec::from_iter(nodes).into()
    }
}

impl IntoIterator for Nodes {
    type Item = NodeId;
    type IntoIter = std::vec::IntoIter<NodeId>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a Nodes {
    type Item = &'a NodeId;
    type IntoIter = std::slice::Iter<'a, NodeId>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Nodes {
    fn eq(&self, other: &Nodes) -> bool {
        **self == **other
    }
}

impl<const N: usize> PartialEq<[NodeId; N]> for Nodes {
    fn eq(&self, other: &[NodeId; N]) -> bool {
        **self == *other
    }
}

impl Eq for Nodes {}

impl PartialOrd for Nodes {
    fn partial_cmp(&self, other: &Nodes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Nodes {
    fn cmp(&self, other: &Nodes) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Nodes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<C> Encode<C> for Nodes {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), encode::Error<W::Error>> {
        (**self).encode(e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for Nodes {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Nodes, decode::Error> {
        Vec::decode(d, ctx).map(Nodes::from)
    }
}

impl<C> CborLen<C> for Nodes {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        (**self).cbor_len(ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_and_written_as_any_list() {
        for count in [0, 1, 2, 30] {
            let list: Vec<NodeId> = (0..count).map(|node| NodeId(node * node)).collect();
            let nodes = Nodes::from(list.clone());
            assert_eq!(*nodes, *list);
            assert_eq!(format!("{nodes:?}"), format!("{list:?}"));
            let bytes = minicbor::to_vec(&nodes).unwrap();
            assert_eq!(bytes, minicbor::to_vec(&list).unwrap());
            assert_eq!(bytes.len(), minicbor::len(&nodes));
            assert_eq!(minicbor::decode::<Nodes>(&bytes).unwrap(), nodes);
            assert_eq!(Vec::from(nodes.clone()), list);
            assert_eq!(nodes.into_iter().collect::<Vec<_>>(), list);
        }
    }
}
