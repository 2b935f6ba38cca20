//! Who has which processors and GPUs: handed out by number, and given back at the end.
//!
//! A whole core is a processor that nobody else has; a part of one is shared with other parts. Kept by the supervisor, so
//! that a daemon which comes back finds them as they were.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nix::unistd::geteuid;

use shoal_model::Thousandths;
use shoal_protocols::node::Task;

use super::super::words::Order;
use crate::cell::user::{USERS_EACH, users_of};
use crate::machine::{self, gpu, gpu::Gpu};

/// Thousandths of one processor or GPU.
const WHOLE: u32 = 1_000;

/// What there is, and who has it.
pub(super) struct Grants {
    cpus: Pool<usize>,
    gpus: Pool<Gpu>,
    /// The first of the users that tasks can be, if they can.
    users_first: Option<u32>,
    users: BTreeSet<u32>,
    /// The last that was handed out, counted from the first.
    user_last: u32,
    held: BTreeMap<Task, Held>,
}

/// What a task may use, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grant {
    /// Its processors; `None` for any.
    pub cpus: Option<Vec<usize>>,
    /// Its GPUs; `None` where the machine has none that we know.
    pub gpus: Option<Vec<Gpu>>,
    /// The user that it is, if it is one of its own.
    pub user: Option<u32>,
}

impl Grant {
    /// Whether it has the processors that an order is to have for itself.
    pub fn has_processors(&self, order: &Order) -> bool {
        !order.is_pinned() || self.cpus.is_some()
    }
}

#[derive(Default)]
struct Held {
    user: Option<u32>,
    cpus: Vec<(usize, u32)>,
    gpus: Vec<(usize, u32)>,
}

/// Things of which parts are handed out.
struct Pool<T> {
    things: Vec<T>,
    /// How much of each is taken.
    taken: Vec<u32>,
}

impl Grants {
    /// All that this process may use, for the tasks of a node's folder.
    pub fn new(home: &Path) -> Grants {
        let users_first = geteuid().is_root().then(|| users_of(home));
        Grants { users_first, ..Grants::of(machine::cpus(), gpu::find(Path::new("/"))) }
    }

    fn of(cpus: Vec<usize>, gpus: Vec<Gpu>) -> Grants {
        Grants {
            cpus: Pool::new(cpus),
            gpus: Pool::new(gpus),
            users_first: None,
            users: BTreeSet::new(),
            user_last: USERS_EACH - 1,
            held: BTreeMap::new(),
        }
    }

    /// Hands out what a task was promised, or says why that cannot be.
    ///
    /// A machine may promise more cores than it has: then tasks that find none left share all. GPUs cannot be shared so.
    pub fn take(&mut self, order: &Order) -> Result<Grant, String> {
        let mut held = Held::default();
        let mut grant = Grant::default();
        let gpus = order.gpus.unwrap_or_default();
        if !self.gpus.things.is_empty() {
            let Some(parts) = self.gpus.take(gpus) else {
                return Err(format!(
                    "it needs {gpus} GPUs, and fewer of {} are free",
                    self.gpus.things.len()
                ));
            };
            grant.gpus = Some(parts.iter().map(|&(place, _)| self.gpus.things[place].clone()).collect());
            held.gpus = parts;
        }
        if order.is_pinned()
            && let Some(parts) = self.cpus.take(order.cores)
        {
            grant.cpus = Some(parts.iter().map(|&(place, _)| self.cpus.things[place]).collect());
            held.cpus = parts;
        }
        if let Some(first) = self.users_first.filter(|_| order.is_confined()) {
            // Round and round, so that what one has left behind is not the next one's.
            let numbers = (1..=USERS_EACH).map(|more| first + (self.user_last + more) % USERS_EACH);
            let user = numbers.into_iter().find(|user| !self.users.contains(user));
            // There are as many as tasks can run at once.
            let user = user.ok_or("no user is left that it could be")?;
            self.user_last = user - first;
            (grant.user, held.user) = (Some(user), Some(user));
            self.users.insert(user);
        }
        self.held.insert(order.task, held);
        Ok(grant)
    }

    /// Whether tasks can be users of their own.
    pub fn has_users(&self) -> bool {
        self.users_first.is_some()
    }

    /// What one task had is another's from now on.
    pub fn rename(&mut self, from: Task, to: Task) {
        if let Some(held) = self.held.remove(&from) {
            self.held.insert(to, held);
        }
    }

    /// Takes back what a task had.
    pub fn give_back(&mut self, task: Task) {
        if let Some(held) = self.held.remove(&task) {
            self.cpus.give_back(&held.cpus);
            self.gpus.give_back(&held.gpus);
            if let Some(user) = held.user {
                self.users.remove(&user);
            }
        }
    }
}

impl<T> Pool<T> {
    fn new(things: Vec<T>) -> Pool<T> {
        Pool { taken: vec![0; things.len()], things }
    }

