//! A queue between threads that has a bound, and takes room only for what is in it.
//!
//! The standard library's bounded queue has all its places from the start: megabytes in a node that has nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Puts something in; never waits.
pub struct Sender<T> {
    queue: mpsc::Sender<T>,
    waiting: Arc<AtomicUsize>,
    most: usize,
}

/// Takes it out, in order.
pub struct Receiver<T> {
    queue: mpsc::Receiver<T>,
    waiting: Arc<AtomicUsize>,
}

/// It was not put in: there was no room, or nobody takes anything out any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// A queue for so many, at most.
pub fn queue<T>(most: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    (Sender { queue: sender, waiting: Arc::clone(&waiting), most }, Receiver { queue: receiver, waiting })
}

impl<T> Sender<T> {
    /// Puts something in, if there is room.
    pub fn try_send(&self, item: T) -> Result<(), NoRoom> {
        // Counted before it is there: so it never looks as if more had been taken out than was put in.
        if self.waiting.fetch_add(1, Ordering::Relaxed) < self.most && self.queue.send(item).is_ok() {
            return Ok(());
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Err(NoRoom)
    }
}

impl<T> Receiver<T> {
    /// Waits for the next; none once nobody can put anything in.
    pub fn recv(&self) -> Option<T> {
        self.queue.recv().ok().inspect(|_| self.took())
    }

    /// Waits for the next, no longer than this; none if nothing came.
    pub fn recv_timeout(&self, within: Duration) -> Result<Option<T>, Closed> {
        match self.queue.recv_timeout(within) {
            Ok(item) => {
                self.took();
                Ok(Some(item))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Closed),
        }
    }

    /// What is there.
    pub fn try_iter(&self) -> impl Iterator<Item = T> {
        self.queue.try_iter().inspect(|_| self.took())
    }

    fn took(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Nobody can put anything in any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_room_for_comes_out_in_order_and_makes_room() {
        let (sender, receiver) = queue(3);
        let sent: Vec<bool> = (0..5).map(|number| sender.try_send(number).is_ok()).collect();
        assert_eq!(sent, [true, true, true, false, false]);
        assert_eq!(receiver.recv(), Some(0));
        assert_eq!(sender.try_send(5), Ok(()));
        assert_eq!(sender.try_send(6), Err(NoRoom));
        assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(Some(1)));
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [2, 5]);
        assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(None));
        (0..3).for_each(|number| sender.try_send(number).unwrap());
        drop(sender);
        assert_eq!(receiver.try_iter().count(), 3);
        assert_eq!((receiver.recv(), receiver.recv_timeout(Duration::ZERO)), (None, Err(Closed)));
    }

    #[test]
    fn nothing_is_put_in_once_nobody_takes_it_out() {
        let (sender, receiver) = queue(3);
        drop(receiver);
        assert_eq!(sender.try_send(1), Err(NoRoom));
    }
}
