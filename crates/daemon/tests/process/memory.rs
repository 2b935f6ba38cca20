//! What is remembered of tasks that are long over, and what is left of them.

use minicbor::{Decode, Encode};
use shoal_daemon::executor::process::Ended;
use shoal_daemon::executor::process::supervisor::ENDED_FOR;
use shoal_daemon::{Clock, Journal, Store};
use shoal_model::{Size, Span, Time};
use shoal_protocols::Record;
use shoal_protocols::node::{Action, Exit, Task, Usage};

use crate::machine::{Machine, task, wait_until};

/// As the supervisor writes it.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
struct Entry {
    #[n(0)]
    task: Task,
    #[n(1)]
    ended: Option<Ended>,
}

impl Record for Entry {
    type Key = Task;

    fn key(&self) -> Task {
        self.task
    }
}

fn ended(task: Task, at: Time) -> Entry {
    let (exit, usage) = (Exit::Code(3), Usage::default());
    let ended = Ended { task, exit, at, usage, stdout_dropped: 0, stderr_dropped: 0, reason: None };
    Entry { task, ended: Some(ended) }
}

#[test]
fn task_that_is_long_over_is_forgotten_with_its_folder_and_a_recent_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let now = Clock::new().now();
    let long_ago = Time::from_micros(now.as_micros() - ENDED_FOR.as_micros()) - Span::from_hours(1);
    let [old, recent] = [task(1), task(2)];
    let place = |task: Task| home.join(format!("tasks/{}-{}-{}", task.job, task.epoch.0, task.rank.0));
    for task in [old, recent] {
        std::fs::create_dir_all(place(task).join("deep/down")).unwrap();
        std::fs::write(place(task).join("stdout"), "words").unwrap();
    }
    std::fs::create_dir_all(home.join("supervisor")).unwrap();
    let mut journal = Journal::open(&home.join("supervisor")).unwrap().journal;
    journal.save(&ended(old, long_ago)).unwrap();
    journal.save(&ended(recent, now)).unwrap();
    journal.sync().unwrap();
    drop(journal);

    let mut machine = Machine::at(home.clone(), Span::from_secs(5), Size::from_mib(1));
    wait_until("the folder is gone", || !place(old).exists());
    assert_eq!(std::fs::read_to_string(place(recent).join("stdout")).unwrap(), "words");
    machine.asks(Action::Adopt(recent));
    assert_eq!(machine.hears_of(recent), Exit::Code(3));
    // Its turns come after the word of the removal.
    machine.runs_quickly();
    machine.asks(Action::Adopt(old));
    assert_eq!(machine.hears_of(old), Exit::Lost);
}
