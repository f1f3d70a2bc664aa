//! Models that their provider turns off soon: recordings of them cannot be made again then.
//!
//! A recording asks each of its providers for the list of its models (`GET /models`) and keeps what it announces
//! (`shutdown_date`) in `model-ends.json` beside the recordings. `check` reads it, offline; where it says nothing, a dated table
//! does ([`crate::settings::model_end`]).

use super::Ages;
use crate::plan::Plan;
use crate::platform::files;
use crate::provider::wire;
use crate::scenario::Diagnostic;
use crate::settings::{CHECKED, Provider, is_date, model_end};
use crate::transport::{HttpRequest, Service};
use crate::trial::{Opened, transport};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

/// File with what providers announced, below the folder of recordings.
pub(crate) const FILE: &str = "model-ends.json";
/// Dialects of services that list models with their `shutdown_date`.
const LISTING: [&str; 2] = ["openai-chat", "openai-responses"];
/// How long before its end a model is named.
const SOON: Duration = Duration::from_hours(90 * 24);

/// What a provider announced about one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Announced {
    /// Date of the end, `2027-01-14`.
    shutdown_date: String,
}

type Known = BTreeMap<String, Announced>;

/// Models of a plan's variants by `provider/model`, with the provider, and the files of their scenarios.
fn models<'o>(opened: &'o Opened, plan: &Plan) -> BTreeMap<String, (&'o Provider, String, BTreeSet<String>)> {
    let mut models = BTreeMap::new();
    for scenario in &plan.scenarios {
        for model in scenario.variants.iter().filter_map(|variant| Some(&variant.settings.as_ref()?.model)) {
            let Some(provider) = opened.loaded.project.providers.get(&model.provider) else { continue };
            let entry = || (provider, model.name.clone(), BTreeSet::new());
            models.entry(model.price_name()).or_insert_with(entry).2.insert(scenario.file.clone());
        }
    }
    models
}

/// Asks the providers of the recorded models which of them end, and keeps the answers with the recordings. A provider that
/// needs no key is a local one and is not asked; one that gives no list is passed over.
pub(crate) fn note_model_ends(opened: &Opened, plan: &Plan) -> io::Result<()> {
    let models = models(opened, plan);
    let file = opened.cassettes.join(FILE);
    let known = read(opened)?;
    let mut now = known.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut asked = BTreeSet::new();
    for trial in &plan.trials {
        let settings = plan.variant_of(trial).and_then(|variant| variant.settings.as_ref());
        let Some(name) = settings.map(|settings| &settings.model.provider) else { continue };
        let Some(provider) = opened.loaded.project.providers.get(name).filter(|one| one.key.is_some()) else {
            continue;
        };
        let lists = LISTING.contains(&provider.dialect.as_str()) && asked.insert(name.clone());
        let Some(dialect) = wire::by_name(&provider.dialect).filter(|_| lists) else { continue };
        let Some(Ok(transport)) = transport(opened.trial(plan, trial)) else { continue };
        let request = HttpRequest::new(Service::Model, dialect.profile, "GET", "/models", Value::Null);
        let Ok(answer) = runtime.block_on(transport.send(request)) else { continue };
        let Ok(list) = serde_json::from_slice::<Value>(&answer.body) else { continue };
        let Some(listed) = list["data"].as_array().filter(|_| answer.status == 200) else { continue };
        for entry in listed {
            let Some(model) = entry["id"].as_str() else { continue };
            let key = format!("{name}/{model}");
            if !models.contains_key(&key) {
                continue;
            }
            match entry["shutdown_date"].as_str().filter(|date| is_date(date)) {
                Some(date) => drop(now.insert(key, Announced { shutdown_date: date.to_owned() })),
                None => drop(now.remove(&key)),
            }
        }
    }
    if now == known { Ok(()) } else { files::replace(file, serde_json::to_string_pretty(&now)? + "\n") }
}

fn read(opened: &Opened) -> io::Result<Known> {
    let file = opened.cassettes.join(FILE);
    if !file.exists() {
        return Ok(Known::new());
    }
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}; delete it", file.display()));
    serde_json::from_str(&files::read_to_string(&file)?).map_err(invalid)
}

/// Notes on models that have ended or end soon, by scenario.
pub(crate) fn model_end_notes(opened: &Opened, plan: &Plan, ages: Ages) -> Vec<Diagnostic> {
    let shown = opened.cassettes.strip_prefix(&opened.loaded.root).unwrap_or(&opened.cassettes).join(FILE);
    let shown = shown.display().to_string().replace('\\', "/");
    let known = match read(opened) {
        Ok(known) => known,
        Err(why) => return vec![Diagnostic::note("model-ends", &shown, why.to_string())],
    };
    let mut notes = Vec::new();
    for (name, (provider, model, scenarios)) in models(opened, plan) {
        let table = model_end(&provider.base_url, &model);
        let announced = known.get(&name).map(|known| known.shutdown_date.as_str()).filter(|date| is_date(date));
        let Some(date) = announced.or(table.map(|(date, _)| date)).filter(|date| *date <= ages.day_in(SOON).as_str())
        else {
            continue;
        };
        let source = if announced.is_some() {
            format!("announced by its provider ({shown})")
        } else {
            format!("by the table of {CHECKED} in ragcheck")
        };
        let ends = if date <= ages.day_in(Duration::ZERO).as_str() { "was turned off on" } else { "is turned off on" };
        let instead = table.map(|(_, instead)| instead).filter(|instead| !instead.is_empty());
        let instead = instead.map_or_else(|| "another model".to_owned(), |instead| format!("`{instead}`"));
        for file in scenarios {
            let message =
                format!("`{name}` {ends} {date}, {source}: its recordings still replay, and cannot be made again then");
            let help = format!("name {instead} in `model` and record again: `ragcheck run {file} --mode record`");
            notes.push(Diagnostic::note("model-ends", &file, message).with_help(help));
        }
    }
    notes
}
