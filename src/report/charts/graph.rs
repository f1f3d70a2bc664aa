//! Transitions of a state machine: states from top to bottom, forward transitions as arcs on the right, backward ones
//! on the left. A line's thickness shows how often the transition was taken, with the count beside it; an unused
//! transition is dashed.

use super::escaped;
use crate::gate::TransitionCount;
use crate::platform::distinct::add_distinct;
use crate::report::figures::thousands;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const STEP: f64 = 44.0;
const HEIGHT: f64 = 24.0;
const REACH: f64 = 36.0;

/// Draws `moves`; the source of the first one is the start state. `None` without transitions.
pub(in crate::report) fn graph(name: &str, moves: &[TransitionCount]) -> Option<String> {
    let states = ordered(moves);
    if states.is_empty() {
        return None;
    }
    let place: BTreeMap<&str, usize> = states.iter().enumerate().map(|(place, state)| (*state, place)).collect();
    let mut arcs: BTreeMap<(usize, usize), (u64, Vec<String>)> = BTreeMap::new();
    for TransitionCount { from, on, to, times } in moves {
        let arc = arcs.entry((place[from.as_str()], place[to.as_str()])).or_default();
        arc.0 += times;
        arc.1.push(format!("{} –{}→ {}: {}", escaped(from), escaped(on), escaped(to), thousands(*times)));
    }
    let span = |back: bool| {
        let of = arcs.keys().filter(|(from, to)| (to <= from) == back).map(|(from, to)| from.abs_diff(*to).max(1));
        of.max().unwrap_or(0) as f64
    };
    let longest = states.iter().map(|state| state.chars().count()).max().unwrap_or(1).min(32);
    let width = (longest as f64 * 7.4 + 20.0).max(80.0);
    let left = span(true) * REACH + 44.0;
    let total = left + width + span(false) * REACH + 44.0;
    let height = STEP * states.len() as f64 + 8.0;
    let most = arcs.values().map(|(times, _)| *times).max().unwrap_or(1).max(1) as f64;
    let y = |state: usize| 4.0 + STEP * state as f64 + HEIGHT / 2.0;
    let taken = arcs.values().filter(|(times, _)| *times > 0).count();
    let mut svg = format!(
        "<svg class=\"machine\" viewBox=\"0 0 {total:.0} {height:.0}\" width=\"{total:.0}\" role=\"img\">\
         <title>{}: {} states, {taken} of {} pairs of states joined by moves that were taken</title>",
        escaped(name),
        states.len(),
        arcs.len()
    );
    // Counts are drawn last, so that no line crosses them.
    let mut counts = String::new();
    for ((from, to), (times, said)) in &arcs {
        let back = to <= from;
        let (start, end) = (y(*from) + 4.0, y(*to) - 4.0);
        let out = from.abs_diff(*to).max(1) as f64 * REACH + 14.0;
        let (edge, apex, way) = if back { (left, left - out, 1.0) } else { (left + width, left + width + out, -1.0) };
        let (class, weight) = if *times == 0 {
            ("move never", 1.2)
        } else {
            ("move", 1.2 + 3.3 * ((*times as f64).ln_1p() / most.ln_1p()))
        };
        let _ = write!(
            svg,
            "<g class=\"{class}\"><title>{}</title>\
             <path d=\"M{edge:.1} {start:.1}C{apex:.1} {start:.1} {apex:.1} {end:.1} {:.1} {end:.1}\" stroke-width=\"{weight:.1}\"/>\
             <path class=\"tip\" d=\"M{edge:.1} {end:.1}l{:.1} -4v8z\"/></g>",
            said.join("; "),
            edge - way * 5.0,
            -way * 7.0,
        );
        // The curve reaches three quarters of the distance to its control points.
        let (at, anchor) = (edge + (apex - edge) * 0.75 - way * 4.0, if back { "end" } else { "start" });
        if *times > 0 {
            let (middle, shown) = (f64::midpoint(start, end) + 3.5, thousands(*times));
            let _ = write!(counts, "<text x=\"{at:.1}\" y=\"{middle:.1}\" text-anchor=\"{anchor}\">{shown}</text>");
        }
    }
    svg.push_str(&counts);
    for (state, name) in states.iter().enumerate() {
        let top = y(state) - HEIGHT / 2.0;
        let clipped: String = name.chars().take(32).collect();
        let _ = write!(
            svg,
            "<rect class=\"state\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{HEIGHT:.0}\" rx=\"6\"/>\
             <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            left + width / 2.0,
            y(state) + 4.0,
            escaped(&clipped)
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// States ordered by their distance from the first, so that sources precede targets except in cycles.
fn ordered(moves: &[TransitionCount]) -> Vec<&str> {
    let mut order: Vec<&str> = moves.first().map(|row| row.from.as_str()).into_iter().collect();
    let mut next = 0;
    while next < order.len() {
        let state = order[next];
        add_distinct(&mut order, moves.iter().filter(|row| row.from == state).map(|row| row.to.as_str()));
        next += 1;
    }
    add_distinct(&mut order, moves.iter().flat_map(|row| [row.from.as_str(), row.to.as_str()]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(from: &str, on: &str, to: &str, times: u64) -> TransitionCount {
        TransitionCount { from: from.into(), on: on.into(), to: to.into(), times }
    }

    #[test]
    fn every_state_and_every_move_is_there_and_one_that_was_never_taken_is_another_line() {
        let moves = [
            row("start", "searched", "judging", 41),
            row("judging", "answered", "done", 33),
            row("judging", "again", "start", 2),
            row("start", "gave<up>", "failed", 0),
        ];
        let svg = graph("tool-rag", &moves).expect("moves");
        assert_eq!(svg.matches("class=\"state\"").count(), 4);
        assert_eq!((svg.matches("class=\"move\"").count(), svg.matches("class=\"move never\"").count()), (3, 1));
        assert!(svg.contains("start –searched→ judging: 41") && svg.contains("gave&lt;up&gt;"), "{svg}");
        assert!(ordered(&moves).starts_with(&["start", "judging"]), "{:?}", ordered(&moves));
        assert!(svg.rfind("class=\"tip\"") < svg.find(">41</text>"), "counts stand on the lines: {svg}");
        assert_eq!(graph("none", &[]), None);
    }
}
