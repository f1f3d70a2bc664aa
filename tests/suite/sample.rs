//! The committed sample report is what the shipped suite gives. `UPDATE=1` renews it.

use super::project::whole;
use std::fs;
use std::path::Path;

const FILES: [&str; 6] = ["index.html", "criteria.csv", "latency.csv", "trials.csv", "violations.csv", "run.json"];
const LARGEST: usize = 3 << 20;

#[test]
fn the_committed_sample_is_what_the_shipped_suite_gives() {
    let (project, outcome) = whole();
    outcome.expect_code(0);
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/sample");
    let made: Vec<_> = FILES
        .iter()
        .map(|name| (name, fs::read(project.path(&format!("reports/latest/{name}"))).expect("a report")))
        .collect();
    assert!(made.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= LARGEST, "the sample is too large to commit");
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(&sample).expect("reports/sample");
        for (name, bytes) in &made {
            fs::write(sample.join(name), bytes).expect("the sample");
        }
    }
    for (name, bytes) in made {
        let committed = fs::read(sample.join(name)).unwrap_or_default();
        assert!(committed == bytes, "reports/sample/{name} is out of date: run the tests once with UPDATE=1");
    }
}
