//! The hash of a file made part by part, so that each part can be verified as it comes.
//!
//! BLAKE3 is a tree. Its nodes over *groups* of 1 MiB are the outline of a file: whoever has the hash of the file can tell
//! whether an outline belongs to it, and whoever has the outline can tell of each group whether it is the right one. A
//! file of one group has no outline: its hash is enough.

use blake3::Hasher;
use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use shoal_model::Digest;

/// Bytes of a group.
pub const GROUP: u64 = 1 << 20;
/// Bytes of the outline of the largest file that is taken.
pub const OUTLINE_MAX: usize = (super::BLOB_MAX / GROUP) as usize * CV;

const CV: usize = blake3::OUT_LEN;

/// The inner hashes of a file of more than one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline(Vec<ChainingValue>);

/// Hashes a file as it comes.
#[derive(Clone, Debug)]
pub struct Growing {
    /// Of the groups that are closed.
    closed: Vec<ChainingValue>,
    group: Hasher,
    in_group: u64,
}

impl Outline {
    /// Reads what [`Outline::bytes`] wrote, if it is the outline of a file with this size and hash.
    pub fn read(bytes: &[u8], size: u64, digest: &Digest) -> Option<Outline> {
        let groups = groups(size);
        let most = if groups == 1 { 0 } else { usize::try_from(groups).ok()? };
        if bytes.len() != most.checked_mul(CV)? {
            return None;
        }
        let (parts, _) = bytes.as_chunks::<CV>();
        let outline = Outline(parts.to_vec());
        (groups == 1 || outline.root() == Some(*digest)).then_some(outline)
    }

    /// The outline as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.concat()
    }

    /// Whether a group is the one with this number.
    fn has(&self, number: usize, group: &ChainingValue) -> bool {
        self.0.get(number) == Some(group)
    }

    fn root(&self) -> Option<Digest> {
        let (left, right) = halves(&self.0)?;
        Some(Digest(*merge_subtrees_root(&node(left), &node(right), Mode::Hash).as_bytes()))
    }
}

/// How many groups a file of this size has.
pub fn groups(size: u64) -> u64 {
    size.div_ceil(GROUP).max(1)
}

/// Splits nodes as BLAKE3 does: as many as a power of two on the left, and at least one on the right.
fn halves(nodes: &[ChainingValue]) -> Option<(&[ChainingValue], &[ChainingValue])> {
    (nodes.len() > 1).then(|| nodes.split_at(nodes.len().next_power_of_two() / 2))
}

fn node(nodes: &[ChainingValue]) -> ChainingValue {
    match halves(nodes) {
        Some((left, right)) => merge_subtrees_non_root(&node(left), &node(right), Mode::Hash),
        None => nodes[0],
    }
}

impl Growing {
    /// Of a file that has nothing in it yet.
    pub fn new() -> Growing {
        Growing { closed: Vec::new(), group: Hasher::new(), in_group: 0 }
    }

    /// How many bytes have come.
    pub fn size(&self) -> u64 {
        self.closed.len() as u64 * GROUP + self.in_group
    }

    /// Adds bytes; stops before the first group that is not the outline's, if there is one, and forgets it.
    pub fn add(&mut self, mut bytes: &[u8], expected: Option<&Outline>) -> Result<(), WrongGroup> {
        while !bytes.is_empty() {
            if self.in_group == GROUP {
                self.close(expected)?;
            }
            let room = usize::try_from(GROUP - self.in_group).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(room);
            self.group.update(now);
            self.in_group += room as u64;
            bytes = later;
        }
        Ok(())
    }

    /// The hash and the outline of all that has come.
    pub fn finish(mut self, expected: Option<&Outline>) -> Result<(Digest, Outline), WrongGroup> {
        if self.closed.is_empty() {
            return Ok((Digest(*self.group.finalize().as_bytes()), Outline::default()));
        }
        self.close(expected)?;
        let outline = Outline(self.closed);
        let root = outline.root().expect("more than one group is closed");
        Ok((root, outline))
    }

    /// Ends a group: another follows it, or it is the last of several.
    fn close(&mut self, expected: Option<&Outline>) -> Result<(), WrongGroup> {
        let group = self.group.finalize_non_root();
        let number = self.closed.len();
        let right = expected.is_none_or(|expected| expected.0.is_empty() || expected.has(number, &group));
        if right {
            self.closed.push(group);
        }
        let mut next = Hasher::new();
        next.set_input_offset(self.closed.len() as u64 * GROUP);
        self.group = next;
        self.in_group = 0;
        if right { Ok(()) } else { Err(WrongGroup(number as u64 * GROUP)) }
    }
}

impl Default for Growing {
    fn default() -> Growing {
        Growing::new()
    }
}

/// The group that begins at this byte is not the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongGroup(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn content(size: usize) -> Vec<u8> {
        (0..size).map(|place| (place % 251) as u8).collect()
    }

    fn grown(bytes: &[u8], step: usize) -> (Digest, Outline) {
        let mut growing = Growing::new();
        for part in bytes.chunks(step) {
            growing.add(part, None).unwrap();
        }
        growing.finish(None).unwrap()
    }

    #[test]
    fn hash_made_in_parts_is_that_of_the_whole() {
        let group = GROUP as usize;
        for size in [0, 1, 1_024, group - 1, group, group + 1, 2 * group, 3 * group, 5 * group + 7, 8 * group]
        {
            let bytes = content(size);
            let (digest, outline) = grown(&bytes, 300_001);
            assert_eq!(digest, Digest::of(&bytes), "{size}");
            let read = Outline::read(&outline.bytes(), size as u64, &digest);
            assert_eq!(read, Some(outline), "{size}");
        }
    }

    #[test]
    fn outline_of_another_file_is_none() {
        let bytes = content(3 * GROUP as usize);
        let (digest, outline) = grown(&bytes, 1 << 16);
        let mut wrong = outline.bytes();
        wrong[40] ^= 1;
        assert_eq!(Outline::read(&wrong, bytes.len() as u64, &digest), None);
        assert_eq!(Outline::read(&outline.bytes()[32..], bytes.len() as u64, &digest), None);
        assert_eq!(Outline::read(&[], bytes.len() as u64, &digest), None);
    }

    #[test]
    fn wrong_group_is_found_where_it_begins_and_can_come_again() {
        let mut bytes = content(3 * GROUP as usize + 5);
        let (digest, outline) = grown(&bytes, 1 << 16);
        let right = bytes.clone();
        bytes[GROUP as usize + 9] ^= 1;
        let mut growing = Growing::new();
        let wrong = growing.add(&bytes, Some(&outline)).unwrap_err();
        assert_eq!((wrong, growing.size()), (WrongGroup(GROUP), GROUP));
        growing.add(&right[GROUP as usize..], Some(&outline)).unwrap();
        assert_eq!(growing.finish(Some(&outline)).unwrap().0, digest);
    }
}
