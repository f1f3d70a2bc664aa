//! The heading: the run in one word and one sentence.

use crate::gate::{Evaluation, Verdict, of_part};
use crate::report::View;
use crate::report::figures::{self, counted, thousands};
use crate::report::page::without_word;

/// The first lines of the page.
pub(super) struct Heading {
    /// The word of the badge.
    pub word: &'static str,
    /// The sentence beside it.
    pub conclusion: String,
    /// What the sentence leaves out.
    pub caveats: String,
}

/// The heading of `view`.
pub(super) fn heading(view: &View<'_>) -> Heading {
    let evaluation = view.evaluation;
    let failed = figures::failing(evaluation);
    let word = match view.exit_code() {
        0 => "Passed",
        1 => "Failed",
        3 if failed > 0 => "Failed and incomplete",
        3 => "Incomplete",
        4 => "Inconclusive",
        _ => "Not judged",
    };
    let (whole, caveats) = (evaluation.conclusion.as_str(), evaluation.omissions.as_str());
    let conclusion = whole.strip_suffix(caveats).unwrap_or(whole);
    let untried = (view.exit_code() == 3 && view.decided.is_none()).then(|| incomplete(evaluation, failed)).flatten();
    let untried = untried.map(|words| of_part(&evaluation.part, words));
    Heading {
        word,
        conclusion: untried.unwrap_or_else(|| without_word(conclusion, word)),
        caveats: caveats.trim_start_matches("; ").to_owned(),
    }
}

/// What an incomplete run lacks and what fails in it, in numbers: the names are in the list below. `None` if every trial was run.
fn incomplete(evaluation: &Evaluation, failed: u64) -> Option<String> {
    let untried = evaluation.trials.iter().filter(|trial| trial.verdict == Verdict::Error).count() as u64;
    let open = evaluation.rows().filter(|row| row.required && row.verdict == Verdict::Error).count() as u64;
    let mut said =
        format!("{} of {} could not be run", thousands(untried), counted(evaluation.trials.len() as u64, "trial"));
    if failed > 0 {
        said.push_str(&format!("; {} {}", counted(failed, "gate"), if failed == 1 { "fails" } else { "fail" }));
    }
    if open > 0 {
        said.push_str(&format!("; {} cannot be judged", counted(open, "gate")));
    }
    (untried > 0).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn an_incomplete_run_counts_gates_that_measured_nothing_undeclared_among_those_that_fail() {
        let mut run = sample::run(1);
        run.evaluation.exit_code = 3;
        let template = run.evaluation.criteria[0].clone();
        run.evaluation.criteria.clear();
        run.evaluation.gates.clear();
        let mut said = |verdict, required, declared| {
            let mut row = template.clone();
            (row.verdict, row.required, row.not_measured_ok) = (verdict, required, declared);
            run.evaluation.gates.push(row);
            let heading = heading(&run.view());
            let (_, gates) = heading.conclusion.split_once(" could not be run").expect("what was not run");
            format!("{}{gates}", heading.word)
        };
        assert_eq!(said(Verdict::Error, true, false), "Incomplete; 1 gate cannot be judged");
        for (required, declared) in [(true, true), (false, false)] {
            assert_eq!(said(Verdict::NotMeasured, required, declared), "Incomplete; 1 gate cannot be judged");
        }
        assert_eq!(
            said(Verdict::NotMeasured, true, false),
            "Failed and incomplete; 1 gate fails; 1 gate cannot be judged"
        );
        assert_eq!(said(Verdict::Fail, true, false), "Failed and incomplete; 2 gates fail; 1 gate cannot be judged");
    }
}
