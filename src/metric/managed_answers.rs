//! Answers of a managed retrieval service, and the artifacts made from them.
//!
//! | metric | units | a unit holds when |
//! |---|---|---|
//! | `marker_placement` | artifacts | without markers it equals the service's text, and markers are exactly where cited words end |
//! | `citation_numbering` | artifacts with sources | each page of a file has one number, the numbers run from 1 without a gap, and the artifact's list has each once, with its link |
//! | `gateway_links` | artifacts with sources | every link leads through the gateway, with only the page after the path |
//! | `artifact_versions` | artifacts | its version is the next of its name in the conversation |
//! | `required_parameters` | calls of flows that declare required parameters | all were given, or nothing was asked |
//! | `artifact_answers` | answers of turns that made an artifact | the answer holds an artifact of that turn |
//!
//! The first metric rebuilds the text from the service's words and positions, by the rules of
//! [`crate::trace::markers`]; the second checks the numbers.

use super::catalogue::Registered;
use super::{Held, Member, Metric, Observation, Seen, TrialView, quote};
use crate::settings::ManagedRetrievalSettings;
use crate::settings::catalogue::Units;
use crate::trace::markers::{MarkerPlaces, marker, with_markers};
use crate::trace::{ManagedAnswer, Role, ToolOutcome};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("marker_placement", |_| ManagedAnswers::Placement.metric())
        .about("Of the artifacts, those that are the service's text with markers where the cited words end.")
        .counted(Units::Unlimited),
    Registered::rate("citation_numbering", |_| ManagedAnswers::Numbering.metric())
        .about(
            "Of the artifacts with sources, those in which each page has one number, from 1 on, and a \
             line of the list.",
        )
        .counted(Units::Unlimited),
    Registered::rate("gateway_links", |_| ManagedAnswers::Links.metric())
        .about(
            "Of the artifacts with sources, those whose links lead through the gateway with the page \
             and nothing else.",
        )
        .counted(Units::Unlimited),
    Registered::rate("artifact_versions", |_| ManagedAnswers::Versions.metric())
        .about("Of the artifacts, those with the next version of their name in the conversation.")
        .counted(Units::Unlimited),
    Registered::rate("required_parameters", |_| ManagedAnswers::Parameters.metric())
        .about("Of the calls, those with every required parameter, or that asked nothing without.")
        .counted(Units::Unlimited),
    Registered::rate("artifact_answers", |_| ManagedAnswers::Delivery.metric())
        .about("Of the answers of turns that made an artifact, those that hold one of their turn.")
        .counted(Units::OfTurns),
];

