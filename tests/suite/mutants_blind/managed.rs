//! Defects of an agent with a managed retrieval service, and of its tool.

use super::edit::{
    answer, answer_of, deliver, each, end_of, in_flow, last, model_in, place, ran, replace, reword, set, turns, unset,
    what,
};
use serde_json::{Value, json};

const ASK: &str = "nuclia_rag";
const MANAGED: &str = "/what/tool_called/outcome/ok/search/managed";
const GATEWAY: &str = "/gateway/download/";

fn here(events: &[Value]) -> bool {
    in_flow(events, "asking")
}

/// Changes what the tool made of each answer of the service.
fn each_answer(events: &mut [Value], edit: impl Fn(&mut Value) -> bool) -> bool {
    each(events, |event| event.pointer_mut(MANAGED).is_some_and(&edit))
}

/// Changes the text of each artifact, and of the answer that embeds it.
fn contents(events: &mut Vec<Value>, edit: impl Fn(&Value, &str) -> String) -> bool {
    here(events)
        && turns(events, |part| {
            let mut changes = Vec::new();
            each_answer_of(part, |managed| {
                let before = managed["artifact"]["content"].as_str().unwrap_or_default().to_owned();
                let new = edit(managed, &before);
                changes.push((before.trim_end().to_owned(), new.trim_end().to_owned()));
                set(managed, "/artifact/content", json!(new))
            }) && {
                answer(part, |answer| {
                    reword(answer, "/text", |text| {
                        changes.iter().fold(
                            text.to_owned(),
                            |text, (old, new)| if old.is_empty() { text } else { text.replace(old, new) },
                        )
                    })
                });
                true
            }
        })
}

fn each_answer_of(part: &mut [Value], mut edit: impl FnMut(&mut Value) -> bool) -> bool {
    each(part, |event| event.pointer_mut(MANAGED).is_some_and(&mut edit))
}

/// The text with its links as markers without a link, and the markers as the edit has them.
fn markers(text: &str, edit: impl Fn(u64, Option<&str>) -> String) -> String {
    let mut new = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        new.push_str(&rest[..at]);
        let linked = rest[at..].strip_prefix("[[").and_then(|inner| {
            let (number, behind) = inner.split_once("]](")?;
            let (link, behind) = behind.split_once(')')?;
            Some((number.parse().ok()?, Some(link), behind))
        });
        let plain =
            rest[at + 1..].split_once(']').and_then(|(number, behind)| Some((number.parse().ok()?, None, behind)));
        if let Some((number, link, behind)) = linked.or(plain) {
            new.push_str(&edit(number, link));
            rest = behind;
        } else {
            new.push('[');
            rest = &rest[at + 1..];
        }
    }
    new + rest
}

/// The text of an artifact before its list of sources, and the list.
fn parts(content: &str) -> (&str, &str) {
    content.split_at(content.find("\n\n## Sources").unwrap_or(content.len()))
}

fn marker(number: u64, link: Option<&str>) -> String {
    link.map_or_else(|| format!("[{number}]"), |link| format!("[[{number}]]({link})"))
}

pub fn plain_markers(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| markers(text, |number, _| format!("[{number}]")))
}

pub fn linked_markers(events: &mut Vec<Value>) -> bool {
    contents(events, |managed, text| {
        let (before, list) = parts(text);
        let link = |number: u64| {
            let source = managed["sources"].as_array().into_iter().flatten().find(|source| source["number"] == number);
            source.and_then(|source| source["link"].as_str()).unwrap_or_default().to_owned()
        };
        markers(before, |number, given| marker(number, Some(given.unwrap_or(&link(number))))) + list
    })
}

pub fn default_filename(events: &mut Vec<Value>) -> bool {
    here(events) && each(events, |event| replace(event, "fernlight.md", "nuclia_answer.md"))
}

pub fn not_rephrased(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let query = event["what"]["tool_called"]["arguments"]["query"].clone();
        set(event, &format!("{MANAGED}/asked"), query)
    })
}

pub fn placeholder_left(events: &mut Vec<Value>) -> bool {
    each_answer(events, |managed| reword(managed, "/asked", |asked| asked.replace("Norway", "{country}")))
}

pub fn not_audited(events: &mut Vec<Value>) -> bool {
    each_answer(events, |managed| unset(managed, "", "audit"))
}

pub fn filter_not_sent(events: &mut Vec<Value>) -> bool {
    each_answer(events, |managed| {
        managed["filter_applied"] == true
            && unset(managed, "", "applied_filter")
            && set(managed, "/filter_applied", json!(false))
    })
}

