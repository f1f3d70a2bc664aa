//! What one room may not read of another and both must know: the two agree.

use proptest::prelude::*;
use ragcheck::flow::tool_rag::tools::index_keywords;
use ragcheck::scenario::{self, vocabulary};
use ragcheck::{flow, knowledge, metric};
use std::collections::BTreeSet;

fn tool_rag() -> &'static dyn flow::Flow {
    flow::by_name("tool-rag").expect("is a flow")
}

#[test]
fn the_tools_that_scenarios_may_name_are_those_that_exist_with_their_arguments() {
    let declared = tool_rag().tools();
    assert_eq!(vocabulary::tools().collect::<Vec<_>>(), declared.iter().map(|tool| tool.name).collect::<Vec<_>>());
    for ((name, arguments), tool) in vocabulary::TOOLS.iter().zip(declared) {
        let arguments: BTreeSet<&str> = arguments.iter().copied().collect();
        assert_eq!(arguments.into_iter().collect::<Vec<_>>(), tool.arguments(), "{name}");
    }
}

#[test]
fn the_prompts_that_scenarios_may_replace_are_those_that_flows_use() {
    let used: Vec<&str> = tool_rag().prompts().iter().map(|prompt| prompt.name).collect();
    assert_eq!(used, vocabulary::PROMPTS);
}

#[test]
fn every_flow_that_scenarios_may_name_exists() {
    for name in vocabulary::FLOWS {
        // An agent that runs elsewhere is no flow of ours, but scenarios name it in the same place.
        let known = flow::by_name(name).is_some() || name == flow::external::NAME;
        assert!(known, "{name}");
    }
}

#[test]
fn what_scenarios_may_put_into_a_turn_for_an_agent_elsewhere_is_what_is_put_in() {
    assert_eq!(scenario::PLACEHOLDERS, flow::external::PLACEHOLDERS);
}

#[test]
fn a_keyword_that_the_judge_calls_generic_is_refused_by_the_tool() {
    for word in metric::generic::GENERIC {
        assert!(index_keywords::is_generic(word), "{word}");
    }
    assert!(!index_keywords::is_generic("heat pump") && !metric::generic::is_generic("heat pump"));
}

proptest! {
    #[test]
    fn the_judge_compares_keywords_in_the_form_in_which_they_are_stored(keyword in "\\PC{0,30}") {
        let stored = knowledge::tokenize::normalised_keyword(&keyword);
        prop_assert_eq!(metric::generic::normalise(&keyword), stored);
    }
}

#[test]
fn a_sigma_at_the_end_of_a_keyword_is_stored_and_judged_alike() {
    assert_eq!(metric::generic::normalise("\u{39f}\u{394}\u{39f}\u{3a3}"), "\u{3bf}\u{3b4}\u{3bf}\u{3c3}");
}
