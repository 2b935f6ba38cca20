//! The keeper's side of rides: which lines become one, what is written and told of them, and when they are its own again.

use std::collections::VecDeque;
use std::time::Instant;

use shoal_model::Span;
use shoal_protocols::node::{Exit, Task, Usage};

use super::super::super::words::Order;
use super::super::grants::Grant;
use super::super::groups::Whose;
use super::super::lines::{Lines, Waiting};
use super::super::rides::{self, Current, Gathered, Left, Number, Over, TakenOver};
use super::super::{TASKS_MAX, WAITING_MAX, ended};
use super::{Keeper, LOOK, ON_FOOT, Running, Stage, micros};
use crate::store;

/// A ride, as the keeper knows it.
pub(super) struct Ride {
    /// The daemon that is told.
    pub asker: u64,
    /// Who has its processors, as far as these are concerned.
    seat: Task,
    /// Whether it goes in a carriage.
    carriage: bool,
    /// Who comes behind it comes behind this one.
    last: Task,
    /// Whoever joins must be like this one.
    like: Box<Order>,
}

/// One that is to join a ride, as soon as it is written that it has begun.
pub(super) struct Joining {
    ride: Number,
    /// Whom it comes behind.
    behind: Task,
    order: Order,
}

impl Keeper {
    /// The task that an order waits for which comes behind this one: of a ride it is the last.
    pub(super) fn end_of_ride(&self, task: Task) -> Task {
        let ride = self.riders.get(&task).and_then(|ride| self.rides_known.get(ride));
        ride.map_or(task, |ride| ride.last)
    }

    /// Gives a line to a ride from this order on, if it may ride; or gives the order back.
    pub(super) fn ride(&mut self, behind: Task, first: Waiting) -> Result<Option<Waiting>, store::Error> {
        let full = self.tasks.len() >= TASKS_MAX || !self.spawner.can_ride();
        let carriage = first.order.is_confined();
        if full || !rides::may_ride(&first.order) || carriage && !self.has_carriages() {
            return Ok(Some(first));
        }
        let seat = first.order.task;
        let Ok(grant) = self.grant(&first.order)? else { return Ok(Some(first)) };
        let asker = first.asker;
        let mut line = vec![first];
        while let Some(last) = line.last()
            && self.lines.is_next(last.order.task, |next| {
                next.asker == asker
                    && rides::may_ride(&next.order)
                    && rides::is_alike(&last.order, &next.order)
            })
            && let Some(next) = self.lines.next_after(last.order.task)
        {
            line.push(next);
        }
        self.rides_begun += 1;
        let ride = self.rides_begun;
        let orders: VecDeque<Order> = line.into_iter().map(Waiting::due).collect();
        for order in &orders {
            self.ledger.begin(order.task)?;
            self.riders.insert(order.task, ride);
        }
        let Some(last) = orders.back() else { return Ok(None) };
        let (last, like) = (last.task, Box::new(last.clone()));
        self.rides_known.insert(ride, Ride { asker, seat, carriage, last, like });
        self.rides.begin(ride, behind, orders, grant);
        self.go.push((ride, carriage));
        Ok(None)
    }

    /// Has an order join a ride behind its last, if it may; or gives it back.
    pub(super) fn join_behind(
        &mut self,
        daemon: u64,
        last: Task,
        order: Order,
    ) -> Result<Option<Order>, store::Error> {
        let is_last = |ride: &Number| self.rides_known.get(ride).is_some_and(|known| known.last == last);
        let ride = self.riders.get(&last).copied().filter(is_last);
        self.join(ride.filter(|&ride| self.may_join(ride, daemon, &order)), order)
    }

    /// Has an order that waits for nobody join a ride that has come to its end, if it may; or gives it back.
    pub(super) fn join_waiting(&mut self, daemon: u64, order: Order) -> Result<Option<Order>, store::Error> {
        // One that somebody is about to join waits no more.
        self.board()?;
        let mut waiting = self.rides.waiting().into_iter();
        self.join(waiting.find(|&ride| self.may_join(ride, daemon, &order)), order)
    }

