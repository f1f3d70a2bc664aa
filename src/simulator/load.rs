//! Reads and checks behaviour files: all invalid values are reported at once, with their positions.
//!
//! A typed reader stops at its first error. Here the invalid word is replaced by a placeholder of the right type, and
//! the file is read again, until there are no errors left or the error is not a single word.

use super::behaviour::{Behaviour, Rates};
use super::dice::Latency;
use super::mistake::{BehaviourError, BehaviourMistake, BehaviourProblem, ValueError};
use super::{aliases, managed};
use crate::platform::files;
use crate::platform::yaml::{self, Focus, Place, Problem, Step};
use std::path::Path;

/// Maximum number of mistakes reported.
const MOST: usize = 100;
/// Placeholders for an invalid word: a duration, then a number that is also a pattern.
const STAND_INS: [&str; 2] = ["1s", "1"];

/// Reads and checks a behaviour file.
///
/// # Errors
/// [`BehaviourError`] with the file, and all mistakes with their positions.
pub fn load(path: &Path) -> Result<Behaviour, BehaviourError> {
    let (text, read) = read::<Behaviour>(path)?;
    let Read { value, mut mistakes } = read;
    let Some(mut behaviour) = value else { return Err(BehaviourError::Invalid { path: path.to_owned(), mistakes }) };
    let tree = yaml::parse(&text).ok();
    for (at, problem) in Checked::of(&behaviour).wrong {
        let place = tree.as_ref().map(|tree| tree.locate(&at, Focus::Value));
        // A placeholder has no mistakes.
        if !mistakes.iter().any(|known| known.place.map(begin) == place.map(begin)) {
            mistakes.push(BehaviourMistake { place, problem: problem.into() });
        }
    }
    if !mistakes.is_empty() {
        mistakes.sort_by_key(|mistake| mistake.place);
        return Err(BehaviourError::Invalid { path: path.to_owned(), mistakes });
    }
    if let Some(file) = &behaviour.model.rates {
        let path = path.with_file_name(file);
        let (_, read) = self::read::<Rates>(&path)?;
        let (Some(rates), true) = (read.value, read.mistakes.is_empty()) else {
            return Err(BehaviourError::Invalid { path, mistakes: read.mistakes });
        };
        let own = std::mem::replace(&mut behaviour.model.habits, rates.habits);
        behaviour.model.habits.overlay(&own);
        behaviour.model.unless_asked = rates.unless_asked;
    }
    Ok(Behaviour { tools: aliases::by_tool(behaviour.tools), ..behaviour })
}

/// Reads a behaviour that this program wrote.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Behaviour, yaml::ReadError> {
    let behaviour: Behaviour = yaml::read(text)?;
    Ok(Behaviour { tools: aliases::by_tool(behaviour.tools), ..behaviour })
}

fn begin(place: Place) -> (u32, u32) {
    (place.line, place.column)
}

/// A parsed file, with placeholders for invalid words.
struct Read<T> {
    /// `None` if an error cannot be replaced by a placeholder.
    value: Option<T>,
    mistakes: Vec<BehaviourMistake>,
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<(String, Read<T>), BehaviourError> {
    let text =
        files::read_to_string(path).map_err(|error| BehaviourError::Unreadable { path: path.to_owned(), error })?;
    let read = typed(&text);
    Ok((text, read))
}

fn typed<T: serde::de::DeserializeOwned>(text: &str) -> Read<T> {
    let mut patched = Patched { text: text.to_owned(), shifts: Vec::new() };
    let mut mistakes: Vec<BehaviourMistake> = Vec::new();
    // The text and word of the last mistake, and the next placeholder for it.
    let mut last: Option<(Patched, Place, usize)> = None;
    loop {
        let error = match yaml::read::<T>(&patched.text) {
            Ok(value) => return Read { value: Some(value), mistakes },
            Err(error) => error,
        };
        let again = last.as_ref().is_some_and(|(_, place, _)| error.place.map(begin) == Some(begin(*place)));
        if !again {
            let place = error.place.map(|place| patched.original(place));
            let words = match &error.problem {
                // The error message of a value; the YAML is valid.
                Problem::Syntax(words) if yaml::parse(text).is_ok() => words.clone(),
                problem => problem.to_string(),
            };
            mistakes.push(BehaviourMistake { place, problem: BehaviourProblem::Shape(words) });
            let word = error.place.filter(|_| mistakes.len() < MOST).and_then(|place| patched.word(place));
            last = word.map(|word| (patched.clone(), word, 0));
        }
        let next = last.as_mut().and_then(|(before, word, tried)| {
            let stand_in = STAND_INS.get(*tried)?;
            *tried += 1;
            before.with(*word, stand_in)
        });
        match next {
            Some(next) => patched = next,
            None => return Read { value: None, mistakes },
        }
    }
}

/// A text in which some words were replaced.
#[derive(Clone)]
struct Patched {
    text: String,
    /// Line and column of each replaced word, and the difference in length.
    shifts: Vec<(u32, u32, i64)>,
}

impl Patched {
    /// The whole word at a position, if it is a value on one line.
    fn word(&self, place: Place) -> Option<Place> {
        let tree = yaml::parse(&self.text).ok()?;
        scalar_at(&tree, place)
    }

