//! Creates a trial's keyword index in the state that its case declares.

use super::outcome::error;
use crate::flow::AgentContext;
use crate::knowledge::KeywordIndex;
use crate::platform::files::{self, TemporaryFolder};
use crate::scenario::KeywordIndexState;
use crate::trace::{TrialError, TrialErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Puts an index in that state into `context`. The returned guard owns its file and removes it after the trial.
///
/// # Errors
/// If the file cannot be created below `root`.
pub(super) fn place(
    context: &mut AgentContext,
    state: Option<KeywordIndexState>,
    root: &Path,
) -> Result<Option<TemporaryFolder>, Box<TrialError>> {
    match state {
        None => Ok(None),
        Some(KeywordIndexState::Unwritable) => {
            context.keywords = Arc::new(KeywordIndex::unwritable());
            Ok(None)
        }
        Some(KeywordIndexState::Reopened) => {
            let folder = files::temporary_folder(root).map_err(|why| {
                let message = format!("no file can be made for the keyword index: {why}");
                error(TrialErrorKind::Provider, &message, Vec::new())
            })?;
            context.keywords = Arc::new(KeywordIndex::in_file(&folder.path().join("keywords.sqlite")));
            Ok(Some(folder))
        }
    }
}
