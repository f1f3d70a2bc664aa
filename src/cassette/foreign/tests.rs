//! Small files of every recorder: what is read from them, what is refused and why, and what broken ones do.

use super::super::base64;
use super::super::tests::PROFILE;
use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use serde_json::json;
use std::io::Write;

fn route(url: &str) -> Route {
    let path = url.trim_start_matches("https://api.example/v1").to_owned();
    let packed = |body: &[u8], _: Option<&str>| json!({"$text": String::from_utf8_lossy(body)});
    let document: Option<Document> = if url.starts_with("https://api.example/v1") { None } else { Some(packed) };
    Route { service: "model".into(), profile: &PROFILE, path, document }
}

fn read_file(file: impl AsRef<[u8]>) -> Imported {
    import(file.as_ref(), None, &route, &Redactor::default()).expect("a recording")
}

fn problem(file: impl AsRef<[u8]>, asked: Option<Format>) -> String {
    import(file.as_ref(), asked, &route, &Redactor::default()).expect_err("no recording").to_string()
}

/// Method, path, body of the request, status, body of the response.
type Row = (String, String, Value, u16, Vec<u8>);

fn rows(imported: &Imported) -> Vec<Row> {
    let row = |exchange: &Exchange| {
        let request = exchange.request.clone().expect("stored");
        let Outcome::Response { status, body, .. } = &exchange.outcome else { panic!("a response") };
        (request.method, request.path, request.body, *status, body.to_vec())
    };
    imported.exchanges.iter().map(row).collect()
}

fn reasons(imported: &Imported) -> Vec<(usize, String)> {
    imported.refused.iter().map(|refused| (refused.number, refused.why.to_string())).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).expect("memory");
    gzip.finish().expect("memory")
}

fn one(response: &Value) -> Result<(Imported, Bytes), Box<dyn std::error::Error>> {
    let request = json!({"method": "post", "uri": "https://api.example/v1/chat/completions", "headers": {},
        "body": "{\"model\": \"m-1\", \"user\": \"u\", \"messages\": []}"});
    let cassette = json!({"version": 1, "interactions": [{"request": request, "response": response}]}).to_string();
    let mut imported = read_file(cassette);
    if let Some(refused) = imported.refused.pop() {
        return Err(refused.why.into());
    }
    let Outcome::Response { body, .. } = &imported.exchanges[0].outcome else { return Err("no response".into()) };
    let body = body.clone();
    Ok((imported, body))
}

#[test]
fn packed_bodies_come_out_whatever_they_were_packed_with() {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
    deflate.write_all(b"{\"a\":1}").expect("memory");
    let deflate = base64::encode(&deflate.finish().expect("memory"));
    let long = "{\"a\":1}".repeat(40);
    for (packing, body, expected) in [
        ("gzip", json!({"base64_string": base64::encode(&gzip(b"{\"a\":1}"))}), "{\"a\":1}"),
        ("deflate", json!({"base64_string": deflate}), "{\"a\":1}"),
        ("br", json!({"base64_string": "GxcB+I3UYq2wN9YiOmF7KqYvZosELicU"}), &long),
        ("zstd", json!({"base64_string": "KLUv/QRYOQAAeyJhIjoxfUiL/DI="}), "{\"a\":1}"),
        ("gzip", json!({"string": "{\"a\":1}"}), "{\"a\":1}"),
        ("br", json!({"string": "{\"a\":1}"}), "{\"a\":1}"),
    ] {
        let response = json!({"status": {"code": 200}, "headers": {"Content-Encoding": [packing]}, "body": body});
        assert_eq!(one(&response).expect("read").1, expected.as_bytes(), "{packing}");
    }
    for (packing, why) in [("br", "is broken br"), ("zstd", "is broken zstd"), ("dcb", "compressed with dcb")] {
        let response =
            json!({"status": 200, "headers": {"content-encoding": packing}, "body": {"base64_string": "//79/A=="}});
        assert!(one(&response).expect_err(packing).to_string().contains(why), "{packing}");
    }
}

