//! Quick tasks in cells that go through one carriage: what they share, what they do not, and when it is over.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;
use shoal_daemon::cell::Walls;
use shoal_daemon::cell::offers::Offers;
use shoal_daemon::machine;
use shoal_model::job::Work;
use shoal_model::{Job, Size, Span, Time};
use shoal_protocols::node::{Action, Exit, Task};
use tempfile::TempDir;

use crate::machine::{HOUR, Machine, brief, lives, sh, task, wait_until};

/// A machine whose tasks are in cells, and a folder that all of them may change.
struct Scene {
    machine: Machine,
    shared: TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene::with(Walls::default())
    }

    fn with(walls: Walls) -> Scene {
        // Not beneath `/tmp`, where each cell has its own.
        let shared = tempfile::tempdir_in("/var").unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o777)).unwrap();
        // They need not be the same user.
        let story = shared.path().join("story");
        fs::write(&story, "").unwrap();
        fs::set_permissions(&story, fs::Permissions::from_mode(0o666)).unwrap();
        let mut machine = Machine::with(Span::from_millis(300), Size::from_bytes(4096));
        let write = vec![shared.path().display().to_string()];
        machine.walls = Some(Walls { write, ..walls });
        machine.kill_daemon();
        machine.boot();
        Scene { machine, shared }
    }

    fn shared(&self, name: &str) -> PathBuf {
        self.shared.path().join(name)
    }

    /// Starts one that waits for a file, and these behind it, each behind the one before.
    fn line(&mut self, jobs: impl IntoIterator<Item = Job>, limit: Span) -> Vec<Task> {
        let waits = format!("until [ -e {} ]; do sleep 0.01; done", self.shared("go").display());
        let mut all = vec![self.machine.start(1, sh(&waits), limit)];
        for (number, job) in (2..).zip(jobs) {
            let (task, behind) = (task(number), all.last().copied());
            let (brief, stop_at) = (brief(job), Time::ZERO + limit);
            self.machine.asks(Action::Start { task, brief, stop_at, short: true, behind });
            all.push(task);
        }
        all
    }

    fn go(&self) {
        fs::write(self.shared("go"), "").unwrap();
    }

    /// One of many that are alike, and do what the first of these says that is for their number.
    fn alike(&self, what: &[(u8, &str)]) -> Job {
        let cases: String = what.iter().map(|(number, what)| format!("{number:02x}*) {what} ;;\n")).collect();
        sh(&format!(
            "echo $SHOAL_JOB_ID >> {story}; echo $PPID; case $SHOAL_JOB_ID in\n{cases}esac",
            story = self.shared("story").display()
        ))
    }

    /// The tasks that have run, in the order of their beginnings.
    fn story(&self) -> Vec<String> {
        let text = fs::read_to_string(self.shared("story")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Some of these were in one carriage. Not all: whoever is slow, as all may be for once, is the last in its own.
    fn share(&self, tasks: &[Task]) {
        let carriages: BTreeSet<i32> = tasks.iter().map(|&task| self.carriage(task)).collect();
        assert!(!shares() || carriages.len() < tasks.len(), "{carriages:?}");
    }

    /// In which carriage a task was.
    fn carriage(&self, task: Task) -> i32 {
        let text = self.machine.text(task, "stdout");
        let carriage = text.lines().next().unwrap_or_default().parse().unwrap();
        assert_eq!(carriage != self.machine.supervisor().as_raw(), shares(), "it rode, if it could");
        carriage
    }

    fn is_tidy(&self) -> bool {
        let entries = fs::read_dir(self.machine.home().join("tasks")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        !names.into_iter().any(|name| name.ends_with(".ride") || name.ends_with(".tmp"))
    }

    fn ends_tidily(&mut self) {
        wait_until("nothing is left of carriages", || self.is_tidy());
        self.machine.runs_quickly();
    }
}

fn names(tasks: &[Task]) -> Vec<String> {
    tasks.iter().map(|task| task.job.to_string()).collect()
}

/// Whether tasks can be users of their own: without, each has a cell to itself.
fn shares() -> bool {
    geteuid().is_root()
}

#[test]
fn quick_tasks_in_cells_share_one_and_each_has_a_folder_outputs_and_an_end_of_its_own() {
    let mut scene = Scene::new();
    let job = scene.alike(&[(3, "exit 3"), (4, "echo oops >&2; kill -TERM $$"), (5, "pwd; ls ..")]);
    let all = scene.line((2..=60).map(|_| job.clone()), HOUR);
    scene.go();
    for (number, &task) in (1..).zip(&all) {
        let exit = match number {
            3 => Exit::Code(3),
            4 => Exit::Signal(15),
            _ => Exit::Code(0),
        };
        let ended = scene.machine.hears();
        assert_eq!((ended.task, ended.exit), (task, exit));
        assert!(ended.usage.wall > Span::ZERO && ended.usage.wall < Span::from_secs(30));
    }
    assert_eq!(scene.story(), names(&all[1..]));
    assert_eq!(scene.machine.text(all[3], "stderr"), "oops\n");
    let carriages: BTreeSet<i32> = all[1..].iter().map(|&task| scene.carriage(task)).collect();
    assert!(carriages.len() < 10, "{carriages:?}");
    let own = scene.machine.file(all[4], "stdout").parent().unwrap().to_owned();
    let text = scene.machine.text(all[4], "stdout");
    let name = own.file_name().unwrap().to_str().unwrap();
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), [own.to_str().unwrap(), name], "and nobody else's");
    assert!(fs::symlink_metadata(own).unwrap().is_dir());
    scene.ends_tidily();
}

