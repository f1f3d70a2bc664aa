//! Plain data of a cassette.

use super::canonical::{Request, stored_body};
use super::drift::{Drift, drift};
use super::keys::key;
use super::layout::{Layout, Profile};
use super::stopping::StoppingDesign;
use crate::platform::secrets::Redactor;
use crate::trace::{EDITED, HeldCalls};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Header of a lane's recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// The scenario's name.
    pub scenario: String,
    /// The case's name.
    pub case: String,
    /// The lane, `flow.variant.n`, followed by `.control` for a control arm.
    pub lane: String,
    /// Start of the trial; the wall clock of a replay starts here.
    pub recorded_at: jiff::Timestamp,
    /// Origin of the responses by service: `simulator`, or provider name and model.
    pub recorded_from: BTreeMap<String, String>,
    /// Version of the recording program.
    pub recorder: String,
    /// Hash of the knowledge that the trial searched.
    pub knowledge: String,
    /// Seed of the trial; replay draws the same retry delays from it.
    pub seed: u64,
    /// Hash of what the trial tests, see `plan::Plan::subject`; empty in recordings of older builds.
    pub subject: String,
    /// Number of this recording among all recordings of its lane.
    pub take: u32,
    /// Noted results of takes, by number: of earlier takes, of this one once it was judged, and of later ones that did
    /// not replace it because nothing under test had changed.
    pub takes: BTreeMap<u32, Take>,
    /// Versions of the matching profiles that computed the keys.
    pub profiles: BTreeMap<String, u32>,
    /// Values that the agent generated while recording, by the scenario's name for them, in order of appearance.
    pub vars: BTreeMap<String, Vec<String>>,
    /// What the agent's spans told while recording, a line each, without ids and times.
    pub spans: Vec<String>,
    /// Design of the run until decided that made this lane. `None` if the number of lanes was fixed, and in recordings
    /// of older builds, which have the design in `stopping.json` only.
    pub stopping: Option<StoppingDesign>,
    /// Calls that an earlier recording answered; `None` if services answered all of them.
    pub held: Option<HeldCalls>,
}

/// Result of one recording of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// When it was recorded.
    pub recorded_at: jiff::Timestamp,
    /// Verdict on its trial at that time.
    pub verdict: String,
}

impl Header {
    /// Verdicts of the takes before this one, in order; `unknown` if none was noted.
    pub fn earlier_verdicts(&self) -> Vec<String> {
        let verdict = |take| self.takes.get(&take).map_or("unknown", |take| take.verdict.as_str()).to_owned();
        // A hand-edited number may be anything; no lane is recorded this often.
        (1..self.take.min(1000)).map(verdict).collect()
    }

    /// Noted verdict of this take, if any.
    pub fn noted_verdict(&self) -> Option<String> {
        self.takes.get(&self.take).map(|take| take.verdict.clone()).filter(|verdict| verdict != "unknown")
    }

    /// Whether this take is noted as passed.
    pub(crate) fn passed(&self) -> bool {
        self.noted_verdict().as_deref() == Some("PASS")
    }

    /// Verdicts of the later takes that did not replace this one, in order.
    pub fn later_verdicts(&self) -> Vec<String> {
        let later = self.takes.range(self.take.saturating_add(1)..);
        later.map(|(_, take)| take.verdict.clone()).take(1000).collect()
    }

    /// Notes that the lane was recorded again with that verdict, and that this recording stays. A run that is resumed
    /// may note the same draw a second time.
    pub fn note_later(&mut self, recorded_at: jiff::Timestamp, verdict: &str) {
        if let Some(known) = self.takes.values_mut().find(|take| take.recorded_at == recorded_at) {
            verdict.clone_into(&mut known.verdict);
            return;
        }
        let (number, _) = self.next_take();
        self.takes.insert(number, Take { recorded_at, verdict: verdict.to_owned() });
    }

    /// Number and history of the next take of this lane.
    pub(super) fn next_take(&self) -> (u32, BTreeMap<u32, Take>) {
        let mut takes = self.takes.clone();
        let unjudged = Take { recorded_at: self.recorded_at, verdict: "unknown".to_owned() };
        takes.entry(self.take).or_insert(unjudged);
        let last = takes.last_key_value().map_or(self.take, |(number, _)| *number);
        (last.saturating_add(1), takes)
    }
}

