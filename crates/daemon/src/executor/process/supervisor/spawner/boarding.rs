//! Rides in a carriage: who is let in, what comes of them, and what becomes of the carriage.

use std::io;
use std::path::Path;
use std::sync::mpsc::SyncSender;

use shoal_model::job::Work;
use shoal_protocols::node::Exit;

use super::super::super::words::{Ended, Order};
use super::super::carriage::{self, Carriage, Rider, Rode};
use super::super::grants::Grant;
use super::super::groups::Whose;
use super::super::rides::{Forked, Number, Then};
use super::super::{Event, confine, ended};
use super::{Failed, Program, Shared, Spawned, UNPOISONED, not_started, unsettled};
use crate::cell;

impl Shared {
    /// Goes through a ride in a carriage, and tells the keeper when it is over.
    pub(super) fn ride_in_carriage(&self, ride: Number, events: &SyncSender<Event>) {
        let mut carriage = None;
        let is_ours = self.ride_in(&mut carriage, ride, events);
        // The keeper lives as long as the process.
        let _ = events.send(Event::Spawned);
        let pid = carriage.as_ref().map(Carriage::pid);
        carriage.into_iter().for_each(Carriage::stop);
        if is_ours {
            pid.into_iter().for_each(|pid| self.rides.reap_carriage(pid));
            carriage::dismantle(&self.layout, ride);
        }
    }

    /// Says whether the carriage is still this thread's in the end, and not the keeper's.
    fn ride_in(&self, carriage: &mut Option<Carriage>, ride: Number, events: &SyncSender<Event>) -> bool {
        while let Some((order, grant)) = self.rides.next(ride) {
            let task = order.task;
            let forking = self.forking.read().expect(UNPOISONED);
            let (result, argv) = match self.admit(&order, &grant, ride, carriage) {
                Ok((pid, rider)) => (Ok(pid), rider.argv),
                Err(failed) => {
                    carriage::explain(&self.layout.riding(ride, task), &failed.reason);
                    carriage::alight(&self.layout, ride, task);
                    (Err(failed), Vec::new())
                }
            };
            let was_let_in = result.is_ok();
            match self.rides.spawned(ride, task, result) {
                Forked::Runs(_) => drop(forking),
                Forked::Failed => continue,
                Forked::Taken(result) => {
                    self.spawned.lock().expect(UNPOISONED).push(Spawned { task, result });
                    drop(forking);
                    let _ = events.send(Event::Spawned);
                }
            }
            let Some(carriage) = carriage.as_ref().filter(|_| was_let_in) else { return true };
            let (how, clean) = match carriage.hear() {
                Ok(Rode::Ended { exit, usage, clean }) => (Ended { usage, ..ended(task, exit, None) }, clean),
                Ok(Rode::Failed(failure)) => {
                    let folder = self.layout.riding(ride, task);
                    let Failed { exit, reason } = unsettled(&folder, &argv, failure);
                    (ended(task, exit, Some(reason)), true)
                }
                Err(_) => {
                    self.rides.lost(ride, carriage.pid());
                    return false;
                }
            };
            if clean {
                carriage::alight(&self.layout, ride, task);
            }
            match self.rides.rode(ride, carriage.pid(), how, clean) {
                Some(Then::Next(_)) => {}
                Some(Then::Over) => return clean,
                None => return false,
            }
        }
        true
    }

    /// Has a task begin to ride, in a carriage that is made for it if there is none.
    fn admit(
        &self,
        order: &Order,
        grant: &Grant,
        ride: Number,
        carriage: &mut Option<Carriage>,
    ) -> Result<(nix::unistd::Pid, Rider), Failed> {
        let (folder, seen) = (self.layout.riding(ride, order.task), self.layout.attempt(order.task));
        carriage::make_folder(&self.layout, ride, order.task, grant.user).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                let reason = format!("{} is there: the task was started before", seen.display());
                return Failed { exit: Exit::Lost, reason };
            }
            not_started("make", &folder, &error)
        })?;
        let rider = self.rider(order, grant, &folder, &seen)?;
        // What the way to its program has put there. Nothing of it runs.
        if order.nodes > 1
            && let Some(user) = grant.user
        {
            cell::user::give(&folder, user).map_err(|error| not_started("give away", &folder, &error))?;
        }
        let carriage = match carriage {
            Some(carriage) => carriage,
            None => carriage.insert(self.make_carriage(order, grant, ride, &folder)?),
        };
        // If it has ended, that is found when it is listened to.
        let _ = carriage.admit(&rider);
        Ok((carriage.pid(), rider))
    }

    fn rider(&self, order: &Order, grant: &Grant, folder: &Path, seen: &Path) -> Result<Rider, Failed> {
        let Program { path, argv, variables } = self.program(order, grant, folder, seen)?;
        let script = match &order.work {
            Work::Script(text) => Some(text.to_string()),
            Work::Command(_) => None,
        };
        let environment = confine::joined(&variables);
        Ok(Rider { folder: seen.to_owned(), script, program: path, argv, environment })
    }

    fn make_carriage(
        &self,
        order: &Order,
        grant: &Grant,
        ride: Number,
        folder: &Path,
    ) -> Result<Carriage, Failed> {
        let wrong = |error| not_started("make a carriage for", folder, &error);
        let mut cell = confine::carriage_of(order, grant, &self.layout, ride);
        if order.is_grouped() && self.make_groups(order, Whose::Ride(ride))? {
            cell.groups = self.groups.made(Whose::Ride(ride));
        }
        let (mut command, line) = carriage::command().map_err(wrong)?;
        command.envs(self.marks(order.task)).current_dir(folder);
        let child = self.spawn(&mut command, grant).map_err(wrong)?;
        // The other end of the line lies in it, and must be nobody's but the child's.
        drop(command);
        Carriage::settle(child, line, &cell).map_err(|failure| unsettled(folder, &[], failure))
    }
}
