//! Sets in a storage in memory: what is whole is pulled, what is not is refused, and nothing that is there is lost.

use super::bucket::Bucket;
use super::push::PART;
use super::{Kind, Outcome, StorageError, StoredSet, pull, push};
use crate::cassette::Redactor;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const RUN: (Kind, &str) = (Kind::Run, "a1b2");
const RECORDINGS: (Kind, &str) = (Kind::Recordings, "recordings");

fn bucket() -> Bucket {
    Bucket {
        store: Arc::new(InMemory::new()),
        url: "s3://bucket/team".to_owned(),
        server: "memory".to_owned(),
        prefix: Key::from("team"),
    }
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    folder
}

fn run() -> TempDir {
    folder(&[
        ("plan.json", "{}"),
        ("traces.jsonl", "{}\n"),
        ("index.html", "page"),
        ("copy.html", "page"),
        (".hidden", "not pushed"),
        ("earlier/grades.jsonl", "not pushed"),
    ])
}

async fn pushed(bucket: &Bucket, set: (Kind, &str), folder: &Path) -> Result<StoredSet, StorageError> {
    push(bucket, set, folder, false, &Redactor::default()).await
}

/// Every path below a folder, with its content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        if entry.is_dir() {
            found.extend(files(&entry).into_iter().map(|(path, text)| (format!("{name}/{path}"), text)));
        } else {
            found.push((name, fs::read(entry).expect("a file")));
        }
    }
    found.sort();
    found
}

async fn objects(bucket: &Bucket) -> Vec<Key> {
    use futures_util::TryStreamExt;
    let found: Vec<_> = bucket.store.list(None).try_collect().await.expect("listed");
    found.into_iter().map(|meta| meta.location).collect()
}

