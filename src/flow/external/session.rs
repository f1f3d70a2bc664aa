//! A trial with the agent, turn by turn.

use super::chains::Chains;
use super::cookies::Cookies;
use super::probe::{HeldKeyword, Probe, read_back};
use super::target::{Endpoint, Fill, Reply};
use super::turn::{Built, Seen, Tracing};
use super::{
    AWAITED, CRASHED, Fault, Life, Pace, SILENCE, Settings, Silence, TIMED_OUT, Telemetry, Trouble, UNASKED, Words,
};
use crate::flow::context::micros;
use crate::flow::digest;
use crate::platform::clock::{Clock, timeout};
use crate::provider::chat::{Message, Role};
use crate::trace::{self, Event, IndexResult, Roles, TurnEnded, TurnOutcome, What};
use crate::transport::{HttpRequest, HttpResponse, Passed, Tap, Transport, TransportError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// One trial with the agent.
pub(crate) struct Session<'a> {
    /// The scenario's settings.
    pub settings: &'a Settings,
    /// The trial's id.
    pub trial: &'a str,
    /// The variant's name.
    pub variant: &'a str,
    /// Whether each turn is a separate conversation: the control arm.
    pub withhold_history: bool,
    /// Whether traces hold the bodies of the agent's replies.
    pub keep_replies: bool,
    pub way: Arc<dyn Transport>,
    /// How its keyword index is read, if the scenario says so.
    pub probe: Option<Probe>,
    /// Its process, if ragcheck started it.
    pub life: Option<&'a dyn Life>,
    /// Traffic of the agent with the services.
    pub tap: Arc<Tap>,
    /// Real time.
    pub clock: Arc<dyn Clock>,
    /// Whether the agent may send no request after a reply; not checked in replay, where its exchanges are known.
    pub silence: Silence,
    /// Whether a turn that takes too long fails, which is a verdict; otherwise the trial cannot be judged.
    pub late_fails: bool,
    /// Trace id that its requests carry to say which trial they belong to; `None` if it runs one trial at a time.
    pub trace: Option<String>,
    /// Measures or replays the duration of turns.
    pub pace: &'a dyn Pace,
    /// Replaces values generated per run.
    pub words: &'a dyn Words,
    /// Where its spans arrive, if it sends any.
    pub telemetry: Option<&'a dyn Telemetry>,
    /// Conversations that its services keep.
    pub chains: Chains,
    /// Its turns and their spans so far.
    pub tracing: Tracing,
    /// What its index held after the turns that wrote to it.
    pub held: BTreeMap<(u32, u32), Vec<HeldKeyword>>,
    /// Events so far.
    pub events: Vec<Event>,
    /// Duration so far.
    pub took: Duration,
    /// Number of completions so far.
    pub completions: u32,
    /// Tools that the agent's requests to the model have offered, in order; `None` before the first request.
    pub offered: Option<Vec<String>>,
    /// The arguments that the schemas of these tools name.
    pub parameters: BTreeMap<String, BTreeSet<String>>,
}

/// What the transport to the agent returned.
type AgentReply = Result<HttpResponse, TransportError>;

/// One conversation with the agent.
#[derive(Debug, Clone)]
pub(crate) struct ExternalConversation {
    /// Its ordinal within the trial, from 0.
    pub ordinal: u32,
    /// Tenant of its user.
    tenant: Option<String>,
    turns: u32,
    history: Vec<Message>,
    cookies: Cookies,
}

/// Calls the endpoint that resets the agent, over `way`.
///
/// # Errors
/// [`Trouble::Unreached`] if it is unreachable or does not succeed.
pub(crate) async fn reset(endpoint: &Endpoint, way: &dyn Transport, trial: &str) -> Result<(), Trouble> {
    let at = endpoint.url();
    match way.send(endpoint.post(serde_json::json!({ "trial": trial }))).await {
        Ok(response) if (200..300).contains(&response.status) => Ok(()),
        Ok(response) => Err(Trouble::Unreached(format!("`reset` {at} answered with HTTP {}", response.status))),
        Err(error) => Err(Trouble::Unreached(format!("`reset` {at} did not answer: {error}"))),
    }
}