    fn with(&self, word: Place, stand_in: &str) -> Option<Self> {
        let mut lines: Vec<String> = self.text.split('\n').map(str::to_owned).collect();
        let line = lines.get_mut((word.line as usize).checked_sub(1)?)?;
        let letters: Vec<char> = line.chars().collect();
        let (start, length) = (word.column.saturating_sub(1) as usize, word.length as usize);
        let (before, after) = (letters.get(..start)?, letters.get(start + length..)?);
        *line = before.iter().copied().chain(stand_in.chars()).chain(after.iter().copied()).collect();
        let mut shifts = self.shifts.clone();
        shifts.push((word.line, word.column, stand_in.chars().count() as i64 - i64::from(word.length)));
        Some(Self { text: lines.join("\n"), shifts })
    }

    /// Converts a position to the original text.
    fn original(&self, place: Place) -> Place {
        let mut column = i64::from(place.column);
        for (line, from, by) in self.shifts.iter().rev() {
            if *line == place.line && i64::from(*from) < column {
                column -= by;
            }
        }
        Place { column: u32::try_from(column).unwrap_or(1).max(1), ..place }
    }
}

fn scalar_at(node: &yaml::Node<'_>, place: Place) -> Option<Place> {
    match node.kind() {
        yaml::Kind::Scalar(..) => (begin(node.place) == begin(place) && node.place.length > 0).then_some(node.place),
        yaml::Kind::List(items) => items.iter().find_map(|item| scalar_at(item, place)),
        yaml::Kind::Map(pairs) => pairs.iter().find_map(|(_, value)| scalar_at(value, place)),
        _ => None,
    }
}

/// The invalid values of a behaviour, by path.
struct Checked {
    wrong: Vec<(Vec<Step>, ValueError)>,
}

/// The steps of a path; numbers are list indices.
fn steps(path: &[&str]) -> Vec<Step> {
    path.iter().map(|part| part.parse().map_or_else(|_| Step::Key((*part).to_owned()), Step::Index)).collect()
}

impl Checked {
    fn of(behaviour: &Behaviour) -> Self {
        let mut checked = Self { wrong: Vec::new() };
        checked.names(behaviour);
        checked.shares(behaviour);
        checked.latencies(behaviour);
        checked.failures(behaviour);
        if let Some(declared) = &behaviour.managed {
            for (path, problem) in managed::check(declared) {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                checked.say(&[&["managed"], path.as_slice()].concat(), problem);
            }
        }
        checked
    }

    fn say(&mut self, path: &[&str], problem: ValueError) {
        self.wrong.push((steps(path), problem));
    }

    fn within(&mut self, path: &[&str], what: &'static str, found: f64, (least, most): (f64, f64)) {
        if !(least..=most).contains(&found) {
            self.say(path, ValueError::Range { what, least, most, found });
        }
    }

    fn names(&mut self, behaviour: &Behaviour) {
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if behaviour.name.is_empty() || !behaviour.name.chars().all(named) {
            self.say(&["name"], ValueError::Name(behaviour.name.clone()));
        }
        for (role, problem) in aliases::check(&behaviour.tools) {
            self.say(&["tools", role], problem);
        }
        for (index, topic) in behaviour.search.topics.iter().enumerate() {
            if topic.results.is_empty() {
                let problem = ValueError::NoResults(topic.answer.clone());
                self.say(&["search", "topics", &index.to_string(), "results"], problem);
            }
        }
    }

