//! Makes every kind of recording: of built-in flows, of external agents, and of gradings.
//!
//! Records what passes through [`Recorder::transport`]. The file is written beside its final path and loaded again. It
//! replaces an earlier recording only after the caller has verified that it replays equally.

use crate::cassette::{Cassette, CassetteError, Header, LocalTimes, Redactor, StoppingDesign};
use crate::platform::clock::Clock;
use crate::platform::files;
use crate::trace::HeldCalls;
use crate::transport::{RecordTransport, Transport};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Identity of a recording, and where it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// The scenario's name.
    pub scenario: String,
    /// The case's name.
    pub case: String,
    pub lane: String,
    pub path: PathBuf,
    /// Path shown in messages.
    pub shown: PathBuf,
    /// Folder of its long texts.
    pub blobs: PathBuf,
    /// Provider names by service.
    pub providers: BTreeMap<String, String>,
    /// Hash of what the trial tests, see [`Plan::subject`](crate::plan::Plan::subject); empty for a grading.
    pub tested: String,
    /// Seed of the retry delays.
    pub seed: u64,
    /// Design of the run until decided that makes this recording.
    pub stopping: Option<StoppingDesign>,
}

/// Why a recording cannot be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordingError {
    /// It cannot be written, or cannot be read again.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    /// It cannot be renamed to its final path.
    #[error("{}: cannot be written: {error}", path.display())]
    Place { path: PathBuf, error: std::io::Error },
}

impl RecordingError {
    /// Cause and remedy, if every further recording would fail in the same way.
    pub(super) fn lasting(&self) -> Option<(&'static str, &'static str)> {
        let (Self::Cassette(CassetteError::Write { source: error, .. }) | Self::Place { error, .. }) = self else {
            return None;
        };
        if files::is_full_disk(error) {
            return Some(("the disk is full", "free some space"));
        }
        let denied = matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
        denied.then_some(("recordings cannot be written", "let this user write to their folder"))
    }
}

/// A recording in progress.
pub(crate) struct Recorder {
    subject: Subject,
    transport: Arc<RecordTransport>,
    started: jiff::Timestamp,
    spans: Vec<String>,
    held: Option<HeldCalls>,
}

impl Recorder {
    /// Starts recording requests sent through [`Recorder::transport`] to `below`; `redactor` knows every key in use.
    pub(crate) fn begin(
        subject: Subject,
        below: Arc<dyn Transport>,
        clock: &Arc<dyn Clock>,
        redactor: Arc<Redactor>,
    ) -> Self {
        let transport = Arc::new(RecordTransport::new(below, Arc::clone(clock), redactor));
        Self { subject, transport, started: clock.wall(), spans: Vec::new(), held: None }
    }

    /// Adds what the agent's spans told.
    pub(crate) fn telling(self, spans: Vec<String>) -> Self {
        Self { spans, ..self }
    }

    /// Adds the calls that an earlier recording answered.
    pub(crate) fn holding(self, held: Option<HeldCalls>) -> Self {
        Self { held, ..self }
    }

    /// The recording transport.
    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport) as Arc<dyn Transport>
    }

    /// The redactor in use: the given keys, plus keys seen in requests.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.transport.redactor()
    }

    /// Writes the recording beside its final path, and reads it again. `times` are durations of local stages, `vars`
    /// the values that the agent generated, and `knowledge` the pinned knowledge: a hash, or the declaration of a base
    /// that was not searched.
    ///
    /// # Errors
    /// [`RecordingError::Cassette`] if it cannot be written or read again.
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
            recorded_at: self.started.round(jiff::Unit::Millisecond).unwrap_or(self.started),
            recorded_from: self.transport.recorded_from(&providers),
            recorder: format!("ragcheck {}", env!("CARGO_PKG_VERSION")),
            knowledge,
            seed,
            subject: tested,
            take,
            takes,
            profiles: self.transport.profiles(),
            vars,
            spans: self.spans,
            stopping,
            held: self.held,
        };
        let unplaced = |error| RecordingError::Place { path: shown.clone(), error };
        let folder = files::temporary_folder(path.parent().unwrap_or(&path)).map_err(unplaced)?;
        let beside = folder.path().join("lane.yaml");
        Cassette::new(header, self.transport.finish(), times.stages()).save(&beside, &blobs, redactor)?;
        let cassette = Cassette::load_as(&beside, &shown, &blobs)?;
        Ok((cassette, Written { _folder: folder, beside, path, shown }))
    }
}

/// A recording beside its final path; an earlier recording is still intact. Dropping this removes it.
pub(crate) struct Written {
    _folder: files::TemporaryFolder,
    beside: PathBuf,
    path: PathBuf,
    shown: PathBuf,
}

impl Written {
    /// Renames the file to its final path, and syncs it to disk.
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
