//! Bytes that nobody can guess: nonces and tokens.

use std::fs::File;
use std::io::{self, Read};

/// Draws bytes from the system.
pub fn draw<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(draw::<16>().unwrap(), draw::<16>().unwrap());
    }
}
