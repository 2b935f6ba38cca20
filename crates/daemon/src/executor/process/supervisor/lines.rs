//! Orders that wait for a task to end, in whose place theirs is to run: one behind the other.

use std::collections::BTreeMap;
use std::time::Instant;

use shoal_protocols::node::Task;

use super::super::words::Order;

/// All orders that wait.
#[derive(Default)]
pub(super) struct Lines {
    /// By the task that each waits for.
    waiting: BTreeMap<Task, Waiting>,
    /// For which task each waits.
    before: BTreeMap<Task, Task>,
}

/// An order whose turn has not come.
pub(super) struct Waiting {
    /// The daemon that is told.
    pub asker: u64,
    pub since: Instant,
    pub order: Order,
}

impl Lines {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn contains(&self, task: Task) -> bool {
        self.before.contains_key(&task)
    }

    /// Has an order wait for a task; if one does already, it waits for that one, or for the last of those.
    pub fn push(&mut self, before: Task, waiting: Waiting) {
        let mut last = before;
        while let Some(next) = self.waiting.get(&last) {
            last = next.order.task;
        }
        self.before.insert(waiting.order.task, last);
        self.waiting.insert(last, waiting);
    }

    /// Notes who is told of an order that waits; says whether it does.
    pub fn adopt(&mut self, task: Task, daemon: u64) -> bool {
        let waiting = self.before.get(&task).and_then(|before| self.waiting.get_mut(before));
        waiting.map(|waiting| waiting.asker = daemon).is_some()
    }

    /// Whether an order waits for this task, and is like that.
    pub fn is_next(&self, before: Task, is: impl FnOnce(&Waiting) -> bool) -> bool {
        self.waiting.get(&before).is_some_and(is)
    }

    /// Takes out the order that waits for this task.
    pub fn next_after(&mut self, before: Task) -> Option<Waiting> {
        let next = self.waiting.remove(&before)?;
        self.before.remove(&next.order.task);
        Some(next)
    }

    /// Takes out an order that waits; who waits for it waits for what it has waited for.
    pub fn take_out(&mut self, task: Task) -> Option<Waiting> {
        let before = self.before.remove(&task)?;
        let taken = self.waiting.remove(&before)?;
        if let Some(next) = self.waiting.remove(&task) {
            self.before.insert(next.order.task, before);
            self.waiting.insert(before, next);
        }
        Some(taken)
    }
}
