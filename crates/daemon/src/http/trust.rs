//! The paths about users and organisations.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use shoal_api::{OrganisationForm, Problem, Reach, RevokeForm, Text, TrustView, UsageView, VouchForm};

use super::Shared;
use crate::elsewhere::Reply;
use crate::service::Wrong;

type Answer = Result<Reply, Wrong>;
type Given<T> = Result<Json<T>, JsonRejection>;

fn read<T>(given: Given<T>) -> Result<T, Wrong> {
    given.map(|Json(given)| given).map_err(|error| Wrong::nonsense(error.body_text()))
}

/// What this node knows of users and organisations
#[utoipa::path(get, path = "/v1/trust", tag = "users", responses((status = 200, body = TrustView)))]
pub(super) async fn trusted(State(shared): State<Shared>) -> Answer {
    Ok(Reply::json(200, &shared.service.trusted()?))
}

/// What users have used of the grid, as each host that answers has signed it
#[utoipa::path(get, path = "/v1/usage", tag = "users", responses((status = 200, body = UsageView)))]
pub(super) async fn usage(State(shared): State<Shared>) -> Answer {
    Ok(Reply::json(200, &shared.service.usage().await?))
}

/// A pass for a user whom this node vouches for
#[utoipa::path(
    post, path = "/v1/passes", tag = "users", request_body = VouchForm,
    responses((status = 201, body = Text), (status = 403, body = Problem))
)]
pub(super) async fn vouch(State(shared): State<Shared>, form: Given<VouchForm>) -> Answer {
    Ok(Reply::json(201, &shared.service.vouch(&read(form)?)?))
}

/// Trust an organisation's key
#[utoipa::path(
    post, path = "/v1/organisations", tag = "users", request_body = OrganisationForm,
    responses((status = 201, body = Reach), (status = 403, body = Problem))
)]
pub(super) async fn organisation(State(shared): State<Shared>, form: Given<OrganisationForm>) -> Answer {
    Ok(Reply::json(201, &shared.service.trust_organisation(&read(form)?)?))
}

/// Revoke a user or a pass in this node's name
#[utoipa::path(
    post, path = "/v1/revocations", tag = "users", request_body = RevokeForm,
    responses((status = 201, body = Reach), (status = 403, body = Problem))
)]
pub(super) async fn revoke(State(shared): State<Shared>, form: Given<RevokeForm>) -> Answer {
    Ok(Reply::json(201, &shared.service.revoke(&read(form)?)?))
}

/// Take a notice that an organisation has signed, and tell the grid
#[utoipa::path(
    post, path = "/v1/notices", tag = "users", request_body = Text,
    responses((status = 201, body = Reach), (status = 403, body = Problem))
)]
pub(super) async fn notice(State(shared): State<Shared>, form: Given<Text>) -> Answer {
    Ok(Reply::json(201, &shared.service.take_notice(&read(form)?)?))
}
