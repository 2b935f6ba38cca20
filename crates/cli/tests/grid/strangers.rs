//! What comes to the HTTP port and means no good: strangers, floods, and those who dawdle.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::home::{Node, wait_until};

/// Connections that say nothing.
const HALF_OPEN: u64 = 10_000;

#[test]
fn strangers_are_refused_on_every_method_before_anything_else() {
    let node = Node::start(&[]);
    let (host, bearer) = (node.host(), node.bearer());
    let job = b"{\"command\":[\"true\"]}";
    let ask = |head: &str, headers: &[(&str, &str)]| node.ask(head, headers, job).unwrap();
    let heads = [
        "GET /v1",
        "HEAD /v1",
        "POST /v1/jobs",
        "PUT /v1/files/00",
        "DELETE /v1/jobs",
        "OPTIONS /v1/jobs",
        "OPTIONS *",
        "PATCH /nowhere",
        "DANCE /v1/jobs",
        "GET /metrics",
        "HEAD /nowhere",
    ];
    let no_leave =
        |answer: &crate::home::Answer| assert!(!answer.head.contains("access-control"), "{}", answer.head);
    for head in heads {
        let token = ("authorization", bearer.as_str());
        assert_eq!(ask(head, &[("host", "evil.example"), token]).status, 421, "{head}");
        let foreign = ask(head, &[("host", &host), token, ("origin", "http://evil.example")]);
        assert_eq!(foreign.status, 403, "{head}");
        no_leave(&foreign);
        assert_eq!(ask(head, &[("host", &host)]).status, 401, "{head}");
        let answer = ask(head, &[("host", &host), ("authorization", "Bearer 0000")]);
        assert_eq!(answer.status, 401, "{head}");
        assert!(head.starts_with("HEAD") || answer.body.starts_with("{\"error\":"), "{}", answer.body);
    }
    // Who asks before a page of another host may ask is told no such thing, and neither is a page of our own.
    let asked = [("access-control-request-method", "POST"), ("origin", "null")];
    let before = ask("OPTIONS /v1/jobs", &[("host", &host), asked[0], asked[1]]);
    assert_eq!(before.status, 403);
    no_leave(&before);
    let own = format!("http://{host}");
    no_leave(&ask("GET /v1", &[("host", &host), ("authorization", &bearer), ("origin", &own)]));
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 0);
}

#[test]
fn who_is_refused_again_and_again_is_told_to_wait_and_the_owner_is_not() {
    let node = Node::start(&[]);
    let host = node.host();
    let answers: Vec<_> = (0..200).map(|_| node.ask("GET /v1", &[("host", &host)], b"").unwrap()).collect();
    let late: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(answers.iter().all(|answer| [401, 429].contains(&answer.status)));
    assert!(late.len() > 50, "{}", late.len());
    assert!(late[0].head.contains("retry-after: 1"), "{}", late[0].head);
    assert!(late[0].body.contains("try again"), "{}", late[0].body);
    assert_eq!(node.says(&["run", "--", "echo", "mine"]), "mine\n");
    for path in ["/v1", "/v1/nodes", "/v1/jobs"] {
        assert_eq!(node.get(path).status, 200);
    }
}

#[test]
fn requests_beyond_the_rate_of_the_token_are_told_to_wait() {
    let mut node = Node::start(&[]);
    node.stop();
    let settings = node.home().join("node.toml");
    let before = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{before}\n[http]\nrequests_per_second = 3\n")).unwrap();
    node.up();
    let answer = wait_until("the rate is reached", || {
        let answer = node.get("/v1");
        (answer.status == 429).then_some(answer)
    });
    assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    wait_until("a moment later it is answered", || (node.get("/v1").status == 200).then_some(()));
}

#[test]
fn ten_thousand_connections_that_say_nothing_keep_nobody_out() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(HALF_OPEN + 2_000), hard).unwrap();
    let many = HALF_OPEN.min(hard.saturating_sub(1_000));
    let node = Node::start(&[]);
    let mut half_open = Vec::new();
    for number in 0..many {
        let mut stream =
            node.connect().unwrap_or_else(|| panic!("connection {number} of {many} is not taken"));
        // Some have begun to say something.
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /v1 HTTP/1.1\r\nhost: ");
        }
        half_open.push(stream);
        if number % 2_500 == 2_499 {
            assert_eq!(node.says(&["run", "--", "echo", "mine"]), "mine\n", "after {number} connections");
        }
    }
    let began = Instant::now();
    assert_eq!(node.says(&["run", "--", "echo", "mine"]), "mine\n");
    println!("{} half-open connections; a job ran in {:?} beside them", half_open.len(), began.elapsed());
    assert!(half_open.len() as u64 == many);
}

