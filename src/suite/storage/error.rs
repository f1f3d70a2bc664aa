//! Why a push, pull or list failed: what, where, and what to do.

use super::manifest::ManifestError;
use crate::suite::recordings::FileError;
use crate::trace::text::{self, plural, quote};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of files named in a message.
const LISTED: usize = 5;

/// Why a set was not stored or fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    /// The URL or a variable is unusable.
    #[error("{0}")]
    Setting(String),
    /// The storage did not answer, or the connection was lost.
    #[error(
        "{at}: no usable reply from {server}: {why}; nothing that is stored or here has changed, and the same command goes on from there"
    )]
    Outage { at: String, server: String, why: String },
    /// The storage refuses the request.
    #[error(
        "{at}: the storage refuses the request: {why}; check the bucket, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, \
         AWS_REGION and AWS_ENDPOINT_URL"
    )]
    Refused { at: String, why: String },
    /// Other processes stored sets of that name at the same time, several times.
    #[error("{0}: others stored it at the same time; run the same command again")]
    Busy(String),
    /// There is no such set.
    #[error("{0}: there is no such set, or its push has not ended; `ragcheck storage list` shows what is stored")]
    Missing(String),
    /// A manifest is refused.
    #[error("{at}: {error}; nothing was written")]
    Manifest { at: String, error: ManifestError },
    /// A stored content is not what the manifest says.
    #[error(
        "{at}, the content of {}: {why}; nothing was written here. Remove that object, and push the set again",
        quote(path, 100)
    )]
    Damaged { at: String, path: String, why: String },
    /// A set of that name is there with other contents.
    #[error("{at} is there with other contents, and stays as it is: {}; {remedy}", listed(files))]
    Differs { at: String, files: Vec<String>, remedy: &'static str },
    /// A file changed while it was sent.
    #[error("{} changed while it was pushed: push again when nothing writes there", .0.display())]
    Changed(PathBuf),
    /// Files hold secrets.
    #[error(
        "nothing was pushed: {} found: {}; revoke what is real, and take it out (`ragcheck cassette scan PATH` finds it again)",
        plural(.0.len(), "secret"), listed(.0)
    )]
    Secrets(Vec<String>),
    /// A local file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Local { path: PathBuf, error: io::Error },
    /// Local files cannot be read.
    #[error(transparent)]
    Files(#[from] FileError),
}

impl StorageError {
    /// For an operation on a local file.
    pub(super) fn local(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Local { path: path.to_owned(), error }
    }

    /// For a request about the object at the URL `at`.
    pub(super) fn of(at: &str, server: &str, error: &object_store::Error) -> Self {
        let (at, text) = (at.to_owned(), error.to_string());
        let why = why(error, &text);
        // 408 and 429 were repeated until the retries ran out.
        let is_refused = text.contains("status code: 4")
            && !["408", "429"].iter().any(|code| text.contains(&format!("status code: {code}")));
        if is_refused { Self::Refused { at, why } } else { Self::Outage { at, server: quote(server, 100), why } }
    }
}

/// What the storage said, without the rest of its reply, which may repeat the request; else the innermost cause.
fn why(error: &object_store::Error, text: &str) -> String {
    let tag = |name: &str| text.split_once(&format!("<{name}>"))?.1.split_once('<').map(|(inner, _)| quote(inner, 200));
    if let Some(code) = tag("Code") {
        return tag("Message").map_or_else(|| code.clone(), |message| format!("{code}: {message}"));
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    quote(&innermost.to_string(), 300)
}

fn listed(files: &[String]) -> String {
    text::listed(files.iter().map(|file| quote(file, 100)), LISTED)
}
