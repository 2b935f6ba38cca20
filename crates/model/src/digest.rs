//! What content is known by: the BLAKE3 hash of its bytes.

use std::fmt;
use std::str::FromStr;

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

/// The hash of some bytes; in text 64 hexadecimal digits.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen, Serialize, Deserialize,
)]
#[cbor(transparent)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// A text that is no hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hash: expected 64 hexadecimal digits, the small letters")]
pub struct NoDigest;

impl Digest {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Short: the first eight digits.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}")
    }
}

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Digest, NoDigest> {
        // One text for each hash: it also names a file.
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return Err(NoDigest);
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let (high, low) = (value(digits[0]).ok_or(NoDigest)?, value(digits[1]).ok_or(NoDigest)?);
            *byte = high << 4 | low;
        }
        Ok(Digest(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = NoDigest;

    fn try_from(text: String) -> Result<Digest, NoDigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_have_one_text_each() {
        let digest = Digest::of(b"shoal");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        let text = digest.to_string();
        for wrong in ["", "../../etc/passwd", &text[1..], &text.to_uppercase(), &format!("{text}0")] {
            assert_eq!(wrong.parse::<Digest>(), Err(NoDigest), "{wrong}");
        }
    }
}
