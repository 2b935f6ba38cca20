//! Looks a data folder and its machine over, and says what is wrong and what to do; changes nothing.
//!
//! Works beside a running daemon and without one, on a folder that is damaged, newer or not there.

mod folder;
mod records;
mod system;

use serde::Serialize;

use crate::home::Home;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: `database`, `clock`.
    pub subject: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// The node works, but less well than it could.
    Warning,
    /// The node does not work, or not safely.
    Problem,
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Problem => "problem",
        }
    }
}

impl Finding {
    fn ok(subject: &'static str, seen: impl Into<String>) -> Finding {
        Finding { subject, verdict: Verdict::Ok, seen: seen.into(), advice: None }
    }

    fn warning(subject: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Warning, advice: Some(advice.into()), ..Finding::ok(subject, seen) }
    }

    fn problem(subject: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Problem, ..Finding::warning(subject, seen, advice) }
    }
}

/// Looks at everything.
pub fn examine(home: &Home) -> Vec<Finding> {
    let mut findings = Vec::new();
    folder::examine(home, &mut findings);
    records::examine(home, &mut findings);
    system::examine(home, &mut findings);
    findings
}

/// The worst of what was found.
pub fn worst(findings: &[Finding]) -> Verdict {
    findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::store::Store;
    use crate::{Sqlite, home};

    fn find<'a>(findings: &'a [Finding], subject: &str) -> &'a Finding {
        findings
            .iter()
            .find(|finding| finding.subject == subject)
            .unwrap_or_else(|| panic!("{subject}: {findings:#?}"))
    }

    fn made(folder: &tempfile::TempDir) -> Home {
        let home = Home::at(folder.path().join("home"));
        let lock = home.lock().unwrap();
        let mut store = Sqlite::<shoal_protocols::node::Record>::open(&lock).unwrap().store;
        store.sync().unwrap();
        home
    }

    #[test]
    fn folder_that_is_not_there_is_no_problem_and_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        let findings = examine(&home);
        assert_eq!(find(&findings, "folder").verdict, Verdict::Ok, "{findings:#?}");
        assert!(find(&findings, "folder").seen.contains("is not there"));
        assert!(!home.path().exists());
    }

    #[test]
    fn sound_folder_has_no_problem() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(&folder);
        let findings = examine(&home);
        for subject in ["folder", "format", "daemon", "database", "records", "disk", "supervisor"] {
            assert_eq!(find(&findings, subject).verdict, Verdict::Ok, "{findings:#?}");
        }
        assert!(find(&findings, "daemon").seen.contains("no daemon"));
        assert!(find(&findings, "records").seen.contains("0 jobs"));
    }

    #[test]
    fn daemon_that_runs_is_told_with_its_process_and_its_database_is_read_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(&folder);
        let lock = home.lock().unwrap();
        let _store = Sqlite::<shoal_protocols::node::Record>::open(&lock).unwrap();
        let findings = examine(&home);
        assert!(find(&findings, "daemon").seen.contains(&std::process::id().to_string()));
        assert_eq!(find(&findings, "records").verdict, Verdict::Ok, "{findings:#?}");
    }

    #[test]
    fn secrets_that_others_can_read_are_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(&folder);
        home::write_whole(&home.key(), b"secret").unwrap();
        assert_eq!(find(&examine(&home), "key").verdict, Verdict::Ok);
        fs::set_permissions(home.key(), PermissionsExt::from_mode(0o644)).unwrap();
        let findings = examine(&home);
        let key = find(&findings, "key");
        assert_eq!(key.verdict, Verdict::Problem);
        assert!(key.seen.contains("644") && key.advice.as_ref().unwrap().contains("chmod 600"), "{key:?}");
    }

    #[test]
    fn damage_and_newer_versions_are_problems_and_nothing_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(&folder);
        fs::write(home.database(), b"SQLite format 3\0 and then rubbish".repeat(40)).unwrap();
        let before = fs::read(home.database()).unwrap();
        let findings = examine(&home);
        assert_eq!(find(&findings, "database").verdict, Verdict::Problem, "{findings:#?}");
        assert_eq!(fs::read(home.database()).unwrap(), before);

        fs::write(home.format_file(), "99\n").unwrap();
        let findings = examine(&home);
        assert!(
            find(&findings, "format").advice.as_ref().unwrap().contains("newer version"),
            "{findings:#?}"
        );
        assert_eq!(worst(&findings), Verdict::Problem);
    }

    #[test]
    fn settings_that_make_no_sense_are_named_by_their_field() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(&folder);
        fs::write(home.settings(), "[machine]\ncors = 4\n").unwrap();
        let findings = examine(&home);
        let settings = find(&findings, "settings");
        assert_eq!(settings.verdict, Verdict::Problem);
        assert!(settings.seen.contains("`cors`"), "{settings:?}");
    }

    #[test]
    fn what_a_start_refuses_is_a_problem_whichever_part_of_the_settings_it_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(&folder);
        for (text, names) in [
            ("recpie = 'asap'", "recpie"),
            ("recipe = 'best'", "best"),
            ("time = '0s'", "`time`"),
            ("queue = 'sjf'\nrecipe = 'sample'", "queue"),
            ("[network]\nlisten = 'nonsense'", "listen"),
            ("[tasks]\nread = ['data']", "tasks.read"),
        ] {
            fs::write(home.settings(), text).unwrap();
            let findings = examine(&home);
            let settings = find(&findings, "settings");
            assert_eq!(settings.verdict, Verdict::Problem, "{text}");
            assert!(settings.seen.contains(names), "{text}: {settings:?}");
        }
        fs::write(home.path().join("policy.toml"), "nonsense").unwrap();
        assert_eq!(find(&examine(&home), "policy").verdict, Verdict::Problem);
    }

    #[test]
    fn cabinet_that_is_damaged_is_a_problem_and_so_are_records_that_are_gone_beside_a_sound_one() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(&folder);
        let lock = home.lock().unwrap();
        drop(crate::cabinet::SqliteCabinet::open(&lock).unwrap());
        let findings = examine(&home);
        assert_eq!(find(&findings, "cabinet").verdict, Verdict::Ok, "{findings:#?}");
        let sound = fs::read(home.cabinet()).unwrap();
        fs::write(home.cabinet(), b"SQLite format 3\0 and then rubbish".repeat(40)).unwrap();
        assert_eq!(find(&examine(&home), "cabinet").verdict, Verdict::Problem);
        fs::write(home.cabinet(), sound).unwrap();
        for rest in ["", "-wal", "-shm"] {
            let mut path = home.database().into_os_string();
            path.push(rest);
            let _ = fs::remove_file(path);
        }
        let findings = examine(&home);
        assert_eq!(find(&findings, "database").verdict, Verdict::Problem, "{findings:#?}");
    }
}
