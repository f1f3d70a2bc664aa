//! The tools: their arguments, and the words of the subcommand that each starts.

use crate::scenario::diagnostic::did_you_mean;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::{Component, Path};

/// Said to the agent once.
pub(super) const INSTRUCTIONS: &str = "\
Tests an agent that retrieves documents and calls tools. `check` finds mistakes in the project's files, `run` replays its recordings \
and says what fails and what to do, `show` prints one trial, `compare` two runs or the variants of one. `record` asks models and costs \
money: it needs the consent of a person. Replays cost nothing.";
/// Why a call cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArgumentError {
    /// An unknown tool.
    #[error("no tool is called `{name}`: {hint}")]
    Tool { name: String, hint: String },
    /// An unknown argument.
    #[error("{tool} has no argument `{key}`: {hint}")]
    Argument { tool: String, key: String, hint: String },
    /// A value of another type, or none.
    #[error(transparent)]
    Value(#[from] serde_path_to_error::Error<serde_json::Error>),
    /// No amount of money.
    #[error("max_cost: write US dollars above 0")]
    MaxCost,
    /// A path to somewhere else.
    #[error("`{0}` is outside of the project: write a path relative to its folder, without `..`")]
    Outside(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Check,
    Run,
    Show,
    Compare,
    Record,
}

/// A call that can be carried out.
#[derive(Debug)]
pub(super) struct Call {
    pub tool: Tool,
    /// The subcommand and its arguments.
    pub words: Vec<OsString>,
    /// Most US dollars that a recording may spend.
    pub max_cost: Option<f64>,
}

const ALL: [(Tool, &str, &str); 5] = [
    (
        Tool::Check,
        "check",
        "Check scenarios, criteria and the project file: every mistake with its line, and every trial without a recording. Sends nothing.",
    ),
    (
        Tool::Run,
        "run",
        "Replay the recordings, evaluate the criteria and report: what fails, why, and the command that records again what a change needs. Sends nothing to providers and costs nothing.",
    ),
    (
        Tool::Show,
        "show",
        "Print one trial of a run: its verdict, failed expectations, and the conversation with model calls, tools and times.",
    ),
    (
        Tool::Compare,
        "compare",
        "Compare two runs, or the variants of one, case by case: which got better or worse, and whether the difference is more than chance.",
    ),
    (
        Tool::Record,
        "record",
        "Record the selected trials again from the live services, which costs money, and replay them. Refused unless a person started this server with --max-cost USD; stops when that is spent.",
    ),
];

/// Arguments of `check`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Check {
    /// Scenario files or folders, relative to the current folder; by default the project's.
    #[serde(default)]
    paths: Vec<String>,
}

/// Which trials.
#[derive(Debug, Deserialize, JsonSchema)]
struct Which {
    /// Scenario files or folders, relative to the current folder; by default the project's.
    #[serde(default)]
    paths: Vec<String>,
    /// Only cases or trials that match one of these globs: `refund-*`, `refunds/*`, `*/tool-rag.base.1`.
    #[serde(default)]
    only: Vec<String>,
    /// Not the cases or trials that match one of these globs.
    #[serde(default)]
    exclude: Vec<String>,
    /// Only cases with one of these tags.
    #[serde(default)]
    tag: Vec<String>,
    /// Only this flow.
    flow: Option<String>,
    /// Only this variant.
    variant: Option<String>,
}

/// Arguments of `record`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Record {
    #[serde(flatten)]
    which: Which,
    /// Most US dollars that this recording may spend; by default all that the server has left.
    max_cost: Option<f64>,
}

/// Arguments of `show`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Show {
    /// A trial of the newest run, `scenario/case/flow.variant.n`, or behind the folder of another run.
    trial: String,
    /// Print the whole text of every passage that its searches found, too.
    #[serde(default)]
    passages: bool,
}

/// Arguments of `compare`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Compare {
    /// The older side: a run folder such as `reports/latest`, `RUN@variant`, or a baseline file.
    a: Option<String>,
    /// The newer side; without it, the variants of `a` are compared with each other.
    b: Option<String>,
    /// Compare only these variants of `a` with each other; two or more.
    #[serde(default)]
    variants: Vec<String>,
    /// Compare the newest run with the run of the same scenarios before it.
    #[serde(default)]
    previous: bool,
}

impl Tool {
    fn schema(self) -> Value {
        let schema = match self {
            Self::Check => schema_for!(Check),
            Self::Run => schema_for!(Which),
            Self::Show => schema_for!(Show),
            Self::Compare => schema_for!(Compare),
            Self::Record => schema_for!(Record),
        };
        let mut schema = schema.to_value();
        if let Some(members) = schema.as_object_mut() {
            for superfluous in ["$schema", "title", "description"] {
                members.remove(superfluous);
            }
            members.insert("additionalProperties".into(), false.into());
        }
        schema
    }
}

/// The tools as `tools/list` gives them.
pub(super) fn list(may_record: bool) -> Vec<Value> {
    let output = json!({
        "type": "object",
        "properties": {
            "exit_code": {"type": ["integer", "null"], "description": "Exit code of the subcommand; null if a signal ended it."},
            "meaning": {"type": "string", "description": "What the exit code means."},
            "output": {"type": "string", "description": "The result as the subcommand prints it."},
            "notes": {"type": "string", "description": "Remarks and errors."},
            "spent_usd": {"type": "number", "description": "What a recording spent, in US dollars."},
            "left_usd": {"type": "number", "description": "What recordings of this server may still spend."},
        },
        "required": ["exit_code", "meaning", "output", "notes"],
    });
    let one = |&(tool, name, about): &(Tool, &str, &str)| {
        let refused = if tool == Tool::Record && !may_record { " This server was started without it." } else { "" };
        let records = tool == Tool::Record;
        json!({
            "name": name,
            "description": format!("{about}{refused}"),
            "inputSchema": tool.schema(),
            "outputSchema": output,
            "annotations": {"readOnlyHint": matches!(tool, Tool::Check | Tool::Show), "destructiveHint": records, "openWorldHint": records},
        })
    };
    ALL.iter().map(one).collect()
}

