//! `run.json`: the evaluation, indented, with the exit code of the run. A million trials take 1.3 GB, so their text is made in parts,
//! side by side, and never whole. An old reader ignores new fields and refuses a newer `version`.

use crate::gate::{Evaluation, TrialRows};
use crate::platform::secrets;
use crate::report::{DecidedExit, Format, View};
use crate::trace::RUN;
use rayon::prelude::*;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

pub(super) const FORMATS: &[Format] = &[Format { name: "json", file: RUN, write }];

/// Writes `run.json`.
fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Evaluation { exit_code, conclusion, trials, .. } = view.evaluation;
    let (ended, conclusion) = match view.decided {
        None => (*exit_code, conclusion.clone()),
        Some(DecidedExit { exit_code: ended, why }) => {
            (*ended, format!("{why}; the criteria alone: exit code {exit_code}, {conclusion}"))
        }
    };
    let frame = Evaluation { exit_code: ended, conclusion, trials: Arc::default(), ..view.evaluation.clone() };
    let frame = clean(&frame)?;
    let before = frame.strip_suffix(NO_TRIALS.as_bytes()).ok_or_else(|| io::Error::other("trials are not last"))?;
    out.write_all(before)?;
    let mut begun = false;
    let parts: Vec<usize> = (0..trials.len()).step_by(PART).collect();
    for parts in parts.chunks(2 * rayon::current_num_threads()) {
        let texts = parts.par_iter().map(|start| clean(&Part { trials: trials.within(*start..start + PART) }));
        for text in texts.collect::<io::Result<Vec<_>>>()? {
            let rows =
                text.strip_prefix(PART_BEGINS.as_bytes()).and_then(|rest| rest.strip_suffix(PART_ENDS.as_bytes()));
            let Some(rows) = rows else { continue };
            out.write_all(if begun { b"," } else { b"[" })?;
            out.write_all(rows)?;
            begun = true;
        }
    }
    out.write_all(if begun { PART_ENDS } else { NO_TRIALS }.as_bytes())?;
    out.write_all(b"\n")
}

/// Number of trials whose text is made at once.
const PART: usize = 4096;
/// The end of a run without trials.
const NO_TRIALS: &str = "[]\n}";
const PART_BEGINS: &str = "{\n  \"trials\": [";
const PART_ENDS: &str = "\n  ]\n}";

/// Some of a run's trials, indented as they are in the whole run.
#[derive(Serialize)]
struct Part<'a> {
    #[serde(serialize_with = "rows")]
    trials: TrialRows<'a>,
}

fn rows<S: Serializer>(rows: &TrialRows<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.clone())
}

/// The indented text of a value, without declared secrets.
fn clean(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_vec_pretty(value)?;
    Ok(match secrets::clean_bytes(&text) {
        Cow::Owned(clean) => clean,
        Cow::Borrowed(_) => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{sample, tests::written};

    #[test]
    fn a_judgement_reads_back_as_it_was() {
        let run = sample::run(1);
        let read: Evaluation = serde_json::from_str(&written(&FORMATS[0], &run.view())).expect("run.json is JSON");
        assert_eq!(read, run.evaluation);
    }
    #[test]
    fn the_parts_are_the_text_of_the_whole() {
        let mut run = sample::run(1);
        let some = run.evaluation.trials.to_vec();
        for number in [0, 1, PART - 1, PART, PART + 1, 3 * PART + 7] {
            run.evaluation.trials = Arc::new(some.iter().cycle().take(number).cloned().collect());
            let whole = serde_json::to_string_pretty(&run.evaluation).expect("JSON") + "\n";
            assert!(written(&FORMATS[0], &run.view()) == whole, "{number} trials");
        }
    }

    #[test]
    fn the_exit_code_is_that_of_the_run_with_what_decided_it() {
        let run = sample::run(1);
        let decided = DecidedExit { exit_code: 0, why: "--fail-on flip: no case fails that passed".into() };
        let view = View { decided: Some(&decided), ..run.view() };
        let read: Evaluation = serde_json::from_str(&written(&FORMATS[0], &view)).expect("run.json is JSON");
        assert_eq!(read.exit_code, 0);
        let alone = format!("{}; the criteria alone: exit code {}, ", decided.why, run.evaluation.exit_code);
        assert!(read.conclusion.starts_with(&alone), "{}", read.conclusion);
    }
}
