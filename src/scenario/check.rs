//! Semantic checks of a scenario: names, references, times, and cases that prove nothing.
//!
//! Runs after the checks of shape. Every check gives its place as a path, and no check stops the others.

use super::Scenario;
use super::check_criteria::{self, Known, Rows};
use super::check_expect::Expectations;
use super::check_sources::Citable;
use super::criteria::{Criteria, Gate};
use super::diagnostic::{At, Mistake, did_you_mean, nearest};
use super::document::PromptText;
use super::external::DeclaredService;
use super::named_file::{NamedFileError, read_named};
use super::names::is_name;
use super::project::Project;
use crate::platform::bounds::Bound;
use crate::platform::yaml;
use crate::settings::catalogue::{Catalogues, DialectEntry, FlowEntry, ToolEntry};
use crate::settings::{ModelSettings, Provider, SearchSettings};
use crate::trace::EXTERNAL;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// Context that a scenario is checked against.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// The project's folder.
    pub root: &'a Path,
    /// The scenario file.
    pub path: &'a Path,
    pub project: &'a Project,
    /// Declarations of flows and metrics.
    pub catalogues: &'a Catalogues,
    /// Ids that `excluded_from` may name, in addition to the scenario's gates.
    pub criteria: &'a BTreeSet<String>,
    /// Cost of compiling the regular expressions of all scenarios so far: see [`expression_work`].
    ///
    /// [`expression_work`]: crate::settings::expression_work
    pub work: &'a AtomicU64,
}

/// Prompt texts by variant, then by prompt.
pub(super) type Prompts = BTreeMap<String, BTreeMap<String, String>>;

/// Checks one scenario. `kept` maps its cases to their indices in the file.
pub(super) fn scenario(scenario: &Scenario, kept: &[usize], around: Surroundings<'_>) -> (Vec<Mistake>, Prompts) {
    let citable = Citable::of(scenario, around);
    let mut checker = Checker::new(scenario, around, citable.as_ref());
    let prompts = checker.head();
    checker.cases(kept);
    (checker.finish(), prompts)
}

/// One scenario under check.
pub(super) struct Checker<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) around: Surroundings<'a>,
    pub(super) mistakes: Vec<Mistake>,
    /// The known flows of its variants.
    pub(super) flows: Vec<&'a FlowEntry>,
    /// The tools that these flows declare; `None` where an agent's tools are known only at run time.
    pub(super) tools: Option<Vec<&'a ToolEntry>>,
    pub(super) expectations: Expectations<'a>,
    /// Its gates, including those of flows.
    gates: Vec<Gate>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(scenario: &'a Scenario, around: Surroundings<'a>, citable: Option<&'a Citable>) -> Self {
        let named: BTreeSet<&str> = scenario.flows().collect();
        let flows: Vec<&FlowEntry> = named.iter().filter_map(|name| around.catalogues.flow(name)).collect();
        let declared = flows.iter().map(|flow| flow.tools.as_ref().map(|tools| tools.iter()));
        let declared = if flows.len() < named.len() { None } else { declared.collect::<Option<Vec<_>>>() };
        let tools: Option<Vec<&ToolEntry>> = declared.map(|tools| tools.into_iter().flatten().collect());
        let citable = citable.filter(|_| tools.is_some());
        let mut expectations = Expectations::new(tools.clone(), citable, around.work);
        if tools.is_some() && flows.iter().all(|flow| !flow.errors.is_empty()) {
            expectations.errors = flows.iter().flat_map(|flow| flow.errors.iter().copied()).collect();
        }
        expectations.limits = scenario.limits.clone();
        expectations.unpriced = unpriced(scenario, around.project);
        let gates = scenario.all_gates(around.catalogues).unwrap_or_default();
        Self { scenario, around, mistakes: Vec::new(), flows, tools, expectations, gates }
    }

    /// Returns all mistakes.
    pub(super) fn finish(mut self) -> Vec<Mistake> {
        self.mistakes.append(&mut self.expectations.mistakes);
        self.mistakes
    }
}

