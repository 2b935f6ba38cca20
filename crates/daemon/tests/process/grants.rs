//! What tasks are given of the machine, and told of each other.

use std::collections::BTreeSet;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use shoal_daemon::executor::process::Keep;
use shoal_model::{Job, Resources, Span};
use shoal_protocols::node::{Action, Exit};

use crate::machine::{HOUR, Machine, lives, sh, task, wait_until};

const PINNED: Keep = Keep { pinned: true, grouped: false, capped: false };
const GROUPED: Keep = Keep { pinned: false, grouped: true, capped: false };

/// Waits until it is let go, and then says which processors it may use.
const WHICH: &str = "until [ -e ../../go ]; do sleep 0.02; done; \
                     echo $SHOAL_CPUS; sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status";

fn cores(count: u32, script: &str) -> Job {
    Job { resources: Resources::cores(count), ..sh(script) }
}

fn go(machine: &Machine) {
    std::fs::write(machine.home().join("go"), "").unwrap();
}

/// The processors that a task was told of, after a look that it really has those.
fn cpus(machine: &Machine, number: u8) -> BTreeSet<usize> {
    let text = machine.text(task(number), "stdout");
    let (told, had) = text.trim_end().split_once('\n').unwrap();
    let numbers = |list: &str| -> BTreeSet<usize> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            first.parse::<usize>().unwrap()..=last.parse::<usize>().unwrap()
        };
        list.split(',').filter(|part| !part.is_empty()).flat_map(range).collect()
    };
    if !told.is_empty() {
        assert_eq!(numbers(told), numbers(had), "{text}");
    }
    numbers(told)
}

#[test]
fn tasks_at_once_have_processors_of_their_own_also_after_a_restart_of_the_daemon() {
    let all = shoal_daemon::machine::cpus();
    let mut machine = Machine::new();
    machine.keep(PINNED);
    machine.start(1, cores(1, WHICH), HOUR);
    machine.pid_of_leader(task(1));
    machine.kill_daemon();
    machine.boot();
    machine.asks(Action::Adopt(task(1)));
    for number in 2..=all.len() as u8 {
        machine.start(number, cores(1, WHICH), HOUR);
    }
    // One more than there are processors shares them all.
    let last = all.len() as u8 + 1;
    machine.start(last, cores(1, WHICH), HOUR);
    machine.pid_of_leader(task(last));
    go(&machine);
    for _ in 1..=last {
        assert_eq!(machine.hears().exit, Exit::Code(0));
    }
    let each: Vec<BTreeSet<usize>> = (1..=last).map(|number| cpus(&machine, number)).collect();
    assert_eq!(each.iter().filter(|set| set.is_empty()).count(), 1, "{each:?}");
    assert!(each.iter().all(|set| set.len() <= 1), "{each:?}");
    let union: BTreeSet<usize> = each.into_iter().flatten().collect();
    assert_eq!(union, all.iter().copied().collect());

    // And they were given back.
    machine.start(100, cores(all.len() as u32, WHICH), HOUR);
    assert_eq!(machine.hears_of(task(100)), Exit::Code(0));
    assert_eq!(cpus(&machine, 100).len(), all.len());
}

#[test]
fn tasks_float_where_nobody_asks_for_more() {
    let mut machine = Machine::new();
    go(&machine);
    assert_eq!(machine.runs(1, cores(1, WHICH)).exit, Exit::Code(0));
    assert_eq!(cpus(&machine, 1).len(), 0);
}

#[test]
fn task_knows_its_fellows_and_which_of_an_array_it_is() {
    let mut machine = Machine::new();
    let job = Job {
        array: "7".parse().ok().map(Box::new),
        ..sh("echo $SHOAL_NODES $SHOAL_NODELIST $SHOAL_ARRAY_INDEX $SHOAL_GPUS; cat $SHOAL_HOSTFILE")
    };
    assert_eq!(machine.runs(1, job).exit, Exit::Code(0));
    assert_eq!(machine.text(task(1), "stdout"), "3 n1,n2,n3 7 0\nn1\nn2\nn3\n");
}

#[test]
fn tree_in_a_control_group_is_ended_and_its_group_removed() {
    let mut machine = Machine::with(Span::from_millis(100), shoal_model::Size::from_mib(1));
    machine.keep(GROUPED);
    let groups = shoal_daemon::machine::cgroup::Groups::find(Path::new("/"));
    let Some(own) = groups.unified.filter(|group| group.is_writable()) else {
        eprintln!("no control groups can be made here, and nothing is shown");
        return;
    };
    let script = "env -i setsid sh -c 'trap \"\" TERM; echo $$ > hidden; while :; do sleep 0.1; done' & \
                  until [ -s hidden ] && grep -q shoal- /proc/self/cgroup; do sleep 0.02; done; cat /proc/self/cgroup; echo $$ > leader; wait";
    machine.start(1, sh(script), HOUR);
    let tree = ["leader", "hidden"].map(|name| machine.pid(task(1), name));
    let text = machine.text(task(1), "stdout");
    let name = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    assert!(name.contains("/shoal-") && name.ends_with("-1-0"), "{text}");
    let group = own.mount.join(name.trim_start_matches('/'));
    let inside = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
    for pid in tree {
        assert!(inside.lines().any(|line| line == pid.to_string()), "{pid} in {inside}");
    }
    machine.asks(Action::Stop(task(1)));
    assert_eq!(machine.hears_of(task(1)), Exit::Stopped);
    assert!(tree.iter().all(|&pid| !lives(pid)));
    wait_until("the group is removed", || {
        machine.runs_quickly();
        !group.exists()
    });
    // The folder of all groups goes with the supervisor, also with one that is killed over its work.
    let parent = group.parent().unwrap().to_owned();
    machine.start(2, sh("echo $$ > leader; sleep 1000; true"), HOUR);
    let leader = machine.pid(task(2), "leader");
    assert!(std::fs::read_dir(&parent).unwrap().any(|entry| entry.unwrap().path().is_dir()));
    kill(machine.supervisor(), Signal::SIGKILL).unwrap();
    machine.kill_daemon();
    wait_until("the task dies", || !lives(leader));
    wait_until("nothing is left", || !parent.exists());
}