    /// Whether an order is of the same array as those of a ride, and like them, and nobody stands behind these already.
    fn may_join(&self, ride: Number, daemon: u64, order: &Order) -> bool {
        let Some(Ride { asker, like, last, .. }) = self.rides_known.get(&ride) else { return false };
        let is_of_the_same = rides::can_be_joined(order) && order.array == like.array;
        let has_room = self.riders.len() < WAITING_MAX;
        *asker == daemon
            && is_of_the_same
            && has_room
            && !self.lines.is_next(*last, |_| true)
            && rides::may_ride(order)
            && rides::is_alike(like, order)
    }

    fn join(&mut self, ride: Option<Number>, order: Order) -> Result<Option<Order>, store::Error> {
        let Some((ride, known)) = ride.and_then(|ride| Some((ride, self.rides_known.get_mut(&ride)?))) else {
            return Ok(Some(order));
        };
        let behind = std::mem::replace(&mut known.last, order.task);
        self.ledger.begin(order.task)?;
        self.riders.insert(order.task, ride);
        self.joining.push(Joining { ride, behind, order });
        Ok(None)
    }

    /// Has those ride that join: it is written now that they have begun.
    pub(super) fn board(&mut self) -> Result<(), store::Error> {
        if self.joining.is_empty() {
            return Ok(());
        }
        self.ledger.write()?;
        for Joining { ride, behind, order } in std::mem::take(&mut self.joining) {
            if let Some(order) = self.rides.join(ride, order) {
                // It has just gone on without: that is still to be gathered, and then it is their turn.
                self.riders.remove(&order.task);
                let asker = self.rides_known.get(&ride).map(|known| known.asker).unwrap_or_default();
                self.lines.push(behind, Waiting { asker, since: Instant::now(), order });
            }
        }
        Ok(())
    }

    /// What a task is to have. Where that is not left, rides that only wait for more end, and give back what they hold.
    pub(super) fn grant(&mut self, order: &Order) -> Result<Result<Grant, String>, store::Error> {
        let granted = self.grants.take(order);
        let has_all = granted.as_ref().is_ok_and(|grant| grant.has_processors(order));
        if has_all || !self.end_waiting(|_, _| true)? {
            return Ok(granted);
        }
        self.grants.give_back(order.task);
        Ok(self.grants.take(order))
    }

    /// Has those begin that stand behind a ride which only waits for more.
    pub(super) fn call_behind_waiting(&mut self) -> Result<(), store::Error> {
        if self.lines.len() > 0 {
            self.end_waiting(|lines, last| lines.is_next(last, |_| true))?;
        }
        Ok(())
    }

    /// Ends rides that have come to their ends, of those with such a last one; says whether there were any.
    fn end_waiting(&mut self, is: impl Fn(&Lines, Task) -> bool) -> Result<bool, store::Error> {
        self.board()?;
        let mut some = self.rides.are_done();
        if some {
            // Those that are over hold what they have until they are gathered.
            self.gather_rides()?;
        }
        for ride in self.rides.waiting() {
            let Some(last) = self.rides_known.get(&ride).map(|known| known.last) else { continue };
            if is(&self.lines, last) {
                some = true;
                if let Some(before) = self.take_over(ride)? {
                    self.call_next(before)?;
                }
            }
        }
        Ok(some)
    }

    /// Whether tasks that are not trusted may ride.
    fn has_carriages(&mut self) -> bool {
        self.on_foot_until.take_if(|until| *until <= Instant::now());
        // Each must be somebody who cannot change what its folder lies in.
        self.on_foot_until.is_none() && self.grants.has_users()
    }

    /// Writes and tells what has ended of rides, and goes on with what is left of those that are over.
    pub(super) fn gather_rides(&mut self) -> Result<(), store::Error> {
        // Whoever is about to join one that is over is to be called with the others behind it.
        self.board()?;
        let Gathered { ended, over } = self.rides.gather();
        self.gathered = Instant::now();
        for ended in ended {
            let ride = self.riders.remove(&ended.task);
            let asker = ride.and_then(|ride| self.rides_known.get(&ride)).map(|ride| ride.asker);
            self.note(asker.unwrap_or_default(), ended)?;
        }
        for Over { ride, began, last, left, rest, refused } in over {
            if refused {
                self.on_foot_until = Some(Instant::now() + ON_FOOT);
            }
            let left = left.map(|(current, left)| {
                let stage = match (left, current.pid) {
                    (Left::Carriage, Some(carriage)) => Stage::Led(carriage),
                    (Left::Carriage, None) => Stage::Leaderless(Exit::Lost, Usage::default()),
                    (Left::Leaderless(exit, usage), _) => Stage::Leaderless(exit, usage),
                };
                (current, stage)
            });
            if self.end_ride(ride, began, last, left, rest) {
                self.call_next(last)?;
            }
        }
        Ok(())
    }

