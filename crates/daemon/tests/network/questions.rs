//! Questions are answered in parts, can be given up, and have their limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_daemon::network::quic::{AskError, QUESTION_MAX, QUESTIONS_MAX, ReplySender, Responder};
use shoal_model::NodeId;

use crate::station::{PATIENCE, Station, eventually, settings};

/// Repeats the question so often; or speaks without end until nobody listens.
#[derive(Default)]
struct Parrot {
    given_up: Arc<AtomicBool>,
}

impl Responder for Parrot {
    fn answer(&self, _from: NodeId, question: Vec<u8>, mut reply: ReplySender) {
        let given_up = Arc::clone(&self.given_up);
        tokio::spawn(async move {
            match question.as_slice() {
                b"for ever" => {
                    while reply.send(vec![7; 100_000]).await.is_ok() {}
                    given_up.store(true, Ordering::SeqCst);
                }
                b"break off" => drop(reply),
                b"refuse" => reply.refuse("I would rather not"),
                b"wait" => reply.gone().await,
                other => {
                    for _ in 0..3 {
                        reply.send(other.to_vec()).await.unwrap();
                    }
                    reply.end().await.unwrap();
                }
            }
        });
    }
}

async fn pair() -> (Station, Station, Arc<AtomicBool>) {
    let given_up = Arc::new(AtomicBool::new(false));
    let parrot = Arc::new(Parrot { given_up: Arc::clone(&given_up) });
    let first = Station::first_with(settings(), parrot).await;
    let second = Station::join(&first).await;
    (first, second, given_up)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn question_is_answered_in_parts_from_afar_and_from_here() {
    let (first, second, _) = pair().await;
    for asker in [&second, &first] {
        let answer = asker.handle.ask(first.me(), vec![5; 200_000]).await.unwrap();
        let whole = answer.whole(1 << 20).await.unwrap();
        assert_eq!(whole, vec![5; 600_000]);
    }
    let mut refused = second.handle.ask(first.me(), b"refuse".to_vec()).await.unwrap();
    let error = refused.next().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), format!("node {} does not answer: I would rather not", first.me()));
    assert!(refused.next().await.is_none());
    let mut broken = second.handle.ask(first.me(), b"break off".to_vec()).await.unwrap();
    assert_eq!(broken.next().await, Some(Err(AskError::BrokenOff(first.me()))));
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_that_nobody_wants_any_more_is_given_up() {
    let (first, second, given_up) = pair().await;
    let mut answer = second.handle.ask(first.me(), b"for ever".to_vec()).await.unwrap();
    for _ in 0..20 {
        answer.next().await.unwrap().unwrap();
    }
    assert!(!given_up.load(Ordering::SeqCst));
    drop(answer);
    eventually("the responder hears of it", || given_up.load(Ordering::SeqCst)).await;
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_have_their_limits() {
    let (first, second, _) = pair().await;
    let error = second.handle.ask(first.me(), vec![0; QUESTION_MAX + 1]).await.err().unwrap();
    assert_eq!(error, AskError::TooLarge(QUESTION_MAX + 1));
    let error = second.handle.ask(NodeId(7), b"hello".to_vec()).await.err().unwrap();
    assert!(matches!(error, AskError::Unreachable { node: NodeId(7), .. }), "{error}");

    let mut open = Vec::new();
    for _ in 0..QUESTIONS_MAX {
        open.push(second.handle.ask(first.me(), b"wait".to_vec()).await.unwrap());
    }
    eventually("all are being answered", || first.handle.counts().answered == QUESTIONS_MAX as u64).await;
    let mut beyond = second.handle.ask(first.me(), b"hello".to_vec()).await.unwrap();
    let error = tokio::time::timeout(PATIENCE, beyond.next()).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, AskError::Refused { .. }), "{error}");
    drop(open);
    drop(beyond);
    eventually("there is room again", || first.handle.peer_facts().iter().any(|facts| facts.connected)).await;
    let answer = loop {
        let answer = second.handle.ask(first.me(), b"hello".to_vec()).await.unwrap().whole(100).await;
        match answer {
            Err(AskError::Refused { .. }) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            answer => break answer,
        }
    };
    assert_eq!(answer.unwrap(), b"hellohellohello");
    first.stop().await;
    second.stop().await;
}
