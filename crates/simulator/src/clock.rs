//! stub
use shoal_model::Time;
#[derive(Clone, Debug, Default)]
pub struct Clock;
impl Clock {
    pub fn local(&self, world: Time) -> Time {
        world
    }
    pub fn world_at_local(&self, local: Time) -> Time {
        local
    }
}
