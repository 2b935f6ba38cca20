//! What is said on the line between a ride and its carriage, and how.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use minicbor::{Decode, Encode};
use shoal_protocols::node::{Exit, Usage};

use super::super::quick::Common;
use super::super::strings::Strings;
use crate::cell::{Failure, cbor};

/// The most bytes of a word: a script, arguments and environment are smaller.
const WORD_MAX: usize = 16 << 20;
/// The bytes before it, which say how long it is.
const HEAD: usize = 4;

/// A task that is to ride.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(in super::super) struct Rider {
    /// Its working folder, which is there and empty.
    #[cbor(n(0), with = "cbor::path")]
    pub folder: PathBuf,
    /// What is to be put there for it to run.
    #[n(1)]
    pub script: Option<String>,
    /// What it runs, unless that is what the one before it ran.
    #[n(2)]
    pub common: Option<Common>,
    /// The variables that say which task it is.
    #[n(3)]
    pub own: Strings,
}

/// What has come of a task that was to ride.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(in super::super) enum Rode {
    /// It has ended.
    #[n(0)]
    Ended {
        /// How.
        #[n(0)]
        exit: Exit,
        /// What it took.
        #[n(1)]
        usage: Usage,
        /// Whether nothing of it is left.
        #[n(2)]
        clean: bool,
    },
    /// Its program did not run.
    #[n(1)]
    Failed(#[n(0)] Failure),
}

pub(super) fn say(line: &UnixStream, word: &impl Encode<()>) -> io::Result<()> {
    let mut bytes = vec![0; HEAD];
    minicbor::encode(word, &mut bytes).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - HEAD).map_err(io::Error::other)?;
    bytes[..HEAD].copy_from_slice(&length.to_le_bytes());
    let mut line = line;
    line.write_all(&bytes)
}

/// The next word; none if there will be no more. Nobody says two before the other has answered.
pub(super) fn hear<W: for<'b> Decode<'b, ()>>(line: &UnixStream) -> io::Result<Option<W>> {
    let mut line = line;
    // Most words come whole at once.
    let mut bytes = vec![0; 4_096];
    let mut heard = 0;
    while heard < HEAD {
        match line.read(&mut bytes[heard..]) {
            Ok(0) if heard == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => heard += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = bytes[..HEAD].iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    if length > WORD_MAX {
        return Err(io::Error::other(format!("a word of {length} bytes, at most {WORD_MAX}")));
    }
    let whole = HEAD + length;
    if heard > whole {
        return Err(io::Error::other("more than one word"));
    }
    bytes.resize(whole, 0);
    line.read_exact(bytes.get_mut(heard..).unwrap_or_default())?;
    minicbor::decode(&bytes[HEAD..]).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_whole_and_what_is_none_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let rider = Rider { script: Some("x".repeat(100_000)), ..Rider::default() };
        let said = rider.clone();
        let speaker = std::thread::spawn(move || {
            say(&ours, &said).unwrap();
            let mut line = &ours;
            line.write_all(&u32::MAX.to_le_bytes()).unwrap();
        });
        assert_eq!(hear::<Rider>(&theirs).unwrap(), Some(rider));
        assert!(hear::<Rider>(&theirs).unwrap_err().to_string().contains("at most"), "too long");
        speaker.join().unwrap();
        assert_eq!(hear::<Rider>(&theirs).unwrap(), None, "nobody is there any more");
        for wrong in [&[1, 0][..], &[2, 0, 0, 0, 7], &[1, 0, 0, 0, 7, 7], &[1, 0, 0, 0, 0xff]] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(wrong).unwrap();
            drop(ours);
            assert!(hear::<Rider>(&theirs).is_err(), "{wrong:?}");
        }
    }
}
