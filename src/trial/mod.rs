//! Opens what trials need, and runs a case in it.
//!
//! | question | file |
//! |---|---|
//! | What do the trials of a plan share? | `opened`, as data; `services`, `knowledge` and `environment` fill it |
//! | How does a trial run? | `live`, `replay` and `external`: functions over a [`Trial`] |
//! | Where is its recording, and when does a new one replace it? | `lane`, `recording`, `verified` |
//! | How did it end? | `outcome`, `outage` |
//! | Which trials run, in which order? | `run` |
//!
//! Replay, live and record differ in clock, transport and source of local times; flow, environment, tools and knowledge
//! are the same. Nothing here judges a trial.

mod drive;
mod environment;
pub(crate) mod external;
mod hold;
mod keys;
mod keyword_index;
mod knowledge;
mod lane;
mod live;
mod managed_key;
mod model;
mod opened;
mod outage;
#[cfg(test)]
mod outage_form_tests;
mod outcome;
mod passages;
pub(crate) mod proxy;
mod recording;
mod replay;
pub(crate) mod run;
mod services;
mod stages;
mod tariff;
pub(crate) mod trust;
mod verified;

pub(crate) use external::{Contact, NoContact};
pub(crate) use hold::{HoldError, holdable};
pub(crate) use keys::missing_keys;
pub(crate) use knowledge::{knowledge_access, without_services};
pub(crate) use lane::{lane_file, note_error, note_run_again, note_verdict, stopping_design};
#[cfg(not(front_door_only))]
pub use live::record_with;
pub(crate) use live::{context, live, record, transport};
pub(crate) use model::ModelAccess;
pub use opened::Opened;
pub(crate) use opened::{Strike, Trial};
pub(crate) use outcome::Finished;
pub(crate) use proxy::{MCP_ERROR, MCP_MOUNT, is_server_name, unsent_key};
pub(crate) use recording::{Recorder, RecordingError, Subject};
pub use replay::replay;
pub(crate) use replay::{first_request, searches_another};
pub(crate) use services::{Variables, name_models, read_variables};
pub(crate) use tariff::{model_of, provider_of, tokens};

use crate::transport::LiveError;

/// Why trials cannot be built.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SetupError {
    /// The knowledge folder cannot be read.
    #[error("{file}: knowledge `{folder}`: {reason}")]
    Knowledge { file: String, folder: String, reason: String },
    /// A provider cannot be used.
    #[error("provider `{provider}`: {reason}")]
    Provider { provider: String, reason: String },
    /// The environment variable of a provider's key is not set.
    #[error(
        "provider `{provider}` needs its key in the environment variable {variable}: set it, or name a file that does with --env-file"
    )]
    Key { provider: String, variable: String },
    /// A provider's key may not be sent to its address.
    #[error("provider `{provider}`: {reason}")]
    Distrust { provider: String, reason: trust::Distrust },
    /// An external agent was not allowed on the command line.
    #[error("{file}: {reason}")]
    Agent { file: String, reason: trust::Distrust },
    /// Live services cannot be set up.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The flow is unknown.
    #[error("{file}: no flow is called `{flow}`")]
    Flow { file: String, flow: String },
    /// A setting is invalid.
    #[error("{file}: {reason}")]
    Settings { file: String, reason: String },
}

crate::platform::words! {
    fn word;
    /// How a trial is carried out, by its name in headers and in the environment of an agent's process.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum TrialMode {
        /// Runs against the providers.
        Live = "live",
        /// Runs against the providers, is recorded, and is then replayed from the new cassette.
        Record = "record",
        /// Runs against its cassette.
        Replay = "replay",
    }
}
