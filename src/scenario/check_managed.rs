//! Checks the managed retrieval services of a project and reports all mistakes.

use super::check_services::login;
use super::diagnostic::{At, Mistake, did_you_mean};
use super::project::Project;
use crate::platform::placeholders::{Piece, braced};
use crate::settings::{ManagedRetrievalSettings, QUERY};
use serde_json::Value;
use std::collections::BTreeSet;

/// Largest number of passages that a service may use for an answer.
const MOST_PASSAGES: u32 = 200;
/// Largest number of characters in a file name.
const LONGEST_NAME: usize = 100;

/// Every mistake in `managed_retrieval`, which is `at`.
pub(super) fn services(project: &Project, at: At<'_>) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (name, settings) in &project.managed_retrieval {
        let at = at.key(name);
        place(settings, at, &mut mistakes);
        output(settings, at, &mut mistakes);
        parameters(settings, at, &mut mistakes);
        templates(settings, at, &mut mistakes);
    }
    mistakes
}

/// Checks the service's address and request.
fn place(settings: &ManagedRetrievalSettings, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    let mut say = |mistake: Mistake| mistakes.push(mistake);
    let required = [
        ("base_url", &settings.base_url, "the base URL of the service's API"),
        ("kb_id", &settings.kb_id, "the id of the knowledge box"),
        ("token", &settings.token, "the environment variable with the service account's token"),
        ("api_key", &settings.api_key, "the environment variable with the account's id"),
    ];
    for (key, _, what) in required.into_iter().filter(|(_, value, _)| value.trim().is_empty()) {
        let mistake = Mistake::at(at.key(key), "missing-key", format!("the key `{key}` is missing")).on_key();
        say(mistake.help(format!("write {what}")));
    }
    let scheme = ["http://", "https://"].iter().any(|scheme| settings.base_url.starts_with(scheme));
    if !settings.base_url.trim().is_empty() && (!scheme || settings.host().is_empty()) {
        say(Mistake::at(at.key("base_url"), "bad-url", "a base URL begins with `https://` or `http://`"));
    }
    let help = "remove it: `token` and `api_key` name the variables of the keys";
    login(&settings.base_url, at.key("base_url"), help).into_iter().for_each(&mut say);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if !settings.kb_id.chars().all(plain) {
        let message = "an id of letters, digits, `-` and `_`: it becomes part of an address";
        say(Mistake::at(at.key("kb_id"), "bad-value", message));
    }
    let variable =
        |name: &str| name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_');
    for (key, value) in [("token", &settings.token), ("api_key", &settings.api_key)] {
        if !variable(value.trim()) {
            let message = format!("`{key}` is the name of an environment variable, never the secret itself");
            let mistake = Mistake::at(at.key(key), "bad-key", message).without_quote();
            say(mistake.help("for example `token: NUCLIA_TOKEN`; if a real secret stood here, revoke it"));
        }
    }
    if !(1..=MOST_PASSAGES).contains(&settings.top_k) {
        say(Mistake::at(at.key("top_k"), "bad-value", format!("1 to {MOST_PASSAGES} passages")));
    }
    if settings.concurrency == Some(0) {
        let message = "with `concurrency: 0` nothing is ever asked";
        say(Mistake::at(at.key("concurrency"), "bad-value", message));
    }
}

/// Checks how answers are turned into artifacts.
fn output(settings: &ManagedRetrievalSettings, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    let name = &settings.output_filename_base;
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let sound = !name.is_empty() && name.chars().count() <= LONGEST_NAME && name.chars().all(plain);
    let hidden = name.starts_with('.') || name.to_lowercase().ends_with(".md");
    if !sound || hidden {
        let message = format!("a file's name without `.md`: letters, digits, `-`, `_` and `.`, at most {LONGEST_NAME}");
        mistakes.push(Mistake::at(at.key("output_filename_base"), "bad-name", message));
    }
    if settings.artifact_description_query_max_length == 0 {
        let message = "a description with at least one character of the query";
        mistakes.push(Mistake::at(at.key("artifact_description_query_max_length"), "bad-value", message));
    }
}

