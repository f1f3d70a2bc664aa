//! `run.json`: the evaluation, indented, with the exit code of the run. An old reader ignores new fields and refuses a newer `version`.

use crate::gate::Evaluation;
use crate::report::{Format, View};
use crate::trace::RUN;
use std::io::{self, Write};

pub(super) const FORMATS: &[&dyn Format] = &[&Json];

/// Writes `run.json`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn file(&self) -> &'static str {
        RUN
    }

    fn write(&self, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
        match view.decided {
            None => serde_json::to_writer_pretty(&mut *out, view.evaluation)?,
            Some(decided) => {
                let Evaluation { exit_code, conclusion, .. } = view.evaluation;
                let conclusion = format!("{}; the criteria alone: exit code {exit_code}, {conclusion}", decided.why);
                let ended = Evaluation { exit_code: decided.exit_code, conclusion, ..view.evaluation.clone() };
                serde_json::to_writer_pretty(&mut *out, &ended)?;
            }
        }
        out.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{DecidedExit, sample, tests::written};

    #[test]
    fn a_judgement_reads_back_as_it_was() {
        let run = sample::run(1);
        let read: Evaluation = serde_json::from_str(&written(&Json, &run.view())).expect("run.json is JSON");
        assert_eq!(read, run.evaluation);
    }
    #[test]
    fn the_exit_code_is_that_of_the_run_with_what_decided_it() {
        let run = sample::run(1);
        let decided = DecidedExit { exit_code: 0, why: "--fail-on flip: no case fails that passed".into() };
        let view = View { decided: Some(&decided), ..run.view() };
        let read: Evaluation = serde_json::from_str(&written(&Json, &view)).expect("run.json is JSON");
        assert_eq!(read.exit_code, 0);
        let alone = format!("{}; the criteria alone: exit code {}, ", decided.why, run.evaluation.exit_code);
        assert!(read.conclusion.starts_with(&alone), "{}", read.conclusion);
    }
}