pub fn filter_untold(events: &mut Vec<Value>) -> bool {
    each_answer(events, |managed| unset(managed, "", "applied_filter"))
}

pub fn filter_of_another_country(events: &mut Vec<Value>) -> bool {
    each_answer(events, |managed| {
        managed.get_mut("applied_filter").is_some_and(|filter| replace(filter, "Norway", "Sweden"))
    })
}

pub fn missing_parameter_untold(events: &mut Vec<Value>) -> bool {
    each_answer(events, |managed| unset(managed, "", "missing_filter_parameters"))
}

pub fn asked_without_citations(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| markers(parts(text).0, |_, _| String::new())) && {
        each_answer(events, |managed| unset(managed, "", "citations") | unset(managed, "", "sources"));
        turns(events, |part| answer(part, |answer| set(answer, "/sources", json!([]))));
        true
    }
}

/// Counts the bytes before a place where characters are meant.
pub fn markers_at_bytes(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| {
        let (before, list) = parts(text);
        let plain: Vec<char> = markers(before, |_, _| String::new()).chars().collect();
        // What stands between two markers, each of which has a place in the plain text.
        let split = markers(before, |number, link| format!("\u{1}{}\u{2}", marker(number, link)));
        let (mut places, mut at) = (Vec::new(), 0);
        for piece in split.split('\u{1}') {
            let (mark, behind) = piece.split_once('\u{2}').unwrap_or(("", piece));
            if !mark.is_empty() {
                let bytes: usize = plain[..at].iter().map(|char| char.len_utf8()).sum();
                places.push((bytes.min(plain.len()), mark.to_owned()));
            }
            at += behind.chars().count();
        }
        let mut new = String::new();
        for (at, char) in plain.iter().copied().map(Some).chain([None]).enumerate() {
            places.iter().filter(|(place, _)| *place == at).for_each(|(_, mark)| new.push_str(mark));
            new.extend(char);
        }
        new + list
    })
}

pub fn markers_at_the_end(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| {
        let (before, list) = parts(text);
        let all = std::cell::RefCell::new(Vec::<String>::new());
        let plain = markers(before, |number, link| {
            let mark = marker(number, link);
            if !all.borrow().contains(&mark) {
                all.borrow_mut().push(mark);
            }
            String::new()
        });
        format!("{plain}{}{list}", all.into_inner().concat())
    })
}

pub fn all_number_one(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| {
        let (before, list) = parts(text);
        markers(before, |_, link| marker(1, link)) + list
    })
}

/// Numbers a marker for each passage, so that one page has two numbers.
pub fn number_for_each_marker(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| {
        let (before, list) = parts(text);
        let next = std::cell::Cell::new(0);
        let new = markers(before, |_, link| {
            next.set(next.get() + 1);
            marker(next.get(), link)
        });
        new + list
    })
}

/// Counts pages from 0 in links, as the service does.
pub fn page_before(events: &mut Vec<Value>) -> bool {
    let down = |text: &str| {
        let mut pieces = text.split("#page=");
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |text, piece| {
            let digits = piece.find(|char: char| !char.is_ascii_digit()).unwrap_or(piece.len());
            let page: u64 = piece[..digits].parse().unwrap_or_default();
            format!("{text}#page={}{}", page.saturating_sub(1), &piece[digits..])
        })
    };
    contents(events, |_, text| down(text)) && {
        each_answer(events, |managed| {
            let sources = managed.pointer_mut("/sources").and_then(Value::as_array_mut);
            sources.is_some_and(|list| each(list, |source| reword(source, "/link", down)))
        });
        each(events, |event| {
            let sources = event.pointer_mut("/what/turn_ended/reply/sources").and_then(Value::as_array_mut);
            sources.is_some_and(|list| each(list, |source| reword(source, "/url", down)))
        });
        true
    }
}

pub fn no_list_of_sources(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| format!("{}\n", parts(text).0))
}

pub fn no_pages_in_list(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| {
        let (before, list) = parts(text);
        let lines = list.split('\n').map(|line| match (line.find(", page "), line.find("](")) {
            (Some(page), Some(link)) if page < link => format!("{}{}", &line[..page], &line[link..]),
            _ => line.to_owned(),
        });
        format!("{before}{}", lines.collect::<Vec<_>>().join("\n"))
    })
}

pub fn links_to_the_service(events: &mut Vec<Value>) -> bool {
    here(events)
        && each(events, |event| {
            replace(event, GATEWAY, "https://europe-1.nuclia.cloud/api/v1/kb/fernlight-box/resource/")
        })
}

