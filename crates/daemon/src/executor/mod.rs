//! Does what only a machine can do, and says later what came of it.

pub mod audited;
pub mod pretend;
pub mod process;
pub mod raw;

use shoal_model::Time;
use shoal_protocols::{Never, Protocol};

use crate::inbox::Completion;

/// Carries out a node's actions.
pub trait Executor<P: Protocol>: Send {
    /// Begins an action, and returns without waiting for its end: this runs on the thread that drives the node.
    ///
    /// `completion` goes to whoever learns the outcome, on any thread; each action ends at most once, since it can
    /// be used only once.
    fn perform(&mut self, now: Time, action: P::Action, completion: Completion<P>);
}

/// The executor of a protocol that knows no actions.
#[derive(Clone, Copy, Debug)]
pub struct Idle;

impl<P: Protocol<Action = Never>> Executor<P> for Idle {
    fn perform(&mut self, _now: Time, action: Never, _completion: Completion<P>) {
        match action {}
    }
}
