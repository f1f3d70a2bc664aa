//! Conversations of other agents: shapes that are read or refused, the project's criteria, and how many are needed.

use super::project::{Outcome, Project};
use serde_json::{Value, json};

/// Imports these conversations in a project.
fn import(project: &Project, conversations: &[Value], more: &[&str]) -> Outcome {
    let lines: Vec<String> = conversations.iter().map(|one| format!("{one}\n")).collect();
    project.write("log.jsonl", &lines.concat());
    project.run(&[&["score", "--import", "messages", "log.jsonl"][..], more].concat())
}

fn answered(number: usize) -> Value {
    json!([{"role": "user", "content": format!("Question {number}?")}, {"role": "assistant", "content": "An answer."}])
}

fn criteria(project: &Project) -> Vec<String> {
    let run = project.latest("run.json");
    let rows = run["criteria"].as_array().expect("criteria").iter();
    rows.map(|row| format!("{} {}", row["id"].as_str().expect("an id"), row["verdict"].as_str().expect("one")))
        .collect()
}

#[test]
fn the_projects_criteria_apply_beside_the_usual_ones_and_others_take_the_place_of_both() {
    let project = Project::starter();
    import(&project, &[answered(1)], &[]).expect_code(1);
    let rows = criteria(&project);
    assert_eq!(
        rows,
        [
            "SEARCH NOT_MEASURED", "FIRST NOT_MEASURED", "TIME NOT_MEASURED", "answers INCONCLUSIVE",
            "tasks NOT_MEASURED"
        ]
    );
    project.write(
        "mine.yaml",
        "about: mine\ncriteria:\n  - {id: MINE, about: answers, metric: turn_success_rate, target: '= 100%', kind: point, required: true}\n",
    );
    import(&project, &[answered(1)], &["--criteria", "mine.yaml"]).expect_code(0);
    assert_eq!(criteria(&project), ["MINE PASS"]);
    // A criterion of the project that conversations can meet or fail decides the exit code.
    project.edit("ragcheck.yaml", "criteria: scenarios/criteria.yaml", "criteria: mine.yaml");
    let silent = json!([{"role": "user", "content": "And this?"}]);
    import(&project, &[answered(1), silent], &[]).expect_code(1);
    assert!(criteria(&project).contains(&"MINE FAIL".to_owned()), "{:?}", criteria(&project));
}

#[test]
fn below_the_number_that_a_criterion_needs_the_import_says_so_and_how_many() {
    let project = Project::starter();
    let few: Vec<Value> = (0..3).map(answered).collect();
    let outcome = import(&project, &few, &[]);
    outcome.expect_code(1);
    let words = "too few for `answers`: 3 conversations imported, 3/3 = 100.0 %, true rate at least 36.8 %; inconclusive: \
                 met, not shown: 56 more conversations at this rate would show it";
    assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    // The number holds: one fewer is too few, and that many are enough.
    for (number, enough) in [(58, false), (59, true)] {
        let outcome = import(&project, &(0..number).map(answered).collect::<Vec<_>>(), &[]);
        assert_eq!(outcome.stderr.contains("too few for `answers`"), !enough, "{number}: {}", outcome.stderr);
        assert_eq!(criteria(&project).contains(&"answers PASS".to_owned()), enough, "{:?}", criteria(&project));
    }
}

#[test]
fn turns_of_one_session_count_together_as_one_conversation() {
    let project = Project::starter();
    let log = |session: &dyn Fn(usize) -> Value| -> Vec<Value> {
        let row = |place: usize| {
            let question = json!({"role": "user", "content": format!("question {place}")});
            // One session has all failures.
            let answer = json!({"role": "assistant", "content": "a"});
            let messages = if place < 3 { json!([question]) } else { json!([question, answer]) };
            json!({"id": place, "session_id": session(place), "messages": messages})
        };
        (0..200).map(row).collect()
    };
    // An empty id is none.
    for session in [&(|place| json!(place)) as &dyn Fn(usize) -> Value, &|_| json!(""), &|_| Value::Null] {
        let apart = import(&project, &log(session), &[]);
        assert!(!apart.stderr.contains("session"), "{}", apart.stderr);
        assert!(criteria(&project).contains(&"answers PASS".to_owned()), "{:?}", criteria(&project));
    }
    let together = import(&project, &log(&|place| json!(place / 20)), &[]);
    let remark = "200 conversations are parts of 10 sessions: the parts of one are not independent, and count together as one \
                  conversation";
    assert!(together.stderr.contains(remark), "{}", together.stderr);
    let run = project.latest("run.json");
    let rows = run["criteria"].as_array().expect("criteria");
    let answers = rows.iter().find(|row| row["id"] == "answers").expect("answers");
    let [verdict, clusters, n] = ["verdict", "clusters", "n"].map(|key| answers[key].clone());
    assert_eq!([verdict, clusters, n], [json!("INCONCLUSIVE"), json!(10), json!(200)]);
}

