//! Parses a judge's replies strictly, and combines two of them.
//!
//! An invalid reply is an error for its items, never a grade: not JSON, a member written twice, members out of order
//! (the quotation comes before the verdict, so that it is not fitted to the verdict), a missing item, or a quotation
//! that is not in the data. One code fence around the JSON is ignored.

use super::prompt::Order;
use crate::platform::distinct_json::Distinct;
use crate::provider::chat::{ChatResponse, Finish};
use crate::scenario::Rubric;
use crate::trace::{GradeValue, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// One item's grade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemGrade {
    pub item: String,
    pub grade: GradeValue,
    /// The judge's quotation; empty if none.
    pub quote: String,
    /// Why there is no verdict; empty if there is one.
    pub reason: String,
}

/// Verdict of one reply on one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    quote: String,
    passes: bool,
}

/// Why a reply gives no valid grade for an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReplyError {
    /// The model refused to grade.
    #[error("the judge refused")]
    Refused,
    /// The reply was truncated.
    #[error("the reply was cut off at the limit of output tokens")]
    Cut,
    /// It is not JSON.
    #[error("the reply is not the JSON asked for: {0}")]
    NotJson(String),
    /// It is JSON of the wrong shape.
    #[error("the reply is not one object with `items` alone")]
    NotItems,
    /// `items` is not a list.
    #[error("the reply has no list `items`")]
    NoList,
    /// The item is missing.
    #[error("the reply leaves it out")]
    LeftOut,
    /// The item occurs twice.
    #[error("the reply grades it twice")]
    Twice,
    /// Wrong members, or in the wrong order: the quotation comes before the verdict, so that it is not fitted to the
    /// verdict.
    #[error("its members are not `id`, `evidence`, `verdict` in this order")]
    Members,
    /// The quotation is not a text.
    #[error("`evidence` is not a text")]
    Evidence,
    /// The verdict is missing.
    #[error("`verdict` is neither \"pass\" nor \"fail\"")]
    Verdict,
    /// The quoted words are not in the data.
    #[error("it quotes words that appear nowhere: {}", text::quote(.0, 80))]
    Misquoted(String),
}

/// Result of one reply for each item.
pub(super) type SaidByItem = BTreeMap<String, Result<Said, ReplyError>>;

/// Parses one reply; `shown` is the data that the judge saw.
pub(super) fn read(reply: &ChatResponse, rubric: &Rubric, shown: &str) -> SaidByItem {
    let all = |why: ReplyError| rubric.items.iter().map(|item| (item.id.clone(), Err(why.clone()))).collect();
    if reply.refusal.is_some() || reply.finish == Finish::ContentFilter {
        return all(ReplyError::Refused);
    }
    if reply.finish == Finish::Length {
        return all(ReplyError::Cut);
    }
    let entries = match entries(&reply.content) {
        Ok(entries) => entries,
        Err(why) => return all(why),
    };
    let shown = folded(shown);
    let said = |item: &str| {
        let mut own = entries.iter().filter(|entry| entry.get("id").and_then(Value::as_str) == Some(item));
        match (own.next(), own.next()) {
            (None, _) => Err(ReplyError::LeftOut),
            (Some(_), Some(_)) => Err(ReplyError::Twice),
            (Some(entry), None) => one(entry, &shown),
        }
    };
    rubric.items.iter().map(|item| (item.id.clone(), said(&item.id))).collect()
}

fn entries(reply: &str) -> Result<Vec<Value>, ReplyError> {
    // Of a verdict that is written twice, a parser would take either.
    let Distinct(value) = serde_json::from_str(bare(reply)).map_err(|why| ReplyError::NotJson(why.to_string()))?;
    match value {
        Value::Object(mut members) if members.len() == 1 => match members.remove("items") {
            Some(Value::Array(entries)) => Ok(entries),
            _ => Err(ReplyError::NoList),
        },
        _ => Err(ReplyError::NotItems),
    }
}

/// The text without one surrounding code fence.
fn bare(reply: &str) -> &str {
    let reply = reply.trim();
    let inside = reply.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inside.and_then(|rest| rest.split_once('\n')).map_or(reply, |(_, rest)| rest.trim())
}

fn one(entry: &Value, shown: &str) -> Result<Said, ReplyError> {
    let members: Vec<&str> =
        entry.as_object().map_or_else(Vec::new, |entry| entry.keys().map(String::as_str).collect());
    if members != ["id", "evidence", "verdict"] {
        return Err(ReplyError::Members);
    }
    let Some(quote) = entry["evidence"].as_str() else { return Err(ReplyError::Evidence) };
    let passes = match entry["verdict"].as_str() {
        Some("pass") => true,
        Some("fail") => false,
        _ => return Err(ReplyError::Verdict),
    };
    if !shown.contains(&folded(quote)) {
        return Err(ReplyError::Misquoted(quote.to_owned()));
    }
    Ok(Said { quote: quote.to_owned(), passes })
}

