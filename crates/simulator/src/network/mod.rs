//! stub
use rand::RngExt;
use shoal_model::{Span, Time};
#[derive(Clone, Debug)]
pub struct Network {
    pub min: u32,
    pub max: u32,
}
pub type Carried = [Option<Span>; 2];
impl Network {
    pub fn carry(&self, _now: Time, _from: usize, _to: usize, chance: &mut impl rand::Rng) -> Carried {
        let d = if self.min == self.max { self.min } else { chance.random_range(self.min..=self.max) };
        [Some(Span::from_micros(d as u64)), None]
    }
    pub fn least_delay(&self) -> Span {
        Span::from_micros(self.min as u64)
    }
}
