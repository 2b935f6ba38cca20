//! A ticket lets one machine in, once, and says why when it does not.

use std::sync::Arc;

use shoal_daemon::membership::{GridId, Refusal, Terms, Ticket, Token};
use shoal_daemon::network::quic::JoinError;
use shoal_daemon::{Identity, MemoryCabinet};
use shoal_model::Span;

use crate::station::{Station, enter};

async fn refused(ticket: &Ticket) -> JoinError {
    enter(&Identity::generate(), ticket, &Arc::default()).await.err().expect("nobody gets in")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_form_a_grid_by_tickets_and_speak() {
    let first = Station::first().await;
    let second = Station::join(&first).await;
    second.say(&first);
    first.hears(1).await;
    // The second has shown itself, so the third is told of it.
    let third = Station::join(&first).await;
    assert_eq!(third.handle.known(9).len(), 2);
    assert_eq!(third.handle.grid().settings(), b"recipe");
    third.say(&second);
    second.hears(1).await;
    second.say(&third);
    third.hears(1).await;

    let facts = third.handle.peer_facts();
    let of_second = facts.iter().find(|facts| facts.node == second.me()).expect("they have spoken");
    assert!(of_second.connected && of_second.bytes_in > 0 && of_second.bytes_out > 0);
    assert!(of_second.round_trip.is_some_and(|trip| trip < Span::from_secs(5)), "{of_second:?}");
    // One machine, one clock, read by two.
    assert!(of_second.ahead_us.is_some_and(|ahead| ahead.abs() < 2_000_000), "{of_second:?}");
    for station in [first, second, third] {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn used_ticket_is_refused_to_others_and_answered_again_to_who_used_it() {
    let first = Station::first().await;
    let ticket: Ticket = first.ticket().to_string().parse().unwrap();
    let newcomer = Identity::generate();
    let grid = enter(&newcomer, &ticket, &Arc::default()).await.unwrap();
    // As if the answer had been lost.
    let again = enter(&newcomer, &ticket, &Arc::<MemoryCabinet>::default()).await.unwrap();
    assert_eq!(again.chain(), grid.chain());
    let error = refused(&ticket).await;
    assert!(matches!(error, JoinError::Refused(Refusal::Used)), "{error}");
    assert!(error.to_string().contains("used already"), "{error}");
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ticket_that_lets_nobody_in_says_why() {
    let first = Station::first().await;
    let other = Station::first().await;
    let short = Terms { ticket_for: Span::from_micros(1), ..Terms::default() };
    let late = first.handle.ticket(short).unwrap();
    assert!(matches!(refused(&late).await, JoinError::Expired));
    // One that lies about its time is found out by its issuer.
    let lying = Ticket { expires: first.ticket().expires, ..late };
    assert!(matches!(refused(&lying).await, JoinError::Refused(Refusal::Expired)));
    let made_up = Ticket { token: Token([7; 16]), ..first.ticket() };
    assert!(matches!(refused(&made_up).await, JoinError::Refused(Refusal::Unknown)));
    let elsewhere = Ticket { grid: GridId(other.identity.public()), ..first.ticket() };
    assert!(matches!(refused(&elsewhere).await, JoinError::Refused(Refusal::OtherGrid)));
    // Another node listens where the issuer should: it cannot pass for it.
    let misled = Ticket { addresses: other.ticket().addresses, ..first.ticket() };
    let error = refused(&misled).await;
    assert!(matches!(error, JoinError::Unreachable { .. }), "{error}");
    assert!(enter(&Identity::generate(), &first.ticket(), &Arc::default()).await.is_ok());
    first.stop().await;
    other.stop().await;
}
