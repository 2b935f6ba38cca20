//! The baselines once more, second by second and as their definitions read: slow, and right at a glance.

use shoal_protocols::queue::Policy;
use shoal_simulator::baseline::Baseline;

/// A job in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub submit: u64,
    pub width: u32,
    pub requested: u64,
    pub run: u64,
}

impl Job {
    fn length(&self) -> u64 {
        self.run.min(self.requested)
    }
}

/// When each job starts.
pub fn starts(baseline: Baseline, nodes: u32, jobs: &[Job]) -> Vec<u64> {
    match baseline {
        Baseline::Queue(Policy::Fcfs) => Room::new(nodes, jobs).play(Room::fcfs),
        Baseline::Queue(Policy::Easy) => Room::new(nodes, jobs).play(Room::easy),
        Baseline::Queue(Policy::Conservative) => Room::new(nodes, jobs).play(Room::conservative),
        Baseline::Queue(
            Policy::Sjf
            | Policy::Edf
            | Policy::Priority
            | Policy::Reservation
            | Policy::Backfill
            | Policy::BackfillEstimates,
        ) => {
            unreachable!("no baseline goes by these: jobs of a workload have no wishes")
        }
        Baseline::CentralAsap => central_asap(nodes, jobs),
    }
}

/// One machine room; jobs are told by their places in the workload.
struct Room<'a> {
    now: u64,
    nodes: u32,
    jobs: &'a [Job],
    /// In order of arrival.
    waiting: Vec<usize>,
    running: Vec<usize>,
    /// When each job has started or, under the conservative policy, is to start.
    starts: Vec<u64>,
    /// Of those that have just ended: whether one did before its request was over.
    early: bool,
}

impl<'a> Room<'a> {
    fn new(nodes: u32, jobs: &'a [Job]) -> Room<'a> {
        let starts = vec![u64::MAX; jobs.len()];
        Room { now: 0, nodes, jobs, waiting: Vec::new(), running: Vec::new(), starts, early: false }
    }

    fn play(mut self, policy: fn(&mut Self, arrived: &[usize])) -> Vec<u64> {
        let last = self.jobs.iter().map(|job| job.submit).max().unwrap_or(0);
        while self.now <= last || !self.waiting.is_empty() || !self.running.is_empty() {
            self.end_jobs();
            let arrived: Vec<usize> =
                (0..self.jobs.len()).filter(|&job| self.jobs[job].submit == self.now).collect();
            self.waiting.extend(&arrived);
            policy(&mut self, &arrived);
            // Jobs of no length end within the second that they start in, and others may follow.
            while self.end_jobs() {
                policy(&mut self, &[]);
            }
            self.now += 1;
        }
        self.starts
    }

    fn end_jobs(&mut self) -> bool {
        let over = |&job: &usize| self.starts[job] + self.jobs[job].length() == self.now;
        let (ended, running): (Vec<usize>, Vec<usize>) = self.running.iter().partition(|&job| over(job));
        self.running = running;
        self.early = ended.iter().any(|&job| self.jobs[job].length() < self.jobs[job].requested);
        !ended.is_empty()
    }

    fn start(&mut self, job: usize) {
        self.starts[job] = self.now;
        self.waiting.retain(|&other| other != job);
        self.running.push(job);
    }

    /// Nodes free at a second from now on, if running jobs use up their requests and nothing else starts.
    fn free(&self, second: u64) -> u32 {
        let runs = |&&job: &&usize| second < self.starts[job] + self.jobs[job].requested;
        self.nodes - self.running.iter().filter(runs).map(|&job| self.jobs[job].width).sum::<u32>()
    }

    fn fcfs(&mut self, _: &[usize]) {
        while let Some(&first) = self.waiting.first()
            && self.jobs[first].width <= self.free(self.now)
        {
            self.start(first);
        }
    }

    fn easy(&mut self, arrived: &[usize]) {
        self.fcfs(arrived);
        let Some(&first) = self.waiting.first() else { return };
        let width = self.jobs[first].width;
        let shadow = (self.now..).find(|&second| width <= self.free(second)).expect("all jobs end");
        let extra = self.free(shadow) - width;
        let may_start = |&&job: &&usize| {
            let Job { width, requested, .. } = self.jobs[job];
            width <= self.free(self.now) && (self.now + requested <= shadow || width <= extra)
        };
        if let Some(&job) = self.waiting.iter().skip(1).find(may_start) {
            self.start(job);
            self.easy(arrived);
        }
    }

    fn conservative(&mut self, arrived: &[usize]) {
        let before: Vec<usize> = self.waiting.iter().copied().filter(|job| !arrived.contains(job)).collect();
        if self.early {
            before.iter().for_each(|&job| self.starts[job] = self.earliest(job));
        }
        arrived.iter().for_each(|&job| self.starts[job] = self.earliest(job));
        for job in self.waiting.clone() {
            if self.starts[job] == self.now {
                self.start(job);
            }
        }
    }

    /// The earliest start that delays no other reservation.
    fn earliest(&self, job: usize) -> u64 {
        let fits = |second: u64| {
            let reserved = |&&other: &&usize| {
                let start = self.starts[other];
                other != job && start <= second && second - start < self.jobs[other].requested
            };
            let used: u32 = self.waiting.iter().filter(reserved).map(|&other| self.jobs[other].width).sum();
            used + self.jobs[job].width <= self.free(second)
        };
        let requested = self.jobs[job].requested;
        (self.now..).find(|&start| (start..start + requested).all(fits)).expect("all reservations end")
    }
}

/// Every node has a list of the seconds that it is taken in.
fn central_asap(nodes: u32, jobs: &[Job]) -> Vec<u64> {
    let mut taken: Vec<Vec<(u64, usize)>> = vec![Vec::new(); nodes as usize];
    let mut starts: Vec<u64> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        for node in &mut taken {
            node.retain(|&(_, other)| starts[other] + jobs[other].length() > job.submit);
        }
        let free = |start: u64| -> Vec<usize> {
            let meets = |&(second, _): &(u64, usize)| (start..start + job.requested).contains(&second);
            (0..taken.len()).filter(|&node| !taken[node].iter().any(meets)).collect()
        };
        let start = (job.submit..).find(|&start| free(start).len() >= job.width as usize).expect("all end");
        for node in free(start).into_iter().take(job.width as usize) {
            taken[node].extend((start..start + job.requested).map(|second| (second, number)));
        }
        starts.push(start);
    }
    starts
}