#[test]
fn bodies_under_content_and_bodies_that_are_documents_are_taken_over() {
    for (member, body, expected) in [
        ("content", json!("{\"a\": 1}"), "{\"a\": 1}"),
        ("content", json!({"a": [1, null]}), "{\"a\":[1,null]}"),
        ("body", json!({"a": 1, "string": "no wrapping"}), "{\"a\":1,\"string\":\"no wrapping\"}"),
        ("body", json!([{"a": 1}]), "[{\"a\":1}]"),
        ("body", json!({"encoding": "UTF-8", "string": "plain"}), "plain"),
    ] {
        let (imported, read) = one(&json!({"status_code": 200, "headers": {}, member: body})).expect("read");
        assert_eq!(read, expected, "{member}");
        let documents = imported.losses.keys().any(|loss| loss.contains("as documents"));
        assert_eq!(documents, !body.is_string() && body.get("encoding").is_none(), "{member} {body}");
    }
    let (imported, read) = one(&json!({"status_code": 204, "headers": {}})).expect("read");
    assert!(read.is_empty() && imported.losses.keys().any(|loss| loss.contains("no `body`")));
    let number = one(&json!({"status": 200, "body": 7})).expect_err("a number").to_string();
    assert!(number.contains("neither text nor bytes"), "{number}");
    let request = json!({"method": "POST", "uri": "https://api.example/v1/x", "body": {"model": "m", "messages": []}});
    let text = json!({"interactions": [{"request": request, "response": {"status": 200, "body": ""}}]}).to_string();
    assert_eq!(rows(&read_file(text))[0].2, json!({"model": "m", "messages": []}));
}

#[test]
fn a_key_in_a_body_is_redacted_and_the_request_is_stored_as_ours_are() {
    let response = json!({"status": {"code": 401}, "headers": {"content-type": ["text/plain"], "set-cookie": ["x"],
        "date": ["Mon, 02 Feb 2026 10:00:00 GMT"]}, "body": {"string": "no: sk-abcdefghijklmnop1234"}});
    let (imported, body) = one(&response).expect("read");
    assert_eq!(body, "no: [redacted:openai]");
    assert_eq!(imported.recorded_at.map(|at| at.to_string()).as_deref(), Some("2026-02-02T10:00:00Z"));
    assert_eq!(imported.recorded_from["model"], "api.example m-1");
    let exchange = &imported.exchanges[0];
    let request = exchange.request.as_ref().expect("stored");
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/chat/completions"));
    assert_eq!(request.body, json!({"model": "m-1", "messages": []}), "what does not count is not kept");
    let Outcome::Response { status, headers, rewritten, .. } = &exchange.outcome else { panic!("a response") };
    assert_eq!((*status, headers.len(), *rewritten), (401, 1, true));
}

const VCR_PY: &str = "interactions:\n- request:\n    body: !!binary |\n      eyJtb2RlbCI6Im0ifQ==\n    headers: {}\n    method: POST\n    uri: https://api.example/v1/x\n  \
    response:\n    body:\n      string: !!binary |\n        /wD+\n    headers: {}\n    status: {code: 200, message: OK}\n\
    - request: {body: 'a=1&b=2', headers: {}, method: POST, uri: https://api.example/v1/x}\n  response: {status: {code: 200}, body: {string: ''}, headers: {}}\n\
    - request: {body: 'a=1&b=2', headers: {}, method: POST, uri: 'http://other.example:80/login'}\n  response: {status: {code: 200}, body: {string: ''}, headers: {}}\n\
    version: 1\n";

#[test]
fn yaml_bytes_are_told_from_text_and_only_a_known_api_refuses_a_request_that_is_no_json() {
    let imported = read_file(VCR_PY);
    assert_eq!(imported.format, Format::VcrPy);
    let rows = rows(&imported);
    assert_eq!(rows[0], ("POST".into(), "/x".into(), json!({"model": "m"}), 200, vec![0xff, 0, 0xfe]));
    assert_eq!(rows[1].1, "http://other.example/login", "the port that it has anyway");
    assert_eq!(rows[1].2, json!({"$text": "a=1&b=2"}));
    assert_eq!((imported.refused[0].number, imported.refused[0].line), (2, 14));
    assert!(imported.refused[0].why.to_string().starts_with("the body of the request is no JSON document"));
}