#[test]
fn scripts_and_programs_that_are_missing_ride_like_any_other() {
    let mut scene = Scene::new();
    let script = Work::Script("#!/bin/sh -e\necho $PPID; test -x /bin/sh && cat script; echo $0\n".into());
    let script = Job { work: script, ..Job::command(["none"]) };
    for (round, (job, code)) in
        [(script, 0), (Job::command(["no-such-program"]), 127), (Job::command(["./none"]), 127)]
            .into_iter()
            .enumerate()
    {
        let all = scene.line((0..6).map(|_| job.clone()), HOUR);
        scene.go();
        assert_eq!(scene.machine.hears_of(all[0]), Exit::Code(0));
        for &task in &all[1..] {
            assert_eq!(scene.machine.hears_of(task), Exit::Code(code), "round {round}");
            let (stdout, stderr) = (scene.machine.text(task, "stdout"), scene.machine.text(task, "stderr"));
            assert_eq!(stderr.contains("cannot run"), code == 127, "{stderr}");
            assert_eq!(stdout.ends_with("/script\n"), code == 0, "{stdout}");
        }
        if code == 0 {
            scene.share(&all[1..]);
        }
        scene.ends_tidily();
        scene = Scene::new();
    }
}

#[test]
fn slow_one_can_be_read_while_it_runs_and_the_rest_waits_for_it() {
    let mut scene = Scene::new();
    let slow = format!(
        "head -c 100000 /dev/zero; until [ -e {} ]; do sleep 0.01; done; ls -d $PWD; exit 7",
        scene.shared("slow").display()
    );
    let job = scene.alike(&[(4, slow.as_str())]);
    let all = scene.line((2..=8).map(|_| job.clone()), HOUR);
    scene.go();
    for &task in &all[..3] {
        assert_eq!(scene.machine.hears_of(task), Exit::Code(0));
    }
    wait_until("its output is there, and cut", || {
        fs::metadata(scene.machine.file(all[3], "stdout")).is_ok_and(|facts| facts.len() == 4096)
    });
    // One whose turn has not come is taken out, and never runs.
    scene.machine.asks(Action::Stop(all[5]));
    assert_eq!(scene.machine.hears_of(all[5]), Exit::Stopped);
    fs::write(scene.shared("slow"), "").unwrap();
    let ended = scene.machine.hears();
    assert_eq!((ended.task, ended.exit), (all[3], Exit::Code(7)));
    assert!(ended.stdout_dropped > 0);
    assert!(fs::symlink_metadata(scene.machine.file(all[3], "")).unwrap().is_dir(), "it is where it belongs");
    for &task in [&all[4], &all[6], &all[7]] {
        assert_eq!(scene.machine.hears_of(task), Exit::Code(0));
    }
    assert_eq!(scene.story(), names(&[&all[1..5], &all[6..]].concat()));
    scene.ends_tidily();
}

