//! Placeholders in a prompt: `{{ name }}`, and `{% if name %}` or `{% if not name %}` with `{% else %}` and `{% endif %}`.
//!
//! | syntax | result |
//! |---|---|
//! | `{{ name }}` | the value of that name, unchanged: placeholders in it are not filled in |
//! | `{% if name %}…{% else %}…{% endif %}` | one of the two texts: a value is true unless it is empty or false |
//! | `{# … #}` | nothing |
//! | a `-` inside, `{%- … -%}` | the same, without the white space on that side |
//!
//! There are no loops, calls or variables, so a text grows only by the values of its placeholders. A text is parsed
//! once, with the names that it may use: an unknown name is an error anywhere in the text. The result is the same as
//! that of Jinja. A plan stores the text of a template as it is written, so that parsing it again gives the same template.

use crate::platform::placeholders::{COMMENT, CONDITION, Piece, Placeholder, VALUE, pieces};

/// Maximum number of placeholders, conditions and comments in one text.
const MOST_PLACEHOLDERS: usize = 100;

/// Value of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'v> {
    Text(&'v str),
    /// A condition.
    Flag(bool),
}

/// A parsed text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(String),
    Choice { name: String, negated: bool, then: Vec<Part>, otherwise: Vec<Part> },
}

/// Reason why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// A placeholder that is not closed.
    #[error("line {line}: `{open}` without `{close}`")]
    Open { line: usize, open: &'static str, close: &'static str },
    /// An invalid placeholder.
    #[error("line {line}: `{shown}`: a prompt may hold `{{{{ name }}}}` and `{{% if name %}}` only")]
    Unknown { line: usize, shown: String },
    /// An unknown name.
    #[error("line {line}: there is no `{name}` here; known: {known}")]
    Name { line: usize, name: String, known: String },
    /// `else` or `endif` without an open condition, or a second `else`.
    #[error("line {line}: `{word}` without `if`")]
    NoCondition { line: usize, word: &'static str },
    /// A condition that is not closed.
    #[error("line {line}: `if {name}` without `endif`")]
    NoEnd { line: usize, name: String },
    /// Too many placeholders.
    #[error("it has more than {MOST_PLACEHOLDERS} placeholders")]
    TooMany,
}

/// An open condition.
struct Begun {
    line: usize,
    name: String,
    negated: bool,
    then: Option<Vec<Part>>,
    before: Vec<Part>,
}

impl Template {
    /// Parses a text that may use the names `known`.
    ///
    /// # Errors
    /// On an invalid or unclosed placeholder, or an unknown name.
    pub(crate) fn parse(source: &str, known: &[&str]) -> Result<Self, TemplateError> {
        let (mut parts, mut begun) = (Vec::new(), Vec::<Begun>::new());
        let (mut count, mut trims) = (0, false);
        let mut pieces = pieces(source, &[VALUE, CONDITION, COMMENT]).into_iter().peekable();
        while let Some(piece) = pieces.next() {
            let (place, found) = match piece {
                Piece::Text(text) => {
                    let text = if trims { text.trim_start() } else { text };
                    let cut = pieces.peek().and_then(|next| next.name()).is_some_and(|next| next.starts_with('-'));
                    let text = if cut { text.trim_end() } else { text };
                    if !text.is_empty() {
                        parts.push(Part::Text(text.to_owned()));
                    }
                    continue;
                }
                Piece::Open { signs, at } => (at, Err(signs)),
                Piece::Placeholder(placeholder) => (placeholder.at, Ok(placeholder)),
            };
            let line = 1 + source[..place].matches('\n').count();
            count += 1;
            if count > MOST_PLACEHOLDERS {
                return Err(TemplateError::TooMany);
            }
            let Placeholder { signs, inside, written, .. } =
                found.map_err(|(open, close)| TemplateError::Open { line, open, close })?;
            trims = inside.ends_with('-');
            let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
            let words: Vec<&str> = inside.strip_suffix(['-', '+']).unwrap_or(inside).split_whitespace().collect();
            let name = |name: &str| {
                let there = known.contains(&name);
                let (known, name) = (known.join(", "), name.chars().take(40).collect());
                if there { Ok(name) } else { Err(TemplateError::Name { line, name, known }) }
            };
            match (signs, words.as_slice()) {
                (COMMENT, _) => {}
                (VALUE, [one]) if is_name(one) => parts.push(Part::Value(name(one)?)),
                (CONDITION, ["if", one] | ["if", "not", one]) if is_name(one) => {
                    let (name, negated, before) = (name(one)?, words.len() == 3, std::mem::take(&mut parts));
                    begun.push(Begun { line, name, negated, then: None, before });
                }
                (CONDITION, ["else"]) => match begun.last_mut() {
                    Some(Begun { then: then @ None, .. }) => *then = Some(std::mem::take(&mut parts)),
                    _ => return Err(TemplateError::NoCondition { line, word: "else" }),
                },
                (CONDITION, ["endif"]) => {
                    let word = "endif";
                    let Begun { name, negated, then, before, .. } =
                        begun.pop().ok_or(TemplateError::NoCondition { line, word })?;
                    let last = std::mem::replace(&mut parts, before);
                    let (then, otherwise) =
                        then.map_or_else(|| (last.clone(), Vec::new()), |then| (then, last.clone()));
                    parts.push(Part::Choice { name, negated, then, otherwise });
                }
                _ => {
                    let shown = written.chars().take(50).collect();
                    return Err(TemplateError::Unknown { line, shown });
                }
            }
        }
        match begun.pop() {
            Some(Begun { line, name, .. }) => Err(TemplateError::NoEnd { line, name }),
            None => Ok(Self(parts)),
        }
    }

