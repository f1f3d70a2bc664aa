//! Stores a set: contents that are missing first, the manifest last.

use super::bucket::{AT_ONCE, Bucket, Set, printed};
use super::manifest::{Decision, Item, Manifest, decide};
use super::{Kind, Outcome, StorageError, StoredSet};
use crate::cassette::{Redactor, scan};
use crate::platform::files;
use crate::suite::evaluation::requirement_states;
use crate::suite::recordings::scan_files;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes that are sent in one request; a larger file is sent in parts.
pub(super) const PART: usize = 8 << 20;
/// Bytes that are searched for secrets at once, as much as a recording may have.
const BLOCK: u64 = 64 << 20;
/// How often a manifest is merged with the one that another process has just stored.
const ATTEMPTS: usize = 5;

/// Stores the run folder or the recordings in `folder`. What is stored already is not sent again; nothing that is stored
/// under another content is lost unless `replace` says so.
///
/// # Errors
/// If a file holds a secret, another set of that name is stored, or the storage does not take it.
pub(crate) async fn push(
    bucket: &Bucket,
    (kind, name): (Kind, &str),
    folder: &Path,
    replace: bool,
    redactor: &Redactor,
) -> Result<StoredSet, StorageError> {
    let set = bucket.set(kind, name)?;
    let local = gather(folder, kind)?;
    local.check(kind).map_err(|error| StorageError::Manifest { at: folder.display().to_string(), error })?;
    let found = secrets_in(folder, &local, redactor)?;
    if !found.is_empty() {
        return Err(StorageError::Secrets(found));
    }
    let mut sent = 0;
    for _ in 0..ATTEMPTS {
        let stored = set.stored().await?;
        let there = stored.as_ref().and_then(|stored| stored.manifest.as_ref());
        let manifest = match decide(kind, there, &local, replace) {
            // Contents that were removed meanwhile are sent again.
            Decision::Unchanged => None,
            Decision::Keep(differing) => {
                let kept = printed(kind, name, there.unwrap_or(&local), Outcome::Kept, 0);
                return Ok(StoredSet { differing, ..kept });
            }
            Decision::Write(manifest) => Some(manifest),
            Decision::Refuse(files) => {
                let remedy = match kind {
                    Kind::Run => "push to another prefix, or remove that run from the bucket",
                    Kind::Recordings => "pull them first, or push yours in their place with --replace",
                };
                return Err(StorageError::Differs { at: bucket.shown(&set.manifest()), files, remedy });
            }
        };
        sent += send(&set, folder, &local).await?;
        let Some(manifest) = manifest else {
            let outcome = if sent == 0 { Outcome::Unchanged } else { Outcome::Pushed };
            return Ok(printed(kind, name, there.unwrap_or(&local), outcome, sent));
        };
        if set.store(&manifest, stored.as_ref()).await? {
            return Ok(printed(kind, name, &manifest, Outcome::Pushed, sent));
        }
    }
    Err(StorageError::Busy(bucket.shown(&set.manifest())))
}

/// The visible files of a set in a folder, with their digests: of a run those right in it. Links are not followed.
pub(super) fn gather(folder: &Path, kind: Kind) -> Result<Manifest, StorageError> {
    let below = |path: PathBuf| {
        let inside = path.strip_prefix(folder).ok()?;
        let names: Vec<String> = inside.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let is_part = names.iter().all(|name| !name.starts_with('.')) && (kind == Kind::Recordings || names.len() == 1);
        is_part.then(|| (names.join("/"), path))
    };
    let found: Vec<_> = scan_files(&[folder.to_owned()])?.into_iter().filter_map(below).collect();
    let read = |(name, path): (String, PathBuf)| {
        let (bytes, sha256) = requirement_states::digest(&path).map_err(StorageError::local(&path))?;
        Ok((name, Item { bytes, sha256 }))
    };
    Ok(Manifest::new(found.into_par_iter().map(read).collect::<Result<BTreeMap<_, _>, StorageError>>()?))
}

