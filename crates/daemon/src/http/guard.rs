//! Who may ask, how often, and how long.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use shoal_api::Problem;

use super::limits::Limits;
use super::metrics::Metrics;
use super::slow::Paced;
use crate::places::Place;
use crate::service::Wrong;

/// The longest that an answer may take to begin. Who asks to wait is answered before.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(90);

/// Where the interface is, and for whom.
#[derive(Clone, Debug)]
pub struct Door {
    /// What a request must show.
    pub token: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// How else this node is called by who means it.
    pub names: Vec<String>,
    /// Whether it speaks TLS.
    pub secure: bool,
    /// Requests with the token in a second.
    pub requests_per_second: u32,
}

/// What a request must show.
pub(super) struct Guard {
    token: String,
    /// How this node is called by who means it.
    hosts: Vec<String>,
    /// How the origin of a page of this node begins.
    scheme: &'static str,
    limits: Limits,
    metrics: Arc<Metrics>,
}

impl Guard {
    pub fn new(door: Door, metrics: Arc<Metrics>) -> Guard {
        let Door { token, address, names, secure, requests_per_second } = door;
        let port = address.port();
        let local = ["127.0.0.1", "localhost", "[::1]"].into_iter();
        let mut hosts: Vec<String> =
            local.chain(names.iter().map(String::as_str)).map(|name| format!("{name}:{port}")).collect();
        hosts.push(address.to_string());
        let scheme = if secure { "https://" } else { "http://" };
        Guard { token, hosts, scheme, limits: Limits::new(requests_per_second), metrics }
    }

    /// Judges a request that came in at an address: whoever names that as a number means this node.
    fn judge(
        &self,
        headers: &HeaderMap,
        authority: Option<&str>,
        at: Option<SocketAddr>,
    ) -> Result<(), Wrong> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = authority.or(text(header::HOST)).unwrap_or_default();
        let at = at.map(|at| at.to_string());
        let own = |host: &str| self.hosts.iter().chain(&at).any(|own| own.eq_ignore_ascii_case(host));
        if !own(host) {
            let problem = Problem::new("this node is not the host that was asked for").field("host");
            let hint = "name it by its address, or by one of `http.names` in its node.toml";
            return Err(Wrong { status: 421, problem: problem.hint(hint) });
        }
        // One of several could be ours, and the one that counts another.
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let foreign = |origin: &HeaderValue| {
            !origin.to_str().ok().and_then(|text| text.strip_prefix(self.scheme)).is_some_and(own)
        };
        if origins.any(foreign) {
            let problem = Problem::new("requests from pages of other hosts are refused").field("origin");
            return Err(Wrong { status: 403, problem });
        }
        let shown = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        if !shown.is_some_and(|shown| same(shown.as_bytes(), self.token.as_bytes())) {
            let problem = Problem::new("the token is missing or wrong").field("authorization");
            let hint = "it is in the file `token` of the node's folder";
            return Err(Wrong { status: 401, problem: problem.hint(hint) });
        }
        Ok(())
    }

    /// The same, and counts how often who asks is heard or refused.
    fn admit(&self, request: &Request) -> Result<(), Box<Response>> {
        let place = request.extensions().get::<Arc<Place>>();
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let from = place.map_or(IpAddr::from([127, 0, 0, 1]), |place| place.from());
        if let Err(wrong) = self.judge(request.headers(), authority, place.map(|place| place.at)) {
            let response = match self.limits.refused(from, Instant::now()) {
                Ok(()) => wrong.into_response(),
                Err(wait) => too_many("too many requests of this address were refused", wait),
            };
            return Err(Box::new(closed(response)));
        }
        if !place.is_none_or(|place| place.stays()) {
            let wrong = Wrong::unavailable("too many connections are open; close some, or try again");
            return Err(Box::new(closed(wrong.into_response())));
        }
        let late = |wait| Box::new(too_many("too many requests in a second", wait));
        self.limits.known(Instant::now()).map_err(late)
    }
}

