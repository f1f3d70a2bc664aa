//! What a comparison says, as JSON and reports carry it.

use super::sentences;
use super::{Difference, Figure, Flip, PairedCase, PromptChange};
use serde::{Deserialize, Serialize};

/// Version of a comparison as JSON.
pub(crate) const COMPARISON_VERSION: u32 = 1;

/// A change of turn times below this share is no regression, however sure: networks vary by as much.
pub(crate) const TIME_MARGIN: f64 = 0.10;

/// Repetitions of each case on both sides from which a flip between live runs is seldom luck: over 30 cases that pass 95
/// times in 100, .3 % of comparisons have one; over such that pass 90 times, 2.2 %.
pub(crate) const LIVE_REPETITIONS: u64 = 3;

/// What the comparison of one criterion comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// B is better beyond the margin, and it is no luck.
    Better,
    /// B is worse beyond the margin, and it is no luck.
    Worse,
    /// The gain that is supported is above minus the margin.
    NotWorse,
    /// None of these.
    Undecided,
    /// No case differs; that is not the same as equal.
    NoDiscordance,
    /// There was nothing to compare.
    NotCompared,
}

impl Finding {
    /// As reports print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NotWorse => "not worse",
            Self::Undecided => "inconclusive",
            Self::NoDiscordance => "no case changed",
            Self::NotCompared => "not compared",
        }
    }
}

/// What a row's figures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Rates of 0 to 1; the difference is B minus A.
    Rate,
    /// Seconds; the difference is B / A minus 1.
    Time,
}

/// One criterion compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The criterion's id, `scenario/id` for a gate, `cases` or `turn time`.
    pub key: String,
    /// What it asks.
    pub about: String,
    /// The metric as written.
    pub metric: String,
    /// Rates or times.
    pub scale: Scale,
    /// Whether it can be a regression; others are explored, and corrected among themselves.
    pub gated: bool,
    /// Whether the metric only stands in for what the criterion asks.
    pub proxy: bool,
    /// Whether fewer, or shorter, is better.
    pub fewer_is_better: bool,
    /// Cases compared.
    pub cases: u64,
    /// Mean over the cases (times: median) under A.
    pub a: Option<f64>,
    /// Mean over the cases (times: median) under B.
    pub b: Option<f64>,
    /// Successes and units under A.
    pub units_a: (u64, u64),
    /// Successes and units under B.
    pub units_b: (u64, u64),
    /// The difference, see [`Scale`].
    pub difference: Option<f64>,
    /// Its two-sided interval at `level`: the differences that the test does not reject. It holds 0 exactly when no
    /// difference is claimed.
    pub interval: Option<(f64, f64)>,
    /// The least gain that is supported at 97.5 %, one-sided: negative for a loss that is not excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// The test.
    pub method: String,
    /// Its two-sided p-value.
    pub p: Option<f64>,
    /// The p-value corrected by Holm over the gated rows, by Benjamini and Hochberg over the others.
    pub p_adjusted: Option<f64>,
    /// Cases in which B is better.
    pub better: u64,
    /// Cases in which B is worse.
    pub worse: u64,
    /// The smallest difference that would have been seen with a power of 80 % at the first step of the correction.
    pub visible: Option<f64>,
    /// What it comes to.
    pub finding: Finding,
    /// All of it in one sentence.
    pub sentence: String,
    /// The two-sided error probability of the step of the correction that decides the row; `None` where nothing was
    /// tested, and in a comparison of an older build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// How many rows were corrected together with this one.
    #[serde(default)]
    pub family: u64,
}

/// One side of a comparison, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// What it is called.
    pub label: String,
    /// Of what it is a part, in words; empty for a whole run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// What it rests on.
    pub evidence: String,
    /// Trials that could be run.
    pub trials: u64,
    /// Trials that could not.
    pub errors: u64,
}

/// A comparison, as plain data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Format version.
    pub version: u32,
    /// The older side.
    pub a: Side,
    /// The newer side.
    pub b: Side,
    /// Differences up to this rate do not matter.
    pub margin: f64,
    /// Cases on both sides.
    pub cases: u64,
    /// What makes the figures below less than they seem: a side that is a part of its run, dropped cases, or stopped when it had seen enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What differs besides the figures.
    pub differences: Vec<Difference>,
    /// Prompts that differ.
    pub prompts: Vec<PromptChange>,
    /// What could not be compared, and why.
    pub notes: Vec<String>,
    /// The criteria.
    pub rows: Vec<Row>,
    /// Cases of which all repetitions passed on one side and none on the other.
    pub flips: Vec<Flip>,
    /// Cases that passed more often on one side, but not always there or at times on the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Flip>,
    /// Whether the sides are live runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// The fewest trials that a case compared has on either side.
    #[serde(default)]
    pub repetitions: u64,
    /// Every case that ran on both sides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paired: Vec<PairedCase>,
    /// Tokens, money and turn times of A and of B over the cases on both sides; figures without a test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<Figure>,
    /// Whether a gated row is worse.
    pub regression: bool,
    /// All of it in one sentence.
    pub conclusion: String,
}

impl Comparison {
    /// Whether no gated row compares anything: then an absence of regressions says nothing.
    pub fn nothing_compared(&self) -> bool {
        sentences::nothing_compared(&self.rows)
    }

    /// Who is better, in which criteria and by how much, in one line.
    pub fn verdict(&self) -> String {
        sentences::verdict(&self.rows)
    }

    /// Why no required criterion could have been shown to be worse, and what would do; `None` where one could.
    pub fn too_few_cases(&self) -> Option<String> {
        sentences::too_few(&self.rows)
    }

    /// Why a flip says nothing of these sides, and what would do: of a live run that passes 9 times in 10, one case in ten
    /// flips by luck.
    pub fn too_few_repetitions(&self) -> Option<String> {
        (self.live && self.repetitions < LIVE_REPETITIONS).then(|| sentences::too_few_repetitions(self.repetitions))
    }
}
