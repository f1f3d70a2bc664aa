//! Recordings beside blobs: what parses is written, and both readers, ours and the general one, find the same in it, and
//! the same requests with the written blobs alone.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ragcheck::internals::cassette::{Cassette, Pool};
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Blobs that a recording may refer to: a prompt, with a line end of Windows, a list of tools, one that was edited, and
/// one that is no JSON.
static BLOBS: LazyLock<TempDir> = LazyLock::new(|| {
    let blobs = [
        ("1ee35e85a4662dfc.txt", "You are an agent.\r\nAnswer.\n"),
        ("47bef59b988a194e.json", "[1,{\"name\":\"f\"}]"),
        ("0000000000000000.txt", "edited"),
        ("14bf50d80768f3bc.json", "x=y"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in blobs {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
});
static WRITTEN: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fn parsed(text: &str, blobs: &Path) -> Result<Cassette, String> {
    Cassette::parse(text.into(), Path::new("lane.yaml"), blobs).map_err(|error| error.to_string())
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    let Ok(cassette) = parsed(text, BLOBS.path()) else { return Corpus::Keep };
    // Loading passes over the requests; a file in which they cannot be read is never written.
    if cassette.requests().len() != cassette.exchanges.len() {
        return Corpus::Keep;
    }
    let Ok((written, blobs)) = cassette.to_text() else { return Corpus::Keep };
    // YAML allows no key of more than 1,024 characters, so the general reader refuses what ours reads.
    if written.lines().map(str::trim_start).any(|line| line.starts_with('"') && line.len() > 1_000) {
        return Corpus::Keep;
    }
    for (name, text) in &blobs {
        std::fs::write(WRITTEN.path().join(name), text).expect("written");
    }
    let by_hand = written.replacen("cassette: 2\n", "cassette: 2 # by hand\n", 1);
    assert_ne!(by_hand, written);
    // A blob that was edited is written by no one, and so becomes one that is missing.
    let requests = |cassette: &Cassette| {
        let requests = cassette.requests().into_iter();
        requests.map(|one| (one.method, one.path, one.body, one.problem.is_some())).collect::<Vec<_>>()
    };
    for text in [&written, &by_hand] {
        let again = parsed(text, WRITTEN.path()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again.to_text().expect("readable"), (written.clone(), blobs.clone()));
        assert!(cassette.edited || again.edited == (*text == by_hand));
        assert_eq!(again.header, cassette.header);
        assert_eq!((&again.exchanges, &again.stages), (&cassette.exchanges, &cassette.stages));
        assert_eq!(requests(&again), requests(&cassette), "{text}");
    }
    for (name, _) in &blobs {
        std::fs::remove_file(WRITTEN.path().join(name)).expect("removed");
    }
    let pool = Pool::new(&cassette);
    for exchange in &cassette.exchanges {
        assert!(pool.take_next(&exchange.service).is_some());
    }
    assert!(pool.unused().is_empty());
    Corpus::Keep
});
