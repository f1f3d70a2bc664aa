//! A comparison as data, for JSON and reports.

use super::{Counts, Difference, Figure, Flip, PairedCase, PromptChange, Span, decision, sentences};
use crate::platform::words;
use crate::stats::percent::percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of a comparison as JSON. Version 2 names the members of what were lists of values in version 1.
pub(crate) const COMPARISON_VERSION: u32 = 2;

/// Smallest change of turn times that counts as a regression, as a share: networks alone vary by this much.
pub(crate) const TIME_MARGIN: f64 = 0.10;

/// Repetitions of each case on both sides from which a flip between live runs is rarely chance: with 30 cases that
/// pass 95 times in 100, .3 % of comparisons have one; with cases that pass 90 times, 2.2 %.
pub(crate) const LIVE_REPETITIONS: u64 = 3;

words! {
    /// Result of comparing one criterion.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Finding {
        /// B is better beyond the margin, significantly.
        Better = "better",
        /// B is worse beyond the margin, significantly.
        Worse = "worse",
        /// The supported gain is above minus the margin.
        NotWorse = "not worse",
        /// None of these.
        Undecided = "inconclusive",
        /// No case changed; that does not prove equality.
        NoDiscordance = "no case changed",
        /// Nothing to compare.
        #[default]
        NotCompared = "not compared",
    }
}

/// Unit of a row's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Rates of 0 to 1; the difference is B minus A.
    #[default]
    Rate,
    /// Seconds; the difference is B / A minus 1.
    Time,
}

impl Scale {
    /// A value as text: a share in per cent, a time in seconds.
    pub(crate) fn shown(self, value: f64) -> String {
        if self == Self::Rate { percent(value) } else { format!("{value:.2} s") }
    }
}

/// One criterion compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCriterion {
    /// The criterion's id, `scenario/id` for a gate, `cases` or `turn time`.
    #[serde(rename = "criterion", alias = "key")]
    pub key: String,
    /// The requirement in a sentence.
    pub about: String,
    /// The metric as written.
    pub metric: String,
    /// Rates or times.
    pub scale: Scale,
    /// Whether it can be a regression; other rows are exploratory, and corrected among themselves.
    pub gated: bool,
    /// Whether the metric is only a proxy for the requirement.
    pub proxy: bool,
    /// Whether lower is better.
    pub fewer_is_better: bool,
    /// Number of cases compared.
    pub cases: u64,
    /// Mean over the cases (times: median) under A.
    pub a: Option<f64>,
    /// Mean over the cases (times: median) under B.
    pub b: Option<f64>,
    /// Successes and units under A.
    pub units_a: Counts,
    /// Successes and units under B.
    pub units_b: Counts,
    /// The difference, by the scale.
    pub difference: Option<f64>,
    /// Its two-sided interval at `level`: the differences that the test does not reject. It contains 0 exactly when
    /// no difference is claimed.
    pub interval: Option<Span>,
    /// The least gain supported at 97.5 %, one-sided, or at the level of `interval` if that allows for a larger loss; negative
    /// if a loss is not excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Name of the test.
    pub method: String,
    /// Its two-sided p-value.
    pub p: Option<f64>,
    /// The p-value corrected by Holm over the gated rows, by Benjamini and Hochberg over the others.
    pub p_adjusted: Option<f64>,
    /// Number of cases in which B is better.
    pub better: u64,
    /// Number of cases in which B is worse.
    pub worse: u64,
    /// The smallest difference detectable with a power of 80 % at the first step of the correction.
    pub visible: Option<f64>,
    /// The result.
    pub finding: Finding,
    /// The row in one sentence.
    pub sentence: String,
    /// The two-sided error probability of the correction step that decides the row; `None` if nothing was tested, and
    /// in a comparison of an older build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// Number of rows corrected together with this one.
    #[serde(default)]
    pub family: u64,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Its name.
    pub label: String,
    /// Describes how the run is partial; empty for a complete one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Why a baseline file may not be as it was saved, such as an edit by hand; empty for any other side.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doubt: String,
    /// Source of its evidence.
    pub evidence: String,
    /// Number of trials that could be run.
    pub trials: u64,
    /// Number of trials that could not be run.
    pub errors: u64,
}

/// A comparison, as plain data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Format version.
    pub version: u32,
    /// The older side.
    pub a: Side,
    /// The newer side.
    pub b: Side,
    /// Largest difference of a rate that does not matter.
    pub margin: f64,
    /// Number of cases on both sides.
    pub cases: u64,
    /// Number of cases of A, or of variants of a case, that B lacks or did not measure.
    #[serde(default)]
    pub dropped: u64,
    /// Warnings that weaken the figures below: a partial run, dropped cases, early stopping.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Differences in settings.
    pub differences: Vec<Difference>,
    /// Prompts that differ.
    pub prompts: Vec<PromptChange>,
    /// Parts that could not be compared, with reasons.
    pub notes: Vec<String>,
    /// The criteria.
    pub rows: Vec<ComparedCriterion>,
    /// Cases with all repetitions passed on one side and none on the other.
    pub flips: Vec<Flip>,
    /// Cases that passed more often on one side without being flips.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Flip>,
    /// Whether the sides are live runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// The smallest number of trials of a compared case on either side.
    #[serde(default)]
    pub repetitions: u64,
    /// Every case that ran on both sides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paired: Vec<PairedCase>,
    /// Tokens, cost and turn times of A and of B over the cases on both sides; not tested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<Figure>,
    /// Whether a gated row is worse.
    pub regression: bool,
    /// Why nothing is compared although the sides share cases; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub withheld: String,
    /// The result in one sentence.
    pub conclusion: String,
}

impl Comparison {
    /// Whether no gated row compares anything: then the absence of regressions proves nothing.
    pub fn nothing_compared(&self) -> bool {
        decision::nothing_compared(&self.rows)
    }

    /// Names of A and of B: the variants of one run, otherwise the labels.
    pub fn names(&self) -> [&str; 2] {
        sentences::names(&self.a.label, &self.b.label)
    }

    /// What someone who must choose learns from the required rows.
    pub(crate) fn decision(&self) -> decision::Decision {
        decision::decision(&self.rows)
    }

    /// Which side is better, in which criteria and by how much, in one line.
    pub fn verdict(&self) -> String {
        decision::verdict(&self.rows, self.names())
    }

    /// Reason why no required criterion could be shown to be worse, and what would suffice; `None` if one could.
    pub fn too_few_cases(&self) -> Option<String> {
        (!self.withheld.is_empty()).then(|| self.withheld.clone()).or_else(|| sentences::too_few(&self.rows))
    }

    /// Reason why a flip proves nothing for these sides, and what would suffice: of live cases that pass 9 times in
    /// 10, one in ten flips by chance.
    pub fn too_few_repetitions(&self) -> Option<String> {
        let few = self.live && self.repetitions < LIVE_REPETITIONS;
        let withheld = (!self.withheld.is_empty()).then(|| self.withheld.clone());
        withheld.or_else(|| few.then(|| sentences::too_few_repetitions(self.repetitions)))
    }
}
