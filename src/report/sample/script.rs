//! Events of the synthetic run's trials.

use super::HOSTILE;
use crate::trace::*;
use serde_json::{Value, json};

struct Words(u64);

impl Words {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn say(&mut self, number: usize) -> String {
        const STOCK: &str = "heat pump defrost valve outdoor unit coil frost sensor cycle pressure setpoint buffer tank \
            winter evaporator compressor refrigerant flow rate litre minute return temperature curve controller fan \
            noise relay contactor glycol filter drain tray installer warranty annual service inverter current limit";
        let stock: Vec<&str> = STOCK.split_whitespace().collect();
        let words: Vec<String> = (0..number)
            .map(|_| if self.next(6) == 0 { self.next(900).to_string() } else { stock[self.next(stock.len())].into() })
            .collect();
        words.join(" ")
    }
}

struct Script {
    words: Words,
    at: u64,
    turn: u32,
    conversation: u32,
    call: u32,
    state: &'static str,
    events: Vec<Event>,
}

impl Script {
    fn push(&mut self, took: u64, what: What) {
        self.events.push(Event { at_us: self.at, conversation: self.conversation, turn: self.turn, what });
        self.at += took;
    }

    fn start(&mut self, query: String) {
        self.state = "start";
        self.push(0, What::TurnStarted { query });
    }

    fn moved(&mut self, on: &str, to: &'static str) {
        self.push(0, What::Moved(Moved { from: self.state.into(), on: on.into(), to: to.into() }));
        self.state = to;
    }

    fn model(&mut self, tool: Option<&str>, text: &str, attempts: Vec<Attempt>) {
        let took = 600_000 + self.words.next(1_400_000) as u64;
        let mut all = attempts;
        all.push(Attempt { status: Some(200), took_us: took, ..Attempt::default() });
        let took_us = all.iter().map(|one| one.took_us + one.wait_us.unwrap_or(0)).sum();
        let reply = Reply::Completion(Completion {
            model: "gpt-sim-1".into(),
            text: text.into(),
            calls: tool.iter().map(|tool| (*tool).to_owned()).collect(),
            finish: if tool.is_some() { "tool_calls".into() } else { "stop".into() },
            input_tokens: Some(1_200 + self.words.next(900) as u64),
            cached_tokens: Some(1_024),
            output_tokens: Some(40 + self.words.next(160) as u64),
            ..Completion::default()
        });
        let (call, state, shown) = (self.call, self.state.into(), vec!["system:0a1b2c3d4e5f".into(); 3]);
        let tool_choice = "auto".into();
        self.push(
            took_us,
            What::ModelCalled(ModelCalled {
                service: None,
                call,
                state,
                took_us,
                first_token_us: None,
                shown,
                tool_choice,
                attempts: all,
                reply,
            }),
        );
        self.call += 1;
    }

    fn tool(&mut self, tool: &str, arguments: Value, took_us: u64, outcome: ToolOutcome) {
        let call = self.call - 1;
        let id = format!("call_{call}");
        let (tool, began_us, attempts) = (tool.into(), None, Vec::new());
        self.push(
            took_us,
            What::ToolCalled(ToolCalled { call, id, tool, arguments, outcome, began_us, took_us, attempts }),
        );
    }

    fn search(&mut self, hostile: bool, learned: bool) {
        self.model(Some("knowledge_base_search"), "", Vec::new());
        let query = self.words.say(6);
        let mut hits: Vec<Hit> = (0..5)
            .map(|rank| {
                let number = self.words.next(44);
                let mut text = Words(number as u64);
                Hit {
                    id: format!("manual-{}#{}", number / 4, number % 4),
                    title: if hostile && rank == 0 {
                        HOSTILE.into()
                    } else {
                        format!("Chapter {}: {}", number, text.say(3))
                    },
                    raw_score: 11.25 / f64::from(rank + 1),
                    excerpt: text.say(22),
                    names: Vec::new(),
                    beside: String::new(),
                    learned: None,
                }
            })
            .collect();
        let without_learned = hits.iter().map(|hit| hit.id.clone()).collect();
        if learned {
            hits[0].id = "learned:c0-r1".into();
            hits[0].learned = Some(Learned {
                result: "c0-r1".into(),
                conversation: 0,
                keywords: vec!["subsidy rate".into()],
                urls: Vec::new(),
            });
        }
        let result = SearchResult { without_learned, ..SearchResult::of(query.clone(), "default_kb".into(), hits) };
        let arguments = json!({"query": query, "kb_id": "default_kb", "top_k": 5});
        self.tool("knowledge_base_search", arguments, 14_000, ToolOutcome::Ok(ToolResult::Search(result)));
        self.moved("searched", "judging");
    }

    fn answer(&mut self, external: bool, text: String) {
        self.model(Some("generate_response"), "", Vec::new());
        let arguments = json!({"answer": text, "sources": ["manual-3#1"], "confidence_score": 0.82});
        self.tool("generate_response", arguments, 120, ToolOutcome::Ok(ToolResult::Responded));
        self.moved("answered", "done");
        let mut sources = vec![SourceRef {
            kind: "internal".into(),
            id: "manual-3#1".into(),
            title: "Chapter 13".into(),
            number: None,
        }];
        if external {
            let id = "https://energy.example/grants".into();
            sources.push(SourceRef { kind: "external".into(), id, title: "Grants this year".into(), number: None });
        }
        let confidence = Some(0.82);
        self.end(TurnOutcome::Answered(Answer {
            text,
            sources,
            confidence,
            used_internal_kb: true,
            used_external_kb: external,
            ..Answer::default()
        }));
    }

