//! A disk that is full, for real: a small one in a namespace of its own.

use std::process::Command;

use shoal_daemon::home::Room;
use shoal_daemon::store::Error;
use shoal_daemon::{Home, Sqlite, Store};
use shoal_model::Size;

use crate::note::{Note, note};

/// Says to this program, started as a child, where the small disk is.
const FOLDER: &str = "SHOAL_TEST_FULL";

/// Not a claim, but the child of the claim below: fills a disk and looks what becomes of its records.
#[test]
fn filler() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let home = Home::at(std::path::Path::new(&folder).join("home"));
    let lock = home.lock().unwrap();
    let room = Room::with(&home, Size::from_mib(2), Size::from_mib(1));
    let mut store = Sqlite::open_with(&lock, room.clone()).unwrap().store;
    assert!(room.has_reserve());
    let mut next = 0;
    let write = |store: &mut Sqlite<Note>, next: &mut u32| {
        for _ in 0..4 {
            store.save(&note(*next, &"x".repeat(1_000))).unwrap();
            *next += 1;
        }
        let result = store.sync();
        if result.is_err() {
            *next -= 4;
        }
        result
    };
    // While there is room, jobs are taken; when it gets low, they are refused though writes still go through.
    while room.check().is_ok() {
        write(&mut store, &mut next).unwrap();
        store.tidy().unwrap();
    }
    assert!(room.check().unwrap_err().to_string().contains("nearly full"));
    // Somebody else fills the rest.
    let other = home.path().parent().unwrap().join("other");
    let filled = std::io::copy(&mut std::io::repeat(1), &mut std::fs::File::create(&other).unwrap());
    assert!(filled.is_err());
    // The records of what runs still fit: the reserve is given up for them.
    let spent = (0..10_000).any(|_| {
        write(&mut store, &mut next).unwrap();
        store.tidy().unwrap();
        !room.has_reserve()
    });
    assert!(spent, "the log never needed more room");
    // Beyond that the node stops, and has lost nothing that it promised.
    let error = (0..100_000).find_map(|_| write(&mut store, &mut next).err()).unwrap();
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert!(matches!(store.sync(), Err(Error::Failed(_))));
    drop(store);
    std::fs::remove_file(other).unwrap();
    let opened = Sqlite::<Note>::open_with(&lock, room.clone()).unwrap();
    assert_eq!(opened.records.len() as u32, next);
    println!("\nfilled with {next} records");
}

#[test]
fn full_disk_refuses_new_work_spends_its_reserve_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=12m none \"$1\" && shift && exec \"$@\"";
    let run = |program: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(folder.path());
        command.args(program).env(FOLDER, folder.path()).output()
    };
    if !run(&["true"]).is_ok_and(|output| output.status.success()) {
        eprintln!("no namespaces here: a small disk cannot be made, and nothing is shown");
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let output =
        run(&[exe.to_str().unwrap(), "--exact", "full::filler", "--nocapture", "--test-threads=1"]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("filled with "), "{text}{:?}", output);
}
