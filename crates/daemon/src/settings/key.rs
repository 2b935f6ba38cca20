//! What is said of a key that there is none of: the one that was probably meant, instead of all there are.

/// Below this, two names have nothing to do with each other.
const ALIKE: f64 = 0.7;

/// A message of the parser in which `unknown field …, expected one of …` names only the nearest of these, if one is near.
pub(crate) fn suggest(message: &str) -> String {
    let whole = || message.to_owned();
    let Some((before, list)) = message.split_once(", expected ") else { return whole() };
    let Some((_, unknown)) = before.rsplit_once("unknown field `") else { return whole() };
    let unknown = unknown.trim_end_matches('`');
    // Names stand between backticks, and words or commas between names.
    let known = list.split('`').skip(1).step_by(2);
    let near = known.map(|known| (strsim::jaro_winkler(unknown, known), known));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, near)) if likeness > ALIKE => format!("{before}; did you mean `{near}`?"),
        _ => whole(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_that_was_probably_meant_is_named_alone() {
        for (said, told) in [
            (
                "unknown field `recipee`, expected one of `recipe`, `time`",
                "unknown field `recipee`; did you mean `recipe`?",
            ),
            (
                "line 2\nunknown field `tme`, expected `recipe` or `time`\n",
                "line 2\nunknown field `tme`; did you mean `time`?",
            ),
            (
                "unknown field `zzz`, expected `recipe` or `time`",
                "unknown field `zzz`, expected `recipe` or `time`",
            ),
            ("invalid type: integer `3`, expected a string", "invalid type: integer `3`, expected a string"),
        ] {
            assert_eq!(suggest(said), told);
        }
    }
}
