//! Projects of strangers that mean harm (`tests/hostile/*.yaml`): what they try fails with a message that says why, within
//! seconds and little memory; a canary file and planted keys stand in nothing that is written or printed, nothing beside
//! the project changes, and nobody is spoken to.

use super::project::copy;
use crate::program::program;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Stands in every file beside the project.
const CANARY: &str = "canary-5b1d9e";
/// Stands in the environment, as keys.
const PLANTED: [(&str, &str); 4] = [
    ("OPENAI_API_KEY", "sk-planted-openai-7d41"),
    ("ANTHROPIC_API_KEY", "sk-planted-anthropic-7d42"),
    ("DEPLOY_PASSWORD", "planted-deploy-7d43"),
    ("CHAT_KEY", "planted-chat-7d44"),
];
/// What hangs is ended after this.
const LONGEST: Duration = Duration::from_secs(90);
/// Time of processors, in hundredths of a second: what has no bound takes minutes. This build is unoptimised, the other is
/// about 15 times as fast; and a processor that two programs share takes twice as long for the same work.
const MOST_WORK: u64 = 3_000;
/// Memory at its highest, in KiB.
const MOST_MEMORY: u64 = 300 * 1024;

/// One project. `OUTSIDE` in any text is the folder beside it that holds the canary, `HOST` a server that nobody may call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hostile {
    /// What it tries.
    tries: String,
    /// Files that are written, by path.
    #[serde(default)]
    write: BTreeMap<String, String>,
    /// Texts of files that are replaced: file, what, by what.
    #[serde(default)]
    edit: Vec<[String; 3]>,
    /// Symbolic links, by path, with where they lead; what stands there is moved away first.
    #[serde(default)]
    link: BTreeMap<String, String>,
    /// Hard links, by path, with what they are another name of.
    #[serde(default)]
    hard: BTreeMap<String, String>,
    /// Databases: file, and the statements that make it; `KEYWORDS` stands for those of a keyword index.
    #[serde(default)]
    sql: Vec<[String; 2]>,
    /// Named pipes: who opens one waits for ever.
    #[serde(default)]
    pipe: Vec<String>,
    /// Texts that are written many times over: file, head, repeated part (`NUMBER` counts), how often.
    #[serde(default)]
    long: Vec<(String, String, String, usize)>,
    /// Last lines of files, by path.
    #[serde(default)]
    tail: BTreeMap<String, String>,
    /// What is typed.
    run: Vec<String>,
    /// The exit code.
    code: i32,
    /// What is said, on either stream.
    says: Vec<String>,
}

struct Outcome {
    code: i32,
    said: String,
    took: Duration,
    work: u64,
    memory: u64,
}

/// Every regular file below, with its bytes; links are not followed.
fn content(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            found.insert(entry.path(), Vec::new());
            content(&entry.path(), found);
        } else if kind.is_file() {
            found.insert(entry.path(), fs::read(entry.path()).expect("a file"));
        }
    }
}

fn set_up(hostile: &Hostile, root: &Path, outside: &Path, host: &str) {
    let put = |text: &str| text.replace("OUTSIDE", &outside.display().to_string()).replace("HOST", host);
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken/project");
    copy(&base, root);
    let place = |file: &str| {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        path
    };
    for (file, text) in &hostile.write {
        fs::write(place(file), put(text)).expect("written");
    }
    for [file, from, to] in &hostile.edit {
        let text = fs::read_to_string(root.join(file)).expect("a file");
        assert!(text.contains(from), "{}: {file} has no {from:?}", hostile.tries);
        fs::write(root.join(file), text.replacen(from, &put(to), 1)).expect("written");
    }
    let mut made: Option<(&str, usize, String)> = None;
    for (file, head, part, times) in &hostile.long {
        // Files that differ in their names alone are made once.
        let parts = match made.take() {
            Some((before, so_often, parts)) if before == part && so_often == *times => parts,
            _ => repeated(part, *times),
        };
        fs::write(place(file), put(head) + &parts).expect("written");
        made = Some((part, *times, parts));
    }
    for (file, last) in &hostile.tail {
        let text = fs::read_to_string(root.join(file)).expect("a file");
        fs::write(root.join(file), text + last).expect("written");
    }
    for file in &hostile.pipe {
        let path = place(file);
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success(), "{file}");
    }
    for (file, target) in &hostile.hard {
        let path = place(file);
        let _ = fs::remove_file(&path);
        fs::hard_link(put(target), path).expect("a link");
    }
    for [file, statements] in &hostile.sql {
        let ours = if statements.contains("KEYWORDS") { keywords(root) } else { String::new() };
        let database = rusqlite::Connection::open(place(file)).expect("a database");
        database.execute_batch(&statements.replace("KEYWORDS", &ours)).expect("made");
    }
    for (file, target) in &hostile.link {
        let path = place(file);
        if path.symlink_metadata().is_ok() {
            fs::rename(&path, path.with_extension("before")).expect("moved");
        }
        std::os::unix::fs::symlink(put(target), path).expect("a link");
    }
}