#[test]
fn one_that_is_stopped_in_its_turn_ends_whether_it_heeds_that_or_not() {
    let mut scene = Scene::new();
    let begun = scene.shared("begun").display().to_string();
    let polite = format!("echo $$ > {begun}; trap 'echo bye; exit 0' TERM; sleep 600 & wait");
    let stubborn = format!("echo $$ > {begun}; trap '' TERM; while :; do sleep 0.01; done");
    let job = scene.alike(&[(3, polite.as_str()), (5, stubborn.as_str())]);
    let all = scene.line((2..=6).map(|_| job.clone()), HOUR);
    scene.go();
    for (number, &task) in (1..).zip(&all) {
        if [3, 5].contains(&number) {
            wait_until("it begins", || fs::read_to_string(&begun).is_ok_and(|text| text.ends_with('\n')));
            let pid = fs::read_to_string(&begun).unwrap().trim().parse().unwrap();
            scene.machine.asks(Action::Stop(task));
            let ended = scene.machine.hears();
            assert_eq!((ended.task, ended.exit), (task, Exit::Stopped));
            assert!(!lives(nix::unistd::Pid::from_raw(pid)));
            assert_eq!(scene.machine.text(task, "stdout").contains("bye"), number == 3);
            if number == 5 {
                let used = ended.usage.user + ended.usage.system;
                assert!(used > Span::ZERO, "what it took is known, though it was killed: {:?}", ended.usage);
            }
            fs::remove_file(&begun).unwrap();
        } else {
            assert_eq!(scene.machine.hears_of(task), Exit::Code(0));
        }
    }
    scene.ends_tidily();
}

#[test]
fn one_that_is_stopped_may_leave_its_farewell_to_a_process_that_outlives_its_first() {
    let mut scene = Scene::new();
    scene.machine.grace = Span::from_mins(1);
    scene.machine.kill_daemon();
    scene.machine.boot();
    let begun = scene.shared("begun").display().to_string();
    let saves = format!("trap 'sleep 0.1; echo saved; exit 0' TERM; echo x > {begun}; sleep 600 & wait");
    let hasty = format!("sh -c \"{saves}\" & wait");
    let job = scene.alike(&[(3, hasty.as_str())]);
    let all = scene.line((2..=4).map(|_| job.clone()), HOUR);
    scene.go();
    wait_until("it begins", || Path::new(&begun).exists());
    scene.machine.asks(Action::Stop(all[2]));
    let ends: Vec<Exit> = all.iter().map(|&task| scene.machine.hears_of(task)).collect();
    assert_eq!(ends, [Exit::Code(0), Exit::Code(0), Exit::Stopped, Exit::Code(0)]);
    assert!(scene.machine.text(all[2], "stdout").ends_with("saved\n"));
    scene.ends_tidily();
}

#[test]
fn what_one_leaves_is_found_however_long_nobody_has_left_anything() {
    let mut scene = Scene::new();
    let job = scene.alike(&[(100, "echo x > /tmp/left"), (101, "ls -A /tmp")]);
    let all = scene.line((2..=103).map(|_| job.clone()), HOUR);
    scene.go();
    for &task in &all {
        assert_eq!(scene.machine.hears_of(task), Exit::Code(0));
    }
    let found = scene.machine.text(all[100], "stdout");
    assert!(!found.contains("left"), "{found}");
    let carriages: Vec<i32> = all[1..].iter().map(|&task| scene.carriage(task)).collect();
    if shares() {
        assert_ne!(carriages[98], carriages[99]);
    }
    scene.ends_tidily();
}

#[test]
fn where_no_carriage_can_be_made_tasks_have_cells_of_their_own() {
    // Enough for a program, and not for what looks after many of them.
    let mut scene = Scene::with(Walls { files: Some(6), ..Walls::default() });
    let all = scene.line((2..=9).map(|_| Job::command(["true"])), HOUR);
    scene.go();
    for &task in &all {
        let ended = scene.machine.hears();
        assert_eq!((ended.task, ended.exit), (task, Exit::Code(0)), "{:?}", ended.reason);
    }
    let log = fs::read_to_string(scene.machine.home().join("supervisor/log")).unwrap_or_default();
    assert_eq!(log.matches("have cells of their own").count(), usize::from(shares()), "{log}");
    scene.ends_tidily();
}