/// Reads a call.
///
/// # Errors
/// Why it cannot be carried out, in words for the agent.
pub(super) fn read(name: &str, arguments: &Value) -> Result<Call, ArgumentError> {
    let Some((tool, ..)) = ALL.iter().find(|(_, known, _)| *known == name) else {
        let hint = did_you_mean(name, ALL.iter().map(|(_, known, _)| *known));
        return Err(ArgumentError::Tool { name: name.to_owned(), hint });
    };
    let none = Map::new();
    let schema = tool.schema();
    let known = schema["properties"].as_object().unwrap_or(&none);
    for key in arguments.as_object().unwrap_or(&none).keys() {
        if !known.contains_key(key) {
            let hint = did_you_mean(key, known.keys().map(String::as_str));
            return Err(ArgumentError::Argument { tool: name.to_owned(), key: key.clone(), hint });
        }
    }
    within(arguments)?;
    let (mut words, mut max_cost) = (vec![OsString::from(if *tool == Tool::Record { "run" } else { name })], None);
    let mut places = Vec::new();
    match tool {
        Tool::Check => places = parsed::<Check>(arguments)?.paths,
        Tool::Run => places = which(parsed(arguments)?, &mut words),
        Tool::Record => {
            let Record { which: chosen, max_cost: most } = parsed(arguments)?;
            if most.is_some_and(|most| !most.is_finite() || most <= 0.0) {
                return Err(ArgumentError::MaxCost);
            }
            max_cost = most;
            places = which(chosen, &mut words);
        }
        Tool::Show => {
            let Show { trial, passages } = parsed(arguments)?;
            words.extend(passages.then(|| "--passages".into()));
            places.push(trial);
        }
        Tool::Compare => {
            let Compare { a, b, variants, previous } = parsed(arguments)?;
            words.extend(previous.then(|| "--previous".into()));
            words.extend((!variants.is_empty()).then(|| format!("--variants={}", variants.join(",")).into()));
            places.extend(a.into_iter().chain(b));
        }
    }
    words.extend((!places.is_empty()).then(|| "--".into()));
    words.extend(places.into_iter().map(OsString::from));
    Ok(Call { tool: *tool, words, max_cost })
}

fn parsed<T: DeserializeOwned>(arguments: &Value) -> Result<T, ArgumentError> {
    Ok(serde_path_to_error::deserialize(arguments)?)
}

/// Adds the options of a selection, and returns its paths.
fn which(chosen: Which, words: &mut Vec<OsString>) -> Vec<String> {
    let Which { paths, only, exclude, tag, flow, variant } = chosen;
    let several = [("only", only), ("exclude", exclude), ("tag", tag)];
    let one = [("flow", flow), ("variant", variant)].map(|(name, value)| (name, value.into_iter().collect()));
    for (name, values) in several.into_iter().chain(one) {
        words.extend(values.into_iter().map(|value| format!("--{name}={value}").into()));
    }
    paths
}

/// Refuses texts that name something outside the project: a path on the command line is a person's consent to read it.
fn within(arguments: &Value) -> Result<(), ArgumentError> {
    match arguments {
        Value::Array(all) => all.iter().try_for_each(within),
        Value::Object(members) => members.values().try_for_each(within),
        Value::String(text) => {
            let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
            if text.contains('\0') || !Path::new(text).components().all(inside) {
                return Err(ArgumentError::Outside(text.escape_default().to_string()));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, arguments: Value) -> Vec<String> {
        let call = read(name, &arguments).unwrap_or_else(|why| panic!("{why}"));
        call.words.into_iter().map(|word| word.into_string().expect("text")).collect()
    }

    #[test]
    fn a_call_becomes_the_words_of_its_subcommand_and_no_text_becomes_an_option() {
        assert_eq!(words("check", json!({})), ["check"]);
        let chosen = json!({"paths": ["scenarios/a.yaml", "--mode=live"], "only": ["refund-*"], "variant": "short"});
        let expected = ["run", "--only=refund-*", "--variant=short", "--", "scenarios/a.yaml", "--mode=live"];
        assert_eq!(words("run", chosen.clone()), expected);
        assert_eq!(words("record", chosen), expected);
        assert_eq!(words("show", json!({"trial": "a/b/c", "passages": true})), ["show", "--passages", "--", "a/b/c"]);
        assert_eq!(words("compare", json!({"previous": true})), ["compare", "--previous"]);
        let variants = json!({"a": "reports/latest", "variants": ["short", "strict"]});
        assert_eq!(words("compare", variants), ["compare", "--variants=short,strict", "--", "reports/latest"]);
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused_with_a_reason() {
        for (name, arguments, why) in [
            ("rum", json!({}), "did you mean `run`?"),
            ("run", json!({"onyl": ["a"]}), "did you mean `only`?"),
            ("run", json!({"only": "a"}), "only: invalid type"),
            ("run", json!({"paths": ["/etc"]}), "outside of the project"),
            ("run", json!({"only": ["../x"]}), "outside of the project"),
            ("show", json!({"trial": "a/../../b"}), "outside of the project"),
            ("show", json!({}), "missing field `trial`"),
            ("record", json!({"max_cost": 0}), "above 0"),
            ("check", json!({"max_cost": 1}), "no argument `max_cost`"),
        ] {
            let refused = read(name, &arguments).expect_err(name).to_string();
            assert!(refused.contains(why), "{name} {arguments}: {refused}");
        }
    }
}
