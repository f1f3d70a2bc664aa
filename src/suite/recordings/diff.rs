//! Sends a sample of recorded requests to today's providers and compares the shapes of the answers: members and types,
//! never texts.

use super::resend::{Resend, documents, model_today, send_again};
use crate::cassette::{Cassette, Change, Outcome, Shape};
use crate::plan::Plan;
use crate::provider::wire::framing::Framing;
use crate::trace::text::quote;
use crate::trial::Opened;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Concurrent requests.
const JOBS: usize = 4;

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiffError {
    /// No trial has a recorded response.
    #[error("none of these trials has a recorded answer to compare with: record them first")]
    NothingRecorded,
    /// No request could be sent.
    #[error("nothing was sent: {0}")]
    Send(#[from] std::io::Error),
}

/// Result for one service.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServiceDiff {
    /// Service: `model` or `search`.
    pub service: String,
    /// Provider and model.
    pub provider: String,
    /// Dialect of the service.
    pub profile: String,
    /// Whether its responses are streams.
    pub streams: bool,
    /// Distinct recorded requests.
    pub recorded: usize,
    /// Requests sent.
    pub sent: usize,
    /// Responses that could be compared.
    pub answered: usize,
    /// Recorded responses that they were compared with.
    pub compared: usize,
    /// Requests without a comparable response, by reason.
    pub failures: BTreeMap<String, usize>,
    /// Differences in shape.
    pub changes: Vec<Change>,
}

/// Responses with a comparable shape: provider and model, service, dialect, and whether they are streams.
type Group = (String, String, String, bool);

/// A recorded exchange that can be sent again.
struct Candidate {
    again: Resend,
    recorded: Vec<Value>,
}

/// Sends at most `sample` recorded requests of each service of `plan`, drawn by `seed`. Returns the result for each
/// service, and the number of exchanges left out because their stored requests are incomplete.
///
/// # Errors
/// If nothing is recorded, or nothing could be sent.
pub(crate) fn diff(
    opened: &Opened,
    plan: &Plan,
    sample: usize,
    seed: u64,
) -> Result<(Vec<ServiceDiff>, usize), DiffError> {
    let (groups, incomplete) = candidates(opened, plan);
    if groups.is_empty() {
        return Err(DiffError::NothingRecorded);
    }
    let mut found = Vec::new();
    for ((provider, service, profile, streams), mut candidates) in groups {
        let mut all = Shape::default();
        for candidate in &candidates {
            all.add(&candidate.recorded);
        }
        candidates.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let recorded = candidates.len();
        candidates.truncate(sample);
        let requests: Vec<Resend> = candidates.iter().map(|candidate| candidate.again.clone()).collect();
        let answers = send_again(opened, plan, &requests, JOBS)?;
        let (mut asked, mut now, mut failures) = (Shape::default(), Shape::default(), BTreeMap::<String, usize>::new());
        for (candidate, answer) in candidates.iter().zip(answers) {
            match answer.map(|answer| documents(&profile, &answer.headers, &answer.body)) {
                Ok(Some(documents)) => {
                    asked.add(&candidate.recorded);
                    now.add(&documents);
                }
                Ok(None) => *failures.entry("the answer is not JSON".to_owned()).or_default() += 1,
                Err(why) => *failures.entry(quote(&why.to_string(), 200)).or_default() += 1,
            }
        }
        let changes = now.changes(&asked, &all);
        let (sent, answered, compared) = (requests.len(), now.answers(), asked.answers());
        found.push(ServiceDiff {
            service,
            provider,
            profile,
            streams,
            recorded,
            sent,
            answered,
            compared,
            failures,
            changes,
        });
    }
    Ok((found, incomplete))
}

/// Recorded exchanges that can be sent again, each request once, and the number of incomplete ones.
fn candidates(opened: &Opened, plan: &Plan) -> (BTreeMap<Group, Vec<Candidate>>, usize) {
    let (mut groups, mut incomplete) = (BTreeMap::<Group, Vec<Candidate>>::new(), 0);
    let mut known = BTreeSet::new();
    let mut starts = BTreeSet::new();
    for (index, trial) in plan.trials.iter().enumerate() {
        let lane = opened.trial(plan, trial);
        // What a process asks before its first turn is recorded once for a scenario and a variant.
        let first = starts.insert((trial.scenario, trial.lane.variant.clone()));
        let start = first.then(|| lane.recorded_start().ok().flatten()).flatten();
        let cassettes: Vec<Cassette> = lane.recording().ok().into_iter().chain(start).collect();
        let exchanges = cassettes.iter().flat_map(|cassette| cassette.exchanges.iter().zip(cassette.requests()));
        for (exchange, request) in exchanges {
            let Outcome::Response { status: 200..300, headers, body, .. } = &exchange.outcome else { continue };
            let Some(recorded) = documents(&exchange.profile, headers, body) else { continue };
            let who = model_today(opened, trial, &exchange.service);
            if request.problem.is_some() {
                incomplete += 1;
            } else if known.insert((who.clone(), exchange.key.clone())) {
                let streams = Framing::of(&exchange.profile).is_stream(headers, body);
                let group = (who, exchange.service.clone(), exchange.profile.clone(), streams);
                let (service, profile) = (exchange.service.clone(), exchange.profile.clone());
                let again = Resend { trial: index, service, profile, request };
                groups.entry(group).or_default().push(Candidate { again, recorded });
            }
        }
    }
    (groups, incomplete)
}
