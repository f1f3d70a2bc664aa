//! `ragcheck judge`: answers of a run, graded by a model with a rubric.

use super::arguments::{Judge, Mode};
use super::exit::Exit;
use super::output::{self, Problem};
use super::select::{current_folder, variables};
use crate::evaluation::{self, read_plan};
use crate::grader::{self, Graded, Grader, GradingTask, Outcome, Scope, Tally};
use crate::plan::Plan;
use crate::scenario;
use crate::trace::text::plural;
use crate::trace::{self, TrialError, TrialErrorKind};
use crate::transport::Budget;
use crate::trial::ModelAccess;
use futures_util::StreamExt;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Where a rubric is unless one is named.
const RUBRIC: &str = "scenarios/rubric.yaml";

/// What came of each distinct content, by its hash.
type Outcomes = BTreeMap<String, Result<Graded, TrialError>>;

/// Does what `ragcheck judge` was asked to.
///
/// # Errors
/// When the run, the project or the rubric cannot be used.
pub(super) fn run(given: &Judge) -> Result<Exit, Problem> {
    if given.mode == Mode::Replay && (given.max_calls.is_some() || given.max_cost.is_some()) {
        return Err(Problem::Words(
            "--max-calls and --max-cost bound live and recording judges; a replay sends nothing".into(),
        ));
    }
    let plan = read_plan(&given.run)?;
    let scope = if given.all { Scope::All } else { Scope::BothSources };
    let tasks = collect(&given.run, &plan, scope)?;
    let grader = grader(given)?;
    let hashes: Vec<String> = tasks.iter().map(|task| grader.hash(&task.content)).collect();
    let mut distinct: BTreeMap<&str, &GradingTask> = BTreeMap::new();
    for (task, hash) in tasks.iter().zip(&hashes) {
        distinct.entry(hash).or_insert(task);
    }
    if tasks.is_empty() {
        let hint = if given.all { "" } else { "; --all judges every answer, not only those from both sources" };
        output::remark(&format!("nothing to judge: no answer of {} qualifies{hint}", given.run.display()));
        return Ok(Exit::Failed);
    }
    let contents: Vec<(&str, &GradingTask)> = distinct.into_iter().collect();
    let outcomes = grade(&grader, given, &contents)?;
    let graded = || tasks.iter().zip(&hashes).filter_map(|(one, hash)| Some((one, hash.as_str(), outcomes.get(hash)?)));
    if outcomes.values().any(Result::is_ok) {
        write(&given.run, &grader.rubric().model.name, graded())
            .map_err(|why| format!("{} cannot be written: {why}", given.run.join(trace::JUDGEMENTS_CSV).display()))?;
        output::result(&report(&grader, &plan, &tasks, &outcomes, graded()));
        output::result(&format!("grades: {}\n", given.run.join(trace::JUDGEMENTS_CSV).display()));
    }
    let failures = failures(graded());
    if failures.is_empty() {
        return Ok(Exit::Passed);
    }
    output::remark(&failures);
    Ok(Exit::Incomplete)
}

fn grader(given: &Judge) -> Result<Grader, Problem> {
    let here = current_folder()?;
    let root = scenario::find_root(&here);
    let file = given.rubric.as_ref().map_or_else(|| root.join(RUBRIC), |file| here.join(file));
    let (project, rubric) = scenario::load_rubric(&root, &file)?;
    let variables = variables(given.env_file.as_deref())?;
    let model = format!("{}/{}", rubric.model.provider, rubric.model.name);
    let price = project.prices.get(&model).copied();
    if given.max_cost.is_some() && price.is_none() {
        return Err(Problem::Words(format!(
            "--max-cost needs the price of the judge's model, and ragcheck.yaml has none of {}: add it under `prices`",
            trace::text::line(&model)
        )));
    }
    let budget = Budget::new(given.max_calls).with_dollars(given.max_cost);
    let access = ModelAccess::new(&project, &rubric.model.provider, variables, budget);
    let access = access.map_err(|why| why.to_string())?.at_price(price);
    let rubric_given = given.rubric.as_ref().map(|file| format!(" --rubric {}", file.display())).unwrap_or_default();
    let all = if given.all { " --all" } else { "" };
    let rerecord = format!("ragcheck judge {}{rubric_given}{all} --mode record", given.run.display());
    Ok(Grader::new(rubric, access, &root, &project.cassettes, rerecord))
}

/// What there is to judge in a run folder, in its order.
fn collect(folder: &Path, plan: &Plan, scope: Scope) -> Result<Vec<GradingTask>, Problem> {
    let mut found = Vec::new();
    for trace in evaluation::read_traces(folder)? {
        found.extend(grader::tasks(plan, &trace?, scope));
    }
    Ok(found)
}

