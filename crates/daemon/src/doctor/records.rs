//! The database: whether it can be read, all of it, and what it holds.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use shoal_model::Size;
use shoal_model::units::About;
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::Record;
use shoal_protocols::scheduling::aria;

use super::Finding;
use crate::cabinet::CABINET;
use crate::home::Home;
use crate::store::Error;
use crate::store::sqlite::{self, RECORDS, is_blank, wrong};

/// Up to this size the whole file is checked, pages that nothing uses included; beyond, all records are.
const CHECKED_WHOLE_MAX: Size = Size::from_mib(512);

pub(super) fn examine(home: &Home, findings: &mut Vec<Finding>) {
    let path = home.database();
    let cabinet = cabinet(home);
    match is_blank(&path) {
        Ok(true) if matches!(cabinet, Ok(Some(_))) => {
            let seen = "shoal.db is gone or empty, and with it all jobs that this node has accepted";
            let advice = "put it back from a copy, or name another folder with --home and join again";
            findings.push(Finding::problem("database", seen, advice));
            return;
        }
        Ok(true) => {
            findings.push(Finding::ok("database", "no database; the first start makes it"));
            return;
        }
        Ok(false) => {}
        Err(error) => return findings.push(problem("database", &error)),
    }
    match cabinet {
        Ok(None) => {}
        Ok(Some(things)) => findings.push(Finding::ok("cabinet", format!("cabinet.db, {things} things"))),
        Err(error) => findings.push(problem("cabinet", &error)),
    }
    if let Err(error) = RECORDS.check(&path) {
        return findings.push(problem("database", &error));
    }
    match look(&path) {
        Err(error) => findings.push(problem("database", &error)),
        Ok(seen) => {
            findings.push(Finding::ok("database", seen.file));
            findings.push(Finding::ok("records", seen.records));
        }
    }
}

/// How many things lie beside the records, all pages of whose file are sound; none if there is no such file.
fn cabinet(home: &Home) -> Result<Option<i64>, Error> {
    let path = home.cabinet();
    if is_blank(&path)? {
        return Ok(None);
    }
    CABINET.check(&path)?;
    let connection = open(&path)?;
    check_pages(&path, &connection)?;
    let things = connection.query_row("SELECT count(*) FROM things", [], |row| row.get::<_, i64>(0));
    things.map(Some).map_err(wrong("read", &path))
}

fn open(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(wrong("open", path))
}

fn check_pages(path: &Path, connection: &Connection) -> Result<(), Error> {
    let said = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match said.map_err(wrong("check", path))? {
        said if said == "ok" => Ok(()),
        said => Err(Error::Corrupt { path: path.to_owned(), what: said }),
    }
}

fn problem(subject: &'static str, error: &Error) -> Finding {
    let advice = match error {
        Error::Newer { .. } | Error::Unreadable { .. } | Error::UnreadableRecord { .. } => {
            "run the version of shoal that wrote it"
        }
        Error::NotADatabase(_) | Error::NotAJournal(_) => "move the file away, or restore it from a backup",
        Error::Damaged { .. } | Error::Corrupt { .. } => {
            "stop the node, keep a copy of the folder, check the disk, and restore the file from a backup"
        }
        Error::Full(_) => "free some room",
        Error::Io { .. }
        | Error::Database { .. }
        | Error::Locked(_)
        | Error::TooLarge { .. }
        | Error::Encode { .. }
        | Error::Failed(_) => "check the modes of the file, and the disk",
    };
    Finding::problem(subject, error.to_string(), advice)
}

struct Seen {
    file: String,
    records: String,
}

fn look(path: &Path) -> Result<Seen, Error> {
    let connection = open(path)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let version = number("user_version").map_err(wrong("read", path))?;
    let bytes = std::fs::metadata(path).map_err(Error::io("look at", path))?.len();
    let size = Size::from_bytes(bytes);
    let whole = size <= CHECKED_WHOLE_MAX;
    if whole {
        check_pages(path, &connection)?;
    }
    let checked = if whole { "all pages and records are sound" } else { "all records are sound" };
    let file = format!("shoal.db, version {version}, {}; {checked}", About::Up(size));
    if version < RECORDS.version() {
        let records = "the next start brings the file up to date".to_owned();
        return Ok(Seen { file, records });
    }
    let records: Vec<Record> = sqlite::load(path, &connection, |_, _| {})?;
    Ok(Seen { file, records: count(&records) })
}

fn count(records: &[Record]) -> String {
    let (mut jobs, mut ended, mut locks, mut seats, mut tasks) = (0, 0, 0, 0, 0);
    for record in records {
        match record {
            Record::Owned(owned) if owned.end.is_some() => ended += 1,
            Record::Owned(_) => jobs += 1,
            Record::Commit(two_phase::Record::Lock(_)) => locks += 1,
            Record::Aria(aria::Record::Seat(_)) => seats += 1,
            Record::Task(_, _, None) => tasks += 1,
            Record::Commit(two_phase::Record::Tenure(_))
            | Record::Aria(aria::Record::Tenure(_))
            | Record::Exits(..)
            | Record::Task(_, _, Some(_)) => {}
        }
    }
    let queue = if seats > 0 { format!("; {seats} in the queue") } else { String::new() };
    format!("{jobs} jobs under way, {ended} ended; {locks} locks{queue}; {tasks} tasks that run")
}