impl Checker<'_> {
    pub(super) fn say(&mut self, mistake: Mistake) {
        self.mistakes.push(mistake);
    }

    fn head(&mut self) -> Prompts {
        let (scenario, root) = (self.scenario, At::ROOT);
        let stem = self.around.path.file_stem().unwrap_or_default().to_string_lossy();
        if self.name(&scenario.scenario, root.key("scenario")) && scenario.scenario != stem {
            let mistake =
                Mistake::at(root.key("scenario"), "scenario-name", "the scenario is not called like its file");
            self.say(mistake.label(format!("write `{stem}`, or rename the file")));
        }
        self.flow(&scenario.flow, root.key("flow"));
        let catalogues = self.around.catalogues;
        if scenario.flows().any(|flow| flow != EXTERNAL && !asks_managed_retrieval(catalogues, flow)) {
            self.knowledge(root.key("knowledge"));
        }
        self.managed_retrieval(root.key("managed_retrieval"));
        self.external();
        self.model_key(root.key("model"));
        if let Some(SearchSettings { provider, .. }) = &scenario.search {
            let search = root.key("search");
            self.provider(provider, ("search service", |dialect| dialect.searches), search.key("provider"));
        }
        self.limits(root.key("limits"));
        self.often(scenario.repeat, root.key("repeat"));
        if scenario.repeat == 0 {
            self.say(Mistake::at(root.key("repeat"), "repeat-zero", "a scenario that is repeated 0 times never runs"));
        }
        self.covers(&scenario.covers, root.key("covers"));
        self.excluded(&scenario.excluded_from, root.key("excluded_from"));
        self.gates_of(root.key("gates_of"));
        self.faults(&scenario.faults, root.key("faults"));
        let without = scenario.cases.iter().find(|case| case.fault.is_none() && case.faults.is_empty());
        let without = without.filter(|_| scenario.faults.is_empty());
        if let Some(case) = without.filter(|_| !scenario.excluded_from.is_empty()) {
            let message = format!("the case `{}` declares no `fault`", case.case);
            let mistake = Mistake::at(root.key("excluded_from"), "excluded-without-fault", message).on_key();
            self.say(mistake.help(
                "a case is left out of a criterion only for what goes wrong in it on purpose: name that by `fault`",
            ));
        }
        let gates = Rows { rows: scenario.gates.as_deref().unwrap_or_default(), kept: None };
        let tools = self.tools.as_ref().map(|tools| tools.iter().map(|tool| tool.name).collect());
        let flows = Some(self.around.catalogues.flow_names().collect());
        let known = Known { metrics: &self.around.catalogues.metrics, tools, flows };
        check_criteria::rows(gates, &known, root.key("gates"), &mut self.mistakes);
        self.variants()
    }

    fn flow(&mut self, flow: &str, at: At<'_>) {
        let catalogues = self.around.catalogues;
        if catalogues.flow(flow).is_none() {
            let mistake = Mistake::at(at, "unknown-flow", "unknown flow");
            self.say(mistake.label(did_you_mean(flow, catalogues.flow_names())));
        }
    }

    fn gates_of(&mut self, at: At<'_>) {
        for (index, name) in self.scenario.gates_of.iter().enumerate() {
            self.flow(name, at.index(index));
            if self.around.catalogues.flow(name).is_some_and(|flow| flow.criteria.is_empty()) {
                let message = format!("the flow `{name}` declares no criteria");
                self.say(Mistake::at(at.index(index), "no-criteria", message));
            }
        }
    }

    fn managed_retrieval(&mut self, at: At<'_>) {
        let (scenario, known) = (self.scenario, &self.around.project.managed_retrieval);
        let asks = scenario.flows().any(|flow| asks_managed_retrieval(self.around.catalogues, flow));
        match &scenario.managed_retrieval {
            None if asks => {
                let mistake = Mistake::at(at, "missing-key", "the key `managed_retrieval` is missing");
                self.say(mistake.help("this flow asks a managed retrieval service: name one of the project file"));
            }
            Some(_) if !asks => {
                let message = "no flow of this scenario asks a managed retrieval service";
                self.say(Mistake::at(at, "unused-key", message).on_key().help("leave it out"));
            }
            Some(name) if !known.contains_key(name) => {
                let label = did_you_mean(name, known.keys().map(String::as_str));
                let mistake = Mistake::at(at, "unknown-retrieval", "unknown managed retrieval service").label(label);
                self.say(mistake.help("they are declared in ragcheck.yaml, under `managed_retrieval`"));
            }
            _ => {}
        }
    }

    /// Checks the key `model`, which may be left out if `services` declares it.
    fn model_key(&mut self, at: At<'_>) {
        let model = &self.scenario.model;
        let in_services = self.scenario.services.values().any(|service| service.provider.is_some());
        if *model != ModelSettings::default() {
            self.model(model, at);
        } else if !in_services {
            let mistake = Mistake::at(at, "missing-key", "the key `model` is missing");
            self.say(mistake.help("write `model: {provider: NAME, name: MODEL}`"));
        }
    }

    fn model(&mut self, model: &ModelSettings, at: At<'_>) {
        self.provider(&model.provider, ("chat model", |_| true), at.key("provider"));
        self.temperature(model.temperature, at.key("temperature"));
        if model.name.trim().is_empty() {
            self.say(Mistake::at(at.key("name"), "empty-text", "the model has no name"));
        }
        if model.max_tokens == Some(0) {
            self.say(Mistake::at(at.key("max_tokens"), "bad-value", "a completion of 0 tokens says nothing"));
        }
    }

    fn temperature(&mut self, temperature: Option<f64>, at: At<'_>) {
        if temperature.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
            self.say(Mistake::at(at, "bad-value", "a temperature is 0 to 2"));
        }
    }

    pub(super) fn provider(&mut self, name: &str, wanted: (&str, fn(&DialectEntry) -> bool), at: At<'_>) {
        let (wanted, fits) = wanted;
        let providers = &self.around.project.providers;
        let fits = |provider: &Provider| self.around.catalogues.dialect(&provider.dialect).is_some_and(fits);
        let fitting = || providers.iter().filter(|(_, provider)| fits(provider)).map(|(name, _)| name.as_str());
        match providers.get(name) {
            None => {
                let mistake =
                    Mistake::at(at, "unknown-provider", "unknown provider").label(did_you_mean(name, fitting()));
                self.say(mistake.help("providers are declared in ragcheck.yaml, under `providers`"));
            }
            Some(provider) if !fits(provider) => {
                let mistake = Mistake::at(at, "wrong-dialect", format!("this provider is not a {wanted}"));
                self.say(mistake.label(format!("known: {}", fitting().collect::<Vec<_>>().join(", "))));
            }
            Some(_) => {}
        }
    }

    fn limits(&mut self, at: At<'_>) {
        let limits = &self.scenario.limits;
        for (key, time) in [("turn", &limits.turn), ("request", &limits.request)] {
            if time.is_zero() {
                self.say(Mistake::at(at.key(key), "bad-duration", "no time at all: nothing can end in it"));
            }
        }
        if limits.model_calls == 0 {
            self.say(Mistake::at(at.key("model_calls"), "bad-value", "a turn needs at least one completion"));
        }
    }

    pub(super) fn covers(&mut self, ids: &[String], at: At<'_>) {
        let known = &self.around.project.requirements;
        for (index, id) in ids.iter().enumerate().filter(|(_, id)| !known.contains_key(*id)) {
            let mistake = Mistake::at(at.index(index), "unknown-requirement", format!("unknown requirement `{id}`"));
            let mistake = match nearest(id, known.keys().map(String::as_str)) {
                Some(meant) => mistake.label(format!("did you mean `{meant}`?")),
                None => mistake,
            };
            self.say(mistake.help("requirements are declared in ragcheck.yaml, under `requirements`"));
        }
    }

    pub(super) fn excluded(&mut self, excluded: &BTreeMap<String, String>, at: At<'_>) {
        for (id, reason) in excluded {
            let own = self.gates.iter().map(|gate| gate.id.as_str());
            let known: BTreeSet<&str> =
                self.around.criteria.iter().map(String::as_str).chain(own).chain(["cases"]).collect();
            if !known.contains(id.as_str()) && !self.is_of_a_flow(id) {
                let mistake =
                    Mistake::at(at.key(id), "unknown-criterion", format!("unknown criterion `{id}`")).on_key();
                self.say(mistake.label(did_you_mean(id, known)));
            }
            if reason.trim().is_empty() {
                let mistake = Mistake::at(at.key(id), "no-reason", "an exclusion needs a reason").on_key();
                self.say(mistake.help("the report shows it beside the figure that leaves the case out"));
            }
        }
    }

    /// Whether a flow of the scenario declares a criterion of that id, which another criteria file may omit.
    fn is_of_a_flow(&self, id: &str) -> bool {
        let flows = self.scenario.flows().filter_map(|name| self.around.catalogues.flow(name));
        let declared = flows.map(|flow| yaml::read::<Criteria>(flow.criteria).unwrap_or_default());
        declared.flat_map(|declared| declared.criteria).any(|row| row.id == id)
    }

    fn variants(&mut self) -> Prompts {
        let (scenario, root) = (self.scenario, At::ROOT);
        let base = self.prompts(&scenario.prompts, root.key("prompts"));
        if scenario.variants.is_empty() {
            return BTreeMap::from([("base".to_owned(), base)]);
        }
        let mut all = BTreeMap::new();
        let variants = root.key("variants");
        for (name, variant) in &scenario.variants {
            let at = variants.key(name);
            if !is_name(name) {
                self.say(bad_name(at, name).on_key());
            }
            if let Some(flow) = &variant.flow {
                self.flow(flow, at.key("flow"));
            }
            if let Some(model) = &variant.model {
                self.model(model, at.key("model"));
            }
            self.temperature(variant.temperature, at.key("temperature"));
            let rules = at.key("asks_for");
            for (place, rule) in variant.asks_for.iter().flatten().enumerate().filter(|(_, rule)| !is_name(rule)) {
                self.say(bad_name(rules.index(place), rule));
            }
            let mut prompts = base.clone();
            prompts.extend(self.prompts(&variant.prompts, at.key("prompts")));
            all.insert(name.clone(), prompts);
        }
        all
    }

    fn prompts(&mut self, prompts: &BTreeMap<String, PromptText>, at: At<'_>) -> BTreeMap<String, String> {
        // An external agent has no prompts to replace; another check reports that.
        let ours = self.flows.iter().filter(|flow| flow.tools.is_some());
        let mut known: Vec<&str> = ours.flat_map(|flow| flow.prompts.iter().copied()).collect();
        if known.is_empty() {
            known = self.around.catalogues.prompts();
        }
        let mut texts = BTreeMap::new();
        for (name, text) in prompts {
            let here = at.key(name);
            let sent = self.sends_prompts() && is_name(name);
            if !sent && !known.contains(&name.as_str()) {
                let mistake = Mistake::at(here, "unknown-prompt", format!("unknown prompt `{name}`")).on_key();
                self.say(mistake.label(did_you_mean(name, known.iter().copied())));
            }
            let (key, text) = match text {
                PromptText::Text(text) => ("text", Ok(text.clone())),
                PromptText::File(file) => ("file", self.prompt_file(file)),
            };
            match text {
                Err(why) => {
                    let mistake = Mistake::at(here.key(key), "missing-prompt", "the prompt file cannot be read")
                        .label(why.to_string());
                    self.say(mistake.help("the path is relative to the scenario's folder"));
                }
                Ok(text) if text.trim().is_empty() => {
                    self.say(Mistake::at(here.key(key), "empty-text", "the prompt is empty"));
                }
                Ok(text) => {
                    texts.insert(name.clone(), text);
                }
            }
        }
        texts
    }

    fn prompt_file(&self, file: &str) -> Result<String, NamedFileError> {
        // A checkout on Windows must send the same text as one elsewhere, so that one recording serves both.
        read_named(self.around.path, file, Bound::PromptSize).map(|text| text.replace("\r\n", "\n"))
    }

    /// Limits repetitions written in files; `--repeat` may ask for more.
    pub(super) fn often(&mut self, repeat: u32, at: At<'_>) {
        if u64::from(repeat) > Bound::Repeat.most() {
            let mistake = Mistake::at(at, "repeat-too-many", format!("{repeat} repetitions of each case"));
            let (most, advice) = (Bound::Repeat.shown(), Bound::Repeat.advice());
            self.say(mistake.help(format!("a file asks for {most} at most; `--repeat` asks for more, or {advice}")));
        }
    }

    pub(super) fn name(&mut self, name: &str, at: At<'_>) -> bool {
        if !is_name(name) {
            self.say(bad_name(at, name));
        }
        is_name(name)
    }
}

