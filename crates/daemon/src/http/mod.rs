//! The HTTP interface: on loopback, or in TLS; a token for every request, and nothing decided here.
//!
//! ```text
//! connection ─▶ place ─▶ TLS ─▶ request ─▶ guard ─▶ handler ─▶ Service ─▶ Reply
//!                                           Host (421), Origin (403), token (401), rate (429), time (408), size (413)
//! ```
//!
//! A page in a browser on this machine can send requests here, and DNS can be made to name this machine: so a foreign
//! `Host` or `Origin` is refused on every method, before the token is looked at.

mod files;
mod guard;
mod jobs;
mod limits;
mod metrics;
mod node;
mod serve;
mod slow;
pub mod tls;
mod trust;

use std::sync::Arc;

use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use shoal_model::envelope::MAX_ENVELOPE_BYTES;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::elsewhere::{Body, Reply};
use crate::service::{Service, Wrong};

pub use guard::{Door, REQUEST_TIME_MAX};
pub use limits::{ADDRESSES_MAX, REFUSALS_BURST, REFUSALS_PER_SECOND, REQUESTS_PER_SECOND};
pub use serve::{CONNECTIONS_MAX, HANDSHAKE_TIME_MAX, HEAD_TIME_MAX, STRANGERS_MAX, serve};
pub use slow::BODY_PAUSE_MAX;

/// The most bytes of a request: an envelope in JSON is somewhat longer than its own encoding.
pub const BODY_MAX: usize = 2 * MAX_ENVELOPE_BYTES;

/// What every handler has.
#[derive(Clone)]
struct Shared {
    service: Arc<Service>,
    metrics: Arc<metrics::Metrics>,
    document: Arc<Document>,
}

/// What is told of the interface in its document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Shoal",
        description = "A job scheduler with no head node: what its program `shoal` does, for other programs. Every \
                       request carries the token in the file `token` of the node's folder: `Authorization: Bearer …`."
    ),
    components(schemas(shoal_api::JobForm, shoal_api::Problem, shoal_api::State, shoal_api::EventView)),
    security(("token" = []))
)]
struct Interface;

/// The document of the interface, with every path that it answers.
pub fn document() -> Document {
    routes().split_for_parts().1
}

fn routes() -> OpenApiRouter<Shared> {
    let mut document = Interface::openapi();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let components = document.components.get_or_insert_default();
    let token = utoipa::openapi::security::Http::new(utoipa::openapi::security::HttpAuthScheme::Bearer);
    components.add_security_scheme("token", utoipa::openapi::security::SecurityScheme::Http(token));
    OpenApiRouter::with_openapi(document)
        .routes(routes!(jobs::submit, jobs::list))
        .routes(routes!(jobs::queue))
        .routes(routes!(jobs::list_of_grid))
        .routes(routes!(jobs::queue_of_grid))
        .routes(routes!(jobs::status))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::hold))
        .routes(routes!(jobs::release))
        .routes(routes!(jobs::why))
        .routes(routes!(jobs::wait))
        .routes(routes!(jobs::logs))
        .routes(routes!(jobs::secrets))
        .routes(routes!(files::files))
        .routes(routes!(files::held))
        .routes(routes!(files::many).layer(files::limit()))
        .routes(routes!(files::piece, files::file).layer(files::limit()))
        .routes(routes!(jobs::job_events))
        .routes(routes!(jobs::events))
        .routes(routes!(node::info))
        .routes(routes!(node::nodes))
        .routes(routes!(node::calendar))
        .routes(routes!(node::doctor))
        .routes(routes!(node::ticket))
        .routes(routes!(node::leave))
        .routes(routes!(trust::trusted))
        .routes(routes!(trust::usage))
        .routes(routes!(trust::vouch))
        .routes(routes!(trust::organisation))
        .routes(routes!(trust::revoke))
        .routes(routes!(trust::notice))
        .routes(routes!(node::openapi))
        .routes(routes!(node::metrics))
}

/// All that the interface answers, guarded.
pub fn router(service: Arc<Service>, door: Door) -> Router {
    let (router, document) = routes().split_for_parts();
    let metrics = Arc::new(metrics::Metrics::new());
    let shared = Shared { service, metrics: Arc::clone(&metrics), document: Arc::new(document) };
    let guard = guard::Guard::new(door, metrics);
    router
        .fallback(|| async { Wrong::nowhere().into_response() })
        .method_not_allowed_fallback(|| async { Wrong::no_such_method().into_response() })
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(Arc::new(guard), guard::check))
        .with_state(shared)
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.head.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let kind = HeaderValue::from_str(&self.head.kind)
            .unwrap_or(HeaderValue::from_static("application/octet-stream"));
        let body = match self.body {
            Body::Whole(bytes) => HttpBody::from(bytes),
            Body::Parts(parts) => HttpBody::from_stream(parts),
        };
        let mut response = (status, body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        let mut response = self.reply().into_response();
        if self.status == 429 {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl Wrong {
    fn nowhere() -> Wrong {
        let problem = shoal_api::Problem::new("there is nothing here");
        Wrong { status: 404, problem: problem.hint("/v1/openapi.json lists every path") }
    }

    fn no_such_method() -> Wrong {
        let problem = shoal_api::Problem::new("this path does not take that method");
        Wrong { status: 405, problem: problem.hint("/v1/openapi.json lists every path") }
    }
}
