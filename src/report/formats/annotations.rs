//! `annotations.txt`: failures as GitHub workflow commands, each at the line of its case.
//!
//! A line is one command, `::error file=…,line=…,title=…::text`. Percent signs and line ends, and in properties colons
//! and commas, are escaped as the runner expects, so that no text of a model or a scenario can start a command.

use crate::report::to_do::{Help, State, ToDo, subject, to_do};
use crate::report::{Format, View};
use crate::trace::text;
use std::io::{self, Write};

pub(super) const FORMATS: &[Format] = &[Format { name: "annotations", file: "annotations.txt", write }];

/// GitHub shows ten annotations per kind and step.
const MOST: usize = 10;
/// Maximum characters of one annotation.
const LENGTH: usize = 1_500;

/// Writes `annotations.txt`.
fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut found = to_do(view);
    found.sort_by_key(|one| one.state.in_brief());
    for side in view.comparison.iter().flat_map(|found| [&found.a, &found.b]).filter(|side| !side.doubt.is_empty()) {
        let doubt = text::block(&side.doubt);
        out.write_all(annotation("warning", None, "baseline", &text::clip(&doubt, LENGTH)).as_bytes())?;
    }
    if found.is_empty() && view.exit_code() != 0 {
        let title = format!("exit code {}", view.exit_code());
        out.write_all(annotation("error", None, &title, &text::clip(&text::block(view.why()), LENGTH)).as_bytes())?;
    }
    let mut shown = [0; 2];
    for one in &found {
        // Failures that do not fail the job are warnings.
        let warning = view.exit_code() == 0 || matches!(one.state, State::FailsOnBaseToo | State::Undecided);
        let place = &mut shown[usize::from(warning)];
        *place += 1;
        if *place <= MOST {
            annotate(one, if warning { "warning" } else { "error" }, out)?;
        }
    }
    Ok(())
}

fn annotate(one: &ToDo, kind: &str, out: &mut dyn Write) -> io::Result<()> {
    let trials =
        if one.trials > 0 { format!("\n{}", text::plural(one.trials as usize, "trial")) } else { String::new() };
    let why = std::iter::once(&one.why).chain(&one.detail).cloned().collect::<Vec<_>>().join("\n");
    let cost = |cost: &str| if cost.is_empty() { String::new() } else { format!("\n  {cost}") };
    let command = |help: &Help| format!("\n{}: {}{}", help.purpose, help.command, cost(&help.cost));
    let commands: String = one.commands.iter().map(command).collect();
    let words = format!("{}{trials}{commands}", text::clip(&text::block(&why), LENGTH));
    let title = format!("{}: {}", one.state.as_str(), text::clip(&text::line(&subject(one)), 200));
    let place = one.place.as_ref().map(|(file, line)| (file.as_str(), *line));
    out.write_all(annotation(kind, place, &title, &words).as_bytes())
}

/// A line that annotates a place, a file and a line in it: `::error file=…,line=…,title=…::text`.
pub(crate) fn annotation(kind: &str, place: Option<(&str, u32)>, title: &str, words: &str) -> String {
    let place = place.map_or_else(String::new, |(file, line)| format!("file={},line={line},", value(file)));
    format!("::{kind} {place}title={}::{}\n", value(title), data(words))
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    // A terminal obeys control characters of a file's name.
    let odd = |letter: char| letter.is_control() && !matches!(letter, '\r' | '\n' | '\t');
    // The older syntax, valid anywhere in a line, is broken up: the runner knows no escape for it.
    text.replace(odd, "\u{fffd}").replace("##[", "## [").replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn value(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{DecidedExit, sample, tests::written};

    #[test]
    fn every_line_is_one_command_at_the_line_of_its_case() {
        let run = sample::run(2);
        let text = written(&FORMATS[0], &run.view());
        assert!(text.contains("title=FAILS%3A heat-pumps/skips-the-manual::"), "{text}");
        assert!(text.lines().all(|line| line.starts_with("::error ") || line.starts_with("::warning ")), "{text}");
        assert!(text.lines().any(|line| line.contains("file=") && line.contains(",line=")), "{text}");
    }

    #[test]
    fn control_characters_of_a_file_s_name_reach_no_terminal() {
        let line = annotation("error", Some(("q\u{1b}[2J\u{7},a.yaml", 3)), "t", "one\ntwo");
        assert_eq!(line, "::error file=q\u{fffd}[2J\u{fffd}%2Ca.yaml,line=3,title=t::one%0Atwo\n");
    }

    #[test]
    fn what_does_not_fail_the_job_is_a_warning() {
        let run = sample::run(2);
        let decided = DecidedExit { exit_code: 0, why: "--fail-on flip: no case fails that passed".into() };
        let text = written(&FORMATS[0], &View { decided: Some(&decided), ..run.view() });
        assert!(text.contains("title=FAILS%3A heat-pumps/skips-the-manual::"), "{text}");
        assert!(text.lines().all(|line| line.starts_with("::warning ")), "{text}");
    }

    #[test]
    fn a_run_that_fails_without_anything_to_do_says_why() {
        let mut run = sample::passing();
        assert_eq!(written(&FORMATS[0], &run.view()), "");
        (run.evaluation.exit_code, run.evaluation.conclusion) = (1, "no gate is required, so nothing was shown".into());
        let text = written(&FORMATS[0], &run.view());
        assert_eq!(text, "::error title=exit code 1::no gate is required, so nothing was shown\n");
    }

    #[test]
    fn hostile_text_stays_within_its_annotation() {
        let one = ToDo {
            state: State::Fails,
            name: "s/c,line=1::stop".into(),
            about: String::new(),
            trials: 1,
            why: "x\n::set-output name=exit-code::0\r\n%0A::stop-commands::t ##[error]".into(),
            trial: None,
            detail: Vec::new(),
            commands: Vec::new(),
            place: Some(("a,b:c\n.yaml".into(), 3)),
        };
        let mut out = Vec::new();
        annotate(&one, "error", &mut out).expect("memory");
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with(
            "::error file=a%2Cb%3Ac%0A.yaml,line=3,title=FAILS%3A s/c%2Cline=1%3A%3Astop::x%0A::set-output"
        ));
        assert!(text.contains("%250A") && !text.contains("##["), "{text}");
    }

    #[test]
    fn there_are_at_most_ten_of_a_kind() {
        let mut run = sample::run(1);
        let group = run.evaluation.errors.first().cloned().expect("an error");
        run.evaluation.errors = vec![group; 30];
        assert_eq!(written(&FORMATS[0], &run.view()).lines().filter(|line| line.starts_with("::error")).count(), MOST);
    }
}
