//! Finds the line where each case begins, without parsing a valid file twice.

use crate::platform::yaml::{self, Focus, Step};

/// The line of each kept case. A block list is scanned for its dashes, which no text inside it can imitate, being
/// indented further; anything else is parsed as a tree.
pub(super) fn case_lines(text: &str, kept: &[usize]) -> Vec<u32> {
    let mut lines = Vec::new();
    let mut dash: Option<usize> = None;
    let body = text.lines().enumerate().skip_while(|(_, line)| line.trim_end() != "cases:").skip(1);
    for (index, line) in body {
        let trimmed = line.trim_start();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let indent = line.len() - trimmed.len();
        let is_item = trimmed == "-" || trimmed.starts_with("- ");
        if indent == 0 && !is_item {
            break;
        }
        if is_item && *dash.get_or_insert(indent) == indent {
            lines.push(index as u32 + 1);
        }
    }
    if kept.last().is_some_and(|last| lines.len() != last + 1) {
        let tree = yaml::parse(text).ok();
        lines = (0..=kept.last().copied().unwrap_or_default())
            .map(|index| {
                let path = [Step::Key("cases".into()), Step::Index(index)];
                tree.as_ref().map_or(1, |tree| tree.locate(&path, Focus::Value).line)
            })
            .collect();
    }
    kept.iter().map(|index| lines.get(*index).copied().unwrap_or(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_found_by_their_dashes_or_in_the_tree() {
        let block =
            "a: 1\ncases:\n  # first\n  - case: a\n    text: |\n      - no item\n\n  -\n    case: b\ngates:\n  - x\n";
        assert_eq!(case_lines(block, &[0, 1]), [4, 8]);
        assert_eq!(case_lines("cases:\n- case: a\n- case: b\nz: 1\n", &[1]), [3]);
        assert_eq!(case_lines("cases: [{case: a},\n  {case: b}]\n", &[0, 1]), [1, 2]);
    }
}
