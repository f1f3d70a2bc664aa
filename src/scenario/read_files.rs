//! Reads the files other than scenarios: project file, criteria, rubric, ratings.

use super::check_criteria::{self, Known};
use super::diagnostic::{At, Diagnostic, Mistake, diagnose};
use super::files::PROJECT_FILE;
use super::load::Work;
use super::repair::parse;
use super::{Criteria, Criterion, Project, Rubric, prices, ratings, rubric};
use crate::platform::bounds::Bound;
use crate::platform::files;
use crate::settings::catalogue::Catalogues;
use crate::trace::MeasuredAgreement;
use std::path::{Path, PathBuf};

/// A criteria file, including criteria of flows.
#[derive(Debug, Default)]
pub(super) struct ReadCriteria {
    /// All criteria: those of flows first, then those of the file.
    pub criteria: Criteria,
    /// Number of criteria from flows.
    pub of_flows: usize,
    /// The file's text.
    pub text: String,
}

impl Work<'_> {
    pub(super) fn project(&mut self, catalogues: &Catalogues) -> (Project, Option<String>, String) {
        let path = self.root.join(PROJECT_FILE);
        if !path.is_file() {
            return (Project::default(), None, String::new());
        }
        self.files += 1;
        let text = match read(&path, PROJECT_FILE) {
            Ok(text) => text,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                return (Project::default(), None, String::new());
            }
        };
        let parsed = if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            None
        } else {
            parse::<Project>(&text, PROJECT_FILE, "", &[], &mut self.diagnostics)
        };
        let project = parsed.map_or_else(Project::default, |parsed| {
            let mistakes = parsed.own(check_criteria::project(&parsed.value, catalogues));
            self.diagnostics.extend(diagnose(mistakes, PROJECT_FILE, &text));
            parsed.value
        });
        let (project, files) = prices::with_price_file(self.root, project, &mut self.diagnostics);
        self.files += files;
        (project, Some(PROJECT_FILE.to_owned()), text)
    }

    pub(super) fn criteria_path(&self, project: &Project, given: Option<&Path>) -> Option<PathBuf> {
        let usual = self.root.join("scenarios/success-criteria.yaml");
        match (given, &project.criteria) {
            (Some(path), _) => Some(self.root.join(path)),
            (None, Some(path)) => Some(self.root.join(path)),
            (None, None) => usual.is_file().then_some(usual),
        }
    }

    pub(super) fn criteria(
        &mut self,
        path: &Path,
        file: &str,
        project: &Project,
        known: &Known<'_>,
        catalogues: &Catalogues,
    ) -> ReadCriteria {
        self.files += 1;
        let text = match read(path, file) {
            Ok(text) => text,
            Err(diagnostic) => {
                self.diagnostics.push(
                    (*diagnostic).with_help("criteria come from --criteria, or from `criteria` in ragcheck.yaml"),
                );
                return ReadCriteria::default();
            }
        };
        let Some(parsed) = parse::<Criteria>(&text, file, "criteria", &[], &mut self.diagnostics) else {
            return ReadCriteria { text, ..ReadCriteria::default() };
        };
        let kept = parsed.kept(parsed.value.criteria.len());
        let mistakes = parsed.own(check_criteria::criteria(&parsed.value, known, &kept));
        self.diagnostics.extend(diagnose(mistakes, file, &text));
        let mut criteria = parsed.value;
        if let (Some(estimand), false) = (project.estimand, text.lines().any(|line| line.starts_with("estimand"))) {
            criteria.estimand = estimand;
        }
        let mut rows = self.criteria_of_flows(&criteria, catalogues);
        let of_flows = rows.len();
        rows.append(&mut criteria.criteria);
        ReadCriteria { criteria: Criteria { flows: Vec::new(), criteria: rows, ..criteria }, of_flows, text }
    }

    /// Criteria that the named flows declare, each for its flow's trials, except those that the file overrides. Where
    /// an earlier flow declares the same name, this flow's is `FLOW/NAME`.
    fn criteria_of_flows(&mut self, criteria: &Criteria, catalogues: &Catalogues) -> Vec<Criterion> {
        let mut rows: Vec<Criterion> = Vec::new();
        for flow in criteria.flows.iter().filter_map(|name| catalogues.flow(name)) {
            let file = format!("the criteria of {}", flow.name);
            let Some(declared) = parse::<Criteria>(flow.criteria, &file, "criteria", &[], &mut self.diagnostics) else {
                continue;
            };
            let own = |row: &Criterion| criteria.criteria.iter().any(|other| other.id == row.id);
            let mut new: Vec<Criterion> = declared.value.criteria.into_iter().filter(|row| !own(row)).collect();
            for row in &mut new {
                row.flow = Some(flow.name.to_owned());
                if rows.iter().any(|earlier| earlier.id == row.id) {
                    row.id = format!("{}/{}", flow.name, row.id);
                }
            }
            rows.append(&mut new);
        }
        rows
    }

    pub(super) fn rubric(&mut self, text: &str, file: &str, project: &Project) -> Option<Rubric> {
        self.files += 1;
        let parsed = parse::<Rubric>(text, file, "items", &[], &mut self.diagnostics)?;
        let kept = parsed.kept(parsed.value.items.len());
        let mistakes = parsed.own(rubric::check(&parsed.value, &kept, project));
        self.diagnostics.extend(diagnose(mistakes, file, text));
        Some(parsed.value)
    }

    pub(super) fn ratings(&mut self, project: &Project, project_text: &str) -> Option<ratings::Counted> {
        let file = project.ratings.as_ref()?;
        self.files += 1;
        match files::read_text_within(self.root.join(file), Bound::RatingsSize) {
            Ok(text) => ratings::counted(&text, file).map_err(|mistakes| self.diagnostics.extend(mistakes)).ok(),
            Err(error) => {
                let root = At::ROOT;
                let mistake = Mistake::at(root.key("ratings"), "no-such-file", "the ratings cannot be read");
                self.diagnostics.extend(diagnose(vec![mistake.label(error.to_string())], PROJECT_FILE, project_text));
                None
            }
        }
    }

    pub(super) fn agreement(&mut self, project: &Project, project_text: &str) -> Option<MeasuredAgreement> {
        let file = project.agreement.as_ref()?;
        self.files += 1;
        let read =
            files::read_text_within(self.root.join(file), Bound::ScenarioSize).map_err(|error| error.to_string());
        let found = read.and_then(|text| MeasuredAgreement::read(&text).map_err(|why| why.to_string()));
        found
            .map_err(|why| {
                let root = At::ROOT;
                let mistake = Mistake::at(root.key("agreement"), "bad-agreement", "the agreement cannot be used");
                self.diagnostics.extend(diagnose(vec![mistake.label(why)], PROJECT_FILE, project_text));
            })
            .ok()
    }
}

