//! The three modes of a trial: what is behind the proxy in each, and what is checked after a replay.

use super::setup::{Measured, Recorded};
use super::single_run::RunInput;
use super::{Work, heard, spans};
use crate::cassette::{self, Cassette, Exchange, Header, LocalTimes, Minted, Missed, Outcome as Recording};
use crate::knowledge::FoundPassages;
use crate::plan::PlannedTrial;
use crate::platform::clock::{Clock, FixedClock, RealClock};
use crate::platform::secrets::Redactor;
use crate::provider::observed;
use crate::trace::{EDITED, NamedPassage, Trace, TrialEnd, TrialError, TrialErrorKind};
use crate::transport::{ReplayTransport, Service, Transport, Turns};
use crate::trial::hold::HeldLane;
use crate::trial::outage::{Origin, ending, is_optional, with_outage};
use crate::trial::outcome::{Finished, error, redacted, replayed};
use crate::trial::proxy::{Asked, AskedBefore, Pattern, Vars};
use crate::trial::recording::Recorder;
use crate::trial::services::LiveAccess;
use crate::trial::verified::{Draft, keep};
use crate::trial::{Trial, TrialMode, live};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

type Outcome = Result<Finished, Box<TrialError>>;

impl Work<'_> {
    pub(super) async fn live(&self) -> Outcome {
        let LiveAccess { clock, transport } = self.access((self.trial.planned.seed, self.trial.fault()))?;
        // Values that the agent generates matter only where requests are looked up.
        let patterns = self.trial.opened.hold.as_ref().map(|_| self.outside.patterns.clone());
        let vars = Arc::new(Vars::new(patterns.unwrap_or_default(), BTreeMap::new()));
        let (below, held) = self.services(TrialMode::Live, &clock, transport, &vars)?;
        let input = RunInput {
            mode: TrialMode::Live,
            fresh: self.needs_fresh(false),
            services: below,
            vars,
            clock,
            pace: &Measured(Arc::new(LocalTimes::recording())),
            evidence: live::evidence(&self.outside.declared),
            recorded: None,
            turns: held.as_ref().map(HeldLane::turns).unwrap_or_default(),
        };
        let mut ran = self.run(input).await?;
        ran.trace.evidence.held = held.as_ref().map(HeldLane::calls);
        let redactor = self.trial.opened.redactor().knowing(ran.secrets);
        let (trace, passages) = self.named(ran.trace, &ran.found, &redactor);
        let trace = with_outage(self.trial, trace, &Origin::new());
        let printed = ran.printed.map(|text| redactor.redact(&text).into_owned());
        Ok(Finished { passages, printed, ..Finished::of(trace) })
    }

    pub(super) async fn record(&self) -> Outcome {
        let LiveAccess { clock, transport } = self.access((self.trial.planned.seed, self.trial.fault()))?;
        let vars = Arc::new(Vars::new(self.outside.patterns.clone(), BTreeMap::new()));
        let (below, held) = self.services(TrialMode::Record, &clock, transport, &vars)?;
        let subject = self.outside.subject(self.trial);
        let recorder = Recorder::begin(subject, below, &clock, Arc::new(self.trial.opened.redactor()));
        let times = Arc::new(LocalTimes::recording());
        let input = RunInput {
            mode: TrialMode::Record,
            fresh: self.needs_fresh(false),
            services: recorder.transport(),
            vars: Arc::clone(&vars),
            clock,
            pace: &Measured(Arc::clone(&times)),
            evidence: live::evidence(&self.outside.declared),
            recorded: None,
            turns: held.as_ref().map(HeldLane::turns).unwrap_or_default(),
        };
        let ran = self.run(input).await?;
        let recorder = recorder.holding(held.as_ref().map(HeldLane::calls));
        let redactor = Arc::new(recorder.redactor().knowing(ran.secrets));
        let (trace, _) = self.named(ran.trace, &ran.found, &redactor);
        let abandoned = ran.abandoned;
        let draft = Draft { trace, times: &times, vars: vars.values(), redactor, abandoned };
        let lines = ran.spans.iter().map(|line| draft.redactor.redact(line).into_owned()).collect();
        Ok(keep(self.trial, recorder.telling(lines), draft, |cassette| self.replay_from(cassette, true)).await)
    }

    /// Whether the agent needs a process that no other trial has used: it may remember conversations, and a struck trial reuses
    /// the id of the unstruck one.
    fn needs_fresh(&self, verifies: bool) -> bool {
        (verifies || self.trial.cell.is_some()) && !self.outside.forgets()
    }

    /// The redacted trace, which refers to its passages by name, and these.
    fn named(&self, mut trace: Trace, found: &FoundPassages, redactor: &Redactor) -> (Trace, Vec<Arc<NamedPassage>>) {
        let (passages, _) = self.trial.opened.passages.name(&mut trace, found, redactor);
        (redacted(trace, redactor), passages)
    }

    pub(super) async fn replay(&self) -> Outcome {
        self.replay_from(self.trial.recorded()?, false).await
    }

    /// Replays a recording; `verifies` one that was just made, in a process that no other trial ran in unless `reset`
    /// clears it.
    async fn replay_from(&self, cassette: Cassette, verifies: bool) -> Outcome {
        let header = cassette.header.clone();
        let evidence = replayed(&cassette, &self.outside.declared.model.name);
        let pace = Recorded(LocalTimes::replaying(cassette.stages.clone()));
        let recorded = Some(asked_in(&cassette));
        let vars = Vars::new(self.outside.patterns.clone(), header.vars.clone());
        let vars = Arc::new(vars.knowing(AskedBefore::of(&cassette)));
        let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(header.recorded_at));
        let replay = ReplayTransport::new(cassette, clock, self.trial.rerecord());
        let replay = Arc::new(replay.with_redactor(self.trial.opened.redactor()));
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let input = RunInput {
            mode: TrialMode::Replay,
            fresh: self.needs_fresh(verifies),
            services: Arc::clone(&replay) as Arc<dyn Transport>,
            vars: Arc::clone(&vars),
            clock,
            pace: &pace,
            evidence,
            recorded,
            turns: Turns::default(),
        };
        let ran = self.run(input).await?;
        let redactor = self.trial.opened.redactor().knowing(ran.secrets);
        let (mut trace, passages) = self.named(ran.trace, &ran.found, &redactor);
        trace.notes.extend(spans::difference(&header.spans, &ran.spans, &redactor).filter(|_| self.outside.spans));
        trace.notes.extend(self.other_providers(&header));
        // Every answer may depend on what the process received at its start.
        let from = &mut trace.evidence.recorded_from;
        if !from.ends_with(EDITED) && self.trial.opened.agents.has_edited_start(self.trial).await {
            *from = format!("{from} {EDITED}");
        }
        let printed = ran.printed.map(|text| redactor.redact(&text).into_owned());
        let answered = trace.end == TrialEnd::Completed && heard::failure(&trace.events).is_none();
        if answered && !self.case.asks_nothing {
            let silent = self.silent(&replay, verifies, ran.struck);
            if let Some(problem) = silent.or_else(|| self.asks_less(&replay).filter(|_| !ran.struck)) {
                trace.end = TrialEnd::Error(*problem);
            }
        }
        if trace.end == TrialEnd::Completed && !ran.struck {
            let outages = ending(self.trial, &trace, &header.recorded_from);
            if let Some(problem) = outages.iter().find_map(|outage| self.gives_up(&replay, outage)) {
                trace.end = TrialEnd::Error(*problem);
            }
        }
        let unused = if trace.end == TrialEnd::Completed { replay.unused() } else { Vec::new() };
        let mut trace = with_outage(self.trial, trace, &header.recorded_from);
        let failed = match &trace.end {
            // What failed when it was recorded, too, is no cause of a miss.
            TrialEnd::Error(miss) if !ran.struck && header.passed() && !self.case.expects_errors() => {
                heard::failed_before(miss, &trace.events)
            }
            _ => None,
        };
        let before = heard::failed_turn(&trace.events).map(|(turn, cause)| {
            format!("before it, turn {turn} failed: {}", cause.lines().next().unwrap_or_default())
        });
        if let Some(failed) = failed {
            trace.end = TrialEnd::Error(*failed);
        } else if let TrialEnd::Error(why) = &mut trace.end {
            why.detail.extend(before.filter(|_| why.kind == TrialErrorKind::CassetteMiss));
            // Without a recording that was just made, other words may be an edit.
            // Expressions find values in what the agent says, in which there are no placeholders.
            let missed = replay.missed();
            let said = |missed: &Missed| (vars.as_recorded(&missed.bodies.0), vars.as_recorded(&missed.bodies.1));
            let bodies: Vec<(Value, Value)> = missed.iter().map(said).collect();
            let said = |missed: &Missed| (vars.told(&missed.paths.0), vars.told(&missed.paths.1));
            let paths: Vec<(String, String)> = missed.iter().map(said).collect();
            let asked: Vec<&str> = self.case.turns().map(|turn| turn.ask.as_str()).collect();
            let bound: Vec<&str> = header.vars.values().flatten().map(String::as_str).collect();
            let pairs = bodies.iter().map(|(before, now)| (before, now));
            let mut minted = cassette::minted(pairs, &paths, &asked, &bound);
            minted.retain(|one| verifies || one.looks_generated);
            for one in &mut minted {
                let of_value = |(_, values): &(&String, &Vec<String>)| values.contains(&one.value);
                let is_taken = |name: &str| self.outside.patterns.iter().any(|declared| declared.name == name);
                if let Some((name, _)) = header.vars.iter().find(of_value) {
                    let patterns = self.outside.patterns.iter().filter(|declared| declared.name == *name);
                    why.detail.extend(unmatched(patterns, bodies.iter().map(|(_, now)| now), one));
                    one.name.clone_from(name);
                    continue;
                }
                while is_taken(&one.name) {
                    one.name.push_str("-more");
                }
            }
            why.detail.extend(vars_lines(&minted));
        }
        Ok(Finished { unused, passages, printed, ..Finished::of(trace) })
    }

    /// A note for each provider that the scenario names in place of the one that was recorded: requests to both are the same.
    fn other_providers(&self, header: &Header) -> Vec<String> {
        let recorded = |service: Service| header.recorded_from.get(service.as_str())?.split(' ').next();
        let other = |(service, now): (Service, &str)| {
            let from = recorded(service).filter(|from| ![now, "simulator"].contains(from))?;
            Some(format!(
                "the answers of `{}` were recorded from `{from}`, and the scenario names `{now}` now: record again to test that",
                service.as_str()
            ))
        };
        let is_ours = header.recorder.starts_with("ragcheck ");
        self.outside.services.providers().into_iter().filter(|_| is_ours).filter_map(other).collect()
    }

    /// The problem of an agent that no longer asks a service for what its recording holds: one that is declared, or one for
    /// searches or vectors. It asks directly, or behaves differently, and its traffic does not show which.
    fn silent(&self, replay: &ReplayTransport, verifies: bool, struck: bool) -> Option<Box<TrialError>> {
        let (services, silent) = (&self.outside.services, replay.silent());
        // A fault answers a search before its recording does.
        let retrieves =
            |kind: (&str, &str)| !struck && observed::retrieves(kind.1) && (verifies || !self.may_have_cached(kind));
        let required = |kind: (&str, &str)| {
            !is_optional(self.trial, kind.0) && (services.declared(kind.0).is_some() || retrieves(kind))
        };
        let ((name, profile), count) = silent.iter().find(|(kind, _)| required(**kind))?;
        let missing = heard::not_asked_for(*count, "request")?;
        let which = if replay.given().any(|exchange| exchange.service == *name) {
            format!("no `{profile}` request to `{name}`")
        } else {
            format!("no request to `{name}`")
        };
        let message = format!("{which} came to the proxy; {missing}: does the agent still go there itself?");
        let (whose, declare) = match *name {
            "embeddings" => ("model", "`optional: [embeddings]`"),
            "search" => ("search", "`optional: [search]`"),
            other => (other, "it `optional: true`"),
        };
        let remedy = format!(
            "use the base URL of `{whose}` that the agent's environment has, and clear a cache of its answers in `reset`; record \
             again if the agent answers without it now, or declare {declare}"
        );
        Some(error(TrialErrorKind::NothingAsked, &message, vec![remedy]))
    }

    /// Whether the recording of an earlier trial of the same agent holds requests of that service and profile, whose answers
    /// a process may keep. Which process a trial has is chance: the first trial in the plan has to ask, whichever it has.
    fn may_have_cached(&self, (service, profile): (&str, &str)) -> bool {
        let (outside, Trial { opened, plan, planned, .. }) = (self.outside, self.trial);
        let is_same = |one: &&PlannedTrial| {
            let agent = opened.agent(one);
            agent.is_some_and(|agent| (&agent.command, &agent.http) == (&outside.command, &outside.http))
        };
        let earlier = plan.trials.iter().take_while(|one| one.id != planned.id).filter(is_same);
        let mut recorded = earlier.filter_map(|one| opened.trial(plan, one).recording().ok());
        let is_of = |exchange: &Exchange| exchange.service == service && exchange.profile == profile;
        !outside.restarts && recorded.any(|cassette| cassette.exchanges.iter().any(is_of))
    }

    /// The problem of an agent that asked for fewer completions than it recorded, all of which its model answered: it
    /// behaves differently now, or asks elsewhere, and nothing shows which.
    fn asks_less(&self, replay: &ReplayTransport) -> Option<Box<TrialError>> {
        let given = |exchange: &&Exchange| {
            observed::is_completion(&exchange.profile)
                && self.outside.services.declared(&exchange.service) != Some(true)
                && is_success(exchange)
        };
        let message = less_completions(replay.left().filter(given).count())?;
        let remedy = format!("re-record: {}", self.trial.rerecord());
        Some(error(TrialErrorKind::AsksLess, &message, vec![remedy]))
    }

    /// The problem of an agent that ends with a recorded outage, after which its recording goes on: it no longer asks
    /// again, and the service itself was not asked.
    fn gives_up(&self, replay: &ReplayTransport, (service, what): &(Service, String)) -> Option<Box<TrialError>> {
        let of_service = |exchange: &&Exchange| exchange.service == service.as_str();
        let failed = replay.given().filter(of_service).filter(|exchange| !is_success(exchange));
        let failed = failed.map(|exchange| exchange.ordinal).min().unwrap_or_default();
        let left = replay.left().filter(of_service);
        let (completions, others): (Vec<&Exchange>, Vec<&Exchange>) = left
            .filter(|exchange| exchange.ordinal > failed && is_success(exchange))
            .partition(|exchange| observed::is_completion(&exchange.profile));
        let message = if completions.is_empty() {
            let missing = heard::not_asked_for(others.len(), "request")?;
            format!("{missing}: the agent asks `{}` less than when it was recorded", service.as_str())
        } else {
            less_completions(completions.len())?
        };
        let cause = format!(
            "the recording goes on after its outage ({what}), and the agent no longer does: does it still repeat a request \
             that failed?"
        );
        let remedy = format!("if it no longer repeats them on purpose, re-record: {}", self.trial.rerecord());
        Some(error(TrialErrorKind::AsksLess, &message, vec![cause, remedy]))
    }
}

