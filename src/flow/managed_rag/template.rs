//! Builds the request: the query from its template, the filter, and the fields of the audit log.

use crate::platform::placeholders::{Piece, braced};
use crate::provider::AskRequest;
use crate::settings::{ManagedRetrievalSettings, QUERY};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A request, and the parameters that were missing for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prepared {
    pub(super) request: AskRequest,
    /// Whether a filter is sent; `None` if none is declared.
    pub(super) filter_applied: Option<bool>,
    /// Parameters of the filter that are unknown.
    pub(super) missing_filter_parameters: Vec<String>,
}

/// Values of the placeholders.
struct Values<'v> {
    query: &'v str,
    settings: &'v ManagedRetrievalSettings,
    context: &'v Value,
}

/// Builds the request of one query.
///
/// # Errors
/// Names of required parameters that the conversation does not provide: no request is made then.
pub(super) fn prepare(
    settings: &ManagedRetrievalSettings,
    query: &str,
    context: &Value,
) -> Result<Prepared, Vec<String>> {
    let missing: Vec<String> = settings.missing(context).into_iter().map(str::to_owned).collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let values = Values { query, settings, context };
    let template = settings.prompt_rephrasing.as_ref().map(|rephrasing| rephrasing.template.as_str());
    // Optional values that are unknown are left out of a question.
    let asked = template.map_or_else(|| query.to_owned(), |template| values.text(template, &mut BTreeSet::new()));
    let mut unknown = BTreeSet::new();
    let filter = settings.filter_expression_template.as_ref().map(|filter| values.filled(filter, &mut unknown));
    let applied = filter.as_ref().map(|_| unknown.is_empty());
    let audit_metadata = match &settings.audit_metadata {
        Some(audit) if audit.enabled => audit.fields.iter().filter_map(|field| values.audited(field)).collect(),
        _ => BTreeMap::new(),
    };
    let request = AskRequest {
        query: asked,
        top_k: settings.top_k,
        filter_expression: filter.filter(|_| unknown.is_empty()),
        audit_metadata,
    };
    let missing_filter_parameters = unknown.into_iter().collect();
    Ok(Prepared { request, filter_applied: applied, missing_filter_parameters })
}

impl Values<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        if name == QUERY {
            return Some(Value::from(self.query));
        }
        ManagedRetrievalSettings::value_of(self.settings.parameter(name)?, self.context).cloned()
    }

    /// Fills in a template; adds the names of unknown values to `unknown`.
    fn text(&self, template: &str, unknown: &mut BTreeSet<String>) -> String {
        let mut filled = String::new();
        for piece in braced(template) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Placeholder(placeholder) => match self.value(placeholder.inside) {
                    Some(Value::String(text)) => filled.push_str(&text),
                    Some(other) => filled.push_str(&other.to_string()),
                    None => _ = unknown.insert(placeholder.inside.to_owned()),
                },
                Piece::Open { .. } => {}
            }
        }
        filled
    }

    /// Fills in a filter: a text that is a single placeholder takes the value with its type.
    fn filled(&self, template: &Value, unknown: &mut BTreeSet<String>) -> Value {
        match template {
            Value::String(text) => match braced(text)[..] {
                [Piece::Placeholder(placeholder)] => self.value(placeholder.inside).unwrap_or_else(|| {
                    unknown.insert(placeholder.inside.to_owned());
                    Value::Null
                }),
                _ => Value::String(self.text(text, unknown)),
            },
            Value::Array(items) => items.iter().map(|item| self.filled(item, unknown)).collect(),
            Value::Object(entries) => {
                entries.iter().map(|(name, item)| (name.clone(), self.filled(item, unknown))).collect()
            }
            other => other.clone(),
        }
    }

    /// A field of the audit log; `None` if a value in it is unknown.
    fn audited(&self, (name, template): (&String, &String)) -> Option<(String, String)> {
        let mut unknown = BTreeSet::new();
        let text = self.text(template, &mut unknown);
        unknown.is_empty().then(|| (name.clone(), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn settings() -> ManagedRetrievalSettings {
        serde_json::from_value(json!({
            "template_parameters": [
                {"name": "country", "from": "user.country", "required": true},
                {"name": "year", "type": "integer"},
                {"name": "role"}],
            "prompt_rephrasing": {"template": "For {country}{role}: {query}"},
            "filter_expression_template": {"field": {"and": [{"label": "{country}"}, {"year": "{year}"}]}},
            "audit_metadata": {"fields": {"environment": "production", "who": "{role} in {country}", "asked": "{query}"}}
        }))
        .expect("reads")
    }

    #[test]
    fn templates_are_filled_from_the_context_and_a_value_alone_keeps_its_type() {
        let context = json!({"user": {"country": "Norway"}, "year": 2026, "role": " growers"});
        let prepared = prepare(&settings(), "why?", &context).expect("prepared");
        assert_eq!(prepared.request.query, "For Norway growers: why?");
        let filter = json!({"field": {"and": [{"label": "Norway"}, {"year": 2026}]}});
        assert_eq!(prepared.request.filter_expression, Some(filter));
        assert_eq!((prepared.filter_applied, prepared.missing_filter_parameters.len()), (Some(true), 0));
        assert_eq!(prepared.request.audit_metadata["who"], " growers in Norway");
        assert_eq!(prepared.request.audit_metadata["asked"], "why?");
    }

    #[test]
    fn a_required_parameter_that_is_missing_or_of_another_type_asks_nothing() {
        for context in [json!({}), json!({"user": {"country": 7}}), json!({"user": {"country": ""}}), Value::Null] {
            assert_eq!(prepare(&settings(), "why?", &context), Err(vec!["country".to_owned()]), "{context}");
        }
    }

    #[test]
    fn a_filter_that_lacks_a_value_is_not_sent_and_says_which() {
        let prepared = prepare(&settings(), "why?", &json!({"user": {"country": "Norway"}})).expect("prepared");
        assert_eq!((prepared.filter_applied, prepared.request.filter_expression), (Some(false), None));
        assert_eq!(prepared.missing_filter_parameters, ["year"]);
        assert_eq!(prepared.request.query, "For Norway: why?");
        let audited: Vec<&str> = prepared.request.audit_metadata.keys().map(String::as_str).collect();
        assert_eq!(audited, ["asked", "environment"], "a field that lacks a value is left out");
    }

    #[test]
    fn without_templates_the_query_goes_as_it_is_and_audit_data_can_be_switched_off() {
        let plain = ManagedRetrievalSettings::default();
        let prepared = prepare(&plain, "why {country}?", &Value::Null).expect("prepared");
        assert_eq!(prepared.request.query, "why {country}?");
        assert_eq!((prepared.request.top_k, prepared.filter_applied), (5, None));
        let mut off = settings();
        off.audit_metadata.as_mut().expect("declared").enabled = false;
        let prepared = prepare(&off, "why?", &json!({"user": {"country": "Norway"}})).expect("prepared");
        assert!(prepared.request.audit_metadata.is_empty());
    }

    proptest! {
        #[test]
        fn what_a_value_holds_is_never_taken_for_a_placeholder(query in ".{0,30}", country in "[a-z{}]{1,20}") {
            let context = json!({"user": {"country": country}});
            let asked = prepare(&settings(), &query, &context).map(|prepared| prepared.request.query);
            prop_assert_eq!(asked, Ok(format!("For {country}: {query}")));
        }
    }
}
