//! Runs one trial of an external agent: live, recorded or replayed.
//!
//! In all three modes the agent is a real process: turns are posted to it over HTTP, and its requests to models and
//! search services pass through a proxy on loopback. Behind the proxy are the providers, the providers and a recorder,
//! or a cassette.
//!
//! | file | holds |
//! |---|---|
//! | `modes` | what is behind the proxy in each mode, and what is checked after a replay |
//! | `single_run` | one run of the trial: reset, turns, trace |
//! | `found` | whole texts of the passages that its traffic shows |
//! | `signs` | signs that a model was asked beside the proxy, or that an answer was cut off |
//! | `connections` | the clients for the services and for the agent |
//! | `agents` | where the agent runs: one process per worker, or elsewhere |
//! | `withheld` | keys of the user that an agent sends where they do not belong |
//! | `start` | what a process asks before its first turn |
//! | `runner` | trials in which a test runner asks the agent instead |

mod agents;
mod connections;
mod found;
mod heard;
mod mcp_sessions;
mod modes;
pub(crate) mod runner;
mod services;
mod setup;
mod signs;
mod single_run;
mod spans;
mod start;
mod withheld;

pub(crate) use agents::{Agents, Contact, NoContact, Place};
pub(super) use setup::ExternalSetup;
pub(crate) use setup::agents_named;

use crate::plan::{PlannedTrial, ResolvedCase};
use crate::trial::TrialMode;
use crate::trial::opened::{Opened, Trial};
use crate::trial::outcome::{Finished, foreign};
use runner::Beginnings;

/// One trial with its dependencies.
struct Work<'a> {
    trial: Trial<'a>,
    outside: &'a ExternalSetup,
    case: &'a ResolvedCase,
    place: &'a Place,
    /// Of a case that a test runner begins.
    beginnings: Option<&'a Beginnings>,
}

/// Waits until a trial of an external agent may run.
pub(crate) async fn place(opened: &Opened, planned: &PlannedTrial) -> Place {
    opened.agents.place(opened.agent(planned)).await
}

/// Runs one trial of an external agent in its place.
pub(crate) async fn run(trial: Trial<'_>, mode: TrialMode, place: &Place) -> Finished {
    carry_out(trial, mode, place, None).await
}

/// Runs one trial; `beginnings` are those of a case that a test runner begins.
async fn carry_out(trial: Trial<'_>, mode: TrialMode, place: &Place, beginnings: Option<&Beginnings>) -> Finished {
    let Some((outside, case)) = trial.opened.agent(trial.planned).zip(trial.case()) else {
        return trial.failed(&foreign());
    };
    let work = Work { trial, outside, case, place, beginnings };
    let done = match mode {
        TrialMode::Live => work.live().await,
        TrialMode::Record => work.record().await,
        TrialMode::Replay => work.replay().await,
    };
    done.unwrap_or_else(|why| trial.failed(&why))
}
