//! The paths about jobs.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use serde::Deserialize;
use shoal_api::{JobForm, JobPage, JobStatus, LogQuery, Problem, Until, Why};
use shoal_model::{JobId, Nonce, Span};

use super::Shared;
use crate::elsewhere::{Question, Reply};
use crate::service::{ListQuery, Order, Submission, WAIT_MAX, Wrong, read_nonce, read_span};
use crate::trust::demand::Verb;

pub(super) type Answer = Result<Reply, Wrong>;
pub(super) type Asked<T> = Result<Query<T>, QueryRejection>;

/// What a submission may say in its query.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SubmitQuery {
    wait: Option<String>,
}

/// What a wait may say in its query.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WaitQuery {
    until: Until,
    most: Option<String>,
}

/// Reads a query, or says which part of it makes no sense.
pub(super) fn read<T>(query: Asked<T>) -> Result<T, Wrong> {
    query.map(|Query(query)| query).map_err(|error| Wrong::nonsense(error.body_text()))
}

/// Tell the node the secrets of a job that is about to be submitted
#[utoipa::path(
    put, path = "/v1/jobs/{job}/secrets", tag = "jobs",
    params(("job" = String, Path, description = "The whole id of the job")),
    request_body(content = BTreeMap<String, String>, description = "What each is, in base64, by name"),
    responses((status = 200, description = "They are on disk, sealed"), (status = 413, body = Problem))
)]
pub(super) async fn secrets(
    State(shared): State<Shared>,
    Path(job): Path<String>,
    body: Result<Json<BTreeMap<String, String>>, JsonRejection>,
) -> Answer {
    // What the rejection says may quote a secret.
    let Json(secrets) =
        body.map_err(|_| Wrong::nonsense("expected secrets in base64 by their names, in JSON"))?;
    let whole = |_| Wrong::nonsense("expected the whole id of a job, of 32 hexadecimal digits");
    shared.service.keep_secrets(job.parse::<JobId>().map_err(whole)?, secrets).await?;
    Ok(Reply::json(200, &()))
}

/// What a user has signed; nothing, where the caller acts as the node's owner.
pub(super) fn demanded(headers: &HeaderMap) -> Result<Option<String>, Wrong> {
    let Some(text) = headers.get(shoal_api::DEMAND) else { return Ok(None) };
    let wrong = |_| Wrong::nonsense("the demand is no text");
    text.to_str().map(|text| Some(text.to_owned())).map_err(wrong)
}

/// Submit a job
///
/// As an envelope (`application/cbor`) that its user has signed, or as a job in JSON or TOML, which the node signs. Answered
/// once the job is on disk.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", request_body(content(
        (JobForm = "application/json"), (String = "application/toml"), (Vec<u8> = "application/cbor")
    )),
    params(
        ("wait" = Option<String>, Query, description = "How long to wait for the plan, as in 500ms"),
        ("shoal-nonce" = Option<String>, Header, description = "Makes a job that is sent again the same job"),
    ),
    responses(
        (status = 201, description = "It is accepted: on disk", body = JobStatus),
        (status = 200, description = "It was accepted before", body = JobStatus),
        (status = 422, description = "It cannot be done", body = Problem),
    )
)]
pub(super) async fn submit(
    State(shared): State<Shared>,
    query: Asked<SubmitQuery>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Answer {
    let query = read(query)?;
    let body = body.map_err(|error| Wrong {
        status: error.status().as_u16(),
        problem: Problem::new(error.body_text()),
    })?;
    let wait = read_span("wait", query.wait.as_deref(), Span::ZERO)?;
    let nonce = match headers.get(shoal_api::NONCE) {
        Some(text) => Some(read_nonce(text.to_str().unwrap_or_default())?),
        None => None,
    };
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let submission = match kind.as_str() {
        shoal_api::ENVELOPE => Submission::Envelope(body.into()),
        "" | "application/json" => Submission::Json(body.into(), nonce),
        shoal_api::TOML => match String::from_utf8(body.into()) {
            Ok(text) => Submission::Toml(text, nonce),
            Err(_) => return Err(Wrong::nonsense("the job is no text")),
        },
        _ => {
            let problem =
                Problem::new(format!("a job of kind `{kind}` cannot be read")).field("content-type");
            let hint = "send application/json, application/toml or application/cbor";
            return Err(Wrong { status: 415, problem: problem.hint(hint) });
        }
    };
    let drawn =
        shoal_api::secret::draw().map_err(|error| Wrong::unavailable(format!("no chance: {error}")))?;
    let has_signer = matches!(submission, Submission::Envelope(_));
    let envelope = submission.read(|| Nonce(drawn))?;
    let envelope = if has_signer { envelope } else { shared.service.seal(envelope, nonce.is_some())? };
    let (new, status) = shared.service.submit(envelope, wait).await?;
    Ok(Reply::json(if new { 201 } else { 200 }, &status))
}

/// List the jobs that this node accepted, the last one first
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs",
    params(ListQuery),
    responses((status = 200, body = JobPage), (status = 400, body = Problem))
)]
pub(super) async fn list(State(shared): State<Shared>, query: Asked<ListQuery>) -> Answer {
    let page: JobPage = shared.service.list(&read(query)?, Order::Latest).await?.into();
    Ok(Reply::json(200, &page))
}

