//! What each policy promises, by hand and by laws.

use std::collections::BTreeMap;

use proptest::prelude::*;
use shoal_model::{Resources, Size};

use super::*;
use crate::testing::cases;

type Clock = u64;

/// The policies that go by arrival, and promise.
const BY_ARRIVAL: [Policy; 3] = [Policy::Fcfs, Policy::Easy, Policy::Conservative];

/// A queue and its driver's duties, in seconds.
struct Node {
    queue: Queue<char, u32>,
    story: Vec<(char, Clock)>,
}

impl Node {
    fn new(policy: Policy, capacity: u32) -> Node {
        Node { queue: Queue::new(policy, capacity), story: Vec::new() }
    }

    /// What happens at one instant: ends, then arrivals of (id, amount, limit), then starts.
    fn at(&mut self, now: Clock, ends: &str, arrivals: &[(char, u32, Clock)]) {
        let time = Time::from_secs(now);
        for id in ends.chars() {
            assert!(self.queue.finish(time, id), "{id} does not run at {now}");
        }
        for &(id, amount, limit) in arrivals {
            self.queue.arrive(time, Task::new(id, amount, Span::from_secs(limit))).unwrap();
        }
        let mut started = Vec::new();
        self.queue.start(time, &mut started);
        self.story.extend(started.into_iter().map(|id| (id, now)));
    }

    fn planned(&self, now: Clock, id: char) -> Option<Clock> {
        self.queue.planned_start(Time::from_secs(now), id).map(Time::as_secs)
    }

    fn wake(&self) -> Option<Clock> {
        self.queue.wake().map(Time::as_secs)
    }
}

