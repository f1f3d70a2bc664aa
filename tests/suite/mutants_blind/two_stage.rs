//! Defects of an agent that retrieves in a first stage and answers in a second one.

use super::edit::{
    answer, beside, cut, delay, deliver, each, end_of, fail, in_flow, last_text, model_in, moved_on, place, ran,
    relist, reword, set, turns, unset, what, without_history,
};
use super::outcomes::renumber;
use serde_json::{Value, json};

const RETRIEVE: &str = "retrieve_documents";
const REFUSAL: &str = "I found nothing about this in the knowledge base.";

fn here(events: &[Value]) -> bool {
    in_flow(events, "retrieving")
}

fn answers(events: &mut Vec<Value>, edit: impl Fn(&mut Value) -> bool) -> bool {
    here(events) && turns(events, |part| answer(part, &edit))
}

pub fn retrieval_not_forced(events: &mut Vec<Value>) -> bool {
    each(events, |event| model_in(event, "retrieving") && set(event, "/what/model_called/tool_choice", json!("auto")))
}

pub fn three_passages(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        ran(event, RETRIEVE) && {
            relist(event, "/what/tool_called/outcome/ok/search/without_learned", |ids| ids.truncate(3))
                | relist(event, "/what/tool_called/outcome/ok/search/hits", |hits| hits.truncate(3))
        }
    })
}

pub fn tools_in_answer(events: &mut Vec<Value>) -> bool {
    here(events)
        && each(events, |event| {
            model_in(event, "answering") && set(event, "/what/model_called/tool_choice", json!("auto"))
        })
}

pub fn more_than_retrieved(events: &mut Vec<Value>) -> bool {
    answers(events, |answer| {
        answer["sources"].as_array().is_some_and(|sources| !sources.is_empty())
            && reword(answer, "/text", |text| {
                format!("{text} Since firmware 7.3 the limit is 88 percent, as in the Brightleaf Pro.")
            })
    })
}

pub fn uncited(events: &mut Vec<Value>) -> bool {
    answers(events, |answer| {
        reword(answer, "/text", |text| renumber(text, |_| String::new()).replace("  ", " ").trim_end().to_owned())
            && (set(answer, "/sources", json!([])) | set(answer, "/used_internal_kb", json!(false)))
    })
}

pub fn cited_out_of_range(events: &mut Vec<Value>) -> bool {
    answers(events, |answer| {
        reword(answer, "/text", |text| renumber(text, |number| format!("[{}]", number + 5)))
            && (set(answer, "/sources", json!([])) | set(answer, "/used_internal_kb", json!(false)))
    })
}

pub fn raw_scores(events: &mut Vec<Value>) -> bool {
    here(events)
        && each(events, |event| {
            ["sources", "retrieved"].iter().fold(false, |any, list| {
                let list = event.pointer_mut(&format!("/what/turn_ended/reply/{list}")).and_then(Value::as_array_mut);
                any | list.is_some_and(|list| {
                    each(list, |source| {
                        let score = source["score"].as_f64().unwrap_or_default();
                        set(source, "/score", json!(score * 4.1))
                    })
                })
            })
        })
}

pub fn no_filenames(events: &mut Vec<Value>) -> bool {
    here(events)
        && each(events, |event| {
            let list = event.pointer_mut("/what/turn_ended/reply/sources").and_then(Value::as_array_mut);
            list.is_some_and(|list| each(list, |source| unset(source, "", "filename")))
        })
}

pub fn source_off_by_one(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let search = part.iter().find(|event| ran(event, RETRIEVE));
            let hits = search.map(|event| event["what"]["tool_called"]["outcome"]["ok"]["search"]["hits"].clone());
            hits.is_some_and(|hits| {
                answer(part, |answer| {
                    let sources = answer.pointer_mut("/sources").and_then(Value::as_array_mut);
                    sources.is_some_and(|list| {
                        each(list, |source| {
                            let next = source["number"].as_u64().and_then(|number| hits.get(number as usize));
                            next.is_some_and(|next| {
                                set(source, "/id", next["id"].clone()) | set(source, "/title", next["title"].clone())
                            })
                        })
                    })
                })
            })
        })
}

pub fn history_lost(events: &mut Vec<Value>) -> bool {
    here(events) && without_history(events)
}

pub fn other_tenants_documents(events: &mut Vec<Value>) -> bool {
    let tenants =
        events.iter().any(|event| what(event, "conversation_started").is_some_and(|start| start["tenant"].is_string()));
    tenants
        && each(events, |event| {
            let base = &event["what"]["tool_called"]["outcome"]["ok"]["search"]["kb_id"];
            let other = if base == "marina" { "fernlight" } else { "marina" };
            set(event, "/what/tool_called/outcome/ok/search/kb_id", json!(other))
        })
}