    /// Fills in these values and trims the text. A name without a value is left out.
    pub(crate) fn fill(&self, values: &[(&str, Value<'_>)]) -> String {
        let mut text = String::new();
        write(&self.0, values, &mut text);
        text.trim().to_owned()
    }
}

fn write(parts: &[Part], values: &[(&str, Value<'_>)], text: &mut String) {
    let value = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    for part in parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Value(name) => match value(name) {
                Some(Value::Text(words)) => text.push_str(words),
                Some(Value::Flag(so)) => text.push_str(if so { "True" } else { "False" }),
                None => {}
            },
            Part::Choice { name, negated, then, otherwise } => {
                let holds = match value(name) {
                    Some(Value::Text(words)) => !words.is_empty(),
                    Some(Value::Flag(so)) => so,
                    None => false,
                };
                write(if holds == *negated { otherwise } else { then }, values, text);
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::VariantSettings;
    use proptest::prelude::*;

    const KNOWN: [&str; 3] = ["tool", "external", "empty"];

    fn refused(source: &str) -> String {
        Template::parse(source, &KNOWN).expect_err(source).to_string()
    }

    #[test]
    fn a_mistake_is_named_with_its_line_also_where_it_would_never_be_filled_in() {
        assert_eq!(refused("a\n{{ toll }}"), "line 2: there is no `toll` here; known: tool, external, empty");
        assert!(
            refused("{% if external %}{% else %}\n{{ toll }}{% endif %}").starts_with("line 2: there is no `toll`")
        );
        assert_eq!(refused("a\n\n{{ tool"), "line 3: `{{` without `}}`");
        assert_eq!(refused("\n{% if tool %}"), "line 2: `if tool` without `endif`");
        assert_eq!(refused("{% endif %}"), "line 1: `endif` without `if`");
        assert_eq!(refused("{% if tool %}{% else %}{% else %}{% endif %}"), "line 1: `else` without `if`");
        assert_eq!(refused(&"{{ tool }}".repeat(101)), "it has more than 100 placeholders");
    }

    #[test]
    fn nothing_but_names_and_conditions_on_them_is_a_placeholder() {
        for source in [
            "{% set x = 'ha' %}{% set x = x ~ x %}{{ x }}",
            "{% for n in range(9000) %}ha{% endfor %}",
            "{{ tool * 1000000000 }}",
            "{{ tool | replace('', tool) }}",
            "{{ tool.__class__ }}",
            "{{ tool[0] }}",
            "{{ tool() }}",
            "{{ 'text' }}",
            "{{ }}",
            "{% macro a() %}{{ a() }}{% endmacro %}",
            "{% include '/etc/passwd' %}",
            "{% import 'x' as y %}",
            "{% extends 'x' %}",
            "{% raw %}{{ tool }}{% endraw %}",
            "{% if tool == 'a' %}{% endif %}",
            "{% if tool and external %}{% endif %}",
            "{% elif tool %}",
            "{% %}",
        ] {
            assert!(refused(source).contains("may hold `{{ name }}`"), "{source}: {}", refused(source));
        }
    }

    #[test]
    fn what_a_value_holds_is_never_filled_in_again_and_a_text_grows_by_its_values_alone() {
        let value = "{{ tool }}{% if external %}";
        let template = Template::parse("<{{ tool }}>", &KNOWN).expect("read");
        assert_eq!(template.fill(&[("tool", Value::Text(value))]), format!("<{value}>"));
        let nested = "{% if tool %}".repeat(40) + &"{{ tool }}".repeat(20) + &"{% endif %}".repeat(40);
        let long = "x".repeat(1000);
        let filled = Template::parse(&nested, &KNOWN).expect("read").fill(&[("tool", Value::Text(&long))]);
        assert_eq!(filled.len(), 20 * 1000);
    }

    /// A text of the elements of templates, valid or not.
    fn source() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a", "{", "}", " \n ", "\n", "  b  ", "{{ tool }}", "{{- tool -}}", "{{ external }}", "{{empty}}",
            "{{tool-}}", "{% if external %}", "{%- if not empty -%}", "{% if tool -%}", "{%- else %}", "{% else %}",
            "{% endif %}", "{%- endif -%}", "{# a {{ b }} #}", "{#- c -#}", "é",
        ]);
        prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_template_gives_what_jinja_gives_for_it(source in source(), external: bool, tool in "[a-z<&]{0,3}") {
            if let Ok(template) = Template::parse(&source, &KNOWN) {
                let values = [("tool", Value::Text(&tool)), ("external", Value::Flag(external)), ("empty", Value::Text(""))];
                let context = minijinja::context! { tool => tool.as_str(), external => external, empty => "" };
                let jinja = minijinja::Environment::new().render_named_str("prompt", &source, context);
                let jinja = jinja.map_err(|why| TestCaseError::fail(format!("{source:?}: {why}")))?;
                prop_assert_eq!(template.fill(&values), jinja.trim(), "{:?}", source);
            }
        }

        #[test]
        fn a_template_that_a_plan_stores_reads_back_as_it_was(source in source()) {
            if let Ok(template) = Template::parse(&source, &KNOWN) {
                let prompts = [("synthesis".to_owned(), source.clone())].into();
                let stored = serde_json::to_string_pretty(&VariantSettings { prompts, ..VariantSettings::default() });
                let read: VariantSettings = serde_json::from_str(&stored.expect("JSON")).expect("settings");
                prop_assert_eq!(Template::parse(&read.prompts["synthesis"], &KNOWN), Ok(template), "{:?}", source);
            }
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(source in "[{}%#a\\-+ \n]{0,60}|\\PC{0,40}") {
            let _ = Template::parse(&source, &KNOWN).map(|template| template.fill(&[]));
        }
    }
}
