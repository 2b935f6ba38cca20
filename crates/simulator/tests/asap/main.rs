//! The recipe `asap` in a simulated grid: what the paper claims, what it costs, and what becomes of jobs.

mod cost;
mod life;
mod paper;
mod scene;
