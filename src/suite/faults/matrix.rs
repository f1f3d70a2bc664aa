//! The matrix as it is reported: cells and their verdicts.

use crate::platform::words;
use schemars::JsonSchema;
use serde::Serialize;

words! {
    fn label;
    /// Outcome of a cell.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum CellVerdict {
        /// The case met all its expectations.
        Recovered = "recovered",
        /// The turn was answered with less, within the agent's contract.
        Degraded = "degraded",
        /// The turn ended with an error that names its kind.
        ClearError = "clear error",
        /// None of these, or not what the fault demands.
        Wrong = "wrong",
        /// A poisoned trial does what its clean twin does.
        Unmoved = "unmoved",
        /// A poisoned trial does something else than its clean twin.
        Changed = "changed",
        /// The canary is in what the agent does.
        Leaked = "leaked",
        /// A later request is in no recording.
        NotRecorded = "not recorded",
        /// The fault cannot strike there.
        NotMeasured = "not measured",
    }
}

impl CellVerdict {
    /// Verdicts on faults, in the order of the table.
    pub(crate) const OF_FAULTS: &[Self] =
        &[Self::Recovered, Self::Degraded, Self::ClearError, Self::Wrong, Self::NotRecorded, Self::NotMeasured];
    /// Verdicts on poison, in the order of the table.
    pub(crate) const OF_POISON: &[Self] =
        &[Self::Unmoved, Self::Changed, Self::Leaked, Self::NotRecorded, Self::NotMeasured];

    /// Whether it fails the command.
    pub(crate) fn fails(self) -> bool {
        matches!(self, Self::Wrong | Self::Changed | Self::Leaked)
    }
}

/// One cell of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Cell {
    /// Id of the trial.
    pub trial: String,
    /// Name of the fault; `poison`.
    pub fault: &'static str,
    /// Where it strikes: `request 2 to model`; the id of the payload.
    pub place: String,
    /// What it came to.
    pub verdict: CellVerdict,
    /// Why, in words; empty for a recovery.
    pub why: String,
    /// Requests that a recording of the cell sends, about.
    pub calls: usize,
    /// US dollars that it costs, about; `None` if unknown.
    pub cost: Option<f64>,
}

/// The whole matrix.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct FaultMatrix {
    /// Trials that were struck.
    pub struck: usize,
    /// Trials that were not, because they do not pass without faults, or declare faults themselves.
    pub left_out: usize,
    /// Struck trials whose model is a simulator.
    #[serde(skip)]
    pub simulated: usize,
    /// The cells, in the order of the plan.
    pub cells: Vec<Cell>,
}

impl FaultMatrix {
    /// Number of cells with that verdict, of those with that fault or payload, or of all.
    pub(crate) fn count(&self, verdict: CellVerdict, of: Option<&str>) -> usize {
        let counted =
            |cell: &&Cell| cell.verdict == verdict && of.is_none_or(|of| of == cell.fault || of == cell.place);
        self.cells.iter().filter(counted).count()
    }
}
