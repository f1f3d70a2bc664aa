//! Terminal output of a history: each series with its lines, oldest and newest value, and changes.

use super::{
    TOO_FEW, cannot_change, changed, conditions, found_nothing, headline, missed_targets, scenarios, seen_at,
    unanswered, when,
};
use crate::history::Series;
use crate::report::figures::{counted, line_value};
use crate::report::terminal_lines::wrap;
use crate::scenario::target_text;
use std::fmt::Write as _;

/// Renders the history in at most `width` columns.
pub(crate) fn terminal(series: &[Series], width: usize) -> String {
    let width = width.clamp(60, 160);
    let mut out = String::new();
    if series.is_empty() {
        let how = "The history has no point: `ragcheck run --mode live` or `--mode record` adds one, `ragcheck history add RUN` one of a run folder.";
        wrap(&mut out, how, width, "");
    }
    for (index, one) in series.iter().enumerate() {
        if index > 0 {
            let _ = writeln!(out);
        }
        if let Some(found) = headline(one) {
            wrap(&mut out, &found.sentence, width, "");
        }
        if let Some(missed) = missed_targets(one) {
            wrap(&mut out, &missed, width, "");
        }
        wrap(&mut out, &format!("{}: {}", scenarios(one), conditions(one)), width, "");
        let ends = one.points.first().zip(one.points.last());
        if let Some((first, last)) = ends {
            let number = counted(one.points.len() as u64, "point");
            wrap(&mut out, &format!("{number}, {} to {}", when(first), when(last)), width, "  ");
        }
        if cannot_change(one) {
            wrap(&mut out, TOO_FEW, width, "  ");
        }
        for line in &one.lines {
            let ends = line.ends().map(|(first, last)| (seen_at(line, first), seen_at(line, last)));
            let Some((Some(first), Some(newest))) = ends else { continue };
            let target = if line.target.is_empty() { String::new() } else { format!(" {}", target_text(&line.target)) };
            let sum = line.values.iter().map(|(_, value)| value).sum::<f64>();
            let mean = || format!(", mean {}", line_value(line.unit, sum / line.values.len() as f64));
            let mean = if line.values.is_empty() { String::new() } else { mean() };
            wrap(&mut out, &format!("{}{target}: first {first}, newest {newest}{mean}", line.name), width, "  ");
            let open = unanswered(line);
            if !open.is_empty() {
                wrap(&mut out, &open, width, "    ");
            }
            for change in &line.changes {
                wrap(&mut out, &changed(one, line, change), width, "    ");
            }
            if line.detectable.is_some() {
                wrap(&mut out, &found_nothing(line), width, "    ");
            }
        }
    }
    out
}
