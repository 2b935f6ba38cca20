//! What users have used, as hosts say.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What one user has used of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Used {
    /// Who; none if that was not known any more when a task ended.
    pub user: Option<String>,
    /// On whose behalf.
    pub organisation: Option<String>,
    /// Tasks that ended there.
    pub tasks: u64,
    /// Cores times milliseconds.
    pub core_milliseconds: u64,
}

/// What a host says was used of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostUsage {
    /// The host.
    pub node: String,
    /// Its key.
    pub key: String,
    /// What each user has used.
    pub used: Vec<Used>,
    /// The host's signature, in hexadecimal.
    pub signature: String,
}

/// What all hosts that answered say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageView {
    /// The one that was asked first.
    pub hosts: Vec<HostUsage>,
}
