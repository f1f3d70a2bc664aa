//! `ragcheck knowledge`: lists and searches a knowledge base, shows changes, and pushes it to a server.

use super::arguments::{Knowledge, KnowledgeCommand};
use super::exit::Exit;
use super::output::{self, Problem};
use crate::knowledge::{
    BATCH, Change, Corpus, Declared, Embedded, Found, Listing, Passage, Search, StoredPassage, VectorError, Vectors,
    embedded_text, lacking_vectors, prepare, store, vector_file,
};
use crate::provider::{Access, Embedder, RetryPolicy};
use crate::scenario::Project;
use crate::settings::{EmbeddingSettings, KnowledgeBaseSettings, ServerAddress};
use crate::trace::text::quote;
use crate::trial::run::interrupted;
use crate::trial::{Variables, knowledge_access, without_services};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Texts per request to the embeddings endpoint.
const TEXTS: usize = 16;

/// Runs `ragcheck knowledge`.
///
/// # Errors
/// If the knowledge base cannot be read, or a service it calls fails.
pub(super) fn run(given: &Knowledge) -> Result<Exit, Problem> {
    let (root, project) = super::select::project()?;
    let named = |base: &str| Base::named(&root, &project, base);
    let found = match &given.command {
        KnowledgeCommand::Search { base, query, top_k } => search(&named(base)?, query, *top_k)?,
        KnowledgeCommand::Index { base } => index(&named(base)?)?,
        KnowledgeCommand::Push { base, to } => push(&named(base)?, to.as_ref())?,
        KnowledgeCommand::Stats { base } => stats(&named(base)?.corpus()?),
        KnowledgeCommand::Diff { base } => {
            let base = named(base)?;
            diff(&base.corpus()?, base.root)?
        }
    };
    output::data(given.format, &found, ToString::to_string)?;
    Ok(Exit::Passed)
}

/// What a subcommand of `knowledge` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Printable {
    /// Of `search`, best first.
    Found(Vec<FoundPassage>),
    /// Of `index` and `stats`.
    Base(BaseFacts),
    /// Of `push`.
    Pushed {
        /// The collection.
        collection: String,
        /// Passages that it holds now.
        passages: u64,
        /// The model of the vectors.
        model: String,
        /// Passages that were removed there.
        removed: usize,
    },
    /// Of `diff`, by id.
    Changes(Vec<Change>),
}

/// One passage that a search finds.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FoundPassage {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its score before the rank replaces it.
    pub raw_score: f64,
    /// Its text.
    pub text: String,
}

/// A knowledge base in figures.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BaseFacts {
    /// Its name.
    pub base: String,
    /// Number of passages.
    pub passages: usize,
    /// Characters of all passages.
    pub characters: usize,
    /// Characters of the longest passage.
    pub longest: usize,
    /// Digest of everything.
    pub hash: String,
    /// Number of documents.
    pub documents: usize,
    /// Folders and files of other formats in its folder, which are not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<String>,
    /// Of `stats`: each document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<DocumentFacts>>,
    /// Of `index`: the vectors, if the base has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorFacts>,
}

/// One document in figures.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DocumentFacts {
    /// Its file, from the base's folder.
    pub file: String,
    /// Number of its passages.
    pub passages: usize,
    /// Its digest.
    pub hash: String,
}

/// The vectors of a base.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct VectorFacts {
    /// The model that made them.
    pub model: String,
    /// Vectors that were asked for now.
    pub new: usize,
    /// Vectors that were there.
    pub kept: usize,
    /// Their file.
    pub file: String,
}

impl fmt::Display for Printable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(all) => (1..).zip(all).try_for_each(|(rank, FoundPassage { id, title, raw_score, text })| {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                writeln!(out, "{rank}. {id}  {title}  (raw score {raw_score:.3})\n   {text}")
            }),
            Self::Base(facts) => facts.fmt(out),
            Self::Pushed { collection, passages, model, removed } => {
                writeln!(out, "{collection}: {passages} passages with vectors by {model}, {removed} removed")
            }
            Self::Changes(changes) => changes.iter().try_for_each(|change| writeln!(out, "{change}")),
        }
    }
}

