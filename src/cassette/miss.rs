//! Explains a cassette miss: the nearest exchange, what differs, and what to do.

use super::canonical::{Request, stored_body};
use super::delta;
use super::difference::{Difference, IN_ANOTHER_ORDER, differences, distance, first_part, is_reordered};
use super::exchange::{Cassette, StoredRequest};
use super::keys;
use super::layout::Layout;
use super::pool::Taken;
use super::reordered::in_recorded_order;
use super::word_diff::printable;
use crate::platform::secrets::{MARK, Redactor};
use serde_json::Value;

/// Remedy for a request that holds a secret: it is recorded without the secret, so it never matches.
const SECRET: &str = "the request contains a secret, and recordings hold none: remove it from the prompt, the question or the \
                      document before recording again";

/// Explanation of a cassette miss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explanation {
    /// One line that names the kind of difference.
    pub message: String,
    /// Text that is equal for equal causes, whatever the trial.
    pub cause: String,
    /// Lines on the nearest exchange, the differences, and how to re-record.
    pub detail: Vec<String>,
    /// What may differ by values that the agent generates.
    pub missed: Option<Box<Missed>>,
}

/// A request without a recording, and the recorded one that is nearest to it: first that, then what came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missed {
    pub bodies: (Value, Value),
    pub paths: (String, String),
}

/// Explains why `request` to `service` has no recorded response, given the pool's answer `taken`.
///
/// `unused` are the exchanges left; `rerecord` is the command that re-records the lane.
pub(crate) fn explain(
    cassette: &Cassette,
    service: &str,
    request: Request<'_>,
    key: &str,
    (taken, unused): (Taken, &[usize]),
    redactor: &Redactor,
    rerecord: &str,
) -> Explanation {
    let place = format!("{} {}", request.method, printable(&request.redacted_path(redactor), 120));
    let calls = cassette.exchanges.len();
    let remedy = format!("re-record: {rerecord}     (about {calls} {})", if calls == 1 { "call" } else { "calls" });
    let file = cassette.place();
    let told = |cause: String, summary: &str, mut detail: Vec<String>| {
        detail.push(remedy.clone());
        let message = format!("cassette miss: {place}: {summary}");
        Explanation { message, cause, detail, missed: None }
    };
    let exhausted = |key: &str| {
        let summary = "exhausted: the same request comes more often than it was recorded";
        let same = cassette.exchanges.iter().filter(|one| one.key == key && one.service == service);
        let ordinals: Vec<String> = same.map(|one| one.ordinal.to_string()).collect();
        let times = ordinals.len();
        let line = format!("recorded {times} time(s), all used: {file} exchange {}", ordinals.join(", "));
        told(summary.to_owned(), summary, vec![line])
    };
    if taken == Taken::UsedUp {
        return exhausted(key);
    }
    if let Some(version) = cassette.header.profiles.get(request.profile.name)
        && *version != request.profile.version
    {
        let summary = format!(
            "recorded with version {version} of the matching profile {}, and this build matches by version {}",
            request.profile.name, request.profile.version
        );
        return told(summary.clone(), &summary, vec![format!("looked in: {file}")]);
    }
    let layout = request.profile.layout;
    let now = stored_body(request.profile, request.body, redactor);
    let requests = cassette.requests();
    let no_room = delta::no_room();
    if requests.iter().any(|request| request.problem.as_ref() == Some(&no_room)) {
        return told(no_room.clone(), &no_room, vec![format!("looked in: {file}")]);
    }
    let path = request.redacted_path(redactor);
    let Some((index, nearest)) = nearest((cassette, &requests), service, (layout, &now, &path), unused) else {
        let summary = format!("no exchange with the {service} service was recorded");
        return told(summary.clone(), &summary, vec![format!("looked in: {file}")]);
    };
    let ordinal = cassette.exchanges[index].ordinal;
    let ordered = in_recorded_order(&now, &nearest.body, redactor);
    let is_reordered_json = ordered.is_some();
    let now = ordered.unwrap_or(now);
    let mut found = differences(layout, &nearest.body, &now);
    let absent = absent(cassette);
    let only_length = found.iter().all(|difference| difference.only_length);
    let mut detail = Vec::new();
    if !absent.is_empty() && (only_length || nearest.problem.is_some()) {
        let which = absent.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let summary = format!("exchange {which} is missing from the cassette");
        detail.push(format!("file: {file}: exchange {which} is not in it; was it deleted?"));
        return told(summary.clone(), &summary, detail);
    }
    let same_place = cassette.exchanges[index].profile == request.profile.name
        && nearest.method == request.method
        && nearest.path == path;
    if found.is_empty() && same_place && is_reordered_json {
        return exhausted(&cassette.exchanges[index].key);
    }
    let recorded = Request { method: &nearest.method, path: &nearest.path, body: &nearest.body, ..request };
    if found.is_empty() && same_place && keys::key(recorded, redactor) == cassette.exchanges[index].key {
        found.extend(first_part(&nearest.body, &now));
    }
    let without_query = |path: &str| path.split('?').next().map(str::to_owned);
    let only_query = cassette.exchanges[index].profile == request.profile.name
        && nearest.method == request.method
        && without_query(&nearest.path) == without_query(&path);
    let relation = match found.as_slice() {
        [] if same_place => "the same request, under a key that is not its own".to_owned(),
        [] if only_query => "only the query differs".to_owned(),
        [] => "same content, but another profile, method or path".to_owned(),
        [one] if one.only_length => one.what.clone(),
        [_] => format!("only {}", sentence(&found, "differs", "differ")),
        _ => sentence(&found, "differs", "differ"),
    };
    detail.push(format!("nearest: {file} exchange {ordinal}: {relation}"));
    detail.extend(
        nearest
            .problem
            .iter()
            .map(|problem| format!("note: that request is missing or incomplete: {}", printable(problem, 200))),
    );
    if nearest.path != path {
        detail.extend([&nearest.path, &path].into_iter().zip(["-", "+"]).map(|(path, sign)| {
            format!("{sign} {} {}", if sign == "-" { &nearest.method } else { request.method }, printable(path, 400))
        }));
    }
    let reordered = is_reordered(&nearest.path, &path);
    if reordered {
        detail.push(IN_ANOTHER_ORDER.to_owned());
    }
    detail.extend(found.iter().flat_map(|difference| difference.lines.iter().cloned()));
    if found.is_empty() && same_place {
        detail.push("`ragcheck cassette rekey` recomputes the keys from the recorded requests".to_owned());
    }
    if found.iter().flat_map(|difference| &difference.lines).any(|line| line.contains(MARK)) {
        detail.push(SECRET.to_owned());
    }
    let left = unused.iter().any(|index| cassette.exchanges[*index].service == service);
    let summary = match found.as_slice() {
        [] if same_place => "the recorded key is not that of its request: the recording was edited".to_owned(),
        [] if reordered => "the parameters of the query are in another order".to_owned(),
        [] if only_query => "the query changed".to_owned(),
        [] => "the request goes elsewhere than the recorded one".to_owned(),
        [one] if one.only_length && !left => {
            "no exchange left: the conversation goes on after its recording ends".to_owned()
        }
        [one] if one.only_length => one.what.clone(),
        _ => sentence(&found, "changed", "changed").trim_start_matches("the ").to_owned(),
    };
    let shown: Vec<&str> = found.iter().flat_map(|difference| &difference.lines).map(String::as_str).collect();
    let cause = if shown.is_empty() { summary.clone() } else { format!("{summary}: {}", shown.join(" ")) };
    // Names of models and tools are settings: nobody generates them.
    let bodies = (layout.without_names(nearest.body.clone()), layout.without_names(now));
    let paths = (nearest.path.clone(), path);
    let missed = Some(Box::new(Missed { bodies, paths }));
    Explanation { missed, ..told(printable(&cause, 600), &summary, detail) }
}