/// The text so many times, with the number of each in place of `NUMBER`.
fn repeated(part: &str, times: usize) -> String {
    let between: Vec<&str> = part.split("NUMBER").collect();
    if between.len() == 1 {
        return part.repeat(times);
    }
    (0..times).map(|number| between.join(&number.to_string())).collect()
}

/// How many names a file has.
fn names(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(&fs::metadata(path).expect("a file"))
}

/// The statements that make a keyword index as this build makes it.
fn keywords(root: &Path) -> String {
    let file = root.join("made.sqlite");
    ragcheck::internals::knowledge::KeywordIndex::in_file(&file).list().expect("a keyword index");
    let made = rusqlite::Connection::open(&file).expect("opens");
    let number = |pragma: &str| made.query_row(pragma, [], |row| row.get::<_, i64>(0)).expect("a number");
    let (application, version) = (number("PRAGMA application_id"), number("PRAGMA user_version"));
    let mut select = made.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").expect("a schema");
    let statements = select.query_map([], |row| row.get::<_, String>(0)).expect("a schema");
    let statements: Vec<String> = statements.map(|one| one.expect("a statement")).collect();
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(root.join(format!("made.sqlite{end}")));
    }
    format!("PRAGMA application_id = {application}; PRAGMA user_version = {version}; {};", statements.join(";"))
}

/// Runs the binary, and looks how much memory it holds meanwhile.
fn run(hostile: &Hostile, root: &Path, outside: &Path, host: &str, beside: &Path) -> Outcome {
    let put = |text: &str| text.replace("OUTSIDE", &outside.display().to_string()).replace("HOST", host);
    let said = beside.join("said");
    let out = File::create(&said).expect("a file");
    let mut command = Command::new(program());
    command.args(hostile.run.iter().map(|typed| put(typed))).current_dir(root).envs(PLANTED);
    command
        .env_remove("RAGCHECK_TRUST")
        .env("XDG_CONFIG_HOME", outside.join("settings"))
        .env("XDG_STATE_HOME", beside.join("state"))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "400")
        .env("RAGCHECK_NOW", "2026-12-01T00:00:00Z");
    command.stdin(Stdio::null()).stderr(out.try_clone().expect("a file")).stdout(out);
    let began = Instant::now();
    let mut child = command.spawn().expect("it starts");
    let (mut memory, mut work) = (0, 0);
    let code = loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        memory = memory.max(peak.unwrap_or(0));
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        let numbers = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
        work = work.max(numbers.filter_map(|ticks| ticks.parse::<u64>().ok()).sum());
        if let Some(status) = child.try_wait().expect("a status") {
            break status.code().unwrap_or(-1);
        }
        if began.elapsed() > LONGEST {
            child.kill().expect("ended");
            break -9;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = String::from_utf8_lossy(&fs::read(said).expect("what it said")).into_owned();
    Outcome { code, said: text, took: began.elapsed(), work, memory }
}

/// What a project took: `FIGURES=1 cargo test --test suite -- hostile --nocapture`.
#[expect(clippy::print_stdout, reason = "asked for")]
fn print(hostile: &Hostile, outcome: &Outcome) {
    let Outcome { took, work, memory, .. } = outcome;
    println!("{work:5} hundredths of a second, {memory:7} KiB, {took:?}: {}", hostile.tries);
}

