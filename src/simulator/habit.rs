//! Mistakes of a simulated model, and when they occur.
//!
//! In a file, a habit is a name and a frequency: a probability (`0.02`), or a map with `probability` or `times`, and
//! `at` (the steps that it is limited to, by the role of their tool, or by its name in `steps.json`). `times: n` makes
//! the mistake in the first n attempts at a step; a probability decides once, at the first attempt. Whether a mistake
//! is repeated after feedback is a separate habit, `persist`, and happens at most once. An old reader refuses unknown
//! habits.

use super::dice::Dice;
use crate::platform::schema;
use crate::platform::words;
use schemars::{JsonSchema, json_schema};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The tools that the simulated model knows, each with its role.
static TOOLS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| serde_json::from_str(include_str!("steps.json")).unwrap_or_default());

words! {
    fn role; const ALL;
    /// The steps of a turn, named by the role of the tool that each calls.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub(crate) enum Step {
        /// Searching the knowledge base.
        Knowledge = "knowledge",
        /// Asking the external service.
        External = "external",
        /// Indexing keywords of an external answer.
        Index = "index",
        /// Giving the answer.
        Respond = "respond",
    }
}

impl Step {
    /// The tool's name, unless a behaviour file gives the agent's.
    pub(crate) fn tool(self) -> &'static str {
        TOOLS.iter().find(|(_, plays)| *plays == self.role()).map_or("", |(name, _)| name)
    }

    /// The names of all tools that the model knows.
    pub(super) fn tools() -> impl Iterator<Item = &'static str> {
        TOOLS.keys().map(String::as_str)
    }

    pub(crate) fn of_tool(name: &str) -> Option<Self> {
        let plays = TOOLS.get(name)?;
        Self::ALL.into_iter().find(|step| step.role() == plays)
    }

    /// The step in a behaviour file: by the role of its tool, or by a tool's name in `steps.json`.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.role() == word).or_else(|| Self::of_tool(word))
    }
}

schema!(named Step, |_| json_schema!({
    "description": "A step of a turn, by the role of the tool that it calls.",
    "enum": Step::ALL.map(Step::role),
}));

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::named(&word).ok_or_else(|| {
            let roles = Self::ALL.map(Self::role).join(", ");
            serde::de::Error::custom(format!("`{word}` is not a step: write the role of its tool ({roles})"))
        })
    }
}

/// Kinds of mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Habit {
    /// Answers in free text instead of searching the knowledge base.
    ForgetKnowledgeBase,
    /// Asks the external service before the knowledge base.
    ExternalFirst,
    /// Asks the external service in the same message as the knowledge base.
    ExternalBeside,
    /// Puts a hostile pattern into a search query.
    HostileQuery,
    /// Searches with the user's own words. Random only for self-contained questions: one that refers to an earlier
    /// turn, or is not in the documents' language, must be rephrased.
    VerbatimQuery,
    /// Treats a question as the first of its conversation.
    ForgetHistory,
    /// Searches the knowledge base with words without a subject.
    VagueQuery,
    /// Writes arguments that are not JSON.
    MalformedArguments,
    /// Writes arguments of wrong types.
    WrongSchema,
    /// Calls a tool that does not exist.
    UnknownTool,
    /// Retries a failed external search if the error says that this may help.
    RetrySearch,
    /// Indexes keywords that are generic or too short.
    PoorKeywords,
    /// Answers without indexing keywords.
    SkipKeywords,
    /// Answers in free text instead of calling the response tool.
    ForgetResponse,
    /// Calls the response tool together with another one.
    ResponseBeside,
    /// Claims sources of a kind that it did not use.
    WrongFlags,
    /// Cites a source that it was not given.
    InventSource,
    /// Refuses to answer.
    Refuse,
    /// Repeats a mistake once after feedback.
    Persist,
    /// The service returns 429 with a wait.
    RateLimited,
    /// The service returns 500.
    ServerError,
    /// The response takes longer by `slow_by`.
    Slow,
}