impl Session<'_> {
    /// Roles of the agent's tools, including that of a search without a call.
    pub(crate) fn roles(&self) -> Roles {
        let mut roles = self.settings.roles.clone();
        let unasked = |event: &Event| matches!(&event.what, What::ToolCalled(call) if call.tool == UNASKED);
        if self.events.iter().any(unasked) {
            roles.insert(UNASKED.to_owned(), trace::Role::External);
        }
        roles
    }

    /// Begins a conversation of a user of that tenant.
    pub(crate) fn begin(&mut self, ordinal: u32, name: &str, tenant: Option<&str>) -> ExternalConversation {
        let tenant = tenant.map(str::to_owned);
        let (session, name) = (name.to_owned(), name.to_owned());
        self.push(self.took, ordinal, 0, What::ConversationStarted { name, session, tenant: tenant.clone() });
        ExternalConversation { ordinal, tenant, turns: 0, history: Vec::new(), cookies: Cookies::default() }
    }

    /// Runs one turn, from the user's words to the agent's reply.
    ///
    /// # Errors
    /// [`Trouble`] if the trial cannot continue. An agent that answers with an error has ended its turn: that is no
    /// error.
    pub(crate) async fn turn(&mut self, conversation: &mut ExternalConversation, query: &str) -> Result<(), Trouble> {
        let (turn, began) = (conversation.turns, self.took);
        conversation.turns += 1;
        self.push(began, conversation.ordinal, turn, What::TurnStarted { query: query.to_owned() });
        let shown: &[Message] = if self.withhold_history { &[] } else { &conversation.history };
        let conversation_id = self.conversation(conversation.ordinal, turn);
        let fill = Fill {
            message: query,
            conversation: &conversation_id,
            history: shown,
            tenant: conversation.tenant.as_deref(),
            variant: self.variant,
            trial: self.trial,
            turn,
            prompts: &self.settings.prompts,
        };
        let mut request = self.settings.target.request(&fill);
        let parent = format!("{:016x}", (u64::from(conversation.ordinal) << 32) + u64::from(turn) + 1);
        if let Some(id) = &self.trace {
            request.headers.push(("traceparent".to_owned(), format!("00-{id}-{parent}-01")));
        }
        let has_own = request.headers.iter().any(|(name, _)| name == "cookie");
        let cookies = conversation.cookies.header().filter(|_| !has_own && !self.withhold_history);
        request.headers.extend(cookies.map(|value| ("cookie".to_owned(), value)));
        if self.silence != Silence::Unchecked {
            self.tap.begin_turn(&self.clock);
        }
        let sent = self.clock.now();
        let reply = self.reply(request).await?;
        reply.iter().flatten().for_each(|response| conversation.cookies.learn(response));
        let real = self.clock.now().saturating_sub(sent);
        let is_late = matches!(reply, Err((TIMED_OUT, _)));
        if !is_late {
            self.settled().await?;
        }
        let mut passed = self.tap.take();
        self.chains.follow(&mut passed);
        let exchanges = passed.iter().map(Passed::took).sum();
        let took = self.pace.turn(real, exchanges);
        let known: Vec<(Role, String)> = conversation
            .history
            .iter()
            .map(|message| (message.role, message.content.clone()))
            .chain([(Role::User, query.to_owned())])
            .collect();
        let reply = match reply {
            Ok(reply) => self.settings.target.reply(reply).in_words(self.words),
            Err((kind, why)) => Reply::Failed(kind, self.words.text(&why), serde_json::Value::Null),
        };
        let body = reply.body().filter(|_| self.keep_replies).cloned();
        let (ordinal, completions) = (conversation.ordinal, self.completions);
        let seen = Seen { conversation: ordinal, turn, began, took, known, passed, reply, completions };
        let Built { miss, outcome, events: mut told, completions, offered, parameters, late } =
            self.build(seen, &parent).await;
        self.completions = completions;
        self.tracing.late.insert((ordinal, turn), late);
        if let Some(tools) = offered {
            let known = self.offered.get_or_insert_default();
            known.extend(tools.iter().filter(|tool| !known.contains(tool)).cloned().collect::<Vec<_>>());
        }
        for (tool, arguments) in parameters {
            self.parameters.entry(tool).or_default().extend(arguments);
        }
        if miss.is_none() && outcome.as_ref().is_ok_and(|outcome| !failed_as(outcome, &LOST)) {
            self.probed(&mut told, (ordinal, turn)).await?;
        }
        for (at, what) in told {
            self.push(began + at.min(took), conversation.ordinal, turn, what);
        }
        self.took = began + took;
        if let Some(miss) = miss {
            return Err(Trouble::Miss(miss));
        }
        let outcome = outcome?;
        conversation.history.push(Message::text(Role::User, query));
        if let TurnOutcome::Answered(answer) = &outcome {
            conversation.history.push(Message::text(Role::Assistant, answer.text.clone()));
        }
        let history = conversation.history.iter().map(|message| digest(message.role, &message.content)).collect();
        let took_us = micros(took);
        self.push(
            self.took,
            conversation.ordinal,
            turn,
            What::TurnEnded(TurnEnded { took_us, outcome, history, reply: body }),
        );
        Ok(())
    }

    /// Whether the last turn took longer than its limit: the agent still works on it, and can be asked nothing more.
    pub(crate) fn is_late(&self) -> bool {
        self.events.last().is_some_and(|event| ended_as(event, &[TIMED_OUT]))
    }

    /// Reads the agent's keyword index after a turn that wrote to it. What the agent asks its services for meanwhile
    /// belongs to no turn.
    async fn probed(&mut self, told: &mut [(Duration, What)], of: (u32, u32)) -> Result<(), Trouble> {
        let mut entries: Vec<&mut IndexResult> = told.iter_mut().filter_map(|(_, what)| what.indexed_mut()).collect();
        let probe = self.probe.as_ref().filter(|probe| !entries.is_empty() && !probe.after_trial);
        let Some(probe) = probe else { return Ok(()) };
        let held = probe.ask(&self.conversation(of.0, of.1), &*self.clock, self.settings.turn, self.words).await?;
        self.settled().await?;
        self.no_miss()?;
        for entry in &mut entries {
            read_back(entry, &held);
        }
        self.held.insert(of, held);
        Ok(())
    }

    /// Waits for the agent's reply. At the time limit, further requests of the agent are refused, and the reply of one that
    /// runs elsewhere is awaited for the same time again: a request does not say which trial it belongs to, so none may
    /// fall into the next one.
    ///
    /// The inner error says how the agent's process failed this turn.
    async fn reply(&self, request: HttpRequest) -> Result<Result<AgentReply, Fault>, Trouble> {
        let limit = self.settings.turn;
        let mut reply = self.way.send(request);
        if let Ok(reply) = timeout(&*self.clock, limit, &mut reply).await {
            if let (Err(TransportError::Connection { message, .. }), Some(life)) = (&reply, self.life)
                && let Some(fault) = life.failure(message).await
            {
                return Ok(Err(fault));
            }
            return Ok(Ok(reply));
        }
        self.tap.close();
        let at = self.settings.target.endpoint.url();
        let mut told = format!("the agent at {at} gave no reply within {} s (limits.turn)", limit.as_secs_f64());
        let advice = self.life.and_then(Life::advice);
        // An agent that has asked nothing may wait for a service that it asks elsewhere.
        let is_failure = self.late_fails && advice.is_none() && !self.tap.services().is_empty();
        // A process that ragcheck started is ended with its trial, so nothing of it can fall into the next one.
        if self.life.is_some() {
            told.extend(advice);
        } else if timeout(&*self.clock, limit, reply).await.is_err() {
            told.push_str(", nor within as long again: what it still asks for may fall into the next trial");
        }
        if is_failure { Ok(Err((TIMED_OUT, told))) } else { Err(Trouble::TooSlow(told)) }
    }

    /// Waits until a turn that failed leaves no request in flight, so that none falls into the next trial.
    pub(crate) async fn abandoned(&self) {
        let until = self.clock.now().saturating_add(self.settings.turn);
        while self.tap.under_way() > 0 && self.clock.now() < until {
            self.clock.sleep(AWAITED).await;
        }
    }

    /// After the reply, waits for requests in flight. Any later request is refused and ends the trial, because it would
    /// be counted in another turn or trial.
    pub(super) async fn settled(&self) -> Result<(), Trouble> {
        let checked = self.silence != Silence::Unchecked;
        if checked {
            self.tap.end_turn();
        }
        let busy = self.tap.under_way() > 0;
        self.abandoned().await;
        if !checked {
            return Ok(());
        }
        if busy || self.silence == Silence::Always {
            self.clock.sleep(SILENCE).await;
        }
        let at = self.settings.target.endpoint.url();
        if self.tap.under_way() > 0 {
            self.tap.close();
            let limit = self.settings.turn.as_secs_f64();
            return Err(Trouble::AfterReply(format!(
                "the agent at {at} has replied, and waits for an answer of a service since {limit} s (limits.turn)"
            )));
        }
        match self.tap.open() {
            0 => Ok(()),
            late => {
                self.tap.close();
                let requests = if late == 1 { "1 request".to_owned() } else { format!("{late} requests") };
                Err(Trouble::AfterReply(format!(
                    "the agent at {at} went on asking after its reply: {requests} to the proxy within {} ms",
                    SILENCE.as_millis()
                )))
            }
        }
    }

    /// The conversation's id for the agent: the same in every run, and different for each turn if history is withheld.
    pub(super) fn conversation(&self, ordinal: u32, turn: u32) -> String {
        let plain: String = self
            .trial
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '-' })
            .collect();
        if self.withhold_history { format!("{plain}-{ordinal}-{turn}") } else { format!("{plain}-{ordinal}") }
    }

    fn push(&mut self, at: Duration, conversation: u32, turn: u32, what: What) {
        self.events.push(Event { at_us: micros(at), conversation, turn, what });
    }
}

/// Kinds of failures after which the agent cannot be asked for its index.
pub(super) const LOST: [&str; 2] = [CRASHED, TIMED_OUT];

/// Whether an event is the end of a turn that failed as one of these kinds.
pub(crate) fn ended_as(event: &Event, kinds: &[&str]) -> bool {
    matches!(&event.what, What::TurnEnded(ended) if failed_as(&ended.outcome, kinds))
}

fn failed_as(outcome: &TurnOutcome, kinds: &[&str]) -> bool {
    matches!(outcome, TurnOutcome::Failed { kind, .. } if kinds.contains(&kind.as_str()))
}
