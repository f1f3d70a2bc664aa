//! One case of a test runner, as its trial sees it: the runner takes the place of the agent, and the end of a turn or of
//! the case that of its reply.

use crate::flow::external::{CRASHED, Fault, Life};
use crate::platform::clock::BoxFuture;
use crate::platform::lock::lock;
use crate::trace::{TrialEnd, TrialError, TrialErrorKind};
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use crate::trial::outcome::error;
use bytes::Bytes;
use serde::Deserialize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Why the trial of a case that was never ended has no reply.
pub(in crate::trial::external) const NEVER_ENDED: &str =
    "the case was begun and never ended: the test runner ended first";

/// What may keep a runner from running a test again.
const KEEPS_RESULTS: &str = "a test runner that caches results may have skipped it: use `gradle test --rerun-tasks` or \
    `bazel test --cache_test_results=no`";

/// Why the trial of a case that was ended before its last turn has no further reply.
pub(in crate::trial::external) const ENDED_EARLY: &str = "the test ended the case before its last turn";

/// What the runner says at the end of a turn, as far as it is no reply of the agent.
#[derive(Debug, Deserialize)]
struct Raised {
    answer: Option<serde_json::Value>,
    error: Option<String>,
}

/// The times that the runner begins a case: once, and again when a recording is verified.
pub(in crate::trial::external) struct Beginnings {
    begun: tokio::sync::Mutex<mpsc::UnboundedReceiver<Begun>>,
    waits: AtomicBool,
}

/// A case that the runner has begun.
pub(in crate::trial::external) struct Begun {
    /// Receives the trace id of the trial once it is served.
    served: Mutex<Option<oneshot::Sender<String>>>,
    /// Receives the turns.
    asked: mpsc::UnboundedSender<Asked>,
    /// Receives the end of the trial: why it cannot be judged, if so.
    over: Mutex<Option<oneshot::Sender<Option<String>>>>,
    /// What the agent raised, by the runner.
    raised: Mutex<Option<String>>,
    /// Whether tests of other processes run at the same time.
    pub(in crate::trial::external) beside: bool,
}

/// A turn: what the agent is asked, and where its reply goes.
pub(super) struct Asked {
    pub(super) request: HttpRequest,
    pub(super) reply: oneshot::Sender<Said>,
}

/// What the runner says to a turn.
pub(super) enum Said {
    /// The agent's reply.
    Reply(Bytes),
    /// The case was ended by the reply before.
    Early,
}

/// The runner's side of a [`Begun`].
pub(super) struct Open {
    pub(super) served: oneshot::Receiver<String>,
    /// The turns; it ends with the trial.
    pub(super) asked: mpsc::UnboundedReceiver<Asked>,
    pub(super) over: oneshot::Receiver<Option<String>>,
}

/// A case that begins now, from both sides.
pub(super) fn begin(beside: bool) -> (Begun, Open) {
    let ((served, is_served), (asked, turns), (over, is_over)) =
        (oneshot::channel(), mpsc::unbounded_channel(), oneshot::channel());
    let (served, over, raised) = (Mutex::new(Some(served)), Mutex::new(Some(over)), Mutex::default());
    let begun = Begun { served, asked, over, raised, beside };
    (begun, Open { served: is_served, asked: turns, over: is_over })
}

impl Beginnings {
    pub(super) fn new(begun: mpsc::UnboundedReceiver<Begun>) -> Self {
        Self { begun: tokio::sync::Mutex::new(begun), waits: AtomicBool::new(false) }
    }

    /// Waits until the runner begins the case.
    ///
    /// # Errors
    /// If the runner ended, and does not.
    pub(in crate::trial::external) async fn next(&self) -> Result<Begun, Box<TrialError>> {
        let mut begun = self.begun.lock().await;
        if let Ok(begun) = begun.try_recv() {
            return Ok(begun);
        }
        self.waits.store(true, Ordering::SeqCst);
        begun.recv().await.ok_or_else(|| {
            let why =
                "the test runner was started a second time to verify the recording, and did not begin this case again";
            error(TrialErrorKind::CassetteBroken, why, vec![KEEPS_RESULTS.to_owned()])
        })
    }

    /// Whether the trial waits for the case to begin again.
    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::SeqCst)
    }

    /// Tells the runner that the trial ended before it was served.
    pub(super) async fn refuse(&self, why: &TrialEnd) {
        let mut begun = self.begun.lock().await;
        begun.close();
        while let Ok(begun) = begun.try_recv() {
            begun.end(why);
        }
    }
}

impl Begun {
    /// Tells the runner that the case is served, under that trace id.
    pub(in crate::trial::external) fn serve(&self, trace: &str) {
        if let Some(served) = take(&self.served) {
            // A runner that has gone needs no answer.
            let _ = served.send(trace.to_owned());
        }
    }

    /// Tells the runner how the trial ended.
    pub(in crate::trial::external) fn end(&self, end: &TrialEnd) {
        let why = match end {
            TrialEnd::Completed => None,
            TrialEnd::Error(why) => Some([std::slice::from_ref(&why.message), &why.detail].concat().join("\n")),
        };
        if let Some(over) = take(&self.over) {
            let _ = over.send(why);
        }
    }
}

impl Transport for Begun {
    /// Waits for the end of the turn: the runner asks the agent itself.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let (reply, replied) = oneshot::channel();
        let sent = self.asked.send(Asked { request, reply });
        Box::pin(async move {
            let broken = |why: &str| TransportError::Connection { message: why.to_owned(), took: Duration::ZERO };
            let gone = || broken(NEVER_ENDED);
            sent.map_err(|_| gone())?;
            let body = match replied.await.map_err(|_| gone())? {
                Said::Reply(body) => body,
                Said::Early => return Err(broken(ENDED_EARLY)),
            };
            if let Ok(Raised { answer: None, error: Some(raised) }) = serde_json::from_slice(&body) {
                *lock(&self.raised) = Some(raised);
                return Err(gone());
            }
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            Ok(HttpResponse { status: 200, headers, body, took: Duration::ZERO, chunks: Vec::new() })
        })
    }
}

impl Life for Begun {
    fn failure<'l>(&'l self, _: &'l str) -> BoxFuture<'l, Option<Fault>> {
        let raised = lock(&self.raised).clone();
        Box::pin(std::future::ready(raised.map(|message| (CRASHED, message))))
    }

    fn advice(&self) -> Option<String> {
        None
    }
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    lock(slot).take()
}
