//! A store for what the agenda points at: places are reused, and whoever holds a place owns its content.

/// Values by place.
#[derive(Debug)]
pub struct Slab<T> {
    values: Vec<Option<T>>,
    unused: Vec<u32>,
}

impl<T> Slab<T> {
    /// An empty slab.
    pub fn new() -> Slab<T> {
        Slab { values: Vec::new(), unused: Vec::new() }
    }

    /// Makes room for this many values in all.
    pub fn reserve(&mut self, values: usize) {
        self.values.reserve_exact(values.saturating_sub(self.values.len()));
    }

    /// Keeps a value and says where.
    pub fn put(&mut self, value: T) -> u32 {
        match self.unused.pop() {
            Some(place) => {
                self.values[place as usize] = Some(value);
                place
            }
            None => {
                self.values.push(Some(value));
                u32::try_from(self.values.len() - 1).expect("fewer than 2^32 values")
            }
        }
    }

    /// The value at a place that is in use.
    pub fn get(&self, place: u32) -> &T {
        self.values[place as usize].as_ref().expect("the place is in use")
    }

    /// Takes the value from a place that is in use.
    pub fn take(&mut self, place: u32) -> T {
        let value = self.values[place as usize].take().expect("the place is in use");
        self.unused.push(place);
        value
    }
}
