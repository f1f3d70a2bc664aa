//! Section on tokens and cost: total, by variant, and by case.

use crate::gate::{Spending as Sums, Spent, SpentBy};
use crate::report::figures::thousands;
use crate::settings::price::dollars;
use serde::Serialize;

/// The section on tokens and money.
#[derive(Serialize)]
pub(super) struct Spending {
    run: SpendingRow,
    variants: Vec<SpendingRow>,
    cases: Vec<SpendingRow>,
    more: u64,
    /// Why the total cost is unknown; empty if it is known.
    reason: String,
}

#[derive(Serialize)]
struct SpendingRow {
    name: String,
    trials: String,
    calls: String,
    input: String,
    cached: String,
    output: String,
    cost: String,
}

/// Maximum number of cases listed.
const LISTED: usize = 500;

/// Spending of a run; `None` if no model answered in any trial.
pub(super) fn spending(sums: &Sums) -> Option<Spending> {
    let rows = |rows: &[SpentBy]| rows.iter().map(|one| row(&one.name, &one.spent)).collect::<Vec<_>>();
    (!sums.is_empty()).then(|| Spending {
        run: row("all", &sums.run),
        variants: rows(&sums.variants),
        cases: rows(&sums.cases[..sums.cases.len().min(LISTED)]),
        more: sums.cases.len().saturating_sub(LISTED) as u64,
        reason: sums.run.not_measured.clone(),
    })
}

fn row(name: &str, spent: &Spent) -> SpendingRow {
    let known = |tokens: Option<u64>| tokens.map_or_else(|| "not reported".to_owned(), thousands);
    SpendingRow {
        name: name.to_owned(),
        trials: thousands(spent.trials),
        calls: thousands(spent.model_calls),
        input: known(spent.input_tokens),
        cached: spent.cached_tokens.map_or_else(|| "–".to_owned(), thousands),
        output: known(spent.output_tokens),
        cost: spent.cost.map_or_else(|| "not measured".to_owned(), dollars),
    }
}
