//! All that Shoal decodes of what comes from outside, and what must hold of whatever is decoded.
//!
//! Each target takes any bytes. Where one has several decoders, the first byte chooses. What decodes is written again,
//! and what was written must decode to the same.

mod files;
mod grid;
mod jobs;
mod simulated;
mod supervisor;
mod trust;

use std::fmt::{Debug, Display};
use std::str::FromStr;

use minicbor::{Decode, Encode};

/// A target: it panics where something that must hold does not.
pub type Target = fn(&[u8]);

/// All targets by name; each has a file in `fuzz_targets` and a folder in `corpus`.
pub const TARGETS: [(&str, Target); 18] = [
    ("frames", grid::frames),
    ("words", grid::words),
    ("records", grid::records),
    ("trust", trust::trust),
    ("policy", trust::policy),
    ("audit", trust::audit),
    ("job_toml", jobs::toml),
    ("job_json", jobs::json),
    ("envelope", jobs::envelope),
    ("criterion", jobs::criterion),
    ("constraint", jobs::constraint),
    ("texts", jobs::texts),
    ("depot", files::depot),
    ("supervisor", supervisor::supervisor),
    ("traces", simulated::traces),
    ("scenario", simulated::scenario),
    ("kept", simulated::kept),
    ("hosts", simulated::hosts),
];

/// The byte that chooses, and what is left.
fn choice(bytes: &[u8]) -> Option<(u8, &[u8])> {
    bytes.split_first().map(|(first, rest)| (*first, rest))
}

/// What decodes encodes to something that decodes to the same.
fn cbor<T>(bytes: &[u8]) -> Option<T>
where
    T: Encode<()> + for<'b> Decode<'b, ()> + PartialEq + Debug,
{
    let value: T = minicbor::decode(bytes).ok()?;
    let written = minicbor::to_vec(&value).expect("memory takes what is written");
    let again: T = minicbor::decode(&written).expect("what was written can be read");
    assert_eq!(again, value);
    Some(value)
}

/// What is read prints as something that reads as the same, and errors are one line.
fn text<T>(text: &str)
where
    T: FromStr + Display + PartialEq + Debug,
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            match printed.parse::<T>() {
                Ok(again) => assert_eq!(again, value, "{printed}"),
                Err(error) => panic!("`{printed}` does not read back: {error}"),
            }
        }
        Err(error) => drop(error.to_string()),
    }
}

/// What can be read and written again stays the same from then on.
fn settles(bytes: &[u8], reread: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    if let Some(written) = reread(bytes) {
        assert_eq!(reread(&written).as_ref(), Some(&written));
    }
}
