//! `ragcheck run --watch` as a process: a changed file is replayed, what changed is told, Ctrl-C ends it.

#![cfg(unix)]

use crate::program::program;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A program that watches, and the lines that it prints.
struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    fn begin(project: &Path) -> Self {
        let mut command = Command::new(program());
        command.args(["run", "--watch"]).current_dir(project).env("NO_COLOR", "1");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (said, lines) = channel();
        let pipes: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().expect("a pipe")), Box::new(child.stderr.take().expect("a pipe"))];
        for pipe in pipes {
            let said = said.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let _ = said.send(line);
                }
            });
        }
        Self { child, lines }
    }

    /// Waits for a line with these words; gives the lines up to it.
    fn until(&self, words: &str) -> String {
        let mut seen = String::new();
        while !seen.contains(words) {
            let line = self.lines.recv_timeout(Duration::from_mins(1));
            let line = line.unwrap_or_else(|why| panic!("no `{words}` ({why}) in\n{seen}"));
            seen += &line;
            seen.push('\n');
        }
        seen
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn output_in_a_file_of_the_project_is_no_reason_to_print_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let init = Command::new(program()).arg("init").current_dir(folder.path()).output();
    assert!(init.expect("it runs").status.success());
    let log = folder.path().join("watch.log");
    let (out, read) = (fs::File::create(&log).expect("a log"), || fs::read_to_string(&log).expect("the log"));
    let mut command = Command::new(program());
    command.args(["run", "--watch"]).current_dir(folder.path()).env("NO_COLOR", "1");
    let errors = out.try_clone().expect("a handle");
    let mut child = command.stdout(out).stderr(errors).spawn().expect("it starts");
    let until = |words: &str| {
        for _ in 0..600 {
            if read().contains(words) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no `{words}` in\n{}", read());
    };
    until("watching; Ctrl-C ends");
    let scenario = folder.path().join("scenarios/questions.yaml");
    let sound = fs::read_to_string(&scenario).expect("the scenario");
    fs::write(&scenario, sound.replace("case: deposit", "case: [deposit")).expect("written");
    until("changed: scenarios/questions.yaml");
    // It would print several times a second.
    std::thread::sleep(Duration::from_secs(3));
    let told = read().matches("changed: ").count();
    let _ = child.kill();
    let _ = child.wait();
    assert!(told <= 4, "{told} times:\n{}", read());
}

#[test]
fn a_changed_file_is_replayed_what_changed_is_told_and_ctrl_c_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let init = Command::new(program()).arg("init").current_dir(folder.path()).output();
    assert!(init.expect("it runs").status.success());
    let scenario = folder.path().join("scenarios/questions.yaml");
    let sound = fs::read_to_string(&scenario).expect("the scenario");
    let mut watch = Watch::begin(folder.path());
    assert!(watch.until("watching; Ctrl-C ends").contains("20 trials: 20 PASS"));

    fs::write(&scenario, sound.replace("80 euros", "90 euros")).expect("written");
    let told = watch.until("  FAIL (was PASS) questions/deposit/tool-rag.strict.1");
    assert!(told.contains("changed: scenarios/questions.yaml") && told.contains("answer.contains: 90 euros"), "{told}");

    fs::write(&scenario, sound.replace("case: deposit", "case: [deposit")).expect("written");
    watch.until("scenarios/questions.yaml:");
    fs::write(&scenario, &sound).expect("written");
    watch.until("  PASS (was FAIL) questions/deposit/tool-rag.strict.1");

    // A recording touches its case alone.
    let lane = folder.path().join("recordings/questions/deposit/tool-rag.strict.1.yaml");
    let text = fs::read_to_string(&lane).expect("a recording");
    fs::write(&lane, text.replacen("80 euros", "70 euros", 1)).expect("written");
    assert!(watch.until("2 trials in ").contains("changed: recordings/questions/deposit/tool-rag.strict.1.yaml"));

    let id = watch.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    watch.until("watching ended");
    assert_eq!(watch.child.wait().expect("it ends").code(), Some(0));
}
