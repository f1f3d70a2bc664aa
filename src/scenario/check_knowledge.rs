//! Checks the knowledge bases that a project declares.

use super::diagnostic::{At, Mistake, did_you_mean};
use super::project::Project;
use crate::settings::ServerAddress;
use crate::settings::catalogue::Catalogues;

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
