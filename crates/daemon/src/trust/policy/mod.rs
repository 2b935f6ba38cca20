//! What a machine's owner allows: rules in order, of which the first that speaks of a job decides.

mod file;
mod hours;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use shoal_model::envelope::PublicKey;
use shoal_model::{Name, Resources, Size, Span, Thousandths, Time};
use shoal_protocols::node::Denial;

pub use file::{PolicyError, RULES_MAX};
pub use hours::Hours;

/// The file in a node's folder.
pub const POLICY_FILE: &str = "policy.toml";

/// What a machine's owner allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
    default: Default,
    /// Of the zone in which hours are written, in minutes.
    offset: i64,
}

/// What happens to a job that no rule speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Default {
    /// It is allowed if it is of the machine's own organisation.
    #[default]
    Own,
    /// It is allowed.
    Allow,
    /// It is denied.
    Deny,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// Where it begins in its file, from 1.
    line: u32,
    allows: bool,
    who: Who,
    limits: Limits,
    hours: Option<Hours>,
    /// Jobs that it allows run in cells with these paths.
    cell: Option<Paths>,
}

/// What a job in a cell may touch besides the system and its own folder.
#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
pub struct Paths {
    /// It may read these.
    pub read: BTreeSet<String>,
    /// And change those.
    pub write: BTreeSet<String>,
}

/// Of whom a rule speaks; of anybody, where a set is missing.
#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
struct Who {
    users: Option<BTreeSet<Name>>,
    /// `None` in it is those without one.
    organisations: Option<BTreeSet<Option<Name>>>,
    keys: Option<BTreeSet<PublicKey>>,
}

/// How much a rule allows at most.
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq)]
struct Limits {
    cores: Option<Thousandths>,
    memory: Option<Size>,
    time: Option<Span>,
    jobs: Option<u32>,
}

/// What is to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Whose job.
    pub user: &'a Name,
    /// The key it was signed with, if it is known.
    pub key: Option<&'a PublicKey>,
    /// On whose behalf.
    pub organisation: Option<&'a Name>,
    /// What it takes.
    pub resources: &'a Resources,
    /// When it starts.
    pub start: Time,
    /// How long it may run.
    pub limit: Span,
    /// How many other jobs the user has here.
    pub beside: usize,
    /// The organisations that are the machine's own; `None` is those who have none.
    pub own: &'a [Option<Name>],
}

/// What comes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// By the rule that begins in this line.
    Rule {
        /// Which.
        line: u32,
        /// Whether it allows.
        allows: bool,
    },
    /// By what holds where no rule speaks.
    Default {
        /// Whether that allows.
        allows: bool,
    },
}

impl Verdict {
    /// The same as the host's answer.
    pub fn answer(self) -> Result<(), Denial> {
        match self {
            Verdict::Rule { allows: true, .. } | Verdict::Default { allows: true } => Ok(()),
            Verdict::Rule { line, allows: false } => Err(Denial::Rule(line)),
            Verdict::Default { allows: false } => Err(Denial::NoRule),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Rule { line, allows: true } => write!(f, "allowed by the rule in line {line}"),
            Verdict::Rule { line, allows: false } => write!(f, "denied by the rule in line {line}"),
            Verdict::Default { allows: true } => {
                f.write_str("allowed: no rule speaks of it, and the default does")
            }
            Verdict::Default { allows: false } => {
                f.write_str("denied: no rule speaks of it, and the default does not allow it")
            }
        }
    }
}

impl Policy {
    /// The policy in a node's folder; the default one if there is no file.
    pub fn load(home: &Path) -> Result<Policy, PolicyError> {
        Ok(Policy::find(home)?.unwrap_or_default())
    }

    /// The policy in a node's folder, if there is one.
    pub fn find(home: &Path) -> Result<Option<Policy>, PolicyError> {
        file::find(&Policy::path(home))
    }

    /// Where the policy of a node is.
    pub fn path(home: &Path) -> PathBuf {
        home.join(POLICY_FILE)
    }

    /// Reads a policy.
    pub fn read(text: &str) -> Result<Policy, PolicyError> {
        file::read(text)
    }

    /// What comes of a job.
    pub fn judge(&self, case: &Case<'_>) -> Verdict {
        for rule in &self.rules {
            if rule.speaks_of(case, self.offset) {
                return Verdict::Rule { line: rule.line, allows: rule.allows };
            }
        }
        let allows = match self.default {
            Default::Own => case.own.iter().any(|own| own.as_ref() == case.organisation),
            Default::Allow => true,
            Default::Deny => false,
        };
        Verdict::Default { allows }
    }

    /// What the cell of a job is like that the rule in this line has allowed, if it demands one.
    pub fn cell(&self, line: u32) -> Option<&Paths> {
        self.rules.iter().find(|rule| rule.line == line)?.cell.as_ref()
    }

    /// Whether any rule has jobs run in cells.
    pub fn demands(&self) -> bool {
        self.rules.iter().any(|rule| rule.cell.is_some())
    }

    /// Whether it depends on how many jobs a user has.
    pub fn counts(&self) -> bool {
        self.rules.iter().any(|rule| rule.limits.jobs.is_some())
    }

    /// How many rules there are.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }
}

impl Rule {
    fn speaks_of(&self, case: &Case<'_>, offset: i64) -> bool {
        let Limits { cores, memory, time, jobs } = self.limits;
        let at_most = cores.is_none_or(|most| case.resources.cores <= most)
            && memory.is_none_or(|most| case.resources.memory <= most)
            && time.is_none_or(|most| case.limit <= most)
            && jobs.is_none_or(|most| case.beside < most as usize);
        let then = self.hours.as_ref().is_none_or(|hours| {
            if self.allows {
                hours.hold(case.start, case.limit, offset)
            } else {
                hours.touch(case.start, case.limit, offset)
            }
        });
        self.who.includes(case) && at_most && then
    }

    /// Whether it speaks of every job that another speaks of.
    fn covers(&self, other: &Rule) -> bool {
        let unbounded = self.limits == Limits::default() || self.limits == other.limits;
        let hours = match (&self.hours, &other.hours) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(ours), Some(theirs)) => self.allows == other.allows && ours.cover(theirs),
        };
        unbounded && hours && self.who.covers(&other.who)
    }
}

impl Who {
    fn includes(&self, case: &Case<'_>) -> bool {
        let Who { users, organisations, keys } = self;
        users.as_ref().is_none_or(|users| users.contains(case.user))
            && organisations.as_ref().is_none_or(|all| all.contains(&case.organisation.cloned()))
            && keys.as_ref().is_none_or(|keys| case.key.is_some_and(|key| keys.contains(key)))
    }

    fn covers(&self, other: &Who) -> bool {
        fn wider<T: Ord>(ours: &Option<BTreeSet<T>>, theirs: &Option<BTreeSet<T>>) -> bool {
            match (ours, theirs) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(ours), Some(theirs)) => ours.is_superset(theirs),
            }
        }
        wider(&self.users, &other.users)
            && wider(&self.organisations, &other.organisations)
            && wider(&self.keys, &other.keys)
    }
}

#[cfg(test)]
mod tests;
