//! Files as the interface shows them: what comes in, and what jobs left behind.

use serde::{Deserialize, Serialize};
use shoal_model::Digest;
use utoipa::ToSchema;

/// The most files that are asked about at once.
pub const ASKED_MAX: usize = 4_096;
/// The most bytes of a file that come with one request.
pub const PIECE_MAX: usize = 32 << 20;
/// The most bytes of a request that brings many small files: each as its hash (32 bytes), its size (8 bytes,
/// little-endian) and its bytes.
pub const MANY_BYTES_MAX: usize = 16 << 20;

/// A file, and how much of it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Held {
    /// The BLAKE3 hash of its bytes.
    #[schema(value_type = String)]
    pub digest: Digest,
    /// Its bytes.
    pub size: u64,
    /// How many of them are there; it goes on from here.
    #[serde(default)]
    pub here: u64,
}

/// The outputs of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileList {
    /// The files, by rank and path.
    pub files: Vec<FileView>,
    /// Patterns that matched nothing, each with its rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<Unmatched>,
    /// What matched and was left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Ranks whose outputs are not known; they have not ended, or nobody who has them can be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<u32>,
}

/// A file that a task left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileView {
    /// Which part of the job left it.
    pub rank: u32,
    /// Where, in the task's folder.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// The BLAKE3 hash of its bytes.
    #[schema(value_type = String)]
    pub digest: Digest,
    /// Whether it can be run.
    #[serde(default)]
    pub executable: bool,
    /// Nodes that should have it.
    pub holders: Vec<String>,
}

/// A pattern that matched nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unmatched {
    /// Of which part of the job.
    pub rank: u32,
    /// The pattern.
    pub pattern: String,
}

/// Something that is no output though it matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOut {
    /// Of which part of the job.
    pub rank: u32,
    /// Where.
    pub path: String,
    /// Why.
    pub why: String,
}
