//! Tasks in cells: what they cannot see, touch and take, as users of their own and in user namespaces.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::geteuid;
use shoal_daemon::cell::offers::Offers;
use shoal_daemon::cell::{BUBBLEWRAP, Secret, Walls};
use shoal_daemon::executor::process::{Ended, Launch};
use shoal_model::{Job, Name, Size, Span};
use shoal_protocols::node::{Action, Exit};

use crate::machine::{HOUR, Machine, lives, sh, task, wait_until};

/// Somebody who is not root, on every system.
const NOBODY: u32 = 65_534;

/// A machine whose tasks are in cells: as users of their own, if we are root.
fn machine(walls: Walls) -> Machine {
    let mut machine = Machine::with(Span::from_millis(200), Size::from_mib(1));
    machine.walls = Some(walls);
    machine.kill_daemon();
    machine.boot();
    machine
}

/// The same under a supervisor that is not root.
fn machine_of_nobody(walls: Walls) -> Machine {
    if !geteuid().is_root() {
        return machine(walls);
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("shoal-supervise");
    fs::copy(env!("CARGO_BIN_EXE_shoal-supervise"), &program).unwrap();
    let home = folder.path().join("home");
    fs::create_dir_all(home.join("supervisor")).unwrap();
    let mut machine = Machine::at(home.clone(), Span::from_millis(200), Size::from_mib(1));
    machine.owns(folder);
    machine.end_supervisor();
    let above = home.parent().unwrap();
    let inside = fs::read_dir(home.join("supervisor")).unwrap().map(|entry| entry.unwrap().path());
    for path in inside.chain([above.to_owned(), home.clone(), home.join("supervisor")]) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut arguments = ["--reuid=65534", "--regid=65534", "--clear-groups"].map(Into::into).to_vec();
    arguments.push(program.into_os_string());
    machine.launch = Some(Launch { program: "/usr/bin/setpriv".into(), arguments });
    machine.walls = Some(walls);
    machine.boot();
    machine
}

/// One whose folder lies where others may not pass, and not beneath `/tmp`.
fn machine_elsewhere(walls: Walls) -> Machine {
    let folder = tempfile::tempdir_in("/var").unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let mut machine = Machine::at(home, Span::from_millis(200), Size::from_mib(1));
    machine.owns(folder);
    machine.walls = Some(walls);
    machine.kill_daemon();
    machine.boot();
    machine
}

/// All kinds.
fn machines(walls: &Walls) -> [Machine; 3] {
    [machine(walls.clone()), machine_of_nobody(walls.clone()), machine_elsewhere(walls.clone())]
}

fn reason(ended: &Ended) -> &str {
    ended.reason.as_deref().unwrap_or_default()
}

#[test]
fn this_machine_can_isolate() {
    assert_eq!(Offers::find().lack(), None, "without cells the other tests here say nothing");
}

#[test]
fn task_in_a_cell_reads_neither_the_nodes_keys_nor_anothers_folder_and_its_own_it_may_change() {
    for mut machine in machines(&Walls::default()) {
        let key = machine.home().join("node.key");
        fs::write(&key, "the node's secret").unwrap();
        machine.start(1, sh("echo mine > mine; sleep 1000"), HOUR);
        wait_until("the first task has its file", || machine.file(task(1), "mine").exists());
        let script = format!(
            "cat {key} && exit 1; cat {other} && exit 2; ls {home}/tasks/*; ls {home}/supervisor && exit 3
             ls /root && exit 4; ls /home && exit 5; ls /run/user /run/dbus /dev/fuse && exit 6
             ls / > /dev/null; echo hello > own && cat own && pwd",
            key = key.display(),
            other = machine.file(task(1), "mine").display(),
            home = machine.home().display(),
        );
        let ended = machine.runs(2, sh(&script));
        let (stdout, stderr) = (machine.text(task(2), "stdout"), machine.text(task(2), "stderr"));
        assert_eq!(ended.exit, Exit::Code(0), "{stdout}\n{stderr}\n{:?}", ended.reason);
        assert!(stdout.contains("hello"), "{stdout}");
        let own = machine.file(task(2), "own").parent().unwrap().display().to_string();
        assert!(stdout.lines().any(|line| line == own), "its folder lies where it always does: {stdout}");
        assert!(!stdout.contains("mine") && !stdout.contains("secret"), "{stdout}");
        assert_eq!(machine.text(task(2), "own"), "hello\n");
    }
}

#[test]
fn task_in_a_cell_has_a_tmp_of_its_own_that_is_gone_with_it() {
    for mut machine in machines(&Walls::default()) {
        let ended =
            machine.runs(1, sh("echo x > /tmp/shoal-was-here && cat /tmp/shoal-was-here && ls -A /tmp"));
        assert_eq!(ended.exit, Exit::Code(0), "{}", machine.text(task(1), "stderr"));
        let stdout = machine.text(task(1), "stdout");
        // Its own folder lies beneath /tmp here; nothing else does.
        assert!(stdout.starts_with("x\n") && stdout.lines().count() <= 3, "{stdout}");
        assert!(!Path::new("/tmp/shoal-was-here").exists());
        let attempt = machine.file(task(1), "own");
        let temporary = format!("{}.tmp", attempt.parent().unwrap().display());
        wait_until("its /tmp is gone", || !Path::new(&temporary).exists());
    }
}

#[test]
fn task_in_a_cell_sends_no_signals_to_those_who_run_it_and_gains_no_privileges() {
    for mut machine in machines(&Walls::default()) {
        let supervisor = machine.supervisor();
        let script = format!(
            "kill -9 {supervisor} && exit 1; cat /proc/{supervisor}/environ && exit 2
             grep NoNewPrivs: /proc/self/status; grep CapEff: /proc/self/status"
        );
        let ended = machine.runs(1, sh(&script));
        let stdout = machine.text(task(1), "stdout");
        assert_eq!(ended.exit, Exit::Code(0), "{stdout}");
        assert!(lives(supervisor));
        assert!(stdout.contains("NoNewPrivs:\t1"), "{stdout}");
        assert!(stdout.contains("CapEff:\t0000000000000000"), "{stdout}");
    }
}

#[test]
fn variables_of_a_job_reach_nothing_that_runs_before_its_walls_stand() {
    for mut machine in machines(&Walls::default()) {
        let mut job = Job::command(["true"]);
        job.environment = Some(Box::new([("LD_PRELOAD".to_owned(), "./evil.so".to_owned())].into()));
        let ended = machine.runs(1, job);
        assert_eq!(ended.exit, Exit::Code(0));
        // Each program that is told to load it complains that it is not there.
        let complaints = machine.text(task(1), "stderr").matches("evil.so").count();
        assert_eq!(complaints, 1, "the task itself, and nobody else");
    }
}

#[test]
fn fork_bomb_stays_in_its_cell() {
    for mut machine in machines(&Walls { processes: Some(40), ..Walls::default() }) {
        let bomb = "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; wait";
        machine.start(1, sh(bomb), Span::from_secs(30));
        wait_until("it is refused a process", || {
            let said = fs::read_to_string(machine.file(task(1), "stderr")).unwrap_or_default();
            said.contains("fork")
        });
        machine.start(2, sh("sleep 0 & wait; exit 4"), HOUR);
        let ends: Vec<Ended> = (0..2).map(|_| machine.hears()).collect();
        let other = ends.iter().find(|ended| ended.task == task(2)).unwrap();
        assert_eq!(other.exit, Exit::Code(4), "others are not in its way");
    }
}

#[test]
fn task_that_fills_the_disk_is_ended_by_one_file_or_by_many() {
    for mut machine in machines(&Walls { disk: Some(1 << 20), ..Walls::default() }) {
        let ended = machine.runs(1, sh("head -c 5000000 /dev/zero > large; echo done"));
        assert!(fs::metadata(machine.file(task(1), "large")).unwrap().len() <= 1 << 20, "{ended:?}");
        let fill = |place: &str| {
            sh(&format!("i=0; while :; do head -c 90000 /dev/zero > {place}$i; i=$((i+1)); sleep 0.05; done"))
        };
        let ended = machine.runs(2, fill("part"));
        assert_eq!(ended.exit, Exit::Signal(9), "{ended:?}");
        assert!(reason(&ended).contains("of disk"), "{ended:?}");
        let ended = machine.runs(3, fill("/tmp/part"));
        assert!(reason(&ended).contains("of disk"), "what lies in its /tmp counts: {ended:?}");
    }
}

#[test]
fn task_that_fills_the_memory_is_ended_where_memory_can_be_capped() {
    let mut machine = machine(Walls::default());
    let mut job = sh("head -c 400000000 /dev/zero | tail -c 390000000 | wc -c");
    job.resources.memory = Size::from_mib(64);
    let ended = machine.runs(1, job);
    let counted = machine.text(task(1), "stdout");
    assert_eq!(counted.trim() == "390000000", !Offers::find().memory, "{counted} {ended:?}");
}

#[test]
fn what_escapes_with_setsid_ends_with_its_task() {
    for mut machine in machines(&Walls::default()) {
        let script = "setsid sh -c 'echo $$ > outside; sleep 1000; true' &
             env -i setsid sh -c 'echo $$ > nameless; sleep 1000; true' &
             SHOAL_JOB_ID=0123456789abcdef0123456789abcdef setsid sh -c 'echo $$ > forged; sleep 1000; true' &
             until [ -s outside -a -s nameless -a -s forged ]; do sleep 0.05; done; sleep 0.5; exit 5";
        machine.start(1, sh(script), HOUR);
        let tree = ["outside", "nameless", "forged"].map(|name| machine.pid(task(1), name));
        assert_eq!(machine.hears_of(task(1)), Exit::Code(5));
        assert!(tree.iter().all(|&pid| !lives(pid)));
    }
}

#[test]
fn stopped_task_in_a_cell_may_tidy_up_and_one_beyond_its_limit_is_ended() {
    for mut machine in machines(&Walls::default()) {
        machine.grace = Span::from_secs(5);
        machine.kill_daemon();
        machine.boot();
        let script = "trap 'echo tidy; exit 0' TERM; echo $$ > leader; while :; do sleep 0.05; done";
        machine.start(1, sh(script), HOUR);
        machine.pid(task(1), "leader");
        machine.asks(Action::Stop(task(1)));
        assert_eq!(machine.hears_of(task(1)), Exit::Stopped);
        assert_eq!(machine.text(task(1), "stdout"), "tidy\n");
        machine.start(2, sh("sleep 1000"), Span::from_millis(500));
        assert_eq!(machine.hears_of(task(2)), Exit::Overran);
    }
}

#[test]
fn program_that_cannot_be_run_in_a_cell_is_said_as_a_shell_would() {
    for mut machine in machines(&Walls::default()) {
        let ended = machine.runs(1, Job::command(["no-such-program"]));
        assert_eq!(ended.exit, Exit::Code(127), "{ended:?}");
        let ended = machine.runs(2, Job::command(["/etc/passwd"]));
        assert_eq!(ended.exit, Exit::Code(126), "{ended:?}");
        let hidden = machine.home().join("program");
        fs::copy("/bin/true", &hidden).unwrap();
        let ended = machine.runs(3, Job::command([hidden.to_str().unwrap()]));
        assert!(matches!(ended.exit, Exit::Code(126 | 127)), "{ended:?}");
        assert_eq!(machine.runs(4, Job::script("echo script")).exit, Exit::Code(0));
        assert_eq!(machine.text(task(4), "stdout"), "script\n");
    }
}

#[test]
fn paths_that_the_owner_gives_can_be_read_or_changed_and_others_not() {
    // Not beneath /tmp, where a task has a folder of its own; and where a user of its own can pass.
    let place = tempfile::tempdir_in("/var").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let [open, shut, write] = ["open", "shut", "write"].map(|name| place.path().join(name));
    for folder in [&open, &shut, &write] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("file"), "words").unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let walls = Walls { read: vec![text(&open)], write: vec![text(&write)], ..Walls::default() };
    for mut machine in machines(&walls) {
        let script = format!(
            "cat {open}/file || exit 1; echo x > {open}/new && exit 2; cat {shut}/file && exit 3
             echo x > {write}/new || exit 4; rm {write}/new || exit 5",
            open = open.display(),
            shut = shut.display(),
            write = write.display()
        );
        let ended = machine.runs(1, sh(&script));
        assert_eq!(ended.exit, Exit::Code(0), "{}", machine.text(task(1), "stderr"));
    }
}

