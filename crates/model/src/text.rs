//! Short texts with a known alphabet and a known bound: names, lines, expressions, architectures, systems.
//!
//! Each is checked once, when it is made; copies share their bytes. One is as large as a pointer: a job has room for several,
//! and most have none.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{CborLen, Decode, Encode};

use crate::units::{clipped, serde_as_text};

/// Bytes in a [`Name`], an [`Architecture`] or a [`System`], at most.
pub const MAX_NAME_BYTES: usize = 63;
/// Bytes in a [`Line`], at most.
pub const MAX_LINE_BYTES: usize = 255;
/// Bytes in an [`Expression`], at most.
pub const MAX_EXPRESSION_BYTES: usize = 4_096;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing at all.
    #[error("{kind} is empty")]
    Empty {
        /// What the text should have been.
        kind: &'static str,
    },
    /// More bytes than the kind allows.
    #[error("`{text}` has {bytes} bytes: {kind} has at most {most}")]
    TooLong {
        /// What the text should have been.
        kind: &'static str,
        /// Its beginning.
        text: Box<str>,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// A character outside the alphabet.
    #[error("`{text}` has {character:?} at column {column}: {kind} consists of {alphabet}")]
    Character {
        /// What the text should have been.
        kind: &'static str,
        /// Its beginning.
        text: Box<str>,
        /// The wrong character.
        character: char,
        /// Where it is, from 1.
        column: usize,
        /// What may be there.
        alphabet: &'static str,
    },
}

/// The rules for one kind of text.
struct Kind {
    name: &'static str,
    bytes_max: usize,
    alphabet: &'static str,
    allows: fn(char) -> bool,
}

const NAME_ALPHABET: &str = "letters a-z and A-Z, digits and - _ . @ + / :";
const fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+' | '/' | ':')
}

impl Kind {
    fn check(&self, text: &str) -> Result<(), TextError> {
        let kind = self.name;
        if text.is_empty() {
            return Err(TextError::Empty { kind });
        }
        if text.len() > self.bytes_max {
            return Err(TextError::TooLong {
                kind,
                text: clipped(text),
                bytes: text.len(),
                most: self.bytes_max,
            });
        }
        match text.chars().enumerate().find(|(_, c)| !(self.allows)(*c)) {
            None => Ok(()),
            Some((index, character)) => Err(TextError::Character {
                kind,
                text: clipped(text),
                character,
                column: index + 1,
                alphabet: self.alphabet,
            }),
        }
    }
}

macro_rules! text {
    ($(#[$doc:meta])* $type:ident, $kind:expr, $normal:expr, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<Box<str>>);

        impl $type {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = TextError;

            fn from_str(text: &str) -> Result<$type, TextError> {
                const KIND: Kind = $kind;
                KIND.check(text)?;
                let normal: fn(&str) -> Box<str> = $normal;
                Ok($type(Arc::new(normal(text))))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl<C> Encode<C> for $type {
            fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
                e.str(&self.0)?.ok()
            }
        }

        impl<'b, C> Decode<'b, C> for $type {
            fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<$type, decode::Error> {
                let at = d.position();
                d.str()?.parse().map_err(|error| decode::Error::custom(error).at(at))
            }
        }

        impl<C> CborLen<C> for $type {
            fn cbor_len(&self, ctx: &mut C) -> usize {
                self.as_str().cbor_len(ctx)
            }
        }

        serde_as_text!($type, $expected);
    };
}

text!(
    /// What users, organisations, labels and named resources are called: `alice@lab-a`, `fpga`.
    Name,
    Kind { name: "a name", bytes_max: MAX_NAME_BYTES, alphabet: NAME_ALPHABET, allows: in_name },
    |text| text.into(),
    "a name in quotes"
);

text!(
    /// One line of printable text: the name of a job, the value of a label.
    Line,
    Kind {
        name: "a line of text",
        bytes_max: MAX_LINE_BYTES,
        alphabet: "printable characters",
        allows: |c| !c.is_control(),
    },
    |text| text.into(),
    "a line of text in quotes"
);

text!(
    /// The source of an expression, read by whoever judges by it; here only its size is.
    Expression,
    Kind {
        name: "an expression",
        bytes_max: MAX_EXPRESSION_BYTES,
        alphabet: "printable characters and line breaks",
        allows: |c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'),
    },
    |text| text.into(),
    "an expression in quotes"
);

text!(
    /// A processor's instruction set, by Rust's name for it: `x86_64`, `aarch64`; other usual names are understood.
    Architecture,
    Kind { name: "an architecture", bytes_max: MAX_NAME_BYTES, alphabet: NAME_ALPHABET, allows: in_name },
    |text| match text.to_ascii_lowercase().as_str() {
        "amd64" | "x86-64" | "x64" => "x86_64".into(),
        "arm64" => "aarch64".into(),
        "ppc64le" => "powerpc64le".into(),
        other => other.into(),
    },
    "an architecture in quotes, as in \"x86_64\""
);

text!(
    /// An operating system, by Rust's name for it: `linux`, `macos`, `windows`; other usual names are understood.
    System,
    Kind { name: "a system", bytes_max: MAX_NAME_BYTES, alphabet: NAME_ALPHABET, allows: in_name },
    |text| match text.to_ascii_lowercase().as_str() {
        "darwin" | "osx" => "macos".into(),
        other => other.into(),
    },
    "a system in quotes, as in \"linux\""
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_names_of_architectures_and_systems_mean_the_same() {
        assert_eq!("AMD64".parse::<Architecture>(), "x86_64".parse());
        assert_eq!("arm64".parse::<Architecture>(), "aarch64".parse());
        assert_eq!("Darwin".parse::<System>(), "macos".parse());
        assert_ne!("linux".parse::<System>(), "macos".parse());
    }

    #[test]
    fn wrong_texts_are_refused_with_what_is_wrong() {
        let error = |text: &str| text.parse::<Name>().unwrap_err().to_string();
        assert_eq!(error(""), "a name is empty");
        assert_eq!(
            error("a b"),
            "`a b` has ' ' at column 2: a name consists of letters a-z and A-Z, digits and - _ . @ + / :"
        );
        assert!(error(&"a".repeat(64)).ends_with("has 64 bytes: a name has at most 63"));
        assert!("two\nlines".parse::<Line>().is_err());
        assert!("a &&\n b".parse::<Expression>().is_ok());
    }

    proptest! {
        #[test]
        fn whatever_is_a_text_reads_back_from_its_bytes(text in "\\PC{1,80}") {
            if let Ok(line) = text.parse::<Line>() {
                prop_assert_eq!(line.to_string(), text);
                let bytes = minicbor::to_vec(&line).unwrap();
                prop_assert_eq!(minicbor::decode::<Line>(&bytes).unwrap(), line);
            }
        }
    }
}
