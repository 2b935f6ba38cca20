//! Rides in a carriage: who is let in, what comes of them, and what becomes of the carriage.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::mpsc::SyncSender;

use nix::unistd::Pid;
use shoal_model::job::Work;
use shoal_protocols::node::Exit;

use super::super::super::words::{Ended, Order};
use super::super::carriage::{self, Carriage, Folder, Rider, Rode, Strings};
use super::super::grants::Grant;
use super::super::groups::Whose;
use super::super::rides::{Forked, Number, Then};
use super::super::{Event, confine, ended};
use super::{Failed, Program, Shared, Spawned, UNPOISONED, cannot_run, not_started, unsettled};
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
        let mut program = None;
        while let Some((order, grant)) = self.rides.next(ride) {
            let task = order.task;
            let folder = Folder::of(&self.layout, ride, task);
            let forking = self.forking.read().expect(UNPOISONED);
            let result = self.admit(&order, &grant, ride, &folder, carriage, &mut program);
            if let Err(failed) = &result {
                carriage::explain(&folder.riding, &failed.reason);
                folder.alight();
            }
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
                    let argv = program.as_ref().map_or(&[][..], |program: &Program| &program.argv);
                    let Failed { exit, reason } = unsettled(&folder.riding, argv, failure);
                    (ended(task, exit, Some(reason)), true)
                }
                Err(_) => {
                    self.rides.lost(ride, carriage.pid());
                    return false;
                }
            };
            if clean {
                folder.alight();
            }
            match self.rides.rode(ride, carriage.pid(), how, clean) {
                Some(Then::Next(_)) => {}
                Some(Then::Over) => return clean,
                None => return false,
            }
        }
        true
    }

    /// Has a task begin to ride, in a carriage that is made for it if there is none; says which process that is. What it runs is
    /// left where that of the one before it was.
    fn admit(
        &self,
        order: &Order,
        grant: &Grant,
        ride: Number,
        folder: &Folder,
        carriage: &mut Option<Carriage>,
        program: &mut Option<Program>,
    ) -> Result<Pid, Failed> {
        let Folder { riding, home } = folder;
        folder.make(&self.layout, ride, grant.user).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                let reason = format!("{} is there: the task was started before", home.display());
                return Failed { exit: Exit::Lost, reason };
            }
            not_started("make", riding, &error)
        })?;
        let of_this = match program.take().filter(|_| is_the_same_for_all(order)) {
            Some(mut before) => {
                self.name(&mut before.variables, order, home);
                before
            }
            None => self.program(order, grant, riding, home)?,
        };
        let program = program.insert(of_this);
        let rider =
            rider(order, home, program).map_err(|error| cannot_run(riding, &program.argv[0], &error))?;
        // What the way to its program has put there. Nothing of it runs.
        if order.nodes > 1
            && let Some(user) = grant.user
        {
            cell::user::give(riding, user).map_err(|error| not_started("give away", riding, &error))?;
        }
        let carriage = match carriage {
            Some(carriage) => carriage,
            None => carriage.insert(self.make_carriage(order, grant, ride, riding)?),
        };
        // If it has ended, that is found when it is listened to.
        let _ = carriage.admit(&rider);
        Ok(carriage.pid())
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

/// Whether what one task runs is what those run that ride with it, but for their names.
fn is_the_same_for_all(order: &Order) -> bool {
    let lies_elsewhere = |name: &String| !name.contains('/') || name.starts_with('/');
    let elsewhere = match &order.work {
        Work::Command(argv) => argv.first().is_some_and(lies_elsewhere),
        Work::Script(_) => false,
    };
    elsewhere && order.nodes == 1
}

fn rider(order: &Order, home: &Path, program: &Program) -> io::Result<Rider> {
    let script = match &order.work {
        Work::Script(text) => Some(text.to_string()),
        Work::Command(_) => None,
    };
    Ok(Rider {
        folder: home.to_owned(),
        script,
        program: program.path.clone(),
        argv: Strings::words(program.argv.iter().map(OsString::as_os_str))?,
        environment: Strings::variables(program.variables.iter().map(|(name, value)| (&**name, &**value)))?,
    })
}
