//! Reads what is to be told to a job and to nobody else.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use data_encoding::BASE64;
use shoal_model::Job;

use crate::error::Error;

/// The secrets of a job in base64, by name: each from its file, or from this shell's variable.
pub fn read(job: &Job, files: &BTreeMap<String, PathBuf>) -> Result<BTreeMap<String, String>, Error> {
    let names = job.secrets.iter().flat_map(|names| names.iter());
    names
        .map(|name| {
            let value = match files.get(name.as_str()) {
                Some(path) => fs::read(path).map_err(|error| {
                    Error::user(format!("--secret {name}: cannot read {}: {error}", path.display()))
                })?,
                None => std::env::var_os(name.as_str()).map(|value| value.into_encoded_bytes()).ok_or_else(
                    || {
                        Error::user(format!(
                            "the secret `{name}` is not in this shell's variable of that name"
                        ))
                        .hint(format!("--secret {name}=PATH takes it from a file"))
                    },
                )?,
            };
            Ok((name.to_string(), BASE64.encode(&value)))
        })
        .collect()
}
