//! Grades one content: from its recording, live, or live with recording.

use super::prompt::{Order, data, request};
use super::reply::{ItemGrade, combine, read};
use super::tasks::{Content, GradingTask};
use crate::cassette::{Cassette, LocalTimes, hex};
use crate::platform::clock::{Clock, VirtualClock, block_on};
use crate::platform::files;
use crate::provider::chat::ChatResponse;
use crate::provider::{ChatClient, ChatModel, ProviderError};
use crate::scenario::Rubric;
use crate::trace::{TrialError, TrialErrorKind};
use crate::transport::{ReplayTransport, Service, Transport};
use crate::trial::{ModelAccess, Recorder, RecordingError, Subject};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Folder of recorded gradings below the project's cassettes, and scenario name in their headers.
pub(crate) const FOLDER: &str = "judge";

/// Grades of one content, with their evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Graded {
    /// One grade per item, in the rubric's order.
    pub items: Vec<ItemGrade>,
    /// Origin of the grades: `simulator`, or provider and model.
    pub from: String,
    /// When the grading was recorded (RFC 3339, UTC); `None` if it was not.
    pub recorded_at: Option<String>,
}

/// Grades contents by one rubric.
pub(crate) struct Grader {
    rubric: Rubric,
    around: String,
    access: ModelAccess,
    root: PathBuf,
    folder: PathBuf,
    rerecord: String,
    lanes: OnceLock<BTreeMap<String, PathBuf>>,
}

impl Grader {
    /// A grader with recordings below `cassettes` of the project at `root`; `rerecord` is the command shown for missing
    /// recordings.
    pub(crate) fn new(rubric: Rubric, access: ModelAccess, root: &Path, cassettes: &str, rerecord: String) -> Self {
        let text = serde_json::to_string(&rubric).unwrap_or_default();
        let around = hex(&Sha256::digest(text.as_bytes()), 64);
        let folder = root.join(cassettes).join(FOLDER);
        Self { rubric, around, access, root: root.to_owned(), folder, rerecord, lanes: OnceLock::new() }
    }

    pub(crate) fn rubric(&self) -> &Rubric {
        &self.rubric
    }

    /// SHA-256, in hex, of the rubric and its model's settings.
    pub(crate) fn digest(&self) -> &str {
        &self.around
    }

    pub(crate) fn access(&self) -> &ModelAccess {
        &self.access
    }

    /// Hash that names a content's recording.
    pub(crate) fn hash(&self, content: &Content) -> String {
        content.hash(&self.around)
    }

    /// Grades a content from its recording.
    ///
    /// # Errors
    /// An explanation, if the recording is missing or does not match.
    pub(crate) fn replay(&self, task: &GradingTask) -> Result<Graded, TrialError> {
        let path = self.path(&self.hash(&task.content));
        if !path.exists() {
            return Err(self.missing(task));
        }
        self.replay_file(&path, &task.content)
    }

    /// Grades a content live, without recording.
    ///
    /// # Errors
    /// If the provider returned no grade.
    pub(crate) async fn live(&self, task: &GradingTask) -> Result<Graded, TrialError> {
        let hash = self.hash(&task.content);
        let live = self.access.live(seed(&hash)).map_err(|why| provider(&why.to_string()))?;
        let client = self.access.client(live.transport, live.clock, seed(&hash));
        let items = self.ask(&client, &task.content).await?;
        let from = format!("{} {}", self.access.name(), self.rubric.model.name);
        Ok(Graded { items, from, recorded_at: None })
    }

    /// Grades a content live, writes the recording, and returns the result of replaying it.
    ///
    /// # Errors
    /// If the provider returned no grade or the recording cannot be used; an earlier one is then unchanged.
    pub(crate) async fn record(&self, task: &GradingTask) -> Result<Graded, TrialError> {
        let hash = self.hash(&task.content);
        let live = self.access.live(seed(&hash)).map_err(|why| provider(&why.to_string()))?;
        self.record_with(task, live.clock, live.transport).await
    }

    /// Like [`Grader::record`], over the given `transport` and `clock`.
    pub(crate) async fn record_with(
        &self,
        task: &GradingTask,
        clock: Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
    ) -> Result<Graded, TrialError> {
        let hash = self.hash(&task.content);
        let path = self.path(&hash);
        let subject = Subject {
            tested: String::new(),
            scenario: FOLDER.to_owned(),
            case: hash.clone(),
            lane: lane(task),
            shown: path.strip_prefix(&self.root).unwrap_or(&path).to_owned(),
            path,
            blobs: self.blobs(),
            providers: BTreeMap::from([(Service::Model.as_str().to_owned(), self.access.name().to_owned())]),
            seed: seed(&hash),
            stopping: None,
        };
        let redactor = self.access.redactor();
        let recorder = Recorder::begin(subject, transport, &clock, Arc::clone(redactor));
        let client = self.access.client(recorder.transport(), clock, seed(&hash));
        let live = self.ask(&client, &task.content).await?;
        let unusable = |why: RecordingError| broken(&why.to_string(), Vec::new());
        let written = recorder.write(&LocalTimes::recording(), BTreeMap::new(), self.around.clone(), redactor);
        let (cassette, written) = written.map_err(unusable)?;
        let replayed = self.replay_from(cassette, &task.content);
        match &replayed {
            Ok(graded) if graded.items == live => {
                written.place().map_err(unusable)?;
                replayed
            }
            _ => replayed.and_then(|_| {
                let message = "the replay of what was just recorded differs from what the model said";
                Err(broken(message, Vec::new()))
            }),
        }
    }

