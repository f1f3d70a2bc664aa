//! The texts of a flow: files in its folder. A scenario or variant may replace any of them by name.
//!
//! | kind | what it is | may use |
//! |---|---|---|
//! | fixed | a template that is filled in once per variant: a system prompt | `external`, and every plain text by its
//! name |
//! | plain | not a template: the description of the tool of that name, or a part of a fixed text | |
//! | template | filled in whenever it is used: feedback to the model | the variables that it declares |
//!
//! A text may have required sections: lines `## NAME`, each followed by text. A text that lacks one is an error.
//!
//! An unknown variable is an error, found when the prompts are resolved, before anything runs.

use super::history::digest;
use super::template::{Template, TemplateError, Value};
use super::{Flow, Services};
use crate::provider::chat::{Role, ToolDefinition};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a text is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// A template that is filled in once per variant.
    Fixed,
    /// Not a template.
    Plain,
    /// A template that is filled in with these variables whenever it is used.
    Template(&'static [&'static str]),
}

/// One text of a flow, as shipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptText {
    /// The name by which scenarios replace it.
    pub name: &'static str,
    /// The shipped text.
    pub text: &'static str,
    /// How it is used.
    pub kind: PromptKind,
    /// The sections that it must have, in any order.
    pub sections: &'static [&'static str],
}

impl PromptText {
    /// Sets the sections that the text must have, even if replaced.
    #[must_use]
    pub const fn with_sections(self, sections: &'static [&'static str]) -> Self {
        Self { sections, ..self }
    }

    /// A template that is filled in once per variant.
    pub const fn fixed(name: &'static str, text: &'static str) -> Self {
        Self { name, text, kind: PromptKind::Fixed, sections: &[] }
    }

    /// A text that is not a template.
    pub const fn plain(name: &'static str, text: &'static str) -> Self {
        Self { name, text, kind: PromptKind::Plain, sections: &[] }
    }

    /// A template that is filled in with `variables` whenever it is used.
    pub const fn template(name: &'static str, text: &'static str, variables: &'static [&'static str]) -> Self {
        Self { name, text, kind: PromptKind::Template(variables), sections: &[] }
    }
}

/// A prompt that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("prompt `{name}`: {reason}")]
pub struct PromptError {
    /// Its name.
    pub name: String,
    /// Reason.
    pub reason: String,
}

/// A fixed text, filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedText {
    pub text: String,
    /// Its digest as a system message, as traces show it.
    pub digest: String,
}

/// All texts of one variant, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    fixed: BTreeMap<&'static str, FixedText>,
    plain: BTreeMap<&'static str, String>,
    templates: BTreeMap<&'static str, Template>,
    tools: Arc<[ToolDefinition]>,
}

impl Prompts {
    /// The fixed texts, filled in.
    pub(crate) fn fixed_texts(&self) -> impl Iterator<Item = &FixedText> {
        self.fixed.values()
    }

