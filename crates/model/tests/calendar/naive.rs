//! The calendar as a child would write it: a list of reservations, and use counted slot by slot.

use shoal_model::calendar::{
    Against, Booking, Interval, Key, Kind, Moved, Refusal, Reservation, State, View, Window,
};
use shoal_model::{Amount, JobId, Time};

/// Six hours: all times of the test are multiples, so that a week has few slots.
pub const SLOT_MICROS: u64 = 6 * 3_600 * 1_000_000;
pub const WEEK_SLOTS: usize = 28;

pub fn time(slot: usize) -> Time {
    Time::from_micros(slot as u64 * SLOT_MICROS)
}

pub fn slot(time: Time) -> usize {
    (time.as_micros() / SLOT_MICROS) as usize
}

pub fn interval(start: usize, span: usize) -> Interval {
    Interval::new(time(start), time(start + span)).unwrap()
}

#[derive(Clone)]
pub struct Naive<A> {
    /// What there is in each slot of the week.
    pub week: Vec<A>,
    pub reservations: Vec<Reservation<A>>,
}

impl<A: Amount> Naive<A> {
    fn capacity(&self, slot: usize) -> &A {
        &self.week[slot % WEEK_SLOTS]
    }

    /// After this slot nothing is used.
    pub fn last_end(&self) -> usize {
        self.reservations.iter().map(|one| slot(one.last_end())).max().unwrap_or(0)
    }

    fn takes(one: &Reservation<A>, at: usize, view: View) -> bool {
        let (start, end) = (slot(one.interval.start()), slot(one.interval.end()));
        match (view, one.state) {
            (View::Firm, State::Soft) => false,
            (View::Firm, State::Running { hard_end }) => (start..slot(hard_end)).contains(&at),
            _ => (start..end).contains(&at),
        }
    }

    /// Use in a slot by all jobs but one: per job the larger of its placements.
    pub fn used(&self, at: usize, view: View, except: Option<JobId>) -> A {
        let mut jobs: Vec<JobId> = self.reservations.iter().map(|one| one.key.job).collect();
        jobs.sort();
        jobs.dedup();
        let mut sum = A::default();
        for job in jobs.into_iter().filter(|&job| Some(job) != except) {
            let taking =
                self.reservations.iter().filter(|one| one.key.job == job && Self::takes(one, at, view));
            sum = sum.plus(&taking.fold(A::default(), |most, one| most.most(&one.amount)));
        }
        sum
    }

    fn fits_slot(&self, at: usize, amount: &A, against: Against, except: Option<JobId>) -> bool {
        let views: &[View] = match against {
            Against::Firm => &[View::Firm],
            Against::Whole => &[View::Whole],
            Against::Both => &[View::Firm, View::Whole],
        };
        let capacity = self.capacity(at);
        amount.fits_in(capacity)
            && views.iter().all(|&view| self.used(at, view, except).plus(amount).fits_in(capacity))
    }

    pub fn free(
        &self,
        start: usize,
        end: usize,
        amount: &A,
        against: Against,
        except: Option<JobId>,
    ) -> bool {
        (start..end).all(|at| self.fits_slot(at, amount, against, except))
    }

    pub fn earliest(
        &self,
        from: usize,
        span: usize,
        amount: &A,
        against: Against,
        except: Option<JobId>,
    ) -> Option<usize> {
        let horizon = from.max(self.last_end()) + WEEK_SLOTS + 1;
        let fits: Vec<bool> =
            (from..horizon + span).map(|at| self.fits_slot(at, amount, against, except)).collect();
        fits.windows(span).position(|window| window.iter().all(|&fit| fit)).map(|start| from + start)
    }

    /// The windows whose first start is before `until`.
    pub fn windows(
        &self,
        from: usize,
        until: usize,
        span: usize,
        amount: &A,
        against: Against,
    ) -> Vec<Window> {
        let far = until.max(self.last_end()) + 3 * WEEK_SLOTS + span;
        let starts: Vec<usize> =
            (from..far).filter(|&start| self.free(start, start + span, amount, against, None)).collect();
        let mut windows: Vec<(usize, usize)> = Vec::new();
        for start in starts {
            match windows.last_mut() {
                Some((_, last)) if *last + 1 == start => *last = start,
                _ => windows.push((start, start)),
            }
        }
        let told = |&(first, last): &(usize, usize)| Window {
            first: time(first),
            last: (last + 1 < far).then(|| time(last)),
        };
        windows.iter().filter(|(first, _)| *first < until).map(told).collect()
    }