const RUBY: &str = r#"---
http_interactions:
- request:
    method: post
    uri: https://api.example:443/v1/chat/completions
    body:
      encoding: UTF-8
      string: '{"model":"m-1","messages":[]}'
    headers: {Content-Type: [application/json]}
  response:
    status: {code: 200, message: OK}
    headers: {Content-Type: [text/event-stream]}
    body:
      encoding: UTF-8
      string: !binary |-
        ZGF0YTogeyJhIjoiw6kifQoKZGF0YTogW0RPTkVdCgo=
  recorded_at: Mon, 13 Jul 2026 23:11:28 GMT
- request:
    method: :get
    uri: https://other.example/a
    body: {encoding: US-ASCII, string: ''}
  response:
    status: {code: 404, message: Not Found}
    headers: {}
    body: {encoding: ISO-8859-1, string: "caf\u00e9"}
  recorded_at: Mon, 13 Jul 2026 23:11:29 GMT
- request:
    method: get
    uri: https://other.example/b
    body: {encoding: ASCII-8BIT, base64_string: ""}
  response:
    status: {code: 200, message: OK}
    headers: {}
    body: {encoding: ASCII-8BIT, base64_string: "iVBORw0K\n"}
  recorded_at: Mon, 13 Jul 2026 23:11:30 GMT
recorded_with: VCR 6.3.1
"#;

#[test]
fn ruby_vcr_is_read_with_symbols_bytes_base64_and_other_encodings() {
    let imported = read_file(RUBY);
    assert_eq!((imported.format, imported.refused.len()), (Format::VcrRuby, 0));
    let rows = rows(&imported);
    let stream = "data: {\"a\":\"é\"}\n\ndata: [DONE]\n\n".as_bytes().to_vec();
    let body = json!({"model": "m-1", "messages": []});
    assert_eq!(rows[0], ("POST".into(), "/chat/completions".into(), body, 200, stream));
    assert_eq!(rows[1], ("GET".into(), "https://other.example/a".into(), Value::Null, 404, b"caf\xe9".to_vec()));
    assert_eq!(rows[2].4, b"\x89PNG\r\n");
    assert_eq!(imported.recorded_at.map(|at| at.to_string()).as_deref(), Some("2026-07-13T23:11:28Z"));
    assert_eq!(imported.losses["times are not in the file: every answer comes at once"], 3);
    let cut = RUBY.split("  recorded_at: Mon, 13 Jul 2026 23:11:30").next().expect("a part");
    assert!(read_file(cut).losses.keys().any(|loss| loss.contains("may be cut off")));
    assert!(!imported.losses.keys().any(|loss| loss.contains("may be cut off")));
}

const GO: &str = r#"---
version: 2
interactions:
- id: 0
  request:
    proto: HTTP/1.1
    body: '{"model":"m-1","messages":[]}'
    form: {}
    trailer: {}
    url: https://api.example/v1/chat/completions
    method: POST
  response:
    trailer: {X-Sum: ["1"]}
    body: !!binary H4sIAAAAAAACA6tWSlSyMqwFAK+sG1YHAAAA
    headers: {Content-Encoding: [gzip], Content-Type: [application/json, text/plain]}
    status: 200 OK
    code: 200
    duration: 1m0.5s
