//! Refusals of a call by a person whom the agent asked, in the agent's own words: `{"rejected_by_user": true}`.
//!
//! Only what names the person is one. `{"approved": false}` may also be what the tool found, of a loan.

use super::is_alone;
use serde_json::{Map, Value};

/// Reviewers and supervisors also decide on what a tool looks up, such as a leave.
const PEOPLE: [&str; 3] = ["user", "human", "operator"];
const REFUSALS: [&str; 5] = ["rejected", "denied", "declined", "refused", "disapproved"];
/// What a person may do to other things, too: `user_cancelled` is said of an order.
const CANCELS: [&str; 3] = ["cancelled", "canceled", "aborted"];
/// Members that say the same beside it, or what the person wrote.
const BESIDE: [&str; 9] =
    ["feedback", "comment", "arguments", "args", "status", "decision", "outcome", "approved", "executed"];

/// Whether nothing stands in an object but that a person refused the call, and words about it.
pub(super) fn is_refused(members: &Map<String, Value>) -> bool {
    let refuses = |(name, value): (&String, &Value)| refuses(name, value);
    let is_beside = |name: &str| BESIDE.contains(&name) || members.get_key_value(name).is_some_and(refuses);
    members.iter().any(refuses) && is_alone(members, is_beside)
}

/// Whether a member says that a person refused: by its name, `rejected_by_user` or `user_approved`, or by its text.
fn refuses(name: &str, value: &Value) -> bool {
    let named = words(name);
    let names = |known: &[&str]| named.iter().any(|word| known.contains(&word.as_str()));
    match value {
        Value::Bool(true) => names(&PEOPLE) && (names(&REFUSALS) || names(&CANCELS) && names(&["by"])),
        Value::Bool(false) => names(&PEOPLE) && names(&["approved"]) && !names(&REFUSALS),
        // `"rejected_by": "user"`, `"status": "rejected_by_user"`.
        Value::String(text) => {
            let said = words(text);
            let says = |known: &[&str]| said.iter().any(|word| known.contains(&word.as_str()));
            let is_by = names(&REFUSALS) && named.last().is_some_and(|last| last == "by") && said.len() == 1;
            is_by && says(&PEOPLE)
                || ["status", "decision", "outcome", "result"].contains(&name)
                    && said.len() < 4
                    && says(&PEOPLE)
                    && says(&REFUSALS)
        }
        _ => false,
    }
}

/// The words of a name, small: `rejectedByUser` and `rejected_by_user` have three.
fn words(name: &str) -> Vec<String> {
    let mut parted = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_uppercase() && !parted.ends_with(|last: char| last.is_uppercase() || last == ' ') {
            parted.push(' ');
        }
        parted.push(if letter.is_alphanumeric() { letter } else { ' ' });
    }
    parted.split_whitespace().map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use crate::provider::tool_result::{document, error};

    #[test]
    fn a_person_who_is_named_refused_the_call_and_a_verdict_without_one_may_be_data() {
        for text in [
            r#"{"rejected_by_user": true}"#,
            r#"{"rejectedByUser": true, "feedback": "use Oslo"}"#,
            r#"{"approved": false, "rejected_by": "user", "reason": "too much"}"#,
            r#"{"user_approved": false}"#,
            r#"{"approved_by_human": false, "message": "no", "tool": "refund"}"#,
            r#"{"status": "rejected_by_user"}"#,
            r#"{"decision": "denied by operator", "executed": false}"#,
            r#"{"result": {"rejected_by_user": true}}"#,
            r#"{"cancelled_by_user": true}"#,
        ] {
            assert!(error(&document(text)).is_some(), "{text}");
        }
        for text in [
            r#"{"rejected_by_user": false}"#,
            r#"{"user_approved": true}"#,
            r#"{"order_id": "A1", "cancelled_by_user": true}"#,
            r#"{"approved": false}"#,
            r#"{"approved": false, "reason": "income too low"}"#,
            r#"{"decision": "reject"}"#,
            r#"{"status": "denied", "claim_id": "C-1"}"#,
            r#"{"user_cancelled": true}"#,
            r#"{"user_confirmed": false}"#,
            r#"{"requires_human_approval": false, "message": "below the limit"}"#,
            r#"{"status": "rejected by supervisor", "reason": "no days left"}"#,
            r#"{"rejected_by": "approver", "reason": "no receipt"}"#,
            r#"{"user": "blocked", "blocked": false}"#,
            r#"{"status": "user is not blocked any more"}"#,
        ] {
            assert_eq!(error(&document(text)), None, "{text}");
        }
    }
}
