//! The exit codes: one table, from which `--help` is generated, and against which README.md and
//! docs/reference/commands.md are tested.

use std::fmt::Write as _;
use std::process::ExitCode;

/// Outcome of a subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Every required gate passed, or the subcommand has no gates and succeeded.
    Passed,
    /// A required gate failed, or was not measured and is not declared as such.
    Failed,
    /// Error in usage, a scenario or criteria.
    Usage,
    /// Some trials could not be run.
    Incomplete,
    /// The evidence is inconclusive.
    Undecided,
    /// Results could not be written or printed.
    Unwritten,
}

/// One row of the table.
struct ExitRow {
    exit: Exit,
    code: u8,
    meaning: &'static str,
    /// Further remark, printed after the meaning.
    note: &'static str,
}

const fn row(exit: Exit, code: u8, meaning: &'static str) -> ExitRow {
    ExitRow { exit, code, meaning, note: "" }
}

/// The table, by exit code.
const TABLE: [ExitRow; 6] = [
    row(Exit::Passed, 0, "every required gate passed"),
    row(Exit::Failed, 1, "a required gate failed, or is NOT_MEASURED and not declared so"),
    row(Exit::Usage, 2, "usage, scenario or criteria error"),
    row(
        Exit::Incomplete,
        3,
        "the run is incomplete: provider error, agent not reached, no usable reply, cassette miss, lane missing",
    ),
    ExitRow {
        note: " (0 where the criteria say `undecided: warn` and the figure reaches its target)",
        ..row(Exit::Undecided, 4, "a required gate is INCONCLUSIVE")
    },
    row(Exit::Unwritten, 5, "the result could not be written: the disk is full, or the reader of the output went away"),
];

/// Precedence: of several outcomes, the first in this list counts.
const ORDER: [Exit; 6] = [Exit::Usage, Exit::Incomplete, Exit::Failed, Exit::Undecided, Exit::Unwritten, Exit::Passed];

/// The table as printed by `--help`.
pub(super) fn table() -> String {
    let mut text = String::from("Exit codes:\n");
    for ExitRow { code, meaning, note, .. } in &TABLE {
        let _ = writeln!(text, "  {code}  {meaning}{note}");
    }
    text + &order()
}

fn order() -> String {
    let order: Vec<String> = ORDER.iter().map(|exit| exit.code().to_string()).collect();
    format!("Several at once: {} in this order.", order.join(", "))
}

impl Exit {
    /// Of two outcomes, the one with higher precedence.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        ORDER.into_iter().find(|exit| *exit == self || *exit == other).unwrap_or(self)
    }

    /// The outcome with that exit code, as stored in an evaluation.
    pub fn of_code(code: u8) -> Self {
        TABLE.iter().find(|row| row.code == code).map_or(Self::Usage, |row| row.exit)
    }

    /// What the code means.
    pub(super) fn meaning(self) -> &'static str {
        TABLE.iter().find(|row| row.exit == self).map_or("", |row| row.meaning)
    }

    pub(super) fn code(self) -> u8 {
        TABLE.iter().find(|row| row.exit == self).map_or(2, |row| row.code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_exits_the_first_of_2_3_1_4_5_0_counts() {
        assert_eq!(Exit::Undecided.worse(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Failed.worse(Exit::Incomplete), Exit::Incomplete);
        assert_eq!(Exit::Passed.worse(Exit::Passed), Exit::Passed);
        assert_eq!(order(), "Several at once: 2, 3, 1, 4, 5, 0 in this order.");
        for (code, row) in (0..).zip(&TABLE) {
            assert_eq!((row.code, Exit::of_code(code), row.exit.code()), (code, row.exit, code));
        }
    }

    #[test]
    fn the_tables_in_the_readme_and_the_page_of_commands_are_this_one() {
        for file in ["docs/reference/commands.md", "README.md"] {
            let text = std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).expect(file);
            for ExitRow { code, meaning, note, .. } in &TABLE {
                assert!(
                    text.contains(&format!("| {code} | {meaning}{note} |")),
                    "{file} lacks `{code}: {meaning}{note}`"
                );
            }
            assert!(text.contains(&order()), "{file} lacks the order");
        }
    }
}
