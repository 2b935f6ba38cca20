//! A user who floods a node with jobs, beside one who does not.

use std::time::{Duration, Instant};

use shoal_api::{Client, Home};
use shoal_daemon::Identity;
use shoal_daemon::trust::text::read_key;
use shoal_model::envelope::Origin;
use shoal_model::{Envelope, Job, Nonce, Span, Time};

use crate::home::{Node, wait_until};

/// Submissions of the flood here; `SHOAL_FLOOD` asks for more.
const FLOOD: u64 = 3_000;
/// Jobs that one user may have open.
const OPEN: u64 = 1_000;
/// How many submit at once for the one who floods.
const HANDS: u64 = 8;

fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Time::from_micros(since.as_micros() as u64)
}

#[test]
fn user_who_floods_a_node_is_stopped_and_another_gets_in_promptly() {
    let flood = std::env::var("SHOAL_FLOOD").ok().and_then(|text| text.parse().ok()).unwrap_or(FLOOD);
    let mut node = Node::start(&[]);
    node.stop();
    let settings = node.home().join("node.toml");
    let before = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{before}\n[jobs]\nopen_per_user = {OPEN}\n")).unwrap();
    node.up();
    let client = || Client::of(&Home::choose(Some(&node.home())).unwrap()).unwrap();
    let grid = read_key(client().grid().unwrap()).unwrap();
    let flooder = Identity::generate();
    let began = Instant::now();
    let (mut taken, mut refused, mut told) = (0, 0, String::new());
    let mut waits: Vec<Duration> = Vec::new();
    std::thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS)
            .map(|hand| {
                let (client, flooder) = (client(), &flooder);
                scope.spawn(move || {
                    let (mut taken, mut refused, mut told) = (0_u64, 0_u64, String::new());
                    for number in (hand..flood).step_by(HANDS as usize) {
                        let job = Job {
                            begin: Some(now() + Span::from_hours(24)),
                            limit: Some(Span::from_secs(1)),
                            ..Job::command(["true"])
                        };
                        let mut nonce = [0; 16];
                        nonce[..8].copy_from_slice(&number.to_le_bytes());
                        let envelope = Envelope::new(job, Nonce(nonce)).unwrap();
                        let envelope = envelope.made_for(Origin { grid, made: now() });
                        let envelope = envelope.sealed(flooder.public(), |digest| flooder.sign(digest));
                        match client.submit(&envelope, Span::ZERO) {
                            Ok(_) => taken += 1,
                            Err(shoal_api::ClientError::Refused { status: 429, problem }) => {
                                refused += 1;
                                told = problem.error.clone();
                            }
                            Err(error) => panic!("job {number}: {error}"),
                        }
                    }
                    (taken, refused, told)
                })
            })
            .collect();
        // Meanwhile somebody else runs jobs, one after the other.
        while hands.iter().any(|hand| !hand.is_finished()) {
            let asked = Instant::now();
            assert_eq!(node.says(&["run", "--", "echo", "mine"]), "mine\n");
            waits.push(asked.elapsed());
        }
        for hand in hands {
            let (some, none, why) = hand.join().unwrap();
            (taken, refused) = (taken + some, refused + none);
            if !why.is_empty() {
                told = why;
            }
        }
    });
    waits.sort_unstable();
    let (median, most) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    println!(
        "{flood} submissions in {:?}: {taken} taken, {refused} refused; {} jobs of another ran meanwhile, in {median:?} \
         (median) and {most:?} (at most)",
        began.elapsed(),
        waits.len(),
    );
    // What is under way while jobs are counted is not in the count.
    assert!((OPEN..=OPEN + HANDS).contains(&taken), "so many may be open, and no more: {taken}");
    assert_eq!(taken + refused, flood);
    assert!(told.contains("has 1000 jobs here that have not ended"), "{told}");
    assert!(most < Duration::from_secs(20), "{most:?}");
    // Who takes some back may submit others.
    let (mut cursor, mut freed) = (None, 0);
    let owner = client();
    while freed < 10 {
        let page = owner.queue(&shoal_api::JobQuery { cursor, ..Default::default() }).unwrap();
        for job in page.jobs.iter().take(10) {
            // The first node of a grid is its admitter, and so may who has its token.
            owner.cancel(&job.id.to_string()).unwrap();
            freed += 1;
        }
        cursor = page.next;
    }
    let job = Job { begin: Some(now() + Span::from_hours(24)), ..Job::command(["true"]) };
    let envelope = Envelope::new(job, Nonce([0xff; 16])).unwrap().made_for(Origin { grid, made: now() });
    let envelope = envelope.sealed(flooder.public(), |digest| flooder.sign(digest));
    wait_until("there is room again", || owner.submit(&envelope, Span::ZERO).ok());
}
