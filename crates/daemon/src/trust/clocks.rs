//! Whether the nodes of a gang could start it together: each starts its task when its own clock says so.

use std::sync::OnceLock;

use shoal_model::units::SpanText;
use shoal_model::{NodeId, Span};
use shoal_protocols::node::Denial;

/// How far the clocks of a gang's nodes may be apart, at most.
pub const APART_MAX: Span = Span::from_secs(5);

/// By how many microseconds a node's clock is ahead of ours; nothing of who was never spoken with.
type Ahead = Box<dyn Fn(NodeId) -> Option<i64> + Send + Sync>;

/// What is known of the clocks of others.
#[derive(Default)]
pub struct Clocks(OnceLock<Ahead>);

impl Clocks {
    /// From now on, what the network has measured is known: by how many microseconds a node's clock is ahead of ours.
    pub fn learn(&self, ahead: impl Fn(NodeId) -> Option<i64> + Send + Sync + 'static) {
        // Whoever came first stays: there is one network.
        let _ = self.0.set(Box::new(ahead));
    }

    /// What is wrong with a node's clock, if it is too far from ours.
    pub fn off(&self, node: NodeId) -> Option<String> {
        let ahead = self.0.get()?(node)?;
        let off = Span::from_micros(ahead.unsigned_abs());
        let way = if ahead < 0 { "behind" } else { "ahead of" };
        (off > APART_MAX).then(|| {
            let (off, most) = (SpanText(off), SpanText(APART_MAX));
            format!("its clock is {off} {way} that of this node, and a gang starts only where they are at most {most} apart: set them right (NTP)")
        })
    }

    /// Refuses nodes whose clocks are too far apart, as far as they are known; this node's own is.
    pub fn judge(&self, nodes: &[NodeId]) -> Result<(), Denial> {
        let (Some(ahead), 2..) = (self.0.get(), nodes.len()) else { return Ok(()) };
        let known = nodes.iter().filter_map(|node| ahead(*node));
        let (least, most) = known.fold((0, 0), |(least, most), one| (one.min(least), one.max(most)));
        if most.abs_diff(least) > APART_MAX.as_micros() { Err(Denial::ClocksApart) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Node 1 is this one, node 9 was never spoken with; the others are so many seconds ahead.
    fn judge(seconds: &[i64], nodes: &[u64]) -> Result<(), Denial> {
        let clocks = Clocks::default();
        let seconds = seconds.to_vec();
        clocks.learn(move |node| seconds.get(node.0.checked_sub(2)? as usize).map(|ahead| ahead * 1_000_000));
        clocks.judge(&nodes.iter().map(|node| NodeId(*node)).collect::<Vec<_>>())
    }

    #[test]
    fn nodes_whose_clocks_are_too_far_apart_are_refused() {
        assert_eq!(judge(&[5], &[1, 2]), Ok(()));
        assert_eq!(judge(&[6], &[1, 2]), Err(Denial::ClocksApart));
        assert_eq!(judge(&[-6], &[2, 1]), Err(Denial::ClocksApart));
        assert_eq!(judge(&[3, -3], &[1, 2, 3]), Err(Denial::ClocksApart), "two others apart from each other");
        assert_eq!(
            judge(&[i64::MAX / 1_000_000, i64::MIN / 1_000_000], &[1, 2, 3]),
            Err(Denial::ClocksApart)
        );
    }

    #[test]
    fn clock_that_is_far_off_is_told_by_how_much() {
        let clocks = Clocks::default();
        assert_eq!(clocks.off(NodeId(6)), None);
        clocks.learn(|node| Some(node.0 as i64 * 1_000_000 - 10_000_000));
        assert_eq!(clocks.off(NodeId(6)), None);
        assert!(clocks.off(NodeId(4)).unwrap().starts_with("its clock is 6s behind that of this node"));
        assert!(clocks.off(NodeId(17)).unwrap().starts_with("its clock is 7s ahead of that of this node"));
    }

    #[test]
    fn nobody_is_refused_for_a_clock_that_is_not_known_or_does_not_matter() {
        assert_eq!(judge(&[6], &[1, 9]), Ok(()));
        assert_eq!(judge(&[6], &[1]), Ok(()));
        assert_eq!(judge(&[6], &[]), Ok(()));
        assert_eq!(Clocks::default().judge(&[NodeId(1), NodeId(2)]), Ok(()));
    }
}
