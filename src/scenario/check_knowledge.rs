//! Checks the knowledge bases that a project declares, and those that a scenario names.

use super::check::Checker;
use super::diagnostic::{At, Mistake, did_you_mean};
use super::project::Project;
use crate::platform::files;
use crate::settings::catalogue::Catalogues;
use crate::settings::{DEFAULT_KB, ServerAddress};
use crate::trace::EXTERNAL;

/// Every mistake in `knowledge_bases`, which is `at`.
pub(super) fn bases(project: &Project, catalogues: &Catalogues, at: At<'_>) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (name, base) in &project.knowledge_bases {
        let at = at.key(name);
        let embeddings = at.key("embeddings");
        mistakes.extend(base.server.as_ref().and_then(|server| address(server, catalogues, at.key("server"))));
        if base.embeddings.is_none() && base.server.is_some() {
            let message = "a server is searched by vectors, and nothing makes them";
            let mistake = Mistake::at(at.key("server"), "no-embeddings", message).on_key();
            mistakes.push(mistake.help("add `embeddings: {provider: …, model: …}`, or leave the server out"));
        }
        let provider = base.embeddings.as_ref().map(|embeddings| &embeddings.provider);
        if let Some(provider) = provider.filter(|provider| !project.providers.contains_key(*provider)) {
            let known = project.providers.keys().map(String::as_str);
            let at = embeddings.key("provider");
            let mistake =
                Mistake::at(at, "unknown-embeddings", "unknown provider").label(did_you_mean(provider, known));
            mistakes.push(mistake.help("any provider with an OpenAI-compatible endpoint for embeddings will do"));
        }
        if base.embeddings.as_ref().is_some_and(|embeddings| embeddings.model.trim().is_empty()) {
            mistakes.push(Mistake::at(embeddings.key("model"), "empty-text", "the model has no name"));
        }
        let inside = |folder: &String| folder.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if base.folder.as_ref().is_some_and(|folder| !inside(folder)) {
            let message = format!("a folder below {}/ is named", project.knowledge);
            mistakes.push(Mistake::at(at.key("folder"), "bad-name", message));
        }
        if base.server.is_none() && base.key.is_some() {
            mistakes.push(Mistake::at(at.key("key"), "no-server", "a key is for a server, and none is named"));
        }
        if !base.filter.is_empty() && (base.server.is_none() || base.folder.is_some()) {
            let message = "`where` applies to a server's passages alone, not to the words of a folder";
            mistakes.push(Mistake::at(at.key("where"), "filtered-folder", message).on_key());
        }
        let plain = |value: &serde_json::Value| value.is_string() || value.is_number() || value.is_boolean();
        for (field, _) in base.filter.iter().filter(|(_, value)| !plain(value)) {
            let mistake = Mistake::at(at.key("where").key(field), "bad-value", "a text, a number, true or false");
            mistakes.push(mistake);
        }
    }
    mistakes
}

/// Mistakes in the address of a server: its kind, or its parameters after `?`.
fn address(server: &ServerAddress, catalogues: &Catalogues, at: At<'_>) -> Option<Mistake> {
    let known = || catalogues.servers.iter().map(|entry| entry.scheme);
    let Some(entry) = catalogues.servers.iter().find(|entry| entry.scheme == server.scheme) else {
        let message = format!("unknown kind of server `{}`", server.scheme);
        return Some(Mistake::at(at, "unknown-server", message).label(did_you_mean(&server.scheme, known())));
    };
    let option = server.options.keys().find(|option| !entry.options.contains(&option.as_str()))?;
    let message = match entry.options {
        [] => format!("{} accepts nothing after `?`", entry.scheme),
        options => format!("{} has no option `{option}`; known: {}", entry.scheme, options.join(", ")),
    };
    Some(Mistake::at(at, "unknown-option", message))
}

impl Checker<'_> {
    pub(super) fn knowledge(&mut self, at: At<'_>) {
        let knowledge = &self.scenario.knowledge;
        if knowledge.is_empty() {
            let mistake = Mistake::at(at, "missing-key", "the key `knowledge` is missing");
            self.say(mistake.help("this flow searches a folder of documents: name it"));
        }
        for (id, name) in knowledge.names() {
            if knowledge.is_single() {
                self.knowledge_base(name, at);
                continue;
            }
            if id.is_empty() || id.chars().count() > 64 || id.chars().any(char::is_control) {
                let mistake = Mistake::at(at.key(id), "bad-name", "not a name that a model can write").on_key();
                self.say(mistake.label("1 to 64 printable characters"));
            }
            self.knowledge_base(name, at.key(id));
        }
        if !knowledge.is_empty() && !self.has_tenants() && !knowledge.names().contains_key(DEFAULT_KB) {
            let message = format!("no base is `{DEFAULT_KB}`, which is searched when the model names none");
            let mistake = Mistake::at(at, "no-default-kb", message).on_key();
            self.say(mistake.label(format!("name one of them `{DEFAULT_KB}`")));
        }
    }

    /// Whether each of its own flows has tenants, named after the knowledge bases. An external agent has its own knowledge.
    pub(super) fn has_tenants(&self) -> bool {
        let catalogues = self.around.catalogues;
        let mut ours = self.scenario.flows().filter(|flow| *flow != EXTERNAL).peekable();
        ours.peek().is_some() && ours.all(|flow| catalogues.flow(flow).is_some_and(|flow| flow.tenants))
    }

    /// Whether users belong to tenants: for flows with tenants, and for agents that receive the tenant in the
    /// request.
    pub(super) fn knows_tenants(&self) -> bool {
        let catalogues = self.around.catalogues;
        let told = self.scenario.target.as_ref().and_then(|target| target.send.as_ref());
        let told = told.is_some_and(|body| super::check_external::is_filled_with(body, "tenant"));
        let knows =
            |flow: &str| if flow == EXTERNAL { told } else { catalogues.flow(flow).is_some_and(|flow| flow.tenants) };
        self.scenario.flows().all(knows)
    }

    fn knowledge_base(&mut self, name: &str, at: At<'_>) {
        if self.around.project.knowledge_bases.contains_key(name) {
            return;
        }
        let folder = self.around.root.join(&self.around.project.knowledge);
        let inside = !name.is_empty() && name.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
        if inside && folder.join(name).is_dir() {
            return;
        }
        let known: Vec<String> = files::entries(&folder)
            .map(|entries| {
                let names = entries.iter().filter(|entry| entry.is_folder);
                names.filter_map(|entry| Some(entry.path.file_name()?.to_string_lossy().into_owned())).collect()
            })
            .unwrap_or_default();
        let label = did_you_mean(name, known.iter().map(String::as_str));
        let mistake = Mistake::at(at, "unknown-knowledge", "there is no such knowledge folder").label(label);
        self.say(mistake.help(format!("knowledge folders are below {}/", self.around.project.knowledge)));
    }
}
