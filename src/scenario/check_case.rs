//! Checks of cases and conversations: each has user input and an expectation, and names are unique.

use super::check::Checker;
use super::check_expect::Scene;
use super::diagnostic::{At, Mistake, did_you_mean};
use super::document::{Conversation, RelatedKind};
use super::expect::{AnswerExpectation, Expectation};
use super::{Case, SequenceStep, Turn};
use crate::settings::DeclaredFault;
use crate::trace::EXTERNAL;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Cases per thread and batch: compiling their regular expressions dominates the cost.
const CHUNK: usize = 128;

impl Checker<'_> {
    /// Checks all cases; `kept` holds their indices in the file.
    pub(super) fn cases(&mut self, kept: &[usize]) {
        let root = At::ROOT;
        let at = root.key("cases");
        if self.scenario.cases.is_empty() && kept.is_empty() {
            self.say(Mistake::at(at, "no-cases", "the scenario has no cases"));
        }
        let mut names = BTreeSet::new();
        for (case, index) in self.scenario.cases.iter().zip(kept) {
            let at = at.index(*index);
            self.name(&case.case, at.key("case"));
            if !names.insert(case.case.as_str()) {
                let mistake = Mistake::at(at.key("case"), "duplicate-case", "another case has this name");
                self.say(mistake.label("names are unique in a scenario"));
            }
        }
        let citable = self.expectations.citable;
        let parts = self.scenario.cases.par_chunks(CHUNK).zip(kept.par_chunks(CHUNK));
        let found = parts.map(|(cases, kept)| {
            let mut part = Checker::new(self.scenario, self.around, citable);
            cases.iter().zip(kept).for_each(|(case, index)| part.case(case, at.index(*index)));
            part.finish()
        });
        let found: Vec<Vec<Mistake>> = found.collect();
        self.mistakes.extend(found.into_iter().flatten());
    }

    /// Checks declared faults.
    pub(super) fn faults(&mut self, faults: &[DeclaredFault], at: At<'_>) {
        for (index, fault) in faults.iter().enumerate() {
            if let Some((key, why)) = fault.mistake() {
                self.say(Mistake::at(at.index(index).key(key), "impossible-fault", why));
            }
        }
    }

    fn case(&mut self, case: &Case, at: At<'_>) {
        self.covers(&case.covers, at.key("covers"));
        self.excluded(&case.excluded_from, at.key("excluded_from"));
        if let Some(fault) = &case.fault {
            self.name(fault, at.key("fault"));
        }
        self.faults(&case.faults, at.key("faults"));
        if case.fault.is_none()
            && case.faults.is_empty()
            && self.scenario.faults.is_empty()
            && !case.excluded_from.is_empty()
        {
            let mistake =
                Mistake::at(at.key("excluded_from"), "excluded-without-fault", "the case declares no `fault`");
            self.say(mistake.on_key().help(
                "a case is left out of a criterion only for what goes wrong in it on purpose: name that by `fault`",
            ));
        }
        self.external_case(case, at);
        if case.tenant.is_some() {
            self.tenant(at.key("tenant"));
        }
        self.often(case.repeat.unwrap_or(1), at.key("repeat"));
        if case.repeat == Some(0) {
            self.say(Mistake::at(at.key("repeat"), "repeat-zero", "a case that is repeated 0 times never runs"));
        }
        let given =
            [("ask", case.ask.is_some()), ("turns", !case.turns.is_empty()), ("sequence", !case.sequence.is_empty())];
        let given: Vec<&str> = given.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
        match given.as_slice() {
            [_] => {}
            [] => {
                let mistake = Mistake::at(at, "no-turns", "the case has no user input");
                self.say(mistake.label("write one of `ask`, `turns`, `sequence`"));
            }
            [.., last] => {
                let mistake =
                    Mistake::at(at.key(last), "several-conversations", format!("{} exclude each other", and(&given)));
                self.say(mistake.on_key().label("keep one of them"));
            }
        }
        if let Some(ask) = &case.ask {
            self.ask(ask, at.key("ask"));
        }
        if !expects(case) {
            let mistake =
                Mistake::at(at, "expects-nothing", "the case expects nothing: it would pass whatever happens");
            self.say(mistake.help("add `expect:` to the case or to one of its turns"));
        } else if !asserts(case) {
            let message = "the case expects nothing: `evidence` and `nuggets` label an answer for metrics, and `exact` says how others compare";
            let mistake = Mistake::at(at, "expects-nothing", message);
            self.say(mistake.help("add what must hold; `answer: {refusal: false}` where any answer will do"));
        }
        if case.control && !has_probes(case) {
            let mistake = Mistake::at(
                at.key("control"),
                "control-without-probes",
                "a control needs context probes that must fail",
            );
            self.say(mistake.help("add `expect: {context: {probes: …}}`, or remove `control`"));
        }
        self.users_of(case.tenant.as_ref());
        let mut scene = Scene { steps: self.conversations(case, at), ..Scene::default() };
        self.turns(&case.turns, at.key("turns"), &scene);
        self.sequence(case, at, &mut scene);
        if let Some(expect) = &case.expect {
            scene.step = None;
            scene.history = case.ask.is_none();
            scene.turn = case.ask.is_some();
            self.expectations.check(expect, at.key("expect"), &scene);
        }
    }

    /// Sets the tenant of the users of the following turns.
    fn users_of(&mut self, tenant: Option<&String>) {
        self.expectations.tenant = tenant.filter(|_| self.has_tenants()).cloned();
    }

    /// Checks a reference to a tenant.
    fn tenant(&mut self, at: At<'_>) {
        if self.knows_tenants() {
            return;
        }
        let mistake = Mistake::at(at, "no-tenants", "the users of this flow belong to no tenant").on_key();
        self.say(mistake.label(if self.scenario.flows().any(|flow| flow == EXTERNAL) {
            "remove it, or put `{tenant}` into `target.send`"
        } else {
            "remove it, or write a flow that has tenants"
        }));
    }

    fn ask(&mut self, ask: &str, at: At<'_>) {
        if ask.trim().is_empty() {
            self.say(Mistake::at(at, "empty-text", "the user says nothing"));
        }
    }

    fn turns(&mut self, turns: &[Turn], at: At<'_>, scene: &Scene) {
        for (index, turn) in turns.iter().enumerate() {
            let at = at.index(index);
            self.ask(&turn.ask, at.key("ask"));
            if let Some(expect) = &turn.expect {
                let scene = Scene { history: index > 0, turn: true, ..scene.clone() };
                self.expectations.check(expect, at.key("expect"), &scene);
            }
        }
    }

    /// Every conversation's name and its step in the sequence.
    fn conversations(&mut self, case: &Case, at: At<'_>) -> Vec<(String, usize)> {
        let mut steps: Vec<(String, usize)> = Vec::new();
        each_conversation(case, at, &mut |step, conversation, at| {
            self.name(&conversation.name, at.key("name"));
            if conversation.tenant.is_some() {
                self.tenant(at.key("tenant"));
            }
            if steps.iter().any(|(name, _)| *name == conversation.name) {
                let mistake =
                    Mistake::at(at.key("name"), "duplicate-conversation", "another conversation has this name");
                self.say(mistake.label("names are unique in a case"));
            }
            if conversation.turns.is_empty() {
                self.say(Mistake::at(at, "no-turns", "the conversation has no user input"));
            }
            steps.push((conversation.name.clone(), step));
        });
        let sequence = at.key("sequence");
        for (step, _) in case
            .sequence
            .iter()
            .enumerate()
            .filter(|(_, step)| matches!(step, SequenceStep::Together(all) if all.len() < 2))
        {
            self.say(Mistake::at(sequence.index(step), "no-turns", "`together` needs two conversations or more"));
        }
        steps
    }

    fn sequence(&mut self, case: &Case, at: At<'_>, scene: &mut Scene) {
        each_conversation(case, at, &mut |step, conversation, at| {
            self.users_of(conversation.tenant.as_ref().or(case.tenant.as_ref()));
            if let Some(related) = &conversation.related {
                let earlier = || scene.steps.iter().filter(|(_, other)| *other < step).map(|(name, _)| name.as_str());
                if !earlier().any(|name| name == related.to) {
                    let related_at = at.key("related");
                    let message = "`to` must name an earlier conversation of this case";
                    let mistake = Mistake::at(related_at.key("to"), "unknown-conversation", message);
                    self.say(mistake.label(did_you_mean(&related.to, earlier())));
                }
                let listed = at.key("related");
                self.expectations.sources(&related.relevant, listed.key("relevant"));
                if related.relevant.is_empty() && related.kind != RelatedKind::Unrelated {
                    let message = "a related question must name what answers it";
                    let mistake = Mistake::at(at.key("related"), "no-relevant", message).label("`relevant` is missing");
                    let help = "write `relevant: [learned]` when only what was learned answers it, and add the documents \
                                that answer it too: a rescue counts only where they are not found";
                    self.say(mistake.help(help));
                }
            }
            scene.step = Some(step);
            self.turns(&conversation.turns, at.key("turns"), scene);
        });
        self.users_of(case.tenant.as_ref());
    }
}

