//! `forced_retrieval_rate`: queries whose first completion was forced to call a tool that searches knowledge, did so,
//! and got a result / queries sent to the model. `tool_choice` forces by the tool's name, or by `required` where only
//! search tools are offered.
//!
//! `forbidden_call_rate`: completions that called a tool although requested with `tool_choice: none` / completions
//! requested so. Lower is better. A failed completion called nothing and is not a unit of the second.

use super::catalogue::Registered;
use super::tools::Tools;
use super::turns::not_shown;
use super::{Held, Member, Metric, Observation, Seen, TrialView, TurnView, quote};
use crate::settings::catalogue::Units;
use crate::trace::{Reply, Role, ToolOutcome, Trace};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("forced_retrieval_rate", |_| Metric {
        needs: vec![Tools::Role(Role::Knowledge)],
        reads_outcomes: true,
        members: &[Member::ToolChoice, Member::Calls, Member::CallsOfCompletions, Member::Answers],
        ..Metric::by_turn("queries", |turn, trace| {
            let asked = turn.models().next().is_some() || turn.ended().is_none();
            asked.then(|| judge(turn, trace))
        })
    })
    .about(
        "Queries whose first request forces the call of a knowledge tool, which the model then \
             makes and which gives a result.",
    )
    .counted(Units::OfTurns),
    Registered::rate("forbidden_call_rate", |_| Metric {
        members: &[Member::ToolChoice, Member::Calls, Member::CallsOfCompletions],
        ..Metric::new("completions that may call no tool", forbidden)
    })
    .about("Of the completions that may call no tool (`tool_choice: none`), those that call one.")
    .lower_is_better()
    .counted(Units::OfCompletions),
];

fn judge(turn: &TurnView<'_>, trace: &Trace) -> Held {
    let Some(first) = turn.models().next() else { return Err(Seen::new("the model was never asked")) };
    let choice = first.tool_choice.as_str();
    let offered = trace.offered.as_deref().unwrap_or_default();
    let searches_alone = !offered.is_empty() && offered.iter().all(|tool| trace.role(tool) == Role::Knowledge);
    let forced = choice.strip_prefix("named ").or_else(|| choice.strip_prefix("required "));
    let by_name = forced.is_some_and(|tool| trace.role(tool) == Role::Knowledge);
    if !(by_name || choice == "required" && searches_alone) {
        return Err(Seen::new(format!("the first request left the call open (tool_choice {})", quote(choice, 80))));
    }
    let of_first = || turn.calls().filter(|call| call.call == first.call && trace.role(&call.tool) == Role::Knowledge);
    if of_first().any(|call| matches!(call.outcome, ToolOutcome::Ok(_))) {
        return Ok(());
    }
    if let Some(call) = of_first().find(|call| call.outcome.is_unseen()) {
        return Err(not_shown(&call.tool));
    }
    Err(Seen::new(format!("the first completion retrieved nothing: {}", turn.ending())))
}

fn forbidden(view: &TrialView<'_>) -> Vec<Observation> {
    let mut units = Vec::new();
    for turn in view.turns {
        for model in turn.models().filter(|model| model.tool_choice == "none") {
            let Reply::Completion(completion) = &model.reply else { continue };
            let unit = format!("{}, completion {}", turn.label(), model.call + 1);
            units.push(match completion.calls.first() {
                Some(tool) => Observation::occurrence(unit, format!("calls {}", quote(tool, 60))),
                None => Observation::failure(unit, ""),
            });
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use crate::metric::Outcome;
    use crate::metric::sample::observe;
    use crate::trace::What;

    /// Whether a search counts as forced by this `tool_choice`, given the tools that the agent was offered.
    fn forced(choice: &str, offered: Option<&[&str]>) -> bool {
        let units = observe("forced_retrieval_rate", "[{case: a, ask: q}]", |story| {
            let mut story = story.turn("q").search(&["doc#1"]).offered(offered);
            story.each(|what| {
                if let What::ModelCalled(called) = what {
                    choice.clone_into(&mut called.tool_choice);
                }
            });
            story.answer("so", &[])
        });
        units.len() == 1 && units[0].outcome == Outcome::Success
    }

    #[test]
    fn a_call_is_forced_by_name_or_by_required_where_one_tool_is_offered() {
        const SEARCH: &str = "knowledge_base_search";
        assert!(forced("named knowledge_base_search", None));
        assert!(forced("required knowledge_base_search", Some(&[SEARCH, "other"])));
        assert!(forced("required", Some(&[SEARCH])));
        assert!(!forced("required", Some(&[SEARCH, "other"])), "another one may be called");
        assert!(!forced("required", None), "nobody knows of which tools");
        assert!(!forced("required other", Some(&["other"])), "it searches nothing");
        assert!(!forced("auto", Some(&[SEARCH])));
    }
}