- id: 1
  request: {body: "", form: {q: [x]}, url: https://other.example/search, method: ""}
  response: {body: 'no', headers: {}, status: 503 Service Unavailable, code: 503, duration: ""}
"#;

#[test]
fn go_vcr_is_told_from_vcr_py_and_its_durations_are_the_times_of_answers() {
    let imported = read_file(GO);
    assert_eq!((imported.format, imported.refused.len()), (Format::GoVcr, 0));
    let rows = rows(&imported);
    assert_eq!((rows[0].3, rows[0].4.as_slice()), (200, &b"{\"a\":1}"[..]));
    assert_eq!((rows[1].0.as_str(), rows[1].3, rows[1].4.as_slice()), ("GET", 503, &b"no"[..]));
    let Outcome::Response { took, .. } = imported.exchanges[0].outcome else { panic!("a response") };
    assert_eq!(took, Duration::from_millis(60_500));
    for (loss, count) in [("`trailer`", 1), ("`form`", 1), ("several values", 1), ("times are not", 1)] {
        let found = imported.losses.iter().find(|(words, _)| words.contains(loss));
        assert_eq!(found.map(|(_, count)| *count), Some(count), "{loss}");
    }
    let first = GO.replace("version: 2", "version: 1").replace("- id: 0\n  request", "- request");
    assert_eq!(read_file(first).format, Format::GoVcr);
}

fn har(creator: &str, entries: &Value) -> String {
    json!({"log": {"version": "1.2", "creator": {"name": creator}, "entries": entries}}).to_string()
}

fn entry(response: Value) -> Value {
    json!({"request": {"method": "GET", "url": "https://other.example/a", "headers": [], "bodySize": 0}, "response": response})
}

fn har_sample() -> String {
    let packed = gzip(b"{\"a\":1}");
    let (first, second) = packed.split_at(10);
    let chunks = json!([base64::encode(first), base64::encode(second)]).to_string();
    let asked = json!({"method": "POST", "url": "https://api.example/v1/chat/completions", "headers": [], "bodySize": 29,
        "postData": {"mimeType": "application/json", "text": "{\"model\":\"m-1\",\"messages\":[]}", "params": []}});
    let answered = json!({"status": 200, "headers": [{"_fromType": "array", "name": "content-encoding", "value": "gzip"},
            {"name": "x", "value": "1"}, {"name": "X", "value": "2"}],
        "content": {"mimeType": "application/json", "size": 40, "encoding": "base64", "text": chunks}});
    let hexadecimal =
        json!({"status": 200, "headers": [], "content": {"_isBinary": true, "text": "[\"00ff\",\"10\"]", "size": 3}});
    har(
        "Polly.JS",
        &json!([
            {"_id": "1", "_order": 0, "startedDateTime": "2026-01-02T03:04:05.000Z", "time": 812.5, "request": asked,
                "response": answered},
            entry(json!({"status": 204, "headers": [], "content": {"mimeType": "text/plain", "size": 0}})),
            entry(hexadecimal),
        ]),
    )
}

#[test]
fn pollys_chunks_are_joined_and_unpacked_and_its_times_are_kept() {
    let imported = read_file(har_sample());
    assert_eq!((imported.format, imported.refused.len()), (Format::Har, 0));
    let rows = rows(&imported);
    assert_eq!((rows[0].2.clone(), rows[0].4.as_slice()), (json!({"model": "m-1", "messages": []}), &b"{\"a\":1}"[..]));
    assert_eq!((rows[1].3, rows[1].4.len(), rows[2].4.as_slice()), (204, 0, &[0, 0xff, 0x10][..]));
    let Outcome::Response { took, .. } = imported.exchanges[0].outcome else { panic!("a response") };
    assert_eq!(took, Duration::from_micros(812_500));
    assert_eq!(imported.recorded_at.map(|at| at.to_string()).as_deref(), Some("2026-01-02T03:04:05Z"));
    assert!(imported.losses.keys().any(|loss| loss.contains("several values")));
}

#[test]
fn a_browsers_bodies_are_taken_as_decoded_and_what_it_did_not_keep_is_refused_with_a_reason() {
    let brotli = json!([{"name": "Content-Encoding", "value": "br"}]);
    let with = |url: &str| json!({"request": {"method": "GET", "url": url, "headers": []}, "response": {"status": 200, "headers": []}});
    let mut socket = entry(json!({"status": 101, "headers": [], "content": {}}));
    socket["_webSocketMessages"] = json!([]);
    let mut form = entry(json!({"status": 200, "headers": [], "content": {"text": "x"}}));
    form["request"]["postData"] = json!({"mimeType": "multipart/form-data", "params": [{"name": "a", "value": "1"}]});
    let text = har(
        "WebInspector",
        &json!([
            entry(json!({"status": 200, "headers": brotli, "content": {"size": 4, "text": "{\"b\""}})),
            entry(
                json!({"status": 200, "headers": brotli, "content": {"size": 3, "encoding": "base64", "text": "/wD+"}})
            ),
            entry(json!({"status": 200, "headers": [], "content": {"size": 812, "mimeType": "text/html"}})),
            entry(json!({"status": 0, "headers": [], "content": {"size": 0}})),
            entry(json!({"status": 200, "headers": [], "content": {"text": "x", "encoding": "rot13"}})),
            socket,
            form,
            with("data:image/png;base64,AA=="),
            with("ws://other.example/"),
        ]),
    );
    let imported = read_file(format!("\u{feff}{text}"));
    let bodies: Vec<Vec<u8>> = rows(&imported).into_iter().map(|row| row.4).collect();
    assert_eq!(bodies, [b"{\"b\"".to_vec(), vec![0xff, 0, 0xfe]]);
    let expected = [
        (3, "the body of the response is not in the file"),
        (4, "the response has no status"),
        (5, "encoding `rot13`"),
        (6, "WebSocket"),
        (7, "the body of the request is not in the file"),
        (8, "not of HTTP, but of `data:`"),
        (9, "not of HTTP, but of `ws:`"),
    ];
    let reasons = reasons(&imported);
    assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
    for ((number, why), (other, words)) in reasons.iter().zip(expected) {
        assert!(*number == other && why.contains(words), "{number}: {why}");
    }
}

fn trace(records: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut file = b"httprr trace v1\n".to_vec();
    for (request, response) in records {
        file.extend(format!("{} {}\n", request.len(), response.len()).into_bytes());
        file.extend_from_slice(request);
        file.extend_from_slice(response);
    }
    file
}

fn httprr_sample() -> Vec<u8> {
    let ask =
        b"POST https://api.example/v1/x HTTP/1.1\r\nHost: api.example\r\nContent-Length: 13\r\n\r\n{\"model\":\"m\"}";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}\r\n2;x=1\r\n\r\n\r\n0\r\n\r\n";
    let get = b"GET /b?q=1 HTTP/1.1\r\nHost: other.example\r\n\r\n";
    let binary = b"HTTP/2.0 200 OK\r\nVary: A\r\nVary: B\r\n\r\n\xff\x00\xfe 12 34\n5";
    trace(&[(ask, chunked), (get, binary), (ask, b"HTTP/1.1 500 Oh\r\n\r\n{\n\"b\": 2\n}")])
}

