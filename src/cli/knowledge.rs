//! `ragcheck knowledge`: lists and searches a knowledge base, shows changes, and pushes it to a server.

use super::exit::Exit;
use super::index_arguments::{Knowledge, KnowledgeCommand};
use super::output::{self, Problem};
use crate::knowledge::{
    BATCH, Corpus, Declared, Embedded, Listing, Passage, Search, StoredPassage, Vectors, embedded_text, prepare, store,
    vector_file,
};
use crate::provider::{Access, Embedder, RetryPolicy};
use crate::scenario::{self, Project};
use crate::settings::{EmbeddingSettings, KnowledgeBaseSettings, ServerAddress};
use crate::trial::{Variables, knowledge_access, without_services};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Texts per request to the embeddings endpoint.
const TEXTS: usize = 16;

/// Runs `ragcheck knowledge`.
///
/// # Errors
/// If the knowledge base cannot be read, or a service it calls fails.
pub(super) fn run(given: &Knowledge) -> Result<Exit, Problem> {
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let root = scenario::find_root(&here);
    let project = scenario::load_project(&root, &crate::catalogues())?;
    let named = |base: &str| Base::named(&root, &project, base);
    match &given.command {
        KnowledgeCommand::Search { base, query, top_k } => search(&named(base)?, query, *top_k),
        KnowledgeCommand::Index { base } => index(&named(base)?),
        KnowledgeCommand::Push { base, to } => push(&named(base)?, to.as_ref()),
        KnowledgeCommand::Stats { base } => {
            output::result(&stats(&named(base)?.corpus()?));
            Ok(Exit::Passed)
        }
        KnowledgeCommand::Diff { base } => {
            let base = named(base)?;
            diff(&base.corpus()?, base.root)
        }
    }
}

/// A knowledge base: a folder, or a base that the project declares by name.
struct Base<'p> {
    root: &'p Path,
    project: &'p Project,
    name: String,
    settings: Option<&'p KnowledgeBaseSettings>,
    /// Name of the folder; `None` if the base is only on a server.
    folder: Option<String>,
}

impl<'p> Base<'p> {
    fn named(root: &'p Path, project: &'p Project, name: &str) -> Result<Self, Problem> {
        let settings = project.knowledge_bases.get(name);
        let folder = match settings {
            Some(KnowledgeBaseSettings { folder: None, server: Some(_), .. }) => None,
            Some(settings) => Some(settings.folder.clone().unwrap_or_else(|| name.to_owned())),
            None => Some(name.to_owned()),
        };
        Ok(Self { root, project, name: name.to_owned(), settings, folder })
    }

    fn path(&self) -> Result<PathBuf, Problem> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            let why =
                format!("`{}` has no folder: it is on its server alone, so there is nothing to read here", self.name);
            Problem::Words(why)
        })?;
        Ok(self.root.join(&self.project.knowledge).join(folder))
    }

    fn corpus(&self) -> Result<Corpus, Problem> {
        Ok(Corpus::load(&self.path()?).map_err(|why| why.to_string())?)
    }

    /// The project's declaration of its embeddings.
    fn vectors(&self) -> Result<(&'p KnowledgeBaseSettings, &'p EmbeddingSettings), Problem> {
        self.settings.and_then(|settings| Some((settings, settings.embeddings.as_ref()?))).ok_or_else(|| {
            let why = format!("`{}` has no vectors: declare it under `knowledge_bases` with `embeddings`", self.name);
            Problem::Words(why)
        })
    }

    fn access(&self) -> Result<Access, Problem> {
        let access = match self.settings {
            Some(settings) => {
                knowledge_access(self.project, settings, &Variables::new()).map_err(|why| why.to_string())?
            }
            None => without_services(RetryPolicy::default()),
        };
        Ok(access)
    }
}

/// Runs async work that calls services.
fn wait<T>(work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|why| format!("the runtime cannot be started: {why}"))?.block_on(work)
}

fn search(base: &Base<'_>, query: &str, top_k: usize) -> Result<Exit, Problem> {
    let folder = base.root.join(&base.project.knowledge);
    let declared = Declared { place: &base.name, knowledge: &folder, cache: None, settings: base.settings };
    let source = prepare(declared).map_err(|why| why.to_string())?;
    let opened = source.open(&base.access()?);
    let Search { result, .. } = wait(async { Ok(opened.search(query, top_k).await) })?;
    let found = result.map_err(|why| why.to_string())?;
    if found.is_empty() {
        output::remark(&format!("nothing in `{}` matches: no word of the query occurs in a passage", base.name));
    }
    for (rank, found) in (1..).zip(&found) {
        let passage = &found.passage;
        let text = passage.text.split_whitespace().collect::<Vec<_>>().join(" ");
        output::result(&format!(
            "{rank}. {}  {}  (raw score {:.3})\n   {text}\n",
            passage.id, passage.title, found.raw_score
        ));
    }
    Ok(Exit::Passed)
}

/// File of the listing from the last `index`, beside the derived index files.
fn listing_of(root: &Path, base: &str) -> PathBuf {
    root.join(".ragcheck").join(format!("{base}.listing.json"))
}

fn index(base: &Base<'_>) -> Result<Exit, Problem> {
    let corpus = base.corpus()?;
    let listing = Listing::of(&corpus);
    let told = format!(
        "{}: {} passages of {} documents, hash {}\n",
        base.name,
        corpus.passages.len(),
        corpus.documents.len(),
        corpus.hash
    );
    let language = base.settings.map(|settings| settings.language).unwrap_or_default();
    let cache = base.root.join(".ragcheck");
    Embedded::open_in(language, corpus.clone(), Some(&cache)).map_err(|why| why.to_string())?;
    output::result(&told);
    if let Some(embeddings) = base.settings.and_then(|settings| settings.embeddings.as_ref()) {
        output::result(&wait(embed(base, embeddings, &corpus))?);
    }
    listing.save(&listing_of(base.root, &corpus.id)).map_err(|why| why.to_string())?;
    Ok(Exit::Passed)
}

