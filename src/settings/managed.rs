//! Settings of a managed retrieval service: its address, how queries, filters and audit data are built, and how
//! answers become artifacts.
//!
//! Templates hold placeholders in single braces: `{query}`, or the name of a template parameter. A missing field is
//! read as empty, so that the check lists every mistake and not only the first.

use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The placeholder of the user's query.
pub(crate) const QUERY: &str = "query";

/// Default number of passages that the service may use.
const TOP_K: u32 = 5;
/// Default length of the query in an artifact's description, in characters.
const DESCRIPTION: u32 = 150;
/// Default name of artifacts.
const FILENAME: &str = "nuclia_answer";

/// One managed retrieval service with one of its knowledge boxes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ManagedRetrievalSettings {
    /// Base URL of the service's API, `https://europe-1.nuclia.cloud/api/v1` for example. Required.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub base_url: String,
    /// The id of the knowledge box. Required.
    pub kb_id: String,
    /// The environment variable with the service account's token. Required.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The environment variable with the account's id. Required; kept out of every file, and not sent: the token
    /// identifies the account.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_key: String,
    /// Largest number of passages that the service may use for an answer.
    pub top_k: u32,
    /// Name of the artifacts, without `.md`.
    pub output_filename_base: String,
    /// Longest query in an artifact's description, in characters.
    pub artifact_description_query_max_length: u32,
    /// Whether citation markers are links.
    pub inline_citation_links: bool,
    /// Values from the context of a conversation, for use in templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub template_parameters: Vec<TemplateParameter>,
    /// Rewording of the query for the service. Default: the query is sent unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_rephrasing: Option<PromptRephrasing>,
    /// The service's filter expression: an object whose texts are templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_expression_template: Option<Value>,
    /// Data sent for the service's audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_metadata: Option<AuditMetadata>,
    /// Whether answers are streamed as newline-delimited JSON instead of one JSON object.
    pub stream: bool,
    /// Largest number of concurrent requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Whether requests carry the trial's seed and the fault of its case, for a simulator.
    pub trial_header: bool,
}

impl Default for ManagedRetrievalSettings {
    fn default() -> Self {
        Self {
            base_url: String::new(),
            kb_id: String::new(),
            token: String::new(),
            api_key: String::new(),
            top_k: TOP_K,
            output_filename_base: FILENAME.to_owned(),
            artifact_description_query_max_length: DESCRIPTION,
            inline_citation_links: true,
            template_parameters: Vec::new(),
            prompt_rephrasing: None,
            filter_expression_template: None,
            audit_metadata: None,
            stream: false,
            concurrency: None,
            trial_header: false,
        }
    }
}

/// One value for use in templates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TemplateParameter {
    /// Its name, as in the templates' braces.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// Its path in the conversation's `tool_context`: names separated by dots. Default: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether no request is made without it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Its value if the context has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

words! {
    /// Type of a template parameter.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ParameterType {
        /// A non-empty text.
        #[default]
        String = "string",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
    }
}

impl ParameterType {
    /// Whether a value is of this type; an empty text is not.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.as_str().is_some_and(|text| !text.trim().is_empty()),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
        }
    }
}

/// Rewording of the query for the service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PromptRephrasing {
    /// The template; must contain `{query}`. Required.
    pub template: String,
}

/// Data sent for the service's audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditMetadata {
    /// Whether it is sent.
    pub enabled: bool,
    /// Templates by field name. Required.
    pub fields: BTreeMap<String, String>,
}

impl Default for AuditMetadata {
    fn default() -> Self {
        Self { enabled: true, fields: BTreeMap::new() }
    }
}

impl ManagedRetrievalSettings {
    /// The host of the service with its port, which must not appear in answers; empty if there is none.
    pub fn host(&self) -> &str {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().unwrap_or_default()
    }

    pub fn parameter(&self, name: &str) -> Option<&TemplateParameter> {
        self.template_parameters.iter().find(|parameter| parameter.name == name)
    }

    /// The value of a parameter in a conversation's context, if it has the right type; otherwise its default.
    pub fn value_of<'v>(parameter: &'v TemplateParameter, context: &'v Value) -> Option<&'v Value> {
        let path = parameter.from.as_deref().unwrap_or(&parameter.name);
        let found = path.split('.').try_fold(context, |value, name| value.get(name));
        found.filter(|value| parameter.kind.fits(value)).or(parameter.default.as_ref())
    }

    /// Required parameters that a conversation's context lacks.
    pub fn missing(&self, context: &Value) -> Vec<&str> {
        let required = self.template_parameters.iter().filter(|parameter| parameter.required);
        let missing = required.filter(|parameter| Self::value_of(parameter, context).is_none());
        missing.map(|parameter| parameter.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_file_leaves_out_has_the_value_that_the_documentation_names() {
        let read: ManagedRetrievalSettings = serde_json::from_value(json!({"audit_metadata": {}})).expect("reads");
        let (top_k, description) = (read.top_k, read.artifact_description_query_max_length);
        assert_eq!((top_k, description, read.output_filename_base.as_str()), (5, 150, "nuclia_answer"));
        assert!(read.inline_citation_links && read.audit_metadata.is_some_and(|audit| audit.enabled));
        assert!(read.prompt_rephrasing.is_none() && read.filter_expression_template.is_none());
    }

    #[test]
    fn a_parameter_is_what_its_path_leads_to_where_that_is_of_its_type() {
        let settings: ManagedRetrievalSettings = serde_json::from_value(json!({"template_parameters": [
            {"name": "country", "from": "user.country", "required": true},
            {"name": "year", "type": "integer", "required": true},
            {"name": "unit", "required": true, "default": "metric"}]}))
        .expect("reads");
        let context = json!({"user": {"country": "Norway"}, "year": 2026});
        assert_eq!(settings.missing(&context), Vec::<&str>::new());
        assert_eq!(settings.missing(&json!({"user": {"country": " "}, "year": "2026"})), ["country", "year"]);
        assert_eq!(settings.missing(&Value::Null), ["country", "year"]);
    }

    #[test]
    fn the_host_of_an_address_has_its_port_and_nothing_behind_it() {
        for (url, host) in [
            ("https://europe-1.nuclia.cloud/api/v1", "europe-1.nuclia.cloud"),
            ("http://127.0.0.1:8096", "127.0.0.1:8096"),
            ("", ""),
        ] {
            let settings = ManagedRetrievalSettings { base_url: url.into(), ..Default::default() };
            assert_eq!(settings.host(), host);
        }
    }
}
