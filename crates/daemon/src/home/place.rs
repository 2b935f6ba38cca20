//! Which folder is meant: a function of the command line and the environment, and of nothing else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Nothing says where the data folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no data folder: neither SHOAL_HOME nor HOME is set; name one with SHOAL_HOME or --home DIR")]
pub struct NoPlace;

/// The data folder: `--home`, else `SHOAL_HOME`, else the place that the system's conventions name for what a program
/// remembers (`$XDG_STATE_HOME/shoal`, or `~/.local/state/shoal`).
///
/// As those conventions ask, a relative path in `XDG_STATE_HOME` counts as none. What is empty is not set.
pub fn resolve(
    flag: Option<&Path>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, NoPlace> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
    flag.map(Path::to_owned)
        .or_else(|| set("SHOAL_HOME"))
        .or_else(|| absolute("XDG_STATE_HOME").map(|state| state.join("shoal")))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state/shoal")))
        .ok_or(NoPlace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(flag: Option<&str>, set: &[(&str, &str)]) -> Result<PathBuf, NoPlace> {
        let value = |name: &str| set.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into());
        resolve(flag.map(Path::new), value)
    }

    #[test]
    fn nearest_wish_wins() {
        let all = [("SHOAL_HOME", "/s"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(place(Some("/f"), &all), Ok("/f".into()));
        assert_eq!(place(None, &all), Ok("/s".into()));
        assert_eq!(place(None, &all[1..]), Ok("/x/shoal".into()));
        assert_eq!(place(None, &all[2..]), Ok("/h/.local/state/shoal".into()));
        assert_eq!(place(None, &[]), Err(NoPlace));
    }

    #[test]
    fn what_is_empty_or_relative_where_it_must_not_be_counts_as_none() {
        let odd = [("SHOAL_HOME", ""), ("XDG_STATE_HOME", "state"), ("HOME", "/h")];
        assert_eq!(place(None, &odd), Ok("/h/.local/state/shoal".into()));
        assert_eq!(place(None, &[("HOME", "h")]), Err(NoPlace));
        assert_eq!(place(None, &[("SHOAL_HOME", "here")]), Ok("here".into()));
    }
}