#[tokio::test]
async fn a_run_is_pulled_as_it_was_pushed_and_a_second_push_and_pull_change_nothing() {
    let (bucket, run, here) = (bucket(), run(), tempfile::tempdir().expect("a folder"));
    let stored = pushed(&bucket, RUN, run.path()).await.expect("pushed");
    assert_eq!(
        (stored.files, stored.transferred, stored.outcome),
        (4, 3, Outcome::Pushed),
        "equal files are sent once"
    );
    let again = pushed(&bucket, RUN, run.path()).await.expect("pushed");
    assert_eq!((again.transferred, again.outcome), (0, Outcome::Unchanged));
    let (sets, notes) = bucket.list().await.expect("listed");
    assert_eq!((sets.len(), &*sets[0].name, notes.len()), (1, "a1b2", 0));
    let pulled = pull(&bucket, RUN, here.path(), false).await.expect("pulled");
    assert_eq!((pulled.transferred, pulled.outcome), (4, Outcome::Pulled));
    fs::remove_file(run.path().join(".hidden")).expect("removed");
    fs::remove_dir_all(run.path().join("earlier")).expect("removed");
    assert_eq!(files(&here.path().join("a1b2")), files(run.path()));
    assert_eq!(files(here.path()).len(), 4, "nothing is left beside it");
    assert_eq!(pull(&bucket, RUN, here.path(), false).await.expect("pulled").outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn a_set_without_its_manifest_or_with_half_of_one_is_not_there_until_it_is_pushed_again() {
    let (bucket, run, here) = (bucket(), run(), tempfile::tempdir().expect("a folder"));
    pushed(&bucket, RUN, run.path()).await.expect("pushed");
    let manifest = Key::from("team/runs/a1b2/manifest.json");
    let whole = bucket.store.get(&manifest).await.expect("there").bytes().await.expect("bytes");
    for end in [None, Some(0), Some(whole.len() / 2), Some(whole.len() - 1)] {
        match end {
            None => bucket.store.delete(&manifest).await.expect("deleted"),
            Some(end) => drop(bucket.store.put(&manifest, whole.slice(..end).into()).await.expect("cut")),
        }
        assert!(bucket.list().await.expect("listed").0.is_empty(), "{end:?}");
        assert!(matches!(pull(&bucket, RUN, here.path(), false).await, Err(StorageError::Missing(_))), "{end:?}");
        let again = pushed(&bucket, RUN, run.path()).await.expect("pushed");
        assert_eq!((again.transferred, again.outcome), (0, Outcome::Pushed), "{end:?}");
        assert_eq!(bucket.list().await.expect("listed").0.len(), 1, "{end:?}");
    }
}

#[tokio::test]
async fn a_content_that_is_cut_off_changed_or_gone_is_refused_and_leaves_nothing() {
    let (bucket, run, here) = (bucket(), run(), tempfile::tempdir().expect("a folder"));
    pushed(&bucket, RUN, run.path()).await.expect("pushed");
    for object in objects(&bucket).await.into_iter().filter(|object| object.as_ref().contains("/files/")) {
        let whole = bucket.store.get(&object).await.expect("there").bytes().await.expect("bytes");
        let mut other = whole.to_vec();
        other[0] ^= 1;
        for (bytes, words) in
            [(Some(whole.slice(1..)), "bytes instead of"), (Some(other.into()), "SHA-256"), (None, "not there")]
        {
            match bytes {
                Some(bytes) => drop(bucket.store.put(&object, bytes.into()).await.expect("put")),
                None => bucket.store.delete(&object).await.expect("deleted"),
            }
            let refused = pull(&bucket, RUN, here.path(), false).await.expect_err("it is damaged").to_string();
            assert!(refused.contains(words) && refused.contains("s3://bucket/team/runs/a1b2/files/"), "{refused}");
            assert!(files(here.path()).is_empty(), "{words}: {:?}", files(here.path()));
        }
        let healed = pushed(&bucket, RUN, run.path()).await.expect("pushed");
        assert_eq!((healed.transferred, healed.outcome), (1, Outcome::Pushed), "what is gone is sent again");
    }
    pull(&bucket, RUN, here.path(), false).await.expect("pulled");
}

#[tokio::test]
async fn a_manifest_that_leads_out_writes_nothing() {
    let (bucket, here) = (bucket(), tempfile::tempdir().expect("a folder"));
    for path in ["../x", "/tmp/x", "a/../../x", ".git/config"] {
        let text =
            serde_json::json!({"format": 1, "files": {path: {"bytes": 1, "sha256": "a".repeat(64)}}}).to_string();
        bucket.store.put(&Key::from("team/recordings/manifest.json"), text.into()).await.expect("put");
        let below = here.path().join("below");
        let refused = pull(&bucket, RECORDINGS, &below, false).await.expect_err("refused");
        assert!(matches!(refused, StorageError::Manifest { .. }), "{refused}");
        assert!(files(here.path()).is_empty(), "{path}");
        let (sets, notes) = bucket.list().await.expect("listed");
        assert!(sets.is_empty() && notes[0].contains("recordings/manifest.json"), "{notes:?}");
    }
    for name in ["..", "a/b", "", "/etc"] {
        let refused = pull(&bucket, (Kind::Run, name), here.path(), false).await;
        assert!(matches!(refused, Err(StorageError::Missing(_))), "{name}");
    }
}

#[tokio::test]
async fn recordings_of_two_people_are_joined_and_differing_ones_are_replaced_only_on_request() {
    let bucket = bucket();
    let mine = folder(&[("refunds/a/tool-rag.base.1.yaml", "one"), ("refunds/blobs/1.txt", "text")]);
    let yours = folder(&[("refunds/b/tool-rag.base.1.yaml", "two"), ("refunds/blobs/1.txt", "text")]);
    pushed(&bucket, RECORDINGS, mine.path()).await.expect("pushed");
    let joined = pushed(&bucket, RECORDINGS, yours.path()).await.expect("pushed");
    assert_eq!((joined.files, joined.transferred), (3, 1));
    let pulled = pull(&bucket, RECORDINGS, mine.path(), false).await.expect("pulled");
    assert_eq!(pulled.transferred, 1, "only what is missing is fetched");
    assert_eq!(files(mine.path()).len(), 3);
    fs::write(mine.path().join("refunds/a/tool-rag.base.1.yaml"), "again").expect("written");
    for refused in [pushed(&bucket, RECORDINGS, mine.path()).await, pull(&bucket, RECORDINGS, mine.path(), false).await]
    {
        let refused = refused.expect_err("they differ").to_string();
        assert!(refused.contains("refunds/a/tool-rag.base.1.yaml") && refused.contains("--replace"), "{refused}");
    }
    push(&bucket, RECORDINGS, mine.path(), true, &Redactor::default()).await.expect("replaced");
    pull(&bucket, RECORDINGS, yours.path(), true).await.expect("replaced");
    assert_eq!(files(yours.path()), files(mine.path()));
}

#[tokio::test]
async fn a_run_that_was_made_again_stays_as_it_was_and_another_of_its_name_is_refused() {
    let (bucket, run, here) = (bucket(), run(), tempfile::tempdir().expect("a folder"));
    pushed(&bucket, RUN, run.path()).await.expect("pushed");
    pull(&bucket, RUN, here.path(), false).await.expect("pulled");
    fs::write(run.path().join("index.html"), "another page").expect("written");
    let kept = pushed(&bucket, RUN, run.path()).await.expect("kept");
    assert_eq!((kept.outcome, &*kept.differing), (Outcome::Kept, &["index.html".to_owned()][..]));
    push(&bucket, RUN, run.path(), true, &Redactor::default()).await.expect("replaced");
    assert_eq!(pull(&bucket, RUN, here.path(), false).await.expect("kept").outcome, Outcome::Kept);
    assert_eq!(fs::read(here.path().join("a1b2/index.html")).expect("a file"), b"page");
    fs::write(run.path().join("traces.jsonl"), "{\"a\": 1}\n").expect("written");
    let refused = push(&bucket, RUN, run.path(), true, &Redactor::default()).await.expect_err("another run");
    assert!(matches!(&refused, StorageError::Differs { files, .. } if *files == ["traces.jsonl"]), "{refused}");
}

#[tokio::test]
async fn a_secret_is_not_pushed_and_neither_is_what_is_no_run() {
    let (bucket, run) = (bucket(), run());
    let key = "sk-abcdefghijklmnop1234";
    fs::write(run.path().join("index.html"), format!("page\n{key}\n")).expect("written");
    let refused = pushed(&bucket, RUN, run.path()).await.expect_err("a secret").to_string();
    assert!(refused.contains("index.html:2") && !refused.contains(key), "{refused}");
    let other = folder(&[("notes.txt", "no run")]);
    let refused = pushed(&bucket, RUN, other.path()).await.expect_err("no run");
    assert!(matches!(refused, StorageError::Manifest { .. }), "{refused}");
    assert!(objects(&bucket).await.is_empty());
}

#[tokio::test]
async fn a_file_of_several_parts_arrives_whole() {
    let (bucket, run, here) = (bucket(), run(), tempfile::tempdir().expect("a folder"));
    for (name, length) in [("one", PART), ("two", PART + 1), ("three", 3 * PART)] {
        let bytes: Vec<u8> = (0..length).map(|place| b'a' + (place % 23) as u8).collect();
        fs::write(run.path().join(name), bytes).expect("written");
    }
    pushed(&bucket, RUN, run.path()).await.expect("pushed");
    pull(&bucket, RUN, here.path(), false).await.expect("pulled");
    for name in ["one", "two", "three"] {
        let read = |folder: &Path| fs::read(folder.join(name)).expect(name);
        assert!(read(run.path()) == read(&here.path().join("a1b2")), "{name}");
    }
}

#[test]
fn an_address_needs_keys_and_tls_unless_it_is_this_machine() {
    let open = |url: &str, more: &[(&str, &str)]| {
        let keys = [("AWS_ACCESS_KEY_ID", "an-id"), ("AWS_SECRET_ACCESS_KEY", "a-secret-of-a-test-1")];
        let all: Vec<(String, String)> =
            keys.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Bucket::open(url, |name| all.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.clone()))
    };
    for address in ["http://127.0.0.1:4568", "http://localhost:9000", "https://storage.example"] {
        assert!(open("s3://bucket/a/b/", &[("AWS_ENDPOINT_URL", address)]).is_ok(), "{address}");
    }
    for address in ["http://storage.example", "ftp://127.0.0.1", "storage.example"] {
        let refused = open("s3://bucket", &[("AWS_ENDPOINT_URL", address)]).expect_err(address).to_string();
        assert!(refused.contains("https://"), "{refused}");
    }
    let allowed = [("AWS_ENDPOINT_URL", "http://storage.example"), ("AWS_ALLOW_HTTP", "true")];
    assert!(open("s3://bucket", &allowed).is_ok());
    for url in ["bucket", "s3://", "s3://bucket//x", "s3://bucket/../x", "https://bucket/x"] {
        assert!(open(url, &[]).expect_err(url).to_string().contains("s3://BUCKET"), "{url}");
    }
    let missing = open("s3://bucket", &[("AWS_SECRET_ACCESS_KEY", " ")]).expect_err("no key").to_string();
    assert!(missing.contains("AWS_SECRET_ACCESS_KEY"), "{missing}");
}
