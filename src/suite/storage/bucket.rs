//! The storage that a URL and the environment name, and the objects of a set in it.

use super::client::Connector;
use super::manifest::{Item, Manifest, ManifestError, is_name};
use super::{Kind, Outcome, RECORDINGS, StorageError, StoredSet};
use crate::platform::{loopback, secrets};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig, UpdateVersion};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Requests that are under way at the same time.
pub(super) const AT_ONCE: usize = 8;
/// Maximum bytes of a manifest: 100,000 files with long names.
const LONGEST: u64 = 32 << 20;
/// How often a request is repeated, after random waits of two to eleven seconds in all.
const RETRIES: usize = 6;

/// A folder of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Its URL without a `/` at the end, for messages.
    pub(super) url: String,
    /// The server, for messages.
    pub(super) server: String,
    pub(super) prefix: Path,
}

/// A set in a bucket.
#[derive(Debug, Clone)]
pub(super) struct Set<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) kind: Kind,
    folder: Path,
}

/// A stored manifest.
#[derive(Debug)]
pub(super) struct Stored {
    /// `None` if it is cut off: some servers keep what they had when the connection was lost.
    pub(super) manifest: Option<Manifest>,
    tag: Option<String>,
}

impl Bucket {
    /// The storage at `s3://BUCKET/PREFIX`, with the variables of other S3 clients.
    ///
    /// # Errors
    /// If the URL or a variable is unusable.
    pub(crate) fn open(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, StorageError> {
        let set = |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let wrong = |why: &str| StorageError::Setting(why.to_owned());
        let url = url.trim_end_matches('/');
        let place = url.strip_prefix("s3://").filter(|place| place.split('/').all(is_name));
        let place = place.ok_or_else(|| wrong("the storage is named by `s3://BUCKET` or `s3://BUCKET/PREFIX`"))?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let needed = |name: &str| set(name).ok_or_else(|| wrong(&format!("{name} is not set: the storage needs it")));
        let (id, secret, token) =
            (needed("AWS_ACCESS_KEY_ID")?, needed("AWS_SECRET_ACCESS_KEY")?, set("AWS_SESSION_TOKEN"));
        let declared = [("AWS_SECRET_ACCESS_KEY", Some(&secret)), ("AWS_SESSION_TOKEN", token.as_ref())];
        secrets::declare(declared.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.clone()))));
        let endpoint = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL"));
        let is_local = endpoint.as_deref().is_some_and(loopback::is_loopback_url);
        let allowed = is_local || set("AWS_ALLOW_HTTP").is_some_and(|value| ["1", "true"].contains(&&*value));
        let is_fit = |address: &String| address.starts_with("https://") || allowed && address.starts_with("http://");
        if !endpoint.as_ref().is_none_or(is_fit) {
            return Err(wrong(
                "AWS_ENDPOINT_URL has to begin with https://; http:// is for addresses of this machine, and others with AWS_ALLOW_HTTP=true",
            ));
        }
        let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION"));
        let backoff =
            BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(5), base: 2. };
        let retry = RetryConfig { backoff, max_retries: RETRIES, retry_timeout: Duration::from_mins(2) };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(region.unwrap_or_else(|| "us-east-1".to_owned()))
            .with_access_key_id(id)
            .with_secret_access_key(secret)
            .with_retry(retry)
            .with_http_connector(Connector { is_local });
        if let Some(token) = token {
            builder = builder.with_token(token);
        }
        let server = endpoint.clone().unwrap_or_else(|| "Amazon S3".to_owned());
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint).with_allow_http(allowed);
        }
        let store = builder.build().map_err(|why| StorageError::Setting(format!("{url}: {why}")))?;
        Ok(Self { store: Arc::new(store), url: url.to_owned(), server, prefix: Path::from(prefix) })
    }

    /// A set by its name, which `recordings` does not need.
    pub(super) fn set(&self, kind: Kind, name: &str) -> Result<Set<'_>, StorageError> {
        let folder = match kind {
            Kind::Recordings => self.prefix.clone().join(RECORDINGS),
            Kind::Run if is_name(name) => self.prefix.clone().join("runs").join(name),
            Kind::Run => return Err(StorageError::Missing(format!("run `{name}`"))),
        };
        Ok(Set { bucket: self, kind, folder })
    }

    /// Names of the runs, also of those whose push has not ended.
    ///
    /// # Errors
    /// If the storage cannot be asked.
    async fn runs(&self) -> Result<Vec<String>, StorageError> {
        let folder = self.prefix.clone().join("runs");
        let found = self.store.list_with_delimiter(Some(&folder)).await.map_err(|why| self.failed(&folder, &why))?;
        Ok(found.common_prefixes.iter().filter_map(Path::filename).map(str::to_owned).collect())
    }

    /// The sets that are there, recordings last, and remarks on those that cannot be read.
    ///
    /// # Errors
    /// If the storage cannot be asked.
    pub(crate) async fn list(&self) -> Result<(Vec<StoredSet>, Vec<String>), StorageError> {
        let runs = self.runs().await?;
        let all = runs.iter().map(|name| (Kind::Run, name.as_str())).chain([(Kind::Recordings, RECORDINGS)]);
        let read =
            |(kind, name)| async move { Ok::<_, StorageError>((kind, name, self.set(kind, name)?.stored().await)) };
        let read: Vec<_> = stream::iter(all).map(read).buffered(AT_ONCE).try_collect().await?;
        let (mut sets, mut notes) = (Vec::new(), Vec::new());
        for (kind, name, stored) in read {
            match stored {
                Ok(Some(Stored { manifest: Some(manifest), .. })) => {
                    sets.push(printed(kind, name, &manifest, Outcome::Stored, 0));
                }
                Ok(_) => {}
                Err(refused @ StorageError::Manifest { .. }) => notes.push(refused.to_string()),
                Err(other) => return Err(other),
            }
        }
        Ok((sets, notes))
    }

    pub(super) fn failed(&self, path: &Path, error: &object_store::Error) -> StorageError {
        StorageError::of(&self.shown(path), &self.server, error)
    }

    /// URL of an object.
    pub(super) fn shown(&self, path: &Path) -> String {
        let below = path.as_ref().strip_prefix(self.prefix.as_ref()).unwrap_or(path.as_ref());
        format!("{}/{}", self.url, below.trim_start_matches('/'))
    }
}

