//! `ragcheck cassette diff`: a sample of recorded requests sent to today's providers, and the shapes of the answers
//! compared: members and types, never texts.

use super::arguments::Diff;
use crate::cassette::{Change, Outcome, Shape};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::run::{select, variables};
use crate::run;
use crate::trace::text::plural;
use crate::trace::text::quote;
use crate::transport::sse;
use crate::trial::{Resend, TrialRunner, documents};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Requests at the same time.
const JOBS: usize = 4;
/// Differences that are printed of one service.
const SHOWN: usize = 40;

/// One service, as far as shapes go: provider and model, service, dialect, and whether it streams.
type Group = (String, String, String, bool);

/// A recorded exchange that can be sent again.
struct Candidate {
    again: Resend,
    recorded: Vec<Value>,
}

/// Does what `ragcheck cassette diff` was asked to.
///
/// # Errors
/// Every mistake in the files, or that nothing recorded can be sent.
pub fn run(given: &Diff) -> Result<Exit, Problem> {
    let (loaded, plan) = select(&given.select, None, |_, _| Ok(None))?;
    let runner = TrialRunner::new(Arc::new(loaded)).map_err(|why| why.to_string())?;
    let runner = runner.with_variables(variables(given.env_file.as_deref())?);
    let (mut groups, mut incomplete) = (BTreeMap::<Group, Vec<Candidate>>::new(), 0);
    let mut known = BTreeSet::new();
    for (index, trial) in plan.trials.iter().enumerate() {
        let Ok(cassette) = runner.recording(&plan, trial) else { continue };
        for (exchange, request) in cassette.exchanges.iter().zip(cassette.requests()) {
            let Outcome::Response { status: 200..300, headers, body, .. } = &exchange.outcome else { continue };
            let Some(recorded) = documents(headers, body) else { continue };
            let who = runner.who(&plan, trial, &exchange.service);
            if request.problem.is_some() {
                incomplete += 1;
            } else if known.insert((who.clone(), exchange.key.clone())) {
                let streams = sse::is_stream(headers, body);
                let group = (who, exchange.service.clone(), exchange.profile.clone(), streams);
                let (service, profile) = (exchange.service.clone(), exchange.profile.clone());
                let again = Resend { trial: index, service, profile, request };
                groups.entry(group).or_default().push(Candidate { again, recorded });
            }
        }
    }
    if groups.is_empty() {
        return Err(Problem::Words(
            "none of these trials has a recorded answer to compare with: record them first".into(),
        ));
    }
    if incomplete > 0 {
        output::remark(&format!(
            "{} passed over: their stored requests are incomplete",
            plural(incomplete, "exchange")
        ));
    }
    let mut exit = Exit::Passed;
    for ((who, service, profile, streams), mut candidates) in groups {
        let mut all = Shape::default();
        for candidate in &candidates {
            all.add(&candidate.recorded);
        }
        candidates.shuffle(&mut ChaCha8Rng::seed_from_u64(given.select.seed));
        let recorded = candidates.len();
        candidates.truncate(given.sample as usize);
        let requests: Vec<Resend> = candidates.iter().map(|candidate| candidate.again.clone()).collect();
        let answers = run::again(&runner, &plan, &requests, JOBS).map_err(|why| format!("nothing was sent: {why}"))?;
        let (mut asked, mut now, mut failures) = (Shape::default(), Shape::default(), BTreeMap::<String, usize>::new());
        for (candidate, answer) in candidates.iter().zip(answers) {
            match answer.map(|answer| documents(&answer.headers, &answer.body)) {
                Ok(Some(documents)) => {
                    asked.add(&candidate.recorded);
                    now.add(&documents);
                }
                Ok(None) => *failures.entry("the answer is no JSON".to_owned()).or_default() += 1,
                Err(why) => *failures.entry(quote(&why, 200)).or_default() += 1,
            }
        }
        let how = if streams { format!("{profile}, streamed") } else { profile };
        let (sent, answered) = (requests.len(), now.answers());
        output::result(&format!(
            "{service}, {who} ({how}): {sent} of {} sent, {answered} answered\n",
            plural(recorded, "recorded request")
        ));
        for (why, count) in failures {
            output::result(&format!("  failed {count} times: {why}\n"));
            exit = exit.worse(Exit::Incomplete);
        }
        let changes = now.changes(&asked, &all);
        changes
            .iter()
            .take(SHOWN)
            .for_each(|change| output::result(&format!("  {}\n", words(change, asked.answers()))));
        if changes.len() > SHOWN {
            output::result(&format!("  and {} more\n", changes.len() - SHOWN));
        }
        if changes.iter().any(Change::counts) {
            exit = exit.worse(Exit::Failed);
        } else if answered > 0 {
            output::result("  same shape\n");
        }
    }
    Ok(exit)
}

fn words(change: &Change, answers: usize) -> String {
    match change {
        Change::New { path, types } => format!("new: {}: {types}", quote(path, 200)),
        Change::Gone { path, types } => format!("gone: {}: {types}, in every recorded answer", quote(path, 200)),
        Change::Retyped { path, before, now } => {
            format!("changed type: {}: {before} before, {now} now", quote(path, 200))
        }
        Change::Unseen { path, of } => {
            format!("not seen: {}, in {of} of {answers} recorded answers; may depend on what is said", quote(path, 200))
        }
    }
}
