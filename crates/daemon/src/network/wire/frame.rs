//! Frames: what is said, with its kind and length before it.

/// The version of frames written here.
pub const VERSION: u8 = 1;
/// The bytes of a frame before its payload.
pub const HEAD: usize = 7;
/// The most bytes of a payload: an envelope at its limit, and the nodes of the largest gang, fit twice.
pub const PAYLOAD_MAX: usize = 4 << 20;
/// Arrays within arrays within arrays, at most; the deepest message has half of it.
const NESTING_MAX: usize = 24;

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Of which version it is.
    pub version: u8,
    /// What its payload is.
    pub kind: u16,
    /// How long its payload is.
    pub length: usize,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Of which version it is.
    pub version: u8,
    /// What its payload is.
    pub kind: u16,
    /// What it says.
    pub payload: Vec<u8>,
}

/// Why a payload is not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// See [`PAYLOAD_MAX`].
    #[error("a frame of {0} bytes, at most {PAYLOAD_MAX}")]
    TooLarge(usize),
    /// Nested too deeply.
    #[error("nested too deeply")]
    TooDeep,
    /// It announces more than it has.
    #[error("it announces more than it has")]
    Hollow,
    /// Not what these bytes can be.
    #[error("not CBOR, or not one item of it")]
    NotCbor,
}

impl Head {
    /// Reads a head; refuses a payload that is too large before anything is made for it.
    pub fn read(bytes: &[u8; HEAD]) -> Result<Head, Malformed> {
        let [version, kind @ .., a, b, c, d] = *bytes;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > PAYLOAD_MAX {
            return Err(Malformed::TooLarge(length));
        }
        Ok(Head { version, kind: u16::from_be_bytes(kind), length })
    }
}

/// Appends a frame whose payload `write` appends; on an error nothing is appended.
pub fn append<E: From<Malformed>>(
    bytes: &mut Vec<u8>,
    kind: u16,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<usize, E> {
    let start = bytes.len();
    let [high, low] = kind.to_be_bytes();
    bytes.extend([VERSION, high, low, 0, 0, 0, 0]);
    let written = write(bytes);
    let length = bytes.len() - start - HEAD;
    match (written, u32::try_from(length)) {
        (Ok(()), Ok(head)) if length <= PAYLOAD_MAX => {
            bytes[start + 3..start + HEAD].copy_from_slice(&head.to_be_bytes());
            Ok(HEAD + length)
        }
        (Ok(()), _) => {
            bytes.truncate(start);
            Err(Malformed::TooLarge(length).into())
        }
        (Err(error), _) => {
            bytes.truncate(start);
            Err(error)
        }
    }
}

/// Looks through a payload without building anything: its nesting is bounded, and whatever it counts is there.
///
/// A decoder that then makes room for each item as it comes makes at most so many items as there are bytes.
pub fn look_through(payload: &[u8]) -> Result<(), Malformed> {
    // What is left of each array that is open; a map is an array of twice as many.
    let mut open = [0u64; NESTING_MAX];
    let mut depth = 0;
    let mut rest = payload;
    loop {
        let (major, argument, after) = item(rest)?;
        rest = after;
        match major {
            2 | 3 => {
                let length = usize::try_from(argument).map_err(|_| Malformed::Hollow)?;
                rest = rest.get(length..).ok_or(Malformed::Hollow)?;
            }
            4 | 5 => {
                let items = if major == 5 { argument.saturating_mul(2) } else { argument };
                if items > rest.len() as u64 {
                    return Err(Malformed::Hollow);
                }
                if items > 0 {
                    *open.get_mut(depth).ok_or(Malformed::TooDeep)? = items;
                    depth += 1;
                    continue;
                }
            }
            // A tag stands before the item that it is about; nothing here uses one.
            6 => return Err(Malformed::NotCbor),
            _ => {}
        }
        while depth > 0 {
            open[depth - 1] -= 1;
            if open[depth - 1] > 0 {
                break;
            }
            depth -= 1;
        }
        if depth == 0 {
            return if rest.is_empty() { Ok(()) } else { Err(Malformed::NotCbor) };
        }
    }
}

/// The kind of an item, its number, and what comes after these.
fn item(bytes: &[u8]) -> Result<(u8, u64, &[u8]), Malformed> {
    let (&first, rest) = bytes.split_first().ok_or(Malformed::Hollow)?;
    let wide = match first & 31 {
        small @ 0..=23 => return Ok((first >> 5, u64::from(small), rest)),
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        // Items of unknown length: nothing here writes them.
        _ => return Err(Malformed::NotCbor),
    };
    let (number, rest) = rest.split_at_checked(wide).ok_or(Malformed::Hollow)?;
    Ok((first >> 5, number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_reads_back_what_was_written() {
        let mut bytes = vec![9];
        let length = append::<Malformed>(&mut bytes, 0x0102, |bytes| {
            bytes.extend(*b"abc");
            Ok(())
        });
        assert_eq!(length, Ok(HEAD + 3));
        let head = Head::read(bytes[1..1 + HEAD].try_into().unwrap());
        assert_eq!(head, Ok(Head { version: VERSION, kind: 0x0102, length: 3 }));
        assert_eq!(&bytes[1 + HEAD..], b"abc");
    }

    #[test]
    fn frame_beyond_the_limit_is_neither_written_nor_read() {
        let mut bytes = vec![9];
        let written = append::<Malformed>(&mut bytes, 1, |bytes| {
            bytes.resize(bytes.len() + PAYLOAD_MAX + 1, 0);
            Ok(())
        });
        assert_eq!(written, Err(Malformed::TooLarge(PAYLOAD_MAX + 1)));
        assert_eq!(bytes, [9]);
        assert_eq!(Head::read(&[1, 0, 1, 255, 255, 255, 255]), Err(Malformed::TooLarge(u32::MAX as usize)));
    }

    #[test]
    fn what_is_announced_must_be_there() {
        assert_eq!(look_through(&[0x9a, 0xff, 0xff, 0xff, 0xff, 0]), Err(Malformed::Hollow));
        assert_eq!(look_through(&[0xbb, 255, 255, 255, 255, 255, 255, 255, 255]), Err(Malformed::Hollow));
        assert_eq!(look_through(&[0x5a, 0, 16, 0, 0]), Err(Malformed::Hollow));
        assert_eq!(look_through(&[0x82, 1]), Err(Malformed::Hollow));
        assert_eq!(look_through(&[]), Err(Malformed::Hollow));
        assert_eq!(look_through(&[0x9f, 0xff]), Err(Malformed::NotCbor));
        assert_eq!(look_through(&[1, 1]), Err(Malformed::NotCbor));
        assert_eq!(look_through(&[0x82, 0x80, 0xa1, 1, 0x61, b'a']), Ok(()));
    }

    #[test]
    fn nesting_has_its_limit() {
        let nested = |depth: usize| [vec![0x81; depth], vec![0]].concat();
        assert_eq!(look_through(&nested(NESTING_MAX)), Ok(()));
        assert_eq!(look_through(&nested(NESTING_MAX + 1)), Err(Malformed::TooDeep));
        assert_eq!(look_through(&nested(1 << 20)), Err(Malformed::TooDeep));
    }
}
