//! From the names that criteria write to the metrics that they mean.
//!
//! Names, parameters and defaults are `scenario::catalogue`'s, the one table; here is only what each row computes.

use super::case_pass_rate::CasePassRate;
use super::citation_provenance::CitationProvenance;
use super::citation_validity::CitationValidity;
use super::combined_sources::CombinedSources;
use super::context_preservation::ContextPreservation;
use super::control_validity::ControlValidity;
use super::evidence::{Evidence, Of};
use super::first_attempt_rate::FirstAttemptRate;
use super::grade::GradeRate;
use super::keyword_coverage::KeywordCoverage;
use super::latency::Latency;
use super::learned::{LearnedHarm, LearnedRetrieval};
use super::mandatory_call_rate::{At, MandatoryCallRate};
use super::nugget_recall::NuggetRecall;
use super::order_violation_rate::OrderViolationRate;
use super::pass_of_k::PassOfK;
use super::refusal_rate::RefusalRate;
use super::retry_recovery::{By, RetryRecovery};
use super::satisfaction::Satisfaction;
use super::state_machine_conformance::StateMachineConformance;
use super::turn_success_rate::TurnSuccessRate;
use super::verbatim_query_rate::VerbatimQueryRate;
use super::{Group, Metric};
use crate::scenario::ResolvedMetric;
use crate::trace::Account;

/// The metric that a criterion means.
///
/// # Errors
/// For a row of the table that no metric computes, which a test rules out.
pub fn resolve(asked: &ResolvedMetric) -> Result<Box<dyn Metric>, String> {
    let tool = || asked.parameter("tool").to_owned();
    if let Some(quantile) = asked.entry.figure.quantile() {
        return Ok(Box::new(Latency { quantile }));
    }
    Ok(match asked.entry.name {
        "mandatory_call_rate" => {
            let at = if asked.parameter("at") == "first" { At::First } else { At::AfterRetry };
            Box::new(MandatoryCallRate { tool: tool(), at })
        }
        "first_attempt_rate" => Box::new(FirstAttemptRate { tool: tool() }),
        "keyword_coverage" => Box::new(KeywordCoverage),
        "satisfaction" => Box::new(Satisfaction),
        "learned_retrieval" => Box::new(LearnedRetrieval),
        "learned_harm" => Box::new(LearnedHarm),
        "retry_recovery" => {
            let by = if asked.parameter("by") == "episode" { By::Episode } else { By::Attempt };
            Box::new(RetryRecovery { by, accounts: accounts(asked.parameter("accounts")) })
        }
        "context_preservation" => Box::new(ContextPreservation),
        "case_pass_rate" => Box::new(CasePassRate),
        "pass_all" | "pass_any" => {
            let size = asked.parameter("k").parse().map_err(|_| "`k` is a number of trials".to_owned())?;
            Box::new(PassOfK { group: Group { size, all: asked.entry.name == "pass_all" } })
        }
        "turn_success_rate" => Box::new(TurnSuccessRate),
        "verbatim_query_rate" => Box::new(VerbatimQueryRate { tool: tool() }),
        "citation_validity" => Box::new(CitationValidity),
        "citation_provenance" => Box::new(CitationProvenance),
        "citation_precision" => Box::new(Evidence { of: Of::Precision }),
        "citation_recall" => Box::new(Evidence { of: Of::Recall }),
        "nugget_recall" => Box::new(NuggetRecall { vital: asked.parameter("of") == "vital" }),
        "grade" => Box::new(GradeRate { item: asked.parameter("item").to_owned() }),
        "refusal_rate" => Box::new(RefusalRate),
        "combined_sources" => Box::new(CombinedSources),
        "order_violation_rate" => Box::new(OrderViolationRate),
        "state_machine_conformance" => Box::new(StateMachineConformance),
        "control_validity" => Box::new(ControlValidity),
        name => return Err(format!("nothing computes the metric `{name}`")),
    })
}

fn accounts(joined: &str) -> Vec<Account> {
    let named = |account: &Account| joined.split('+').any(|word| word == account.as_str());
    [Account::Transport, Account::Model, Account::Tool].into_iter().filter(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Measure;
    use crate::scenario::catalogue::{Figure, METRICS};
    use crate::scenario::resolve_metric;

    #[test]
    fn every_row_of_the_table_is_computed_and_measures_what_the_table_says() {
        for entry in METRICS {
            let needed = match entry.signature() {
                signature if signature.contains("TOOL") => "(perplexity_search)",
                signature if signature.contains("(k=") => "(k=3)",
                signature if signature.contains("(item=") => "(grounded)",
                _ => "",
            };
            let asked = resolve_metric(&format!("{}{needed}", entry.name)).expect(entry.name);
            let metric = resolve(&asked).expect(entry.name);
            match entry.figure {
                Figure::Rate => assert_eq!(metric.measure(), Measure::Rate, "{}", entry.name),
                Figure::Time(percent) => {
                    assert_eq!(metric.measure(), Measure::Time, "{}", entry.name);
                    assert!((metric.quantile() * 100.0 - f64::from(percent)).abs() < 1e-9, "{}", entry.name);
                    assert_eq!(entry.name, format!("latency_p{percent}"), "the one time there is");
                }
            }
        }
    }

    #[test]
    fn every_word_that_a_parameter_takes_makes_another_metric() {
        let units = |text: &str| resolve(&resolve_metric(text).expect(text)).expect(text).units();
        assert_ne!(units("retry_recovery(by=attempt)"), units("retry_recovery(by=episode)"));
        assert_ne!(units("nugget_recall(of=vital)"), units("nugget_recall(of=all)"));
        assert_eq!(accounts("tool+transport"), [Account::Transport, Account::Tool]);
        assert_eq!(accounts("transport+model+tool").len(), 3);
    }
}