/// Heading before an artifact's list of sources.
const LIST: &str = "\n\n## Sources\n";
/// A marker written as a link.
static LINKED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[\[\d+\]\]\(([^)\s]*)\)").ok());
/// A marker without a link.
static PLAIN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[\d+\]").ok());
/// A Markdown link.
static LINK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\]\(([^)\s]*)\)").ok());
/// A link through the gateway.
static GATEWAY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^/gateway/download(/[A-Za-z0-9._~%-]+)+(#page=([0-9]+))?$").ok());

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManagedAnswers {
    Placement,
    Numbering,
    Links,
    Versions,
    Parameters,
    Delivery,
}

impl ManagedAnswers {
    fn metric(self) -> Metric {
        let units = match self {
            Self::Placement | Self::Versions => "artifacts",
            Self::Numbering | Self::Links => "artifacts with sources",
            Self::Parameters => "calls",
            Self::Delivery => "answers",
        };
        let members: &[Member] =
            if self == Self::Delivery { &[Member::Managed, Member::Answers] } else { &[Member::Managed] };
        Metric { members, ..Metric::new(units, move |view| self.observe(view)) }
    }

    fn observe(self, view: &TrialView<'_>) -> Vec<Observation> {
        let variant = view.scenario.variant(&view.trial.lane.variant);
        let declared = variant.and_then(|variant| variant.settings.as_ref()?.managed_retrieval.as_ref());
        let settings = declared.map(|named| &named.settings);
        let links = settings.is_none_or(|settings| settings.inline_citation_links);
        let mut versions: BTreeMap<(u32, &str), u32> = BTreeMap::new();
        let mut units = Vec::new();
        for turn in view.turns {
            let mut say = |unit: String, held: Held| units.push(Observation::of(unit, held));
            if self == Self::Parameters {
                let Some(settings) =
                    settings.filter(|settings| settings.template_parameters.iter().any(|one| one.required))
                else {
                    continue;
                };
                let context = context(view, turn.conversation);
                let calls = turn.calls().filter(|call| view.trace.role(&call.tool) == Role::Knowledge);
                for (number, call) in (1..).zip(calls) {
                    let asked = matches!(call.outcome, ToolOutcome::Ok(_));
                    say(format!("{}, call {number}", turn.label()), given(settings, &context, asked));
                }
                continue;
            }
            let answers = turn.searches().filter_map(|search| search.managed.as_deref());
            let made: Vec<&ManagedAnswer> = answers.filter(|managed| managed.artifact.is_some()).collect();
            if self == Self::Delivery {
                let Some(answer) = turn.answer().filter(|_| !made.is_empty()) else { continue };
                let holds = |managed: &&ManagedAnswer| {
                    managed.artifact.as_ref().is_some_and(|artifact| answer.text.contains(artifact.content.trim_end()))
                };
                let held = if made.iter().any(holds) {
                    Ok(())
                } else {
                    Err(Seen::new("the answer holds no artifact of its turn"))
                };
                say(turn.label(), held);
                continue;
            }
            for managed in made {
                let Some(artifact) = &managed.artifact else { continue };
                let unit = format!("{}, {} version {}", turn.label(), artifact.filename, artifact.version);
                let last = versions.entry((turn.conversation, artifact.filename.as_str())).or_default();
                match self {
                    Self::Placement => say(unit, placed(managed, links)),
                    Self::Numbering | Self::Links if managed.sources.is_empty() => {}
                    Self::Numbering => say(unit, numbered(managed)),
                    Self::Links => say(unit, linked(managed)),
                    Self::Versions | Self::Parameters | Self::Delivery => {
                        let next = *last + 1;
                        let seen = || Seen::new(format!("version {} after {last}", artifact.version));
                        say(unit, if artifact.version == next { Ok(()) } else { Err(seen()) });
                        *last = (*last).max(artifact.version);
                    }
                }
            }
        }
        units
    }
}

/// Tool context about the user in a conversation, from the case.
fn context(view: &TrialView<'_>, conversation: u32) -> Value {
    let planned = view.case.case.conversations().nth(conversation as usize);
    planned.map_or(Value::Null, |planned| Value::Object(planned.tool_context.clone()))
}

fn given(settings: &ManagedRetrievalSettings, context: &Value, asked: bool) -> Held {
    let missing = settings.missing(context);
    if missing.is_empty() || !asked {
        return Ok(());
    }
    Err(Seen::new(format!("asked without {}", missing.join(", "))))
}

/// The part of an artifact before its list of sources.
fn body(content: &str) -> &str {
    content.rfind(LIST).map_or(content, |end| &content[..end]).trim_end()
}

fn placed(managed: &ManagedAnswer, links: bool) -> Held {
    let places = MarkerPlaces::of(&managed.text);
    let mut expected = BTreeSet::new();
    for citation in managed.citations.iter().filter(|citation| citation.source.is_some()) {
        let of = |source: &&crate::trace::ManagedSource| {
            Some(&source.source) == citation.source.as_ref() && source.page == citation.page
        };
        let number = managed.sources.iter().find(of).map_or(0, |source| source.number);
        let mut ends: BTreeSet<Option<usize>> =
            citation.spans.iter().filter(|span| span.start < span.end).map(|span| places.at(span.end)).collect();
        if ends.is_empty() {
            ends.insert(places.last());
        }
        expected.extend(ends.into_iter().flatten().map(|place| (place, number)));
    }
    // Numbers and links have metrics of their own: all markers are equal here.
    let expected = with_markers(&managed.text, &expected, |number| marker(number, links.then_some("/")));
    let content = managed.artifact.as_ref().map_or("", |artifact| artifact.content.as_str());
    let same = |text: &str| match (links, &*LINKED, &*PLAIN) {
        (true, Some(linked), _) => linked.replace_all(text, "\u{e000}").into_owned(),
        (false, _, Some(plain)) => plain.replace_all(text, "\u{e000}").into_owned(),
        _ => text.to_owned(),
    };
    let (wanted, found) = (same(expected.trim_end()), same(body(content)));
    if wanted == found {
        return Ok(());
    }
    let at = wanted.chars().zip(found.chars()).take_while(|(one, other)| one == other).count();
    let near = |text: &str| {
        quote(&text.chars().skip(at.saturating_sub(12)).take(24).collect::<String>().replace('\u{e000}', "[n]"), 40)
    };
    Err(Seen::new(format!("`{}` where `{}` should stand", near(&found), near(&wanted))))
}

fn numbered(managed: &ManagedAnswer) -> Held {
    let mut pages = BTreeMap::new();
    for (place, source) in (1..).zip(&managed.sources) {
        if source.number != place {
            return Err(Seen::new(format!("number {} is in place {place}", source.number)));
        }
        if let Some(other) = pages.insert((&source.source, source.page), source.number) {
            return Err(Seen::new(format!("{} has the numbers {other} and {}", quote(&source.id, 60), source.number)));
        }
    }
    listed(managed)
}

/// Whether the artifact's list has exactly one line for each source, `n. [title](link)`, in order.
fn listed(managed: &ManagedAnswer) -> Held {
    let content = managed.artifact.as_ref().map_or("", |artifact| artifact.content.as_str());
    let list = content.rfind(LIST).map_or("", |at| &content[at + LIST.len()..]);
    let mut lines = list.lines().filter(|line| !line.trim().is_empty());
    for source in &managed.sources {
        let line = lines.next().unwrap_or_default();
        let stands = line
            .strip_prefix(&format!("{}. [", source.number))
            .is_some_and(|rest| rest.ends_with(&format!("]({})", source.link)));
        if !stands {
            let (number, id) = (source.number, quote(&source.id, 60));
            return Err(Seen::new(format!("the list of sources has no line {number} for {id} in its place")));
        }
    }
    match lines.next() {
        None => Ok(()),
        Some(line) => {
            Err(Seen::new(format!("the list of sources ends with `{}`, which is not a source", quote(line, 60))))
        }
    }
}

fn linked(managed: &ManagedAnswer) -> Held {
    let (Some(link), Some(gateway)) = (&*LINK, &*GATEWAY) else { return Ok(()) };
    let content = managed.artifact.as_ref().map_or("", |artifact| artifact.content.as_str());
    let targets = link.captures_iter(content).filter_map(|found| Some(found.get(1)?.as_str()));
    // Links already in the service's text are not markers.
    let ours = targets.filter(|target| !managed.text.contains(&format!("]({target})")));
    let known: Vec<&str> = managed.sources.iter().map(|source| source.link.as_str()).collect();
    for target in ours.chain(known.iter().copied()) {
        let Some(found) = gateway.captures(target) else {
            return Err(Seen::new(format!("a link leads to `{}`", quote(target, 120))));
        };
        let page = found.get(3).and_then(|page| page.as_str().parse::<u64>().ok());
        let right =
            |source: &crate::trace::ManagedSource| source.link == target && page == source.page.map(|page| page + 1);
        if !managed.sources.iter().any(right) {
            return Err(Seen::new(format!("`{}` is the page of no source", quote(target, 120))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Outcome;
    use crate::metric::sample::{Story, observe};
    use crate::trace::{
        Artifact, ManagedCitation, ManagedSource, ManagedStatus, TextSpan, ToolCalled, ToolResult, What,
    };

    const LINK_5: &str = "/gateway/download/r1/f/file/codes.pdf#page=5";

    /// An answer with one source and an artifact with this content.
    fn answer(text: &str, end: u64, content: &str) -> ManagedAnswer {
        let source = ManagedSource {
            number: 1,
            source: "r1/f/file".into(),
            page: Some(4),
            id: "codes#page=5".into(),
            filename: "codes.pdf".into(),
            title: "Codes".into(),
            link: LINK_5.into(),
        };
        let citation = ManagedCitation {
            paragraph: "r1/f/file/0-9".into(),
            source: Some("r1/f/file".into()),
            page: Some(4),
            spans: vec![TextSpan { start: 0, end }],
        };
        let (filename, mime_type) = ("nuclia_answer.md".into(), "text/markdown".into());
        let content = format!("{content}\n\n## Sources\n\n1. [Codes]({LINK_5})\n");
        ManagedAnswer {
            status: ManagedStatus::Success,
            learning_id: None,
            asked: String::new(),
            audit: BTreeMap::new(),
            filter_applied: None,
            applied_filter: None,
            missing_filter_parameters: Vec::new(),
            text: text.into(),
            citations: vec![citation],
            sources: vec![source],
            notes: Vec::new(),
            artifact: Some(Artifact { filename, version: 1, mime_type, description: String::new(), content }),
            input_tokens: None,
            output_tokens: None,
        }
    }

    #[test]
    fn a_marker_off_by_one_code_unit_or_missing_or_one_too_many_is_seen() {
        let text = "😀 It is open. Close it.";
        let right = answer(text, 12, &format!("😀 It is open[[1]]({LINK_5}). Close it."));
        assert_eq!(placed(&right, true), Ok(()));
        for content in [
            format!("😀 It is open.[[1]]({LINK_5}) Close it."),
            text.to_owned(),
            format!("😀 It is open[[1]]({LINK_5}). Close[[1]]({LINK_5}) it."),
            format!("😀 It is open[[1]]({LINK_5}). Close it!"),
        ] {
            assert!(placed(&answer(text, 12, &content), true).is_err(), "{content}");
        }
        for number in [1, 2] {
            let content = format!("😀 It is open[{number}]. Close it.");
            assert_eq!(placed(&answer(text, 12, &content), false), Ok(()), "numbers have a metric of their own");
        }
    }

    #[test]
    fn each_metric_has_a_unit_for_an_artifact_and_for_a_call_only_where_a_parameter_is_required() {
        let content = format!("So[[1]]({LINK_5}).");
        let delivered = |s: Story| {
            let mut story = s.turn("q").search(&["codes#page=5"]);
            story.each(|what| {
                if let What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(ToolResult::Search(search)), .. }) = what
                {
                    search.managed = Some(Box::new(answer("So.", 2, &content)));
                }
            });
            story.deliver(&format!("{content}\n\n## Sources\n\n1. [Codes]({LINK_5})"), &[], 1)
        };
        for entry in ENTRIES {
            let units = observe(entry.entry.name, "[{case: a, ask: q}]", delivered);
            let held = units.iter().map(|unit| unit.outcome == Outcome::Success).collect::<Vec<_>>();
            let expected: &[bool] = if entry.entry.name == "required_parameters" { &[] } else { &[true] };
            assert_eq!(held, expected, "{}: {units:?}", entry.entry.name);
        }
    }

    #[test]
    fn two_numbers_for_one_page_and_a_gap_are_seen() {
        let mut managed = answer("So.", 3, "So.");
        assert_eq!(numbered(&managed), Ok(()));
        managed.sources.push(ManagedSource { number: 2, ..managed.sources[0].clone() });
        assert!(numbered(&managed).is_err());
        managed.sources[1].page = Some(9);
        let told = |managed: &ManagedAnswer| numbered(managed).map_err(|seen| seen.words);
        assert_eq!(told(&managed), Err("the list of sources has no line 2 for codes#page=5 in its place".into()));
        let list = managed.artifact.as_mut().expect("an artifact");
        list.content.push_str(&format!("2. [Codes]({LINK_5})\n"));
        assert_eq!(told(&managed), Ok(()));
        managed.sources[1].number = 3;
        assert!(numbered(&managed).is_err());
    }

    #[test]
    fn a_line_of_the_list_that_is_missing_changed_or_one_too_many_is_seen() {
        let line = format!("1. [Codes]({LINK_5})\n");
        for (list, holds) in [
            (format!("\n\n## Sources\n\n{line}"), true),
            ("\n\n## Sources\n\n".to_owned(), false),
            (String::new(), false),
            (format!("\n\n## Sources\n\n{line}{line}"), false),
            ("\n\n## Sources\n\n1. [Codes](/gateway/download/r1/f/file/other.pdf#page=5)\n".to_owned(), false),
            (format!("\n\n## Sources\n\n2. [Codes]({LINK_5})\n"), false),
        ] {
            let mut managed = answer("So.", 3, "So.");
            managed.artifact.as_mut().expect("an artifact").content = format!("So.{list}");
            assert_eq!(numbered(&managed).is_ok(), holds, "{list:?}");
        }
    }

    #[test]
    fn a_token_a_host_or_another_page_in_a_link_is_seen_and_the_services_own_links_are_not_ours() {
        let linked_by = |target: &str| linked(&answer("So.", 3, &format!("So.[[1]]({target})")));
        assert_eq!(linked_by(LINK_5), Ok(()));
        for target in [
            "/gateway/download/r1/f/file/codes.pdf?token=abc#page=5",
            "https://europe-1.nuclia.cloud/api/v1/kb/x/codes.pdf#page=5",
            "//example.org/gateway/download/a#page=5",
            "/gateway/download/r1/f/file/codes.pdf#page=6",
            "/gateway/download/r1/f/file/codes.pdf",
        ] {
            assert!(linked_by(target).is_err(), "{target}");
        }
        assert_eq!(linked(&answer("See [x](http://a.example).", 3, "See [x](http://a.example).")), Ok(()));
    }

    #[test]
    fn a_call_without_a_required_parameter_may_not_ask() {
        let settings: ManagedRetrievalSettings =
            serde_json::from_value(serde_json::json!({"template_parameters": [{"name": "country", "required": true}]}))
                .expect("reads");
        let context = serde_json::json!({"country": "Norway"});
        assert_eq!(given(&settings, &context, true), Ok(()));
        assert_eq!(given(&settings, &Value::Null, false), Ok(()));
        assert!(given(&settings, &Value::Null, true).is_err());
    }
}
