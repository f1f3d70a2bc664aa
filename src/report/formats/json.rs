//! `run.json`: the evaluation, indented. An old reader ignores new fields and refuses a newer `version`.

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
        serde_json::to_writer_pretty(&mut *out, view.evaluation)?;
        out.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Evaluation;
    use crate::report::{sample, tests::written};

    #[test]
    fn a_judgement_reads_back_as_it_was() {
        let run = sample::run(1);
        let read: Evaluation = serde_json::from_str(&written(&Json, &run.view())).expect("run.json is JSON");
        assert_eq!(read, run.evaluation);
    }
}
