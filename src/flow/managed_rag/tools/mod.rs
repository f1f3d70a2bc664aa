//! The tool of `managed-rag`.

mod nuclia_rag;

use super::ManagedRag;
use crate::flow::tools::Tool;

/// Asks the managed retrieval service.
pub(crate) const NUCLIA_RAG: &str = "nuclia_rag";

pub(super) static TOOLS: [&Tool<ManagedRag>; 1] = [&nuclia_rag::TOOL];