fn parameters(settings: &ManagedRetrievalSettings, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    let list = at.key("template_parameters");
    let mut seen = BTreeSet::new();
    for (index, parameter) in settings.template_parameters.iter().enumerate() {
        let at = list.index(index);
        let name = parameter.name.as_str();
        if name.is_empty() || name.contains(['{', '}']) || name.contains(char::is_whitespace) {
            let message = "a template parameter needs a name without white space and braces";
            mistakes.push(Mistake::at(at.key("name"), "bad-name", message));
        } else if name == QUERY {
            let message = "`query` is the user's query and cannot be another parameter";
            mistakes.push(Mistake::at(at.key("name"), "bad-name", message));
        } else if !seen.insert(name) {
            mistakes.push(Mistake::at(at.key("name"), "duplicate-name", format!("`{name}` is declared twice")));
        }
        if parameter.from.as_ref().is_some_and(|path| path.split('.').any(|part| part.trim().is_empty())) {
            mistakes.push(Mistake::at(at.key("from"), "bad-value", "names between dots, `user.country` for example"));
        }
        if parameter.default.as_ref().is_some_and(|value| !parameter.kind.fits(value)) {
            let message = format!("the default is no {}", parameter.kind.as_str());
            mistakes.push(Mistake::at(at.key("default"), "bad-value", message));
        }
        if parameter.required && parameter.default.is_some() {
            let message = "a required parameter with a default is never missing";
            let mistake = Mistake::at(at.key("required"), "bad-value", message);
            mistakes.push(mistake.help("leave out `required`, or the default"));
        }
    }
}

fn templates(settings: &ManagedRetrievalSettings, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    if let Some(rephrasing) = &settings.prompt_rephrasing {
        let at = at.key("prompt_rephrasing");
        let at = at.key("template");
        if rephrasing.template.trim().is_empty() {
            mistakes.push(Mistake::at(at, "missing-key", "the key `template` is missing").on_key());
        } else if !braced(&rephrasing.template).into_iter().any(|piece| piece.name() == Some(QUERY)) {
            let message = "the template never says `{query}`: what the user asks would not be asked";
            mistakes.push(Mistake::at(at, "no-query", message));
        }
        unknown(settings, &rephrasing.template, at, mistakes);
    }
    if let Some(filter) = &settings.filter_expression_template {
        let at = at.key("filter_expression_template");
        if filter.as_object().is_none_or(serde_json::Map::is_empty) {
            mistakes.push(Mistake::at(
                at,
                "bad-value",
                "a filter expression is an object that says what is let through",
            ));
        }
        texts(filter, &mut |text| unknown(settings, text, at, mistakes));
    }
    if let Some(audit) = &settings.audit_metadata {
        let at = at.key("audit_metadata");
        let at = at.key("fields");
        if audit.fields.is_empty() {
            mistakes.push(Mistake::at(at, "missing-key", "the key `fields` is missing or empty").on_key());
        }
        for (name, template) in &audit.fields {
            if name.trim().is_empty() {
                mistakes.push(Mistake::at(at.key(name), "bad-name", "a field without a name").on_key());
            }
            unknown(settings, template, at.key(name), mistakes);
        }
    }
}

/// Placeholders without a parameter.
fn unknown(settings: &ManagedRetrievalSettings, template: &str, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    let known = || settings.template_parameters.iter().map(|parameter| parameter.name.as_str()).chain([QUERY]);
    let names = braced(template).into_iter().filter_map(Piece::name);
    for name in names.filter(|name| !known().any(|known| known == *name)) {
        let mistake = Mistake::at(at, "unknown-placeholder", format!("nothing stands behind `{{{name}}}`"));
        let mistake = mistake.label(did_you_mean(name, known()));
        mistakes.push(mistake.help("placeholders are `{query}` and the names of `template_parameters`"));
    }
}

