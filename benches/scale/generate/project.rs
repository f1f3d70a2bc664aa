//! The files of a generated project: project file, criteria, documents, scenarios.

use super::words::Words;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Scenario files of a project.
const SCENARIOS: usize = 5;
/// Documents, and sections in each: every section is one passage.
const DOCUMENTS: (usize, usize) = (20, 16);

const PROJECT: &str = "\
scenarios: [scenarios/*.yaml]
criteria: criteria.yaml
cassettes: cassettes
knowledge: knowledge
reports: reports
estimand: fixed_suite
requirements: {FR-002: {text: Searches with checked parameters.}, SC-001: {text: Searches first.}}
providers:
  scripted: {dialect: openai-chat, base_url: 'http://127.0.0.1:9/v1'}
  scripted-search: {dialect: perplexity-agent, base_url: 'http://127.0.0.1:9'}
";

const CRITERIA: &str = "\
about: What a generated suite can show.
estimand: fixed_suite
criteria:
  - {id: SC-001, about: Searches first., metric: 'mandatory_call_rate(knowledge, at=after_retry)',
     target: '= 100%', kind: invariant, floor: '>= 95%', min_n: 60}
  - {id: SC-002, about: Responds through its tool., metric: first_attempt_rate(respond),
     target: '>= 95%', kind: confidence, min_n: 124}
  - {id: SC-003, about: Indexes what it found., metric: keyword_coverage,
     target: '= 100%', kind: invariant, floor: '>= 95%', min_n: 60}
  - {id: SC-005, about: Answers in time., metric: latency_p95, target: '<= 10s', kind: confidence, min_n: 124}
";

/// How large a project is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Cases in all scenarios together.
    pub cases: usize,
    /// Repetitions of each case.
    pub repeat: usize,
    /// One search, few words: trials whose traces are small.
    pub brief: bool,
}

/// Whether the trials of that case go outside and index keywords: one in five does.
pub fn indexes(case: usize) -> bool {
    case.is_multiple_of(5)
}

/// Writes everything but cassettes into `root`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(root: &Path, size: Size) -> io::Result<()> {
    for folder in ["scenarios", "knowledge/almanac"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(root.join("ragcheck.yaml"), PROJECT)?;
    fs::write(root.join("criteria.yaml"), CRITERIA)?;
    for document in 0..DOCUMENTS.0 {
        let mut words = Words::of(&format!("document {document}"));
        let mut text = format!("# {}\n", words.words(2));
        for _ in 0..DOCUMENTS.1 {
            let heading = words.words(3);
            let _ = write!(text, "\n## {heading}\n\n{}\n", words.text(640));
        }
        fs::write(root.join(format!("knowledge/almanac/chapter-{document:02}.md")), text)?;
    }
    for file in 0..SCENARIOS {
        let cases: Vec<usize> = (0..size.cases).filter(|case| case % SCENARIOS == file).collect();
        if !cases.is_empty() {
            fs::write(root.join(format!("scenarios/part-{file}.yaml")), scenario(file, &cases, size))?;
        }
    }
    Ok(())
}

fn scenario(file: usize, cases: &[usize], size: Size) -> String {
    let repeat = size.repeat;
    let mut text = format!(
        "scenario: part-{file}\nabout: Generated cases.\ncovers: [FR-002, SC-001]\nflow: tool-rag\nknowledge: almanac\n\
         model: {{provider: scripted, name: scripted-model, temperature: 0, max_tokens: 900}}\n\
         search: {{provider: scripted-search, name: perplexity/sonar}}\nrepeat: {repeat}\ncases:\n"
    );
    for place in 0..cases.len() {
        let name = format!("case-{place:04}");
        let question = Words::of(&format!("question {file} {place}")).words(9);
        let (way, keywords) = if indexes(place) {
            let way = "knowledge_base_search, perplexity_search, {tool: index_keywords, outcome: ok}";
            (way, "      keywords: {indexed: true, none_generic: true}\n")
        } else if size.brief {
            ("knowledge_base_search", "")
        } else {
            ("knowledge_base_search, knowledge_base_search, knowledge_base_search", "")
        };
        let _ = write!(
            text,
            "  - case: {name}\n    tags: [generated]\n    ask: What is known of {question}?\n    expect:\n      \
             calls: [{{in_order: [{way}, generate_response]}}]\n      answer: {{contains: [in short]}}\n      \
             sources: {{at_least: 1}}\n{keywords}"
        );
    }
    text
}