impl fmt::Display for BaseFacts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, passages, characters, longest, hash, documents, not_read, files, vectors } = self;
        write!(out, "{base}: {passages} passages of {documents} documents, ")?;
        if files.is_some() {
            write!(out, "{characters} characters, the longest passage {longest}, ")?;
        }
        writeln!(out, "hash {hash}")?;
        for DocumentFacts { file, passages, hash } in files.iter().flatten() {
            writeln!(out, "  {file}  {passages} passages, hash {hash}")?;
        }
        if !not_read.is_empty() {
            let names: Vec<String> = not_read.iter().map(|name| quote(name, 60)).collect();
            writeln!(out, "not read (only files of known formats directly in the folder are): {}", names.join(", "))?;
        }
        if let Some(VectorFacts { model, new, kept, file }) = vectors {
            writeln!(out, "{new} new vectors by {model}, {kept} kept, in {file}")?;
        }
        Ok(())
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
        Ok(Corpus::load(&self.path()?)?)
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

fn search(base: &Base<'_>, query: &str, top_k: usize) -> Result<Printable, Problem> {
    let folder = base.root.join(&base.project.knowledge);
    let declared = Declared { place: &base.name, knowledge: &folder, cache: None, settings: base.settings };
    let source = prepare(declared)?;
    let opened = source.open(&base.access()?);
    let Search { result, .. } = wait(async { Ok(opened.search(query, top_k).await) })?;
    let found = result.map_err(|why| why.to_string())?;
    if found.is_empty() {
        let not_read = base.corpus().map(|corpus| corpus.not_read()).unwrap_or_default();
        let why = "no word of the query occurs in a passage";
        output::remark(&format!("nothing in `{}` matches: {why}{not_read}", base.name));
    }
    let passage = |found: Found| FoundPassage {
        id: found.passage.id.clone(),
        title: found.passage.title.clone(),
        raw_score: found.raw_score,
        text: found.passage.text.clone(),
    };
    Ok(Printable::Found(found.into_iter().map(passage).collect()))
}

/// File of the listing from the last `index`, beside the derived index files.
fn listing_of(root: &Path, base: &str) -> PathBuf {
    root.join(".ragcheck").join(format!("{base}.listing.json"))
}

fn index(base: &Base<'_>) -> Result<Printable, Problem> {
    let corpus = base.corpus()?;
    let listing = Listing::of(&corpus);
    let language = base.settings.map(|settings| settings.language).unwrap_or_default();
    let cache = base.root.join(".ragcheck");
    Embedded::open_in(language, corpus.clone(), Some(&cache))?;
    let embeddings = base.settings.and_then(|settings| settings.embeddings.as_ref());
    let vectors = embeddings.map(|embeddings| wait(embed(base, embeddings, &corpus))).transpose()?;
    listing.save(&listing_of(base.root, &corpus.id))?;
    Ok(Printable::Base(BaseFacts { base: base.name.clone(), vectors, ..facts(&corpus) }))
}