/// A set for people and programs.
pub(super) fn printed(kind: Kind, name: &str, manifest: &Manifest, outcome: Outcome, transferred: usize) -> StoredSet {
    let (files, bytes) = (manifest.files.len(), manifest.bytes());
    StoredSet { kind, name: name.to_owned(), files, bytes, outcome, transferred, differing: Vec::new() }
}

impl Set<'_> {
    pub(super) fn manifest(&self) -> Path {
        self.folder.clone().join("manifest.json")
    }

    pub(super) fn content(&self, item: &Item) -> Path {
        self.folder.clone().join("files").join(item.sha256.as_str())
    }

    /// Its manifest, checked; `None` if there is none.
    pub(super) async fn stored(&self) -> Result<Option<Stored>, StorageError> {
        let path = self.manifest();
        let at = || self.bucket.shown(&path);
        let found = match self.bucket.store.get(&path).await {
            // A bucket that is missing has no manifest either, and is a mistake.
            Err(error @ object_store::Error::NotFound { .. }) if !error.to_string().contains("NoSuchBucket") => {
                return Ok(None);
            }
            found => found.map_err(|why| self.bucket.failed(&path, &why))?,
        };
        if found.meta.size > LONGEST {
            let error = ManifestError::Syntax(format!("it has more than {} MiB", LONGEST >> 20));
            return Err(StorageError::Manifest { at: at(), error });
        }
        let tag = found.meta.e_tag.clone();
        let text = found.bytes().await.map_err(|why| self.bucket.failed(&path, &why))?;
        match Manifest::read(&text, self.kind) {
            Ok(manifest) => Ok(Some(Stored { manifest: Some(manifest), tag })),
            Err(ManifestError::Syntax(_)) => Ok(Some(Stored { manifest: None, tag })),
            Err(error) => Err(StorageError::Manifest { at: at(), error }),
        }
    }

    /// Sizes of the contents that are stored, by digest.
    pub(super) async fn contents(&self) -> Result<BTreeMap<String, u64>, StorageError> {
        let folder = self.folder.clone().join("files");
        let found = self.bucket.store.list(Some(&folder));
        let sized = found.map_ok(|meta| (meta.location.filename().unwrap_or_default().to_owned(), meta.size));
        sized.try_collect().await.map_err(|why| self.bucket.failed(&folder, &why))
    }

    /// Stores a manifest over the one that was read; `false` if another process was quicker.
    pub(super) async fn store(&self, manifest: &Manifest, over: Option<&Stored>) -> Result<bool, StorageError> {
        let path = self.manifest();
        let mode = match over.map(|stored| stored.tag.clone()) {
            None => PutMode::Create,
            Some(None) => PutMode::Overwrite,
            Some(e_tag) => PutMode::Update(UpdateVersion { e_tag, version: None }),
        };
        let text = manifest.text().map_err(|why| StorageError::Setting(why.to_string()))?;
        match self.bucket.store.put_opts(&path, text.into(), PutOptions::from(mode)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(false),
            Err(why) => Err(self.bucket.failed(&path, &why)),
        }
    }
}
