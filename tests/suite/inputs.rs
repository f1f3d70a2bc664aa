//! `check` and `list` as a person sees them: what is recorded, what is not, and what would run.

use ragcheck::internals::cassette::{Cassette, Header, Redactor};
use ragcheck::internals::cli::{check, list};
use ragcheck::internals::plan::{self, Selection};
use ragcheck::internals::scenario;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken/project")
}

#[test]
fn a_recorded_lane_is_listed_as_such_and_the_others_are_noted_with_their_command() {
    let cassettes = tempfile::tempdir().expect("a folder");
    let case = cassettes.path().join("sound/one-turn");
    fs::create_dir_all(&case).expect("a folder");
    for lane in ["tool-rag.feedback.1", "tool-rag.feedback.2", "tool-rag.forced.1"] {
        let header = Header {
            scenario: "sound".into(),
            case: "one-turn".into(),
            lane: lane.into(),
            recorded_at: "2026-02-11T09:14:03Z".parse().expect("a time"),
            recorded_from: BTreeMap::from([("model".into(), "simulator".into())]),
            recorder: "0.1.0".into(),
            knowledge: String::new(),
            seed: 1,
            subject: String::new(),
            take: 1,
            takes: BTreeMap::new(),
            profiles: BTreeMap::from([("openai-chat".into(), 1)]),
            vars: BTreeMap::new(),
            spans: Vec::new(),
            stopping: None,
            held: None,
        };
        let recorded = Cassette::new(header, Vec::new(), BTreeMap::new());
        let saved = recorded.save(&case.join(format!("{lane}.yaml")), &case.join("blobs"), &Redactor::default());
        saved.expect("a recording");
    }
    let checked = check::check(&root(), &[], None, Some(cassettes.path()));
    let text = checked.text(false);
    assert_eq!(checked.exit_code(), 0);
    assert!(text.contains("1 of 4 lanes of `one-turn` have no recording"), "{text}");
    assert!(text.contains("ragcheck run scenarios/sound.yaml --mode record --only sound/one-turn"), "{text}");
    assert!(text.contains("8 of 8 lanes of `remembers` have no recording"), "{text}");
    assert!(text.ends_with("0 errors, 6 notes in 3 files\n"), "{text}");

    let loaded = scenario::load(&root(), &[], None, &ragcheck::internals::catalogues()).expect("a sound project");
    let selection = Selection { only: vec!["one-turn".into()], ..Selection::default() };
    let plan = plan::build(&loaded, &selection, 1).expect("a plan");
    let rows = list::rows(&loaded, &plan, Some(cassettes.path()));
    let expected = "\
SCENARIO  CASE      LANE                 TURNS  RECORDED
sound     one-turn  tool-rag.feedback.1      1  yes
sound     one-turn  tool-rag.feedback.2      1  yes
sound     one-turn  tool-rag.forced.1        1  yes
sound     one-turn  tool-rag.forced.2        1  no

4 trials of 1 case, 4 turns, 3 recorded
RECORDED compares the first request of each trial of a built-in flow; `ragcheck run` compares all requests.
";
    assert_eq!(list::text(&rows), expected);
}

#[test]
fn the_lines_of_cases_and_the_prompts_of_variants_are_resolved() {
    let loaded = scenario::load(&root(), &["scenarios/sound.yaml".into()], None, &ragcheck::internals::catalogues())
        .expect("a sound project");
    let source = &loaded.scenarios[0];
    let text = fs::read_to_string(root().join(&source.file)).expect("the scenario");
    for (place, case) in source.case_places.iter().zip(&source.scenario.cases) {
        let written = text.lines().nth(place.line as usize - 1).expect("the line");
        assert_eq!(written.trim(), format!("- case: {}", case.case));
    }
    assert_eq!(source.prompts.keys().collect::<Vec<_>>(), ["feedback", "forced"]);
    assert_eq!(source.prompts["forced"]["missing_call"], "Call {tool} first.");
    assert_eq!(loaded.criteria_file, "scenarios/success-criteria.yaml");
}

#[test]
fn two_files_with_one_scenario_name_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["a/same.yaml", "b/same.yaml"] {
        fs::create_dir_all(folder.path().join(file).parent().expect("a folder")).expect("a folder");
        let text = fs::read_to_string(root().join("scenarios/sound.yaml")).expect("the scenario");
        fs::write(folder.path().join(file), text.replace("scenario: sound", "scenario: same")).expect("a file");
    }
    for file in ["ragcheck.yaml", "knowledge/garden/compost.md"] {
        fs::create_dir_all(folder.path().join(file).parent().expect("a folder")).expect("a folder");
        fs::copy(root().join(file), folder.path().join(file)).expect("a copy");
    }
    let mistakes = scenario::load(folder.path(), &["a".into(), "b".into()], None, &ragcheck::internals::catalogues())
        .expect_err("two of one name");
    let codes: Vec<_> = mistakes.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, ["duplicate-scenario"], "{mistakes:?}");
}