#[test]
fn what_one_leaves_is_not_there_for_the_next_and_what_is_clean_goes_on() {
    // What leaves something, and what finds it.
    let traces = [
        ("echo x > /tmp/left", "ls -A /tmp"),
        ("echo x > /var/tmp/left", "ls -A /tmp"),
        ("echo x > /dev/shm/left", "ls -A /dev/shm"),
        ("touch /dev/mqueue/left", "ls -A /dev/mqueue"),
        ("ipcmk -M 4096 > /dev/null", "tail -n +2 /proc/sysvipc/shm"),
        ("ipcmk -S 1 > /dev/null", "tail -n +2 /proc/sysvipc/sem"),
        ("ipcmk -Q > /dev/null", "tail -n +2 /proc/sysvipc/msg"),
        ("echo x > left; cd ..; echo x > left || true", "ls"),
    ];
    for (leaves, finds) in traces {
        let mut scene = Scene::new();
        let job = scene.alike(&[(3, leaves), (4, finds)]);
        let all = scene.line((2..=9).map(|_| job.clone()), HOUR);
        scene.go();
        for &task in &all {
            let ended = scene.machine.hears();
            assert_eq!((ended.task, ended.exit), (task, Exit::Code(0)), "{leaves}: {:?}", ended.reason);
        }
        // Their folders lie beneath `/tmp` here, which is therefore there.
        let found = scene.machine.text(all[3], "stdout");
        let found: Vec<_> = found.lines().skip(1).filter(|line| !line.starts_with(".tmp")).collect();
        let own = ["hostfile", "stderr", "stdout"];
        assert!(found.is_empty() || found == own, "{leaves}: {found:?}");
        if shares() && found.is_empty() {
            assert_ne!(scene.carriage(all[2]), scene.carriage(all[3]), "{leaves}");
            scene.share(&all[3..]);
        }
        scene.ends_tidily();
    }
}

#[test]
fn process_that_is_left_is_killed_before_the_next_begins() {
    let mut scene = Scene::new();
    let pid = scene.shared("pid").display().to_string();
    let leaves = format!(
        "setsid sh -c 'echo $$ > {pid}; sleep 600' & until [ -s {pid} ]; do sleep 0.01; done; exit 3"
    );
    let quiet = "sleep 600 & exit 4";
    let looks = format!("[ ! -e /proc/$(cat {pid}) ] || exit 9");
    let job = scene.alike(&[(3, leaves.as_str()), (4, looks.as_str()), (5, quiet)]);
    let all = scene.line((2..=7).map(|_| job.clone()), HOUR);
    scene.go();
    for (number, &task) in (1..).zip(&all) {
        let code = match number {
            3 => 3,
            5 => 4,
            _ => 0,
        };
        assert_eq!(scene.machine.hears_of(task), Exit::Code(code));
        if number == 3 {
            let pid = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
            assert!(!lives(nix::unistd::Pid::from_raw(pid)));
        }
    }
    scene.ends_tidily();
}

#[test]
fn task_cannot_look_into_its_carriage_nor_change_what_its_folder_lies_in() {
    if !shares() {
        return;
    }
    let mut scene = Scene::new();
    let spy = "cat /proc/$PPID/environ && exit 1; cat /proc/$PPID/mem && exit 2; ls /proc/$PPID/fd && exit 3
               touch ../left && exit 4; mkdir ../left && exit 5; mv $PWD ../other && exit 6; rmdir $PWD && exit 7
               chmod 777 .. && exit 8; id -u; grep CapEff /proc/$PPID/status";
    let job = scene.alike(&[(3, spy)]);
    let all = scene.line((2..=5).map(|_| job.clone()), HOUR);
    scene.go();
    for &task in &all {
        let ended = scene.machine.hears();
        assert_eq!((ended.task, ended.exit), (task, Exit::Code(0)));
    }
    let text = scene.machine.text(all[2], "stdout");
    let lines: Vec<_> = text.lines().collect();
    assert_ne!(scene.carriage(all[2]), scene.machine.supervisor().as_raw(), "it rode");
    assert!(lines[1].parse::<u32>().unwrap() >= 0x7000_0000, "{text}");
    assert!(lines[2].ends_with("\t0000000000000000"), "its carriage has no rights either: {text}");
    scene.ends_tidily();
}