/// List the jobs that have not ended, by their start
#[utoipa::path(
    get, path = "/v1/queue", tag = "jobs",
    params(ListQuery),
    responses((status = 200, body = JobPage), (status = 400, body = Problem))
)]
pub(super) async fn queue(State(shared): State<Shared>, query: Asked<ListQuery>) -> Answer {
    let page: JobPage = shared.service.list(&read(query)?, Order::Queue).await?.into();
    Ok(Reply::json(200, &page))
}

/// List the jobs of all nodes that answer, the last one first
#[utoipa::path(
    get, path = "/v1/grid/jobs", tag = "jobs",
    params(ListQuery),
    responses((status = 200, body = JobPage), (status = 400, body = Problem))
)]
pub(super) async fn list_of_grid(State(shared): State<Shared>, query: Asked<ListQuery>) -> Answer {
    Ok(Reply::json(200, &shared.service.list_of_grid(&read(query)?, Order::Latest).await?))
}

/// List the jobs of all nodes that have not ended, by their start
#[utoipa::path(
    get, path = "/v1/grid/queue", tag = "jobs",
    params(ListQuery),
    responses((status = 200, body = JobPage), (status = 400, body = Problem))
)]
pub(super) async fn queue_of_grid(State(shared): State<Shared>, query: Asked<ListQuery>) -> Answer {
    Ok(Reply::json(200, &shared.service.list_of_grid(&read(query)?, Order::Queue).await?))
}

/// What is known of a job, of this node or of another
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "jobs",
    params(("job" = String, Path, description = "Its id, shortened as long as it is unambiguous")),
    responses((status = 200, body = JobStatus), (status = 404, body = Problem), (status = 409, body = Problem))
)]
pub(super) async fn status(State(shared): State<Shared>, Path(job): Path<String>) -> Answer {
    shared.service.ask_owner(&job, |job| Question::Status { job }).await
}

/// Take a job back
#[utoipa::path(
    post, path = "/v1/jobs/{job}/cancel", tag = "jobs",
    params(("job" = String, Path), ("shoal-demand" = Option<String>, Header, description = "What the job's user has signed")),
    responses((status = 200, body = JobStatus), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem))
)]
pub(super) async fn cancel(
    State(shared): State<Shared>,
    Path(job): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let demand = demanded(&headers)?;
    shared.service.demand(&job, Verb::Cancel, demand, |job, by| Question::Cancel { job, by }).await
}

/// Keep a job from starting
#[utoipa::path(
    post, path = "/v1/jobs/{job}/hold", tag = "jobs",
    params(("job" = String, Path), ("shoal-demand" = Option<String>, Header, description = "What the job's user has signed")),
    responses((status = 200, body = JobStatus), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem))
)]
pub(super) async fn hold(
    State(shared): State<Shared>,
    Path(job): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let demand = demanded(&headers)?;
    shared.service.demand(&job, Verb::Hold, demand, |job, by| Question::Hold { job, by }).await
}

