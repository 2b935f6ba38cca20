//! One conversation, several arms: what a user is told by simulated and by real nodes is the same.
//!
//! A script of [`scripts`] speaks to an [`arm::Arm`] and says what the user must be told. The [`simulated`] arm is the
//! simulator's grid; the [`real`] arm is threads, the real clock, a database per node and a switchboard, once with machines
//! that pretend and once with real processes; in the [`networked`] arm sockets take the switchboard's place. This is the
//! one place where they meet.

mod arm;
mod codec;
mod networked;
mod real;
mod restart;
mod scripts;
mod simulated;
mod speech;
mod told;
