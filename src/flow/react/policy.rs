//! The decisions of `react`, as pure functions: one [`Progress`] and one [`Happened`] give the next progress and the
//! event of the machine.
//!
//! A turn has at most [`MOST_STEPS`] steps of one action each; at most [`MOST_RETRIES`] of them respond to a failure.
//! The first failure of a kind is retried with the lesson from it; the second of the same kind changes the approach.

use super::machine::{Event, State};
use crate::platform::words;
use serde::{Deserialize, Serialize};

/// Maximum number of actions in one turn.
pub(super) const MOST_STEPS: u32 = 5;
/// Maximum number of actions in one turn that respond to a failure.
pub(super) const MOST_RETRIES: u32 = 3;

words! {
    fn name;
    /// A way to find the answer, by its name in the tool's schema, prompts and the log. The first four differ in how the
    /// query is built.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(super) enum Approach {
        /// Words that the right passage would contain.
        Direct = "direct",
        /// A broader subject.
        Broader = "broader",
        Synonyms = "synonyms",
        /// A related subject.
        Related = "related",
        /// No search: the model's own knowledge, with a disclaimer.
        OwnKnowledge = "own_knowledge",
    }
}

impl Approach {
    /// All approaches, in the order in which they are tried.
    pub(super) const ALL: [Self; 5] = [Self::Direct, Self::Broader, Self::Synonyms, Self::Related, Self::OwnKnowledge];

    /// The first approach not tried yet; the last one if all were tried.
    fn after(tried: &[Self]) -> Self {
        Self::ALL.into_iter().find(|one| !tried.contains(one)).unwrap_or(Self::OwnKnowledge)
    }
}

words! {
    fn name;
    /// Kinds of failure that are counted, by their names in prompts and the log.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(super) enum FailureKind {
        /// Most of the passages found are irrelevant.
        Irrelevant = "irrelevant",
        NothingFound = "nothing_found",
        /// The call was refused: an unknown tool, invalid parameters, or a repeated search.
        CallRefused = "call_refused",
        /// The model called no tool although it had found nothing to answer from.
        NoCall = "no_call",
        /// The documents could not be searched.
        SearchFailed = "search_failed",
    }
}

impl FailureKind {
    fn event(self) -> Event {
        match self {
            Self::Irrelevant => Event::Irrelevant,
            Self::NothingFound => Event::NothingFound,
            Self::CallRefused => Event::CallRefused,
            Self::NoCall => Event::NoCall,
            Self::SearchFailed => Event::SearchFailed,
        }
    }
}

/// Reason why a turn was answered with limits, or ended without reaching its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stop {
    Goal,
    Steps,
    Retries,
    OwnKnowledge,
    Model,
    Budget,
    Timeout,
}

/// An occurrence in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    /// The search found passages.
    Found,
    /// The action failed.
    Failed(FailureKind),
    /// The model says that it can answer.
    Ready,
    /// The results were graded; `goal_met` says whether they are sufficient.
    Observed { goal_met: bool },
    /// The failure was analysed: by the model, or by its kind if the model gave no analysis.
    Reflected,
    /// The model gave no analysis of a failure.
    NoAnalysis,
    /// The model gave an answer.
    Answered,
    /// The model gave no answer.
    NoAnswer,
    /// The model's service failed after all attempts.
    ModelFailed,
    /// The budget allows no further request.
    BudgetUsedUp,
    /// The turn's time ran out.
    TimedOut,
}

/// Progress of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    pub(super) state: State,
    /// Actions so far.
    pub(super) steps: u32,
    /// How many of them respond to a failure.
    pub(super) retries: u32,
    /// Failures so far, in order.
    pub(super) failures: Vec<FailureKind>,
    /// The approach of the next action.
    pub(super) approach: Approach,
    /// Approaches tried, in order.
    pub(super) tried: Vec<Approach>,
    /// Whether anything relevant was found: a partial result.
    pub(super) has_findings: bool,
    /// Whether the model is sent a shorter context because it failed with the full one.
    pub(super) short: bool,
    /// Why the turn went to its answer.
    pub(super) stop: Option<Stop>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            state: State::Thinking,
            steps: 0,
            retries: 0,
            failures: Vec::new(),
            approach: Approach::Direct,
            tried: vec![Approach::Direct],
            has_findings: false,
            short: false,
            stop: None,
        }
    }
}