/// What comes on a connection until it is closed, and how long that took.
fn until_closed(mut stream: TcpStream) -> (String, Duration) {
    let began = Instant::now();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut heard = Vec::new();
    // A connection that is reset is closed too.
    if let Err(error) = stream.read_to_end(&mut heard) {
        assert!(error.kind() != std::io::ErrorKind::WouldBlock, "it is still open after a minute");
    }
    (String::from_utf8_lossy(&heard).into_owned(), began.elapsed())
}

#[test]
fn slow_heads_and_slow_bodies_are_cut() {
    let node = Node::start(&[]);
    let (host, bearer) = (node.host(), node.bearer());
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\ncontent-length: 100000\r\n\r\n"
    );
    std::thread::scope(|scope| {
        let silent = node.connect().unwrap();
        scope.spawn(move || {
            let (heard, took) = until_closed(silent);
            assert!(heard.is_empty() && took < Duration::from_secs(40), "{heard} after {took:?}");
        });
        let mut drips = node.connect().unwrap();
        scope.spawn(move || {
            let mut writes = drips.try_clone().unwrap();
            let began = Instant::now();
            // A byte a second of a head that never ends.
            while began.elapsed() < Duration::from_secs(60) && writes.write_all(b"g").is_ok() {
                std::thread::sleep(Duration::from_secs(1));
            }
            assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
            let _ = drips.read(&mut [0; 1024]);
        });
        let mut stops = node.connect().unwrap();
        stops.write_all(head.as_bytes()).unwrap();
        stops.write_all(b"{\"command\":").unwrap();
        scope.spawn(move || {
            let (heard, took) = until_closed(stops);
            assert!(heard.starts_with("HTTP/1.1 408") && heard.contains("too slowly"), "{heard}");
            assert!(took < Duration::from_secs(20), "{took:?}");
        });
        let mut trickles = node.connect().unwrap();
        trickles.write_all(head.as_bytes()).unwrap();
        scope.spawn(move || {
            let mut writes = trickles.try_clone().unwrap();
            let writer = std::thread::spawn(move || {
                while writes.write_all(b" ").is_ok() {
                    std::thread::sleep(Duration::from_millis(500));
                }
            });
            let (heard, took) = until_closed(trickles);
            assert!(heard.starts_with("HTTP/1.1 408"), "{heard}");
            assert!(took < Duration::from_secs(40), "{took:?}");
            writer.join().unwrap();
        });
        assert_eq!(node.says(&["run", "--", "echo", "mine"]), "mine\n");
    });
    // A head that is too large.
    let large = format!("GET /v1 HTTP/1.1\r\nhost: {host}\r\nx: {}\r\n\r\n", "a".repeat(100_000));
    let mut stream = node.connect().unwrap();
    let _ = stream.write_all(large.as_bytes());
    let (heard, _) = until_closed(stream);
    assert!(heard.is_empty() || heard.starts_with("HTTP/1.1 431"), "{heard}");
    assert_eq!(node.get("/v1").status, 200);
}

#[test]
fn nesting_of_ten_thousand_is_refused_and_the_node_goes_on() {
    let node = Node::start(&[]);
    let deep = 10_000;
    let json = format!("{{\"command\":{}1{}}}", "[".repeat(deep), "]".repeat(deep));
    let objects = format!("{}1{}", "{\"a\":".repeat(deep), "}".repeat(deep));
    let toml = format!("command = {}1{}", "[".repeat(deep), "]".repeat(deep));
    let tables = format!("a{} = 1", ".a".repeat(deep));
    for (kind, body) in [
        ("application/json", json),
        ("application/json", objects),
        ("application/toml", toml),
        ("application/toml", tables),
    ] {
        let answer = node.post("/v1/jobs", kind, &body);
        assert_eq!(answer.status, 422, "{kind}: {}", answer.body);
    }
    let (host, bearer) = (node.host(), node.bearer());
    let headers = [("host", &*host), ("authorization", &*bearer), ("content-type", "application/cbor")];
    // Lists of one, maps of one, tags, and lists without an announced end.
    for open in [0x81, 0xa1, 0xc6, 0x9f] {
        for start in [&[][..], &[0xa2, 0x00]] {
            let body = [start, &[open].repeat(deep), &[0x00]].concat();
            let answer = node.ask("POST /v1/jobs", &headers, &body).unwrap();
            assert_eq!(answer.status, 422, "{open:x}: {}", answer.body);
        }
    }
    assert_eq!(node.says(&["run", "--", "echo", "mine"]), "mine\n");
}