fn grade(grader: &Grader, given: &Judge, contents: &[(&str, &GradingTask)]) -> Result<Outcomes, Problem> {
    let replayed = |(hash, task): &(&str, &GradingTask)| ((*hash).to_owned(), grader.replay(task));
    let mut outcomes = Outcomes::new();
    if given.mode != Mode::Live {
        outcomes = contents.par_iter().map(replayed).collect();
    }
    if given.mode == Mode::Replay {
        return Ok(outcomes);
    }
    // What has a recording that fits is not asked again: its content is the same.
    let wanted = contents.iter().filter(|(hash, _)| !outcomes.get(*hash).is_some_and(Result::is_ok));
    let wanted: Vec<(&str, &GradingTask)> = wanted.copied().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|why| format!("no runtime could be started: {why}"))?;
    let mut asked = Outcomes::new();
    runtime.block_on(async {
        let all = async {
            let questions = futures_util::stream::iter(wanted.iter().map(|(hash, task)| async move {
                let outcome = match given.mode {
                    Mode::Record => grader.record(task).await,
                    Mode::Replay | Mode::Live => grader.live(task).await,
                };
                ((*hash).to_owned(), outcome)
            }));
            let mut answers = questions.buffered(given.jobs.into());
            while let Some((hash, outcome)) = answers.next().await {
                asked.insert(hash, outcome);
            }
        };
        tokio::select! {
            biased;
            () = all => {}
            _ = grader.access().budget().ended() => {}
        }
    });
    let reason = grader.access().budget().reason().unwrap_or("it was not reached");
    for (hash, _) in &wanted {
        asked.entry((*hash).to_owned()).or_insert_with(|| Err(stopped(reason)));
    }
    outcomes.extend(asked);
    Ok(outcomes)
}

fn stopped(reason: &str) -> TrialError {
    let detail = vec!["what was recorded is kept; the same command goes on from there".to_owned()];
    TrialError { kind: TrialErrorKind::Stopped, message: reason.to_owned(), cause: reason.to_owned(), detail }
}

fn write<'a>(folder: &Path, model: &str, outcomes: impl Iterator<Item = Outcome<'a>>) -> std::io::Result<()> {
    let beside = folder.join(format!(".{}", trace::JUDGEMENTS_CSV));
    let mut out = BufWriter::new(File::create(&beside)?);
    grader::write_csv(&mut out, model, outcomes)?;
    out.flush()?;
    std::fs::rename(&beside, folder.join(trace::JUDGEMENTS_CSV))
}

fn report<'a>(
    grader: &Grader,
    plan: &Plan,
    tasks: &[GradingTask],
    outcomes: &Outcomes,
    graded: impl Iterator<Item = Outcome<'a>>,
) -> String {
    let mut tally = Tally::default();
    for (task, _, outcome) in graded {
        if let Ok(graded) = outcome {
            tally.add(task, graded);
        }
    }
    let rubric = grader.rubric();
    let trials: BTreeSet<&str> = tasks.iter().map(|task| task.trial.as_str()).collect();
    let mut lines = vec![format!(
        "judge: {} by the rubric `{}`, {}",
        rubric.model.name,
        trace::text::line(&rubric.rubric),
        provenance(outcomes)
    )];
    lines.push(format!(
        "{} of {}, {}, each put twice: items in order and reversed; equal contents share their grades, which the intervals leave out of account",
        plural(tasks.len(), "answer"),
        plural(trials.len(), "trial"),
        plural(outcomes.len(), "distinct content"),
    ));
    if tasks.iter().any(|task| task.model == rubric.model.name) {
        lines.push("warning: the judge is the model that it judges; take one of another family".to_owned());
    }
    format!(
        "{}\n\n{}",
        lines.join("\n"),
        grader::table(&tally.rows(rubric, plan.ratings.as_ref()), plan.ratings.is_some())
    )
}

/// Who answered and when, recorded and live apart.
fn provenance(outcomes: &Outcomes) -> String {
    let mut sources: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for graded in outcomes.values().filter_map(|outcome| outcome.as_ref().ok()) {
        let mode = if graded.recorded_at.is_some() { "REPLAYED" } else { "LIVE" };
        let days = sources.entry(format!("{mode} from {}", trace::text::line(&graded.from))).or_default();
        days.extend(graded.recorded_at.as_deref().and_then(|at| at.split('T').next()));
    }
    let told = sources.into_iter().map(|(source, days)| match (days.first(), days.last()) {
        (Some(first), Some(last)) if first == last => format!("{source}, recorded {first}"),
        (Some(first), Some(last)) => format!("{source}, recorded {first} to {last}"),
        _ => source,
    });
    told.collect::<Vec<_>>().join("; ")
}

/// What kept answers from being judged: one message a cause.
fn failures<'a>(outcomes: impl Iterator<Item = Outcome<'a>>) -> String {
    let mut causes: BTreeMap<&str, (usize, &GradingTask, &TrialError)> = BTreeMap::new();
    for (task, _, outcome) in outcomes {
        if let Err(why) = outcome {
            causes.entry(&why.cause).or_insert((0, task, why)).0 += 1;
        }
    }
    let told = causes.into_values().map(|(count, task, why)| {
        let label = why.kind.label();
        let what = why.message.strip_prefix(&format!("{label}: ")).unwrap_or(&why.message);
        let mut lines = vec![format!("{label}: {}: {what}", plural(count, "answer"))];
        lines.push(format!("  first: {}, {}", task.trial, task.turn));
        lines.extend(why.detail.iter().map(|line| format!("  {line}")));
        trace::text::block(&lines.join("\n"))
    });
    told.collect::<Vec<_>>().join("\n\n")
}