#[test]
fn secrets_are_told_to_the_task_and_lie_nowhere_on_disk() {
    for mut machine in machines(&Walls::default()) {
        machine.secrets = Some(vec![Secret { name: "token".to_owned(), value: b"swordfish".to_vec() }]);
        machine.kill_daemon();
        machine.boot();
        let mut job = sh("tr a-z A-Z < $SHOAL_SECRETS/token; echo; stat -c %a $SHOAL_SECRETS/token; sleep 1");
        job.secrets = Some(Box::new(vec!["token".parse().unwrap()]));
        machine.start(1, job, HOUR);
        wait_until("it has read its secret", || {
            fs::read_to_string(machine.file(task(1), "stdout")).is_ok_and(|text| text.ends_with("400\n"))
        });
        assert_eq!(found_beneath(machine.home(), b"swordfish"), [] as [PathBuf; 0], "while it runs");
        assert_eq!(machine.hears_of(task(1)), Exit::Code(0));
        assert_eq!(machine.text(task(1), "stdout"), "SWORDFISH\n400\n");
        assert_eq!(found_beneath(machine.home(), b"swordfish"), [] as [PathBuf; 0], "and afterwards");
    }
}

/// Files beneath a folder that have these bytes in them.
fn found_beneath(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            let has = || {
                let text = fs::read(entry.path()).unwrap_or_default();
                text.windows(bytes.len()).any(|window| window == bytes)
            };
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && has() {
                found.push(entry.path());
            }
        }
    }
    found
}

