//! The paths about files.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::HeaderMap;
use serde::Deserialize;
use shoal_api::files::{Held, MANY_BYTES_MAX, PIECE_MAX};
use shoal_api::{FileList, Problem};
use shoal_model::{Digest, NodeId};

use super::Shared;
use super::jobs::{Answer, Asked, demanded, read};
use crate::elsewhere::{Question, Reply};
use crate::service::Wrong;
use crate::trust::demand::Verb;

/// Bytes of a request that brings files.
pub(super) fn limit() -> DefaultBodyLimit {
    DefaultBodyLimit::max(PIECE_MAX.max(MANY_BYTES_MAX))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PieceQuery {
    size: u64,
    #[serde(default)]
    offset: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FileQuery {
    offset: u64,
    /// Nodes that should have it, with commas between.
    at: String,
}

fn digest(text: &str) -> Result<Digest, Wrong> {
    let wrong = |error: shoal_model::digest::NoDigest| Problem::new(error.to_string()).field("digest");
    text.parse().map_err(|error| Wrong { status: 400, problem: wrong(error) })
}

fn whole(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Wrong> {
    body.map_err(|error| Wrong { status: error.status().as_u16(), problem: Problem::new(error.body_text()) })
}

/// Ask how much of some files the node has
#[utoipa::path(
    post, path = "/v1/files/held", tag = "files", request_body = Vec<Held>,
    responses((status = 200, body = Vec<Held>), (status = 413, body = Problem))
)]
pub(super) async fn held(
    State(shared): State<Shared>,
    body: Result<Json<Vec<Held>>, JsonRejection>,
) -> Answer {
    let Json(files) = body.map_err(|error| Wrong::nonsense(error.body_text()))?;
    Ok(Reply::json(200, &shared.service.held(files).await?))
}

/// Bring many small files: each as hash (32 bytes), size (8 bytes, little-endian) and bytes
#[utoipa::path(
    post, path = "/v1/files", tag = "files", request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "How many", body = u64), (status = 422, body = Problem))
)]
pub(super) async fn many(State(shared): State<Shared>, body: Result<Bytes, BytesRejection>) -> Answer {
    Ok(Reply::json(200, &shared.service.take_many(whole(body)?).await?))
}

/// Bring a piece of a file, which goes on where it broke off
#[utoipa::path(
    put, path = "/v1/files/{digest}", tag = "files",
    params(
        ("digest" = String, Path, description = "The BLAKE3 hash of the whole file"),
        ("size" = u64, Query, description = "The bytes of the whole file"),
        ("offset" = Option<u64>, Query, description = "Where this piece begins: what is there already"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "How much is there now", body = Held),
        (status = 409, description = "It goes on elsewhere, or another brings it", body = Problem),
        (status = 422, description = "What came is not what was announced", body = Problem),
        (status = 507, description = "No room", body = Problem),
    )
)]
pub(super) async fn piece(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    query: Asked<PieceQuery>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let PieceQuery { size, offset } = read(query)?;
    let piece = Held { digest: digest(&name)?, size, here: offset };
    Ok(Reply::json(200, &shared.service.take_piece(piece, whole(body)?).await?))
}

/// The bytes of a file by its hash, from one on
#[utoipa::path(
    get, path = "/v1/files/{digest}", tag = "files",
    params(
        ("digest" = String, Path), ("offset" = Option<u64>, Query),
        ("at" = Option<String>, Query, description = "Nodes that should have it, with commas between"),
    ),
    responses(
        (status = 200, description = "The bytes", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 404, body = Problem),
    )
)]
pub(super) async fn file(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    query: Asked<FileQuery>,
) -> Answer {
    let FileQuery { offset, at } = read(query)?;
    let nodes = at.split(',').filter(|node| !node.is_empty()).map(str::parse::<NodeId>);
    let wrong = |_| Wrong { status: 400, problem: Problem::new("`at` names no nodes").field("at") };
    let holders = nodes.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    shared.service.file(digest(&name)?, offset, &holders).await
}

/// The outputs of a job, of this node or of another
#[utoipa::path(
    get, path = "/v1/jobs/{job}/files", tag = "files",
    params(("job" = String, Path), ("shoal-demand" = Option<String>, Header, description = "What the job's user has signed")),
    responses((status = 200, body = FileList), (status = 404, body = Problem))
)]
pub(super) async fn files(
    State(shared): State<Shared>,
    Path(job): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let demand = demanded(&headers)?;
    shared.service.demand(&job, Verb::Files, demand, |job, by| Question::Files { job, by }).await
}
