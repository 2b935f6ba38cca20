//! The bytes that nodes exchange: frames, and in each of them one message.
//!
//! ```text
//! frame    version u8   kind u16   length u32   payload (CBOR)          big-endian; the same head in every version
//! kind     0x00nn between the daemons themselves ([`words`]), else layer and number of a node's message ([`speech`])
//! ```
//!
//! A kind or version that is not known here is skipped, and counted: grids are not updated all at once. A payload that
//! cannot be read costs only itself. Nothing is built before the payload's size, its nesting and all its counts have
//! been looked at, and nothing that was built is believed before its meaning was checked.

pub mod frame;
pub mod sound;
pub mod speech;
pub mod words;

pub use frame::{Frame, HEAD, Head, PAYLOAD_MAX};
pub use speech::{Unread, read, write};