#[test]
fn httprr_is_read_by_its_lengths_and_two_answers_to_one_request_keep_their_order() {
    let file = httprr_sample();
    for file in [file.clone(), gzip(&file)] {
        let imported = read_file(&file);
        assert_eq!((imported.format, imported.refused.len()), (Format::Httprr, 0));
        let rows = rows(&imported);
        assert_eq!(rows[0], ("POST".into(), "/x".into(), json!({"model": "m"}), 200, b"{\"a\":1}\r\n".to_vec()));
        assert_eq!(
            (rows[1].1.as_str(), rows[1].4.as_slice()),
            ("https://other.example/b?q=1", &b"\xff\x00\xfe 12 34\n5"[..])
        );
        assert_eq!((rows[2].3, rows[2].4.as_slice()), (500, &b"{\n\"b\": 2\n}"[..]));
        assert_eq!(imported.exchanges[0].key, imported.exchanges[2].key);
        assert!(imported.losses.keys().any(|loss| loss.contains("several values")));
    }
}

#[test]
fn an_httprr_file_whose_line_ends_were_changed_is_read_and_says_so_and_a_cut_one_keeps_its_first_records() {
    let file = httprr_sample();
    let text: Vec<u8> = file.iter().copied().filter(|byte| *byte != b'\r').collect();
    let imported = read_file(&text);
    assert_eq!((imported.exchanges.len(), imported.refused.len()), (2, 1), "{:?}", imported.refused);
    // The chunk that is a line end has another length now.
    assert_eq!(reasons(&imported), [(1, "the chunks of the body of the response do not fit together".to_owned())]);
    assert_eq!(rows(&imported)[0].4, b"\xff\x00\xfe 12 34\n5");
    assert!(imported.losses.keys().any(|loss| loss.contains("CRLF to LF")));

    let imported = read_file(&file[..file.len() - 3]);
    assert_eq!(imported.exchanges.len(), 2);
    assert_eq!((imported.refused[0].number, imported.refused[0].line), (3, 26));
    assert!(reasons(&imported)[0].1.contains("bytes are announced and"), "{:?}", imported.refused);
    let imported = read_file([&file[..], b"nonsense\n12 POST\n", &file[16..]].concat());
    // Whether the record before the nonsense ends where it should cannot be told.
    assert_eq!((imported.exchanges.len(), reasons(&imported).len()), (5, 1), "{:?}", imported.refused);
    assert_eq!(read_file(b"httprr trace v1\n").exchanges.len(), 0);
}