    pub fn get(&self, key: Key) -> Option<&Reservation<A>> {
        self.reservations.iter().find(|one| one.key == key)
    }

    fn take_out(&mut self, key: Key) -> Option<Reservation<A>> {
        let at = self.reservations.iter().position(|one| one.key == key)?;
        Some(self.reservations.remove(at))
    }

    fn superseded(&self, key: Key) -> Option<Refusal> {
        let latest = self.reservations.iter().filter(|one| one.key.job == key.job).map(|one| one.key.epoch);
        latest.max().filter(|&current| current > key.epoch).map(|current| Refusal::Superseded { current })
    }

    fn no_room(&self, start: usize, end: usize, one: &Reservation<A>, against: Against) -> Option<Refusal> {
        let job = Some(one.key.job);
        if self.free(start, end, &one.amount, against, job) {
            return None;
        }
        let next = self.earliest(start, end - start, &one.amount, against, job);
        Some(Refusal::NoRoom { next: next.map(time) })
    }

    pub fn place(&mut self, new: Reservation<A>, against: Against) -> Result<Vec<Moved>, Refusal> {
        if self.get(new.key).is_some() {
            return Err(Refusal::Taken);
        }
        if let Some(refusal) = self.superseded(new.key) {
            return Err(refusal);
        }
        let against = match (new.state, against) {
            (State::Soft, Against::Whole) => Against::Whole,
            (State::Held { .. } | State::Firm, Against::Firm) => Against::Firm,
            _ => Against::Both,
        };
        let (start, end) = (slot(new.interval.start()), slot(new.interval.end()));
        if let Some(refusal) = self.no_room(start, end, &new, against) {
            return Err(refusal);
        }
        Ok(self.push_in(new))
    }

    pub fn book(
        &mut self,
        key: Key,
        interval: Interval,
        amount: A,
        booking: Booking,
        against: Against,
    ) -> Result<Vec<Moved>, Refusal> {
        let state = if booking == Booking::Firm { State::Firm } else { State::Soft };
        self.place(Reservation { key, interval, amount, state }, against)
    }

    fn push_in(&mut self, new: Reservation<A>) -> Vec<Moved> {
        self.take_out(new.key);
        let mut aside = Vec::new();
        for at in slot(new.interval.start())..slot(new.interval.end()) {
            while !self.fits_slot(at, &new.amount, Against::Whole, Some(new.key.job)) {
                let used = self.used(at, View::Whole, Some(new.key.job)).plus(&new.amount);
                let missing = |used: &A| used.minus(self.capacity(at)).most(&A::default());
                let last = self
                    .reservations
                    .iter()
                    .filter(|one| one.state == State::Soft && one.key.job != new.key.job)
                    .filter(|one| Self::takes(one, at, View::Whole))
                    .filter(|one| missing(&used.minus(&one.amount)) != missing(&used))
                    .max_by_key(|one| (one.interval.start(), one.key));
                let key = last.expect("a soft reservation is in the way").key;
                aside.extend(self.take_out(key));
            }
        }
        self.reservations.push(new);
        aside.sort_by_key(|one| (one.interval.start(), one.key));
        let mut moved = Vec::new();
        for one in aside {
            let (from, span) = (slot(one.interval.start()), slots(one.interval));
            let to = self.earliest(from, span, &one.amount, Against::Both, Some(one.key.job)).unwrap();
            moved.push(Moved { key: one.key, from: time(from), to: Some(time(to)) });
            self.reservations.push(Reservation { interval: interval(to, span), ..one });
        }
        moved
    }

    pub fn commit(&mut self, key: Key, now: Time) -> Result<(), Refusal> {
        let mut held = self.get(key).ok_or(Refusal::Unknown)?.clone();
        match held.state {
            State::Held { until } if until <= now => Err(Refusal::Expired { until }),
            State::Held { .. } => {
                held.state = State::Firm;
                self.take_out(key);
                self.reservations.push(held);
                Ok(())
            }
            _ => Err(Refusal::State { is: kind(held.state), needs: Kind::Held }),
        }
    }

