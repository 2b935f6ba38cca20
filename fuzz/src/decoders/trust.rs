//! Tickets, keys, passes, notices and policies, what a node keeps of its grid, and the audit log.

use std::sync::{Arc, LazyLock};

use shoal_daemon::membership::{Chain, GridId, Ticket};
use shoal_daemon::service::history::Cursor;
use shoal_daemon::settings::{GridSettings, Settings};
use shoal_daemon::trust::notice::Notice;
use shoal_daemon::trust::policy::{Case, Hours, Policy};
use shoal_daemon::trust::{pass, text};
use shoal_daemon::{Cabinet, Grid, Identity, MemoryCabinet, audit};
use shoal_model::envelope::{Pass, PublicKey};
use shoal_model::{Name, Resources, Span, Time};

use super::{cbor, choice};

/// When everything here is judged: samples are still good then.
const NOW: Time = Time::from_secs(1_000);

static ROOT: LazyLock<Identity> = LazyLock::new(|| Identity::from_bytes(&[1; 32]));
static NODE: LazyLock<Identity> = LazyLock::new(|| Identity::from_bytes(&[2; 32]));

/// What makes somebody somebody.
pub fn trust(bytes: &[u8]) {
    let Some((choice, rest)) = choice(bytes) else { return };
    let grid = GridId(ROOT.public());
    match choice % 8 {
        0 => {
            let Some(pass) = Pass::new(rest) else { return };
            let said = pass::says(&pass);
            if let Ok(bearer) = pass::verify(&pass, grid, NOW) {
                assert_eq!(said.map(|said| said.user), Some(bearer.key));
            }
            assert_eq!(pass::read(&pass::write(&pass)), Ok(pass));
        }
        1 => {
            let Some(notice) = cbor::<Notice>(rest) else { return };
            let _ = notice.verify(grid, NOW, |_| true);
        }
        2 => {
            let Some(chain) = cbor::<Chain>(rest) else { return };
            let _ = chain.verify(grid, &NODE.public(), NOW);
        }
        3 => {
            let Some(ticket) = cbor::<Ticket>(rest) else { return };
            // One with too many addresses, or none, is no ticket for those who are shown it.
            if let Ok(again) = ticket.to_string().parse::<Ticket>() {
                assert_eq!(again, ticket);
            }
        }
        4 => {
            let cabinet = MemoryCabinet::new();
            cabinet.put("grid", b"self", rest).expect("memory takes it");
            let _ = Grid::load(&NODE, Arc::new(cabinet));
        }
        _ => {
            let Ok(line) = str::from_utf8(rest) else { return };
            match choice % 8 {
                5 => super::text::<Ticket>(line),
                6 => {
                    if let Ok(key) = text::read_key(line) {
                        assert_eq!(text::read_key(&text::write_key(&key)), Ok(key));
                    }
                }
                _ => {
                    if let Ok(pass) = pass::read(line) {
                        assert_eq!(pass::read(&pass::write(&pass)), Ok(pass));
                    }
                    if let Ok(notice) = Notice::read(line) {
                        assert_eq!(Notice::read(&notice.write()), Ok(notice));
                    }
                }
            }
        }
    }
}

/// A host's policy, its hours, and what it says of a job; and other small things that a node is told.
pub fn policy(bytes: &[u8]) {
    static USER: LazyLock<Name> = LazyLock::new(|| "alice".parse().expect("a name"));
    let Some((choice, rest)) = choice(bytes) else { return };
    let Ok(text) = str::from_utf8(rest) else { return };
    match choice % 7 {
        0 => drop(Hours::read(text.lines())),
        2 => {
            if let Some(cursor) = Cursor::read(text) {
                assert_eq!(Cursor::read(&cursor.word()), Some(cursor));
            }
        }
        3 => drop(shoal_daemon::service::read_nonce(text)),
        4 => {
            if let Some(settings) = GridSettings::read(rest) {
                assert_eq!(GridSettings::read(&settings.write()), Some(settings));
            }
        }
        1 => {
            let Ok(settings) = toml::from_str::<Settings>(text) else { return };
            let written = toml::to_string(&settings).expect("settings can be written");
            assert_eq!(toml::from_str(&written).as_ref(), Ok(&settings), "{written}");
        }
        _ => match Policy::read(text) {
            Ok(policy) => {
                let organisation = Some(USER.clone());
                let own = [None, organisation.clone()];
                for (start, limit, beside) in
                    [(NOW, Span::from_hours(1), 0), (Time::NEVER, Span::MAX, usize::MAX)]
                {
                    let case = Case {
                        user: &USER,
                        key: Some(&PublicKey([7; 32])),
                        organisation: organisation.as_ref(),
                        resources: &Resources::cores(1),
                        start,
                        limit,
                        beside,
                        own: &own,
                    };
                    let verdict = policy.judge(&case);
                    assert_eq!(verdict, policy.judge(&case));
                }
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        },
    }
}

/// The audit log: a whole file, and a line behind a hash that is taken for right.
pub fn audit(bytes: &[u8]) {
    let mut records = 0;
    match audit::read_from(bytes, |_| records += 1).expect("memory can be read") {
        Ok(whole) => assert_eq!(whole.records, records),
        Err(broken) => assert_eq!(broken.number, records + 1),
    }
    if let Some(record) = str::from_utf8(bytes).ok().and_then(audit::read_line) {
        let written = serde_json::to_string(&record).expect("a record is plain data");
        assert_eq!(serde_json::from_str::<audit::Record>(&written).ok(), Some(record));
    }
}
