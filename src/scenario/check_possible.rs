//! Checks for expectations that no turn of the agent can meet: errors that it never ends with, sources and keywords
//! without a tool for them, retries beyond its limits, and expectations that contradict one another.

use super::check_expect::Expectations;
use super::diagnostic::{At, Mistake, did_you_mean};
use super::expect::CallOutcome;
use super::{CallExpectation, CallPattern, Expectation};
use crate::trace::{Account, Logged, Role};

impl Expectations<'_> {
    /// Whether a tool of the agent has this role; an agent with unknown tools may have one.
    pub(super) fn has_role(&self, role: Role) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool.role == role))
    }

    /// Reports parts of an expectation that can never hold.
    pub(super) fn possible(&mut self, expect: &Expectation, at: At<'_>) {
        self.error_kind(expect, at);
        self.sources_and_keywords(expect, at);
        self.retries_allowed(expect, at.key("retries"));
        self.kinds_of_log(expect, at.key("log"));
        self.calls_and_never(expect, at.key("calls"));
    }

    fn error_kind(&mut self, expect: &Expectation, at: At<'_>) {
        let Some(error) = &expect.error else { return };
        if self.errors.is_empty() || self.errors.contains(error.kind.as_str()) {
            return;
        }
        let at = at.key("error");
        let message = format!("no turn of this flow ends with the error `{}`", error.kind);
        let label = did_you_mean(&error.kind, self.errors.iter().copied());
        self.say(Mistake::at(at.key("kind"), "unknown-error", message).label(label));
    }

    fn kinds_of_log(&mut self, expect: &Expectation, at: At<'_>) {
        for (index, kind) in expect.log.iter().enumerate().filter(|(_, kind)| !Logged::KINDS.contains(&kind.as_str())) {
            let message = format!("no entry of a log is of the kind `{kind}`");
            let mistake = Mistake::at(at.index(index), "unknown-log-kind", message);
            self.say(mistake.label(did_you_mean(kind, Logged::KINDS)));
        }
    }

    fn sources_and_keywords(&mut self, expect: &Expectation, at: At<'_>) {
        let lacking = |role: Role| format!("no tool of this flow has the role `{}`", role.as_str());
        let refuses = expect.answer.as_ref().is_some_and(|answer| answer.refusal == Some(true));
        if let Some(sources) = &expect.sources {
            let here = at.key("sources");
            let claims = [("internal", sources.internal), ("external", sources.external)];
            // External results that were learned are found by keywords and cited as external.
            if sources.external == Some(true) && !self.has_role(Role::External) && !self.has_role(Role::Index) {
                self.say(Mistake::at(here.key("external"), "impossible", lacking(Role::External)));
            }
            if sources.internal == Some(true) && !self.has_role(Role::Knowledge) {
                self.say(Mistake::at(here.key("internal"), "impossible", lacking(Role::Knowledge)));
            }
            if refuses {
                let claimed = claims.into_iter().filter(|(_, claim)| *claim == Some(true)).map(|(key, _)| key);
                for key in claimed.chain(sources.at_least.filter(|least| *least > 0).map(|_| "at_least")) {
                    let message = "an answer that refuses names no source and claims none";
                    self.say(Mistake::at(here.key(key), "contradiction", message).on_key());
                }
            }
        }
        if expect.keywords.is_some() && !self.has_role(Role::Index) {
            self.say(Mistake::at(at.key("keywords"), "impossible", lacking(Role::Index)).on_key());
        }
    }

    fn retries_allowed(&mut self, expect: &Expectation, at: At<'_>) {
        for (index, retry) in expect.retries.iter().enumerate().filter(|_| self.tools.is_some()) {
            let (name, most) = match retry.account {
                Account::Transport => ("transport_retries", self.limits.transport_retries),
                Account::Tool => ("tool_retries", self.limits.tool_retries),
                Account::Model => continue,
            };
            let wanted = retry.at_least.is_some_and(|least| least > 0) || retry.recovered.is_some();
            if most == 0 && wanted {
                let message = format!("`limits.{name}` is 0: nothing is tried again");
                let mistake = Mistake::at(at.index(index), "impossible", message);
                self.mistakes.push(mistake.help("raise the limit, or expect `at_most: 0`"));
            }
        }
    }

    /// A call that must run and must never be tried.
    fn calls_and_never(&mut self, expect: &Expectation, at: At<'_>) {
        for (index, call) in expect.calls.iter().enumerate().filter(|(_, call)| !call.needs_none()) {
            let forbidden =
                call.patterns().iter().find(|wanted| expect.calls.iter().any(|other| forbids(other, wanted)));
            if let Some(wanted) = forbidden {
                let message = format!("another expectation forbids every call of `{}`", wanted.tool);
                self.say(Mistake::at(at.index(index), "contradiction", message));
            }
        }
    }
}

/// Whether an expectation excludes every call that `wanted` matches.
fn forbids(other: &CallExpectation, wanted: &CallPattern) -> bool {
    let every = |pattern: &CallPattern| {
        let outcome = pattern.outcome.is_none() || pattern.outcome == wanted.outcome;
        pattern.tool == wanted.tool && pattern.arguments.is_empty() && outcome
    };
    match other {
        CallExpectation::Never(pattern) => every(pattern),
        CallExpectation::AtMost(bound) => bound.times == 0 && every(&bound.call),
        // A refused call never ran, and these expectations list calls that ran.
        CallExpectation::Subset(list) | CallExpectation::Exact(list) => {
            wanted.outcome != Some(CallOutcome::Failed) && list.iter().all(|pattern| pattern.tool != wanted.tool)
        }
        _ => false,
    }
}