    fn replay_file(&self, path: &Path, content: &Content) -> Result<Graded, TrialError> {
        let shown = path.strip_prefix(&self.root).unwrap_or(path);
        let cassette = Cassette::load_as(path, shown, &self.blobs()).map_err(|why| {
            broken(&why.to_string(), vec![format!("fix or delete it, then re-record it: {}", self.rerecord)])
        })?;
        self.replay_from(cassette, content)
    }

    fn replay_from(&self, cassette: Cassette, content: &Content) -> Result<Graded, TrialError> {
        let (header, edited) = (cassette.header.clone(), cassette.edited);
        let clock = VirtualClock::at(header.recorded_at);
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let transport = ReplayTransport::new(cassette, Arc::clone(&shared), self.rerecord.clone());
        let client = self.access.client(Arc::new(transport), shared, header.seed);
        let asked = block_on(&clock, self.ask(&client, content));
        let items = asked.unwrap_or_else(|deadlock| Err(error(TrialErrorKind::Deadlock, &deadlock.to_string())))?;
        let from = header.recorded_from.into_values().next().unwrap_or_else(|| "nothing".to_owned());
        let from = if edited { format!("{from} (edited by hand)") } else { from };
        Ok(Graded { items, from, recorded_at: Some(header.recorded_at.to_string()) })
    }

    async fn ask(&self, client: &ChatClient, content: &Content) -> Result<Vec<ItemGrade>, TrialError> {
        let shown = data(content);
        let written = complete(client, &request(&self.rubric, content, Order::Written)).await?;
        let reversed = complete(client, &request(&self.rubric, content, Order::Reversed)).await?;
        Ok(combine(&self.rubric, &read(&written, &self.rubric, &shown), &read(&reversed, &self.rubric, &shown)))
    }

    /// Explains a missing recording: the differences from a recording of the same turn, if there is one.
    fn missing(&self, task: &GradingTask) -> TrialError {
        let earlier = self.lanes.get_or_init(|| self.recorded()).get(&lane(task));
        if let Some(Err(why)) = earlier.map(|path| self.replay_file(path, &task.content)) {
            return why;
        }
        let mut missing = error(TrialErrorKind::LaneMissing, "this answer was never graded by this rubric and model");
        missing.detail = vec![format!("record it: {}     (about 2 calls an answer)", self.rerecord)];
        missing
    }

    /// Existing recordings by the turn that first needed them.
    fn recorded(&self) -> BTreeMap<String, PathBuf> {
        let entries = files::entries(&self.folder).into_iter().flatten().map(|entry| entry.path);
        let mut found: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
        found.sort();
        let blobs = self.blobs();
        let lanes = found.into_iter().filter_map(|path| Some((Cassette::load(&path, &blobs).ok()?.header.lane, path)));
        lanes.collect()
    }

    /// Folders that recordings are written to.
    pub(crate) fn folders(&self) -> [PathBuf; 2] {
        [self.folder.clone(), self.blobs()]
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.folder.join(format!("{hash}.yaml"))
    }

    fn blobs(&self) -> PathBuf {
        self.folder.join("blobs")
    }
}

async fn complete(
    client: &ChatClient,
    request: &crate::provider::chat::ChatRequest,
) -> Result<ChatResponse, TrialError> {
    client.complete(request).await.result.map_err(|why| match why {
        ProviderError::Miss(miss) => TrialError {
            kind: TrialErrorKind::CassetteMiss,
            message: miss.message,
            cause: miss.cause,
            detail: miss.detail,
        },
        ProviderError::Failed { kind, message, .. } => {
            provider(&format!("the grading model gave no reply ({}): {message}", kind.as_str()))
        }
    })
}

fn lane(task: &GradingTask) -> String {
    format!("{}, {}", task.trial, task.turn)
}

/// Seed of retry delays and of the simulator, derived from the content, so that each content has independent chances.
fn seed(hash: &str) -> u64 {
    hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

fn error(kind: TrialErrorKind, message: &str) -> TrialError {
    TrialError { kind, message: message.to_owned(), cause: message.to_owned(), detail: Vec::new() }
}

fn provider(why: &str) -> TrialError {
    error(TrialErrorKind::Provider, why)
}

fn broken(why: &str, detail: Vec<String>) -> TrialError {
    TrialError { detail, ..error(TrialErrorKind::CassetteBroken, why) }
}
