//! Who may ask, how long, and how many at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use shoal_api::Problem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::metrics::Metrics;
use crate::service::Wrong;

/// Connections at once; further ones wait until one ends.
pub const CONNECTIONS_MAX: usize = 1_024;
/// The longest that an answer may take to begin. Who asks to wait is answered before.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(90);

/// What a request must show.
pub(super) struct Guard {
    token: String,
    /// How this node is called by who means it.
    hosts: Vec<String>,
    metrics: Arc<Metrics>,
}

impl Guard {
    pub fn new(token: String, address: SocketAddr, metrics: Arc<Metrics>) -> Guard {
        let port = address.port();
        let names = ["127.0.0.1", "localhost", "[::1]"];
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        hosts.push(address.to_string());
        Guard { token, hosts, metrics }
    }

    fn judge(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<(), Wrong> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = authority.or(text(header::HOST)).unwrap_or_default();
        if !self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) {
            let problem = Problem::new("this node is not the host that was asked for");
            return Err(Wrong { status: 421, problem: problem.field("host") });
        }
        if let Some(origin) = text(header::ORIGIN)
            && !self.hosts.iter().any(|own| origin.strip_prefix("http://") == Some(own))
        {
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
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let response = match guard.judge(request.headers(), authority.as_deref()) {
        Err(wrong) => wrong.into_response(),
        Ok(()) => match tokio::time::timeout(REQUEST_TIME_MAX, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                let problem = Problem::new("the request took too long");
                Wrong { status: 408, problem }.into_response()
            }
        },
    };
    let path = path.unwrap_or_else(|| "other".to_owned());
    guard.metrics.answered(method.as_str(), &path, response.status().as_u16(), began.elapsed());
    response
}

/// A listener that takes so many connections at once and no more.
pub(super) struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

/// A connection that has a place.
pub(super) struct Placed {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl Limited {
    pub fn new(listener: TcpListener) -> Limited {
        Limited { listener, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for Limited {
    type Io = Placed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Placed, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("the places are never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Answers are small, and somebody waits for each.
        let _ = stream.set_nodelay(true);
        (Placed { stream, _place: place }, address)
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

use std::pin::Pin;
use std::task::{Context, Poll};

impl AsyncRead for Placed {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Placed {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(headers: &[(&str, &str)]) -> Option<u16> {
        let address = "127.0.0.1:4000".parse().unwrap();
        let guard = Guard::new("secret".to_owned(), address, Arc::new(Metrics::new()));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(axum::http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        guard.judge(&map, None).err().map(|wrong| wrong.status)
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
}
