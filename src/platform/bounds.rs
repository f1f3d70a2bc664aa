//! Limits on the size of files, suites and what they produce, by name.
//!
//! A stranger's checkout must not exhaust the machine. The project file may lower a limit (`bounds:` in
//! `ragcheck.yaml`), and the command line may set any (`--limit NAME=VALUE`) and takes precedence. An exceeded limit is
//! an error that names the limit and the option that raises it.

use crate::platform::schema;
use crate::platform::words;
use schemars::{JsonSchema, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};
use std::{fmt, io};

words! {
    fn name; const ALL;
    /// A named limit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Bound {
        /// Bytes of one scenario, criteria, price, rubric or project file.
        ScenarioSize = "scenario-size",
        /// Bytes of all scenario files together.
        ScenariosSize = "scenarios-size",
        /// Files and folders that are looked through for scenarios.
        Entries = "entries",
        /// Cases of one scenario.
        Cases = "cases",
        /// Repetitions of a case that a file asks for; `--repeat` is not limited by it.
        Repeat = "repeat",
        /// Trials of one run.
        Trials = "trials",
        /// Bytes of the ratings of one project.
        RatingsSize = "ratings-size",
        /// Bytes of one baseline.
        BaselineSize = "baseline-size",
        /// Bytes of one prompt.
        PromptSize = "prompt-size",
        /// Size of all regular expressions of a suite together, in units of their compiled form: a letter is 1, `\w` about
        /// 800, and a repetition as often as it may repeat.
        Expressions = "expressions",
        /// Mistakes listed per file.
        Mistakes = "mistakes",
        /// Bytes of all documents of one knowledge base.
        DocumentsSize = "documents-size",
        /// Passages of one knowledge base.
        Passages = "passages",
        /// Bytes of the vectors of one knowledge base.
        VectorsSize = "vectors-size",
        /// Bytes of one recording, and of its assembled requests.
        RecordingSize = "recording-size",
        /// Bytes of the plan in one run folder.
        PlanSize = "plan-size",
        /// Bytes of one trace in a run folder.
        TraceSize = "trace-size",
        /// Bytes of the whole passages in one run folder.
        FoundPassagesSize = "found-passages-size",
        /// Bytes of one file of conversations to import, unpacked.
        ImportSize = "import-size",
        /// Bytes of one history.
        HistorySize = "history-size",
        /// Bytes of one run, or of all recordings, in storage.
        PullSize = "pull-size",
    }
}

/// A number of something, or of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u64);

/// Why a limit's text is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoundError {
    /// It is not a pair of name and number.
    #[error("`{0}` sets no limit: write `NAME=VALUE`, `scenario-size=16MiB` for example")]
    NoPair(String),
    /// No limit has that name.
    #[error("there is no limit `{name}`; known: {}", Bound::ALL.map(Bound::name).join(", "))]
    Unknown { name: String },
    /// The number is invalid.
    #[error("`{0}` is not an amount: write a whole number above 0, for sizes with KiB, MiB or GiB")]
    Amount(String),
}

/// Limits that were set, and whether each was set on the command line.
static SET: RwLock<BTreeMap<Bound, (u64, bool)>> = RwLock::new(BTreeMap::new());

impl Bound {
    /// Default value.
    pub fn usual(self) -> u64 {
        match self {
            Self::ScenarioSize => 4 << 20,
            Self::VectorsSize | Self::RecordingSize | Self::PlanSize | Self::FoundPassagesSize => 64 << 20,
            Self::ScenariosSize => 16 << 20,
            Self::DocumentsSize | Self::BaselineSize | Self::TraceSize | Self::HistorySize => 32 << 20,
            Self::RatingsSize => 8 << 20,
            Self::Entries | Self::Passages => 100_000,
            Self::Cases => 10_000,
            Self::Repeat => 1_000,
            Self::Trials => 1_000_000,
            Self::PromptSize => 256 << 10,
            Self::Expressions => 5_000_000,
            Self::Mistakes => 100,
            Self::ImportSize => 128 << 20,
            Self::PullSize => 4 << 30,
        }
    }

    /// Current value.
    pub fn most(self) -> u64 {
        let set = SET.read().unwrap_or_else(PoisonError::into_inner);
        set.get(&self).map_or_else(|| self.usual(), |(most, _)| *most)
    }

    /// Current value, as a length in memory.
    pub fn most_in_memory(self) -> usize {
        usize::try_from(self.most()).unwrap_or(usize::MAX)
    }

