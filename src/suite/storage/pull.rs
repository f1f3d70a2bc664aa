//! Fetches a set into a temporary folder, verifies every file, and moves it into place.

use super::bucket::{AT_ONCE, Bucket, Set, printed};
use super::manifest::{Decision, Item, Manifest, decide};
use super::push::gather;
use super::{Kind, Outcome, StorageError, StoredSet};
use crate::platform::files;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Fetches a run into a folder of its name below `folder`, or the recordings into `folder` itself. A run appears there as a
/// whole; of recordings each file does. A file that is there with another content stays, unless `replace` says so.
///
/// # Errors
/// If the set is not there or damaged, another one is in its place, or the storage does not answer.
pub(crate) async fn pull(
    bucket: &Bucket,
    (kind, name): (Kind, &str),
    folder: &Path,
    replace: bool,
) -> Result<StoredSet, StorageError> {
    let set = bucket.set(kind, name)?;
    let stored = set.stored().await?.and_then(|stored| stored.manifest);
    let stored = stored.ok_or_else(|| StorageError::Missing(bucket.shown(&set.manifest())))?;
    let place = if kind == Kind::Run { folder.join(name) } else { folder.to_owned() };
    let there = if place.exists() { Some(gather(&place, kind)?) } else { None };
    match decide(kind, there.as_ref(), &stored, replace) {
        Decision::Unchanged => Ok(printed(kind, name, &stored, Outcome::Unchanged, 0)),
        Decision::Keep(differing) => Ok(StoredSet { differing, ..printed(kind, name, &stored, Outcome::Kept, 0) }),
        Decision::Refuse(files) => {
            let remedy = match kind {
                Kind::Run => "pull --to another folder, or move it away",
                Kind::Recordings => "push yours, or take the stored ones in their place with --replace",
            };
            Err(StorageError::Differs { at: place.display().to_string(), files, remedy })
        }
        Decision::Write(_) => {
            let mut missing = stored.clone();
            missing.files.retain(|path, item| there.as_ref().and_then(|there| there.files.get(path)) != Some(item));
            fetch(&set, &missing, &place).await?;
            Ok(printed(kind, name, &stored, Outcome::Pulled, missing.files.len()))
        }
    }
}

/// Fetches the files and moves them to `place`.
async fn fetch(set: &Set<'_>, missing: &Manifest, place: &Path) -> Result<(), StorageError> {
    let is_run = set.kind == Kind::Run;
    let near = if is_run { place.parent().unwrap_or(place) } else { place };
    let of = StorageError::local(near);
    files::create_dir_all(near).map_err(&of)?;
    let temporary = files::temporary_folder(near).map_err(&of)?;
    // A run folder is flat; of recordings, the paths are made when the files are moved.
    let files: Vec<(&String, &Item, PathBuf)> = missing
        .files
        .iter()
        .enumerate()
        .map(|(number, (path, item))| {
            (path, item, temporary.path().join(if is_run { path.clone() } else { number.to_string() }))
        })
        .collect();
    let fetching = |(path, item, to): &(&String, &Item, PathBuf)| {
        let (path, item, to) = ((*path).clone(), (*item).clone(), to.clone());
        async move { fetch_one(set, &path, &item, &to).await }
    };
    stream::iter(&files).map(fetching).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    if is_run {
        files::persist_folder(temporary, place).map_err(StorageError::local(place))?;
        files::sync_folder(near);
        return Ok(());
    }
    for (path, _, from) in &files {
        let to = place.join(path);
        let moved = files::create_dir_all(to.parent().unwrap_or(place)).and_then(|()| files::move_file(from, &to));
        moved.map_err(StorageError::local(&to))?;
    }
    Ok(())
}

async fn fetch_one(set: &Set<'_>, path: &str, item: &Item, to: &Path) -> Result<(), StorageError> {
    let from = set.content(item);
    let at = || set.bucket.shown(&from);
    let damaged = |why: String| StorageError::Damaged { at: at(), path: path.to_owned(), why };
    let found = match set.bucket.store.get(&from).await {
        Err(object_store::Error::NotFound { .. }) => return Err(damaged("it is not there".to_owned())),
        found => found.map_err(|why| set.bucket.failed(&from, &why))?,
    };
    if found.meta.size != item.bytes {
        return Err(damaged(format!("it has {} bytes instead of {}", found.meta.size, item.bytes)));
    }
    let of = StorageError::local(to);
    let mut file = files::create(to).map_err(&of)?;
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    let mut stream = found.into_stream();
    while let Some(chunk) = stream.try_next().await.map_err(|why| set.bucket.failed(&from, &why))? {
        bytes += chunk.len() as u64;
        if bytes > item.bytes {
            break;
        }
        digest.update(&chunk);
        file.write_all(&chunk).map_err(&of)?;
    }
    if bytes != item.bytes || hex::encode(digest.finalize()) != item.sha256 {
        return Err(damaged("its bytes do not have that SHA-256".to_owned()));
    }
    file.sync_all()
        .or_else(|error| if error.kind() == io::ErrorKind::Unsupported { Ok(()) } else { Err(error) })
        .map_err(&of)
}