/// A file system with a shell and little else.
fn image(root: &Path) {
    let copy = |from: &Path| {
        let to = root.join(from.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        if !to.exists() {
            fs::copy(from, to).unwrap();
        }
    };
    for program in ["/bin/sh", "/bin/cat", "/bin/ls"] {
        copy(Path::new(program));
        let needs = Command::new("ldd").arg(program).output().unwrap();
        let text = String::from_utf8(needs.stdout).unwrap();
        text.split_whitespace().filter(|word| word.starts_with('/')).for_each(|path| copy(Path::new(path)));
    }
    for folder in ["tmp", "proc", "dev", "etc"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("etc/motto"), "another world\n").unwrap();
}

#[test]
fn task_in_an_image_finds_that_file_system_and_keeps_its_own_folder() {
    let place = tempfile::tempdir_in("/var").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    image(place.path());
    let name: Name = "small".parse().unwrap();
    for mut machine in machines(&Walls::default()) {
        machine.images = BTreeMap::from([(name.clone(), place.path().to_owned())]);
        machine.secrets = Some(vec![Secret { name: "token".to_owned(), value: b"swordfish".to_vec() }]);
        machine.grace = Span::from_secs(5);
        machine.kill_daemon();
        machine.boot();
        let asks = |script: &str| -> Job {
            let argv = format!("command = [\"sh\", \"-c\", {script:?}]");
            toml::from_str(&format!("{argv}\nimage = 'small'\nsecrets = ['token']\n")).unwrap()
        };
        let script = "cat /etc/motto; ls /usr/bin/env; cat $SHOAL_SECRETS/token; echo kept > kept; exit 3";
        let ended = machine.runs(1, asks(script));
        if !Offers::find().images {
            assert!(reason(&ended).contains(BUBBLEWRAP), "{ended:?}");
            continue;
        }
        let (stdout, stderr) = (machine.text(task(1), "stdout"), machine.text(task(1), "stderr"));
        assert_eq!(ended.exit, Exit::Code(3), "{stdout}\n{stderr}\n{:?}", ended.reason);
        assert_eq!(stdout, "another world\nswordfish");
        assert_eq!(machine.text(task(1), "kept"), "kept\n");
        let ended = machine.runs(2, toml::from_str("command = ['python3']\nimage = 'small'").unwrap());
        assert_eq!(ended.exit, Exit::Code(127), "it is on the machine, not in the image: {ended:?}");
        // Life and death are as without one.
        let script =
            "trap 'echo tidy; exit 0' TERM; echo > leader; while :; do cat /etc/motto > /dev/null; done";
        machine.start(3, asks(script), HOUR);
        wait_until("it runs", || machine.file(task(3), "leader").exists());
        machine.asks(Action::Stop(task(3)));
        assert_eq!(machine.hears_of(task(3)), Exit::Stopped);
        assert_eq!(machine.text(task(3), "stdout"), "tidy\n");
        machine.start(4, asks("while :; do :; done"), Span::from_millis(700));
        assert_eq!(machine.hears_of(task(4)), Exit::Overran);
    }
}
