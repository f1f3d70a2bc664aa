//! The exit codes: one table, in `--help`, README and ARCHITECTURE.md.

use std::process::ExitCode;

/// The table as `--help` prints it.
pub(super) const TABLE: &str = "Exit codes:
  0  every required gate passed
  1  a required gate failed, or measured nothing that was not declared
  2  usage, scenario or criteria error
  3  the run is incomplete: provider error, cassette miss, lane missing
  4  undecided (0 where the criteria say `undecided: warn`)
Several at once: 2, 3, 1, 4, 0 in this order.";

/// How a subcommand ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Every required gate passed, or the subcommand judges nothing and did its work.
    Passed,
    /// A required gate failed, or measured nothing that was not declared.
    Failed,
    /// Usage, scenario or criteria error.
    Usage,
    /// Trials could not be run.
    Incomplete,
    /// The evidence does not decide.
    Undecided,
}

impl Exit {
    /// Of two, the one that the order of the table puts first.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let order = [Self::Usage, Self::Incomplete, Self::Failed, Self::Undecided, Self::Passed];
        order.into_iter().find(|exit| *exit == self || *exit == other).unwrap_or(self)
    }

    /// The exit of that code, as a judgement carries it.
    pub fn of_code(code: u8) -> Self {
        match code {
            0 => Self::Passed,
            1 => Self::Failed,
            3 => Self::Incomplete,
            4 => Self::Undecided,
            _ => Self::Usage,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Passed => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Incomplete => 3,
            Exit::Undecided => 4,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_exits_the_first_of_2_3_1_4_0_counts() {
        assert_eq!(Exit::Undecided.worse(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Failed.worse(Exit::Incomplete), Exit::Incomplete);
        assert_eq!(Exit::Passed.worse(Exit::Passed), Exit::Passed);
    }

    #[test]
    fn the_table_in_architecture_and_readme_has_the_same_five_codes() {
        for file in ["ARCHITECTURE.md", "README.md"] {
            let text = std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).expect(file);
            for line in TABLE.lines().filter(|line| line.starts_with("  ")) {
                let (code, meaning) = line.trim().split_once("  ").expect("code and meaning");
                let meaning = meaning.split(" (").next().unwrap_or_default();
                assert!(text.contains(&format!("| {code} | {meaning}")), "{file} lacks `{code}: {meaning}`");
            }
        }
    }
}