impl Habit {
    /// The steps at which the habit can occur, unless `at` names others.
    fn natural_steps(self) -> &'static [Step] {
        use Step::{External, Index, Knowledge, Respond};
        match self {
            Self::ForgetKnowledgeBase
            | Self::ExternalFirst
            | Self::ExternalBeside
            | Self::ForgetHistory
            | Self::VagueQuery => &[Knowledge],
            Self::HostileQuery | Self::VerbatimQuery => &[Knowledge, External],
            Self::RetrySearch => &[External],
            Self::PoorKeywords | Self::SkipKeywords => &[Index],
            Self::ForgetResponse | Self::ResponseBeside | Self::WrongFlags | Self::InventSource | Self::Refuse => {
                &[Respond]
            }
            Self::MalformedArguments
            | Self::WrongSchema
            | Self::UnknownTool
            | Self::Persist
            | Self::RateLimited
            | Self::ServerError
            | Self::Slow => &Step::ALL,
        }
    }
}

/// Frequency.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Often {
    /// With this probability, 0 to 1.
    Probability(f64),
    /// In the first attempts, this many.
    Times(u32),
}

/// Frequency and steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chance {
    /// Frequency.
    pub often: Often,
    /// Steps; empty for all that are possible.
    pub at: Vec<Step>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "ChanceMap")]
struct Written {
    /// Probability per attempt, 0 to 1.
    probability: Option<f64>,
    /// Number of first attempts.
    times: Option<u32>,
    /// Steps; all that are possible if missing.
    at: Vec<Step>,
}

struct ChanceVisitor;

impl<'de> Visitor<'de> for ChanceVisitor {
    type Value = Chance;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a probability from 0 to 1, or a map with `probability` or `times`, and `at`")
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Chance, E> {
        if (0.0..=1.0).contains(&value) {
            Ok(Chance { often: Often::Probability(value), at: Vec::new() })
        } else {
            Err(E::custom(format!("{value} is not a probability: write a number from 0 to 1")))
        }
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Chance, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Chance, E> {
        self.visit_f64(value as f64)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Chance, A::Error> {
        use serde::de::Error;
        let Written { probability, times, at } = Written::deserialize(MapAccessDeserializer::new(map))?;
        let often = match (probability, times) {
            (Some(value), None) => self.visit_f64(value)?.often,
            (None, Some(times)) => Often::Times(times),
            _ => return Err(A::Error::custom("give exactly one of `probability` and `times`")),
        };
        Ok(Chance { often, at })
    }
}

schema!(named Chance, |generator| json_schema!({
    "description": "How often: a probability from 0 to 1, or a map with `probability` or `times`, and `at`.",
    "oneOf": [{"type": "number", "minimum": 0, "maximum": 1}, generator.subschema_for::<Written>()]
}));

impl<'de> Deserialize<'de> for Chance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChanceVisitor)
    }
}

/// Habits by name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub(crate) struct Habits(BTreeMap<Habit, Chance>);

impl Habits {
    /// Adds the habits of `other`, which override these.
    pub(crate) fn overlay(&mut self, other: &Self) {
        self.0.extend(other.0.iter().map(|(habit, chance)| (*habit, chance.clone())));
    }

    fn chance(&self, habit: Habit, step: Step) -> Option<&Often> {
        let chance = self.0.get(&habit)?;
        let fits = if chance.at.is_empty() { habit.natural_steps().contains(&step) } else { chance.at.contains(&step) };
        fits.then_some(&chance.often)
    }

    /// Number of attempts that it spoils: `times`, or one with the given probability.
    pub(crate) fn failures(&self, habit: Habit, step: Step, dice: &Dice) -> u32 {
        match self.chance(habit, step) {
            Some(Often::Times(times)) => *times,
            Some(Often::Probability(p)) if !self.is_taken(step) => {
                u32::from(dice.roll(&format!("{habit:?}/{}", step.role())) < *p)
            }
            Some(_) | None => 0,
        }
    }

    /// Whether a fault is declared at the step: then no random mistake, which could hide it, occurs there.
    fn is_taken(&self, step: Step) -> bool {
        let fits = |(habit, chance): (&Habit, &Chance)| {
            let steps = if chance.at.is_empty() { habit.natural_steps() } else { &chance.at };
            steps.contains(&step) && matches!(chance.often, Often::Times(times) if times > 0)
        };
        self.0.iter().any(fits)
    }

