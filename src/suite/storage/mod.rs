//! Keeps runs and recordings in S3-compatible storage (the feature `s3`).
//!
//! A run folder, or the project's recordings, is a set of files:
//!
//! ```text
//! runs/NAME/manifest.json     paths, sizes and digests of its files
//! runs/NAME/files/SHA-256     the content of a file, under its digest
//! recordings/manifest.json, recordings/files/SHA-256
//! ```
//!
//! The manifest is written last, in one request, so that a set is there as a whole or not at all. Contents are never replaced
//! or removed. A push that ends early, at any byte, changes nothing that others see, and the next one goes on from there.
//!
//! | entry point | does |
//! |---|---|
//! | `Bucket` | the storage that a URL and the environment name |
//! | `push` | stores a set |
//! | `pull` | fetches and verifies a set |
//! | `list` | the sets that are there |

#[cfg(any(feature = "s3", test))]
mod manifest;

#[cfg(feature = "s3")]
mod bucket;
#[cfg(feature = "s3")]
mod client;
#[cfg(feature = "s3")]
mod error;
#[cfg(feature = "s3")]
mod pull;
#[cfg(feature = "s3")]
mod push;
#[cfg(all(feature = "s3", test))]
mod tests;

#[cfg(feature = "s3")]
pub(crate) use {bucket::Bucket, error::StorageError, pull::pull, push::push};

use schemars::JsonSchema;
use serde::Serialize;

/// Name of the recordings, of which a place has one set.
#[cfg(feature = "s3")]
pub(crate) const RECORDINGS: &str = "recordings";

/// What a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(any(feature = "s3", test)), expect(dead_code, reason = "the schema names them"))]
pub(crate) enum Kind {
    /// A run folder.
    Run,
    /// The recordings of a project.
    Recordings,
}

/// What became of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "s3"), expect(dead_code, reason = "the schema names them"))]
pub(crate) enum Outcome {
    /// It is in the storage; from `list`.
    Stored,
    /// Now in the storage.
    Pushed,
    /// Now in the folder.
    Pulled,
    /// It was there already.
    Unchanged,
    /// The same run was there, with other files beside the plan and the traces; what was there stays.
    Kept,
}

/// A set, as printed by `ragcheck storage`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StoredSet {
    /// Run folder, or recordings.
    pub kind: Kind,
    /// Name of the run folder; `recordings` for recordings.
    pub name: String,
    /// Number of files.
    pub files: usize,
    /// Their size together.
    pub bytes: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// Number of files that were sent or fetched; the others were there.
    pub transferred: usize,
    /// Files that differ from those that were there and stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<String>,
}
