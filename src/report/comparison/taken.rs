//! Tokens, cost and times of both sides as text, from A to B.

use crate::compare::{Cell, Figure, Unit};
use crate::report::figures::thousands;
use crate::settings::price::dollars;
use crate::stats::percent::points;

/// One figure: name, value of A, value of B, and difference; an unknown value says why it is unknown.
pub(in crate::report) fn taken(row: &Figure) -> [String; 4] {
    let side = |place: usize| row.cells.get(place).cloned().unwrap_or_default();
    let (a, b) = (side(0), side(1));
    let difference = match (a.value, b.value) {
        (Some(a), Some(b)) => difference(row.unit, a, b),
        _ => "–".to_owned(),
    };
    [row.key.clone(), level(row.unit, &a), level(row.unit, &b), difference]
}

/// The same in one line: `cost: $0.50 in base, $0.55 in now (+$0.05, +10.0 %)`.
pub(super) fn taken_line(row: &Figure, [ours, theirs]: [&str; 2]) -> String {
    let [name, a, b, difference] = taken(row);
    let difference = if difference == "–" { String::new() } else { format!(" ({difference})") };
    format!("{name}: {a} in {ours}, {b} in {theirs}{difference}")
}

fn level(unit: Unit, cell: &Cell) -> String {
    match cell.value {
        None if cell.not_measured.is_empty() => "not measured".to_owned(),
        None => cell.not_measured.clone(),
        Some(value) => amount(unit, value),
    }
}

fn amount(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => crate::stats::percent::percent(value),
        Unit::Number if value.fract() == 0.0 || value >= 1_000.0 => thousands(value.round() as u64),
        Unit::Number => format!("{value:.1}"),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Dollars => dollars(value),
    }
}

fn difference(unit: Unit, a: f64, b: f64) -> String {
    // Sums of the same prices in another order differ in their last bits.
    if (b - a).abs() <= 1e-12 * a.abs().max(b.abs()) {
        return "the same".to_owned();
    }
    let sign = if b < a { "-" } else { "+" };
    let by = amount(unit, (b - a).abs());
    if a > 0.0 { format!("{sign}{by}, {} %", points(b / a - 1.0)) } else { format!("{sign}{by}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(unit: Unit, a: Option<f64>, b: f64) -> String {
        let not_measured = if a.is_none() { "not known in the base".to_owned() } else { String::new() };
        let a = Cell { value: a, not_measured, ..Cell::default() };
        let cells = vec![a, Cell { value: Some(b), ..Cell::default() }];
        taken_line(&Figure { key: "it".into(), about: String::new(), unit, cells }, ["A", "B"])
    }

    #[test]
    fn each_figure_names_both_sides_and_the_difference_with_its_share() {
        assert_eq!(line(Unit::Dollars, Some(0.5), 0.55), "it: $0.500 in A, $0.550 in B (+$0.0500, +10.0 %)");
        assert_eq!(line(Unit::Number, Some(12_000.0), 9_000.0), "it: 12,000 in A, 9,000 in B (-3,000, -25.0 %)");
        assert_eq!(line(Unit::Seconds, Some(2.0), 2.0), "it: 2.00 s in A, 2.00 s in B (the same)");
        assert_eq!(line(Unit::Number, Some(0.0), 7.0), "it: 0 in A, 7 in B (+7)");
    }

    #[test]
    fn what_the_base_does_not_know_is_said_and_no_difference_is() {
        assert_eq!(line(Unit::Dollars, None, 0.55), "it: not known in the base in A, $0.550 in B");
    }
}
