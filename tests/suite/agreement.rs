//! What one room may not read of another and both must know: the two agree.

use proptest::prelude::*;
use ragcheck::internals::flow::tool_rag::tools::index_keywords;
use ragcheck::internals::{knowledge, metric};

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
