//! `ragcheck keywords`: shows what the index of a served session has learned, and forgets entries by hand.

use super::arguments::{Keywords, KeywordsCommand};
use super::exit::Exit;
use super::output::{self, Problem};
use crate::knowledge::{KeywordEntry, KeywordIndex, PruneRule, Pruned, Upkeep, tokenize};
use crate::platform::clock::{Clock, RealClock};
use crate::settings::{KeywordIndexSettings, parse_age};
use crate::trace::text::plural;
use schemars::JsonSchema;
use std::fmt::Write;
use std::path::{Path, PathBuf};

pub(super) fn run(given: &Keywords) -> Result<Exit, Problem> {
    match &given.command {
        KeywordsCommand::List { index } => {
            let entries = reading(index.as_deref())?.list()?;
            if entries.is_empty() {
                output::remark("nothing was learned yet");
            }
            output::data(given.format, &entries, |entries| entries.iter().map(listed).collect())?;
        }
        KeywordsCommand::Show { index, keyword } => {
            let form = tokenize::keyword_form(keyword);
            let file = file(index.as_deref())?;
            let entries = KeywordIndex::in_file(&file).list()?;
            let Some(entry) = entries.iter().find(|entry| tokenize::keyword_form(&entry.keyword) == form) else {
                let why = format!("{} holds no keyword `{keyword}`: see `ragcheck keywords list`", file.display());
                return Err(Problem::Words(why));
            };
            output::data(given.format, entry, shown)?;
        }
        KeywordsCommand::Export { index } => {
            let entries = reading(index.as_deref())?.list()?;
            output::data_as_json(&entries)?;
        }
        KeywordsCommand::Prune { index, idle, fewer_uses_than } => {
            let rule = rule(idle.as_deref(), *fewer_uses_than)?;
            let pruned = open(index.as_deref())?.prune(rule)?;
            output::data(given.format, &pruned, |pruned| {
                let (keywords, answers) = (plural(pruned.keywords, "keyword"), plural(pruned.results, "answer"));
                format!("{keywords} pruned, and {answers} that nothing leads to any more\n")
            })?;
        }
    }
    Ok(Exit::Passed)
}

/// What a subcommand of `keywords` prints.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it names them for the schema")]
pub(super) enum Printable {
    /// Of `list` and `export`.
    All(Vec<KeywordEntry>),
    /// Of `show`.
    One(KeywordEntry),
    /// Of `prune`.
    Pruned(Pruned),
}

fn listed(entry: &KeywordEntry) -> String {
    let from: Vec<String> =
        entry.provenance.iter().map(|source| format!("{} ({})", source.query, source.result)).collect();
    format!("{}  used {}, from: {}\n", entry.keyword, plural(entry.uses as usize, "time"), from.join("; "))
}

/// Pruning rule: from the arguments, else from the project's index.
fn rule(idle: Option<&str>, fewer_uses_than: Option<u64>) -> Result<PruneRule, Problem> {
    let now = RealClock::start().wall();
    if idle.is_none() && fewer_uses_than.is_none() {
        let (_, settings) = declared()?;
        let upkeep = settings.and_then(|settings| settings.forget.as_ref().and_then(Upkeep::declared));
        return upkeep.and_then(|upkeep| upkeep.at(now)).ok_or_else(|| {
            let why = "nothing to go by: give --idle, --fewer-uses-than, or both, or declare what `keyword_index` \
                       forgets in ragcheck.yaml";
            Problem::Words(why.into())
        });
    }
    let since = |written: &str| {
        let idle = parse_age(written).map_err(|why| format!("--idle {written}: {why}"))?;
        let since = now.checked_sub(idle).map_err(|_| format!("--idle {written}: nothing is so old"))?;
        Ok::<_, String>(since)
    };
    Ok(PruneRule { idle_since: idle.map(since).transpose()?, fewer_uses_than })
}

/// A keyword and its sources, as a block of lines.
fn shown(entry: &KeywordEntry) -> String {
    let mut told =
        format!("{}  used {}, last active {}\n", entry.keyword, plural(entry.uses as usize, "time"), entry.last_active);
    for source in &entry.provenance {
        let citations: Vec<&str> = source.citations.iter().map(|(_, url)| url.as_str()).collect();
        let _ = write!(
            told,
            "\n{}\n  question  {} ({})\n  query     {}\n  session   {}, conversation {}, {}, {}\n  answer    {}\n  \
             citations {}\n",
            source.id,
            source.question,
            source.question_id,
            source.query,
            source.session,
            source.conversation,
            source.result,
            source.at,
            source.answer.split_whitespace().collect::<Vec<_>>().join(" "),
            if citations.is_empty() { "none".to_owned() } else { citations.join(" ") },
        );
    }
    told
}

/// The project's folder, and the keyword index that it declares.
fn declared() -> Result<(PathBuf, Option<KeywordIndexSettings>), Problem> {
    let (root, project) = super::select::project()?;
    Ok((root, project.keyword_index))
}

/// The given file, else the project's.
fn file(named: Option<&Path>) -> Result<PathBuf, Problem> {
    let file = if let Some(file) = named {
        file.to_owned()
    } else {
        let (root, settings) = declared()?;
        let settings = settings.ok_or_else(|| {
            Problem::Words("no index: name its file, or declare `keyword_index` in ragcheck.yaml".into())
        })?;
        root.join(settings.file)
    };
    if file.is_file() {
        return Ok(file);
    }
    Err(Problem::Words(format!("{} is no keyword index: there is no such file", file.display())))
}

fn reading(named: Option<&Path>) -> Result<KeywordIndex, Problem> {
    Ok(KeywordIndex::to_read(&file(named)?))
}

fn open(named: Option<&Path>) -> Result<KeywordIndex, Problem> {
    Ok(KeywordIndex::in_file(&file(named)?))
}
