//! Ways to nodes that are not where their records say: relays, and the LAN.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use iroh_relay::server::{RelayConfig, Server, ServerConfig};
use shoal_daemon::network::quic::{self, NoAnswers, Settings};
use shoal_daemon::relay::Relay;
use shoal_daemon::{Clock, Identity, MemoryCabinet};

use crate::station::{PATIENCE, Station, settings};

/// Whether this is the process that has a LAN of its own.
const INSIDE: &str = "SHOAL_TEST_LAN";
/// Its address there.
const LAN: &str = "10.77.0.1";

/// A node that says it is where nobody is.
fn elsewhere(here: Settings) -> Settings {
    Settings { advertise: vec![SocketAddr::new(here.bind.ip(), 9)], ..here }
}

/// Joins with these settings, and starts with them.
async fn join(first: &Station, to_join: Settings, to_run: Settings) -> Station {
    let (identity, cabinet) = (Identity::generate(), Arc::new(MemoryCabinet::new()));
    let ticket = first.ticket().to_string().parse().unwrap();
    let start = Instant::now();
    while let Err(error) = quic::join(&to_join, &identity, &ticket, cabinet.clone(), Clock::new()).await {
        assert!(start.elapsed() < PATIENCE, "{error}");
    }
    Station::start(identity, cabinet, to_run, Arc::new(NoAnswers)).await
}

async fn speak(first: Station, second: Station) {
    second.say(&first);
    first.hears(1).await;
    first.say(&second);
    second.hears(1).await;
    second.stop().await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_cannot_reach_each_other_speak_through_a_relay() {
    let mut config = ServerConfig::default();
    config.relay = Some(RelayConfig::new(([127, 0, 0, 1], 0)));
    let server = Server::spawn(config).await.unwrap();
    let relay: Relay = format!("http://{}", server.http_addr().unwrap()).parse().unwrap();
    let with_relay = elsewhere(Settings { relays: vec![relay.clone()], ..settings() });

    let first = Station::first_with(with_relay.clone(), Arc::new(NoAnswers)).await;
    assert_eq!(first.ticket().relays, std::slice::from_ref(&relay));
    // Whoever comes with a ticket has not been told of relays by anybody else.
    let second = join(&first, settings(), with_relay).await;
    assert_eq!(second.handle.record(first.me()).unwrap().relays, [relay]);
    speak(first, second).await;
    server.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inside() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let bind = SocketAddr::new(LAN.parse().unwrap(), 0);
    let on_lan = elsewhere(Settings { bind, lan: true, ..Settings::default() });
    let first = Station::first_with(on_lan.clone(), Arc::new(NoAnswers)).await;
    let second = join(&first, on_lan.clone(), on_lan).await;
    speak(first, second).await;
    println!("\nthey have spoken");
}

#[test]
fn nodes_that_are_not_where_they_were_are_found_on_the_lan() {
    let script = format!(
        "ip link add lan type veth peer name far && ip link set far up && ip link set lan up multicast on && \
         ip address add {LAN}/24 dev lan && ip link set lo up && ip route add 224.0.0.0/4 dev lan && exec \"$@\""
    );
    let alone = |program: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]).args(program).env(INSIDE, "1").output()
    };
    if !alone(&["ip", "link", "add", "lan", "type", "veth"]).is_ok_and(|output| output.status.success()) {
        eprintln!("no namespaces here: a LAN cannot be made, and nothing is shown");
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let inside = [exe.to_str().unwrap(), "--exact", "ways::inside", "--nocapture", "--test-threads=1"];
    let output = alone(&[&["sh", "-c", &script, "sh"], inside.as_slice()].concat()).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("they have spoken"), "{text}{output:?}");
}