    /// Current value as text: `8 MiB`, `1000`.
    pub fn shown(self) -> String {
        self.print(self.most())
    }

    /// Option that doubles the limit.
    pub fn advice(self) -> String {
        let twice = self.print(self.most().saturating_mul(2)).replace(' ', "");
        format!("`--limit {}={twice}` on the command line raises the limit", self.name())
    }

    /// The error of a file that exceeds the limit: it names both.
    pub(crate) fn exceeded(self) -> io::Error {
        let why = format!("larger than {}; {}", self.shown(), self.advice());
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    }

    /// The error of reading at most as many bytes: one of a larger file names the limit.
    pub(crate) fn named(self, error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::FileTooLarge { self.exceeded() } else { error }
    }

    fn print(self, amount: u64) -> String {
        let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let unit = units.iter().find(|(_, bits)| amount > 0 && amount.is_multiple_of(1 << bits));
        match unit.filter(|_| self.name().ends_with("-size")) {
            Some((unit, bits)) => format!("{} {unit}", amount >> bits),
            None => amount.to_string(),
        }
    }

    /// Lowers the limit for the rest of the process, unless the command line set it.
    pub fn lower(self, to: Amount) {
        let mut set = SET.write().unwrap_or_else(PoisonError::into_inner);
        let now = set.get(&self).map_or((self.usual(), false), |now| *now);
        if !now.1 && to.0 < now.0 {
            set.insert(self, (to.0, false));
        }
    }
}

/// Sets a limit from an argument such as `scenario-size=16MiB`, for the rest of the process.
///
/// # Errors
/// [`BoundError`] if the text is not a valid limit.
pub(crate) fn set(text: &str) -> Result<(), BoundError> {
    let (name, amount) = text.split_once('=').ok_or_else(|| BoundError::NoPair(text.to_owned()))?;
    let bound = Bound::ALL.into_iter().find(|bound| bound.name() == name.trim());
    let bound = bound.ok_or_else(|| BoundError::Unknown { name: name.trim().to_owned() })?;
    let Amount(amount) = amount.parse()?;
    SET.write().unwrap_or_else(PoisonError::into_inner).insert(bound, (amount, true));
    Ok(())
}

impl Amount {
    /// Whether this exceeds the value that a project file may ask for.
    pub fn raises(self, bound: Bound) -> bool {
        self.0 > bound.usual()
    }
}

impl FromStr for Amount {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Self, BoundError> {
        let wrong = || BoundError::Amount(text.trim().to_owned());
        let split = text.trim().find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.trim().len());
        let (number, unit) = text.trim().split_at(split);
        let scale: u64 = match unit.trim() {
            "" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(scale).filter(|amount| *amount > 0).map(Self).ok_or_else(wrong)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number above 0, for sizes with KiB, MiB or GiB")
    }

    fn visit_u64<E: Error>(self, amount: u64) -> Result<Amount, E> {
        self.visit_str(&amount.to_string())
    }

    fn visit_i64<E: Error>(self, amount: i64) -> Result<Amount, E> {
        self.visit_str(&amount.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        text.parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

schema!(
    inline Amount,
    json_schema!({"type": ["integer", "string"], "minimum": 1, "pattern": r"^\s*\d+\s*([KMG]iB)?\s*$"})
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (text, amount) in [("8MiB", 8 << 20), (" 512 KiB", 512 << 10), ("1GiB", 1 << 30), ("1000", 1000)] {
            assert_eq!(text.parse(), Ok(Amount(amount)), "{text}");
        }
        for text in ["", "0", "-1", "8MB", "1.5GiB", "99999999999999999999", "99999999999GiB"] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_limit_has_a_name_of_its_own_that_files_use_too() {
        for bound in Bound::ALL {
            assert_eq!(serde_json::to_value(bound).expect("JSON"), bound.name());
        }
        assert_eq!(
            Bound::ALL.map(Bound::name).iter().collect::<std::collections::BTreeSet<_>>().len(),
            Bound::ALL.len()
        );
    }

    #[test]
    fn what_sets_no_limit_says_what_to_write() {
        for (text, words) in
            [("scenario-size", "NAME=VALUE"), ("size=1", "known: scenario-size"), ("cases=many", "is not an amount")]
        {
            assert!(set(text).expect_err(text).to_string().contains(words), "{text}");
        }
    }
}
