//! Arguments and variables as the system takes them: strings that end with a zero byte, here one after the other.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

use minicbor::{Decode, Encode};

/// Strings for a program. One list of bytes: a program has many of them, and is spawned thousands of times a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub(super) struct Strings(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>);

impl Strings {
    /// Arguments.
    pub fn words<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> io::Result<Strings> {
        let mut strings = Strings::default();
        words.into_iter().try_for_each(|word| strings.push(&[word]))?;
        Ok(strings)
    }

    /// Variables, as `NAME=VALUE`.
    pub fn variables<'a>(variables: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>) -> io::Result<Strings> {
        let mut strings = Strings::default();
        variables.into_iter().try_for_each(|(name, value)| strings.push(&[name, OsStr::new("="), value]))?;
        Ok(strings)
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &CStr> {
        self.0.split_inclusive(|&byte| byte == 0).filter_map(|string| CStr::from_bytes_with_nul(string).ok())
    }

    fn push(&mut self, parts: &[&OsStr]) -> io::Result<()> {
        for part in parts {
            // What comes behind it would be a string of its own.
            if part.as_bytes().contains(&0) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a zero byte in an argument or a variable",
                ));
            }
            self.0.extend_from_slice(part.as_bytes());
        }
        self.0.push(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_and_none_hides_another() {
        let pairs = [("A", "1"), ("EMPTY", ""), ("B", "x=y")]
            .map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        let strings = Strings::variables(pairs).unwrap();
        let strings: Strings = minicbor::decode(&minicbor::to_vec(&strings).unwrap()).unwrap();
        assert_eq!(strings.iter().collect::<Vec<_>>(), [c"A=1", c"EMPTY=", c"B=x=y"]);
        assert!(Strings::variables([(OsStr::new("A"), OsStr::new("1\0B=2"))]).is_err());
        assert!(Strings::words([OsStr::new("\0")]).is_err());
    }
}
