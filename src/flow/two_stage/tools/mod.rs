//! The tool of `two-stage`.

mod retrieve_documents;

use super::TwoStage;
use crate::flow::tools::Tool;

/// Searches the tenant's documents.
pub(crate) const RETRIEVE_DOCUMENTS: &str = "retrieve_documents";

pub(super) static TOOLS: [&Tool<TwoStage>; 1] = [&retrieve_documents::TOOL];