    pub fn start(&mut self, key: Key, at: usize, planned: usize, hard: usize) -> Result<Vec<Moved>, Refusal> {
        let one = self.get(key).ok_or(Refusal::Unknown)?.clone();
        if !matches!(one.state, State::Firm | State::Soft) {
            return Err(Refusal::State { is: kind(one.state), needs: Kind::Booked });
        }
        if let Some(refusal) = self.superseded(key) {
            return Err(refusal);
        }
        if planned <= at {
            return Err(Refusal::Empty);
        }
        if hard < planned {
            return Err(Refusal::PastHardEnd { hard_end: time(hard) });
        }
        if let Some(refusal) = self.no_room(at, hard, &one, Against::Firm) {
            return Err(refusal);
        }
        let state = State::Running { hard_end: time(hard) };
        Ok(self.push_in(Reservation { interval: interval(at, planned - at), state, ..one }))
    }

    pub fn release(&mut self, key: Key) -> Result<Reservation<A>, Refusal> {
        self.take_out(key).ok_or(Refusal::Unknown)
    }

    pub fn cut_short(&mut self, key: Key, at: usize) -> Result<(), Refusal> {
        let mut one = self.take_out(key).ok_or(Refusal::Unknown)?;
        let start = slot(one.interval.start());
        if at <= start {
            return Ok(());
        }
        one.interval = interval(start, slots(one.interval).min(at - start));
        if let State::Running { hard_end } = &mut one.state {
            *hard_end = time(at).min(*hard_end);
        }
        self.reservations.push(one);
        Ok(())
    }

    pub fn extend(&mut self, key: Key, planned: usize) -> Result<Vec<Moved>, Refusal> {
        let one = self.get(key).ok_or(Refusal::Unknown)?.clone();
        let State::Running { hard_end } = one.state else {
            return Err(Refusal::State { is: kind(one.state), needs: Kind::Running });
        };
        if time(planned) > hard_end {
            return Err(Refusal::PastHardEnd { hard_end });
        }
        if time(planned) <= one.interval.end() {
            return Ok(Vec::new());
        }
        let start = slot(one.interval.start());
        Ok(self.push_in(Reservation { interval: interval(start, planned - start), ..one }))
    }

    pub fn shift(
        &mut self,
        key: Key,
        from: usize,
        against: Against,
        only_earlier: bool,
    ) -> Result<Option<Moved>, Refusal> {
        let one = self.get(key).ok_or(Refusal::Unknown)?.clone();
        if one.state != State::Soft {
            return Err(Refusal::State { is: kind(one.state), needs: Kind::Soft });
        }
        let against = if against == Against::Whole { Against::Whole } else { Against::Both };
        let span = slots(one.interval);
        let to = self
            .earliest(from, span, &one.amount, against, Some(key.job))
            .ok_or(Refusal::NoRoom { next: None })?;
        let old = slot(one.interval.start());
        if to == old || only_earlier && to > old {
            return Ok(None);
        }
        self.take_out(key);
        self.reservations.push(Reservation { interval: interval(to, span), ..one });
        Ok(Some(Moved { key, from: time(old), to: Some(time(to)) }))
    }

    /// Takes out what passes the test, in the given order.
    pub fn drain<K: Ord>(
        &mut self,
        test: impl Fn(&Reservation<A>) -> bool,
        order: impl Fn(&Reservation<A>) -> K,
    ) -> Vec<Reservation<A>> {
        let mut out: Vec<_> = self.reservations.extract_if(.., |one| test(one)).collect();
        out.sort_by_key(order);
        out
    }

    pub fn sorted(&self) -> Vec<Reservation<A>> {
        let mut all = self.reservations.clone();
        all.sort_by_key(|one| (one.interval.start(), one.key));
        all
    }
}

fn slots(interval: Interval) -> usize {
    slot(interval.end()) - slot(interval.start())
}

fn kind(state: State) -> Kind {
    match state {
        State::Held { .. } => Kind::Held,
        State::Firm => Kind::Firm,
        State::Soft => Kind::Soft,
        State::Running { .. } => Kind::Running,
    }
}
