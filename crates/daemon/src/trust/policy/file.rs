//! The file that a policy is written in, and what can be wrong with it.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shoal_model::units::SpanText;
use shoal_model::{Name, Size, Thousandths};
use toml::Spanned;

use super::hours::{Hours, read_zone};
use super::{Default, Limits, Paths, Policy, Rule, Who};
use crate::settings::{check_path, key};
use crate::trust::text::read_key;

/// Rules in a policy, at most.
pub const RULES_MAX: usize = 1_000;
/// Names in one list of a rule, at most.
const NAMES_MAX: usize = 1_000;
/// Bytes of a policy's file, at most.
const FILE_MAX: u64 = 1 << 20;
/// Stands for those who belong to no organisation.
const NONE: &str = "-";

/// Why a policy is of no use.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file makes no sense.
    #[error("line {line}: {what}")]
    Line {
        /// Where, from 1.
        line: u32,
        /// What is wrong.
        what: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    default: Word,
    zone: Option<Spanned<String>>,
    #[serde(default)]
    rules: Vec<Spanned<RuleFile>>,
}

#[derive(Clone, Copy, std::default::Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    #[default]
    Own,
    Allow,
    Deny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    verdict: Verdict,
    users: Option<Vec<Name>>,
    organisations: Option<Vec<Name>>,
    keys: Option<Vec<String>>,
    cores: Option<Thousandths>,
    memory: Option<Size>,
    time: Option<SpanText>,
    jobs: Option<u32>,
    hours: Option<Vec<String>>,
    isolate: Option<bool>,
    read: Option<Vec<String>>,
    write: Option<Vec<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Allow,
    Deny,
}

/// The policy of this file, if there is one.
pub(super) fn find(path: &Path) -> Result<Option<Policy>, PolicyError> {
    let mut text = String::new();
    match std::fs::File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_string(&mut text)) {
        Ok(_) if text.len() as u64 > FILE_MAX => {
            Err(PolicyError::Line { line: 1, what: format!("the file has more than {FILE_MAX} bytes") })
        }
        Ok(_) => read(&text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PolicyError::Io { path: path.to_owned(), source }),
    }
}

pub(super) fn read(text: &str) -> Result<Policy, PolicyError> {
    let line_of = |at: usize| {
        let before = text.get(..at).unwrap_or(text);
        u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
    };
    let file: PolicyFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        // Line breaks of the parser's drawing would tear our own line apart.
        PolicyError::Line { line, what: key::suggest(&error.message().replace('\n', " ")) }
    })?;
    let default = match file.default {
        Word::Own => Default::Own,
        Word::Allow => Default::Allow,
        Word::Deny => Default::Deny,
    };
    let offset = match &file.zone {
        None => 0,
        Some(zone) => read_zone(zone.get_ref()).ok_or_else(|| PolicyError::Line {
            line: line_of(zone.span().start),
            what: format!("`zone` is `{}`: expected an offset as in `+01:00`", zone.get_ref()),
        })?,
    };
    if file.rules.len() > RULES_MAX {
        let what = format!("{} rules, at most {RULES_MAX}", file.rules.len());
        return Err(PolicyError::Line { line: 1, what });
    }
    let mut rules: Vec<Rule> = Vec::with_capacity(file.rules.len());
    for rule in file.rules {
        let line = line_of(rule.span().start);
        let rule = rule_of(line, rule.into_inner()).map_err(|what| PolicyError::Line { line, what })?;
        if let Some(earlier) = rules.iter().find(|earlier| earlier.covers(&rule)) {
            let why =
                if earlier.allows == rule.allows { "says the same before it" } else { "contradicts it" };
            let what = format!("this rule never decides: the one in line {} {why}", earlier.line);
            return Err(PolicyError::Line { line, what });
        }
        rules.push(rule);
    }
    Ok(Policy { rules, default, offset })
}

fn rule_of(line: u32, file: RuleFile) -> Result<Rule, String> {
    let RuleFile {
        verdict,
        users,
        organisations,
        keys,
        cores,
        memory,
        time,
        jobs,
        hours,
        isolate,
        read,
        write,
    } = file;
    let allows = matches!(verdict, Verdict::Allow);
    let bounds = [
        ("cores", cores.is_some()),
        ("memory", memory.is_some()),
        ("time", time.is_some()),
        ("jobs", jobs.is_some()),
        ("isolate", isolate.is_some()),
        ("read", read.is_some()),
        ("write", write.is_some()),
    ];
    if let Some((field, _)) = bounds.into_iter().find(|(_, given)| *given && !allows) {
        return Err(format!("`{field}` bounds what a rule allows, and this one denies: leave it out"));
    }
    if jobs == Some(0) || cores == Some(Thousandths::ZERO) {
        return Err("a rule that allows nothing at all: write one that denies".to_owned());
    }
    let keys = set("keys", keys)?.map(|keys| keys.iter().map(|key| read_key(key)).collect()).transpose();
    let organisations = set("organisations", organisations)?
        .map(|names| names.into_iter().map(|name| Some(name).filter(|name| name.as_str() != NONE)).collect());
    let who = Who {
        users: set("users", users)?,
        organisations,
        keys: keys.map_err(|error| format!("`keys`: {error}"))?,
    };
    let hours = hours.map(|hours| Hours::read(hours.iter().map(String::as_str))).transpose()?;
    let cell = cell_of(isolate, read, write)?;
    let limits = Limits { cores, memory, time: time.map(|time| time.0), jobs };
    Ok(Rule { line, allows, who, limits, hours, cell })
}

/// What the cells of jobs are like that a rule allows, if it has them run in cells.
fn cell_of(
    isolate: Option<bool>,
    read: Option<Vec<String>>,
    write: Option<Vec<String>>,
) -> Result<Option<Paths>, String> {
    let (read, write) = (set("read", read)?.unwrap_or_default(), set("write", write)?.unwrap_or_default());
    for (field, paths) in [("read", &read), ("write", &write)] {
        if let Some((path, what)) = paths.iter().find_map(|path| Some((path, check_path(path)?))) {
            return Err(format!("`{field}`: {path}: {what}"));
        }
    }
    let paths = Paths { read, write };
    match (isolate, paths == Paths::default()) {
        (Some(false), _) => {
            Err("`isolate = false` says nothing: whose jobs run in cells whatever rules say is for \
                                 `isolate` in node.toml to say; leave it out"
                .to_owned())
        }
        (None, true) => Ok(None),
        (Some(true), _) | (None, false) => Ok(Some(paths)),
    }
}

/// A list without doubles and within its bounds.
fn set<T: Ord>(field: &str, list: Option<Vec<T>>) -> Result<Option<BTreeSet<T>>, String> {
    let Some(list) = list else { return Ok(None) };
    let count = list.len();
    let set: BTreeSet<T> = list.into_iter().collect();
    match set.len() {
        0 => Err(format!("`{field}` is empty: such a rule speaks of nobody; leave it out for anybody")),
        _ if count > NAMES_MAX => Err(format!("`{field}` has {count} names, at most {NAMES_MAX}")),
        distinct if distinct < count => Err(format!("`{field}` names one twice")),
        _ => Ok(Some(set)),
    }
}
