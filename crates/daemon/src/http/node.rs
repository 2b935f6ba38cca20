//! The paths about nodes, and about the interface itself.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use shoal_api::{CalendarView, Doctor, Info, Leaving, NodeList, Problem, Ticket};
use shoal_model::{Name, NodeId, Span};

use super::Shared;
use super::jobs::read;
use crate::elsewhere::{Body, Head, Reply};
use crate::service::{Wrong, read_span};

type Answer = Result<Reply, Wrong>;
type Asked<T> = Result<Query<T>, QueryRejection>;

/// How much of a calendar is shown, where nobody says.
const CALENDAR_DEFAULT: Span = Span::from_hours(24);
/// How long a ticket lasts, where nobody says.
const TICKET_DEFAULT: Span = Span::from_hours(24);

/// Which part of which calendar.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CalendarQuery {
    node: Option<String>,
    span: Option<String>,
}

/// How long a ticket lasts, whose machine it lets in, and whether that lets in others.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TicketQuery {
    lasts: Option<String>,
    organisation: Option<Name>,
    admitter: bool,
}

/// Whether to leave at once.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LeaveQuery {
    now: bool,
}

/// The node that answers
#[utoipa::path(get, path = "/v1", tag = "node", responses((status = 200, body = Info)))]
pub(super) async fn info(State(shared): State<Shared>) -> Answer {
    Ok(Reply::json(200, &shared.service.info().await?))
}

/// The nodes of the grid
#[utoipa::path(get, path = "/v1/nodes", tag = "grid", responses((status = 200, body = NodeList)))]
pub(super) async fn nodes(State(shared): State<Shared>) -> Answer {
    Ok(Reply::json(200, &shared.service.nodes().await?))
}

/// What is reserved on a node from now on
#[utoipa::path(
    get, path = "/v1/calendar", tag = "grid",
    params(
        ("node" = Option<String>, Query, description = "Which node; this one, where nobody says"),
        ("span" = Option<String>, Query, description = "For how long, as in 6h"),
    ),
    responses((status = 200, body = CalendarView), (status = 400, body = Problem))
)]
pub(super) async fn calendar(State(shared): State<Shared>, query: Asked<CalendarQuery>) -> Answer {
    let query = read(query)?;
    let span = read_span("span", query.span.as_deref(), CALENDAR_DEFAULT)?;
    let node = match query.node {
        None => shared.service.setting().me,
        Some(text) => text.parse::<NodeId>().map_err(|error| {
            let problem = Problem::new(error.to_string()).field("node");
            Wrong { status: 400, problem: problem.hint("`shoal nodes` lists them") }
        })?,
    };
    shared.service.calendar_of(node, span).await
}

/// How this node feels
#[utoipa::path(get, path = "/v1/doctor", tag = "node", responses((status = 200, body = Doctor)))]
pub(super) async fn doctor(State(shared): State<Shared>) -> Answer {
    Ok(Reply::json(200, &shared.service.doctor().await?))
}

/// A ticket with which another machine joins
#[utoipa::path(
    post, path = "/v1/tickets", tag = "grid",
    params(
        ("lasts" = Option<String>, Query, description = "For how long, as in 1h"),
        ("organisation" = Option<String>, Query, description = "Whose machine it will be; this node's, where nobody says"),
        ("admitter" = Option<bool>, Query, description = "Whether it lets in others, too"),
    ),
    responses((status = 201, body = Ticket), (status = 503, body = Problem))
)]
pub(super) async fn ticket(State(shared): State<Shared>, query: Asked<TicketQuery>) -> Answer {
    let TicketQuery { lasts, organisation, admitter } = read(query)?;
    let lasts = read_span("lasts", lasts.as_deref(), TICKET_DEFAULT)?;
    Ok(Reply::json(201, &shared.service.ticket(lasts, organisation, admitter)?))
}

/// Take no more jobs, and end once those that there are are over; asked again until it is done
#[utoipa::path(
    post, path = "/v1/leave", tag = "node",
    params(("now" = Option<bool>, Query, description = "End at once; what runs goes on without the node")),
    responses((status = 200, body = Leaving))
)]
pub(super) async fn leave(State(shared): State<Shared>, query: Asked<LeaveQuery>) -> Answer {
    Ok(Reply::json(200, &shared.service.leave(read(query)?.now).await?))
}

/// This document
#[utoipa::path(get, path = "/v1/openapi.json", tag = "node", responses((status = 200, body = serde_json::Value)))]
pub(super) async fn openapi(State(shared): State<Shared>) -> Answer {
    Ok(Reply::json(200, &*shared.document))
}

/// Figures for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "node",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(shared): State<Shared>) -> Answer {
    let text = shared.metrics.write(&shared.service).await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8".to_owned();
    Ok(Reply { head: Head { status: 200, kind }, body: Body::Whole(Bytes::from(text)) })
}
