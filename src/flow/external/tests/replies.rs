//! Answers in replies of every content type.

use crate::flow::external::reply::{AnswerAt, Lack, Unread, read};
use crate::transport::HttpResponse;
use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;

fn answer(kind: &str, body: &str, answer: &AnswerAt) -> Result<(String, Value), Unread> {
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    let body = Bytes::copy_from_slice(body.as_bytes());
    read(&HttpResponse { status: 200, headers, body, took: Duration::ZERO, chunks: Vec::new() }, answer)
}

fn text(kind: &str, body: &str) -> String {
    answer(kind, body, &AnswerAt::Pointer("/answer".into())).expect(body).0
}

#[test]
fn json_plain_text_and_streams_of_the_usual_shapes_are_read() {
    for (kind, body) in [
        ("application/json", r#"{"answer":"It is 60 months."}"#),
        ("application/json", r#""It is 60 months.""#),
        ("text/plain; charset=utf-8", "It is 60 months.\n"),
        ("text/html; charset=UTF-8", "It is 60&#32;months."),
        (
            "text/plain; charset=utf-8",
            "f:{\"messageId\":\"m\"}\n0:\"It is \"\n0:\"60 months.\"\nd:{\"finishReason\":\"stop\"}\n",
        ),
        ("application/x-ndjson", "{\"answer\":\"It is \"}\n{\"answer\":\"60 months.\"}\n{\"done\":true}\n"),
        (
            "application/x-ndjson",
            "{\"message\":{\"content\":\"It is \"}}\n{\"message\":{\"content\":\"60 months.\"}}\n",
        ),
        ("application/json", "[{\"answer\":\"It is \"},{\"answer\":\"60 months.\"}]"),
        ("text/event-stream", "data: It is\n\ndata:  60 months.\n\n"),
        ("text/event-stream", "data: \"It is \"\n\ndata: \"60 months.\"\n\n"),
        ("text/event-stream", "data: {\"answer\":\"It is \"}\n\ndata: {\"answer\":\"60 months.\"}\n\ndata: [DONE]\n\n"),
        ("text/event-stream", "data: {\"answer\":\"It is\"}\n\ndata: {\"answer\":\"It is 60 months.\"}\n\n"),
        (
            "text/event-stream",
            "data: {\"choices\":[{\"delta\":{\"content\":\"It is \"}}]}\n\ndata: \
             {\"choices\":[{\"delta\":{\"content\":\"60 months.\"}}]}\n\ndata: [DONE]",
        ),
        (
            "text/event-stream",
            "data: {\"type\":\"reasoning-delta\",\"delta\":\"hm\"}\n\ndata: \
             {\"type\":\"text-delta\",\"delta\":\"It is \"}\n\ndata: {\"type\":\"text-delta\",\"delta\":\"60 months.\"}\n\n",
        ),
        (
            "text/event-stream",
            "data: {\"type\":\"THINKING_TEXT_MESSAGE_CONTENT\",\"delta\":\"hm\"}\n\ndata: \
             {\"type\":\"TEXT_MESSAGE_CONTENT\",\"delta\":\"It is 60 months.\"}\n\ndata: {\"type\":\"RUN_FINISHED\"}\n\n",
        ),
        (
            "text/event-stream",
            "data: {\"type\":\"reasoning-delta\",\"payload\":{\"text\":\"hm\"}}\n\ndata: \
             {\"type\":\"text-delta\",\"payload\":{\"text\":\"It is 60 months.\"}}\n\n",
        ),
        (
            "text/event-stream",
            "event: token\ndata: {\"delta\":\"It \"}\n\nevent: done\ndata: {\"answer\":\"It is 60 months.\"}\n\n",
        ),
    ] {
        assert_eq!(text(kind, body), "It is 60 months.", "{body}");
    }
    let in_two = r#"data: {"answer":"By \ud83d"}"#.to_owned() + "\n\n" + r#"data: {"answer":"\udeb2."}"# + "\n\n";
    assert_eq!(text("text/event-stream", &in_two), "By 🚲.", "JavaScript cuts texts within an emoji");
    assert_eq!(text("application/json", r#"{"answer":"By \ud83d"}"#), "By \u{fffd}");
    let chat = r#"{"choices":[{"message":{"role":"assistant","content":"It is 60 months."}}]}"#;
    assert_eq!(answer("application/json", chat, &AnswerAt::OpenAi).expect("an answer").0, "It is 60 months.");
}

#[test]
fn at_a_pointer_only_events_of_the_text_count() {
    let body = "data: {\"type\":\"TOOL_CALL_ARGS\",\"delta\":\"{\\\"q\\\": 80}\"}\n\ndata: \
                {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"80\"}\n\ndata: \
                {\"type\":\"answer\",\"delta\":\"It is 60 months.\"}\n\n";
    let found = answer("text/event-stream", body, &AnswerAt::Pointer("/delta".into())).expect("an answer");
    assert_eq!(found.0, "It is 60 months.");
}

#[test]
fn a_stream_that_ends_with_an_error_is_no_answer_and_one_that_goes_on_after_it_is() {
    for (kind, body) in [
        (
            "text/event-stream",
            "data: {\"delta\":\"It is \"}\n\nevent: error\ndata: {\"message\":\"overloaded\"}\n\ndata: [DONE]\n\n",
        ),
        ("text/event-stream", "event: error\ndata: overloaded\n\n"),
        (
            "text/event-stream",
            "data: {\"answer\":\"It is \"}\n\ndata: {\"error\":\"overloaded\"}\n\nevent: done\ndata: {}\n\n",
        ),
        (
            "text/event-stream",
            "data: {\"type\":\"text-delta\",\"delta\":\"It\"}\n\ndata: {\"type\":\"error\",\"errorText\":\"overloaded\"}\n\n",
        ),
        (
            "text/event-stream",
            "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"delta\":\"It\"}\n\ndata: {\"type\":\"RUN_ERROR\",\"message\":\"overloaded\"}\n\n",
        ),
        (
            "text/event-stream",
            "data: {\"type\":\"text-delta\",\"delta\":\"It\"}\n\ndata: {\"type\":\"abort\",\"reason\":\"overloaded\"}\n\n",
        ),
        ("text/plain", "0:\"It is \"\n3:\"overloaded\"\n"),
    ] {
        let why = answer(kind, body, &AnswerAt::Pointer("/answer".into())).expect_err(body);
        let told = why.to_string();
        assert!(
            why.lack == Lack::Success && told.contains("ends with an error; it says: ") && told.contains("overloaded"),
            "{told}"
        );
    }
    for (kind, body) in [
        ("text/event-stream", "event: error\ndata: {\"tool\":\"down\"}\n\ndata: {\"answer\":\"It is 60 months.\"}\n\n"),
        ("text/event-stream", "data: {\"answer\":\"It is 60 months.\",\"error\":null}\n\n"),
        ("text/event-stream", "data: {\"answer\":\"It is 60 months.\"}\n\ndata: {\"error\":null}\n\n"),
        ("text/plain", "3:\"tool down\"\n0:\"It is 60 months.\"\n"),
    ] {
        assert_eq!(text(kind, body), "It is 60 months.", "{body}");
    }
}

#[test]
fn a_stream_that_begins_as_a_usual_client_expects_lacks_its_end_or_its_words() {
    let stream = |events: &[&str]| events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    for (begin, piece, end) in [
        (r#"{"type":"start-step"}"#, r#"{"type":"text-delta","delta":"60 months"}"#, r#"{"type":"finish"}"#),
        (r#"{"type":"start-step"}"#, r#"{"type":"text-delta","delta":"60 months"}"#, "[DONE]"),
        (
            r#"{"type":"response.created"}"#,
            r#"{"type":"response.output_text.delta","delta":"60 months"}"#,
            r#"{"type":"response.completed"}"#,
        ),
        (
            r#"{"type":"RUN_STARTED"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","delta":"60 months"}"#,
            r#"{"type":"RUN_FINISHED"}"#,
        ),
    ] {
        assert_eq!(text("text/event-stream", &stream(&[begin, piece, end])), "60 months", "{begin}");
        let lack = |events: &[&str]| {
            let read = answer("text/event-stream", &stream(events), &AnswerAt::Pointer("/answer".into()));
            read.expect_err(begin).lack
        };
        assert_eq!(lack(&[begin, piece]), Lack::End, "{begin}");
        let is_marked = end != "[DONE]";
        assert_eq!(lack(&[begin, end]), if is_marked { Lack::Words } else { Lack::Answer }, "{begin}");
        let data = r#"{"type":"data-answer","data":{"text":"60 months"}}"#;
        assert_eq!(lack(&[begin, data, end]), Lack::Answer, "its answer may be elsewhere: {begin}");
        for own in [
            stream(&[r#"{"type":"start"}"#, piece, r#"{"type":"end"}"#]),
            stream(&[begin, piece, r#"{"type":"done"}"#]),
            stream(&[begin, piece]) + "event: end\ndata: {}\n\n",
        ] {
            assert_eq!(text("text/event-stream", &own), "60 months", "a stream of another form: {own}");
        }
    }
    for whole in [
        &[r#"{"choices":[{"delta":{"role":"assistant"}}]}"#, r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#][..],
        &[r#"{"type":"message_start"}"#, r#"{"type":"message_stop"}"#],
    ] {
        let read = answer("text/event-stream", &stream(whole), &AnswerAt::Pointer("/answer".into()));
        assert_eq!(read.expect_err("is empty").lack, Lack::Words, "{whole:?}");
    }
    for (kind, lack) in [("text/plain; charset=utf-8", Lack::Words), ("", Lack::Answer), ("text/html", Lack::Answer)] {
        let read = answer(kind, "", &AnswerAt::Pointer("/answer".into()));
        assert_eq!(read.expect_err("is empty").lack, lack, "{kind}");
    }
    let relayed = r#"{"choices":[{"delta":{"content":"60 months"},"finish_reason":null}]}"#;
    assert_eq!(text("text/event-stream", &stream(&[relayed])), "60 months", "its last chunk has no text");
}

#[test]
fn what_a_program_prints_that_crashed_is_no_answer() {
    let page = "<br />\n<b>Fatal error</b>:  Uncaught Error: Call to undefined function foo() in /app/index.php:36\nStack trace:\n#0 {main}\n  thrown in <b>/app/index.php</b> on line <b>36</b><br />\n";
    for (kind, body) in [
        ("text/html; charset=UTF-8", page.to_owned()),
        ("text/plain", format!("It is 60 months.{page}").replace("<br />\n", "\n<br />\n")),
        ("application/json", format!("{{\"answer\":\"It is 60 months.\"}}\n{page}")),
        ("text/plain", "PHP Fatal error:  Uncaught Error: no index in /app/a.php on line 3\n".to_owned()),
        ("text/plain", "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'a'".to_owned()),
    ] {
        let read = answer(kind, &body, &AnswerAt::Pointer("/answer".into()));
        assert_eq!(read.expect_err("is an error").lack, Lack::Success, "{body}");
    }
    for fine in [
        "A fatal error: what now? See the log on line 3 of the page.",
        "If x < 3, it is < 5.",
        "Your plugin prints this:\n\nParse error: syntax error, unexpected end of file in a.php on line 12",
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'a'\n\nThe key is missing: add it to the file.",
        "Fatal error: Maximum execution time exceeded is fixed by a higher limit. See the manual on line 3",
    ] {
        assert_eq!(text(if fine.contains('<') { "text/html" } else { "text/plain" }, fine), fine);
    }
}

#[test]
fn a_reply_that_cannot_be_read_says_its_content_type_and_its_beginning() {
    for (kind, body, words) in [
        (
            "text/html",
            "<html>Sign in",
            "(text/html) is neither JSON, events nor plain text; it begins with: <html>Sign in",
        ),
        (
            "application/json",
            r#"{"reply":"x"}"#,
            r#"(application/json) has no text at /answer; it begins with: {"reply":"x"}"#,
        ),
        (
            "application/json",
            r#"{"answer":"\x"}"#,
            r#"(application/json) is no JSON: invalid escape at line 1 column 13; it begins with: {"answer":"\x"}"#,
        ),
        (
            "application/json",
            r#"{"answer":" \n"}"#,
            "(application/json) has an empty text at /answer; it begins with: ",
        ),
        ("application/json", "", "(application/json) is neither JSON, events nor plain text; it is empty"),
        ("text/event-stream", ": ping\n\n", "(text/event-stream) holds no text in its events"),
    ] {
        let why = answer(kind, body, &AnswerAt::Pointer("/answer".into())).expect_err(body).to_string();
        assert!(why.contains(words), "{why}");
    }
}
