//! The one way to make a recording, of a trial here, of an agent that runs elsewhere, and of a grading.
//!
//! What goes through [`Recorder::transport`] is kept. The file is written beside its place, loaded again, and takes the
//! place of an earlier recording only when whoever records found that it replays to the same.

use crate::cassette::{Cassette, CassetteError, Header, LocalTimes, Redactor, StoppingDesign};
use crate::platform::clock::Clock;
use crate::platform::files;
use crate::transport::{RecordTransport, Transport};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is recorded, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// The scenario's name.
    pub scenario: String,
    /// The case's name.
    pub case: String,
    /// The lane.
    pub lane: String,
    /// The file.
    pub path: PathBuf,
    /// The file as messages name it.
    pub shown: PathBuf,
    /// Where its long texts are.
    pub blobs: PathBuf,
    /// The providers' names, by service.
    pub providers: BTreeMap<String, String>,
    /// What the trial puts to the test, see [`Plan::subject`](crate::plan::Plan::subject); empty of a grading.
    pub tested: String,
    /// What waits between attempts are drawn from.
    pub seed: u64,
    /// The design of the run until decided that records it.
    pub stopping: Option<StoppingDesign>,
}

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordingError {
    /// It cannot be written, or what was written cannot be read.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    /// It cannot take its place.
    #[error("{}: cannot be written: {error}", path.display())]
    Place {
        /// The file, as messages name it.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl RecordingError {
    /// What every further recording would meet as well, and what to do about it.
    pub(super) fn lasting(&self) -> Option<(&'static str, &'static str)> {
        let (Self::Cassette(CassetteError::Write { error, .. }) | Self::Place { error, .. }) = self else {
            return None;
        };
        if files::is_full_disk(error) {
            return Some(("the disk is full", "free some space"));
        }
        let denied = matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
        denied.then_some(("recordings cannot be written", "let this user write to their folder"))
    }
}

/// A recording in the making.
pub(crate) struct Recorder {
    subject: Subject,
    transport: Arc<RecordTransport>,
    started: jiff::Timestamp,
}

impl Recorder {
    /// Begins to record what goes through [`Recorder::transport`] to `below`; `redactor` knows every key in use.
    pub(crate) fn begin(
        subject: Subject,
        below: Arc<dyn Transport>,
        clock: &Arc<dyn Clock>,
        redactor: Arc<Redactor>,
    ) -> Self {
        let transport = Arc::new(RecordTransport::new(below, Arc::clone(clock), redactor));
        Self { subject, transport, started: clock.wall() }
    }

    /// What records.
    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport) as Arc<dyn Transport>
    }

    /// The redactor in use: what was given, and the keys that requests brought with them.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.transport.redactor()
    }

    /// Writes what was recorded beside its place, and reads it again. `times` are those of local stages, `vars` the
    /// values that the agent generated, `knowledge` what is pinned of what was searched: a hash, or the declaration of a
    /// base that was not asked.
    ///
    /// # Errors
    /// [`RecordingError::Cassette`] when it cannot be written or read again.
    pub(crate) fn write(
        self,
        times: &LocalTimes,
        vars: BTreeMap<String, Vec<String>>,
        knowledge: String,
        redactor: &Redactor,
    ) -> Result<(Cassette, Written), RecordingError> {
        let Subject { scenario, case, lane, path, shown, blobs, providers, tested, seed, stopping } = self.subject;
        let (take, takes) = Cassette::next_take(&path, &blobs);
        let header = Header {
            scenario,
            case,
            lane,
            recorded_at: self.started.round(jiff::Unit::Second).unwrap_or(self.started),
            recorded_from: self.transport.recorded_from(&providers),
            recorder: format!("ragcheck {}", env!("CARGO_PKG_VERSION")),
            knowledge,
            seed,
            subject: tested,
            take,
            takes,
            profiles: self.transport.profiles(),
            vars,
            stopping,
        };
        let unplaced = |error| RecordingError::Place { path: shown.clone(), error };
        let folder = files::temporary_folder(path.parent().unwrap_or(&path)).map_err(unplaced)?;
        let beside = folder.path().join("lane.yaml");
        Cassette::new(header, self.transport.finish(), times.stages()).save(&beside, &blobs, redactor)?;
        let cassette = Cassette::load_as(&beside, &shown, &blobs)?;
        Ok((cassette, Written { _folder: folder, beside, path, shown }))
    }
}

/// A recording that has not taken its place; an earlier one is whole. Dropped, it is gone.
pub(crate) struct Written {
    _folder: files::TemporaryFolder,
    beside: PathBuf,
    path: PathBuf,
    shown: PathBuf,
}

impl Written {
    /// Takes its place, and makes that last.
    ///
    /// # Errors
    /// [`RecordingError::Place`].
    pub(crate) fn place(self) -> Result<(), RecordingError> {
        let Self { _folder, beside, path, shown } = self;
        let folder = path.parent().unwrap_or(&path);
        let placed = files::create_dir_all(folder).and_then(|()| files::move_file(&beside, &path));
        placed.map_err(|error| RecordingError::Place { path: shown, error })?;
        files::sync_folder(folder);
        Ok(())
    }
}

/// A path as messages write it: below `root`.
pub(super) fn below<'p>(root: &Path, path: &'p Path) -> &'p Path {
    path.strip_prefix(root).unwrap_or(path)
}