/// Computes missing embeddings and writes all of them to the file beside the folder. If it ends early, by an error of the
/// provider or a signal, what was computed is written, and the next call continues from there.
async fn embed(base: &Base<'_>, embeddings: &EmbeddingSettings, corpus: &Corpus) -> Result<VectorFacts, Problem> {
    let model = &embeddings.model;
    let file = vector_file(&base.path()?, model);
    let mut vectors = Vectors::read(&file, model)?;
    let missing = vectors.missing(corpus);
    let mut ended = None;
    if !missing.is_empty() {
        let embedder = Embedder::new(&base.access()?, model, embeddings.dimensions);
        for places in missing.chunks(TEXTS) {
            let passages: Vec<&Passage> = places.iter().filter_map(|place| corpus.passages.get(*place)).collect();
            let texts: Vec<String> = passages.iter().map(|passage| embedded_text(passage)).collect();
            let embedded = tokio::select! {
                embedded = embedder.embed(&texts) => embedded.result.map_err(|why| why.to_string()),
                why = interrupted() => Err(why.to_owned()),
            };
            let added = embedded.map_err(Problem::Incomplete).and_then(|embedded| {
                let mut pairs = passages.iter().zip(&embedded.vectors);
                let added = pairs.try_for_each(|(passage, vector)| vectors.add(passage, vector));
                added.map_err(|why| Problem::Words(refused(&why, &file, base)))
            });
            if let Err(why) = added {
                ended = Some(why);
                break;
            }
        }
    }
    let known = vectors.save(&file, model, corpus)?;
    match ended {
        Some(Problem::Incomplete(why)) => {
            let all = corpus.passages.len();
            let written = format!(
                "; {known} of {all} vectors are in {}, and the same command continues from there",
                file.display()
            );
            Err(Problem::Incomplete(why + if known > 0 { &written } else { "" }))
        }
        Some(other) => Err(other),
        None => {
            let kept = corpus.passages.len() - missing.len();
            Ok(VectorFacts { model: model.clone(), new: missing.len(), kept, file: file.display().to_string() })
        }
    }
}

/// Why a vector is not taken, and what to do where the model gives another length than before.
fn refused(why: &VectorError, file: &Path, base: &Base<'_>) -> String {
    match why {
        VectorError::Length { .. } => {
            format!("{why}: delete {}, and run `ragcheck knowledge index {}` again", file.display(), base.name)
        }
        VectorError::NoDirection { .. } => why.to_string(),
    }
}

/// Pushes a folder's passages with their vectors to a server, and deletes passages that are no longer in the folder.
fn push(base: &Base<'_>, to: Option<&ServerAddress>) -> Result<Printable, Problem> {
    let (declared, embeddings) = base.vectors()?;
    let address = to
        .or(declared.server.as_ref())
        .ok_or_else(|| Problem::Words("name the collection: --to chroma://HOST:PORT/COLLECTION".into()))?;
    let settings = KnowledgeBaseSettings { server: Some(address.clone()), ..declared.clone() };
    let corpus = base.corpus()?;
    let model = &embeddings.model;
    let file = vector_file(&base.path()?, model);
    let rows = Vectors::read(&file, model)?;
    let lacking = |count| format!("{}: run `ragcheck knowledge index {}` first", lacking_vectors(count), base.name);
    let rows = rows.of(&corpus).map_err(lacking)?;
    let access = knowledge_access(base.project, &settings, &Variables::new()).map_err(|why| why.to_string())?;
    let server = store(address, &access).ok_or_else(|| format!("unknown kind of server `{}`", address.scheme))?;
    wait(async {
        let words = |why: crate::provider::ProviderError| Problem::Incomplete(why.to_string());
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
        let (collection, model) = (address.to_string(), model.clone());
        Ok(Printable::Pushed { collection, passages: now.count, model, removed: gone.len() })
    })
}

fn facts(corpus: &Corpus) -> BaseFacts {
    let characters = |passage: &Passage| passage.text.chars().count();
    BaseFacts {
        base: corpus.id.clone(),
        passages: corpus.passages.len(),
        characters: corpus.passages.iter().map(characters).sum(),
        longest: corpus.passages.iter().map(characters).max().unwrap_or_default(),
        hash: corpus.hash.clone(),
        documents: corpus.documents.len(),
        not_read: corpus.not_read.clone(),
        files: None,
        vectors: None,
    }
}

fn stats(corpus: &Corpus) -> Printable {
    let files = corpus.documents.iter().map(|document| DocumentFacts {
        file: document.file.clone(),
        passages: document.passages,
        hash: document.hash.clone(),
    });
    Printable::Base(BaseFacts { files: Some(files.collect()), ..facts(corpus) })
}

fn diff(corpus: &Corpus, root: &Path) -> Result<Printable, Problem> {
    let file = listing_of(root, &corpus.id);
    let before = Listing::read(&file)?;
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
    Ok(Printable::Changes(changes))
}
