//! Relays: servers that carry what two nodes cannot send each other, such as two behind different NATs.
//!
//! Whoever runs a grid runs them too, and names them in `node.toml`; without a name nothing is spoken to. What goes
//! through one is encrypted from node to node as everything is: it learns who speaks with whom, and how much.

use std::fmt;
use std::str::FromStr;

use iroh::RelayUrl;
use minicbor::encode::Write;
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};
use serde::{Deserialize, Serialize};

/// Relays of a node, at most.
pub const RELAYS_MAX: usize = 2;
/// Signs of one, at most: a ticket has room for all of them.
const TEXT_MAX: usize = 128;

/// Where a relay is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Relay(RelayUrl);

/// What is wrong with the name of a relay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    /// Not the address of a server.
    #[error("`{0}` is no relay: write it as https://relay.example.org or http://192.0.2.1:3340")]
    NotAServer(String),
    /// More than anybody would write.
    #[error("the address of a relay has more than {TEXT_MAX} signs")]
    TooLong,
}

impl Relay {
    /// As the transport knows it.
    pub fn url(&self) -> &RelayUrl {
        &self.0
    }
}

impl fmt::Display for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl FromStr for Relay {
    type Err = RelayError;

    fn from_str(text: &str) -> Result<Relay, RelayError> {
        if text.len() > TEXT_MAX {
            return Err(RelayError::TooLong);
        }
        let not_a_server = || RelayError::NotAServer(text.escape_debug().to_string());
        let url: RelayUrl = text.parse().map_err(|_| not_a_server())?;
        let is_server = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let is_open = url.username().is_empty() && url.password().is_none();
        // The way it is written out can be longer than what was read.
        match (is_server && is_bare && is_open, url.as_str().len() <= TEXT_MAX) {
            (false, _) => Err(not_a_server()),
            (true, false) => Err(RelayError::TooLong),
            (true, true) => Ok(Relay(url)),
        }
    }
}

impl TryFrom<String> for Relay {
    type Error = RelayError;

    fn try_from(text: String) -> Result<Relay, RelayError> {
        text.parse()
    }
}

impl From<Relay> for String {
    fn from(relay: Relay) -> String {
        relay.to_string()
    }
}

impl<C> Encode<C> for Relay {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        encoder.str(self.0.as_str())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Relay {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Relay, minicbor::decode::Error> {
        let at = decoder.position();
        decoder.str()?.parse().map_err(|error: RelayError| minicbor::decode::Error::custom(error).at(at))
    }
}

impl<C> CborLen<C> for Relay {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.0.as_str().cbor_len(ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_relays_and_print_as_they_read() {
        for text in ["https://relay.example.org", "http://192.0.2.1:3340", "http://[2001:db8::1]:3340/"] {
            let relay: Relay = text.parse().unwrap();
            assert_eq!(relay.to_string().parse(), Ok(relay.clone()));
            let bytes = minicbor::to_vec(&relay).unwrap();
            assert_eq!(minicbor::len(&relay), bytes.len());
            assert_eq!(minicbor::decode::<Relay>(&bytes).unwrap(), relay);
        }
    }

    #[test]
    fn what_is_no_server_is_named_with_what_to_write() {
        for text in [
            "relay.example.org",
            "ftp://relay.example.org",
            "https://",
            "https://relay.example.org/path",
            "https://user@relay.example.org",
            "https://relay.example.org/?key=1",
            "",
        ] {
            let error = text.parse::<Relay>().unwrap_err().to_string();
            assert!(error.contains("write it as https://"), "{text}: {error}");
        }
        let long = format!("https://{}.example.org", "a".repeat(200));
        assert_eq!(long.parse::<Relay>(), Err(RelayError::TooLong));
    }
}