    fn end(&mut self, outcome: TurnOutcome) {
        let started = self.events.iter().rev().find(|event| matches!(event.what, What::TurnStarted { .. }));
        let took_us = self.at - started.map_or(0, |event| event.at_us);
        let history = vec!["user:0a1b2c3d4e5f".into()];
        self.push(0, What::TurnEnded(TurnEnded { took_us, outcome, history, reply: None }));
        self.turn += 1;
    }
}

fn external(script: &mut Script) {
    let limited = Attempt {
        status: Some(429),
        cause: Some("rate_limit".into()),
        took_us: 90_000,
        wait_us: Some(700_000),
        ..Attempt::default()
    };
    script.model(Some("perplexity_search"), "The manual has no figures for this year.", vec![limited]);
    let retried = |account, target: &str, cause: &str| {
        What::Retried(Retried {
            account,
            episode: 0,
            attempt: 1,
            target: target.into(),
            cause: cause.into(),
            recovered: true,
        })
    };
    script.push(0, retried(Account::Transport, "model", "rate_limit"));
    let query = script.words.say(7);
    let found = ExternalResult {
        input_tokens: None,
        cached_tokens: None,
        output_tokens: None,
        result: "c0-r1".into(),
        query: query.clone(),
        answer: script.words.say(70),
        citations: vec![CitedPage { title: "Grants this year".into(), url: "https://energy.example/grants".into() }],
        model: "perplexity/sonar".into(),
    };
    script.tool("perplexity_search", json!({"query": query}), 1_320_000, ToolOutcome::Ok(ToolResult::External(found)));
    script.moved("external_answer", "indexing");
    script.model(Some("index_keywords"), "", Vec::new());
    let refused = Rejection {
        cause: "generic_keyword".into(),
        reason: "\"information\" says nothing about this subject.".into(),
        guidance: "Name the grant, the device or the authority.".into(),
    };
    let arguments = json!({"keywords": ["information"], "query": query, "perplexity_result_id": "c0-r1"});
    script.tool("index_keywords", arguments, 40, ToolOutcome::Rejected(refused));
    script.model(Some("index_keywords"), "", Vec::new());
    script.push(0, retried(Account::Tool, "index_keywords", "generic_keyword"));
    let keywords: Vec<String> = ["subsidy rate", "heat pump grant", "regional energy office"].map(Into::into).into();
    let arguments = json!({"keywords": keywords, "query": query, "perplexity_result_id": "c0-r1"});
    let indexed = IndexResult {
        result: "c0-r1".into(),
        read_back: keywords.clone(),
        merged: vec!["subsidy rate".into()],
        keywords,
    };
    script.tool("index_keywords", arguments, 900, ToolOutcome::Ok(ToolResult::Indexed(indexed)));
    script.moved("indexed", "responding");
}

fn refuses(script: &mut Script) {
    for cause in ["free_text", "missing_call"] {
        let text = script.words.say(24);
        script.model(None, &text, Vec::new());
        let message = "You have not searched the manual yet. Call `knowledge_base_search` before anything else.".into();
        let (step, tool) = ("knowledge_base".into(), "knowledge_base_search".into());
        script.push(0, What::FedBack(FedBack { step, tool, cause: cause.into(), message }));
    }
    script.moved("missing_again", "failed");
    let message = "The manual could not be consulted, so there is no answer.".into();
    script.end(TurnOutcome::Failed { kind: "mandatory_call_missing".into(), message });
}

pub fn trace(id: &str, scenario: &str, case: &str, lane: &Lane, seed: u64, kind: usize) -> Trace {
    let mut script = Script {
        words: Words(seed * 7_919 + 1),
        at: 0,
        turn: 0,
        conversation: 0,
        call: 0,
        state: "start",
        events: Vec::new(),
    };
    script.push(0, What::ConversationStarted { name: "main".into(), session: "s0".into(), tenant: None });
    let question = format!("What does the manual say about {}?", script.words.say(5));
    script.start(if kind == 3 { format!("{HOSTILE} {question}") } else { question });
    match kind {
        1 => {
            script.search(false, false);
            external(&mut script);
            let text = script.words.say(50);
            script.answer(true, text);
        }
        2 => refuses(&mut script),
        3 => {
            script.search(true, false);
            script.push(0, What::Degraded { without: "perplexity_search".into(), reason: HOSTILE.into() });
            script.answer(false, HOSTILE.repeat(2));
        }
        4 => script.search(false, false),
        _ => {
            script.search(false, false);
            let text = script.words.say(40);
            script.answer(false, text);
            if kind == 5 {
                script.start("And in winter?".into());
                script.search(false, true);
                let text = script.words.say(40);
                script.answer(false, text);
            }
        }
    }
    let end = if kind == 4 { TrialEnd::Error(error()) } else { TrialEnd::Completed };
    let evidence = Evidence {
        recorded_at: Some("2026-11-21T09:30:00Z".into()),
        knowledge: "sha256:7d1f0c44a1b2c3d4e5f6".into(),
        ..Evidence::new(Mode::Replay, "simulator".into(), "gpt-sim-1")
    };
    Trace {
        scenario: scenario.into(),
        case: case.into(),
        roles: crate::trace::version_1(),
        end,
        took_us: script.at,
        events: script.events,
        ..Trace::of(id.into(), lane.clone(), seed, evidence)
    }
}

pub fn error() -> TrialError {
    TrialError {
        kind: TrialErrorKind::CassetteMiss,
        message: "the system prompt changed: no recorded exchange has it".into(),
        cause: "system prompt".into(),
        detail: vec![
            "nearest: exchange 2; only the system prompt differs".into(),
            "- Always search the manual first.".into(),
            "+ Search the manual first.".into(),
            "re-record: ragcheck run scenarios/edge-cases.yaml --mode record".into(),
        ],
    }
}