    /// Takes so many whole ones, and a part of another; all or nothing.
    fn take(&mut self, amount: Thousandths) -> Option<Vec<(usize, u32)>> {
        let (whole, part) = ((amount.get() / WHOLE) as usize, amount.get() % WHOLE);
        let untouched = (0..self.taken.len()).filter(|&place| self.taken[place] == 0);
        let mut parts: Vec<_> = untouched.take(whole).map(|place| (place, WHOLE)).collect();
        if parts.len() < whole {
            return None;
        }
        if part > 0 {
            // Where most is taken already, so that whole ones stay whole.
            let fits = |place: &usize| {
                self.taken[*place] + part <= WHOLE && !parts.iter().any(|(taken, _)| taken == place)
            };
            let best = (0..self.taken.len()).rev().filter(fits).max_by_key(|&place| self.taken[place])?;
            parts.push((best, part));
        }
        for &(place, part) in &parts {
            self.taken[place] += part;
        }
        Some(parts)
    }

    fn give_back(&mut self, parts: &[(usize, u32)]) {
        for &(place, part) in parts {
            self.taken[place] -= part;
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::job::Work;
    use shoal_model::{Epoch, JobId, Rank, Size, Span};

    use super::super::super::words::Keep;
    use super::*;

    fn order(number: u64, cores: u32, gpus: u32) -> Order {
        Order {
            task: Task { job: JobId::from_number(number), epoch: Epoch(1), rank: Rank(0) },
            work: Work::Command(["true".to_owned()].into()),
            environment: None,
            nodes: 1,
            cores: Thousandths::new(cores),
            memory: Size::ZERO,
            limit: Span::from_secs(1),
            grace: Span::from_secs(1),
            output_max: 1,
            short: false,
            gpus: Some(Thousandths::new(gpus)),
            peers: None,
            array_index: None,
            keep: Some(Keep { pinned: true, ..Keep::default() }),
            prepared: false,
            walls: None,
            image: None,
            secrets: None,
            behind: None,
            array: None,
        }
    }

    fn gpus(count: u32) -> Vec<Gpu> {
        (0..count).map(|number| Gpu { maker: gpu::Maker::Nvidia, number, model: None }).collect()
    }

    fn numbers(grant: &Grant) -> Vec<u32> {
        grant.gpus.iter().flatten().map(|gpu| gpu.number).collect()
    }

    #[test]
    fn tasks_get_distinct_processors_and_give_them_back() {
        let mut grants = Grants::of(vec![0, 2, 4, 6], vec![]);
        let cpus = |grants: &mut Grants, number, cores| grants.take(&order(number, cores, 0)).unwrap().cpus;
        assert_eq!(cpus(&mut grants, 1, 2_000), Some(vec![0, 2]));
        assert_eq!(cpus(&mut grants, 2, 1_000), Some(vec![4]));
        assert_eq!(cpus(&mut grants, 3, 2_000), None, "too few are left: it floats");
        grants.give_back(order(1, 0, 0).task);
        grants.give_back(order(3, 0, 0).task);
        assert_eq!(cpus(&mut grants, 4, 3_000), Some(vec![0, 2, 6]));
        for number in [2, 4, 4, 9] {
            grants.give_back(order(number, 0, 0).task);
        }
        assert_eq!(cpus(&mut grants, 5, 4_000), Some(vec![0, 2, 4, 6]));
    }

    #[test]
    fn parts_share_one_processor_and_leave_the_others_whole() {
        let mut grants = Grants::of(vec![0, 1, 2], vec![]);
        let mut cpus = |number, cores| grants.take(&order(number, cores, 0)).unwrap().cpus.unwrap();
        let shared = cpus(1, 500);
        assert_eq!(cpus(2, 500), shared);
        assert_eq!(cpus(3, 1_500).len(), 2);
    }

    #[test]
    fn tasks_in_cells_are_users_of_their_own_where_there_are_any() {
        let mut grants = Grants { users_first: Some(1_000), ..Grants::of(vec![], vec![]) };
        let confined = |number| Order { walls: Some(Box::default()), ..order(number, 0, 0) };
        let user = |grants: &mut Grants, order: &Order| grants.take(order).unwrap().user;
        assert_eq!(user(&mut grants, &confined(1)), Some(1_000));
        assert_eq!(user(&mut grants, &confined(2)), Some(1_001));
        assert_eq!(user(&mut grants, &order(3, 0, 0)), None, "it is trusted");
        grants.give_back(confined(1).task);
        assert_eq!(user(&mut grants, &confined(4)), Some(1_002), "not the one that was just given back");
        assert_eq!(user(&mut Grants::of(vec![], vec![]), &confined(5)), None);
    }

    #[test]
    fn gpus_are_granted_by_number_or_not_at_all() {
        let mut grants = Grants::of(vec![0], gpus(3));
        assert_eq!(numbers(&grants.take(&order(1, 0, 2_000)).unwrap()), [0, 1]);
        let error = grants.take(&order(2, 0, 2_000)).unwrap_err();
        assert!(error.contains("needs 2 GPUs"), "{error}");
        assert_eq!(numbers(&grants.take(&order(3, 0, 500)).unwrap()), [2]);
        assert_eq!(numbers(&grants.take(&order(4, 0, 500)).unwrap()), [2]);
        assert_eq!(numbers(&grants.take(&order(5, 0, 0)).unwrap()), [] as [u32; 0]);
        grants.give_back(order(1, 0, 0).task);
        assert_eq!(numbers(&grants.take(&order(6, 0, 1_000)).unwrap()), [0]);
        assert_eq!(Grants::of(vec![0], vec![]).take(&order(1, 0, 1_000)).unwrap().gpus, None);
    }
}