pub fn token_in_links(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| text.replace("#page=", "?ephemeral-token=simulated-service-account-0451#page=")) && {
        each_answer(events, |managed| {
            let sources = managed.pointer_mut("/sources").and_then(Value::as_array_mut);
            sources.is_some_and(|list| {
                each(list, |source| {
                    replace(source, ".pdf#page=", ".pdf?ephemeral-token=simulated-service-account-0451#page=")
                })
            })
        });
        true
    }
}

pub fn always_version_one(events: &mut Vec<Value>) -> bool {
    here(events)
        && each(events, |event| {
            let called = set(event, &format!("{MANAGED}/artifact/version"), json!(1));
            let artifacts = event.pointer_mut("/what/turn_ended/reply/artifacts").and_then(Value::as_array_mut);
            let told = artifacts.is_some_and(|list| each(list, |file| set(file, "/version", json!(1))));
            let embedded = event
                .pointer_mut("/what/model_called/reply/completion/text")
                .is_some_and(|text| replace(text, ".md:2»", ".md:1»"));
            called | told | embedded
        })
}

pub fn description_not_cut(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let Some(call) = place(part, 0, |event| {
                let description = event.pointer(&format!("{MANAGED}/artifact/description")).and_then(Value::as_str);
                description.is_some_and(|text| text.ends_with('…'))
            }) else {
                return false;
            };
            let query = part[call]["what"]["tool_called"]["arguments"]["query"].as_str().unwrap_or_default();
            let whole = json!(format!("Answer with sources to: {query}"));
            let end = end_of(part).unwrap_or_default();
            set(&mut part[end], "/what/turn_ended/reply/artifacts/0/description", whole.clone());
            set(&mut part[call], &format!("{MANAGED}/artifact/description"), whole)
        })
}

pub fn html_artifact(events: &mut Vec<Value>) -> bool {
    here(events) && each(events, |event| replace(event, "text/markdown", "text/html"))
}

pub fn success_without_an_answer(events: &mut Vec<Value>) -> bool {
    each_answer(events, |managed| managed["artifact"].is_null() && set(managed, "/status", json!("success")))
}

pub fn no_learning_id(events: &mut Vec<Value>) -> bool {
    each_answer(events, |managed| unset(managed, "", "learning_id"))
}

pub fn outage_as_refusal(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            if part.iter().any(|event| ran(event, ASK))
                || !part.iter().any(|event| event["what"]["tool_called"]["tool"] == ASK)
            {
                return false;
            }
            answer(part, |answer| {
                answer["refused"] = json!(true);
                set(answer, "/text", json!("I found nothing about this in the knowledge base."))
            })
        })
}

/// Answers in the model's words, without the artifact and its citations.
pub fn artifact_not_embedded(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let Some(call) = last(part, |event| event.pointer(&format!("{MANAGED}/artifact")).is_some()) else {
                return false;
            };
            let text =
                part[call].pointer(&format!("{MANAGED}/text")).and_then(Value::as_str).unwrap_or_default().to_owned();
            let Some(says) = last(part, |event| model_in(event, "answering")) else { return false };
            let embeds = part[says]["what"]["model_called"]["reply"]["completion"]["text"]
                .as_str()
                .is_some_and(|text| text.contains('«'));
            if !embeds || answer_of(part).is_none() {
                return false;
            }
            part[says]["what"]["model_called"]["reply"]["completion"]["text"] = json!(text);
            answer(part, |answer| {
                set(answer, "/text", json!(text))
                    | set(answer, "/sources", json!([]))
                    | set(answer, "/used_internal_kb", json!(false))
            })
        })
}

/// Forgets a source of the list, though a marker refers to it.
pub fn last_source_missing(events: &mut Vec<Value>) -> bool {
    contents(events, |_, text| {
        let (before, list) = parts(text);
        let lines: Vec<&str> = list.trim_end().split('\n').collect();
        if lines.len() < 5 { text.to_owned() } else { format!("{before}{}\n", lines[..lines.len() - 1].join("\n")) }
    })
}

/// Gives an answer from memory, which the reminder was to prevent.
pub fn memory_delivered(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let call = place(part, 0, |event| what(event, "model_called").is_some());
            let text = call.and_then(|call| {
                part[call]["what"]["model_called"]["reply"]["completion"]["text"].as_str().map(str::to_owned)
            });
            text.is_some_and(|text| deliver(part, "no_tool_call", &text))
        })
}
