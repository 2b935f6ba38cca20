//! A node that comes back with many jobs: what it does about each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const ME: NodeId = NodeId(1);
const WAITING: usize = 20;

/// Allows everything, and counts how often it is asked.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Judge for Counting {
    fn judge(&self, _ask: &Ask<'_>) -> Result<(), Denial> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

fn job(number: u8, job: Job) -> Shared<Envelope> {
    Shared::new(Envelope::new(job, Nonce([number; 16])).unwrap())
}

/// A node of one core that runs a job, with many more planned behind it.
fn busy(judge: &Arc<Counting>) -> World<Node> {
    let mut config = guarded(config::Recipe::Sample(Default::default()));
    let work = config.work.as_mut().expect("it takes jobs");
    (work.eager, work.gate) = (true, Gate::with(Arc::clone(judge) as Arc<dyn Judge>));
    let mut world = World::<Node>::new(1, config, A_MOMENT);
    let long = Job { limit: Some(Span::from_hours(24)), ..Job::command(["sleep"]) };
    world.command(ME, Command::Submit(job(0, long)));
    world.run_for(Span::from_secs(5));
    for number in 1..=WAITING as u8 {
        world.command(ME, Command::Submit(job(number, signed())));
        world.run_for(Span::from_secs(1));
    }
    assert_eq!(world.core(ME).commit().unwrap().promised(), WAITING + 1, "{}", world.story());
    world
}

#[test]
fn gate_is_not_asked_again_for_what_has_no_room_to_start_before_its_time() {
    let judge = Arc::new(Counting::default());
    let mut world = busy(&judge);
    world.crash(ME);
    let before = judge.0.load(Ordering::SeqCst);
    world.restart(ME);
    world.run_for(Span::from_secs(1));
    assert_eq!(judge.0.load(Ordering::SeqCst), before, "{}", world.story());
}

#[test]
fn gate_is_asked_before_a_task_starts_early_in_room_that_came_up() {
    let judge = Arc::new(Counting::default());
    let mut world = busy(&judge);
    let before = judge.0.load(Ordering::SeqCst);
    let (task, _) = world.core(ME).tasks().find(|(_, state)| *state == TaskState::Running).unwrap();
    world.tell(ME, Input::Done(Outcome::unmeasured(task, Exit::Code(0))));
    world.run_for(Span::from_secs(1));
    // One has the room: it is asked for when it is offered, and when it starts. Another may find a better place meanwhile.
    let asked = judge.0.load(Ordering::SeqCst) - before;
    assert!((2..=4).contains(&asked), "{asked} times\n{}", world.story());
    let running = world.core(ME).tasks().filter(|(_, state)| *state == TaskState::Running).count();
    assert_eq!(running, 1);
}

#[test]
fn node_that_comes_back_offers_its_room_to_who_waits_there() {
    let mut world = busy(&Arc::default());
    world.crash(ME);
    // As if the time of what runs had been over by now.
    let long = world.saved(ME).find_map(|record| match record {
        Record::Commit(two_phase::Record::Lock(lock)) if lock.span >= Span::from_hours(24) => {
            Some(lock.clone())
        }
        _ => None,
    });
    let short = two_phase::Lock { span: Span::from_secs(1), ..long.unwrap() };
    world.unsave(ME, Record::Commit(two_phase::Record::Lock(short)));
    world.restart(ME);
    world.run_for(Span::from_secs(1));
    let running = world.core(ME).tasks().filter(|(_, state)| *state == TaskState::Running).count();
    assert_eq!(running, 2, "one has begun beside it\n{}", world.story());
}

#[test]
fn node_that_comes_back_does_not_ask_itself_what_it_knows() {
    let mut world = busy(&Arc::default());
    world.crash(ME);
    let before = world.sent().len();
    world.restart(ME);
    world.run_for(Span::from_secs(1));
    let about_places = |message: &Message| {
        matches!(
            message,
            Message::Commit(
                two_phase::Message::Ask { .. }
                    | two_phase::Message::Confirm { .. }
                    | two_phase::Message::Confirmed { .. }
            )
        )
    };
    let said = world.sent()[before..].iter().filter(|sent| about_places(&sent.message)).count();
    assert_eq!(said, 0, "{}", world.story());
    assert_eq!(world.core(ME).commit().unwrap().promised(), WAITING + 1);
    let placed = world.core(ME).owned().filter(|(_, owned)| matches!(owned.phase(), Phase::Placed { .. }));
    assert_eq!(placed.count(), WAITING + 1);
}

#[test]
fn job_that_its_owner_no_longer_has_a_place_for_is_let_go_after_a_restart() {
    let mut world = busy(&Arc::default());
    world.crash(ME);
    // As if the owner had given the place up, and crashed before the node that is itself had heard of it.
    let gone = world.saved(ME).find_map(|record| match record {
        Record::Commit(two_phase::Record::Tenure(tenure)) => Some(tenure.clone()),
        _ => None,
    });
    let gone = gone.unwrap();
    let job = gone.job;
    let tenure = two_phase::Tenure { placed: None, releasing: Vec::new(), over: true, ..gone };
    world.unsave(ME, Record::Commit(two_phase::Record::Tenure(tenure)));
    world.restart(ME);
    assert!(said(&world, "ask") > 0, "{}", world.story());
    world.run_for(Span::from_secs(1));
    let old = world.core(ME).commit().unwrap().lock(job, shoal_model::Epoch(1));
    assert!(old.is_none(), "{}", world.story());
}

/// What is read from disk is a copy for each record.
fn read_again(record: &Record) -> Record {
    minicbor::decode(&minicbor::to_vec(record).unwrap()).unwrap()
}

#[test]
fn each_envelope_is_in_memory_once_after_a_restart() {
    let mut world = World::<Node>::new(1, config(), A_MOMENT);
    let later = Some(world.now() + Span::from_hours(100));
    let array = Job { array: "1-3".parse().ok().map(Box::new), begin: later, ..Job::command(["true"]) };
    let single = job(1, Job { begin: later, ..Job::command(["true"]) });
    let array = job(2, array);
    for envelope in [&single, &array] {
        world.command(ME, Command::Submit(envelope.clone()));
        world.run_for(Span::from_secs(5));
    }
    let node = Node::restore(&config(), ME, world.saved(ME).map(read_again));
    let of = |id| node.job(id).unwrap().envelope();
    assert!(!of(single.id()).is(&single), "it was read");
    let locks: Vec<_> = node.commit().unwrap().locks().collect();
    assert_eq!(locks.len(), 4, "{}", world.story());
    for (lock, _) in locks {
        let brief = lock.brief.as_ref().unwrap();
        let whose = if brief.index.is_some() { array.id() } else { single.id() };
        assert!(brief.envelope.is(of(whose)) && of(lock.job).is(of(whose)));
        assert_eq!(brief.job(), lock.job);
    }
}
