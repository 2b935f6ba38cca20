//! Who may do what, as the interface shows it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shoal_model::units::TimeText;
use utoipa::ToSchema;

/// What a node knows of users and organisations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrustView {
    /// The grid's key.
    pub grid: String,
    /// The node's organisation, by its membership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
    /// Whether its word counts for the whole grid.
    pub admitter: bool,
    /// The organisations whose keys it trusts.
    pub organisations: BTreeMap<String, String>,
    /// What was revoked, as far as it has heard.
    pub revoked: Vec<RevokedView>,
}

/// Something that was revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevokedView {
    /// The key of a user, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The serial of a pass, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The key of who revoked it.
    pub by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: TimeText,
}

/// A pass, or a notice, as a line of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Text {
    /// The line.
    pub text: String,
}

/// A user whom the node shall vouch for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VouchForm {
    /// The user's key.
    pub key: String,
    /// What the user is called.
    pub name: String,
    /// For how long, as in `30d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
}

/// An organisation that shall be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganisationForm {
    /// What it is called.
    pub name: String,
    /// Its key.
    pub key: String,
}

/// What shall be revoked: a user or a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RevokeForm {
    /// The key of a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The serial of a pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
}

/// How far a word reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reach {
    /// In plain words.
    pub reach: String,
}
