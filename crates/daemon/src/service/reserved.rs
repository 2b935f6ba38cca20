//! What is taken of a node, by whom and until when: as its calendar says, or its queue where the recipe has one.

use std::collections::BTreeMap;

use shoal_api::ReservationView;
use shoal_model::calendar::{State, View};
use shoal_model::units::TimeText;
use shoal_model::{Epoch, JobId, Resources, Span, Time};
use shoal_protocols::node::Node;
use shoal_protocols::scheduling::aria::Aria;

/// Reservations that one answer lists.
pub(super) const MOST: usize = 10_000;

/// What is taken of a node at an instant.
pub(super) fn used(node: &Node, now: Time) -> Resources {
    if let Some(aria) = node.aria() {
        let amounts = amounts(aria);
        let running = aria.queue().running().filter_map(|((job, _), _)| amounts.get(&job).copied());
        return running.fold(Resources::default(), |sum, amount| sum.checked_plus(amount).unwrap_or(sum));
    }
    node.commit().map(|commit| commit.calendar().timeline().used_at(now, View::Firm)).unwrap_or_default()
}

/// What is taken of a node between two times, and one more than [`MOST`] where there is more; `limit` is that of a job
/// which names none.
pub(super) fn from(node: &Node, from: Time, until: Time, limit: Span) -> Vec<ReservationView> {
    if let Some(aria) = node.aria() {
        return queued(aria, from, until, limit);
    }
    let Some(commit) = node.commit() else { return Vec::new() };
    let within = commit
        .calendar()
        .iter()
        .filter(|reservation| reservation.interval.start() < until && reservation.last_end() > from);
    within
        .take(MOST + 1)
        .map(|reservation| {
            let surely = match reservation.state {
                State::Held { .. } => "held",
                State::Firm => "firm",
                State::Soft => "soft",
                State::Running { .. } => "running",
            };
            let key = reservation.key;
            let (start, end) = (reservation.interval.start(), reservation.interval.end());
            view((key.job, key.epoch), (start, end), &reservation.amount, surely)
        })
        .collect()
}

/// What runs, up to its limit, and what waits, when it would start if all jobs ran to their limits.
fn queued(aria: &Aria, from: Time, until: Time, limit: Span) -> Vec<ReservationView> {
    let jobs: BTreeMap<JobId, _> = aria.briefs().map(|brief| (brief.job(), brief.envelope.job())).collect();
    let mut views = Vec::new();
    for (place, end) in aria.queue().running() {
        let Some(job) = jobs.get(&place.0) else { continue };
        let start = end - job.limit.unwrap_or(limit);
        views.push(view(place, (start, end), &job.resources, "running"));
    }
    aria.queue().forecast(from, None, |task, start, end| {
        if start < until && views.len() <= MOST {
            views.push(view(task.id, (start, end), &task.amount, "soft"));
        }
    });
    views.sort_by_key(|view| view.start.0);
    views
}

fn amounts(aria: &Aria) -> BTreeMap<JobId, &Resources> {
    aria.briefs().map(|brief| (brief.job(), &brief.envelope.job().resources)).collect()
}

fn view(
    (job, epoch): (JobId, Epoch),
    (start, end): (Time, Time),
    amount: &Resources,
    surely: &str,
) -> ReservationView {
    ReservationView {
        job,
        epoch: epoch.0,
        start: TimeText(start),
        end: TimeText(end),
        amount: amount.to_string(),
        cores_thousandths: amount.cores.get().into(),
        surely: surely.to_owned(),
    }
}
