//! A real node through the real program: what a user types, and what comes of it.

mod bad_input;
mod cells;
mod demo;
mod files;
mod flood;
mod home;
mod interface;
mod jobs;
mod lives;
mod more;
mod recipes;
mod remote;
mod rights;
mod several;
mod strangers;
mod trust;