/// What is wrong with how a project was met.
fn mistakes(hostile: &Hostile) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().canonicalize().expect("a path");
    let (root, outside, beside) = (folder.join("project"), folder.join("outside"), folder.join("beside"));
    for (file, text) in [
        ("canary.md", format!("# {CANARY}\n\nThe {CANARY} sings.\n")),
        ("canary.yaml", format!("scenario: {CANARY}\n{CANARY}: [\n")),
        ("canary.csv", format!("trial,{CANARY}\n{CANARY},yes\n")),
        ("run/plan.json", format!("{{\"{CANARY}\": 1}}")),
        ("run/keep.txt", CANARY.to_owned()),
    ] {
        let path = outside.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    fs::create_dir_all(&beside).expect("a folder");
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    server.set_nonblocking(true).expect("it does not wait");
    let host = server.local_addr().expect("an address").to_string();
    set_up(hostile, &root, &outside, &host);
    let mut before = BTreeMap::new();
    content(&outside, &mut before);
    let outcome = run(hostile, &root, &outside, &host, &beside);
    if std::env::var_os("FIGURES").is_some() {
        print(hostile, &outcome);
    }
    let mut wrong = Vec::new();
    if outcome.code != hostile.code {
        wrong.push(format!("exit code {} and not {}", outcome.code, hostile.code));
    }
    for words in &hostile.says {
        if !outcome.said.contains(words) {
            wrong.push(format!("it does not say {words:?}"));
        }
    }
    if outcome.took >= LONGEST || outcome.work > MOST_WORK || outcome.memory > MOST_MEMORY {
        let Outcome { took, work, memory, .. } = outcome;
        wrong.push(format!("it took {took:?}, {work} hundredths of a second of work and {memory} KiB"));
    }
    if outcome.said.chars().any(|letter| letter.is_control() && letter != '\n') {
        wrong.push("it commands the terminal".to_owned());
    }
    let mut after = BTreeMap::new();
    content(&outside, &mut after);
    if after != before {
        wrong.push("what lies beside the project was changed".to_owned());
    }
    let mut written = BTreeMap::from([(PathBuf::from("its output"), outcome.said.clone().into_bytes())]);
    content(&root, &mut written);
    let (mut pages, mut tables) = (0, 0);
    // A hard link is the file that it is a link of, as long as nothing took its place.
    written.retain(|path, _| !hostile.hard.keys().any(|file| root.join(file) == *path && names(path) > 1));
    for (path, bytes) in &written {
        for secret in PLANTED.iter().map(|(_, value)| *value).chain([CANARY]) {
            if memchr::memmem::find(bytes, secret.as_bytes()).is_some() {
                wrong.push(format!("{} holds {secret}", path.display()));
            }
        }
    }
    for (path, bytes) in &written {
        let is_read = |end: &std::ffi::OsStr| end == "html" || end == "csv";
        if !path.extension().is_some_and(is_read) {
            continue;
        }
        let text = String::from_utf8_lossy(bytes);
        match path.extension().and_then(|end| end.to_str()) {
            // What a page holds of a stranger is text: it opens no element and ends no attribute.
            Some("html") => {
                let opens = ["<img src=x", "<script>alert", "<svg/onload", "href=\"javascript:"];
                wrong.extend(
                    opens
                        .iter()
                        .filter(|part| text.contains(**part))
                        .map(|part| format!("{} holds {part}", path.display())),
                );
                pages += 1;
            }
            Some("csv") if path.starts_with(root.join("reports")) => {
                let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
                for row in rows.records() {
                    for cell in &row.expect("a row") {
                        let begins = cell.trim_start_matches(' ').starts_with(['=', '+', '-', '@', '\t', '\r']);
                        // The operator of a target; a sign of equality alone is no formula.
                        if begins && cell != "=" && cell.parse::<f64>().is_err() {
                            wrong.push(format!("{} holds the formula {cell:?}", path.display()));
                        }
                    }
                }
                tables += 1;
            }
            _ => {}
        }
    }
    if hostile.says.iter().any(|words| words.contains("report: ")) && (pages == 0 || tables == 0) {
        wrong.push(format!("{pages} pages and {tables} tables were looked at"));
    }
    if server.accept().is_ok() {
        wrong.push("a host was spoken to".to_owned());
    }
    if !wrong.is_empty() {
        wrong.push(format!("it said:\n{}", outcome.said));
    }
    wrong
}

fn hold(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile").join(file);
    let text = fs::read_to_string(path).expect(file);
    let projects: Vec<Hostile> = serde_saphyr::from_str(&text).expect(file);
    assert!(!projects.is_empty());
    let mut all = Vec::new();
    for hostile in &projects {
        let wrong = mistakes(hostile);
        if !wrong.is_empty() {
            all.push(format!("== {}\n{}", hostile.tries, wrong.join("\n")));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n\n"));
}

#[test]
fn no_key_of_a_file_leads_out_of_the_project() {
    hold("paths.yaml");
}

#[test]
fn no_key_goes_to_a_host_that_nobody_named() {
    hold("keys.yaml");
}

#[test]
fn nothing_that_people_write_exhausts_the_machine() {
    hold("bounds.yaml");
}

#[test]
fn no_agent_on_another_machine_is_spoken_to_unasked() {
    hold("agents.yaml");
}

#[test]
fn no_pipe_is_waited_for_and_no_name_is_a_path_or_a_command() {
    hold("devices.yaml");
}

#[test]
fn no_text_is_an_element_of_a_page_or_a_formula_of_a_table() {
    hold("texts.yaml");
}

#[test]
fn no_hard_link_leads_out_and_no_database_or_history_runs_without_an_end() {
    hold("databases.yaml");
}

#[test]
fn no_symbolic_link_leads_out_of_the_project() {
    hold("links.yaml");
}
