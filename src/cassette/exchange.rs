//! What a cassette holds, as plain data.

use super::drift::Drift;
use super::stopping::StoppingDesign;
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a lane's recording says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// The scenario's name.
    pub scenario: String,
    /// The case's name.
    pub case: String,
    /// The lane, `flow.variant.n`, with `.control` behind a control arm.
    pub lane: String,
    /// When the trial began; replay's wall clock starts here.
    pub recorded_at: jiff::Timestamp,
    /// Who answered, by service: `simulator`, or the provider's name and model.
    pub recorded_from: BTreeMap<String, String>,
    /// Version of the program that recorded.
    pub recorder: String,
    /// Hash of the knowledge that the trial searched.
    pub knowledge: String,
    /// The trial's seed while recording; waits between retries are drawn from it again.
    pub seed: u64,
    /// What the trial asks of which agent, as `plan::Plan::subject` gives it; empty in recordings of older builds.
    pub subject: String,
    /// The number of this recording among all that were made of its lane.
    pub take: u32,
    /// What takes came to, by number, as far as it was noted: earlier ones, this one once it was judged, and later ones that
    /// did not take its place, because nothing under test had changed.
    pub takes: BTreeMap<u32, Take>,
    /// Versions of the matching profiles that made the keys.
    pub profiles: BTreeMap<String, u32>,
    /// Values that the agent generated while recording, by the name that the scenario gives it, in order of appearance.
    pub vars: BTreeMap<String, Vec<String>>,
    /// Of a run until decided, the design by which it was made; `None` of a lane whose number was fixed, and in
    /// recordings of older builds, where `stopping.json` alone says so.
    pub stopping: Option<StoppingDesign>,
}

/// What one recording of a lane came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// When it was recorded.
    pub recorded_at: jiff::Timestamp,
    /// The verdict on its trial at that time.
    pub verdict: String,
}

impl Header {
    /// The verdicts of the takes before this one, in order; `unknown` where none was noted.
    pub fn earlier_verdicts(&self) -> Vec<String> {
        let verdict = |take| self.takes.get(&take).map_or("unknown", |take| take.verdict.as_str()).to_owned();
        // A hand-written number may be anything; nobody records a lane this often.
        (1..self.take.min(1000)).map(verdict).collect()
    }

    /// The verdict that was noted of this take; `None` where none was.
    pub fn noted_verdict(&self) -> Option<String> {
        self.takes.get(&self.take).map(|take| take.verdict.clone()).filter(|verdict| verdict != "unknown")
    }

    /// The verdicts of the takes after this one, which did not take its place, in order.
    pub fn later_verdicts(&self) -> Vec<String> {
        let later = self.takes.range(self.take.saturating_add(1)..);
        later.map(|(_, take)| take.verdict.clone()).take(1000).collect()
    }

    /// Notes that the lane was recorded again at that time, to that verdict, and that this recording stays.
    pub fn note_later(&mut self, recorded_at: jiff::Timestamp, verdict: &str) {
        let (number, _) = self.next_take();
        self.takes.insert(number, Take { recorded_at, verdict: verdict.to_owned() });
    }

    /// The number and history that a next take of this lane has.
    pub(super) fn next_take(&self) -> (u32, BTreeMap<u32, Take>) {
        let mut takes = self.takes.clone();
        let unjudged = Take { recorded_at: self.recorded_at, verdict: "unknown".to_owned() };
        takes.entry(self.take).or_insert(unjudged);
        let last = takes.last_key_value().map_or(self.take, |(number, _)| *number);
        (last.saturating_add(1), takes)
    }
}

/// One request, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Order of sending within the lane, from 0.
    pub ordinal: u32,
    /// Which service, `model` or `search`.
    pub service: String,
    /// The matching profile.
    pub profile: String,
    /// What a request must hash to, see [`super::key`].
    pub key: String,
    /// What to compare when the key is not found.
    pub drift: Drift,
    /// What was sent. `None` after loading: replay needs the key only; see [`super::Cassette::requests`].
    pub request: Option<StoredRequest>,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether it was sent while an earlier one was under way, as far as it was noted: of agents that run elsewhere.
    pub beside: bool,
}

/// A request as a cassette keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRequest {
    /// Upper case.
    pub method: String,
    /// Below the provider's base URL.
    pub path: String,
    /// The body, redacted, without members that do not count.
    pub body: Value,
    /// Why the body may be incomplete: a file or an earlier exchange that it builds on is gone.
    pub problem: Option<String>,
}

/// Bytes of a stream that arrived together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// When, counted from sending the request.
    pub at: Duration,
    /// Where in the body they end.
    pub end: usize,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A response of whatever status.
    Response {
        /// HTTP status.
        status: u16,
        /// The headers that are kept.
        headers: Vec<(String, String)>,
        /// The body, redacted.
        body: Bytes,
        /// From sending to the end of the body.
        took: Duration,
        /// Whether redaction changed the body.
        rewritten: bool,
        /// How a stream's bytes arrived, in order; empty for an answer that came at once.
        chunks: Vec<Chunk>,
    },
    /// No connection, or it broke.
    ConnectionError {
        /// Why, redacted.
        message: String,
        /// How long it took to find out.
        took: Duration,
    },
    /// The transport's own time limit ran out.
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// The caller stopped waiting, usually by a time limit of its own.
    Abandoned {
        /// How long it had waited.
        after: Duration,
    },
}

/// The lane's file as a whole.
#[derive(Debug, Clone)]
pub struct Cassette {
    /// What the recording says about itself.
    pub header: Header,
    /// In the order of sending.
    pub exchanges: Vec<Exchange>,
    /// How long each local stage took, by name, in the order of happening.
    pub stages: BTreeMap<String, Vec<Duration>>,
    /// Whether its file is not as it was recorded: somebody edited it by hand.
    pub edited: bool,
    /// Whether its file ended with its `end:` line; those of format 1 have none.
    pub(super) sealed: bool,
    /// The digest of what was recorded, where the file's last line has it.
    pub(super) recorded: Option<String>,
    /// Where it was loaded from, for messages and for reading the requests.
    pub(super) source: Option<super::store::Source>,
}

impl Cassette {
    /// A cassette of what was just recorded.
    pub fn new(header: Header, exchanges: Vec<Exchange>, stages: BTreeMap<String, Vec<Duration>>) -> Self {
        Self { header, exchanges, stages, edited: false, sealed: true, recorded: None, source: None }
    }

    /// The burst that each exchange belongs to, by index: what was sent beside those before it is one with them.
    pub fn bursts(&self) -> Vec<u32> {
        let numbered = self.exchanges.iter().scan(0, |burst, exchange| {
            *burst += u32::from(!exchange.beside);
            Some(*burst)
        });
        numbered.collect()
    }

    /// The origin as it is shown, with what must be known about it.
    pub fn origin(&self, origin: String) -> String {
        if self.edited { format!("{origin} (edited by hand)") } else { origin }
    }

    /// The file it came from, with forward slashes; the lane's name when it came from none.
    pub fn place(&self) -> String {
        match &self.source {
            Some(source) => source.path.display().to_string().replace('\\', "/"),
            None => self.header.lane.clone(),
        }
    }
}
