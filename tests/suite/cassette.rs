//! Care for recordings: secrets in them, their age, what they no longer fit, and recording them again.

use super::project::{Outcome, Project};
use super::schemas::printed;
use super::simulator::recording;

const LANE: &str = "fixtures/cassettes/knowledge/valve-error/tool-rag.base.1.yaml";

#[test]
fn the_shipped_recordings_hold_no_secret() {
    let outcome = Project::shipped().run(&["cassette", "scan"]);
    outcome.expect_code(0);
    let files = outcome.stdout.strip_prefix("no secret in ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(files.is_some_and(|files: usize| files > 400), "{}", outcome.stdout);
}

#[test]
fn a_planted_secret_is_found_by_place_and_kind_and_never_shown() {
    let project = Project::shipped();
    let (known, formed) = ("planted/Secret+0451", "sk-plantedplantedplanted0451");
    let text = project.read(LANE);
    let line = 1 + text[..text.find("content: ").expect("a message")].matches('\n').count();
    project.edit(LANE, "content: ", &format!("note: \"planted%2FSecret%2B0451 {formed}\"\n          content: "));
    project.write("notes/keys.txt", &format!("first\nanything\\n{formed}\n{known}\n"));
    project.write("some.env", &format!("SEARCH={known}\n"));
    let found = |arguments: &[&str]| {
        let outcome = Outcome::of(project.command(arguments).env("MY_TOKEN", known));
        for secret in [known, formed, "planted%2FSecret%2B0451"] {
            assert!(!outcome.stdout.contains(secret) && !outcome.stderr.contains(secret), "{}", outcome.stdout);
        }
        outcome
    };
    let outcome = found(&["cassette", "scan"]);
    outcome.expect_code(1);
    assert_eq!(outcome.stdout.lines().count(), 2, "{}", outcome.stdout);
    assert!(outcome.stdout.contains(&format!("{LANE}:{line}: the value of MY_TOKEN\n")), "{}", outcome.stdout);
    assert!(outcome.stdout.contains(&format!("{LANE}:{line}: a key that begins like those of OpenAI")));
    assert!(outcome.stderr.contains("2 secrets in 1 file"), "{}", outcome.stderr);

    let outcome = found(&["cassette", "scan", "notes", "scenarios/knowledge.yaml", "--env-file", "some.env"]);
    outcome.expect_code(1);
    assert!(outcome.stdout.starts_with("notes/keys.txt:2: a key that begins"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("notes/keys.txt:3: the value of "), "{}", outcome.stdout);
    found(&["cassette", "scan", "scenarios"]).expect_code(0);
    found(&["cassette", "scan", "no-such-file"]).expect_code(2);
}

#[test]
fn old_recordings_are_warned_of_on_stderr_and_change_no_report() {
    let project = Project::shipped();
    let run = |now: &str, more: &[&str]| {
        let arguments = [&["run", "scenarios/knowledge.yaml", "--only", "valve-error"], more].concat();
        let outcome = Outcome::of(project.command(&arguments).env("RAGCHECK_NOW", now));
        (outcome, project.report(&project.newest()))
    };
    let (young, fresh) = run("2026-12-01T00:00:00Z", &[]);
    assert!(!young.stderr.contains("older than"), "{}", young.stderr);
    let (old, stale) = run("2027-06-01T00:00:00Z", &[]);
    assert!(old.stderr.contains("3 recordings are older than 90 days"), "{}", old.stderr);
    assert!(old.stderr.contains("knowledge/valve-error/tool-rag.base."), "{}", old.stderr);
    assert!(old.stderr.contains("ragcheck cassette refresh --stale"), "{}", old.stderr);
    assert_eq!((young.code, &young.stdout), (old.code, &old.stdout));
    assert!(fresh == stale, "an age changed a report");
    assert!(run("2026-12-01T00:00:00Z", &["--warn-recordings-after", "1d"]).0.stderr.contains("older than 1 day,"));

    project.edit("ragcheck.yaml", "reports: reports\n", "reports: reports\nrecordings: {warn_after: never}\n");
    assert!(!run("2037-06-01T00:00:00Z", &[]).0.stderr.contains("older than"));
    project.edit("ragcheck.yaml", "warn_after: never", "warn_after: 3 weeks");
    let (wrong, _) = run("2026-12-01T00:00:00Z", &[]);
    wrong.expect_code(2);
    assert!(wrong.stderr.contains("`3 weeks` is not an age"), "{}", wrong.stderr);
}

#[test]
fn check_notes_what_is_old_what_drifted_and_what_belongs_to_nothing() {
    let project = Project::shipped();
    let check = |arguments: &[&str]| project.run(&[&["check", "scenarios/knowledge.yaml"], arguments].concat());
    let clean = check(&[]);
    clean.expect_code(0);
    assert!(clean.stdout.contains("0 errors, 0 notes"), "{}", clean.stdout);

    let prompt = include_str!("../../src/flow/tool_rag/prompts/system.md");
    project.write("scenarios/prompts/system.md", &format!("{prompt}\nBe brief.\n"));
    project.edit(
        "scenarios/knowledge.yaml",
        "repeat: 3\n",
        "repeat: 3\nvariants:\n  base: {prompts: {system: {file: prompts/system.md}}, temperature: 0.9}\n",
    );
    let lane = project.read(LANE);
    project.write("fixtures/cassettes/knowledge/renamed-away/tool-rag.base.1.yaml", &lane);
    let outcome = check(&["--warn-recordings-after", "12h"]);
    outcome.expect_code(0);
    for words in [
        "24 recordings are older than 12 hours, the oldest that of knowledge/",
        "system prompt, parameters changed since 24 lanes (",
        "1 recording of `knowledge` belongs to no trial: renamed-away/tool-rag.base.1",
        "delete fixtures/cassettes/knowledge/renamed-away/tool-rag.base.1.yaml",
        "ragcheck cassette refresh --stale scenarios/knowledge.yaml",
        "0 errors, 3 notes",
    ] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
}

#[test]
fn check_and_list_say_that_a_reworded_question_would_miss_and_the_run_misses_just_these() {
    let project = Project::shipped();
    let one = ["list", "scenarios/knowledge.yaml", "--format", "json"];
    let missing = || -> Vec<String> {
        let rows: Vec<serde_json::Value> = serde_json::from_str(&project.run(&one).stdout).expect("JSON");
        let missing = rows.iter().filter(|row| row["would_miss"] == serde_json::json!(["question"]));
        missing.map(|row| row["trial"].as_str().expect("a trial").to_owned()).collect()
    };
    // A hash that is not that of its request makes no miss.
    let lane = project.read(LANE);
    let (before, rest) = lane.split_once(" system: \"").expect("a hash");
    project.write(LANE, &format!("{before} system: \"ffff{}", &rest[4..]));
    let listed = project.run(&["list", "scenarios/knowledge.yaml"]).stdout;
    let footer =
        "RECORDED compares the first request of each trial of a built-in flow; `ragcheck run` compares all requests.";
    assert!(listed.ends_with(&format!(" 24 recorded\n{footer}\n")), "{listed}");
    project.write(LANE, &lane);
    project.edit("scenarios/knowledge.yaml", "What does error E-17 mean, and", "What is error E-17, and");
    let outcome = project.run(&["list", "scenarios/knowledge.yaml"]);
    let said = outcome.expect_code(0).stdout.clone();
    assert_eq!(said.matches("  would miss: question changed\n").count(), 3, "{said}");
    assert!(said.ends_with(&format!(" 24 recorded, 3 of them would miss\n{footer}\n")), "{said}");
    let checked = project.run(&["check", "scenarios/knowledge.yaml"]).stdout;
    assert!(checked.contains("question changed since 3 lanes ("), "{checked}");
    project.run(&["run", "scenarios/knowledge.yaml", "--no-history"]).expect_code(3);
    let traces = project.traces();
    let missed = traces.iter().filter(|trace| trace["end"] != "completed");
    let missed: Vec<String> = missed.map(|trace| trace["trial"].as_str().expect("a trial").to_owned()).collect();
    assert_eq!(missed, missing());
    // The question is named beside what else has changed.
    project.edit("scenarios/knowledge.yaml", "name: fernlight-sim", "name: fernlight-two");
    let said = project.run(&["list", "scenarios/knowledge.yaml"]).stdout;
    assert_eq!(said.matches("  would miss: model, question changed\n").count(), 3, "{said}");
    assert_eq!(said.matches("  would miss: model changed\n").count(), 21, "{said}");
}

#[test]
fn list_says_of_a_recording_that_was_edited_or_cut_short_that_it_would_miss() {
    let project = Project::shipped();
    let lane = project.read(LANE);
    let said = || {
        let said = project.run(&["list", "scenarios/knowledge.yaml"]).stdout;
        assert!(said.contains(" 24 recorded, 1 of them would miss\n"), "{said}");
        assert_eq!(said.matches("  would miss: recording broken or edited\n").count(), 1, "{said}");
    };
    let (before, key) = lane.split_once(" key: \"").expect("a key");
    project.write(LANE, &format!("{before} key: \"ffff{}", &key[4..]));
    said();
    let checked = project.run(&["check", "scenarios/knowledge.yaml"]).stdout;
    assert!(checked.contains("1 recording is incomplete or edited and would miss, that of knowledge/"), "{checked}");
    project.write(LANE, &lane[..lane.len() / 2]);
    said();
}

#[test]
fn check_tells_a_shared_prompt_that_was_edited_or_lost() {
    let project = Project::shipped();
    let lane = project.read(LANE);
    let blob = lane.split("\"$blob\": \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a blob");
    let file = format!("fixtures/cassettes/knowledge/blobs/{blob}");
    let check = || {
        let outcome = project.run(&["check", "scenarios/knowledge.yaml"]);
        outcome.expect_code(2);
        assert!(outcome.stdout.contains("1 error, 0 notes"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("error: requests of 24 lanes, knowledge/"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("(fixtures/cassettes/knowledge/blobs)"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("ragcheck run scenarios/knowledge.yaml --mode record"), "{}", outcome.stdout);
        outcome.stdout
    };
    project.write(&file, &format!("{} Be brief.", project.read(&file)));
    let told = check();
    assert!(told.contains(&format!("the blob {blob} was edited")), "{told}");
    std::fs::remove_file(project.path(&file)).expect("the blob");
    let told = check();
    assert!(told.contains(&format!("the blob {blob} is missing")), "{told}");
}

#[test]
fn rekeying_changes_nothing_of_a_sound_recording_mends_a_key_and_refuses_what_lacks_a_request() {
    let project = Project::shipped();
    let outcome = project.run(&["cassette", "rekey"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.starts_with("0 of "), "{}", outcome.stdout);

    let sound = project.read(LANE);
    let version = "profiles:\n  openai-chat: 1\n";
    project.edit(LANE, version, &version.replace('1', "0"));
    project.edit(LANE, "key: \"", "key: \"f");
    let text = project.read(LANE);
    project.run(&["run", "scenarios/knowledge.yaml", "--only", "valve-error"]).expect_code(3);
    let outcome = project.run(&["cassette", "rekey", "fixtures/cassettes/knowledge"]);
    outcome.expect_code(0);
    let told = format!("{LANE}: 1 of 2 exchanges with a new key, openai-chat from version 0 to 1\n");
    assert!(outcome.stdout.contains(&told), "{}", outcome.stdout);
    assert_eq!(project.read(LANE), sound);

    let blob = text.split("\"$blob\": \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a blob");
    std::fs::remove_file(project.path(&format!("fixtures/cassettes/knowledge/blobs/{blob}"))).expect("the blob");
    project.write(LANE, &text);
    let outcome = project.run(&["cassette", "rekey", LANE]);
    outcome.expect_code(3);
    assert!(
        outcome.stderr.contains(&format!("{LANE}: left as it was: the request of exchange 0 is missing or incomplete"))
    );
    assert_eq!(project.read(LANE), text);
}

const TARIFF: &str = "fixtures/cassettes/external/feed-in-tariff/tool-rag.base";
const PRICES: &str = "prices:\n  simulator/fernlight-sim: {input: 2, output: 8}\n";

#[test]
fn a_refresh_records_the_lanes_that_miss_and_no_other_says_before_what_it_takes_and_asks() {
    let (project, simulator) = recording();
    let lane = |number: u32| format!("{TARIFF}.{number}.yaml");
    let before = [1, 2, 3].map(|number| project.read(&lane(number)));
    project.edit(&lane(2), "key: \"", "key: \"f");
    std::fs::remove_file(project.path(&lane(3))).expect("the lane");
    project.edit("ragcheck.yaml", "providers:\n", &format!("{PRICES}providers:\n"));
    let refresh = ["cassette", "refresh", "--missed", "scenarios/external.yaml", "--only", "feed-in-tariff"];

    let asked = project.run(&refresh);
    asked.expect_code(2);
    for words in ["2 lanes to record again: 1 cassette miss, 1 lane missing", "--yes", "about $0.0"] {
        assert!(asked.stderr.contains(words), "{words}: {}", asked.stderr);
    }
    assert!(asked.stderr.contains("1 lane without a sound recording counted as the mean of the others"));
    assert!(asked.stderr.contains("cost not measured for simulator-search/"), "{}", asked.stderr);
    assert!(!project.path(&lane(3)).exists());

    let done = project.run(&[&refresh[..], &["--yes"]].concat());
    assert!(done.stdout.contains("2 trials: 2 PASS"), "{}{}", done.stdout, done.stderr);
    assert_eq!(project.read(&lane(1)), before[0], "a lane that fits was recorded again");
    assert!(project.read(&lane(2)).contains("take: 2\ntakes:\n  - take: 1\n"), "{}", project.read(&lane(2)));
    assert!(project.read(&lane(3)).contains("take: 1\ntakes:\n  - take: 1\n"), "{}", project.read(&lane(3)));
    drop(simulator);
    let again = project.run(&[&refresh[..], &["--yes"]].concat());
    again.expect_code(0);
    assert!(again.stdout.contains("nothing to record again"), "{}", again.stdout);
}

#[test]
fn recording_until_green_shows_in_the_cassette_the_conversation_and_the_report() {
    let (project, simulator) = recording();
    let scenario = "scenario: mine\nflow: tool-rag\nknowledge: fernlight\nmodel: {provider: simulator, name: any}\ncases:\n  - \
                    {case: one, ask: How long does the warranty of the Canopy last?, expect: {answer: {matches: [warranty]}}}\n";
    project.write("mine.yaml", &scenario.replace("expect: {", "expect: {within: 1us, "));
    let record = ["run", "mine.yaml", "--mode", "record"];
    for _ in 0..2 {
        project.run(&record).expect_code(1);
    }
    project.write("mine.yaml", scenario);
    project.run(&record);
    drop(simulator);
    let shown = project.run(&["show", &format!("{}/mine/one/tool-rag.base.1", project.newest())]);
    assert!(shown.stdout.contains("\ndraw 3; draws 1, 2: FAIL\n"), "{}", shown.stdout);
    let lane = project.read("fixtures/cassettes/mine/one/tool-rag.base.1.yaml");
    assert_eq!(lane.matches("verdict: \"FAIL\"").count(), 2, "{lane}");
    assert!(lane.contains("verdict: \"PASS\"\nprofiles:"), "{lane}");
    assert_eq!(project.traces()[0]["evidence"]["earlier_takes"], serde_json::json!(["FAIL", "FAIL"]));
}

const FOREIGN: &str = r#"interactions:
- request:
    body: '{"model": "m-1", "messages": [{"role": "user", "content": "My key is sk-plantedplantedplanted0451"}]}'
    headers: {authorization: [Bearer plantedplantedplanted0451]}
    method: POST
    uri: https://models.example/v1/chat/completions
  response:
    body: {string: '{"id": "1", "choices": []}'}
    headers: {Content-Type: [application/json], Set-Cookie: [planted0451]}
    status: {code: 200, message: OK}
- request: {body: 'user=planted', headers: {}, method: POST, uri: 'https://models.example/v1/chat/completions'}
  response: {body: {string: ''}, headers: {}, status: {code: 204, message: No Content}}
- request: {body: 'grant=x&api_key=sk-plantedplantedplanted0451', headers: {}, method: POST, uri: 'https://models.example/login'}
  response: {body: {string: ''}, headers: {}, status: {code: 204, message: No Content}}
version: 1
"#;

#[test]
fn a_foreign_cassette_becomes_a_lane_without_its_secrets_and_what_is_left_out_is_told() {
    let project = Project::shipped();
    project.write("vcr/Test_Login[a].yaml", FOREIGN);
    project.write("vcr/broken.yaml", "interactions: {");
    project.write("vcr/unlike.json", "{\"log\": {}}");
    let import = ["cassette", "import", "vcr", "--format", "vcr", "--scenario", "theirs"];
    let outcome = project.run(&import);
    outcome.expect_code(3);
    let lane = "fixtures/cassettes/theirs/test-login-a/external.base.1.yaml";
    assert!(
        outcome.stdout.contains(&format!("vcr/Test_Login[a].yaml: 2 exchanges of VCR.py -> {lane}\n")),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("2 exchanges imported, 1 exchange left out; 0 of 3 files whole"),
        "{}",
        outcome.stdout
    );
    for words in [
        "vcr/Test_Login[a].yaml: interaction 2 (line 11) not imported: the body of the request is no JSON document",
        "vcr/broken.yaml: not imported: not YAML: line 1",
        "vcr/unlike.json: not imported: not a recording of VCR.py: no `interactions` in it",
        "note: headers of requests are left out: method, path and body are matched (2 exchanges)",
        "left out: 1 exchange: the body of the request is no JSON document",
        "left out: 2 files that could not be read, named above",
    ] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    let text = project.read(lane);
    assert!(!text.contains("planted") && text.contains("My key is [redacted:openai]"), "{text}");
    assert!(text.contains("profile: \"openai-chat\"") && text.contains("path: \"/chat/completions\""), "{text}");
    project.run(&["cassette", "rekey", "fixtures/cassettes/theirs"]).expect_code(0);
    assert_eq!(project.read(lane), text, "the key is not that of the stored request");

    let again = project.run(&import);
    assert!(again.stderr.contains("theirs/test-login-a is there already"), "{}", again.stderr);
    project.run(&["cassette", "import", "vcr", "--format", "vcr", "--scenario", "../x"]).expect_code(2);
}

#[test]
fn a_diff_compares_shapes_with_what_the_services_answer_today() {
    let (project, simulator) = recording();
    let diff =
        ["cassette", "diff", "scenarios/external.yaml", "--only", "feed-in-tariff", "--repeat=1", "--sample", "3"];
    let same = project.run(&diff);
    same.expect_code(0);
    assert!(same.stdout.contains("model, simulator/fernlight-sim (openai-chat): 3 of "), "{}", same.stdout);
    assert_eq!(same.stdout.matches("  same shape\n").count(), 2, "{}", same.stdout);
    assert_eq!(project.run(&diff).stdout, same.stdout, "another sample by the same seed");
    assert_eq!(printed(&project, &diff)[0]["changes"], serde_json::json!([]));

    let lane = format!("{TARIFF}.1.yaml");
    let text = project.read(&lane);
    let older = text
        .replace("        created: 0\n", "        created: \"today\"\n        fee: {cents: 3}\n")
        .replace("        object: \"chat.completion\"\n", "");
    assert_ne!(older, text);
    project.write(&lane, &older);
    let outcome = project.run(&diff);
    outcome.expect_code(1);
    for words in [
        "  new: object: string\n",
        "  gone: fee: object, in every recorded answer\n",
        "  changed type: created: string before, number now\n",
    ] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("fee.cents"), "{}", outcome.stdout);
    assert_eq!(project.read(&lane), older, "a diff writes nothing");
    drop(simulator);
    let outcome = project.run(&diff);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("3 requests failed: "), "{}", outcome.stdout);
}

#[test]
fn tokens_and_money_are_told_by_trial_case_variant_and_run_and_what_nobody_priced_is_not_measured() {
    let project = Project::shipped();
    let run = ["run", "scenarios/external.yaml", "--only", "feed-in-tariff"];
    let unpriced = project.run(&run);
    let words = "cost NOT_MEASURED: no price of simulator-search/perplexity/sonar, simulator/fernlight-sim";
    let line = unpriced.stdout.replace("\n  ", " ");
    assert!(line.contains(words), "{}", unpriced.stdout);

    let search = "  simulator-search/perplexity/sonar: {input: 1, output: 1, request: 0.005}\n";
    project.edit("ragcheck.yaml", "providers:\n", &format!("{PRICES}{search}providers:\n"));
    let priced = project.run(&run);
    assert!(priced.stdout.contains(" output tokens; cost $0.0"), "{}", priced.stdout);
    let (mut millionths, mut searches) = (0.0, 0.0);
    for trace in project.traces() {
        for event in trace["events"].as_array().expect("events") {
            let tokens = |value: &serde_json::Value, name: &str| value[name].as_f64().unwrap_or(0.0);
            let done = &event["what"]["model_called"]["reply"]["completion"];
            millionths += 2.0 * tokens(done, "input_tokens") + 8.0 * tokens(done, "output_tokens");
            let found = &event["what"]["tool_called"]["outcome"]["ok"]["external"];
            millionths += tokens(found, "input_tokens") + tokens(found, "output_tokens");
            searches += if found.is_object() { 1.0 } else { 0.0 };
        }
    }
    assert!(millionths > 0.0 && searches > 0.0);
    let expected = millionths / 1e6 + searches * 0.005;
    let judged = project.latest("run.json");
    let spending = &judged["spending"];
    for spent in [&spending["run"], &spending["variants"][0]["spent"], &spending["cases"][0]["spent"]] {
        assert!((spent["cost_usd"].as_f64().expect("a cost") - expected).abs() < 1e-9, "{spent}, not {expected}");
        assert_eq!(spent["trials"], 3);
    }
    assert_eq!(spending["variants"][0]["name"], "external@base");
    assert_eq!(spending["cases"][0]["name"], "external/feed-in-tariff");
    let trials = judged["trials"].as_array().expect("trials").iter();
    let sum: f64 = trials.map(|trial| trial["cost_usd"].as_f64().expect("a cost")).sum();
    assert!((sum - expected).abs() < 1e-9);
    let table = project.read(&format!("{}/trials.csv", project.newest()));
    assert!(
        table.lines().next().is_some_and(|head| head.contains("input_tokens,cached_tokens,output_tokens,cost_usd"))
    );
    let scored = project.run(&["score", &project.newest()]);
    assert!(scored.stdout.contains(" output tokens; cost $0.0"), "prices are not in the plan: {}", scored.stdout);
}

#[test]
fn a_run_ends_cleanly_when_its_money_is_spent_and_needs_a_price_for_everything() {
    let (project, _simulator) = recording();
    let run = ["run", "scenarios/external.yaml", "--mode", "live", "--jobs", "1", "--max-cost", "0.2"];
    let unpriced = project.run(&run);
    unpriced.expect_code(2);
    assert!(
        unpriced.stderr.contains("--max-cost needs the price of every model, search service and embeddings model"),
        "{}",
        unpriced.stderr
    );
    assert!(
        unpriced.stderr.contains("simulator-search/perplexity/sonar, simulator/fernlight-sim"),
        "{}",
        unpriced.stderr
    );

    project.edit("ragcheck.yaml", "providers:\n", "price_file: prices.yaml\nproviders:\n");
    project.write(
        "prices.yaml",
        &format!("{PRICES}  simulator-search/perplexity/sonar: {{input: 1, output: 1, request: 0.005}}\n"),
    );
    let ended = project.run(&run);
    ended.expect_code(3);
    assert!(ended.stderr.contains("stopped: --max-cost 0.2 is used up: about $0.1"), "{}", ended.stderr);
    assert!(ended.stdout.contains(" PASS"), "nothing was kept: {}", ended.stdout);
    // What would be refused is told by `check` before: vectors cost money too, and a completion without a bound any amount.
    project.write(
        "scenarios/vectors.yaml",
        "scenario: vectors\nflow: tool-rag\nknowledge: fernlight-away\nmodel: {provider: simulator, name: fernlight-sim}\n\
         cases: [{case: one, ask: How many ohms has the valve coil?, expect: {answer: {contains: [ohms]}}}]\n",
    );
    let checked = project.run(&["check", "scenarios/vectors.yaml"]);
    checked.expect_code(0);
    for part in [
        "`simulator/counted-words` has no price: a run with `--max-cost` would be refused",
        "`simulator/fernlight-sim` has no `max_tokens`: a run with `--max-cost` would be refused",
        "scenarios/vectors.yaml",
    ] {
        assert!(checked.stdout.contains(part), "{part} is missing in\n{}", checked.stdout);
    }
    let refused = project.run(&["run", "scenarios/vectors.yaml", "--mode", "live", "--max-cost", "1"]);
    refused.expect_code(2);
    assert!(refused.stderr.contains("none of simulator/counted-words: add it"), "{}", refused.stderr);
    project.write("prices.yaml", "prices:\n  fernlight-sim: {input: -1, output: 2, cost: 1}\n");
    let wrong = project.run(&run);
    wrong.expect_code(2);
    assert!(wrong.stderr.contains("prices.yaml:2:"), "{}", wrong.stderr);
    project.run(&["run", "scenarios/external.yaml", "--max-cost", "1"]).expect_code(2);
}

#[test]
fn a_refresh_of_what_drifted_keeps_the_old_lane_until_the_new_one_is_whole() {
    let (project, simulator) = recording();
    let lane = format!("{TARIFF}.1.yaml");
    let before = project.read(&lane);
    project.edit("scenarios/external.yaml", "temperature: 0.2", "temperature: 0.3");
    let refresh = ["cassette", "refresh", "--stale", "--yes", "scenarios/external.yaml", "--only", "feed-in-tariff"];
    let refresh = [&refresh[..], &["--repeat=1"]].concat();
    let address = format!("http://{}/v1", simulator.address);
    project.edit("ragcheck.yaml", &address, "http://127.0.0.1:9/v1");
    project.edit("scenarios/external.yaml", "repeat: 3\n", "repeat: 3\nlimits: {transport_retries: 0}\n");
    project.run(&refresh).expect_code(3);
    assert_eq!(project.read(&lane), before, "a refresh without its service touched the lane");

    project.edit("ragcheck.yaml", "http://127.0.0.1:9/v1", &address);
    let done = project.run(&refresh);
    assert!(done.stderr.contains("1 lane to record again: 1 drifted\nabout "), "{}", done.stderr);
    assert!(done.stderr.contains("cost not measured for simulator-search/perplexity/sonar, simulator/fernlight-sim"));
    assert!(done.stdout.contains("1 trial: 1 PASS"), "{}{}", done.stdout, done.stderr);
    assert!(project.read(&lane).contains("take: 2\n"));
    let again = project.run(&refresh);
    assert!(again.stdout.contains("nothing to record again: 1 lane checked"), "{}{}", again.stdout, again.stderr);
}

#[test]
fn a_recording_that_was_cut_off_anywhere_is_an_error_that_names_it() {
    let project = Project::shipped();
    let lane = lanes(&project).into_iter().find(|lane| lane.contains("/knowledge/")).expect("a lane");
    let text = project.read(&lane);
    let scenario = lane.split('/').nth(2).expect("a scenario");
    let case = lane.split('/').nth(3).expect("a case");
    let scenario = format!("scenarios/{scenario}.yaml");
    for part in [0, 1, 7, 9, 10] {
        let cut = if part == 10 { text.len() - 1 } else { text.len() * part / 10 };
        let cut = (0..=cut).rev().find(|cut| text.is_char_boundary(*cut)).unwrap_or_default();
        project.write(&lane, &text[..cut]);
        let run = project.run(&["run", &scenario, "--only", case]);
        run.expect_code(3);
        assert!(run.stdout.contains(&lane), "cut at {cut} of {}: {}", text.len(), run.stdout);
        let check = project.run(&["check", &scenario]);
        check.expect_code(2);
        assert!(check.stdout.contains(&lane), "cut at {cut}: {}", check.stdout);
    }
    let took = text.lines().find(|line| line.trim_start().starts_with("took_us: ")).expect("a time").to_owned();
    project.write(&lane, &text.replacen(&took, &format!("{took}0"), 1));
    let edited = project.run(&["run", &scenario, "--only", case]);
    assert!(edited.stdout.contains("edited by hand"), "{}", edited.stdout);
}

/// The shipped lanes, below the project.
fn lanes(project: &Project) -> Vec<String> {
    let mut lanes = Vec::new();
    super::secrets::walk(&project.path("fixtures/cassettes"), &mut |file| {
        let file = file.strip_prefix(project.path("")).expect("below the project").display().to_string();
        if std::path::Path::new(&file).extension().is_some_and(|end| end == "yaml") {
            lanes.push(file);
        }
    });
    lanes.sort();
    lanes
}

#[test]
fn a_recording_of_the_first_format_is_refused_with_the_command_that_converts_it() {
    let project = Project::starter();
    let lane = "recordings/questions/deposit/tool-rag.strict.1.yaml";
    let whole = project.read(lane);
    let (body, _) = whole.split_at(whole.rfind("end: {").expect("the last line"));
    project.write(lane, &body.replacen("cassette: 2", "cassette: 1", 1));
    let refused = project.run(&["run"]);
    refused.expect_code(3);
    let command = format!("`ragcheck cassette rekey {lane}` converts it");
    assert!(refused.stdout.contains("cassette format 1 has no `end:` line"), "{}", refused.stdout);
    assert!(refused.stdout.replace('\n', " ").contains("cassette rekey"), "{}", refused.stdout);
    assert!(project.read(&format!("{}/run.json", project.newest())).contains(&command), "the whole command is kept");
    let checked = project.run(&["check"]);
    assert!(checked.stdout.contains("cassette format 1"), "{}", checked.stdout);
    project.run(&["cassette", "rekey", lane]).expect_code(0);
    assert_eq!(project.read(lane), whole);
    project.run(&["run"]).expect_code(0);
}

/// Interactions of a recorder that redacts nothing, with a secret of each kind.
const VCR: &str = r#"version: 1
interactions:
- request:
    method: POST
    uri: https://api.example.com/v1/ask?sig=planted0451planted0451
    headers: {api-key: ["0451planted0451planted0451plante"]}
    body: '{"q": "hello", "session_token": "planted0451-abcdefghijkl", "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIwNDUxIn0.planted0451planted0451"}'
  response:
    status: {code: 200, message: OK}
    headers: {content-type: [application/json], set-cookie: ["sid=planted0451; Path=/"]}
    body:
      string: '{"answer": "use ya29.planted0451planted0451 or xai-planted0451planted0451planted", "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYplanted0451", "headers": {"Cookie": "session=planted0451"}}'
"#;

#[test]
fn an_import_of_another_recorder_keeps_none_of_its_secrets_and_a_scan_names_each() {
    let project = Project::starter();
    project.write("vcr.yaml", VCR);
    let found = project.run(&["cassette", "scan", "vcr.yaml"]);
    found.expect_code(1);
    for line in [5, 6, 7, 10, 12] {
        assert!(found.stdout.contains(&format!("vcr.yaml:{line}: ")), "{line}: {}", found.stdout);
    }
    assert!(!found.stdout.contains("0451"), "{}", found.stdout);
    project.run(&["cassette", "import", "vcr.yaml", "--format", "vcr", "--scenario", "foreign"]).expect_code(0);
    let mut files = 0;
    super::secrets::walk(&project.path("recordings/foreign"), &mut |path| {
        files += 1;
        let text = std::fs::read_to_string(path).expect("a file");
        assert!(!text.contains("planted0451") && !text.contains("0451planted"), "{}: {text}", path.display());
    });
    assert!(files > 0);
    project.run(&["cassette", "scan", "recordings/foreign"]).expect_code(0);
}
