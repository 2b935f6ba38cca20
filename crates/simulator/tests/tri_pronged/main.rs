//! The recipe `tri-pronged` in simulated grids: jobs find places, move to better ones, and survive what befalls a grid.

mod balloons;
mod dual;
mod places;
mod scene;
mod storms;