/// Come again later.
fn too_many(error: &str, wait: Duration) -> Response {
    // Whole seconds, and never none.
    let seconds = wait.as_secs() + 1;
    let problem = Problem::new(error).hint(format!("try again in {seconds} s"));
    let mut response = Wrong { status: 429, problem }.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// The connection ends with this answer: whoever was refused has no further use of it.
fn closed(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Whether two texts are the same, in a time that does not tell how much of them is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Judges a request, has it answered in time, and counts it.
pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let response = match guard.admit(&request) {
        Err(response) => *response,
        Ok(()) => answer(request, next).await,
    };
    let path = path.unwrap_or_else(|| "other".to_owned());
    // A method may be any word; figures are kept of the usual ones.
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
    let method = known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other");
    guard.metrics.answered(method, &path, response.status().as_u16(), began.elapsed());
    response
}

/// Has a request answered, if all of it comes in time and the answer does.
async fn answer(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let (body, late) = Paced::new(body);
    let slow = |error| closed(Wrong { status: 408, problem: Problem::new(error) }.into_response());
    let request = Request::from_parts(head, Body::new(body));
    match tokio::time::timeout(REQUEST_TIME_MAX, next.run(request)).await {
        Ok(_) if late.load(Ordering::Relaxed) => slow("the request came too slowly"),
        Ok(response) => response,
        Err(_) => slow("the request took too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(headers: &[(&str, &str)]) -> Option<u16> {
        judged_at(false, None, headers)
    }

    fn judged_at(secure: bool, at: Option<&str>, headers: &[(&str, &str)]) -> Option<u16> {
        let guard = Guard::new(
            Door {
                token: "secret".to_owned(),
                address: if secure { "0.0.0.0:4000" } else { "127.0.0.1:4000" }.parse().unwrap(),
                names: vec!["node7.lab.example".to_owned()],
                secure,
                requests_per_second: 10,
            },
            Arc::new(Metrics::new()),
        );
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(axum::http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        guard.judge(&map, None, at.map(|at| at.parse().unwrap())).err().map(|wrong| wrong.status)
    }

    #[test]
    fn only_who_means_this_node_comes_from_here_and_has_the_token_is_heard() {
        let token = ("authorization", "Bearer secret");
        let host = ("host", "127.0.0.1:4000");
        assert_eq!(judged(&[host, token]), None);
        assert_eq!(judged(&[("host", "LOCALHOST:4000"), token]), None);
        assert_eq!(judged(&[host, token, ("origin", "http://localhost:4000")]), None);
        assert_eq!(judged(&[token]), Some(421));
        for foreign in ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:4000.evil.example"] {
            assert_eq!(judged(&[("host", foreign), token]), Some(421), "{foreign}");
        }
        for foreign in ["http://evil.example", "null", "https://localhost:4000", "http://localhost:4001"] {
            assert_eq!(judged(&[host, token, ("origin", foreign)]), Some(403), "{foreign}");
        }
        for wrong in ["Bearer secre", "Bearer secrets", "secret", "Basic secret", "Bearer "] {
            assert_eq!(judged(&[host, ("authorization", wrong)]), Some(401), "{wrong}");
        }
        assert_eq!(judged(&[host]), Some(401));
        // A foreign host is refused before the token is looked at.
        assert_eq!(judged(&[("host", "evil.example"), ("authorization", "Bearer x")]), Some(421));
    }

    #[test]
    fn every_origin_of_a_request_must_be_this_nodes() {
        let (token, host) = (("authorization", "Bearer secret"), ("host", "127.0.0.1:4000"));
        let (own, foreign) = (("origin", "http://localhost:4000"), ("origin", "http://evil.example"));
        assert_eq!(judged(&[host, token, own, foreign]), Some(403));
        assert_eq!(judged(&[host, token, own, own]), None);
    }

    #[test]
    fn node_that_others_reach_is_meant_by_its_address_or_a_name_that_it_has() {
        let token = ("authorization", "Bearer secret");
        let at = Some("192.0.2.7:4000");
        assert_eq!(judged_at(true, at, &[("host", "192.0.2.7:4000"), token]), None);
        assert_eq!(judged_at(true, at, &[("host", "Node7.lab.example:4000"), token]), None);
        assert_eq!(judged_at(true, at, &[("host", "192.0.2.8:4000"), token]), Some(421));
        assert_eq!(judged_at(true, at, &[("host", "evil.example:4000"), token]), Some(421));
        let host = ("host", "192.0.2.7:4000");
        assert_eq!(judged_at(true, at, &[host, token, ("origin", "https://192.0.2.7:4000")]), None);
        assert_eq!(judged_at(true, at, &[host, token, ("origin", "http://192.0.2.7:4000")]), Some(403));
    }
}
