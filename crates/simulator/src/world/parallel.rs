//! Several shards at once: a thread each, in steps of the network's least delay.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use shoal_model::{Span, Time};
use shoal_protocols::Protocol;

use super::shard::{Post, Shard};

/// What shards write for each other in one step. Two of them take turns, so that one barrier a step is enough.
struct Exchange<P: Protocol> {
    /// From one shard (row) to another (column).
    post: Vec<Vec<Mutex<Vec<Post<P>>>>>,
    /// When the next thing is due, by shard: in it, or in what it has just sent.
    next: Vec<AtomicU64>,
}

/// Lets everything happen that is due before `until`, `lookahead` at a time.
pub(super) fn run_before<P>(shards: &mut [Shard<P>], lookahead: Span, until: Time)
where
    P: Protocol + Send,
    P::Config: Send + Sync,
{
    let count = shards.len();
    let exchange = || Exchange::<P> {
        post: (0..count).map(|_| (0..count).map(|_| Mutex::new(Vec::new())).collect()).collect(),
        next: (0..count).map(|_| AtomicU64::new(u64::MAX)).collect(),
    };
    let exchanges = [exchange(), exchange()];
    let barrier = Barrier::new(count);
    std::thread::scope(|scope| {
        for (number, shard) in shards.iter_mut().enumerate() {
            let (exchanges, barrier) = (&exchanges, &barrier);
            scope.spawn(move || {
                // Without this the others would wait forever for a shard that has panicked.
                let _alarm = Alarm(barrier);
                drive(shard, number, exchanges, barrier, lookahead, until);
            });
        }
    });
}

fn drive<P: Protocol>(
    shard: &mut Shard<P>,
    number: usize,
    exchanges: &[Exchange<P>; 2],
    barrier: &Barrier,
    lookahead: Span,
    until: Time,
) {
    for step in 0.. {
        let Exchange { post, next } = &exchanges[step % 2];
        let mut due = shard.next_before(Time::NEVER).unwrap_or(Time::NEVER);
        for (to, outgoing) in shard.engine.outbox.iter_mut().enumerate().filter(|(to, _)| *to != number) {
            due = outgoing.iter().map(|post| post.at).fold(due, Time::min);
            // The receiver left its emptied buffer behind: swapping recycles it.
            std::mem::swap(&mut *post[number][to].lock().expect("no shard has panicked"), outgoing);
        }
        next[number].store(due.as_micros(), Ordering::Relaxed);
        barrier.wait();
        for row in post {
            shard.receive(&mut row[number].lock().expect("no shard has panicked"));
        }
        let due = next.iter().map(|due| Time::from_micros(due.load(Ordering::Relaxed))).min();
        let due = due.expect("there are shards");
        if due >= until {
            return;
        }
        shard.run_before((due + lookahead).min(until));
    }
}

/// Lets threads wait for each other. They spin, since a step takes microseconds, and yield where one is late.
struct Barrier {
    count: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    broken: AtomicBool,
}

/// Breaks the barrier if its thread panics.
struct Alarm<'a>(&'a Barrier);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

impl Barrier {
    fn new(count: usize) -> Barrier {
        Barrier {
            count,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    fn wait(&self) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.fetch_add(1, Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            assert!(!self.broken.load(Ordering::Relaxed), "another thread of the simulation has panicked");
            spins += 1;
            if spins < 10_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}
