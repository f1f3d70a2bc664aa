//! `ragcheck review`: what it shows, whom it refuses, and the ratings file that it writes. The keys are tried in `browser`.

use super::project::{Outcome, Project};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A review that is stopped with the test.
pub struct Review {
    child: Child,
    /// With the token.
    pub address: String,
    /// What it printed before.
    pub told: String,
}

impl Review {
    pub fn start(project: &Project, more: &[&str]) -> Self {
        let arguments: Vec<&str> = ["review", "reports/latest"].iter().chain(more).copied().collect();
        let mut command = project.command(&arguments);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the review");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let mut review = Self { child, address: String::new(), told: String::new() };
        while review.address.is_empty() {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {}", review.told)).expect("a line");
            match line.strip_prefix("review: ") {
                Some(address) => review.address = String::from(address),
                None => review.told += &(line + "\n"),
            }
        }
        review
    }

    fn host(&self) -> &str {
        self.address["http://".len()..].split('/').next().expect("a host")
    }

    /// One request below the token: status and text, its head too.
    fn ask(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let (method, path) = line.split_once(' ').expect("method and path");
        let token = self.address.trim_end_matches('/').rsplit('/').next().expect("a token");
        let path = path.replace("TOKEN", token);
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.host()) };
        let mut stream = TcpStream::connect(self.host()).expect("a connection");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, text)
    }
}