    /// Resolves the texts of `flow`, with `overrides` replacing those that they name, and the tools that it offers with
    /// `services`.
    ///
    /// # Errors
    /// On an unknown name, a text that is not a valid template, or a template that uses an unknown variable.
    pub fn resolve(
        flow: &dyn Flow,
        overrides: &BTreeMap<String, String>,
        services: Services,
    ) -> Result<Self, PromptError> {
        let known = flow.description().prompts;
        if let Some(name) = overrides.keys().find(|name| !known.iter().any(|prompt| prompt.name == **name)) {
            let names: Vec<&str> = known.iter().map(|prompt| prompt.name).collect();
            let reason = format!("flow `{}` has no such prompt; known: {}", flow.description().name, names.join(", "));
            return Err(PromptError { name: name.clone(), reason });
        }
        let text = |prompt: &PromptText| overrides.get(prompt.name).map_or(prompt.text, String::as_str).to_owned();
        let texts: Vec<(&PromptText, String)> = known.iter().map(|prompt| (prompt, text(prompt))).collect();
        let plain = texts.iter().filter(|(prompt, _)| prompt.kind == PromptKind::Plain);
        let mut values: Vec<(&str, Value<'_>)> =
            plain.map(|(prompt, text)| (prompt.name, Value::Text(text.trim()))).collect();
        values.push(("external", Value::Flag(services.search)));
        let may_use: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        let parsed = |name: &str, text: &str, known: &[&str]| {
            let refused = |reason: TemplateError| PromptError { name: name.to_owned(), reason: reason.to_string() };
            Template::parse(text, known).map_err(refused)
        };
        let mut prompts =
            Self { fixed: BTreeMap::new(), plain: BTreeMap::new(), templates: BTreeMap::new(), tools: Arc::new([]) };
        for (prompt, text) in &texts {
            if let Some(lacking) = prompt.sections.iter().find(|section| !has_section(text, section)) {
                let reason =
                    format!("the section `## {lacking}` is missing or empty; it needs: {}", prompt.sections.join(", "));
                return Err(PromptError { name: prompt.name.to_owned(), reason });
            }
            match prompt.kind {
                PromptKind::Plain => {
                    prompts.plain.insert(prompt.name, text.trim().to_owned());
                }
                PromptKind::Fixed => {
                    let text = parsed(prompt.name, text, &may_use)?.fill(&values);
                    let digest = digest(Role::System, &text);
                    prompts.fixed.insert(prompt.name, FixedText { text, digest });
                }
                PromptKind::Template(variables) => {
                    prompts.templates.insert(prompt.name, parsed(prompt.name, text, variables)?);
                }
            }
        }
        let offered = flow.description().tools.iter().filter(|tool| (tool.offered)(services));
        let described = |name: &str| texts.iter().find(|(prompt, _)| prompt.name == name).map_or("", |(_, text)| text);
        prompts.tools = offered.map(|tool| tool.definition(described(tool.name))).collect();
        Ok(prompts)
    }

    /// A fixed text of the flow; `None` if it is not declared.
    pub fn fixed(&self, name: &str) -> Option<&FixedText> {
        self.fixed.get(name)
    }

    /// A plain text of the flow; `None` if it is not declared.
    pub fn plain(&self, name: &str) -> Option<&str> {
        self.plain.get(name).map(String::as_str)
    }

    /// The tools offered.
    pub fn tools(&self) -> &Arc<[ToolDefinition]> {
        &self.tools
    }

    /// Whether the tool is offered.
    pub fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// A template of the flow, filled in; `None` if it is not declared.
    pub fn fill(&self, name: &str, values: &[(&str, Value<'_>)]) -> Option<String> {
        Some(self.templates.get(name)?.fill(values))
    }
}

/// Whether a text has a non-empty section of that name.
fn has_section(text: &str, name: &str) -> bool {
    let mut lines = text.lines().skip_while(|line| line.strip_prefix("## ").map(str::trim) != Some(name));
    lines.next().is_some() && lines.take_while(|line| !line.starts_with("## ")).any(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FLOWS;

    const BOTH: [Services; 2] = [Services { search: false }, Services { search: true }];

    #[test]
    fn the_shipped_prompts_of_every_flow_resolve_and_nothing_is_left_unfilled() {
        for (folder, flow) in FLOWS {
            for services in BOTH {
                let prompts = Prompts::resolve(*flow, &BTreeMap::new(), services).expect(folder);
                for (name, fixed) in &prompts.fixed {
                    assert!(!fixed.text.is_empty() && !fixed.text.contains("{{"), "{folder}: {name}");
                    assert_eq!(fixed.digest, digest(Role::System, &fixed.text));
                }
                assert!(prompts.tools().iter().all(|tool| !tool.description.is_empty()), "{folder}");
            }
        }
    }

    #[test]
    fn an_unknown_prompt_is_named_with_those_that_the_flow_has() {
        for (folder, flow) in FLOWS {
            let overrides = BTreeMap::from([("sistem".to_owned(), String::new())]);
            let error = Prompts::resolve(*flow, &overrides, Services::default()).expect_err("is refused");
            assert!(
                error.reason.contains(flow.description().name)
                    && flow.description().prompts.iter().all(|prompt| error.reason.contains(prompt.name)),
                "{folder}: {error}"
            );
        }
    }

    #[test]
    fn a_required_section_that_is_missing_or_empty_is_named_and_every_shipped_prompt_has_its_own() {
        assert!(has_section("## Role\n\nYou help.\n## Tools\nNone.", "Role"));
        for text in ["", "# Role\nx", "## Roles\nx", "## Role", "## Role\n \n## Tools\nx"] {
            assert!(!has_section(text, "Role"), "{text}");
        }
        let mut sectioned = 0;
        for (folder, flow) in FLOWS {
            for prompt in flow.description().prompts.iter().filter(|prompt| !prompt.sections.is_empty()) {
                sectioned += 1;
                for section in prompt.sections {
                    let without = prompt.text.replace(&format!("## {section}\n"), "");
                    let overrides = BTreeMap::from([(prompt.name.to_owned(), without)]);
                    let error = Prompts::resolve(*flow, &overrides, Services::default()).expect_err("is refused");
                    assert!(error.reason.contains(&format!("## {section}")), "{folder}: {error}");
                }
            }
        }
        assert!(sectioned > 0, "some flow has sectioned prompts");
    }

    #[test]
    fn every_shipped_template_uses_only_its_variables() {
        for (folder, flow) in FLOWS {
            for prompt in flow.description().prompts {
                let PromptKind::Template(variables) = prompt.kind else { continue };
                Template::parse(prompt.text, variables).expect(folder);
            }
        }
    }

    #[test]
    fn a_template_with_a_variable_that_is_never_given_is_found_before_anything_runs() {
        for (folder, flow) in FLOWS {
            for prompt in flow.description().prompts.iter().filter(|prompt| prompt.kind != PromptKind::Plain) {
                let overrides = BTreeMap::from([(prompt.name.to_owned(), "{{ toll }}".to_owned())]);
                let error = Prompts::resolve(*flow, &overrides, Services::default()).expect_err("is refused");
                assert_eq!(error.name, prompt.name, "{folder}");
            }
        }
    }
}
