//! Manages recordings: finds stale and missing ones, estimates re-recording, and changes their files.
//!
//! | entry point | does |
//! |---|---|
//! | `stale`, [`notes`] | finds recordings that are too old, no longer fit their trial, or belong to none |
//! | [`Catalogue`] | lists the tools of MCP servers, and names cases that a changed list concerns |
//! | `note_model_ends`, `model_end_notes` | keeps what providers announce of their models' ends, and names models that end soon |
//! | [`broken`] | finds recordings that are cut off or no cassettes |
//! | [`unrecorded`] | finds cases with trials that have no recording |
//! | [`refresh`](fn@refresh) | finds the trials to record again, and what that takes |
//! | [`diff`](fn@diff) | sends recorded requests again and compares the shapes of the answers |
//! | [`import`](fn@import) | makes a cassette of what another recorder wrote |
//! | [`rekey`](fn@rekey) | computes the keys of a cassette again |
//! | [`scan`](fn@scan) | finds secrets in files |
//! | [`writable`](fn@writable) | finds out whether recordings can be written, before anything is sent |
//! | [`lock`](fn@lock) | keeps other writers of recordings out |
//!
//! Nothing here prints, and nothing here records: that is a run in record mode.

mod catalogue;
mod diff;
mod drift;
mod files;
mod import;
mod lock;
mod model_ends;
mod refresh;
mod rekey;
mod resend;
mod scan;
mod spending;
mod staleness;
mod starts;
mod writable;

pub(crate) use catalogue::Catalogue;
pub(crate) use diff::{DiffError, ServiceDiff, diff};
pub(crate) use drift::RequestPart;
pub(crate) use files::{CassetteFile, cassettes};
pub(crate) use import::{CaseNames, Import, ImportError, import, import_files, is_name};
pub(crate) use lock::lock;
pub(crate) use model_ends::{model_end_notes, note_model_ends};
pub(crate) use refresh::{Refresh, RefreshCost, refresh};
pub(crate) use rekey::rekey;
pub(crate) use scan::{known_secrets, scan, scan_files};
pub(crate) use spending::{Spending, spending, unbounded, unpriced};
pub(crate) use staleness::{Ages, broken, lane_file, notes, unrecorded, would_miss};
pub(crate) use starts::{spending_at_start, start_lanes};
pub(crate) use writable::{Unwritable, writable, writable_folders};

use std::io;
use std::path::PathBuf;

/// A file or folder of recordings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// It cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    /// No named path is a cassette.
    #[error("there is no cassette: a cassette is a .yaml file below fixtures/cassettes")]
    NoCassette,
}