/// Let a job start that was held
#[utoipa::path(
    post, path = "/v1/jobs/{job}/release", tag = "jobs",
    params(("job" = String, Path), ("shoal-demand" = Option<String>, Header, description = "What the job's user has signed")),
    responses((status = 200, body = JobStatus), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem))
)]
pub(super) async fn release(
    State(shared): State<Shared>,
    Path(job): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let demand = demanded(&headers)?;
    shared.service.demand(&job, Verb::Release, demand, |job, by| Question::Release { job, by }).await
}

/// Why a job is where it is
#[utoipa::path(
    get, path = "/v1/jobs/{job}/why", tag = "jobs", params(("job" = String, Path)),
    responses((status = 200, body = Why), (status = 404, body = Problem))
)]
pub(super) async fn why(State(shared): State<Shared>, Path(job): Path<String>) -> Answer {
    shared.service.ask_owner(&job, |job| Question::Why { job }).await
}

/// Wait until a job is so far, at most a minute
#[utoipa::path(
    get, path = "/v1/jobs/{job}/wait", tag = "jobs",
    params(
        ("job" = String, Path),
        ("until" = Option<Until>, Query, description = "How far"),
        ("most" = Option<String>, Query, description = "How long at most, as in 30s"),
    ),
    responses((status = 200, body = JobStatus), (status = 404, body = Problem))
)]
pub(super) async fn wait(
    State(shared): State<Shared>,
    Path(job): Path<String>,
    query: Asked<WaitQuery>,
) -> Answer {
    let query = read(query)?;
    let most = read_span("most", query.most.as_deref(), WAIT_MAX)?.min(WAIT_MAX);
    let most_ms = most.as_micros() / 1_000;
    shared.service.ask_owner(&job, |job| Question::Wait { job, until: query.until, most_ms }).await
}

/// An output of a job, wherever it runs
#[utoipa::path(
    get, path = "/v1/jobs/{job}/logs", tag = "jobs",
    params(
        ("job" = String, Path), LogQuery,
        ("shoal-demand" = Option<String>, Header, description = "What the job's user has signed"),
    ),
    responses(
        (status = 200, description = "The bytes", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 404, body = Problem),
    )
)]
pub(super) async fn logs(
    State(shared): State<Shared>,
    Path(job): Path<String>,
    query: Asked<LogQuery>,
    headers: HeaderMap,
) -> Answer {
    let query = read(query)?;
    let demand = demanded(&headers)?;
    shared.service.demand(&job, Verb::Logs, demand, |job, by| Question::Logs { job, query, by }).await
}

/// What happened to a job, and what happens until it is over, as server-sent events
#[utoipa::path(
    get, path = "/v1/jobs/{job}/events", tag = "jobs", params(("job" = String, Path)),
    responses(
        (status = 200, description = "Events; the data of each is an EventView", body = String,
         content_type = "text/event-stream"),
        (status = 404, body = Problem),
    )
)]
pub(super) async fn job_events(State(shared): State<Shared>, Path(job): Path<String>) -> Answer {
    shared.service.ask_owner(&job, |job| Question::Events { job }).await
}

/// All that this node tells, as server-sent events
#[utoipa::path(
    get, path = "/v1/events", tag = "node",
    params(("last-event-id" = Option<u64>, Header, description = "Go on after this event")),
    responses((
        status = 200, description = "Events; the data of each is an EventView", body = String,
        content_type = "text/event-stream"
    ))
)]
pub(super) async fn events(State(shared): State<Shared>, headers: HeaderMap) -> Answer {
    let after = match headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default().parse()) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => {
            let problem = Problem::new("`last-event-id` is no number").field("last-event-id");
            return Err(Wrong { status: 400, problem });
        }
    };
    Ok(shared.service.events(after))
}
