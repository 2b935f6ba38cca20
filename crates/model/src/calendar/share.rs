//! What a job takes of a timeline: where its placements overlap, the larger of them and not their sum.
//!
//! A job that is being moved holds its new place before it gives up the old one (make before break). It will use
//! one of the two, so on a node that is in both placements they share.

use crate::amount::Amount;
use crate::calendar::profile::Profile;
use crate::calendar::reservation::{Interval, Reservation};
use crate::calendar::timeline::Timeline;

/// Takes what a job's reservations need from the timeline.
pub(super) fn take<'a, A: Amount + 'a>(
    timeline: &mut Timeline<A>,
    job: impl Iterator<Item = &'a Reservation<A>>,
) {
    apply(timeline, job, Profile::take);
}

/// Gives back what a job's reservations took from the timeline.
pub(super) fn give<'a, A: Amount + 'a>(
    timeline: &mut Timeline<A>,
    job: impl Iterator<Item = &'a Reservation<A>>,
) {
    apply(timeline, job, Profile::give);
}

fn apply<'a, A: Amount + 'a>(
    timeline: &mut Timeline<A>,
    mut job: impl Iterator<Item = &'a Reservation<A>>,
    change: impl Fn(&mut Profile<A>, Interval, &A),
) {
    let Some(first) = job.next() else { return };
    let mut rest = job.peekable();
    if rest.peek().is_none() {
        if let Some(interval) = first.firm_interval() {
            change(&mut timeline.firm, interval, &first.amount);
        }
        if let Some(whole) = &mut timeline.whole {
            change(whole, first.interval, &first.amount);
        }
        return;
    }
    let all: Vec<&Reservation<A>> = std::iter::once(first).chain(rest).collect();
    let firm = all.iter().filter_map(|one| Some((one.firm_interval()?, &one.amount))).collect();
    for (interval, amount) in largest(firm) {
        change(&mut timeline.firm, interval, &amount);
    }
    if let Some(whole) = &mut timeline.whole {
        for (interval, amount) in largest(all.iter().map(|one| (one.interval, &one.amount)).collect()) {
            change(whole, interval, &amount);
        }
    }
}

/// The larger of the amounts at every instant, in pieces.
fn largest<A: Amount>(taken: Vec<(Interval, &A)>) -> Vec<(Interval, A)> {
    let mut cuts: Vec<_> =
        taken.iter().flat_map(|(interval, _)| [interval.start(), interval.end()]).collect();
    cuts.sort_unstable();
    let pieces = cuts.windows(2).filter_map(|cut| Interval::new(cut[0], cut[1]));
    pieces
        .map(|piece| {
            let there = taken.iter().filter(|(interval, _)| interval.contains(piece.start()));
            (piece, there.fold(A::default(), |most, (_, amount)| most.most(amount)))
        })
        .collect()
}