fn each_conversation(case: &Case, at: At<'_>, visit: &mut dyn FnMut(usize, &Conversation, At<'_>)) {
    let sequence = at.key("sequence");
    for (step, written) in case.sequence.iter().enumerate() {
        let at = sequence.index(step);
        match written {
            SequenceStep::Conversation(conversation) => visit(step, conversation, at.key("conversation")),
            SequenceStep::Together(all) => {
                let at = at.key("together");
                all.iter().enumerate().for_each(|(index, conversation)| visit(step, conversation, at.index(index)));
            }
        }
    }
}

fn all_turns(case: &Case) -> impl Iterator<Item = &Turn> {
    let conversations = case.sequence.iter().flat_map(|step| match step {
        SequenceStep::Conversation(conversation) => std::slice::from_ref(conversation),
        SequenceStep::Together(all) => all.as_slice(),
    });
    case.turns.iter().chain(conversations.flat_map(|conversation| &conversation.turns))
}

fn expects(case: &Case) -> bool {
    case.expect.is_some() || all_turns(case).any(|turn| turn.expect.is_some())
}

/// Whether an expectation remains without labels; an empty expectation is a separate mistake.
fn asserts(case: &Case) -> bool {
    let all = || case.expect.iter().chain(all_turns(case).filter_map(|turn| turn.expect.as_ref()));
    all().any(|expect| {
        expect.asserts() || *expect == Expectation::default() || expect.answer == Some(AnswerExpectation::default())
    })
}

fn has_probes(case: &Case) -> bool {
    case.expect
        .iter()
        .chain(all_turns(case).filter_map(|turn| turn.expect.as_ref()))
        .any(|expect| expect.context.is_some())
}

fn and(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" and ")
}
