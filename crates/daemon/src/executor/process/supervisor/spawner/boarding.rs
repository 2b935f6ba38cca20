//! Rides in a carriage: who is let in, what comes of them, and what becomes of the carriage.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use nix::unistd::Pid;
use shoal_model::job::Work;
use shoal_protocols::node::Exit;

use super::super::super::words::{Ended, Order};
use super::super::carriage::{self, Carriage, Folder, Rider, Rode};
use super::super::grants::Grant;
use super::super::groups::Whose;
use super::super::quick::Common;
use super::super::rides::{Forked, Number, Then};
use super::super::{Event, confine, ended};
use super::alike::Last;
use super::{Failed, Shared, Spawned, UNPOISONED, not_started, pin, set_of, unsettled};
use crate::cell::{self, Failure};

impl Shared {
    /// Goes through a ride in a carriage, and tells the keeper when it is over.
    pub(super) fn ride_in_carriage(&self, ride: Number, events: &SyncSender<Event>) {
        let is_ours = match self.make_carriage(ride) {
            Ok(Some(carriage)) => {
                let is_ours = self.ride_in(&carriage, ride, events);
                // The keeper lives as long as the process.
                let _ = events.send(Event::Spawned);
                let pid = carriage.pid();
                carriage.stop();
                if is_ours {
                    self.rides.reap_carriage(pid);
                }
                is_ours
            }
            Ok(None) => true,
            Err(Failed { reason, .. }) => {
                eprintln!("quick tasks have cells of their own for a while: {reason}");
                self.rides.refuse(ride);
                let _ = events.send(Event::Spawned);
                true
            }
        };
        if is_ours {
            carriage::dismantle(&self.layout, ride);
        }
    }

    /// Says whether the carriage is still this thread's in the end, and not the keeper's.
    fn ride_in(&self, carriage: &Carriage, ride: Number, events: &SyncSender<Event>) -> bool {
        let mut last = None;
        while let Some((order, grant)) = self.rides.next(ride, || drop(events.send(Event::Spawned))) {
            let task = order.task;
            let folder = Folder::of(&self.layout, ride, task);
            let boarded = self.board(&order, &grant, &folder, &mut last);
            match &boarded {
                Ok(rider) => carriage.admit(rider),
                Err(failed) => {
                    // The carriage has not heard what this one was to run.
                    last = None;
                    folder.explain(&failed.reason);
                    folder.alight();
                }
            }
            let was_let_in = boarded.is_ok();
            // Until the keeper knows that the carriage is its own, it is not to take it for an orphan.
            let forking = self.forking.read().expect(UNPOISONED);
            match self.rides.spawned(ride, task, boarded.map(|_| carriage.pid())) {
                Forked::Runs(_) => drop(forking),
                Forked::Failed => continue,
                Forked::Taken(result) => {
                    self.spawned.lock().expect(UNPOISONED).push(Spawned { task, result });
                    drop(forking);
                    let _ = events.send(Event::Spawned);
                }
            }
            if !was_let_in {
                return true;
            }
            let (how, clean) = match carriage.hear() {
                Ok(Rode::Ended { exit, usage, clean }) => {
                    // So that each is told of its own memory only.
                    let ran_out = exit != Exit::Code(0) && order.is_grouped() && self.has_run_out(ride);
                    (Ended { usage, ..ended(task, exit, None) }, clean && !ran_out)
                }
                Ok(Rode::Failed(failure)) => {
                    // Where one cannot begin, the next could not either.
                    let clean = matches!(failure, Failure::Program { .. });
                    // What could not be run may be somewhere else by now.
                    let last: Option<Last> = last.take();
                    let name = last.as_ref().map(|last| last.common.name());
                    let Failed { exit, reason } = unsettled(&folder.riding, name, failure);
                    (ended(task, exit, Some(reason)), clean)
                }
                Err(_) => {
                    self.rides.lost(ride, carriage.pid());
                    return false;
                }
            };
            if clean {
                folder.alight();
            }
            match self.rides.rode(ride, how, clean) {
                Some(Then::Next(_)) => {}
                Some(Then::Over) => return clean,
                None => return false,
            }
        }
        true
    }

    fn has_run_out(&self, ride: Number) -> bool {
        self.groups.ran_out(Whose::Ride(ride))
    }

    /// Makes the folder of a task that is to ride, and says what it runs, if that is not what the last one ran.
    fn board(
        &self,
        order: &Arc<Order>,
        grant: &Grant,
        folder: &Folder,
        last: &mut Option<Last>,
    ) -> Result<Rider, Failed> {
        let Folder { riding, home } = folder;
        folder.make(grant.user).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                let reason = format!("{} is there: the task was started before", home.display());
                return Failed { exit: Exit::Lost, reason };
            }
            not_started("make", riding, &error)
        })?;
        let own = self.own_variables(order, riding, home)?;
        let (common, is_new) = self.find_common(order, grant, riding, home, last)?;
        // What the way to its program has put there. Nothing of it runs.
        if order.nodes > 1
            && let Some(user) = grant.user
        {
            cell::user::give(riding, user).map_err(|error| not_started("give away", riding, &error))?;
        }
        let script = match &order.work {
            Work::Script(text) => Some(text.to_string()),
            Work::Command(_) => None,
        };
        let common = is_new.then(|| Common::clone(&common));
        Ok(Rider { folder: home.clone(), script, common, own })
    }

    /// Makes the carriage of a ride, with room for those that it carries; none if the ride is over before.
    fn make_carriage(&self, ride: Number) -> Result<Option<Carriage>, Failed> {
        let Some((order, grant)) = self.rides.first(ride) else { return Ok(None) };
        let folder = self.layout.carriage_work(ride);
        let wrong = |error| not_started("make a carriage for", &folder, &error);
        carriage::make_room(&self.layout, ride).map_err(wrong)?;
        let mut cell = confine::carriage_of(&order, &grant, &self.layout, ride);
        let memory = carriage::memory_with(order.memory);
        if order.is_grouped() && self.make_groups(&order, Whose::Ride(ride), memory)? {
            cell.groups = self.groups.made(Whose::Ride(ride));
        }
        let (mut command, line) = carriage::command().map_err(wrong)?;
        command.envs(self.marks(order.task)).current_dir(&folder);
        let forking = self.forking.read().expect(UNPOISONED);
        let child = self.spawn(&mut command, &grant).map_err(wrong)?;
        let pid = Pid::from_raw(child.id() as i32);
        self.rides.has_carriage(ride, pid);
        // It may take its time, and nobody is to wait for it.
        drop(forking);
        // The other end of the line lies in it, and must be nobody's but the child's.
        drop(command);
        let carriage = Carriage::settle(child, line, &cell).map_err(|failure| {
            self.rides.has_no_carriage(pid);
            unsettled(&folder, None::<&str>, failure)
        })?;
        if let Some(cpus) = &grant.cpus {
            // The two of them take turns: each is woken where the other has just worked.
            pin(&set_of(cpus));
        }
        Ok(Some(carriage))
    }
}
