//! Terminal list of runs: two lines per run, newest first.

use super::RunRow;
use crate::report::figures::first_names;
use crate::report::terminal_lines::wrap;
use crate::trace::text::quote;

/// Renders the runs in at most `width` columns.
pub(crate) fn terminal(runs: &[RunRow], width: usize) -> String {
    let width = width.clamp(60, 160);
    let mut out = String::new();
    if runs.is_empty() {
        return "There is no run yet: `ragcheck run` makes one.\n".to_owned();
    }
    for run in runs {
        let latest = if run.latest { " (latest)" } else { "" };
        let about = [
            format!("{:<12} {}  {}{latest}", run.verdict().as_str(), run.made(), quote(&run.name, 60)),
            if run.broken.is_some() { String::new() } else { run.suite() },
            first_names(run.models.iter(), super::NAMED),
            if run.part.is_empty() { String::new() } else { quote(&run.part, 60) },
        ];
        let said: Vec<String> = about.into_iter().filter(|words| !words.is_empty()).collect();
        // The columns of the first part must stay: `wrap` would collapse their spaces.
        let line = said.join(", ");
        out.push_str(&line.chars().take(width).collect::<String>());
        out.push('\n');
        let failures = run.failures();
        if !failures.is_empty() {
            wrap(&mut out, &failures, width, "             ");
        }
    }
    out
}