    fn shares(&mut self, behaviour: &Behaviour) {
        let model = &behaviour.model;
        let share = (0.0, 1.0);
        self.within(&["model", "sufficient_overlap"], "sufficient_overlap", model.sufficient_overlap, share);
        self.within(&["model", "variety"], "variety", model.variety, share);
        if model.top_k == 0 {
            self.say(&["model", "top_k"], ValueError::NoHits);
        }
        if let Some(judge) = &behaviour.judge {
            self.within(&["judge", "errs"], "judge: errs", judge.errs, share);
            self.within(&["judge", "swayed"], "judge: swayed", judge.swayed, share);
            self.within(&["judge", "garbles"], "judge: garbles", judge.garbles, share);
            for (item, looks) in &judge.items {
                self.within(&["judge", "items", item, "at_least"], "judge: at_least", looks.at_least, share);
            }
        }
        if let Some(embeddings) = &behaviour.embeddings {
            let dimensions = embeddings.dimensions as f64;
            self.within(&["embeddings", "dimensions"], "embeddings: dimensions", dimensions, (2.0, 4_096.0));
        }
    }

    fn latencies(&mut self, behaviour: &Behaviour) {
        let services = [
            ("model", Some(&behaviour.model.latency)),
            ("search", Some(&behaviour.search.latency)),
            ("judge", behaviour.judge.as_ref().map(|judge| &judge.latency)),
            ("embeddings", behaviour.embeddings.as_ref().map(|embeddings| &embeddings.latency)),
            ("managed", behaviour.managed.as_ref().map(|managed| &managed.latency)),
        ];
        for (service, latency) in services {
            if let Some(Latency::Lognormal(shape)) = latency {
                self.within(&[service, "latency", "lognormal", "sigma"], "sigma", shape.sigma, (0.0, 3.0));
            }
        }
    }

    fn failures(&mut self, behaviour: &Behaviour) {
        let services = [
            ("search", Some(&behaviour.search.failures)),
            ("embeddings", behaviour.embeddings.as_ref().map(|embeddings| &embeddings.failures)),
            ("managed", behaviour.managed.as_ref().map(|managed| &managed.failures)),
        ];
        for (service, failures) in services {
            for (index, failure) in failures.into_iter().flatten().enumerate() {
                let path = [service, "failures", &index.to_string(), "status"];
                self.within(&path, "a failure's status", f64::from(failure.status), (400.0, 599.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::behaviour::{FailTimes, Pace};
    use super::*;

    const SMALL: &str = "
name: small
seed: 1
model: {latency: {constant: 1s}}
search: {latency: {constant: 1s}, failures: [{when: {asks: tide}, status: 503, times: 2}, {when: {}, status: 500, times: always}]}
";

    fn written(text: &str) -> Result<Behaviour, BehaviourError> {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), text).expect("write");
        load(file.path())
    }

    #[test]
    fn a_small_file_loads_with_its_defaults() {
        let behaviour = written(SMALL).expect("valid");
        assert_eq!(behaviour.pace, Pace::Real);
        assert_eq!(behaviour.search.failures[0].times, FailTimes::Count(2));
        assert_eq!(behaviour.search.failures[1].times, FailTimes::Always);
    }

    #[test]
    fn mistakes_name_the_file_and_the_place() {
        for (from, to, part) in [
            ("seed: 1", "seed: 1\nsped: 2", "sped"),
            ("name: small", "name: Big Name", "Big Name"),
            ("asks: tide", "asks: '('", "regular expression: unclosed group"),
            ("status: 503", "status: 200", "400"),
            ("constant: 1s", "constant: 1", "not a duration"),
        ] {
            let error = written(&SMALL.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(error.contains(part) && error.contains("behaviour file"), "{error}");
        }
    }

    #[test]
    fn every_mistake_of_value_is_told_at_once_with_its_place() {
        let text = "name: Big Name
seed: 1
tools: {serch: find, respond: ''}
model:
  latency: {lognormal: {median: 900, sigma: 9, max: 12s}}
  sufficient_overlap: 2
  top_k: 0
  recall: ['(', fine, '[']
search:
  latency: {constant: soon}
  topics: [{when: {asks: 'x('}, answer: nothing, results: []}]
  failures: [{when: {asks: '(tide'}, status: 200, times: often}, {when: {}, status: 700, times: always}]
";
        let Err(BehaviourError::Invalid { mistakes, .. }) = written(text) else { panic!("it is not valid") };
        let places: Vec<(u32, u32)> = mistakes.iter().filter_map(|one| one.place.map(begin)).collect();
        let wanted = [
            (1, 7),
            (3, 16),
            (3, 31),
            (5, 33),
            (5, 45),
            (6, 23),
            (7, 10),
            (8, 12),
            (8, 23),
            (10, 23),
            (11, 26),
            (11, 59),
            (12, 28),
            (12, 46),
            (12, 58),
            (12, 85),
        ];
        assert_eq!(places, wanted, "{mistakes:#?}");
    }
}
