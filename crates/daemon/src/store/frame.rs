//! The bytes of a journal: a header, then frames, each the writes of one sync.
//!
//! ```text
//! header   "SHOALJNL"  version u32  salt u64  crc u32                        little-endian throughout
//! frame    length u32  crc of the payload u32  crc of this head u32  payload
//! ```
//!
//! A frame's head is summed together with the file's salt and the frame's offset: bytes that look like a frame are
//! one only in the place and in the file that they were written for, whatever a user puts into a record.

use crc32fast::Hasher;

/// The bytes of a file's header.
pub(super) const HEADER: usize = 24;
/// The bytes of a frame before its payload.
pub(super) const HEAD: usize = 12;
/// The most bytes of a payload: bounds what a reader allocates, and what a crash can tear.
pub(super) const PAYLOAD_MAX: usize = 16 << 20;
/// The format written here.
pub(super) const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"SHOALJNL";

/// What makes a file's frames its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Salt(pub u64);

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    NotAJournal,
    Newer(u32),
    Damaged,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub length: usize,
    crc: u32,
}

impl Salt {
    pub fn header(self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..20].copy_from_slice(&self.0.to_le_bytes());
        let crc = crc32fast::hash(&header[..20]);
        header[20..].copy_from_slice(&crc.to_le_bytes());
        header
    }

    pub fn from_header(header: &[u8; HEADER]) -> Result<Salt, BadHeader> {
        let version = u32_at(header, 8);
        if header[..8] != MAGIC {
            return Err(BadHeader::NotAJournal);
        }
        // Before the sum: a later format may sum otherwise.
        if version > VERSION {
            return Err(BadHeader::Newer(version));
        }
        if version != VERSION || crc32fast::hash(&header[..20]) != u32_at(header, 20) {
            return Err(BadHeader::Damaged);
        }
        let salt = header[12..20].try_into().expect("eight bytes");
        Ok(Salt(u64::from_le_bytes(salt)))
    }

    /// Writes the head of a frame that will lie at `offset` over its first bytes.
    pub fn seal(self, frame: &mut [u8], offset: u64) {
        let (head, payload) = frame.split_at_mut(HEAD);
        let length = u32::try_from(payload.len()).expect("a payload has its limit");
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[4..8].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        let crc = self.sum(head, offset);
        head[8..].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the head of a frame at `offset`, if it is one.
    pub fn head(self, head: &[u8; HEAD], offset: u64) -> Option<Head> {
        let length = u32_at(head, 0) as usize;
        let sound = (1..=PAYLOAD_MAX).contains(&length) && self.sum(head, offset) == u32_at(head, 8);
        sound.then(|| Head { length, crc: u32_at(head, 4) })
    }

    /// Where the first whole frame begins in `bytes`, which lie at `offset`.
    pub fn find(self, bytes: &[u8], offset: u64) -> Option<u64> {
        (0..bytes.len().saturating_sub(HEAD)).find_map(|start| {
            let head = bytes[start..start + HEAD].try_into().expect("as long as a head");
            let head = self.head(head, offset + start as u64)?;
            let payload = bytes.get(start + HEAD..start + HEAD + head.length)?;
            head.fits(payload).then_some(offset + start as u64)
        })
    }

    fn sum(self, head: &[u8], offset: u64) -> u32 {
        let mut sum = Hasher::new();
        sum.update(&self.0.to_le_bytes());
        sum.update(&offset.to_le_bytes());
        sum.update(&head[..8]);
        sum.finalize()
    }
}

impl Head {
    /// Whether this is the payload that the head was made for.
    pub fn fits(&self, payload: &[u8]) -> bool {
        payload.len() == self.length && crc32fast::hash(payload) == self.crc
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(salt: Salt, payload: &[u8], offset: u64) -> Vec<u8> {
        let mut frame = [&[0; HEAD], payload].concat();
        salt.seal(&mut frame, offset);
        frame
    }

    proptest! {
        #[test]
        fn any_changed_bit_is_noticed(
            salt: u64, payload in prop::collection::vec(any::<u8>(), 1..100), offset: u64, bit: prop::sample::Index
        ) {
            let salt = Salt(salt);
            let mut bytes = frame(salt, &payload, offset);
            let sound = |bytes: &[u8]| {
                let (head, payload) = bytes.split_at(HEAD);
                salt.head(head.try_into().unwrap(), offset).is_some_and(|head| head.fits(payload))
            };
            prop_assert!(sound(&bytes));
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!sound(&bytes));
        }

        #[test]
        fn frame_is_found_behind_rubbish_but_only_where_it_was_written(
            rubbish in prop::collection::vec(any::<u8>(), 0..100), payload in prop::collection::vec(any::<u8>(), 1..100)
        ) {
            let (salt, at) = (Salt(7), 1000 + rubbish.len() as u64);
            let bytes = [rubbish.clone(), frame(salt, &payload, at)].concat();
            prop_assert_eq!(salt.find(&bytes, 1000), Some(at));
            prop_assert_eq!(salt.find(&bytes, 1001), None);
            prop_assert_eq!(Salt(8).find(&bytes, 1000), None);
            prop_assert_eq!(salt.find(&bytes[..bytes.len() - 1], 1000), None);
        }
    }

    #[test]
    fn header_says_what_is_wrong_with_it() {
        let header = Salt(7).header();
        assert_eq!(Salt::from_header(&header), Ok(Salt(7)));
        let changed = |at: usize, to: u8| {
            let mut header = header;
            header[at] = to;
            Salt::from_header(&header)
        };
        assert_eq!(changed(0, b'X'), Err(BadHeader::NotAJournal));
        assert_eq!(changed(8, 2), Err(BadHeader::Newer(2)));
        assert_eq!(changed(8, 0), Err(BadHeader::Damaged));
        assert_eq!(changed(12, 8), Err(BadHeader::Damaged));
    }
}