    /// Has the keeper decide on all of a ride from now on. If none of it runs, gives back behind whom the next of it is due.
    #[must_use = "somebody may be due"]
    pub(super) fn take_over(&mut self, ride: Number) -> Result<Option<Task>, store::Error> {
        self.board()?;
        let Some(TakenOver { began, last, current, rest }) = self.rides.take_over(ride) else {
            // It is over already.
            return self.gather_rides().map(|()| None);
        };
        // Of others of it the end is still to be told.
        self.gather_rides()?;
        let current = current.map(|current| {
            let stage = current.pid.map_or(Stage::Forking, Stage::Led);
            (current, stage)
        });
        Ok(self.end_ride(ride, began, last, current, rest).then_some(last))
    }

    /// Takes over the ride of a task, if it rides; what follows from that is the caller's, as of [`Keeper::take_over`].
    pub(super) fn take_over_for(&mut self, task: Task) -> Result<Option<Task>, store::Error> {
        let mut due = None;
        // What was over already may have begun anew with the rest.
        while let Some(&ride) = self.riders.get(&task) {
            due = self.take_over(ride)?;
        }
        Ok(due)
    }

    /// Takes over what is not quick: it is to be looked after as any other.
    pub(super) fn take_over_slow(&mut self) -> Result<(), store::Error> {
        for ride in self.rides.slow(LOOK) {
            if let Some(before) = self.take_over(ride)? {
                self.call_next(before)?;
            }
        }
        Ok(())
    }

    /// A ride is over: the task whose turn it is becomes one like any other, and the rest waits behind it. Says whether there is
    /// none, so that the next is due.
    fn end_ride(
        &mut self,
        ride: Number,
        began: Instant,
        last: Task,
        current: Option<(Current, Stage)>,
        rest: VecDeque<Order>,
    ) -> bool {
        let Some(Ride { asker, seat, carriage, .. }) = self.rides_known.remove(&ride) else { return false };
        let mut before = last;
        for order in rest {
            let task = order.task;
            self.riders.remove(&task);
            // Their time goes on as it did.
            self.lines.push(before, Waiting { asker, since: began, order });
            before = task;
        }
        let Some((current, stage)) = current else {
            self.grants.give_back(seat);
            if carriage {
                // Not before it has ended.
                self.left.push(Whose::Ride(ride));
            }
            return true;
        };
        self.grants.rename(seat, current.order.task);
        self.riders.remove(&current.order.task);
        self.own(asker, began, current, stage, carriage.then_some(ride));
        false
    }

    fn own(&mut self, asker: u64, began: Instant, current: Current, stage: Stage, carriage: Option<Number>) {
        let Current { order, since, pid } = current;
        let task = order.task;
        let alarm = began.checked_add(micros(order.limit));
        let mut running = Running::new(&order, asker, stage, since, alarm);
        running.no_mercy = matches!(running.stage, Stage::Leaderless(..));
        running.carriage = carriage;
        if !matches!(running.stage, Stage::Forking) {
            self.begins(task, &running);
        }
        if let Some(pid) = pid {
            running.group = Some(pid);
            self.groups.insert(pid, task);
            if let Stage::Led(leader) = running.stage {
                self.leaders.insert(leader, task);
            }
        }
        self.alarms.extend(alarm.map(|at| (at, task)));
        self.tasks.insert(task, running);
    }

    /// Says that a task which was in a line was taken out of it.
    pub(super) fn tell_taken_out(&mut self, waiting: &Waiting) -> Result<(), store::Error> {
        let reason = Some("its turn had not come".to_owned());
        self.note(waiting.asker, ended(waiting.order.task, Exit::Stopped, reason))
    }
}

impl Waiting {
    /// The order, now that its turn has come: its time is over when it would have been without the wait.
    pub(super) fn due(self) -> Order {
        let waited = Span::from_micros(u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX));
        Order { limit: self.order.limit.saturating_sub(waited), ..self.order }
    }
}