/// `the model and the tool list differ, and the conversation is longer`: the parts with the verb for one or for more,
/// and what is a sentence by itself.
fn sentence(found: &[Difference], one: &str, more: &str) -> String {
    let whole = |difference: &&Difference| difference.only_length || difference.what.starts_with("knowledge: ");
    let names: Vec<&str> = found.iter().filter(|one| !whole(one)).map(|difference| difference.what.as_str()).collect();
    let parts = match names.as_slice() {
        [] => None,
        [name] if name.starts_with("the parameters ") || name.ends_with(" more") => Some(format!("{name} {more}")),
        [name] => Some(format!("{name} {one}")),
        [all @ .., last] => Some(format!("{} and {last} {more}", all.join(", "))),
    };
    let sentences = found.iter().filter(whole).map(|difference| match difference.what.strip_prefix("knowledge: ") {
        Some(knowledge) => format!("the knowledge {one}: {knowledge}"),
        None => difference.what.clone(),
    });
    parts.into_iter().chain(sentences).collect::<Vec<_>>().join(", and ")
}

/// The recorded exchange closest to the request: by system prompt and tools, then by conversation, then by the other
/// parts, then by path, then unused before used.
fn nearest<'r>(
    (cassette, requests): (&Cassette, &'r [StoredRequest]),
    service: &str,
    (layout, now, path): (&Layout, &Value, &str),
    unused: &[usize],
) -> Option<(usize, &'r StoredRequest)> {
    let candidates = cassette.exchanges.iter().zip(requests).enumerate();
    candidates
        .filter(|(_, (exchange, _))| exchange.service == service)
        .min_by_key(|(index, (_, request))| {
            let elsewhere = request.path != path;
            (
                request.problem.is_some(),
                distance(layout, &request.body, now),
                elsewhere,
                !unused.contains(index),
                *index,
            )
        })
        .map(|(index, (_, request))| (index, request))
}

/// Ordinals below the highest that no exchange has.
fn absent(cassette: &Cassette) -> Vec<u32> {
    let present: Vec<u32> = cassette.exchanges.iter().map(|exchange| exchange.ordinal).collect();
    let last = present.iter().copied().max().unwrap_or(0);
    // A hand-edited ordinal may be any number; no lane has this many exchanges.
    (0..last.min(10_000)).filter(|ordinal| !present.contains(ordinal)).take(5).collect()
}

#[cfg(test)]
#[path = "miss_tests.rs"]
mod tests;
