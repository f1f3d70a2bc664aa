//! Compares a lane's recording with what its trial would send today, without a replay, by the hashes beside each
//! exchange.
//!
//! The trial runs up to its first request, which gets no answer. If no exchange has the key of that request, a replay
//! would miss. Each part of it (model, system prompt, tools, parameters) whose hash is not that of the first recorded
//! exchange has then drifted, with every exchange recorded with the old hash; so has the question, if the conversation is
//! another. If all of it is the same, the recording was edited. What later requests send (a later turn's question, the
//! model of another service, documents that were found) is compared by a replay only.

use crate::cassette::{self, Cassette, CassetteError, Drift, Keys, Redactor};
use crate::platform::words;
use crate::transport::HttpRequest;
use crate::trial::{Trial, first_request, searches_another};

words! {
    /// A part of a request that people change.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum RequestPart {
        /// The model's name.
        Model = "model",
        /// The format of its service's requests.
        Dialect = "dialect",
        /// The system prompt.
        System = "system prompt",
        /// The tool list.
        Tools = "tool list",
        /// Everything else but the conversation.
        Parameters = "parameters",
        /// The conversation of the first request: the user's words, with what the flow adds to them.
        Question = "question",
        /// No part of the request: the recording is broken, or its key or its exchange is not what was recorded.
        Recording = "recording",
    }
}

type HashedPart = (RequestPart, fn(&Drift) -> &str);

impl RequestPart {
    /// The parts that have a hash beside each exchange.
    const HASHED: [HashedPart; 4] = [
        (Self::Model, |drift| &drift.model),
        (Self::System, |drift| &drift.system),
        (Self::Tools, |drift| &drift.tools),
        (Self::Parameters, |drift| &drift.parameters),
    ];
}

/// A recording compared with today's trial.
#[derive(Debug)]
pub(crate) struct Compared {
    pub cassette: Cassette,
    /// Parts that drifted, each with the ordinals of the exchanges recorded with the old hash.
    pub drifted: Vec<(RequestPart, Vec<u32>)>,
    /// Whether the knowledge server searched another collection, model or folder than the scenario declares today.
    pub searched_another: bool,
}

/// Compares a trial's recording with what the trial would send today. `keys` are those of the trials compared before: what
/// a request has in common with the last one is not hashed again.
///
/// # Errors
/// [`CassetteError`] if the recording is missing or broken.
pub(crate) fn drifted(keys: &mut Keys, trial: Trial<'_>) -> Result<Compared, CassetteError> {
    let cassette = trial.recording()?;
    let drifted = first_request(trial).map_or_else(Vec::new, |today| departures(keys, trial, &cassette, &today));
    let searched_another = searches_another(trial, &cassette);
    Ok(Compared { cassette, drifted, searched_another })
}

/// Parts of the first request of `today` that are not in the recording, each with the ordinals of the exchanges recorded
/// with the old one; empty if its key is recorded.
fn departures(
    keys: &mut Keys,
    trial: Trial<'_>,
    cassette: &Cassette,
    today: &HttpRequest,
) -> Vec<(RequestPart, Vec<u32>)> {
    let exchanges = &cassette.exchanges;
    let same_service = |service: &str| service == today.service.as_str();
    // A request whose key is recorded does not miss, whatever its hashes say. Secrets of the project are looked for
    // only where it is not found without.
    let mut is_recorded = |redactor: &Redactor| {
        let HttpRequest { profile, method, path, body, .. } = today;
        let key = keys.of(cassette::Request { profile, method, path, body }, redactor);
        exchanges.iter().any(|exchange| exchange.key == key)
    };
    if is_recorded(&Redactor::default()) || is_recorded(&trial.opened.redactor()) {
        return Vec::new();
    }
    let all = || exchanges.iter().map(|one| one.ordinal).collect();
    let Some(first) = exchanges.first().filter(|first| first.ordinal == 0 && same_service(&first.service)) else {
        return vec![(RequestPart::Recording, all())];
    };
    if first.profile != today.profile.name {
        // In another dialect nothing is where it was.
        return vec![(RequestPart::Dialect, all())];
    }
    let ordinals = |same: &dyn Fn(&Drift) -> bool| {
        let sent = exchanges.iter().filter(|one| same_service(&one.service) && same(&one.drift));
        sent.map(|exchange| exchange.ordinal).collect()
    };
    let layout = today.profile.layout;
    let body = cassette::stored_body(today.profile, &today.body, &Redactor::default());
    let now = cassette::drift(layout, &body);
    let mut drifted = Vec::new();
    for (part, of) in RequestPart::HASHED {
        let old = of(&first.drift);
        if old != of(&now) {
            drifted.push((part, ordinals(&|drift| of(drift) == old)));
        }
    }
    let recorded = cassette.requests().into_iter().next().filter(|request| request.problem.is_none());
    if recorded.is_some_and(|recorded| !layout.same_conversation(&recorded.body, &body)) {
        drifted.push((RequestPart::Question, ordinals(&|_| true)));
    }
    if drifted.is_empty() {
        drifted.push((RequestPart::Recording, ordinals(&|_| true)));
    }
    drifted
}