impl Progress {
    /// Updates progress from one occurrence; returns the event. `None` for an occurrence that is impossible in this
    /// state and changes nothing. The machine defines the target of the event.
    pub(super) fn on(&mut self, happened: Happened) -> Option<Event> {
        Some(match (self.state, happened) {
            (State::Thinking, Happened::Found) => {
                self.steps += 1;
                Event::ResultsFound
            }
            (State::Thinking, Happened::Failed(kind)) if kind != FailureKind::Irrelevant => {
                self.steps += 1;
                self.failures.push(kind);
                kind.event()
            }
            (State::Thinking, Happened::Ready) => self.answers(Event::Ready, Stop::Goal),
            (State::Observing, Happened::Observed { goal_met: true }) => self.answers(Event::GoalMet, Stop::Goal),
            (State::Observing, Happened::Observed { goal_met: false }) if self.steps >= MOST_STEPS => {
                self.answers(Event::StepsUsedUp, Stop::Steps)
            }
            (State::Observing, Happened::Observed { goal_met: false }) => Event::Incomplete,
            (State::Observing, Happened::Failed(kind @ FailureKind::Irrelevant)) => {
                self.failures.push(kind);
                kind.event()
            }
            (State::Reflecting, Happened::NoAnalysis | Happened::ModelFailed) => Event::NoAnalysis,
            (State::Reflecting, Happened::Reflected) => self.next_approach(),
            (State::Answering, Happened::Answered) => Event::Answered,
            (State::Answering, Happened::NoAnswer) if self.has_findings => Event::PartialResult,
            (State::Answering, Happened::NoAnswer) => Event::NoAnswer,
            (State::Thinking | State::Observing | State::Answering, Happened::ModelFailed) if !self.short => {
                self.short = true;
                Event::ShorterContext
            }
            (State::Thinking | State::Observing | State::Answering, Happened::ModelFailed) => {
                self.breaks_off(Event::ModelUnavailable, Stop::Model)
            }
            (State::Answered | State::Failed, _) => return None,
            (_, Happened::BudgetUsedUp) => self.breaks_off(Event::BudgetUsedUp, Stop::Budget),
            (_, Happened::TimedOut) => self.breaks_off(Event::Timeout, Stop::Timeout),
            _ => return None,
        })
    }

    /// How often failures of that kind happened in this turn.
    pub(super) fn count(&self, kind: FailureKind) -> usize {
        self.failures.iter().filter(|one| **one == kind).count()
    }

    /// Whether the next request must force the search: two reminders, for missing or refused calls, had no effect.
    pub(super) fn must_call(&self) -> bool {
        self.count(FailureKind::NoCall).max(self.count(FailureKind::CallRefused)) >= 2
    }

    fn answers(&mut self, on: Event, why: Stop) -> Event {
        self.stop = Some(why);
        on
    }

    /// Ends with the last partial result if there is one, else with an error.
    fn breaks_off(&mut self, on: Event, why: Stop) -> Event {
        self.stop = Some(why);
        if self.has_findings { Event::PartialResult } else { on }
    }

    /// Next event after a failure was analysed.
    fn next_approach(&mut self) -> Event {
        let Some(kind) = self.failures.last().copied() else { return Event::Retry };
        if self.steps >= MOST_STEPS {
            return self.answers(Event::StepsUsedUp, Stop::Steps);
        }
        let again = self.count(kind) >= 2;
        // A different query may help immediately.
        let changed = again || matches!(kind, FailureKind::Irrelevant | FailureKind::NothingFound);
        let next = match (kind, again) {
            // Other words do not repair a service that failed twice.
            (FailureKind::SearchFailed, true) => Approach::OwnKnowledge,
            _ if changed => Approach::after(&self.tried),
            _ => self.approach,
        };
        let given_up = self.retries >= MOST_RETRIES;
        if given_up || next == Approach::OwnKnowledge {
            if !self.has_findings && self.approach != Approach::OwnKnowledge {
                self.approach = Approach::OwnKnowledge;
                self.tried.push(self.approach);
            }
            return if given_up {
                self.answers(Event::RetriesUsedUp, Stop::Retries)
            } else {
                self.answers(Event::OwnKnowledge, Stop::OwnKnowledge)
            };
        }
        self.retries += 1;
        if next == self.approach {
            return Event::Retry;
        }
        self.approach = next;
        self.tried.push(next);
        Event::ChangeApproach
    }
}

