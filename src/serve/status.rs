//! Status of a running turn: an observer that forwards events to the log and to a stream of status events.
//!
//! | event | data |
//! |---|---|
//! | `status` | `{stage: "model", call}`: the model is called |
//! | `status` | `{stage: "tool", tool, arguments}`: a tool is called |
//! | `status` | `{stage: "tool_ended", tool, outcome}`: `ok`, `rejected`, `out_of_order` or `failed` |
//! | `status` | `{stage: "search_ended", query, outcome}`: a search that the flow makes itself; `ok` or `failed` |
//! | `status` | `{stage: "log", kind, text}`: an agent that logs its trajectory says what it does: status, thought, observation, grades, reflection, compaction, budget, usage or notice |
//! | `answer` | the reply, as without a stream; the last event |
//! | `error` | `{error: {kind, message}}`; the last event |

use super::event_log::EventLog;
use crate::flow::{Observer, Status};
use crate::platform::clock::Clock;
use crate::platform::secrets;
use crate::trace::What;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// One event of a stream: name and data.
pub(super) type StreamEvent = (&'static str, Value);

/// Entries of an agent's log that are sent to the caller; the others are only in the trace.
const SHOWN: [&str; 9] =
    ["status", "thought", "observation", "grades", "reflection", "compaction", "budget", "usage", "notice"];

/// Observes one turn.
pub(super) struct Watcher {
    pub(super) session: String,
    pub(super) log: Arc<EventLog>,
    pub(super) clock: Arc<dyn Clock>,
    /// Stream of the caller, if there is one.
    pub(super) stream: Option<UnboundedSender<StreamEvent>>,
}

impl Observer for Watcher {
    fn notice(&self, status: &Status<'_>) {
        if let Status::Recorded(event) = status {
            self.log.write(self.clock.wall(), &self.session, event);
        }
        let Some(stream) = &self.stream else { return };
        let data = match status {
            Status::ModelAsked { call, .. } => json!({"stage": "model", "call": call}),
            Status::ToolStarted { tool, arguments, .. } => {
                json!({"stage": "tool", "tool": tool, "arguments": arguments})
            }
            Status::Recorded(event) => match &event.what {
                What::ToolCalled(called) => {
                    json!({"stage": "tool_ended", "tool": called.tool, "outcome": called.outcome.word()})
                }
                What::Searched(search) => {
                    let outcome = if event.what.given().is_some() { "ok" } else { "failed" };
                    json!({"stage": "search_ended", "query": search.query, "outcome": outcome})
                }
                What::Logged(entry) => match entry.described() {
                    (kind, text) if SHOWN.contains(&kind) => json!({"stage": "log", "kind": kind, "text": text}),
                    _ => return,
                },
                _ => return,
            },
        };
        // The caller has disconnected: the turn continues, and its answer is in the session.
        let _ = stream.send(("status", secrets::clean_value(data)));
    }
}