/// Why a variable that matched a value while recording does not match the value that is there now; `None` if it does.
fn unmatched<'a>(
    patterns: impl Iterator<Item = &'a Pattern>,
    bodies: impl Iterator<Item = &'a Value>,
    Minted { value, other, .. }: &Minted,
) -> Option<String> {
    let (patterns, bodies): (Vec<&Pattern>, Vec<&Value>) = (patterns.collect(), bodies.collect());
    let mut found = patterns.iter().flat_map(|pattern| bodies.iter().flat_map(move |body| pattern.found(body)));
    let part = found.find(|found| other.contains(*found) || found.contains(other.as_str()));
    if part.is_some_and(|part| part.len() >= other.len()) {
        return None;
    }
    let name = &patterns.first()?.name;
    let here = match part {
        Some(part) => format!("matches only `{part}` of `{other}` here now"),
        None => "does not match here now".to_owned(),
    };
    Some(format!("the expression of the variable `{name}` matched `{value}` while recording and {here}: replace it"))
}

fn is_success(exchange: &Exchange) -> bool {
    matches!(exchange.outcome, Recording::Response { status: 200..300, .. })
}

/// Message for an agent that did not ask for this many recorded completions.
fn less_completions(count: usize) -> Option<String> {
    let missing = heard::not_asked_for(count, "completion")?;
    Some(format!("{missing}: the agent asks its model less than when it was recorded, or partly elsewhere"))
}

/// The requests in a recording.
fn asked_in(cassette: &Cassette) -> Asked {
    let mut asked = Asked::default();
    for exchange in &cassette.exchanges {
        asked.count(observed::is_completion(&exchange.profile));
    }
    asked
}

/// Lines that declare values which an agent generates per run.
fn vars_lines(minted: &[Minted]) -> Vec<String> {
    let head = (!minted.is_empty()).then(|| TrialError::GENERATED.to_owned());
    head.into_iter().chain(minted.iter().map(|one| format!("  {one}"))).collect()
}
