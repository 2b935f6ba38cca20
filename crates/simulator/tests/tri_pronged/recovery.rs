//! Who dies, and what becomes of the job: its run node, its owner, both; and a client that submits it again elsewhere.

use shoal_model::{Envelope, JobId, NodeId, Span, Time};
use shoal_protocols::node::{End, Event, Node};
use shoal_protocols::scheduling::tri_pronged::Config;
use shoal_simulator::faults;
use shoal_simulator::grid::Grid;
use shoal_simulator::world::{Saw, Sight};

use crate::scene::{grid, job, machine, starts};

/// How long the job takes.
const TAKES: u64 = 120;
/// Who is submitted to first, and who later: neither runs the job, since they have no cores to spare for it.
const OWNER: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);

/// A grid in which the job runs somewhere: what was seen so far, and where it runs.
struct Running {
    grid: Grid<Node>,
    envelope: Envelope,
    job: JobId,
    run_node: NodeId,
    seen: Vec<Sight<Node>>,
}

impl Running {
    fn new(seed: u64) -> Running {
        let machines = [1, 1].into_iter().chain([2; 8]).map(machine).collect();
        let mut grid = grid(seed, machines, Config::real(), faults::Config::default());
        let envelope = job(1, 2, TAKES);
        let job = grid.submit(Time::from_secs(60), OWNER, envelope.clone());
        grid.world().run_before(Time::from_secs(90));
        let seen = grid.world().sights();
        let [(_, run_node, _)] = starts(&seen)[..] else { panic!("seed {seed}: {:?}", starts(&seen)) };
        Running { grid, envelope, job, run_node, seen }
    }

    fn run_for(&mut self, span: Span) {
        let until = self.grid.world().now() + span;
        self.grid.world().run_before(until);
        self.seen.extend(self.grid.world().sights());
    }

    /// A node that does not come back, or only as one that has forgotten all.
    fn lose(&mut self, node: NodeId) {
        let now = self.grid.world().now();
        self.grid.world().crash(now, node);
        self.grid.world().wipe_disk(now, node);
    }

    fn submit_again(&mut self) {
        let now = self.grid.world().now();
        assert_eq!(self.grid.submit(now, OTHER, self.envelope.clone()), self.job, "the same job");
    }

    /// Where it started, each time.
    fn starts(&self) -> Vec<NodeId> {
        starts(&self.seen).into_iter().map(|(_, node, _)| node).collect()
    }

    /// Who has told its client what of the end.
    fn ends(&self) -> Vec<(NodeId, End)> {
        let end = |sight: &Sight<Node>| match sight.saw {
            Saw::Event(Event::Ended(job, end)) if job == self.job => Some((sight.node, end)),
            _ => None,
        };
        self.seen.iter().filter_map(end).collect()
    }
}

const SEEDS: std::ops::Range<u64> = 0..6;
const AMPLE: Span = Span::from_mins(15);

#[test]
fn job_whose_run_node_dies_runs_elsewhere_and_ends_once() {
    for seed in SEEDS {
        let mut running = Running::new(seed);
        running.lose(running.run_node);
        running.run_for(AMPLE);
        let [first, second] = running.starts()[..] else { panic!("seed {seed}: {:?}", running.starts()) };
        assert_ne!(first, second, "seed {seed}");
        assert_eq!(running.ends(), [(OWNER, End::Finished)], "seed {seed}");
    }
}

#[test]
fn job_whose_owner_is_away_runs_on_and_its_end_is_told_when_the_owner_is_back() {
    for seed in SEEDS {
        let mut running = Running::new(seed);
        let now = running.grid.world().now();
        running.grid.world().crash(now, OWNER);
        // Until after the job has ended.
        running.run_for(Span::from_secs(2 * TAKES));
        assert_eq!(running.ends(), [], "seed {seed}: nobody can tell yet");
        let now = running.grid.world().now();
        running.grid.world().boot(now, OWNER);
        running.run_for(AMPLE);
        assert_eq!(running.starts(), [running.run_node], "seed {seed}: once");
        assert_eq!(running.ends(), [(OWNER, End::Finished)], "seed {seed}");
    }
}

#[test]
fn job_that_lost_both_runs_where_its_client_submits_it_again() {
    for seed in SEEDS {
        let mut running = Running::new(seed);
        running.lose(OWNER);
        running.lose(running.run_node);
        running.run_for(Span::from_secs(30));
        running.submit_again();
        running.run_for(AMPLE);
        let [first, second] = running.starts()[..] else { panic!("seed {seed}: {:?}", running.starts()) };
        assert_ne!(first, second, "seed {seed}");
        assert_eq!(running.ends(), [(OTHER, End::Finished)], "seed {seed}");
    }
}

/// The first run knows nobody any more to tell of its end; the second owner's is the job's.
#[test]
fn job_that_is_submitted_again_while_it_still_runs_ends_once_for_its_client() {
    for seed in SEEDS {
        let mut running = Running::new(seed);
        running.lose(OWNER);
        running.run_for(Span::from_secs(30));
        running.submit_again();
        running.run_for(AMPLE);
        assert!(running.starts().len() <= 2, "seed {seed}: {:?}", running.starts());
        assert_eq!(running.ends(), [(OTHER, End::Finished)], "seed {seed}: {:?}", running.starts());
    }
}
