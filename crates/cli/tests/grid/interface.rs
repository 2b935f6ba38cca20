//! The HTTP interface as other programs and strangers meet it.

use serde_json::Value;

use crate::home::{Answer, Node, wait_until};

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

#[test]
fn nonsense_is_answered_with_what_is_wrong() {
    let node = Node::start(&[]);
    assert_eq!(node.get("/v1/nowhere").status, 404);
    assert_eq!(node.post("/v1/nodes", "application/json", "{}").status, 405);
    assert_eq!(node.get("/v1/jobs?limit=0").status, 400);
    assert_eq!(node.get("/v1/jobs?limit=x").status, 400);
    assert_eq!(node.get("/v1/jobs?cursor=7").status, 400);
    assert_eq!(json(&node.get("/v1/jobs?state=runing"))["field"], "state");
    assert_eq!(json(&node.get("/v1/calendar?span=5"))["field"], "span");
    assert_eq!(json(&node.get("/v1/calendar?node=x"))["field"], "node");
    let job = |kind: &str, body: &str| node.post("/v1/jobs", kind, body);
    assert_eq!(job("application/json", "{").status, 422);
    assert_eq!(job("text/html", "<p>").status, 415);
    assert_eq!(job("application/cbor", "no envelope").status, 422);
    let unknown = json(&job("application/json", "{\"command\":[\"true\"],\"memroy\":\"1GiB\"}"));
    assert_eq!((&unknown["field"], &unknown["hint"]), (&"memroy".into(), &"did you mean `memory`?".into()));
    assert_eq!(job("application/json", &" ".repeat(3 << 20)).status, 413);
    // Not even HTTP.
    assert!(node.ask("\u{0}\u{1}garbage", &[], b"").is_none_or(|answer| answer.status == 400));
    assert_eq!(node.get("/v1").status, 200);
}

#[test]
fn job_in_json_or_toml_is_the_same_job_when_it_is_sent_again() {
    let node = Node::start(&[]);
    let (host, bearer) = (node.host(), node.bearer());
    let nonce = "00112233445566778899aabbccddeeff";
    let send = |kind: &str, body: &[u8]| {
        let headers =
            [("host", &*host), ("authorization", &*bearer), ("content-type", kind), ("shoal-nonce", nonce)];
        node.ask("POST /v1/jobs?wait=5s", &headers, body).unwrap()
    };
    let first = send("application/json", b"{\"command\":[\"true\"]}");
    let again = send("application/json", b"{\"command\":[\"true\"]}");
    let toml = send("application/toml", b"command = ['true']");
    assert_eq!((first.status, again.status, toml.status), (201, 200, 200));
    assert_eq!(json(&first)["id"], json(&toml)["id"]);
    assert_eq!(node.json(&["status"])["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn pages_follow_each_other_without_gap_or_repetition() {
    let node = Node::start(&[]);
    let mut sent: Vec<String> =
        (0..7).map(|_| node.submit(&["--plan", "0s", "--begin", "+1h"], "true")).collect();
    let mut seen = Vec::new();
    for list in ["jobs", "queue"] {
        let mut cursor = String::new();
        let mut listed = Vec::new();
        loop {
            let page = json(&node.get(&format!("/v1/{list}?limit=3{cursor}")));
            let jobs = page["jobs"].as_array().unwrap();
            assert!(jobs.len() <= 3);
            listed.extend(jobs.iter().map(|job| job["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        seen.push(listed);
    }
    let (queue, latest) = (seen.pop().unwrap(), seen.pop().unwrap());
    assert!(latest.iter().rev().eq(sent.iter()), "the last accepted comes first");
    let mut queue = queue;
    queue.sort();
    sent.sort();
    assert_eq!(queue, sent);
    assert_eq!(node.json(&["status", "--all"])["jobs"].as_array().unwrap().len(), 7);
    let none = node.json(&["status", "--state", "finished,failed"]);
    assert_eq!(none["jobs"].as_array().unwrap().len(), 0);
}

#[test]
fn events_of_a_job_are_told_to_its_end_and_missed_ones_again() {
    let node = Node::start(&[]);
    let job = node.submit(&[], "sleep 0.3");
    let events = node.get(&format!("/v1/jobs/{job}/events"));
    let kinds: Vec<&str> = events.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds, ["accepted", "planned", "started", "took", "ended"]);
    for data in events.body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        assert_eq!(serde_json::from_str::<Value>(data).unwrap()["job"], *job);
    }
    // Of the node: who has heard nothing since the beginning of time hears all that is kept, and goes on listening.
    let (host, bearer) = (node.host(), node.bearer());
    let told = std::thread::spawn({
        let head = format!(
            "GET /v1/events HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\nlast-event-id: 0\r\n\r\n"
        );
        move || {
            use std::io::{Read, Write};
            let mut stream = std::net::TcpStream::connect(host).unwrap();
            stream.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            let mut heard = Vec::new();
            wait_until("all events came", || {
                let mut part = [0; 4096];
                if let Ok(read) = stream.read(&mut part) {
                    heard.extend_from_slice(&part[..read]);
                }
                let text = String::from_utf8_lossy(&heard);
                text.contains("event: ended").then(|| text.into_owned())
            })
        }
    })
    .join()
    .unwrap();
    assert!(told.contains("text/event-stream") && told.contains("event: accepted"), "{told}");
}

#[test]
fn document_lists_every_path_and_figures_can_be_scraped() {
    let node = Node::start(&[]);
    let document = json(&node.get("/v1/openapi.json"));
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths = document["paths"].as_object().unwrap();
    let expected = [
        "/v1",
        "/v1/jobs",
        "/v1/queue",
        "/v1/grid/jobs",
        "/v1/grid/queue",
        "/v1/jobs/{job}",
        "/v1/jobs/{job}/cancel",
        "/v1/jobs/{job}/why",
        "/v1/jobs/{job}/wait",
        "/v1/jobs/{job}/logs",
        "/v1/jobs/{job}/events",
        "/v1/events",
        "/v1/nodes",
        "/v1/calendar",
        "/v1/doctor",
        "/v1/tickets",
        "/v1/leave",
        "/v1/openapi.json",
        "/metrics",
    ];
    for path in expected {
        assert!(paths.contains_key(path), "{path} is not in the document");
    }
    assert!(document["components"]["schemas"]["JobStatus"]["properties"]["planned"].is_object());

    assert!(node.shoal(&["run", "--", "true"]).status.success());
    let metrics = node.get("/metrics");
    for figure in ["shoal_jobs{state=\"finished\"} 1", "shoal_http_requests_total", "shoal_kept{", "# EOF"] {
        assert!(metrics.body.contains(figure), "{figure} in\n{}", metrics.body);
    }
    assert_eq!(json(&node.get("/v1/doctor"))["checks"][0]["well"], true);
}