/// Computes missing embeddings and writes all of them to the file beside the folder.
async fn embed(base: &Base<'_>, embeddings: &EmbeddingSettings, corpus: &Corpus) -> Result<String, Problem> {
    let model = &embeddings.model;
    let file = vector_file(&base.path()?, model);
    let mut vectors = Vectors::read(&file, model).map_err(|why| why.to_string())?;
    let missing = vectors.missing(corpus);
    if !missing.is_empty() {
        let embedder = Embedder::new(&base.access()?, model, embeddings.dimensions);
        for places in missing.chunks(TEXTS) {
            let passages: Vec<&Passage> = places.iter().filter_map(|place| corpus.passages.get(*place)).collect();
            let texts: Vec<String> = passages.iter().map(|passage| embedded_text(passage)).collect();
            let embedded = embedder.embed(&texts).await.result.map_err(|why| why.to_string())?;
            for (passage, vector) in passages.iter().zip(&embedded) {
                vectors.add(passage, vector).map_err(|why| why.to_string())?;
            }
        }
    }
    vectors.save(&file, model, corpus).map_err(|why| why.to_string())?;
    let kept = corpus.passages.len() - missing.len();
    Ok(format!("{} new vectors by {model}, {kept} kept, in {}\n", missing.len(), file.display()))
}

/// Pushes a folder's passages with their vectors to a server, and deletes passages that are no longer in the folder.
fn push(base: &Base<'_>, to: Option<&ServerAddress>) -> Result<Exit, Problem> {
    let (declared, embeddings) = base.vectors()?;
    let address = to
        .or(declared.server.as_ref())
        .ok_or_else(|| Problem::Words("name the collection: --to chroma://HOST:PORT/COLLECTION".into()))?;
    let settings = KnowledgeBaseSettings { server: Some(address.clone()), ..declared.clone() };
    let corpus = base.corpus()?;
    let model = &embeddings.model;
    let file = vector_file(&base.path()?, model);
    let rows = Vectors::read(&file, model).map_err(|why| why.to_string())?;
    let lacking =
        |count| format!("{count} passages have no vector: run `ragcheck knowledge index {}` first", base.name);
    let rows = rows.of(&corpus).map_err(lacking)?;
    let access = knowledge_access(base.project, &settings, &Variables::new()).map_err(|why| why.to_string())?;
    let server = store(address, &access).ok_or_else(|| format!("unknown kind of server `{}`", address.scheme))?;
    let told = wait(async {
        let words = |why: crate::provider::ProviderError| why.to_string();
        let made = server.create(model, rows.dimensions(), corpus.passages.len()).await.result.map_err(words)?;
        if let Some(other) = made.model.as_ref().filter(|other| *other != model) {
            let why =
                format!("the collection `{}` holds vectors by `{other}`, not by `{model}`: name another", made.name);
            return Err(Problem::Words(why));
        }
        let here: BTreeSet<&str> = corpus.passages.iter().map(|passage| passage.id.as_str()).collect();
        let there = server.ids(&made).await.result.map_err(words)?;
        let gone: Vec<String> = there.into_iter().filter(|id| !here.contains(id.as_str())).collect();
        for ids in gone.chunks(BATCH) {
            server.remove(&made, ids).await.result.map_err(words)?;
        }
        for batch in StoredPassage::of(&corpus, &rows).chunks(BATCH) {
            server.upsert(&made, batch).await.result.map_err(words)?;
        }
        let now = server.collection().await.result.map_err(words)?;
        if now.count != corpus.passages.len() as u64 {
            let (count, sent) = (now.count, corpus.passages.len());
            let why = format!("the collection `{}` holds {count} passages after {sent} were sent", now.name);
            return Err(Problem::Words(why));
        }
        let removed = gone.len();
        Ok(format!("{address}: {} passages with vectors by {model}, {removed} removed\n", now.count))
    })?;
    output::result(&told);
    Ok(Exit::Passed)
}

fn stats(corpus: &Corpus) -> String {
    let characters = |passage: &crate::knowledge::Passage| passage.text.chars().count();
    let all: usize = corpus.passages.iter().map(characters).sum();
    let longest = corpus.passages.iter().map(characters).max().unwrap_or_default();
    let mut told = format!(
        "{}: {} passages of {} documents, {all} characters, the longest passage {longest}, hash {}\n",
        corpus.id,
        corpus.passages.len(),
        corpus.documents.len(),
        corpus.hash
    );
    for document in &corpus.documents {
        let _ = writeln!(told, "  {}  {} passages, hash {}", document.file, document.passages, document.hash);
    }
    told
}

fn diff(corpus: &Corpus, root: &Path) -> Result<Exit, Problem> {
    let file = listing_of(root, &corpus.id);
    let before = Listing::read(&file).map_err(|why| why.to_string())?;
    let Some(before) = before else {
        let base = &corpus.id;
        return Err(Problem::Words(format!(
            "`{base}` was not indexed yet: run `ragcheck knowledge index {base}` first"
        )));
    };
    let changes = Listing::of(corpus).since(&before);
    if changes.is_empty() {
        output::remark("nothing changed since the last `ragcheck knowledge index`");
    }
    for change in changes {
        output::result(&format!("{change}\n"));
    }
    Ok(Exit::Passed)
}
