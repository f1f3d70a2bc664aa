//! Grades and comparisons in a run folder count only where they were made: a checkout may hold the folder of the coming
//! run with those of a stranger.

use super::project::Project;
use std::fs;

const RUN: [&str; 2] = ["run", "scenarios/external.yaml"];

/// The shipped project with a gate on grades, and a folder for the user's key.
struct Place {
    project: Project,
    state: tempfile::TempDir,
}

impl Place {
    fn set() -> Self {
        let project = Project::shipped();
        let gate = "gates:\n  - {id: grounded, metric: grade(grounded), target: '>= 1%', kind: point}\ncases:\n";
        project.edit("scenarios/external.yaml", "cases:\n", gate);
        Self { project, state: tempfile::tempdir().expect("a folder") }
    }

    fn ask(&self, arguments: &[&str]) -> super::project::Outcome {
        let mut command = self.project.command(arguments);
        super::project::Outcome::of(command.env("XDG_STATE_HOME", self.state.path()))
    }

    /// The numbers of grades that verdicts show, and the printed words.
    fn grades(&self) -> usize {
        let run: serde_json::Value =
            serde_json::from_str(&self.project.read("reports/latest/run.json")).expect("run.json");
        run["grades"].as_array().map_or(0, Vec::len)
    }
}

#[test]
fn grades_that_a_stranger_left_in_the_folder_of_the_coming_run_count_nothing_and_are_named() {
    let place = Place::set();
    place.ask(&RUN);
    place.ask(&["judge", "reports/latest"]).expect_code(0);
    let grades = place.project.read("reports/latest/grades.jsonl");
    assert!(place.grades() > 0);
    let again = place.ask(&RUN);
    assert!(!again.stderr.contains("do not count") && place.grades() > 0, "graded here: {}", again.stderr);

    // The same folder in a checkout: sealed grades, and a list that another key made.
    let list = place.project.read("reports/latest/own-files.json");
    for (state, forged) in [(None, grades.replace("\"value\":\"fail\"", "\"value\":\"pass\"")), (Some("x"), grades)] {
        let forged: String =
            forged.lines().map(|line| ragcheck::internals::trace::seal(&unsealed(line)).0 + "\n").collect();
        place.project.write("reports/latest/grades.jsonl", &forged);
        place.project.write("reports/latest/own-files.json", &list);
        if state.is_some() {
            fs::remove_dir_all(place.state.path().join("ragcheck")).expect("the key");
        }
        let run = place.ask(&RUN);
        let told = super::external::plain(&run.stderr);
        assert!(told.contains("grades.jsonl") && told.contains("do not count"), "{}", run.stderr);
        assert_eq!(place.grades(), 0, "{}", run.stdout);
        assert!(!run.stdout.contains("graded by"), "{}", run.stdout);
        assert_eq!(place.project.read("reports/latest/earlier/grades.jsonl"), forged, "nothing is lost");
        assert!(!place.project.path("reports/latest/grades.jsonl").exists());
    }
    place.ask(&["judge", "reports/latest"]).expect_code(0);
    assert!(place.grades() > 0, "graded again from the recordings");
}

/// A sealed line without its digest.
fn unsealed(line: &str) -> String {
    let (body, _) = line.rsplit_once(",\"digest\"").expect("a digest");
    format!("{body}}}")
}

#[test]
fn a_comparison_that_was_edited_or_is_a_strangers_is_in_no_report_and_no_page() {
    let place = Place::set();
    place.ask(&RUN);
    place.ask(&["compare", "reports/latest", "--save", "base.json"]).expect_code(0);
    place.project.edit("scenarios/external.yaml", "case: feed-in-tariff", "case: tariff");
    place.ask(&RUN);
    place.ask(&["compare", "base.json", "reports/latest"]);
    let comparison = place.project.read("reports/latest/comparison.json");
    let report = ["report", "reports/latest", "--to", "markdown"];
    let with = place.ask(&report);
    assert!(!with.stderr.contains("left out"), "{}", with.stderr);
    for edited in [comparison.replacen("\"margin\": 0.", "\"margin\": 1.", 1), unsealed_pretty(&comparison)] {
        assert_ne!(edited, comparison);
        place.project.write("reports/latest/comparison.json", &edited);
        let without = place.ask(&report);
        assert!(without.stderr.contains("comparison.json is left out: it was edited by hand"), "{}", without.stderr);
        assert_ne!(without.stdout, with.stdout, "it showed the comparison");
    }
    place.project.write("reports/latest/comparison.json", &comparison);
    fs::remove_file(place.project.path("reports/latest/own-files.json")).expect("the list");
    let run = place.ask(&RUN);
    let told = super::external::plain(&run.stderr);
    assert!(
        told.contains("comparison.csv, comparison.html, comparison.json") && told.contains("do not count"),
        "{told}"
    );
    assert!(!place.project.read("reports/latest/index.html").contains("comparison.html"));
    assert!(!place.project.path("reports/latest/comparison.json").exists());
}

fn unsealed_pretty(text: &str) -> String {
    let (body, _) = text.rsplit_once(",\n  \"digest\"").expect("a digest");
    format!("{body}\n}}\n")
}