/// Normalises letter case and white space for comparing quotations.
fn folded(words: &str) -> String {
    text::line(words).to_lowercase()
}

/// Combines the replies in both orders, in the rubric's order.
pub(super) fn combine(rubric: &Rubric, written: &SaidByItem, reversed: &SaidByItem) -> Vec<ItemGrade> {
    let grade = |item: &str| {
        let of = |said: &SaidByItem, order: Order| {
            let said = said.get(item).cloned().unwrap_or(Err(ReplyError::LeftOut));
            said.map_err(|why| match order {
                Order::Written => format!("items in order: {why}"),
                Order::Reversed => format!("items reversed: {why}"),
            })
        };
        let (grade, quote, reason) = match (of(written, Order::Written), of(reversed, Order::Reversed)) {
            (Err(why), _) | (_, Err(why)) => (GradeValue::Error, String::new(), why),
            (Ok(one), Ok(two)) if one.passes != two.passes => {
                let passing = if one.passes { "in order" } else { "reversed" };
                (GradeValue::Inconsistent, one.quote, format!("it passes only with the items {passing}"))
            }
            (Ok(one), Ok(_)) => {
                (if one.passes { GradeValue::Pass } else { GradeValue::Fail }, one.quote, String::new())
            }
        };
        ItemGrade { item: item.to_owned(), grade, quote, reason }
    };
    rubric.items.iter().map(|item| grade(&item.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::prompt::{data, tests::content, tests::rubric};
    use super::*;
    use crate::provider::chat::Usage;

    fn reply(text: &str) -> SaidByItem {
        let response = ChatResponse {
            model: "m".into(),
            content: text.into(),
            refusal: None,
            calls: Vec::new(),
            finish: Finish::Stop,
            usage: Usage::default(),
            passthrough: None,
        };
        read(&response, &rubric(), &data(&content()))
    }

    fn graded(one: &str, two: &str) -> String {
        format!(
            r#"{{"items": [{{"id": "two", "evidence": "", "verdict": "{two}"}}, {{"id": "one", "evidence": "it  LASTS two years", "verdict": "{one}"}}]}}"#
        )
    }

    fn why(text: &str) -> String {
        reply(text)["one"].clone().expect_err(text).to_string()
    }

    #[test]
    fn a_verdict_needs_both_orders_and_one_that_depends_on_them_is_none() {
        let (yes, no) = (reply(&graded("pass", "fail")), reply(&graded("fail", "fail")));
        let both: Vec<GradeValue> = combine(&rubric(), &yes, &no).iter().map(|item| item.grade).collect();
        assert_eq!(both, [GradeValue::Inconsistent, GradeValue::Fail]);
        let same = combine(&rubric(), &yes, &yes);
        assert_eq!((same[0].grade, same[0].quote.as_str()), (GradeValue::Pass, "it  LASTS two years"));
        let broken = combine(&rubric(), &yes, &reply("Certainly!"));
        assert!(
            broken.iter().all(|item| item.grade == GradeValue::Error && item.reason.starts_with("items reversed:"))
        );
    }

    #[test]
    fn one_code_fence_is_passed_over_and_nothing_else_around_the_json() {
        assert!(reply(&format!("```json\n{}\n```", graded("pass", "pass")))["one"].is_ok());
        assert!(why(&format!("Here it is: {}", graded("pass", "pass"))).contains("not the JSON"));
    }

    #[test]
    fn a_reply_that_is_not_as_asked_is_an_error_of_the_item_alone() {
        let verdict_first = graded("pass", "pass").replace(
            r#""evidence": "it  LASTS two years", "verdict": "pass""#,
            r#""verdict": "pass", "evidence": "it  LASTS two years""#,
        );
        assert!(why(&verdict_first).contains("in this order"));
        assert!(reply(&verdict_first)["two"].is_ok());
        assert!(why(&graded("maybe", "pass")).contains("neither"));
        assert!(
            why(&graded("pass", "pass").replace("LASTS two", "lasts three")).contains("appear nowhere: it lasts three")
        );
        assert!(why(&graded("pass", "pass").replace("\"one\"", "\"uno\"")).contains("leaves it out"));
        assert!(why(&graded("pass", "pass").replace("\"two\"", "\"one\"")).contains("twice"));
        assert!(why("[]").contains("one object"));
    }

    #[test]
    fn a_verdict_that_is_written_twice_is_none() {
        let twice = graded("fail", "pass").replace(r#""verdict": "fail""#, r#""verdict": "fail", "verdict": "pass""#);
        assert!(why(&twice).contains("`verdict` is written twice"), "{}", why(&twice));
    }

    proptest::proptest! {
        #[test]
        fn no_reply_makes_the_reader_panic_or_leave_an_item_out(text in proptest::prelude::any::<String>()) {
            proptest::prop_assert_eq!(reply(&text).len(), 2);
        }
    }
}