pub(super) fn read(path: &Path, file: &str) -> Result<String, Box<Diagnostic>> {
    let bytes = files::read_at_most(path, Bound::ScenarioSize.most()).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::FileTooLarge => {
                let diagnostic =
                    Diagnostic::error("too-large", file, format!("it is larger than {}", Bound::ScenarioSize.shown()));
                return Box::new(diagnostic.with_help(Bound::ScenarioSize.advice()));
            }
            _ => format!("it cannot be read: {error}"),
        };
        Box::new(Diagnostic::error("no-such-file", file, message))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].split(|byte| *byte == b'\n').count();
        let diagnostic = Diagnostic::error("not-utf8", file, format!("line {line} is not UTF-8 text"));
        Box::new(diagnostic.with_help("save the file as UTF-8"))
    })?;
    Ok(with_line_feeds(text))
}

/// Replaces each lone carriage return by a line feed: YAML reads both as a line break, and code that works on lines
/// must agree.
fn with_line_feeds(text: String) -> String {
    let alone = |(at, _): (usize, &str)| text.as_bytes().get(at + 1) != Some(&b'\n');
    if !text.match_indices('\r').any(alone) {
        return text;
    }
    let mut letters = text.chars().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        out.push(if letter == '\r' && letters.peek() != Some(&'\n') { '\n' } else { letter });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_alone_ends_a_line_and_windows_line_ends_stay() {
        assert_eq!(with_line_feeds("# a\rb: 1\r\nc: 2\r".into()), "# a\nb: 1\r\nc: 2\n");
    }
}
