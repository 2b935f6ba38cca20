//! How tasks are kept to what they were granted, and in which cells they run.

use std::path::Path;

use serde::{Deserialize, Serialize};
use shoal_model::{Size, Thousandths};

use super::{SettingsError, is_default};
use crate::cell::Walls;
use crate::executor::process::Keep;

/// Processes and threads of a task in a cell, where nobody says.
const PROCESSES: u64 = 4_096;
/// Files that each of its processes may have open.
const FILES: u64 = 65_536;
/// What processes of one share in memory that asks for no memory.
const SHARED: Size = Size::from_mib(256);
/// The room on disk of one that asks for none.
const DISK: Size = Size::from_gib(16);

/// How tasks are kept to what they were granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskSettings {
    /// Whether each whole core is a processor that no other task of this node has. Where nobody says: if the node has all
    /// of the machine's cores, for then no other node begins with the same processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<bool>,
    /// Whether each task has a control group, where the system lets us make one.
    #[serde(skip_serializing_if = "is_default")]
    pub group: bool,
    /// Whether tasks that ask for memory have no more of it than they asked for, where control groups can see to that.
    #[serde(skip_serializing_if = "is_true")]
    pub cap: bool,
    /// Whose tasks run in cells.
    #[serde(skip_serializing_if = "is_default")]
    pub isolate: Isolate,
    /// What tasks in cells may read besides the system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// What they may change besides their own folders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Processes and threads of each at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Files that each of their processes may have open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// The room on disk of one that asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Size>,
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Default for TaskSettings {
    fn default() -> TaskSettings {
        TaskSettings {
            pin: None,
            group: false,
            cap: true,
            isolate: Isolate::default(),
            read: Vec::new(),
            write: Vec::new(),
            processes: None,
            files: None,
            disk: None,
        }
    }
}

/// Whose tasks run in cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolate {
    /// Those of other organisations than the machine's own.
    #[default]
    Foreign,
    /// Everybody's.
    All,
    /// Nobody's, but where a rule of the policy or the job itself asks for it.
    None,
}

impl TaskSettings {
    /// How tasks are kept on a machine that has these cores, by a node that has those.
    pub fn keep(&self, machine: Thousandths, node: Thousandths) -> Keep {
        Keep { pinned: self.pin.unwrap_or(machine == node), grouped: self.group, capped: self.cap }
    }

    /// The walls of a cell for a task that asks for so much disk and memory.
    pub fn walls(&self, disk: Size, memory: Size) -> Walls {
        let disk = if disk > Size::ZERO { disk } else { self.disk.unwrap_or(DISK) };
        let shared = if memory > Size::ZERO { memory } else { SHARED };
        Walls {
            read: self.read.clone(),
            write: self.write.clone(),
            processes: Some(self.processes.unwrap_or(PROCESSES)),
            files: Some(self.files.unwrap_or(FILES)),
            disk: Some(disk.as_bytes()),
            shared: Some(shared.as_bytes()),
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        for (field, paths) in [("tasks.read", &self.read), ("tasks.write", &self.write)] {
            if let Some((path, what)) = paths.iter().find_map(|path| Some((path, check_path(path)?))) {
                return Err(SettingsError::Path { field: field.to_owned(), path: path.into(), what });
            }
        }
        Ok(())
    }
}

/// What is wrong with a path that tasks in cells are to be given.
pub(crate) fn check_path(path: &str) -> Option<&'static str> {
    let path = Path::new(path);
    if !path.is_absolute() || path.components().any(|part| part.as_os_str() == "..") {
        return Some("expected an absolute path without `..`");
    }
    ["/tmp", "/var/tmp"]
        .iter()
        .any(|own| path.starts_with(own))
        .then_some("tasks in cells have a folder of their own there")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_pinned_by_a_node_that_has_the_whole_machine_unless_it_is_told_otherwise() {
        let [two, four] = [2, 4].map(Thousandths::whole);
        let pinned = |pin, node| TaskSettings { pin, ..TaskSettings::default() }.keep(four, node).pinned;
        assert!(pinned(None, four) && !pinned(None, two));
        assert!(!pinned(Some(false), four) && pinned(Some(true), two));
    }

    #[test]
    fn paths_for_cells_are_absolute_and_not_where_cells_have_their_own() {
        let check =
            |path: &str| TaskSettings { read: vec![path.to_owned()], ..TaskSettings::default() }.check();
        assert!(check("/data").is_ok());
        for wrong in ["data", "/data/../etc", "/tmp", "/var/tmp/x"] {
            let error = check(wrong).unwrap_err().to_string();
            assert!(error.starts_with("`tasks.read`: "), "{error}");
        }
    }

    #[test]
    fn memory_is_capped_unless_the_owner_says_otherwise() {
        let cap = |text: &str| {
            toml::from_str::<TaskSettings>(text).unwrap().keep(Thousandths::whole(1), Thousandths::whole(1))
        };
        assert!(cap("").capped && cap("pin = true").capped && !cap("cap = false").capped);
        let off = TaskSettings { cap: false, ..TaskSettings::default() };
        assert_eq!(toml::from_str::<TaskSettings>(&toml::to_string(&off).unwrap()).unwrap(), off);
    }

    #[test]
    fn disk_that_a_job_asks_for_is_what_it_has() {
        let settings = TaskSettings { disk: Some(Size::from_mib(2)), ..TaskSettings::default() };
        assert_eq!(settings.walls(Size::from_mib(1), Size::ZERO).disk, Some(1 << 20));
        assert_eq!(settings.walls(Size::ZERO, Size::ZERO).disk, Some(2 << 20));
    }
}
