//! Connections come, go, are lost and found again.

use std::sync::Arc;
use std::time::Duration;

use shoal_daemon::network::quic::{Event, NoAnswers, Reason, Settings};
use shoal_protocols::node::Message;
use shoal_protocols::overlay::cyclon;

use crate::station::{Station, event, eventually, settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_was_only_mentioned_can_be_spoken_to() {
    let first = Station::first().await;
    let fourth = Station::join(&first).await;
    fourth.say(&first);
    first.hears(1).await;
    let second = Station::join(&first).await;
    let third = Station::join(&first).await;
    third.say(&fourth);
    fourth.hears(1).await;
    second.say(&first);
    eventually("the fourth is told of the second", || fourth.handle.record(second.me()).is_some()).await;
    assert!(third.handle.record(second.me()).is_none(), "it joined before the second had shown itself");

    let entry = cyclon::Entry { node: second.me(), age: 0, payload: () };
    fourth.handle.line().send(third.me(), Message::Overlay(cyclon::Message::Welcome(entry)));
    eventually("the third knows the second", || third.handle.record(second.me()).is_some()).await;
    third.say(&second);
    second.hears(1).await;
    for station in [first, second, third, fourth] {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_who_come_at_once_are_told_of_each_other() {
    let first = Station::first().await;
    let second = Station::join(&first).await;
    let third = Station::join(&first).await;
    second.say(&first);
    first.hears(1).await;
    third.say(&first);
    eventually("the second knows the third", || second.handle.record(third.me()).is_some()).await;
    eventually("the third knows the second", || third.handle.record(second.me()).is_some()).await;
    for station in [first, second, third] {
        station.stop().await;
    }
}

#[test]
fn peer_that_is_killed_is_noticed() {
    let here = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let there = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = here.block_on(Station::first());
    let second = there.block_on(Station::join(&first));
    let node = second.me();
    let mut events = first.handle.events();
    here.block_on(async {
        second.say(&first);
        first.hears(1).await;
        event(&mut events, "the connection", |event| *event == Event::Connected(node)).await;
    });
    // All its tasks end at once, without a word.
    there.shutdown_background();
    std::mem::forget(second.handle);
    here.block_on(async {
        // Its last task may still hear the first word.
        let speak = async {
            loop {
                first.say_to(node);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let is_loss = |event: &Event| matches!(event, Event::Lost { node: lost, .. } if *lost == node);
        tokio::select! {
            () = speak => {}
            () = async { drop(event(&mut events, "the loss", is_loss).await) } => {}
        }
        eventually("it is not connected", || {
            first.handle.peer_facts().iter().all(|facts| facts.node != node || !facts.connected)
        })
        .await;
        first.stop().await;
    });
    here.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_comes_back_on_another_port_is_found_through_others() {
    let first = Station::first().await;
    let second = Station::join(&first).await;
    second.say(&first);
    first.hears(1).await;
    let third = Station::join(&first).await;
    let before = third.handle.record(second.me()).expect("told at the join");
    let (identity, cabinet) = second.stop().await;

    let second = Station::start(identity, cabinet, settings(), Arc::new(NoAnswers)).await;
    assert_ne!(second.handle.addresses(), before.addresses);
    second.say(&first);
    first.hears(2).await;
    third.say(&first);
    first.hears(3).await;
    // The third knows only where it was; whoever cannot be reached is asked after.
    eventually("the third has found it", || {
        third.say(&second);
        second.heard() > 0
    })
    .await;
    assert!(third.handle.record(second.me()).unwrap().number > before.number);
    for station in [first, second, third] {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_said_goodbye_has_stopped_until_it_is_spoken_with_again() {
    let quick = Settings { idle: Duration::from_secs(1), ..settings() };
    let first = Station::first_with(quick, Arc::new(NoAnswers)).await;
    let second = Station::join(&first).await;
    let node = second.me();
    second.say(&first);
    first.hears(1).await;
    assert_eq!(first.handle.connected(), [node]);
    assert!(!first.handle.has_stopped(node));
    let (identity, cabinet) = second.stop().await;
    eventually("the goodbye is heard", || first.handle.has_stopped(node)).await;
    assert!(first.handle.connected().is_empty());

    let second = Station::start(identity, cabinet, settings(), Arc::new(NoAnswers)).await;
    second.say(&first);
    first.hears(2).await;
    assert!(!first.handle.has_stopped(node));
    eventually("the connection lapses", || first.handle.connected().is_empty()).await;
    assert!(!first.handle.has_stopped(node), "it has said no other goodbye");
    for station in [first, second] {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_dial_each_other_at_once_end_with_one_connection() {
    let first = Station::first().await;
    let second = Station::join(&first).await;
    second.say(&first);
    first.hears(1).await;
    let (identity, cabinet) = second.stop().await;
    // Both know each other, and neither has a connection: both dial.
    let second = Station::start(identity, cabinet, settings(), Arc::new(NoAnswers)).await;
    for round in 0..20 {
        first.say(&second);
        second.say(&first);
        first.hears(2 + round).await;
        second.hears(1 + round).await;
    }
    eventually("one connection is left on each side", || {
        first.handle.counts().connections == 1 && second.handle.counts().connections == 1
    })
    .await;
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connection_lapses_and_is_made_anew_when_there_is_something_to_say() {
    let quick = Settings { idle: Duration::from_secs(1), ..settings() };
    let first = Station::first_with(quick, Arc::new(NoAnswers)).await;
    let second = Station::join(&first).await;
    let mut events = first.handle.events();
    second.say(&first);
    first.hears(1).await;
    let lapsed = Event::Parted { node: second.me(), reason: Reason::Idle };
    event(&mut events, "the lapse", |event| *event == lapsed).await;
    first.say(&second);
    second.hears(1).await;
    for station in [first, second] {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_that_only_gossip_has_used_makes_way_for_the_next_and_one_that_jobs_use_stays() {
    let quick = Settings { gossip_connections_max: 1, gossip_idle: Duration::from_millis(500), ..settings() };
    let first = Station::first_with(quick, Arc::new(NoAnswers)).await;
    let others = [Station::join(&first).await, Station::join(&first).await, Station::join(&first).await];
    let [used, before, after] = others.each_ref().map(Station::me);
    let gossip = |from: usize| {
        let message = Message::Overlay(cyclon::Message::Held(0));
        others[from].handle.line().send(first.me(), message);
    };
    let mut events = first.handle.events();
    gossip(0);
    others[0].say(&first);
    first.hears(1).await;
    gossip(1);
    eventually("another speaks", || first.handle.connected().len() == 2).await;
    // As long as there is room, being quiet costs nobody its connection.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(first.handle.connected().len(), 2);
    gossip(2);
    // Which of the two was used last is a matter of moments: the one is told of the other.
    let parted = event(&mut events, "a lapse", |event| matches!(event, Event::Parted { .. })).await;
    let lapsed = |node| Event::Parted { node, reason: Reason::Idle };
    let stays = if parted == lapsed(before) { after } else { before };
    assert_eq!(parted, lapsed(if stays == after { before } else { after }));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut left = [used, stays];
    left.sort_unstable();
    assert_eq!(first.handle.connected(), left);
    first.stop().await;
    for station in others {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_to_a_node_that_nobody_knows_is_dropped_and_counted() {
    let first = Station::first().await;
    first.say_to(shoal_model::NodeId(7));
    let unknown =
        || first.handle.counts().dropped.get(&shoal_daemon::network::quic::Drop::UnknownPeer).copied();
    eventually("it is given up", || unknown() == Some(1)).await;
    // To oneself there is always a way.
    first.say(&first);
    first.stop().await;
}