#[test]
fn task_that_kills_or_halts_its_carriage_harms_itself_alone() {
    if !shares() {
        return;
    }
    let mut scene = Scene::new();
    let halts = "kill -STOP $PPID; sleep 600";
    // Only what nothing can be done against reaches it.
    let pesters = "kill -TERM $PPID; kill -HUP -1; kill -SEGV $PPID";
    let job = scene.alike(&[(3, "kill -KILL $PPID; sleep 600"), (5, halts), (7, pesters)]);
    let all = scene.line((2..=8).map(|_| job.clone()), HOUR);
    scene.go();
    for (number, &task) in (1..).zip(&all) {
        if number == 5 {
            wait_until("it begins", || scene.story().len() == 4);
            scene.machine.asks(Action::Stop(task));
        }
        let exit = match number {
            3 => Exit::Signal(9),
            5 => Exit::Stopped,
            _ => Exit::Code(0),
        };
        assert_eq!(scene.machine.hears_of(task), exit);
    }
    scene.ends_tidily();
}

#[test]
fn one_that_takes_from_its_carriage_what_others_need_is_the_last_in_it() {
    if !shares() {
        return;
    }
    for takes in ["prlimit --pid $PPID --nofile=3:3", "prlimit --pid $PPID --nproc=1", "taskset -pc 0 $PPID"]
    {
        let mut scene = Scene::new();
        let job = scene.alike(&[(3, takes)]);
        let all = scene.line((2..=9).map(|_| job.clone()), HOUR);
        scene.go();
        for &task in &all {
            let ended = scene.machine.hears();
            assert_eq!((ended.task, ended.exit), (task, Exit::Code(0)), "{takes}: {:?}", ended.reason);
        }
        // Who has one processor only cannot have that taken away.
        let is_felt = !takes.starts_with("taskset") || machine::cpus().len() > 1;
        if is_felt {
            assert_ne!(scene.carriage(all[2]), scene.carriage(all[3]), "{takes}");
        }
        scene.share(&all[3..]);
        scene.ends_tidily();
    }
}

#[test]
fn slow_one_that_takes_too_much_disk_is_killed_and_the_next_begins() {
    let mut scene = Scene::with(Walls { disk: Some(1 << 20), ..Walls::default() });
    let hog = "for i in 1 2 3 4 5 6 7 8; do head -c 200000 /dev/zero > /tmp/$i; done; sleep 600";
    let job = scene.alike(&[(3, hog)]);
    let all = scene.line((2..=4).map(|_| job.clone()), HOUR);
    scene.go();
    assert_eq!(scene.machine.hears_of(all[0]), Exit::Code(0));
    assert_eq!(scene.machine.hears_of(all[1]), Exit::Code(0));
    let ended = scene.machine.hears();
    assert_eq!((ended.task, ended.exit), (all[2], Exit::Signal(9)));
    assert!(ended.reason.unwrap().contains("of disk"));
    assert_eq!(scene.machine.hears_of(all[3]), Exit::Code(0));
    scene.ends_tidily();
}

#[test]
fn memory_beyond_what_was_asked_for_ends_one_and_says_so() {
    let mut scene = Scene::new();
    // It keeps all of a line, and this one has no end.
    let hog = "ulimit -v 400000; exec tail /dev/zero";
    let survivor = "(ulimit -v 400000; exec tail /dev/zero); exit 5";
    // What comes later and ends in the same way has not taken too much.
    let other = "kill -KILL $$";
    let mut job = scene.alike(&[(3, hog), (4, other), (6, survivor), (7, other)]);
    job.resources.memory = Size::from_mib(8);
    let all = scene.line((2..=8).map(|_| job.clone()), HOUR);
    scene.go();
    let is_capped = Offers::find().memory;
    for (number, &task) in (1..).zip(&all) {
        let ended = scene.machine.hears();
        let exit = match number {
            3 if !is_capped => Exit::Code(1),
            3 | 4 | 7 => Exit::Signal(9),
            6 => Exit::Code(5),
            _ => Exit::Code(0),
        };
        assert_eq!((ended.task, ended.exit), (task, exit), "{:?}", ended.reason);
        let is_said = ended.reason.as_ref().is_some_and(|reason| reason.contains("asked for"));
        assert_eq!(is_said, number == 3 && is_capped, "{number}: {:?}", ended.reason);
    }
    scene.ends_tidily();
}