/// Services that the scenario's cost depends on and that have no price, as named in the price list.
fn unpriced(scenario: &Scenario, project: &Project) -> BTreeSet<String> {
    let own = scenario.variants.is_empty() || scenario.variants.values().any(|variant| variant.model.is_none());
    let models = own
        .then_some(&scenario.model)
        .into_iter()
        .chain(scenario.variants.values().filter_map(|one| one.model.as_ref()));
    let search = scenario.search.iter().map(SearchSettings::price_name);
    let managed = scenario.managed_retrieval.iter().map(|name| format!("{name}/ask"));
    let services = scenario.services.values().filter_map(DeclaredService::price_name);
    let named = models.filter(|model| !model.name.is_empty()).map(ModelSettings::price_name);
    let names = named.chain(search).chain(managed).chain(services);
    names.filter(|name| !project.prices.contains_key(name)).collect()
}

/// Whether a flow uses a managed retrieval service instead of a knowledge base.
fn asks_managed_retrieval(catalogues: &Catalogues, flow: &str) -> bool {
    catalogues.flow(flow).is_some_and(|flow| flow.managed_retrieval)
}

fn bad_name(at: At<'_>, name: &str) -> Mistake {
    let shown: String = name.chars().take(40).collect();
    Mistake::at(at, "bad-name", format!("`{shown}` cannot be a name: it becomes part of a path"))
        .label("use a to z, 0 to 9 and `-`, at most 100 of them")
}
