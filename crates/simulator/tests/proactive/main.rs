//! The recipe `proactive` in whole grids: what is best by the user's words, moved while there is time, in any weather.

mod life;
mod storms;
