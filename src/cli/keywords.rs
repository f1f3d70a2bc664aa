//! `ragcheck keywords`: what an index of a served session has learned, and forgetting it by hand.

use super::arguments::{Keywords, KeywordsCommand};
use super::exit::Exit;
use super::output::{self, Problem};
use crate::clock::{Clock, RealClock};
use crate::knowledge::{KeywordEntry, KeywordIndex, PruneRule, tokenize};
use crate::settings::parse_duration;
use std::fmt::Write;
use std::path::Path;

/// Does what `ragcheck keywords` was asked to.
///
/// # Errors
/// When the index cannot be read or written.
pub(super) fn run(given: &Keywords) -> Result<Exit, Problem> {
    match &given.command {
        KeywordsCommand::List { index } => {
            let entries = open(index)?.list().map_err(|why| why.to_string())?;
            if entries.is_empty() {
                output::remark("nothing was learned yet");
            }
            for entry in entries {
                let from: Vec<String> =
                    entry.provenance.iter().map(|source| format!("{} ({})", source.query, source.result)).collect();
                let uses = entry.uses;
                output::result(&format!("{}  used {uses} times, from: {}\n", entry.keyword, from.join("; ")));
            }
        }
        KeywordsCommand::Show { index, keyword } => {
            let form = tokenize::keyword_form(keyword);
            let entries = open(index)?.list().map_err(|why| why.to_string())?;
            let Some(entry) = entries.iter().find(|entry| tokenize::keyword_form(&entry.keyword) == form) else {
                let why = format!("{} holds no keyword `{keyword}`: see `ragcheck keywords list`", index.display());
                return Err(Problem::Words(why));
            };
            output::result(&shown(entry));
        }
        KeywordsCommand::Export { index } => {
            let entries = open(index)?.list().map_err(|why| why.to_string())?;
            let text = serde_json::to_string_pretty(&entries).map_err(|why| why.to_string())?;
            output::result(&format!("{text}\n"));
        }
        KeywordsCommand::Prune { index, idle, fewer_uses_than } => {
            let idle_since = match idle {
                None => None,
                Some(written) => {
                    let idle = parse_duration(written).map_err(|why| format!("--idle {written}: {why}"))?;
                    RealClock::start().wall().checked_sub(idle).ok()
                }
            };
            let rule = PruneRule { idle_since, fewer_uses_than: *fewer_uses_than };
            if rule == PruneRule::default() {
                return Err(Problem::Words("nothing to go by: give --idle, --fewer-uses-than, or both".into()));
            }
            let pruned = open(index)?.prune(rule).map_err(|why| why.to_string())?;
            output::result(&format!(
                "{} keywords pruned, and {} answers that nothing leads to any more\n",
                pruned.keywords, pruned.results
            ));
        }
    }
    Ok(Exit::Passed)
}

/// A keyword and its sources, a block each.
fn shown(entry: &KeywordEntry) -> String {
    let times = if entry.uses == 1 { "time" } else { "times" };
    let mut told = format!("{}  used {} {times}, last active {}\n", entry.keyword, entry.uses, entry.last_active);
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

fn open(index: &Path) -> Result<KeywordIndex, Problem> {
    if index.is_file() {
        return Ok(KeywordIndex::in_file(index));
    }
    Err(Problem::Words(format!("{} is no keyword index: there is no such file", index.display())))
}