/// One request and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Order of sending in the lane, from 0.
    pub ordinal: u32,
    /// Service: `model` or `search`, for example.
    pub service: String,
    /// Name of the matching profile.
    pub profile: String,
    /// Hash that a request must have to match, see [`super::key`].
    pub key: String,
    /// Hashes to compare if the key is not found.
    pub drift: Drift,
    /// The request. `None` after loading, because replay needs only the key; see [`super::Cassette::requests`].
    pub request: Option<StoredRequest>,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Whether it was sent while an earlier request was in progress; noted for external agents only.
    pub beside: bool,
    /// When it was sent, since its turn began; noted for external agents only.
    pub at: Option<Duration>,
}

impl Exchange {
    /// The recorded form of a request and its outcome; the request is redacted, and the outcome has been.
    pub(crate) fn of(
        ordinal: u32,
        service: String,
        request: Request<'_>,
        outcome: Outcome,
        redactor: &Redactor,
    ) -> Self {
        let Profile { name, layout, .. } = *request.profile;
        let body = stored_body(request.profile, request.body, redactor);
        let path = request.redacted_path(redactor);
        Self {
            ordinal,
            service,
            profile: name.to_owned(),
            key: key(request, redactor),
            drift: drift(layout, &body),
            request: Some(StoredRequest { method: request.method.to_owned(), path, body, layout, problem: None }),
            outcome,
            beside: false,
            at: None,
        }
    }
}

/// A request as stored in a cassette.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRequest {
    /// Upper case.
    pub method: String,
    /// Below the provider's base URL.
    pub path: String,
    /// The body, redacted and without dropped members.
    pub body: Value,
    /// Positions of its parts, for writing; [`Layout::NONE`] after loading.
    pub(crate) layout: &'static Layout,
    /// Why the body may be incomplete: a blob or an earlier exchange that it builds on is missing.
    pub problem: Option<String>,
}

/// Bytes of a stream that arrived together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Arrival time since the request was sent.
    pub at: Duration,
    /// End offset in the body.
    pub end: usize,
}

/// Outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A response of any status.
    Response {
        /// HTTP status.
        status: u16,
        /// The stored headers.
        headers: Vec<(String, String)>,
        /// The body, redacted.
        body: Bytes,
        /// Time from sending to the end of the body.
        took: Duration,
        /// Whether redaction changed the body.
        rewritten: bool,
        /// Arrival of a stream's bytes, in order; empty for a response that arrived at once.
        chunks: Vec<Chunk>,
    },
    /// The connection failed or broke.
    ConnectionError {
        /// The error, redacted.
        message: String,
        /// Time until the failure.
        took: Duration,
    },
    /// The transport's time limit expired.
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// The caller stopped waiting, usually because its time limit expired.
    Abandoned {
        /// How long it had waited.
        after: Duration,
    },
}

/// Contents of a lane's file.
#[derive(Debug, Clone)]
pub struct Cassette {
    /// The header.
    pub header: Header,
    /// Exchanges in the order of sending.
    pub exchanges: Vec<Exchange>,
    /// Durations of each local stage by name, in order.
    pub stages: BTreeMap<String, Vec<Duration>>,
    /// Whether the file was edited by hand after recording.
    pub edited: bool,
    /// Whether the file has an `end:` line; files of format 1 do not.
    pub(super) sealed: bool,
    /// The digest in the file's last line, if any.
    pub(super) recorded: Option<String>,
    /// The file it was loaded from, for messages and for reading the requests.
    pub(super) source: Option<Source>,
}

/// Source file of a cassette; its text is kept because a miss reads the requests from it.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub path: PathBuf,
    pub text: Arc<str>,
    pub blobs: PathBuf,
}

impl Cassette {
    /// A cassette of a new recording.
    pub fn new(header: Header, exchanges: Vec<Exchange>, stages: BTreeMap<String, Vec<Duration>>) -> Self {
        Self { header, exchanges, stages, edited: false, sealed: true, recorded: None, source: None }
    }

    /// Burst number of each exchange, by index: requests sent while an earlier one was in progress share its burst.
    pub fn bursts(&self) -> Vec<u32> {
        let numbered = self.exchanges.iter().scan(0, |burst, exchange| {
            *burst += u32::from(!exchange.beside);
            Some(*burst)
        });
        numbered.collect()
    }

    /// The origin for display, with a warning if the file was edited.
    pub fn origin(&self, origin: String) -> String {
        if self.edited { format!("{origin} {EDITED}") } else { origin }
    }

    /// Path of the file, with forward slashes; the lane's name if it was not loaded from a file.
    pub fn place(&self) -> String {
        match &self.source {
            Some(source) => source.path.display().to_string().replace('\\', "/"),
            None => self.header.lane.clone(),
        }
    }
}