#[test]
fn a_format_can_be_asked_for_and_other_files_say_what_they_lack() {
    for (file, asked, why) in [
        ("interactions: [", None, "not YAML: line 1: "),
        ("a: 1\n---\nb: 2\n", None, "several documents"),
        ("{\"log\": {\"entries\": [", None, "not JSON: EOF while parsing a list at line 1 column 21"),
        ("{\"log\": {}}", None, "no list of `interactions` (VCR.py, go-vcr)"),
        ("a: 1", Some(Format::VcrPy), "not a recording of VCR.py: no `interactions` in it"),
        (RUBY, Some(Format::Har), "no `log.entries` in it; it looks like one of Ruby VCR: leave out --format"),
        ("httprr trace v1\n", Some(Format::GoVcr), "it looks like one of httprr"),
    ] {
        let said = problem(file, asked);
        assert!(said.contains(why), "{file}: {said}");
    }
    assert!(problem(b"interactions: \xff", None).contains("byte 15 is not UTF-8"));
    assert!(problem(&gzip(RUBY.as_bytes())[..40], None).contains("is broken gzip"));
    let asked = import(GO.as_bytes(), Some(Format::GoVcr), &route, &Redactor::default()).expect("go-vcr");
    assert_eq!(asked.exchanges.len(), 2);
}

#[test]
fn a_file_cut_or_changed_anywhere_is_an_error_with_a_place_or_a_part_of_what_it_was() {
    let samples: [(&str, Vec<u8>); 5] = [
        ("VCR.py", VCR_PY.into()),
        ("Ruby VCR", RUBY.into()),
        ("go-vcr", GO.into()),
        ("HAR", har_sample().into()),
        ("httprr", httprr_sample()),
    ];
    for (name, file) in samples {
        let whole = read_file(&file);
        let (known, most) = (rows(&whole), whole.exchanges.len() + whole.refused.len());
        for step in 0..200 {
            let at = file.len() * step / 200;
            match import(&file[..at], None, &route, &Redactor::default()) {
                Err(why) => assert!(!why.to_string().is_empty(), "{name} cut at {at}"),
                Ok(part) => {
                    assert!(part.exchanges.len() + part.refused.len() <= most, "{name} cut at {at}");
                    let rows = rows(&part);
                    let sound = rows.len().saturating_sub(usize::from(part.refused.is_empty()));
                    assert!(known.starts_with(&rows[..sound]), "{name} cut at {at}: {rows:?}");
                }
            }
            for flipped in [0x01, 0x20, 0x80, 0xff] {
                let mut broken = file.clone();
                broken[at] ^= flipped;
                if let Ok(part) = import(&broken, None, &route, &Redactor::default()) {
                    assert!(part.exchanges.len() + part.refused.len() <= most + 1, "{name} changed at {at}");
                }
            }
        }
    }
}
