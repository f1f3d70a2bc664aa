//! Compares a lane's recording with what its trial would send today, without a replay, by the hashes beside each
//! exchange.
//!
//! The trial runs up to its first request, which gets no answer. If a part of that request (model, system prompt,
//! tools, parameters) no longer has the hash of the first recorded exchange, every exchange recorded with the old hash
//! has drifted: its key can no longer match.

use crate::cassette::{self, Cassette, CassetteError, Drift, Redactor};
use crate::trace::words;
use crate::trial::{Trial, first_request, searches_another};

words! {
    /// A part of a request that people change.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum RequestPart {
        /// The model's name.
        Model = "model",
        /// The system prompt.
        System = "system prompt",
        /// The tool list.
        Tools = "tool list",
        /// Everything else but the conversation.
        Parameters = "parameters",
    }
}

impl RequestPart {
    const ALL: [Self; 4] = [Self::Model, Self::System, Self::Tools, Self::Parameters];

    fn of(self, drift: &Drift) -> &str {
        match self {
            Self::Model => &drift.model,
            Self::System => &drift.system,
            Self::Tools => &drift.tools,
            Self::Parameters => &drift.parameters,
        }
    }
}

/// A recording compared with today's trial.
#[derive(Debug)]
pub(crate) struct Compared {
    /// The recording.
    pub cassette: Cassette,
    /// Parts that drifted, each with the ordinals of the exchanges recorded with the old hash.
    pub drifted: Vec<(RequestPart, Vec<u32>)>,
    /// Whether the knowledge server searched another collection, model or folder than the scenario declares today.
    pub searched_another: bool,
}

/// Compares a trial's recording with what the trial would send today.
///
/// # Errors
/// [`CassetteError`] if the recording is missing or broken.
pub(crate) fn drifted(trial: Trial<'_>) -> Result<Compared, CassetteError> {
    let cassette = trial.recording()?;
    let mut drifted = Vec::new();
    if let (Some(first), Some(today)) = (cassette.exchanges.first(), first_request(trial))
        && first.service == today.service.as_str()
    {
        let body = cassette::stored_body(today.profile, &today.body, &Redactor::default());
        let today = cassette::drift(today.profile.layout, &body);
        for part in RequestPart::ALL {
            let old = part.of(&first.drift);
            if old != part.of(&today) {
                let same = cassette
                    .exchanges
                    .iter()
                    .filter(|exchange| exchange.service == first.service && part.of(&exchange.drift) == old);
                drifted.push((part, same.map(|exchange| exchange.ordinal).collect()));
            }
        }
    }
    let searched_another = searches_another(trial, &cassette);
    Ok(Compared { cassette, drifted, searched_another })
}
