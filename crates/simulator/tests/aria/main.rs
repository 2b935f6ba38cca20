//! The recipe `aria` in simulated grids: in bad weather, and in words.

mod life;
mod storms;
