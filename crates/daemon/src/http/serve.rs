//! Connections: taken, given a place, wrapped in TLS where others could listen in, and cut when they dawdle.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::places::{Place, Places};

/// Connections at once of who has shown the token.
pub const CONNECTIONS_MAX: usize = 1_024;
/// Connections at once of who has not.
pub const STRANGERS_MAX: usize = 256;
/// No more than this part of the files that the system lets this program open are connections of either kind.
const FILES_PART: usize = 4;
/// The longest that the head of a request may take, and that a connection may say nothing: longer than clients keep one.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(20);
/// The longest that a TLS handshake may take.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Before the next try, when the system has no more files.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers until `end` comes, and then only what was asked before.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    end: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let files = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE);
    let part = files.map_or(usize::MAX, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX)) / FILES_PART;
    let places = Places::new(CONNECTIONS_MAX.min(part).max(8), STRANGERS_MAX.min(part).max(8));
    let (closing, _) = watch::channel(false);
    tokio::pin!(end);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut end => break,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot take a connection: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(at) = stream.local_addr() else { continue };
        let place = places.enter(canonical(from).ip(), canonical(at));
        let (tls, router, closes) = (tls.clone(), router.clone(), closing.subscribe());
        tokio::spawn(async move {
            tokio::select! {
                () = one(stream, tls, router, &place, closes) => {}
                () = place.must_leave() => {}
            }
        });
    }
    drop(listener);
    // It fails if nobody is there to hear it.
    let _ = closing.send(true);
    closing.closed().await;
    Ok(())
}

/// One and the same address, whichever way it is written.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

async fn one(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    place: &Arc<Place>,
    closes: watch::Receiver<bool>,
) {
    // Answers are small, and somebody waits for each.
    let _ = stream.set_nodelay(true);
    match tls {
        None => talk(stream, router, place, closes).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)).await {
                talk(stream, router, place, closes).await;
            }
        }
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    place: &Arc<Place>,
    mut closes: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let place = Arc::clone(place);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&place));
        let router = router.clone();
        async move {
            let answer: Result<Response<Body>, Infallible> =
                hyper::service::Service::call(&router, request.map(Body::new)).await;
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    tokio::select! {
        // Whoever breaks off needs no answer.
        _ = connection.as_mut() => return,
        _ = closes.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
