//! Time cut into slots, as the simulations of some papers have it: jobs are as long as whole slots, are due when one
//! begins, and come one by one.

use shoal_model::{Span, Time};

use super::Workload;

/// How time is cut, and when jobs are submitted so that each can start in the very slot it is due at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The length of a slot.
    pub length: Span,
    /// How long before the slot that it is due at a job is submitted, at the least: to find a place takes time.
    pub ahead: Span,
    /// How long after the job before it a job is submitted, at the least: a paper that looks for one place at a time
    /// knows no two jobs that are after the same nodes.
    pub apart: Span,
}

impl Slots {
    /// Rounds lengths and submissions up to whole slots, and tells how long before that each job is to be submitted.
    pub fn cut(&self, workload: &mut Workload) -> Vec<Span> {
        let mut submits = Vec::with_capacity(workload.jobs.len());
        for job in &mut workload.jobs {
            submits.push(job.submit);
            job.submit = Time::ZERO + self.up(job.submit.since(Time::ZERO));
            let requested = self.up(job.requested).max(self.length);
            // Who uses all that was asked for uses all of the last slot; who ends early ends when it does.
            if job.run >= job.requested {
                job.run = requested;
            }
            job.requested = requested;
        }
        // From the last to the first: a job that has to make room comes earlier, so that none misses its slot.
        let mut next: Option<(Time, Span)> = None;
        let mut leads = vec![Span::ZERO; submits.len()];
        for (place, (job, submit)) in workload.jobs.iter().zip(submits).enumerate().rev() {
            let due = job.submit;
            let mut lead = due.since(submit).max(self.ahead);
            if let Some((next_due, next_lead)) = next {
                let between = next_due.since(due);
                lead = lead.max((next_lead + self.apart).saturating_sub(between));
            }
            leads[place] = lead;
            next = Some((due, lead));
        }
        leads
    }

    fn up(&self, span: Span) -> Span {
        self.length * span.as_micros().div_ceil(self.length.as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Uniform;

    const SLOTS: Slots =
        Slots { length: Span::from_secs(60), ahead: Span::from_secs(2), apart: Span::from_millis(500) };

    fn workload(jobs: &[(u64, u64, u64)]) -> Workload {
        let uniform = Uniform {
            nodes: 4,
            jobs: jobs.len(),
            first_secs: 0.0,
            gap_secs: [0.0, 1.0],
            width: [1, 4],
            length_secs: [60.0, 600.0],
            overestimate: 1.0,
            change: Default::default(),
        };
        let mut workload = uniform.generate(1).unwrap();
        for (job, &(submit, requested, run)) in workload.jobs.iter_mut().zip(jobs) {
            job.submit = Time::from_secs(submit);
            [job.requested, job.run] = [requested, run].map(Span::from_secs);
        }
        workload
    }

    #[test]
    fn lengths_and_submissions_are_rounded_up() {
        let mut workload = workload(&[(0, 60, 60), (1, 61, 61), (60, 1, 1), (61, 3_600, 100)]);
        SLOTS.cut(&mut workload);
        let cut = workload.jobs.iter().map(|job| (job.submit.as_secs(), job.requested, job.run));
        let cut: Vec<_> =
            cut.map(|(due, requested, run)| (due, requested.as_secs(), run.as_secs())).collect();
        assert_eq!(cut, [(0, 60, 60), (60, 120, 120), (60, 60, 60), (120, 3_600, 100)]);
    }

    #[test]
    fn jobs_are_submitted_in_time_and_one_by_one() {
        let mut workload = workload(&[(30, 60, 60), (59, 60, 60), (60, 60, 60), (60, 60, 60), (200, 60, 60)]);
        let leads = SLOTS.cut(&mut workload);
        let millis: Vec<u64> = leads.iter().map(|lead| lead.as_micros() / 1_000).collect();
        assert_eq!(millis, [30_000, 3_000, 2_500, 2_000, 40_000]);
    }

    #[test]
    fn a_burst_makes_room_into_the_slot_before() {
        let mut workload = workload(&[(60, 60, 60), (119, 60, 60), (120, 60, 60), (120, 60, 60)]);
        let slots = Slots { apart: Span::from_secs(40), ..SLOTS };
        let leads = slots.cut(&mut workload);
        let due = workload.jobs.iter().map(|job| job.submit.as_secs() as i64);
        let at: Vec<i64> = due.zip(leads).map(|(due, lead)| due - lead.as_secs() as i64).collect();
        assert_eq!(at, [-2, 38, 78, 118]);
    }
}
