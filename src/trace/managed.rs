//! Answer of a managed retrieval service, and the artifact made from it.

use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One answer of a managed retrieval service with its artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedAnswer {
    /// Status sent to the model.
    pub status: ManagedStatus,
    /// The service's id of the exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning_id: Option<String>,
    /// The question as sent, reworded if that is declared.
    pub asked: String,
    /// Data sent for the audit log.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit: BTreeMap<String, String>,
    /// Whether a filter was sent; `None` if none is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_applied: Option<bool>,
    /// The filter that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_filter: Option<Value>,
    /// Parameters that the filter needs and the conversation lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_filter_parameters: Vec<String>,
    /// The service's text, before insertion of markers.
    pub text: String,
    /// Citations of the text, in the service's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<ManagedCitation>,
    /// Sources of the numbers in the artifact, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ManagedSource>,
    /// Notes on what was left out or moved, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The artifact; `None` without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// Input tokens of the service, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Its output tokens, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

words! {
    /// Status of a call for the model.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ManagedStatus {
        /// There is an answer and an artifact.
        Success = "success",
        /// The service has no answer.
        NoAnswerFound = "no_answer_found",
    }
}

/// Spans of the service's text that cite one passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedCitation {
    /// The passage's id.
    pub paragraph: String,
    /// Its file: `resource/field type/field`; `None` if unknown, and then nothing is cited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its page, from 0, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    /// The cited spans of the text.
    pub spans: Vec<TextSpan>,
}

/// A span of a text, in code points. Up to version 4 a list of the two places, which is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextSpan {
    /// Place of the first character, from 0.
    pub start: u64,
    /// Place after the last character.
    pub end: u64,
}

/// One source by its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedSource {
    /// Its number in the artifact, from 1.
    pub number: u32,
    /// The file: `resource/field type/field`.
    pub source: String,
    /// Its page, from 0, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    /// The name by which answers cite it: `error-codes#page=5`.
    pub id: String,
    /// The file's name.
    pub filename: String,
    /// The resource's title.
    pub title: String,
    /// Its link through the gateway.
    pub link: String,
}

/// A file made by a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its name.
    pub filename: String,
    /// Its version among files of that name in the conversation, from 1.
    pub version: u32,
    /// Its media type.
    pub mime_type: String,
    /// Its description.
    pub description: String,
    /// Its text.
    pub content: String,
}