impl Drop for Review {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The shipped project with a run of the scenarios that answer from both sources, graded.
pub fn graded() -> Project {
    let project = Project::shipped();
    project.run(&["run", "scenarios/external.yaml", "scenarios/keywords.yaml", "--no-history"]);
    // `latest` is the newest whole run; part of the suite is one of its scenarios.
    project.run(&["judge", "reports/latest"]);
    assert!(project.path("reports/latest/grades.jsonl").exists(), "the answers are graded");
    project
}

/// Trial, rating and how it was drawn.
pub fn rows(project: &Project) -> Vec<[String; 3]> {
    let text = project.read("ratings.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let all = reader.records().map(|row| row.expect("a row"));
    all.map(|row| [0, 1, 2].map(|column| row[column].to_owned())).collect()
}

#[test]
fn a_rating_is_written_at_once_and_a_review_that_was_killed_goes_on_where_it_was() {
    let project = graded();
    let review = Review::start(&project, &["--sample", "5", "--disagreements", "2"]);
    assert!(review.told.contains("5 of them a random sample"), "{}", review.told);
    let (status, text) = review.ask("GET /TOKEN/", "", "");
    assert!(status == 303 && text.to_lowercase().contains("location: /") && text.contains("/1\r\n"), "{text}");
    let (_, shown) = review.ask("GET /TOKEN/1", "", "");
    for blind in ["tool-rag", "external/", "keywords/", "PASS", "inconsistent", "base.1"] {
        assert!(!shown.contains(blind), "{blind} in\n{shown}");
    }
    assert!(shown.contains("frame-ancestors 'none'") && !shown.contains("https://fonts"), "{shown}");
    for (number, satisfied) in [(1, "yes"), (2, "no"), (3, "yes")] {
        let (status, text) = review.ask(&format!("POST /TOKEN/{number}"), "", &format!("satisfied={satisfied}"));
        assert!(status == 303 && text.contains(&format!("/{}\r\n", number + 1)), "{text}");
        assert_eq!(rows(&project).len(), number, "each is written at once");
    }
    let first = rows(&project);
    assert!(first[..2].iter().all(|row| row[2] == "disagreement" || row[2] == "random"), "{first:?}");
    assert_eq!(first[2][2], "random");
    drop(review);
    let review = Review::start(&project, &["--sample", "5", "--disagreements", "2"]);
    let (_, text) = review.ask("GET /TOKEN/", "", "");
    assert!(text.contains("/4\r\n"), "{text}");
    let (_, text) = review.ask("POST /TOKEN/2", "", "satisfied=yes");
    assert!(text.contains("/4\r\n"), "a changed rating leads on: {text}");
    let now = rows(&project);
    assert_eq!((now.len(), &now[1][1]), (3, &"yes".to_owned()));
    // Ratings of disagreements count in no figure; the others do.
    project.edit("ragcheck.yaml", "not_measured_ok: [SC-004]", "ratings: ratings.csv");
    project.run(&["run", "scenarios/external.yaml", "scenarios/keywords.yaml", "--no-history"]);
    let run = project.latest("run.json");
    let row = run["criteria"].as_array().and_then(|rows| rows.iter().find(|row| row["id"] == "SC-004"));
    let random = now.iter().filter(|row| row[2] == "random").count();
    assert_eq!(row.expect("SC-004")["n"], random, "{now:?}");
}

#[test]
fn two_people_rate_at_the_same_time_into_one_file_and_no_rating_is_lost() {
    let project = graded();
    let options = ["--sample", "16", "--disagreements", "0"];
    let reviews = [Review::start(&project, &options), Review::start(&project, &options)];
    std::thread::scope(|scope| {
        for (first, review) in [1, 9].into_iter().zip(&reviews) {
            scope.spawn(move || {
                for number in first..first + 8 {
                    let (status, text) = review.ask(&format!("POST /TOKEN/{number}"), "", "satisfied=yes");
                    assert_eq!(status, 303, "{text}");
                }
            });
        }
    });
    assert_eq!(rows(&project).len(), 16);
}

#[test]
fn other_pages_other_hosts_wrong_tokens_and_other_bodies_are_refused_and_write_nothing() {
    let project = graded();
    let review = Review::start(&project, &["--sample", "3"]);
    let yes = "satisfied=yes";
    let own = format!("Origin: http://{}\r\n", review.host());
    assert_eq!(review.ask("POST /TOKEN/1", &own, yes).0, 303, "its own page");
    let before = project.read("ratings.csv");
    for (line, headers, body, status) in [
        ("POST /TOKEN/2", "Origin: https://evil.example\r\n", yes, 403),
        ("POST /TOKEN/2", "Origin: null\r\n", yes, 403),
        ("GET /TOKEN/2", "Host: evil.example:80\r\n", "", 403),
        ("POST /TOKEN/2", "Host: evil.example\r\nOrigin: http://evil.example\r\n", yes, 403),
        ("POST /0123456789abcdef0123456789abcdef/2", "", yes, 404),
        ("GET /", "", "", 404),
        ("GET /TOKEN/999", "", "", 404),
        ("GET /TOKEN/x", "", "", 404),
        ("GET /TOKEN/1/2", "", "", 404),
        ("POST /TOKEN/2", "", "satisfied=maybe", 400),
        ("POST /TOKEN/2", "", "", 400),
        ("POST /TOKEN/0", "", yes, 405),
        ("DELETE /TOKEN/2", "", "", 405),
    ] {
        let (found, text) = review.ask(line, headers, body);
        assert_eq!(found, status, "{line} {headers:?}: {text}");
    }
    assert_eq!(project.read("ratings.csv"), before);
}

#[test]
fn a_run_without_such_answers_and_a_file_that_is_no_table_are_explained() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/two-stage.yaml", "--no-history"]);
    let refused = |arguments: &[&str], words: &str| {
        let Outcome { code, stderr, .. } = project.run(arguments);
        assert!(code == 2 && stderr.contains(words), "{code}: {stderr}");
    };
    refused(&["review"], "--all shows every answer");
    project.write("notes.csv", "a,b\n1,2\n");
    refused(&["review", "--all", "--ratings", "notes.csv"], "the columns `trial` and `satisfied`");
    assert_eq!(project.read("notes.csv"), "a,b\n1,2\n");
    // What `ragcheck run` refuses, with the same words.
    let broken = "trial,satisfied\na,yes\na,no\nb,maybe\n";
    project.write("ratings.csv", broken);
    project.edit("ragcheck.yaml", "not_measured_ok: [SC-004]", "ratings: ratings.csv");
    for arguments in [&["review", "--all"][..], &["run", "--no-history"]] {
        refused(arguments, "the trial `a` is rated twice");
        refused(arguments, "ratings.csv:3:1");
        refused(arguments, "found `maybe`");
    }
    assert_eq!(project.read("ratings.csv"), broken);
}
