//! Results for programs.

use serde::Serialize;

use crate::error::Error;

/// The data as JSON.
pub fn render(data: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(data).map_err(|error| Error::internal(format!("cannot write JSON: {error}")))
}
