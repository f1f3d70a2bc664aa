//! Note on the first replay of external agents in a project: their tools really run, in a replay too.

use crate::platform::files;
use crate::trace::{EXTERNAL, Trace, What, text};
use std::collections::BTreeSet;
use std::path::Path;

/// Marker file in the reports folder: the note has been shown.
const SAID: &str = ".tools-act-in-replay";
/// Maximum number of tools listed.
const NAMED: usize = 20;

/// Tools that the models of external agents were offered and called.
#[derive(Debug, Default)]
pub(super) struct ForeignTools(BTreeSet<String>);

impl ForeignTools {
    pub(super) fn add(&mut self, trace: &Trace) {
        let called = |tool: &&String| {
            trace.events.iter().any(|event| matches!(&event.what, What::ToolCalled(call) if call.tool == **tool))
        };
        if trace.lane.flow == EXTERNAL {
            self.0.extend(trace.offered.iter().flatten().filter(called).cloned());
        }
    }

    /// The note; `None` if no tool was called, or the marker in `reports` exists. A recording answers for `declared` services.
    pub(super) fn note(&self, reports: &Path, declared: &BTreeSet<String>) -> Option<String> {
        let said = reports.join(SAID);
        if self.0.is_empty() || said.exists() {
            return None;
        }
        let listed = |names: &BTreeSet<String>| text::listed(names.iter().map(|name| text::quote(name, 60)), NAMED);
        let tools = listed(&self.0);
        let answers = if declared.is_empty() {
            "model and search service alone;".to_owned()
        } else {
            format!("model, search service and declared services ({}) alone; beside that,", listed(declared))
        };
        // If the marker cannot be written, the note is shown again.
        let _ = files::write(&said, "");
        Some(format!(
            "note: a replay answers for {answers} the agent's own tools ran for real, except those of recorded MCP servers: {tools}. \
             Each turn carries the header `x-ragcheck-mode: replay`, by which the agent can leave out what must not \
             happen again (said once)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_with_the_names_and_never_without() {
        let reports = tempfile::tempdir().expect("a folder");
        assert_eq!(ForeignTools::default().note(reports.path(), &BTreeSet::new()), None);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (tools, declared) = (ForeignTools(names(&["create_ticket", "search_docs"])), names(&["shelf"]));
        let said = tools.note(reports.path(), &declared).expect("a note");
        let answers =
            "answers for model, search service and declared services (shelf) alone; beside that, the agent's own";
        assert!(said.contains(answers), "{said}");
        assert!(said.contains("create_ticket, search_docs") && said.contains("x-ragcheck-mode: replay"), "{said}");
        assert_eq!(tools.note(reports.path(), &declared), None);
    }
}