/// Serves a tenant that it does not know from the documents of another one.
pub fn unknown_tenant_served(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let Some(moved) = place(part, 0, |event| moved_on(event, "unknown_tenant")) else { return false };
        let text = "The controller opens one outgoing connection, TCP port 8883, to hub.fernlight.example. [1]";
        let hit = json!({
            "id": "network#3", "title": "Network: Firewalls", "raw_score": 3.9,
            "excerpt": "The controller opens one outgoing connection, TCP port 8883, to hub.fernlight.example, and needs UDP port 123 for the time.",
        });
        let query = "outgoing tcp port firewall open";
        let call = |call: u64, state: &str, choice: &str, shown: Value, reply: Value| {
            json!({"model_called": {"call": call, "state": state, "took_us": 700_000, "shown": shown, "tool_choice": choice,
                "attempts": [{"status": 200, "took_us": 700_000}], "reply": {"completion": reply}}})
        };
        let first = json!({"model": "fernlight-sim", "calls": [RETRIEVE], "finish": "tool_calls", "input_tokens": 213, "output_tokens": 19});
        let second =
            json!({"model": "fernlight-sim", "text": text, "finish": "stop", "input_tokens": 640, "output_tokens": 24});
        let asked = ["system:67844f7e266b", "user:5a057a8af848"];
        let found = ["system:0391ca1459fb", asked[1], "assistant:e3b0c44298fc", "tool:bb199580786d"];
        let search =
            json!({"search": {"query": query, "kb_id": "fernlight", "hits": [hit], "without_learned": [hit["id"]]}});
        let start = part[moved].clone();
        let mut new: Vec<Value> = [
            call(0, "retrieving", "named retrieve_documents", json!(asked), first),
            json!({"tool_called": {"call": 0, "id": "call_b11d0003", "tool": RETRIEVE, "arguments": {"query": query},
                "outcome": {"ok": search}, "took_us": 300}}),
            json!({"moved": {"from": "retrieving", "on": "documents_found", "to": "answering"}}),
            call(1, "answering", "none", json!(found), second),
        ]
        .map(|what| beside(&start, what))
        .into();
        for (from, by) in [(1, 700_000), (2, 300)] {
            delay(&mut new, from, by);
        }
        delay(part, moved, 1_400_300);
        set(&mut part[moved], "/what/moved/from", json!("answering"));
        deliver(part, "unknown_tenant", text);
        part.splice(moved..moved, new);
        answer(part, |answer| {
            set(answer, "/sources", json!([{"kind": "internal", "id": hit["id"], "title": hit["title"], "number": 1}]))
                | set(answer, "/used_internal_kb", json!(true))
        });
        true
    })
}

pub fn memory_delivered(events: &mut Vec<Value>) -> bool {
    here(events) && turns(events, |part| last_text(part).is_some_and(|text| deliver(part, "no_tool_call", &text)))
}

pub fn refused_query_answered(events: &mut Vec<Value>) -> bool {
    here(events) && turns(events, |part| deliver(part, "query_refused", "The documents do not say this."))
}

pub fn reply_not_logged(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let missed = part.iter().any(|event| moved_on(event, "no_call"));
            missed && each(part, |event| unset(event, "/what/model_called/reply/completion", "text"))
        })
}

pub fn nothing_found_fails(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let nothing = place(part, 0, |event| moved_on(event, "nothing_found"));
            nothing.is_some_and(|moved| fail(part, moved, "nothing_found", "nothing_found", "No document was found."))
        })
}

pub fn memory_where_nothing_is_found(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let told = answer(part, |answer| {
                answer["refused"] == true
                    && unset(answer, "", "refused")
                    && set(
                        answer,
                        "/text",
                        json!("As a rule, three to five per square metre and week are recommended for this."),
                    )
            });
            told && {
                each(part, |event| moved_on(event, "refused") && set(event, "/what/moved/on", json!("answered")));
                true
            }
        })
}

pub fn refusal_with_source(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let search = part.iter().find(|event| ran(event, RETRIEVE));
            let hit = search.map(|event| event["what"]["tool_called"]["outcome"]["ok"]["search"]["hits"][0].clone());
            hit.filter(Value::is_object).is_some_and(|hit| {
                answer(part, |answer| {
                    answer["refused"] == true
                        && reword(answer, "/text", |text| format!("{text} [1]"))
                        && set(
                            answer,
                            "/sources",
                            json!([{"kind": "internal", "id": hit["id"], "title": hit["title"], "number": 1}]),
                        )
                        && set(answer, "/used_internal_kb", json!(true))
                })
            })
        })
}

pub fn outage_as_refusal(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let told = ["model_unavailable", "retrieval_failed"].iter().any(|kind| deliver(part, kind, REFUSAL));
            told && {
                let end = end_of(part).unwrap_or_default();
                part[end]["what"]["turn_ended"]["outcome"]["answered"]["refused"] = json!(true);
                true
            }
        })
}

pub fn answer_without_retrieval(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let Some(call) = place(part, 0, |event| model_in(event, "retrieving")) else { return false };
            let Some(answers) = place(part, call, |event| model_in(event, "answering")) else { return false };
            if part[0]["turn"] == 0 {
                return false;
            }
            cut(part, call, answers);
            if let Some(moved) = place(part, call, |event| moved_on(event, "answered")) {
                part[moved]["what"]["moved"]["from"] = json!("retrieving");
            }
            relist(&mut part[call], "/what/model_called/shown", |list| {
                list.retain(|message| !message.as_str().is_some_and(|text| text.starts_with("tool:")));
            });
            true
        })
}

pub fn configured_model_ignored(events: &mut Vec<Value>) -> bool {
    here(events)
        && each(events, |event| {
            let model = &event["what"]["model_called"]["reply"]["completion"]["model"];
            let other = if model == "gpt-4o" { "gpt-4o-mini" } else { "gpt-4o" };
            model.as_str().is_some_and(|model| model.starts_with("gpt-"))
                && set(event, "/what/model_called/reply/completion/model", json!(other))
        })
}