/// Secrets in the files, by file and line.
fn secrets_in(folder: &Path, local: &Manifest, redactor: &Redactor) -> Result<Vec<String>, StorageError> {
    let of_file = |path: &String| {
        let file = folder.join(path);
        let found = scanned(&file, redactor).map_err(StorageError::local(&file))?;
        Ok(found.into_iter().map(|(line, what)| format!("{path}:{line}: {what}")).collect())
    };
    let paths: Vec<&String> = local.files.keys().collect();
    let found = paths.into_par_iter().map(of_file).collect::<Result<Vec<Vec<_>>, StorageError>>()?;
    Ok(found.concat())
}

/// Secrets of a file with their lines. Traces of a large run are read in blocks of whole lines; a recording is one block.
fn scanned(file: &Path, redactor: &Redactor) -> io::Result<Vec<(usize, String)>> {
    let (mut reader, mut before, mut found) = (BufReader::new(files::open(file)?), 0, Vec::new());
    loop {
        let mut block = Vec::new();
        reader.by_ref().take(BLOCK).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok(found);
        }
        reader.read_until(b'\n', &mut block)?;
        let finds = scan(&String::from_utf8_lossy(&block), redactor);
        found.extend(finds.into_iter().map(|find| (before + find.line, find.what)));
        before += memchr::memchr_iter(b'\n', &block).count();
    }
}

/// Sends the contents that are not stored whole, and returns how many.
async fn send(set: &Set<'_>, folder: &Path, local: &Manifest) -> Result<usize, StorageError> {
    let stored = set.contents().await?;
    // Files with one content are one object.
    let contents: BTreeMap<&str, (&String, &Item)> =
        local.files.iter().map(|(path, item)| (item.sha256.as_str(), (path, item))).collect();
    let missing: Vec<_> =
        contents.into_values().filter(|(_, item)| stored.get(&item.sha256) != Some(&item.bytes)).collect();
    let sending = |(path, item): (&String, &Item)| {
        let (path, item) = (folder.join(path), item.clone());
        async move { send_one(set, &path, &item).await }
    };
    let sent = stream::iter(missing).map(sending).buffer_unordered(AT_ONCE);
    sent.try_fold(0, |count, ()| async move { Ok(count + 1) }).await
}

async fn send_one(set: &Set<'_>, file: &Path, item: &Item) -> Result<(), StorageError> {
    let (store, to) = (&set.bucket.store, set.content(item));
    let of = StorageError::local(file);
    let mut open = files::open(file).map_err(&of)?;
    let mut digest = Sha256::new();
    let mut part = next_part(&mut open, &mut digest).map_err(&of)?;
    let result = if item.bytes <= PART as u64 {
        is_same(file, item, part.len() as u64, digest)?;
        store.put(&to, part.into()).await.map(|_| ())
    } else {
        let mut upload = store.put_multipart(&to).await.map_err(|why| set.bucket.failed(&to, &why))?;
        let mut length = 0;
        let mut sent = Ok(());
        while !part.is_empty() && sent.is_ok() {
            length += part.len() as u64;
            sent = upload.put_part(part.into()).await;
            part = next_part(&mut open, &mut digest).map_err(&of)?;
        }
        let same = is_same(file, item, length, digest);
        if sent.is_ok() && same.is_ok() {
            upload.complete().await.map(|_| ())
        } else {
            // Parts that stay behind cost the owner of the bucket, and nobody sees them.
            let _ = upload.abort().await;
            sent.is_ok().then_some(same).transpose()?;
            sent
        }
    };
    let Err(why) = result else { return Ok(()) };
    // A request whose reply was lost may have been carried out.
    match store.head(&to).await {
        Ok(meta) if meta.size == item.bytes => Ok(()),
        _ => Err(set.bucket.failed(&to, &why)),
    }
}

/// The next part of a file, empty at its end.
fn next_part(file: &mut File, digest: &mut Sha256) -> io::Result<Bytes> {
    let mut part = Vec::new();
    file.take(PART as u64).read_to_end(&mut part)?;
    digest.update(&part);
    Ok(part.into())
}

fn is_same(file: &Path, item: &Item, bytes: u64, digest: Sha256) -> Result<(), StorageError> {
    let is_same = bytes == item.bytes && hex::encode(digest.finalize()) == item.sha256;
    if is_same { Ok(()) } else { Err(StorageError::Changed(file.to_owned())) }
}