#[test]
fn an_answer_after_a_search_that_is_marked_as_failed_is_looked_up_as_after_one_that_says_so() {
    let project = Project::starter();
    project.write(
        "desk.yaml",
        "scenario: desk\nflow: external\nmodel: {provider: simulator, name: m}\nroles: {knowledge: find}\n\
         target: {http: 'http://127.0.0.1:1/chat'}\ncases:\n  - {case: fee, ask: 'How long?', expect: {answer: {grounded: true}}}\n",
    );
    for is_error in [false, true] {
        let messages = json!([{"role": "user", "content": "How long?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "find", "input": {"query": "fee"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "the index is down", "is_error": is_error}]},
            {"role": "assistant", "content": "You have 45 days and pay 15 euros."}]);
        let outcome =
            import(&project, &[json!({"task_id": "fee", "messages": messages})], &["--scenario", "desk.yaml"]);
        let verdict = &project.latest("run.json")["trials"][0]["verdict"];
        assert_eq!(verdict, "FAIL", "{is_error}: {}{}", outcome.stdout, outcome.stderr);
    }
}

#[test]
fn a_conversation_of_an_unknown_shape_is_an_error_that_names_it_and_the_shapes_that_are_read() {
    let calls = |content: Value| {
        json!([{"role": "user", "content": "Why?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "find", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": content}]},
            {"role": "assistant", "content": "So."}])
    };
    for (conversation, seen) in [
        (json!([{"speaker": "me", "words": "hi"}]), "an object with `speaker`, `words`"),
        (calls(json!([{"type": "hologram", "text": "38 ohms"}])), "a part of the type `hologram`"),
        (calls(json!({"ohms": 38})), "a part that is an object with `ohms`"),
    ] {
        let project = Project::starter();
        let outcome = import(&project, &[conversation, answered(1)], &[]);
        outcome.expect_code(3);
        let told = super::external::plain(&outcome.stdout);
        assert!(told.contains("2 trials: 1 PASS, 1 ERROR") && told.contains(seen), "{}", outcome.stdout);
        for shape in ["OpenAI chat messages", "Anthropic messages", "Gemini contents", "Bedrock Converse messages"] {
            assert!(told.contains(shape), "{shape} is not named: {}", outcome.stdout);
        }
        assert!(!outcome.stdout.contains("38 ohms"), "{}", outcome.stdout);
    }
}

/// Conversations with these questions, passed from the number `passes` on.
fn graded(questions: &[String], passes: usize) -> Vec<Value> {
    let one = |(number, question): (usize, &String)| {
        json!({"reward": u8::from(number >= passes),
            "messages": [{"role": "user", "content": question}, {"role": "assistant", "content": "An answer."}]})
    };
    questions.iter().enumerate().map(one).collect()
}

/// The run folder of an import, as `compare` takes it.
fn scored(project: &Project, conversations: &[Value]) -> String {
    import(project, conversations, &[]);
    project.newest()
}

#[test]
fn two_logs_are_compared_question_by_question_and_other_questions_of_a_case_are_named_above_all_figures() {
    let project = Project::starter();
    let questions: Vec<String> = (0..16).map(|number| format!("Question {number}?")).collect();
    let mut log = graded(&questions, 8);
    let one = scored(&project, &log);
    log.reverse();
    let reversed = scored(&project, &log);
    let outcome = project.run(&["compare", &one, &reversed, "--fail-on", "flip"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("are the same on both sides"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("cases") && !outcome.stdout.contains("flipped"), "{}", outcome.stdout);
    for row in ["turn time", "tokens", "cost"] {
        assert!(!outcome.stdout.contains(row), "nobody recorded `{row}`: {}", outcome.stdout);
    }
    let others: Vec<String> = questions.iter().map(|question| format!("Other {question}")).collect();
    let unlike = scored(&project, &graded(&others, 0));
    let outcome = project.run(&["compare", &one, &unlike]);
    assert!(outcome.stderr.contains("no case in common"), "{}{}", outcome.stdout, outcome.stderr);

    let named = |questions: &[String]| -> Vec<Value> {
        let each = graded(questions, 0).into_iter().enumerate();
        each.map(|(number, mut one)| {
            one["task_id"] = json!(number);
            one
        })
        .collect()
    };
    let (one, other) = (scored(&project, &named(&questions)), scored(&project, &named(&others)));
    let outcome = project.run(&["compare", &one, &other]);
    let place = |words: &str| outcome.stdout.find(words).unwrap_or_else(|| panic!("{words}: {}", outcome.stdout));
    assert!(place("case text") < place("answers"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("changed in 16 cases") && !outcome.stdout.contains("are the same on both sides"));
}

#[test]
fn ratings_of_the_project_count_for_the_conversations_that_they_name() {
    let project = Project::starter();
    let ratings = |project: &Project| project.latest("plan.json")["ratings"].clone();
    project.write("ratings.csv", "trial,satisfied\nlog/task-1/imported.base.1,yes\n");
    project.write("ragcheck.yaml", &format!("ratings: ratings.csv\n{}", project.read("ragcheck.yaml")));
    let task = |number: u32| json!({"task_id": number, "messages": answered(1)});
    import(&project, &[task(1)], &[]);
    assert_eq!(ratings(&project), json!({"log/task-1/imported.base.1": true}));
    import(&project, &[task(2)], &[]);
    assert_eq!(ratings(&project), Value::Null, "ratings of another run say nothing");
    project.write("ratings.csv", "trial,satisfied\nlog/task-1/imported.base.1,yes\nlog/task-1/imported.base.01,no\n");
    let words = "1 of 2 ratings name no trial of this import, first `log/task-1/imported.base.01`";
    let stderr = import(&project, &[task(1)], &[]).stderr;
    assert!(stderr.contains(words), "{stderr}");
    project.write("ratings.csv", "trial,satisfied\nlog/task-1/imported.base.1,maybe\n");
    import(&project, &[task(1)], &[]).expect_code(2);
}
