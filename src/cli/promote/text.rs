//! Writes a case into the text of a scenario, whose comments and order stay as they are.

use super::proposal::Proposal;
use crate::platform::yaml;
use serde_json::{Value, json};

/// Why no case can be added to a text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPlace {
    /// It is not YAML.
    #[error("it is not YAML")]
    NotYaml,
    /// Its cases are written in another way.
    #[error("its `cases` are no list of blocks (`- case: …`, a line each)")]
    NoList,
}

/// A case as an item of a list in YAML, below comments on where it comes from; its lines begin at the margin.
pub(super) fn of_case(proposal: &Proposal) -> String {
    let mut text: String = proposal.about.iter().map(|line| format!("# {line}\n")).collect();
    let case = serde_json::to_value(&proposal.case).unwrap_or(Value::Null);
    let written = yaml::write(&json!({ "cases": [case] }));
    for line in written.lines().skip(1) {
        text.push_str(line.strip_prefix("  ").unwrap_or(line));
        text.push('\n');
    }
    text
}

/// The text of a scenario with one more case at the end of its list.
///
/// # Errors
/// Why no case can be added to this text.
pub(super) fn with_case(text: &str, case: &str) -> Result<String, NoPlace> {
    let root = yaml::parse_only(text).map_err(|_| NoPlace::NotYaml)?;
    let cases = root.get("cases").and_then(yaml::Node::items).and_then(<[_]>::first).ok_or(NoPlace::NoList)?;
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.get(cases.place.line.saturating_sub(1) as usize).ok_or(NoPlace::NoList)?;
    let indent = first.find('-').filter(|dash| first[..*dash].trim().is_empty()).ok_or(NoPlace::NoList)?;
    let after = root.entries().into_iter().map(|(key, _)| key.place.line).filter(|line| *line > cases.place.line).min();
    // Comments before the next key belong to it.
    let mut end = after.map_or(lines.len(), |line| line as usize - 1);
    while end > 0 && (lines[end - 1].trim().is_empty() || lines[end - 1].starts_with('#')) {
        end -= 1;
    }
    let pad = |line: &str| if line.is_empty() { String::new() } else { format!("{}{line}", " ".repeat(indent)) };
    let added = std::iter::once(String::new()).chain(case.lines().map(pad));
    let all = lines[..end]
        .iter()
        .map(|line| (*line).to_owned())
        .chain(added)
        .chain(lines[end..].iter().map(|line| (*line).to_owned()));
    Ok(all.collect::<Vec<_>>().join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_added_at_the_end_of_the_list_and_all_else_stays() {
        let text = "# mine\nscenario: a\ncases:\n  - case: one # first\n    ask: Hi?\n\n# of gates\ngates: []\n";
        let added = with_case(text, "# from there\n- case: two\n  ask: Ho?\n").expect("added");
        let expected = "# mine\nscenario: a\ncases:\n  - case: one # first\n    ask: Hi?\n\n  # from there\n  - case: two\n    ask: Ho?\n\n# of gates\ngates: []\n";
        assert_eq!(added, expected);
        assert!(with_case("cases: [{case: a}]\n", "- case: b\n").is_err());
        assert!(with_case("scenario: a\n", "- case: b\n").is_err());
        let at_margin = with_case("cases:\n- case: one\n  ask: Hi?", "- case: two\n").expect("added");
        assert_eq!(at_margin, "cases:\n- case: one\n  ask: Hi?\n\n- case: two\n");
    }
}
