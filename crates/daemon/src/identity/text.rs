//! Bytes as text that people copy: base32 without letters that look alike, and a sum that notices a slip.

use std::sync::LazyLock;

use data_encoding::{Encoding, Specification};

/// The letters: no `i`, `l`, `o` and `u`; capitals, and letters that look like a digit, are read as what they look like.
static LETTERS: LazyLock<Encoding> = LazyLock::new(|| {
    let mut letters = Specification::new();
    letters.symbols.push_str("0123456789abcdefghjkmnpqrstvwxyz");
    letters.translate.from.push_str("ABCDEFGHJKMNPQRSTVWXYZiIlLoO");
    letters.translate.to.push_str("abcdefghjkmnpqrstvwxyz111100");
    letters.encoding().expect("32 letters, each read in one way")
});

/// Bytes of the sum.
const SUM: usize = 5;

/// Why a text cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A sign that does not occur, or a length that cannot be.
    Letters,
    /// The sum does not fit: something was left out or changed.
    Sum,
}

/// The text of some bytes; `context` tells sums of different things apart.
pub(crate) fn write(context: &str, bytes: &[u8]) -> String {
    LETTERS.encode(&[bytes, &sum(context, bytes)].concat())
}

/// The bytes of a text.
pub(crate) fn read(context: &str, text: &str) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = LETTERS.decode(text.as_bytes()).map_err(|_| Unreadable::Letters)?;
    let at = bytes.len().checked_sub(SUM).ok_or(Unreadable::Sum)?;
    let found = bytes.split_off(at);
    if found == sum(context, &bytes) { Ok(bytes) } else { Err(Unreadable::Sum) }
}

fn sum(context: &str, bytes: &[u8]) -> [u8; SUM] {
    let hash = blake3::derive_key(context, bytes);
    [hash[0], hash[1], hash[2], hash[3], hash[4]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back_also_in_capitals_and_with_letters_that_look_alike() {
        for length in 0..60 {
            let bytes: Vec<u8> = (0..length).map(|byte: u8| byte.wrapping_mul(7)).collect();
            let text = write("test", &bytes);
            assert_eq!(read("test", &text), Ok(bytes.clone()));
            assert_eq!(read("test", &text.to_uppercase()), Ok(bytes.clone()));
            assert_eq!(read("test", &text.replace('0', "o").replace('1', "l")), Ok(bytes));
        }
    }

    #[test]
    fn every_slip_is_noticed() {
        let text = write("test", b"some bytes");
        for at in 0..text.len() {
            let mut slip = text.clone().into_bytes();
            slip[at] = if slip[at] == b'7' { b'8' } else { b'7' };
            assert!(read("test", &String::from_utf8(slip).unwrap()).is_err(), "at {at}");
        }
        assert!(read("test", &text[1..]).is_err());
        assert!(read("other", &text).is_err());
        assert_eq!(read("test", "!"), Err(Unreadable::Letters));
        assert_eq!(read("test", ""), Err(Unreadable::Sum));
    }
}
