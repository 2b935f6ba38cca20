//! The recipe `tri-pronged` in simulated grids: jobs find places, move to better ones, and survive what befalls a grid.

mod ahead;
mod balloons;
mod cancelled;
mod churn;
mod dual;
mod leaving;
mod places;
mod recovery;
mod scene;
mod storms;
mod ties;