#[test]
fn ride_goes_on_without_its_daemon_and_ends_with_its_supervisor() {
    let mut scene = Scene::new();
    let job = scene.alike(&[(20, "echo written; sleep 600")]);
    let all = scene.line((2..=30).map(|_| job.clone()), HOUR);
    scene.machine.hears_nothing_for(Duration::from_millis(20));
    scene.machine.kill_daemon();
    scene.go();
    wait_until("the slow one has begun", || scene.story().len() == 19);
    scene.machine.boot();
    for &task in &all {
        scene.machine.asks(Action::Adopt(task));
    }
    let mut ended: Vec<Task> = all[..19].iter().map(|_| scene.machine.hears().task).collect();
    ended.sort_unstable();
    assert_eq!(ended, all[..19]);
    let text = || fs::read_to_string(scene.machine.file(all[19], "stdout")).unwrap_or_default();
    wait_until("its output can be read", || text().contains("written"));
    scene.machine.end_supervisor();
    scene.machine.boot();
    scene.machine.asks(Action::Adopt(all[19]));
    assert_eq!(scene.machine.hears_of(all[19]), Exit::Lost);
    assert!(fs::symlink_metadata(scene.machine.file(all[19], "")).unwrap().is_dir());
    assert!(scene.machine.text(all[19], "stdout").contains("written"));
    scene.ends_tidily();
}

#[test]
fn whenever_tasks_are_stopped_each_has_one_end_and_the_others_run_in_their_order() {
    for round in 0..20_u64 {
        let mut scene = Scene::new();
        let job = scene.alike(&[]);
        let all = scene.line((2..=12).map(|_| job.clone()), HOUR);
        scene.go();
        std::thread::sleep(Duration::from_micros(round * 1_500));
        for &task in all[4..].iter().step_by(2) {
            scene.machine.asks(Action::Stop(task));
        }
        let mut ran = Vec::new();
        let mut ended: Vec<Task> = Vec::new();
        for _ in &all {
            let one = scene.machine.hears();
            ended.push(one.task);
            match one.exit {
                Exit::Code(0) if one.task == all[0] => {}
                Exit::Code(_) => ran.push(one.task),
                exit => assert_eq!(exit, Exit::Stopped, "round {round}: {:?}", one.reason),
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, all, "round {round}");
        let story = scene.story();
        // One that was stopped while it ran may have noted it.
        let told: Vec<String> = story.iter().filter(|name| names(&ran).contains(name)).cloned().collect();
        assert_eq!(told, names(&ran), "round {round}");
        assert!(story.is_sorted(), "{story:?}");
        assert!(ran.iter().all(|&task| Path::is_dir(&scene.machine.file(task, ""))));
        scene.ends_tidily();
    }
}

/// Now and then a machine is so slow that the ride does not wait long enough.
#[test]
fn next_of_an_array_find_the_carriage_of_those_before_them_and_those_of_another_do_not() {
    let mut scene = Scene::new();
    let job = sh("echo $PPID");
    let mut carriages: Vec<BTreeSet<i32>> = Vec::new();
    for round in 0..10 {
        // The same job, and every third time it is somebody else's.
        let (array, first) = (round / 3, 20 * round + 1);
        let all = scene.machine.train(&job, array, first..=first + 9);
        for &task in &all {
            assert_eq!(scene.machine.hears_of(task), Exit::Code(0));
        }
        // The first has a cell of its own, if there is no carriage for it.
        carriages.push(all[1..].iter().map(|&task| scene.carriage(task)).collect());
    }
    let is_shared = |one: usize, other: usize| !carriages[one].is_disjoint(&carriages[other]);
    let shared = (1..10).filter(|&round| is_shared(round - 1, round));
    let (same, other): (Vec<usize>, Vec<usize>) = shared.partition(|round| round % 3 != 0);
    assert!(other.is_empty(), "{carriages:?}");
    assert!(!same.is_empty() || !shares(), "{carriages:?}");
    scene.ends_tidily();
}
