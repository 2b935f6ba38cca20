//! Rides without a carriage: tasks that are trusted, each forked by the thread of its ride.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Pid, chdir};

use super::super::super::words::Order;
use super::super::grants::Grant;
use super::super::quick::{Common, Spawn, Unspawned};
use super::super::rides::{Forked, Number, Then};
use super::super::strings::Strings;
use super::super::{Event, output, reaper};
use super::alike::Last;
use super::{Failed, Prepared, Shared, Spawned, UNPOISONED, cannot_run, not_started};

/// A task that is about to be forked.
enum Ready<'a> {
    /// By this thread, which is in its folder. The last are its own variables.
    Here(&'a Spawn, Arc<Common>, Strings),
    /// By any thread.
    Anywhere(Box<Prepared>),
}

impl Shared {
    /// Goes through a ride, and tells the keeper when it is over.
    pub(super) fn ride(&self, mut ride: Number, events: &SyncSender<Event>) {
        // A thread with a working folder that is not that of all others can be in each task's. Not every sandbox allows that.
        let spawn = unshare(CloneFlags::CLONE_FS).and_then(|()| Spawn::new()).ok();
        let mut last = None;
        // The keeper lives as long as the process.
        let say = || drop(events.send(Event::Spawned));
        while let Some((order, grant)) = self.rides.next(ride, say) {
            let ready = match &spawn {
                Some(spawn) => {
                    self.enter(&order, &grant, &mut last).map(|(common, own)| Ready::Here(spawn, common, own))
                }
                None => self.prepare(&order, &grant).map(|prepared| Ready::Anywhere(Box::new(prepared))),
            };
            let forking = self.forking.read().expect(UNPOISONED);
            let result = ready.and_then(|ready| match ready {
                Ready::Here(spawn, common, own) => self.fork_here(&order, &grant, spawn, &common, &own),
                Ready::Anywhere(prepared) => self.fork(&order, &grant, *prepared),
            });
            let pid = match self.rides.spawned(ride, order.task, result) {
                Forked::Runs(pid) => pid,
                Forked::Failed => {
                    // What could not be run may be somewhere else by now.
                    last = None;
                    continue;
                }
                Forked::Taken(result) => {
                    let leader = result.as_ref().ok().copied();
                    self.spawned.lock().expect(UNPOISONED).push(Spawned { task: order.task, result });
                    drop(forking);
                    say();
                    leader.into_iter().for_each(reaper::await_end);
                    return;
                }
            };
            drop(forking);
            reaper::await_end(pid);
            match self.rides.reap(pid) {
                Some(Then::Next(next)) if next == ride => {}
                // Another's, if the system has given it the number of one that was taken over: that goes on here.
                Some(Then::Next(next)) => (ride, last) = (next, None),
                Some(Then::Over) => break,
                None => return,
            }
        }
        say();
    }

    /// Makes the folder of a task and goes there; says what it runs, with which variables of its own.
    fn enter(
        &self,
        order: &Arc<Order>,
        grant: &Grant,
        last: &mut Option<Last>,
    ) -> Result<(Arc<Common>, Strings), Failed> {
        let folder = self.layout.attempt(order.task);
        self.make_folder(order, &folder)?;
        let mut runs = || {
            self.write_script(order, &folder)?;
            let own = self.own_variables(order, &folder, &folder)?;
            let (common, _) = self.find_common(order, grant, &folder, &folder, last)?;
            chdir(&folder).map_err(|errno| not_started("enter", &folder, &errno.into()))?;
            Ok((common, own))
        };
        // What runs makes its outputs itself.
        runs().inspect_err(|failed: &Failed| output::explain(&folder, &failed.reason))
    }

    fn fork_here(
        &self,
        order: &Order,
        grant: &Grant,
        spawn: &Spawn,
        common: &Common,
        own: &Strings,
    ) -> Result<Pid, Failed> {
        self.on_processors(grant, || spawn.begin(common, own)).map_err(|unspawned| {
            let folder = self.layout.attempt(order.task);
            let failed = match unspawned {
                Unspawned::Program(error) => return cannot_run(&folder, common.name(), &error),
                Unspawned::Process(error) => not_started("make a process in", &folder, &error),
                Unspawned::Outputs(error) => not_started("make the outputs in", &folder, &error),
            };
            output::explain(&folder, &failed.reason);
            failed
        })
    }
}
