//! Recordings of other tools become lanes, whichever recorder wrote them.

use super::project::Project;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

#[test]
fn a_folder_of_several_recorders_is_imported_by_content_and_what_is_passed_over_is_counted() {
    let project = Project::shipped();
    let ask = r#"{"model": "m-1", "messages": [{"role": "user", "content": "Hello"}]}"#;
    let url = "https://models.example/v1/chat/completions";
    let stream = "data: {\"choices\": []}\n\ndata: [DONE]\n\n";
    let ruby = |answers: &[&str]| {
        let one = |answer: &&str| {
            json!({"request": {"method": "post", "uri": url, "body": {"encoding": "UTF-8", "string": ask}, "headers": {}},
                "response": {"status": {"code": 200, "message": "OK"}, "headers": {"Content-Type": ["text/event-stream"]},
                    "body": {"encoding": "ASCII-8BIT", "base64_string": STANDARD.encode(answer)}},
                "recorded_at": "Mon, 13 Jul 2026 23:11:28 GMT"})
        };
        let all: Vec<Value> = answers.iter().map(one).collect();
        json!({"http_interactions": all, "recorded_with": "VCR 6.3.1"}).to_string()
    };
    // The endings say nothing: the content does.
    project.write("theirs/ruby.yaml", &ruby(&[stream, "data: [DONE]\n\n"]));
    let go = format!(
        "version: 2\ninteractions:\n- request: {{url: '{url}', method: POST, body: '{ask}'}}\n  response: {{code: 200, body: '{{}}', headers: {{}}, duration: 1.5s}}\n"
    );
    project.write("theirs/deep/go.json", &go);
    let request = format!("POST {url} HTTP/1.1\r\nHost: models.example\r\n\r\n{ask}");
    let response = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}";
    project.write(
        "theirs/trace.yml",
        &format!("httprr trace v1\n{} {}\n{request}{response}", request.len(), response.len()),
    );
    let entry = json!({"time": 20, "request": {"method": "GET", "url": "https://cdn.example/a.js?key=planted0451", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"size": 3, "text": "a()"}}});
    let lost = json!({"request": {"method": "GET", "url": "https://cdn.example/b.js", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"size": 812}}});
    project.write("theirs/page.har", &json!({"log": {"entries": [entry, lost]}}).to_string());
    project.write("theirs/notes.md", "# no recording\n");

    let outcome = project.run(&["cassette", "import", "theirs", "--scenario", "others"]);
    outcome.expect_code(3);
    let lane = |case: &str| format!("fixtures/cassettes/others/{case}/external.base.1.yaml");
    for (file, said, case) in [
        ("theirs/ruby.yaml", "2 exchanges of Ruby VCR", "ruby"),
        ("theirs/deep/go.json", "1 exchange of go-vcr", "go"),
        ("theirs/trace.yml", "1 exchange of httprr", "trace"),
        ("theirs/page.har", "1 exchange of HAR", "page"),
    ] {
        let line = format!("{file}: {said} -> {}\n", lane(case));
        assert!(outcome.stdout.contains(&line), "{line}: {}", outcome.stdout);
    }
    assert!(
        outcome.stdout.ends_with("5 exchanges imported, 1 exchange left out; 3 of 4 files whole\n"),
        "{}",
        outcome.stdout
    );
    let again = project.run(&["cassette", "import", "theirs", "--scenario", "others", "--output", "json"]);
    let imported = super::schemas::valid("cassette", &again.stdout);
    assert_eq!(imported["files"].as_array().map(Vec::len), Some(4), "{imported}");
    for words in [
        "theirs/page.har: entry 2 not imported: the body of the response is not in the file",
        "left out: 1 exchange: the body of the response is not in the file",
        "passed over: 1 other file with names of no recording",
        "note: times are not in the file: every answer comes at once (3 exchanges)",
    ] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    let ruby = project.read(&lane("ruby"));
    let (first, second) = (ruby.find("choices").expect("the first"), ruby.rfind("[DONE]").expect("the second"));
    assert!(first < second && ruby.contains("Ruby VCR, imported by ragcheck"), "{ruby}");
    assert!(project.read(&lane("go")).contains("1500"), "{}", project.read(&lane("go")));
    assert!(!project.read(&lane("page")).contains("planted0451"), "{}", project.read(&lane("page")));

    let forced = project.run(&["cassette", "import", "theirs/ruby.yaml", "--format", "har", "--scenario", "forced"]);
    forced.expect_code(3);
    assert!(forced.stderr.contains("no `log.entries` in it; it looks like one of Ruby VCR"), "{}", forced.stderr);
}
