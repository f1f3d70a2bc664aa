//! Runs a case with a flow: its conversations in sequence or in parallel, each turn by turn.

use super::environment::environment;
use super::keyword_index;
use super::opened::{FlowSetup, Trial};
use super::outcome::{foreign, unusable, with_faults};
use super::stages::RecordedStages;
use crate::flow::{Abort, AgentContext, ConversationState, Flow, reply};
use crate::knowledge::FoundPassages;
use crate::plan::ResolvedCase;
use crate::platform::clock::Clock;
use crate::platform::files::TemporaryFolder;
use crate::platform::secrets::Redactor;
use crate::provider::faults::{FaultTransport, Faults};
use crate::scenario::{Conversation, KeywordIndexState};
use crate::trace::{Evidence, NamedPassage, Trace, TrialEnd, TrialError, version_of};
use crate::transport::{Transport, Turns};
use futures_util::future::try_join_all;
use std::sync::Arc;

/// A trial of a flow in its environment, for any transport and clock.
pub(super) struct FlowTrial<'o> {
    trial: Trial<'o>,
    setup: &'o FlowSetup,
    /// The trial's case.
    pub(super) case: &'o ResolvedCase,
    environment: AgentContext,
    found: FoundPassages,
    clock: Arc<dyn Clock>,
    /// File of the keyword index, removed after the trial.
    index: Option<TemporaryFolder>,
    turns: Turns,
    faults: Option<Arc<Faults>>,
}

impl<'o> FlowTrial<'o> {
    /// Opens the environment; `seed` determines delays between HTTP attempts.
    ///
    /// # Errors
    /// If a provider cannot be used, or the trial is of another plan.
    pub(super) fn new(
        trial: Trial<'o>,
        setup: &'o FlowSetup,
        transport: &Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        stages: RecordedStages,
        seed: u64,
    ) -> Result<Self, Box<TrialError>> {
        let agent = (trial.opened, trial.planned, setup);
        let faults = trial.faults(&clock);
        let struck = faults.as_ref().map(|faults| FaultTransport::of_flow(Arc::clone(transport), Arc::clone(faults)));
        let transport = struck.as_ref().unwrap_or(transport);
        let mut environment = environment(agent, transport, &clock, Arc::new(stages), seed).map_err(unusable)?;
        environment.faults.clone_from(&faults);
        let case = trial.case().ok_or_else(foreign)?;
        let found = environment.knowledge.noting();
        Ok(Self { trial, setup, case, environment, found, clock, index: None, turns: Turns::default(), faults })
    }

    /// Creates the keyword index in the state that the case declares.
    ///
    /// # Errors
    /// If its file cannot be created in the project's folder.
    pub(super) fn with_index(mut self) -> Result<Self, Box<TrialError>> {
        let root = &self.trial.opened.loaded.root;
        let unwritable = self.faults.as_ref().is_some_and(|faults| faults.index_is_unwritable());
        let state = unwritable.then_some(KeywordIndexState::Unwritable).or(self.case.keyword_index);
        self.index = keyword_index::place(&mut self.environment, state, root)?;
        Ok(self)
    }

    /// Counts the turns in `turns`.
    pub(super) fn counting(self, turns: Turns) -> Self {
        Self { turns, ..self }
    }

    /// Runs all turns of the case. A failed turn does not stop the conversation: the next turn is sent.
    ///
    /// # Errors
    /// [`Abort`] if the trial cannot continue.
    pub(super) async fn drive(&self) -> Result<(), Abort> {
        let (flow, environment, case) = (self.setup.flow, &self.environment, self.case);
        environment.sessions.declare(case.fault.as_deref().unwrap_or_default());
        let mut ordinal = 0;
        for step in &case.steps {
            environment.keywords.close();
            let started = (ordinal..)
                .zip(step)
                .map(|(ordinal, one)| converse((flow, &self.turns), environment, ordinal, one, case));
            try_join_all(started).await?;
            ordinal += u32::try_from(step.len()).unwrap_or(u32::MAX);
        }
        Ok(())
    }

    /// The trial's trace; its passages in full; and whether none of them held a key.
    pub(super) fn end(
        self,
        evidence: Evidence,
        end: TrialEnd,
        redactor: &Redactor,
    ) -> (Trace, Vec<Arc<NamedPassage>>, bool) {
        let mut trace = with_faults(self.trial.trace(evidence, end), self.faults.as_deref());
        trace.took_us = u64::try_from(self.clock.now().as_micros()).unwrap_or(u64::MAX);
        // The hash of a base behind a server is known only after it was searched.
        trace.evidence.knowledge = self.environment.knowledge.hash();
        trace.events = self.environment.take_events();
        trace.version = version_of(&trace.events);
        self.setup.describe_tools(&mut trace);
        let (passages, clean) = self.trial.opened.passages.name(&mut trace, &self.found, redactor);
        (trace, passages, clean)
    }
}

async fn converse(
    (flow, turns): (&dyn Flow, &Turns),
    environment: &AgentContext,
    ordinal: u32,
    planned: &Conversation,
    case: &ResolvedCase,
) -> Result<(), Abort> {
    let mut conversation = ConversationState::new(ordinal, &planned.name).of_tenant(planned.tenant.as_deref());
    conversation.tool_context.clone_from(&planned.tool_context);
    environment.conversation_started(&conversation);
    for turn in &planned.turns {
        turns.begin();
        while let Err(abort) = flow.turn(environment, &mut conversation, &turn.ask).await {
            conversation = match abort {
                Abort::Killed => restarted(environment, &conversation)?,
                other => return Err(other),
            };
        }
        if case.expects_reply() {
            environment.replied(ordinal, |outcome| reply::body(flow, &conversation, outcome));
        }
    }
    flow.session_ended(environment, &conversation);
    Ok(())
}

/// Conversation state after a simulated process restart: only what the store holds.
fn restarted(environment: &AgentContext, before: &ConversationState) -> Result<ConversationState, Abort> {
    match environment.sessions.load(&before.session) {
        Ok(Some(text)) => Ok(ConversationState::from_json(&text)?),
        Ok(None) | Err(_) => Ok(ConversationState::new(before.ordinal, &before.name)),
    }
}
