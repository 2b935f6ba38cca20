//! A setting and the values that it takes, as written on the command line: `overlay.cache=10,20,30`.

use std::str::FromStr;

/// A setting of a scenario, and the values that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, with the tables it stands in, such as `recipe.fwd`.
    pub key: String,
    /// Its values as written.
    pub values: Vec<String>,
}

/// Why a setting cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No `=`.
    #[error("`{0}`: write the name of a setting, `=`, and its values, as in overlay.cache=10,20,30")]
    Form(String),
    /// No name, or one that no setting can have.
    #[error(
        "`{0}` is not the name of a setting: names have letters, digits, `_` and `-`, with `.` between tables"
    )]
    Key(String),
    /// Nothing between two commas.
    #[error("`{0}` has a value of nothing: write \"\" if you mean an empty text")]
    Empty(String),
    /// A quote or bracket that is not closed.
    #[error("`{0}`: a quote or bracket is not closed")]
    Open(String),
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Setting, SettingError> {
        let (key, values) = text.split_once('=').ok_or_else(|| SettingError::Form(text.to_owned()))?;
        let key = key.trim();
        let plain = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        if !key.split('.').all(plain) {
            return Err(SettingError::Key(key.to_owned()));
        }
        let values = split(values).ok_or_else(|| SettingError::Open(text.to_owned()))?;
        if values.iter().any(String::is_empty) {
            return Err(SettingError::Empty(text.to_owned()));
        }
        Ok(Setting { key: key.to_owned(), values })
    }
}

/// A value as TOML: as it stands if it is some, and else as a text, so that nobody has to write quotes within quotes.
pub(super) fn in_toml(value: &str) -> String {
    let is_toml = format!("x = {value}").parse::<toml::Table>().is_ok_and(|table| table.len() == 1);
    if is_toml { value.to_owned() } else { toml::Value::String(value.to_owned()).to_string() }
}

/// The values between commas that stand in no quotes and no brackets; none if one of those is not closed.
fn split(text: &str) -> Option<Vec<String>> {
    let mut values = vec![String::new()];
    let mut depth = 0u32;
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            (',', None) if depth == 0 => {
                values.push(String::new());
                continue;
            }
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth = depth.checked_sub(1)?,
            _ => {}
        }
        values.last_mut()?.push(c);
    }
    (depth == 0 && quote.is_none()).then(|| values.iter().map(|value| value.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_stands_between_commas() {
        let setting: Setting = "overlay.cache = 10, 20,30".parse().unwrap();
        assert_eq!(setting.key, "overlay.cache");
        assert_eq!(setting.values, ["10", "20", "30"]);
        let setting: Setting = r#"machines=[{ share = 1, capacity = { cores = 2 } }],[]"#.parse().unwrap();
        assert_eq!(setting.values, ["[{ share = 1, capacity = { cores = 2 } }]", "[]"]);
        let setting: Setting = r#"about="one, two",'three'"#.parse().unwrap();
        assert_eq!(setting.values, [r#""one, two""#, "'three'"]);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let error = |text: &str| text.parse::<Setting>().unwrap_err();
        assert_eq!(error("nodes"), SettingError::Form("nodes".to_owned()));
        assert_eq!(error("no des=1"), SettingError::Key("no des".to_owned()));
        assert_eq!(error("a..b=1"), SettingError::Key("a..b".to_owned()));
        assert_eq!(error("nodes=1,,2"), SettingError::Empty("nodes=1,,2".to_owned()));
        assert_eq!(error("x=[1,2"), SettingError::Open("x=[1,2".to_owned()));
        assert_eq!(error("x=]"), SettingError::Open("x=]".to_owned()));
    }

    #[test]
    fn words_need_no_quotes() {
        assert_eq!(in_toml("light"), "\"light\"");
        assert_eq!(in_toml("2h"), "\"2h\"");
        for toml in ["10", "0.5", "true", "\"x\"", "[1, 2]", "{ a = 1 }"] {
            assert_eq!(in_toml(toml), toml);
        }
        // A line break would begin another setting.
        assert_eq!(
            in_toml("1\ny = 2"),
            r#""""
1
y = 2""""#
        );
    }
}