/// Visits every text in a value, except the names of members.
fn texts(value: &Value, seen: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => seen(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, seen)),
        Value::Object(entries) => entries.values().for_each(|item| texts(item, seen)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::diagnostic::diagnose;
    use super::*;

    const SOUND: &str = "managed_retrieval:
  docs:
    base_url: https://europe-1.nuclia.cloud/api/v1
    kb_id: 3f2a-box
    token: NUCLIA_TOKEN
    api_key: NUCLIA_ACCOUNT
    template_parameters: [{name: country, from: user.country, required: true}, {name: year, type: integer}]
    prompt_rephrasing: {template: 'In {country}: {query}'}
    filter_expression_template: {field: {prop: label, labelset: country, label: '{country}'}}
    audit_metadata: {fields: {environment: production, asked: '{query}'}}
";

    fn mistakes(text: &str) -> Vec<(&'static str, String)> {
        let project: Project = crate::platform::yaml::read(text).expect("reads");
        let found = diagnose(services(&project, At::ROOT.key("managed_retrieval")), "ragcheck.yaml", text);
        found.into_iter().map(|one| (one.code, one.message)).collect()
    }

    #[test]
    fn a_sound_declaration_has_no_mistake() {
        assert_eq!(mistakes(SOUND), []);
    }

    #[test]
    fn each_rule_is_broken_by_one_change_and_told_alone() {
        for (from, to, code, words) in [
            ("base_url: https://europe-1.nuclia.cloud/api/v1", "base_url: ''", "missing-key", "base_url"),
            ("https://europe", "ftp://europe", "bad-url", "base URL"),
            ("kb_id: 3f2a-box", "kb_id: ''", "missing-key", "kb_id"),
            ("kb_id: 3f2a-box", "kb_id: ../other", "bad-value", "part of an address"),
            ("token: NUCLIA_TOKEN", "token: ''", "missing-key", "token"),
            ("token: NUCLIA_TOKEN", "token: eyJhbGci.x", "bad-key", "environment variable"),
            ("    api_key: NUCLIA_ACCOUNT\n", "", "missing-key", "api_key"),
            ("token: NUCLIA_TOKEN", "token: NUCLIA_TOKEN\n    top_k: 0", "bad-value", "passages"),
            ("token: NUCLIA_TOKEN", "token: NUCLIA_TOKEN\n    concurrency: 0", "bad-value", "ever asked"),
            ("token: NUCLIA_TOKEN", "token: NUCLIA_TOKEN\n    output_filename_base: ../a", "bad-name", "file's name"),
            ("token: NUCLIA_TOKEN", "token: NUCLIA_TOKEN\n    output_filename_base: a.md", "bad-name", "without `.md`"),
            (
                "token: NUCLIA_TOKEN",
                "token: NUCLIA_TOKEN\n    artifact_description_query_max_length: 0",
                "bad-value",
                "description",
            ),
            ("name: year", "name: query", "bad-name", "user's query"),
            ("name: year", "name: country", "duplicate-name", "twice"),
            ("name: year", "name: 'the year'", "bad-name", "white space"),
            ("type: integer", "type: integer, default: soon", "bad-value", "no integer"),
            ("required: true", "required: true, default: Norway", "bad-value", "never missing"),
            ("user.country", "user..country", "bad-value", "between dots"),
            ("'In {country}: {query}'", "'In {country}'", "no-query", "{query}"),
            ("'In {country}: {query}'", "''", "missing-key", "template"),
            ("'In {country}: {query}'", "'In {contry}: {query}'", "unknown-placeholder", "contry"),
            ("label: '{country}'", "label: '{county}'", "unknown-placeholder", "county"),
            ("{field: {prop: label, labelset: country, label: '{country}'}}", "[]", "bad-value", "filter expression"),
            ("'{query}'}}", "'{qery}'}}", "unknown-placeholder", "qery"),
            ("{fields: {environment: production, asked: '{query}'}}", "{enabled: false}", "missing-key", "fields"),
        ] {
            let text = SOUND.replacen(from, to, 1);
            assert_ne!(text, SOUND, "{from}");
            let found = mistakes(&text);
            let [(found, message)] = &found[..] else { panic!("{to}: {found:?}") };
            assert!(*found == code && message.contains(words), "{to}: {found}: {message}");
        }
    }

    #[test]
    fn every_mistake_of_a_declaration_is_listed() {
        let found = mistakes(
            "managed_retrieval: {docs: {top_k: 0, prompt_rephrasing: {template: '{who}'}, audit_metadata: {}}}",
        );
        let codes: Vec<&str> = found.iter().map(|(code, _)| *code).collect();
        let missing = ["missing-key"; 4];
        for code in missing.into_iter().chain(["bad-value", "no-query", "unknown-placeholder"]) {
            assert!(codes.contains(&code), "{code}: {found:?}");
        }
        assert_eq!(codes.len(), 8, "{found:?}");
    }

    #[test]
    fn a_secret_that_stands_where_its_variable_should_is_not_repeated() {
        let text = SOUND.replacen("token: NUCLIA_TOKEN", "token: eyJhbGciOiJIUzI1NiJ9.planted", 1);
        let project: Project = crate::platform::yaml::read(&text).expect("reads");
        let found = diagnose(services(&project, At::ROOT.key("managed_retrieval")), "ragcheck.yaml", &text);
        assert!(!format!("{found:?}").contains("planted"), "{found:?}");
    }
}