    /// Whether the habit is declared with `times`, not with a probability.
    pub(crate) fn is_declared(&self, habit: Habit) -> bool {
        self.0.get(&habit).is_some_and(|chance| matches!(chance.often, Often::Times(_)))
    }

    /// Whether the habit occurs at the attempt (from 0) at `step`. `dice` must be the same for all attempts of a turn.
    pub(crate) fn shows(&self, habit: Habit, step: Step, attempt: u32, dice: &Dice) -> bool {
        let times = self.failures(habit, step, dice);
        attempt < times || times > 0 && attempt == times && self.repeats(step, dice)
    }

    fn repeats(&self, step: Step, dice: &Dice) -> bool {
        match self.chance(Habit::Persist, step) {
            Some(Often::Times(times)) => *times > 0,
            Some(Often::Probability(p)) => dice.roll(&format!("persist/{}", step.role())) < *p,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_tool_of_its_own() {
        for step in Step::ALL {
            assert!(!step.tool().is_empty(), "{step:?}");
            assert_eq!(Step::of_tool(step.tool()), Some(step));
        }
    }

    fn habits(yaml: &str) -> Habits {
        serde_saphyr::from_str(yaml).expect("habits")
    }

    #[test]
    fn times_counts_attempts_and_then_stops() {
        let habits = habits("forget_response: {times: 2}");
        let dice = Dice::new(1, &["a"]);
        let shown: Vec<bool> = (0..4).map(|k| habits.shows(Habit::ForgetResponse, Step::Respond, k, &dice)).collect();
        assert_eq!(shown, [true, true, false, false]);
    }

    #[test]
    fn a_persistent_mistake_is_repeated_once() {
        let habits = habits("{poor_keywords: {times: 1}, persist: 1}");
        let dice = Dice::new(1, &["a"]);
        let shown: Vec<bool> = (0..4).map(|k| habits.shows(Habit::PoorKeywords, Step::Index, k, &dice)).collect();
        assert_eq!(shown, [true, true, false, false]);
    }

    #[test]
    fn a_habit_stays_at_its_steps() {
        let habits = habits("{malformed_arguments: {times: 1, at: [index]}, skip_keywords: 1}");
        let dice = Dice::new(1, &["a"]);
        assert!(habits.shows(Habit::MalformedArguments, Step::Index, 0, &dice));
        assert!(!habits.shows(Habit::MalformedArguments, Step::Respond, 0, &dice));
        assert!(!habits.shows(Habit::SkipKeywords, Step::Respond, 0, &dice));
    }

    #[test]
    fn chance_puts_no_second_mistake_where_a_fault_is_declared() {
        let habits = habits("{wrong_flags: {times: 1}, forget_response: 1, verbatim_query: 1, persist: 1}");
        let dice = Dice::new(1, &["a"]);
        assert!(habits.shows(Habit::WrongFlags, Step::Respond, 0, &dice));
        assert!(!habits.shows(Habit::ForgetResponse, Step::Respond, 0, &dice));
        assert!(habits.shows(Habit::VerbatimQuery, Step::Knowledge, 0, &dice), "another step");
    }

    #[test]
    fn a_probability_is_met_over_many_lanes() {
        let habits = habits("forget_response: 0.2");
        let shown = (0..2000)
            .filter(|lane| {
                let dice = Dice::new(7, &[&lane.to_string()]);
                habits.shows(Habit::ForgetResponse, Step::Respond, 0, &dice)
            })
            .count();
        assert!((340..460).contains(&shown), "{shown} of 2000");
    }

    #[test]
    fn mistakes_in_habits_are_refused() {
        for yaml in ["forget_everything: 1", "refuse: 1.5", "refuse: {times: 1, probability: 0.5}", "refuse: {at: []}"]
        {
            assert!(serde_saphyr::from_str::<Habits>(yaml).is_err(), "{yaml}");
        }
    }
}