/// Steps that added a source, at least one, / steps taken, 0 to 1. A turn without steps has efficiency 1.
pub(super) fn efficiency(useful: u32, taken: u32) -> f64 {
    if taken == 0 { 1.0 } else { f64::from(useful.clamp(1, taken)) / f64::from(taken) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::machine::Word;
    use crate::flow::react::machine::MACHINE;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const KINDS: [FailureKind; 5] = [
        FailureKind::Irrelevant,
        FailureKind::NothingFound,
        FailureKind::CallRefused,
        FailureKind::NoCall,
        FailureKind::SearchFailed,
    ];

    fn event() -> impl Strategy<Value = Happened> {
        prop_oneof![
            6 => Just(Happened::Found),
            6 => prop::sample::select(KINDS.to_vec()).prop_map(Happened::Failed),
            2 => Just(Happened::Ready),
            4 => any::<bool>().prop_map(|goal_met| Happened::Observed { goal_met }),
            6 => Just(Happened::Reflected),
            1 => Just(Happened::NoAnalysis),
            2 => Just(Happened::Answered),
            1 => Just(Happened::NoAnswer),
            2 => Just(Happened::ModelFailed),
            1 => Just(Happened::BudgetUsedUp),
            1 => Just(Happened::TimedOut),
        ]
    }

    /// One transition.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Move {
        from: State,
        on: Event,
        to: State,
    }

    /// Applies one occurrence, as the frame does.
    fn step(progress: &mut Progress, happened: Happened) -> Option<Move> {
        let from = progress.state;
        let on = progress.on(happened)?;
        let to = MACHINE.next(from, on).unwrap_or_else(|| panic!("{on:?} cannot happen in {from:?}"));
        progress.state = to;
        Some(Move { from, on, to })
    }

    fn taken(events: &[Happened], findings: bool) -> (Progress, Vec<Move>) {
        let mut progress = Progress { has_findings: findings, ..Progress::default() };
        let moves = events.iter().filter_map(|event| step(&mut progress, *event)).collect();
        (progress, moves)
    }

    fn row(one: Move) -> (String, String, String) {
        (one.from.name().to_owned(), one.on.name().to_owned(), one.to.name().to_owned())
    }

    #[test]
    fn every_declared_transition_is_taken_and_no_other() {
        use proptest::strategy::ValueTree as _;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let walk = (prop::collection::vec(event(), 1..24), any::<bool>());
        let mut seen = BTreeSet::new();
        let steps = [Happened::Found, Happened::Observed { goal_met: false }].repeat(5);
        seen.extend(taken(&steps, true).1.into_iter().map(row));
        for _ in 0..20_000 {
            let (events, findings) = walk.new_tree(&mut runner).expect("a walk").current();
            let (_, moves) = taken(&events, findings);
            seen.extend(moves.into_iter().map(row));
        }
        let declared: BTreeSet<_> =
            MACHINE.machine().transitions.into_iter().map(|row| (row.from, row.on, row.to)).collect();
        assert_eq!(seen, declared, "taken and declared");
    }

    #[test]
    fn the_second_failure_of_a_kind_changes_the_approach() {
        for kind in KINDS.into_iter().filter(|kind| *kind != FailureKind::Irrelevant) {
            let (mut progress, _) =
                taken(&[Happened::Failed(kind), Happened::Reflected, Happened::Failed(kind)], false);
            let before = progress.approach;
            step(&mut progress, Happened::Reflected);
            assert_ne!(progress.approach, before, "{kind:?}");
        }
    }

    #[test]
    fn three_retries_in_vain_end_in_an_answer_from_what_there_is() {
        let vain = [Happened::Failed(FailureKind::NothingFound), Happened::Reflected];
        let (progress, moves) = taken(&vain.repeat(4), false);
        assert_eq!((progress.steps, progress.retries), (4, 3));
        assert_eq!(moves.last().map(|last| last.on), Some(Event::RetriesUsedUp));
        assert_eq!(progress.approach, Approach::OwnKnowledge);
        let refused = [Happened::Failed(FailureKind::CallRefused), Happened::Reflected];
        let (progress, moves) = taken(&refused.repeat(4), false);
        assert_eq!((progress.retries, moves.last().map(|last| last.on)), (3, Some(Event::RetriesUsedUp)));
        assert!(progress.must_call());
    }

    #[test]
    fn a_search_that_failed_twice_is_given_up_for_the_models_own_knowledge() {
        let down = [Happened::Failed(FailureKind::SearchFailed), Happened::Reflected];
        let (progress, moves) = taken(&down.repeat(2), false);
        assert_eq!(progress.approach, Approach::OwnKnowledge);
        assert_eq!(
            moves.iter().map(|one| one.on).collect::<Vec<_>>(),
            [Event::SearchFailed, Event::Retry, Event::SearchFailed, Event::OwnKnowledge]
        );
    }

    #[test]
    fn efficiency_is_the_share_of_steps_that_were_needed() {
        assert!((efficiency(2, 4) - 0.5).abs() < 1e-12);
        assert!((efficiency(0, 4) - 0.25).abs() < 1e-12 && (efficiency(3, 0) - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn whatever_happens_steps_and_retries_are_bounded_and_approaches_never_come_back(
            events in prop::collection::vec(event(), 0..200), findings: bool,
        ) {
            let mut progress = Progress { has_findings: findings, ..Progress::default() };
            for event in events {
                let before = progress.clone();
                let Some(moved) = step(&mut progress, event) else {
                    prop_assert_eq!(&progress, &before, "an event that cannot happen changes nothing");
                    continue;
                };
                prop_assert_eq!((moved.from, moved.to), (before.state, progress.state));
                prop_assert!(progress.steps <= MOST_STEPS && progress.retries <= MOST_RETRIES);
                let distinct: BTreeSet<_> = progress.tried.iter().collect();
                prop_assert_eq!(distinct.len(), progress.tried.len());
                if moved.from == State::Reflecting && moved.to == State::Thinking {
                    let kind = *before.failures.last().expect("a failure");
                    prop_assert!(before.count(kind) < 2 || progress.approach != before.approach);
                }
                if moved.to == State::Failed {
                    prop_assert!(!progress.has_findings, "what was found is never thrown away");
                }
                prop_assert!(!moved.from.is_terminal());
            }
        }
    }
}