#[test]
fn unknown_policy_is_refused_by_a_list_of_the_known() {
    for policy in Policy::ALL {
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    let error = "EASY".parse::<Policy>().unwrap_err().to_string();
    assert_eq!(
        error,
        "no queue policy is called `EASY`: take one of fcfs, easy, conservative, sjf, edf, priority, reservation, backfill, backfill-estimates"
    );
}

#[test]
fn job_larger_than_the_node_is_refused() {
    for policy in Policy::ALL {
        let mut queue = Queue::new(policy, 4u32);
        let task = Task::new('a', 5, Span::from_secs(1));
        assert_eq!(queue.arrive(Time::ZERO, task), Err(Oversized { asked: 5, capacity: 4 }));
        assert_eq!(queue.waiting().count(), 0);
    }
}

#[test]
fn fcfs_lets_nobody_overtake() {
    let mut node = Node::new(Policy::Fcfs, 10);
    node.at(0, "", &[('a', 6, 100), ('b', 6, 50), ('c', 1, 1)]);
    assert_eq!(node.story, [('a', 0)]);
    assert_eq!([node.planned(0, 'b'), node.planned(0, 'c')], [Some(100), Some(100)]);
    node.at(40, "a", &[]);
    assert_eq!(node.story, [('a', 0), ('b', 40), ('c', 40)]);
}

#[test]
fn easy_backfills_what_ends_by_the_shadow_time() {
    let mut node = Node::new(Policy::Easy, 10);
    // b's shadow is 100, with nothing extra: c ends on it, d a second after.
    node.at(0, "", &[('a', 6, 100), ('b', 10, 50), ('d', 4, 101), ('c', 4, 100)]);
    assert_eq!(node.story, [('a', 0), ('c', 0)]);
    assert_eq!((node.planned(0, 'b'), node.planned(0, 'd')), (Some(100), None));
    node.at(100, "ac", &[]);
    assert_eq!(node.story[2..], [('b', 100)]);
}

#[test]
fn easy_backfills_on_extra_nodes_until_they_are_used_up() {
    let mut node = Node::new(Policy::Easy, 10);
    // At 100 b leaves 3 extra: c takes 2 of them for long, e would need 2, f takes the last.
    node.at(0, "", &[('a', 6, 100), ('b', 7, 50), ('c', 2, 999), ('e', 2, 999), ('f', 1, 999)]);
    assert_eq!(node.story, [('a', 0), ('c', 0), ('f', 0)]);
    node.at(100, "a", &[]);
    assert_eq!(node.story[3..], [('b', 100)]);
}

#[test]
fn easy_counts_every_job_that_ends_at_the_shadow_time_into_the_extra() {
    let mut node = Node::new(Policy::Easy, 10);
    node.at(0, "", &[('a', 4, 100), ('b', 4, 100), ('c', 5, 50), ('d', 2, 999)]);
    assert_eq!(node.story, [('a', 0), ('b', 0), ('d', 0)], "5 are extra at 100, not 1");
}

#[test]
fn easy_keeps_the_extra_for_those_that_do_not_end_in_time() {
    let mut node = Node::new(Policy::Easy, 10);
    // 2 extra at 100. c ends in time and needs none of it, so that d has both.
    node.at(0, "", &[('a', 6, 100), ('b', 8, 50), ('c', 2, 100), ('d', 2, 999)]);
    assert_eq!(node.story, [('a', 0), ('c', 0), ('d', 0)]);
}

#[test]
fn jobs_that_end_together_are_all_gone_before_the_queue_is_looked_at() {
    let mut node = Node::new(Policy::Easy, 10);
    node.at(0, "", &[('a', 5, 100), ('b', 5, 200)]);
    node.at(10, "", &[('c', 10, 50), ('d', 5, 60)]);
    // After a alone, d would fit and end before b does.
    node.at(20, "ab", &[]);
    assert_eq!(node.story[2..], [('c', 20)]);
}

#[test]
fn easy_delays_those_behind_the_first() {
    let mut node = Node::new(Policy::Easy, 10);
    // c could start at 150, were it not for d, which only the first is safe from.
    node.at(0, "", &[('a', 6, 100), ('b', 4, 150), ('c', 10, 10), ('d', 4, 1)]);
    assert_eq!(node.story, [('a', 0), ('b', 0)]);
    let mut node = Node::new(Policy::Easy, 10);
    node.at(0, "", &[('a', 6, 100), ('b', 7, 50), ('c', 9, 10), ('d', 3, 900)]);
    assert_eq!(node.story, [('a', 0), ('d', 0)], "c waits until 900 for it");
}

#[test]
fn easy_backfills_nothing_by_time_past_a_job_that_overstays() {
    let mut node = Node::new(Policy::Easy, 10);
    node.at(0, "", &[('a', 6, 100), ('b', 8, 50)]);
    node.at(120, "", &[('c', 3, 1), ('d', 2, 900)]);
    assert_eq!(node.story, [('a', 0), ('d', 120)]);
    assert_eq!(node.planned(120, 'b'), Some(120));
    node.at(130, "a", &[]);
    assert_eq!(node.story[2..], [('b', 130)]);
}

#[test]
fn conservative_fills_holes_without_delaying_any_reservation() {
    let mut node = Node::new(Policy::Conservative, 10);
    node.at(0, "", &[('a', 6, 100), ('b', 7, 50), ('c', 9, 10), ('d', 3, 900), ('e', 3, 150), ('f', 1, 100)]);
    // d would delay c, which EASY allows; e ends as c begins, and f as b does, which with e leaves nothing over.
    assert_eq!(node.story, [('a', 0), ('e', 0), ('f', 0)]);
    assert_eq!(['b', 'c', 'd'].map(|id| node.planned(0, id)), [Some(100), Some(150), Some(160)]);
    assert_eq!(node.wake(), Some(100));
}

#[test]
fn conservative_compresses_in_order_of_arrival_when_a_job_ends_early() {
    let mut node = Node::new(Policy::Conservative, 10);
    node.at(0, "", &[('a', 10, 100), ('b', 6, 50), ('c', 6, 50), ('d', 4, 50), ('e', 4, 10)]);
    assert_eq!(['b', 'c', 'd', 'e'].map(|id| node.planned(0, id)), [100, 150, 100, 150].map(Some));
    node.at(30, "a", &[]);
    assert_eq!(node.story, [('a', 0), ('b', 30), ('d', 30)]);
    assert_eq!(['c', 'e'].map(|id| node.planned(30, id)), [80, 80].map(Some));
}

#[test]
fn conservative_compresses_once_and_not_until_nothing_moves() {
    let mut node = Node::new(Policy::Conservative, 10);
    node.at(0, "", &[('r', 9, 50), ('s', 1, 100), ('b', 10, 40), ('c', 9, 50)]);
    assert_eq!(['b', 'c'].map(|id| node.planned(0, id)), [100, 50].map(Some));
    // c stands in b's way when b looks, and moves to 10 after that. At 60, b's place would be free but for s.
    node.at(10, "r", &[]);
    assert_eq!(node.story, [('r', 0), ('s', 0), ('c', 10)]);
    node.at(60, "c", &[]);
    assert_eq!(node.wake(), Some(100), "c ended at its limit: no reason to look again");
    node.at(70, "s", &[]);
    assert_eq!(node.story[3..], [('b', 70)]);
}

#[test]
fn conservative_promise_moves_later_only_when_a_job_overstays() {
    let mut node = Node::new(Policy::Conservative, 10);
    node.at(0, "", &[('a', 6, 100), ('b', 8, 50), ('c', 8, 50)]);
    node.at(100, "", &[]);
    assert_eq!(['b', 'c'].map(|id| node.planned(100, id)), [101, 151].map(Some));
    // The end comes late, and nobody woke the queue in between.
    node.at(105, "a", &[]);
    assert_eq!(node.story, [('a', 0), ('b', 105)]);
    assert_eq!((node.planned(105, 'c'), node.queue.free()), (Some(155), &2));
}

#[test]
fn withdrawn_job_leaves_its_place_to_others() {
    for policy in BY_ARRIVAL {
        let mut node = Node::new(policy, 10);
        node.at(0, "", &[('a', 6, 100), ('b', 10, 50), ('c', 4, 200)]);
        assert_eq!(node.story, [('a', 0)], "{policy}");
        assert!(node.queue.withdraw('b') && !node.queue.withdraw('b') && !node.queue.withdraw('a'));
        node.at(5, "", &[]);
        assert_eq!(node.story[1..], [('c', 5)], "{policy}");
    }
}

#[test]
fn every_resource_of_a_machine_counts() {
    for policy in BY_ARRIVAL {
        let gib = |cores, gib| Resources::cores(cores).with_memory(Size::from_gib(gib));
        let mut queue = Queue::new(policy, gib(8, 16));
        let tasks = [('a', gib(1, 12)), ('b', gib(1, 6)), ('c', gib(6, 1))];
        for (id, amount) in tasks {
            queue.arrive(Time::ZERO, Task::new(id, amount, Span::from_secs(9))).unwrap();
        }
        let mut started = Vec::new();
        queue.start(Time::ZERO, &mut started);
        let expected = if policy == Policy::Fcfs { vec!['a'] } else { vec!['a', 'c'] };
        assert_eq!(started, expected, "{policy}");
    }
}

fn wishing(id: char, limit: Clock, wish: Wish) -> Task<char, u32> {
    Task { wish, ..Task::new(id, 1, Span::from_secs(limit)) }
}

/// The order in which these jobs run on a node that takes one at a time and is busy when they come.
fn order(policy: Policy, tasks: &[Task<char, u32>]) -> String {
    let mut queue = Queue::new(policy, 1u32);
    queue.arrive(Time::ZERO, Task::new('0', 1, Span::from_secs(1))).unwrap();
    queue.start(Time::ZERO, &mut Vec::new());
    for task in tasks {
        queue.arrive(Time::ZERO, *task).unwrap();
    }
    let mut told = Vec::new();
    queue.forecast(Time::ZERO, None, |task, start, _| told.push((start, task.id)));
    told.sort_unstable();
    told.into_iter().map(|(_, id)| id).collect()
}

#[test]
fn shortest_earliest_or_most_important_job_comes_first_and_ties_go_by_arrival() {
    let by = |deadline: Clock, priority| Wish {
        deadline: Some(Time::from_secs(deadline)),
        priority,
        ..Wish::default()
    };
    let tasks = [
        wishing('a', 30, by(500, 1)),
        wishing('b', 10, by(900, 1)),
        wishing('c', 20, by(100, -5)),
        wishing('d', 10, Wish { priority: 7, ..Wish::default() }),
        wishing('e', 30, by(500, 0)),
    ];
    assert_eq!(order(Policy::Fcfs, &tasks), "abcde");
    assert_eq!(order(Policy::Sjf, &tasks), "bdcae");
    assert_eq!(order(Policy::Edf, &tasks), "caebd", "without a deadline is last");
    assert_eq!(order(Policy::Priority, &tasks), "dabec");
}

#[test]
fn nobody_is_taken_off_the_machine_for_one_that_comes_first() {
    for policy in [Policy::Sjf, Policy::Edf, Policy::Priority] {
        let mut node = Node::new(policy, 1);
        node.at(0, "", &[('a', 1, 100)]);
        node.at(1, "", &[('b', 1, 1)]);
        assert_eq!(node.story, [('a', 0)], "{policy}");
        assert_eq!(node.planned(1, 'b'), None, "somebody may yet come before it");
    }
}

#[test]
fn job_that_reserved_its_begin_has_it_and_others_fit_in_around() {
    let mut queue = Queue::new(Policy::Reservation, 1u32);
    let begin = Some(Time::from_secs(50));
    queue.arrive(Time::ZERO, wishing('a', 20, Wish { begin, ..Wish::default() })).unwrap();
    queue.arrive(Time::ZERO, wishing('b', 60, Wish::default())).unwrap();
    queue.arrive(Time::ZERO, wishing('c', 50, Wish::default())).unwrap();
    let mut started = Vec::new();
    queue.start(Time::ZERO, &mut started);
    assert_eq!(started, ['c'], "it ends as a begins");
    let planned = |queue: &Queue<char, u32>, id| queue.planned_start(Time::ZERO, id).map(Time::as_secs);
    assert_eq!((planned(&queue, 'a'), planned(&queue, 'b')), (Some(50), Some(70)));
    // The machine is free early: b would be in a's way, and a does not begin before its time.
    assert!(queue.finish(Time::from_secs(10), 'c'));
    started.clear();
    queue.start(Time::from_secs(10), &mut started);
    assert!(started.is_empty());
    assert_eq!((planned(&queue, 'a'), planned(&queue, 'b')), (Some(50), Some(70)));
}

#[test]
fn reservation_comes_first_when_a_job_that_overstays_breaks_the_plan() {
    let mut queue = Queue::new(Policy::Reservation, 1u32);
    queue.arrive(Time::ZERO, wishing('r', 10, Wish::default())).unwrap();
    queue.start(Time::ZERO, &mut Vec::new());
    queue.arrive(Time::ZERO, wishing('b', 100, Wish::default())).unwrap();
    let begin = Some(Time::from_secs(110));
    queue.arrive(Time::ZERO, wishing('a', 20, Wish { begin, ..Wish::default() })).unwrap();
    let now = Time::from_secs(15);
    queue.start(now, &mut Vec::new());
    let planned = |id| queue.planned_start(now, id).map(Time::as_secs);
    assert_eq!((planned('a'), planned('b')), (Some(110), Some(130)));
}

/// A job of a law: when it arrives, what it asks for, its limit, and how long it really runs at most.
type Drawn = (Clock, u32, Clock, Clock);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    prop::collection::vec((0u64..60, 1u32..=8, 1u64..30, 1u64..30), 1..20)
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn promised_start_never_moves_later_and_capacity_is_never_exceeded(jobs in drawn(), policy in 0usize..3) {
        let mut queue = Queue::new(BY_ARRIVAL[policy], 8u32);
        let mut promised: BTreeMap<usize, Time> = BTreeMap::new();
        let mut ends: BTreeMap<usize, Clock> = BTreeMap::new();
        let mut served = 0;
        for second in 0..1_000 {
            let now = Time::from_secs(second);
            let over: Vec<usize> = ends.iter().filter(|&(_, &end)| end == second).map(|(&id, _)| id).collect();
            for id in over {
                prop_assert!(queue.finish(now, id));
                ends.remove(&id);
            }
            for (id, &(arrival, amount, limit, _)) in jobs.iter().enumerate() {
                if arrival == second {
                    queue.arrive(now, Task::new(id, amount, Span::from_secs(limit))).unwrap();
                }
            }
            let mut started = Vec::new();
            queue.start(now, &mut started);
            for id in started {
                let (_, _, limit, run) = jobs[id];
                prop_assert!(promised.get(&id).is_none_or(|&promised| now <= promised), "{id} starts late");
                ends.insert(id, second + run.min(limit));
                served += 1;
            }
            let used: u32 = ends.keys().map(|&id| jobs[id].1).sum();
            prop_assert_eq!(used + *queue.free(), 8);
            for id in queue.waiting().map(|task| task.id) {
                let Some(start) = queue.planned_start(now, id) else { continue };
                prop_assert!(now < start, "{} should have started", id);
                let before = promised.insert(id, start);
                prop_assert!(before.is_none_or(|before| start <= before), "{id} was promised {before:?}, now {start}");
            }
        }
        prop_assert_eq!(served, jobs.len());
    }
}
