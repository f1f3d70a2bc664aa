//! A per-user key that tells files made by this program from those of a stranger.
//!
//! A checkout may contain files that imitate derived files of this program. A file named after a keyed hash of its
//! content was made with the key: 32 random bytes in `$XDG_STATE_HOME/ragcheck/own-key` (or below `~/.local/state`),
//! readable by its owner only, and created on first use.

use super::Files;
use super::place::{self, At};
use super::temporary::file_in;
use cap_std::fs::OpenOptions;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of the key.
const LENGTH: usize = 32;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OwnKey([u8; LENGTH]);

/// Keyed hash (HMAC-SHA-256, RFC 2104).
#[derive(Debug)]
pub(crate) struct KeyedHash(Hmac<Sha256>);

impl std::fmt::Debug for OwnKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OwnKey")
    }
}

impl OwnKey {
    /// Key from raw bytes.
    #[cfg(test)]
    pub(crate) fn of(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    /// A hash that cannot be computed without the key.
    pub(crate) fn hash(&self) -> KeyedHash {
        // Padded with zeros to a whole block, as in the standard.
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        block[..LENGTH].copy_from_slice(&self.0);
        KeyedHash(Hmac::new(&block))
    }
}

impl KeyedHash {
    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds a text with its length, so that different lists of texts never have equal bytes.
    pub(crate) fn update_text(&mut self, text: &str) {
        self.update(&(text.len() as u64).to_le_bytes());
        self.update(text.as_bytes());
    }

    /// The hash in hex.
    pub(crate) fn finish(self) -> String {
        hex::encode(self.0.finalize().into_bytes())
    }
}

impl Files {
    /// The key in the folder `ragcheck` of `state`. `None` if it cannot be stored, or if the project could have written
    /// it.
    pub(super) fn own_key(&self, state: &Path) -> Option<OwnKey> {
        let folder = place::real(&state.join("ragcheck")).ok()?;
        if self.places.iter().any(|place| place.real(&folder).is_some()) {
            return None;
        }
        let folder = At::anywhere(&folder).ok()?;
        folder.make_private_folder().ok()?;
        let file = folder.join("own-key");
        // Read again after creation: another process may have created one at the same moment.
        read(&file).or_else(|| make(&folder, &file).and_then(|()| read(&file)))
    }
}

/// The user's folder for program state.
pub(super) fn state_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("XDG_STATE_HOME").or_else(|| Some(set("HOME").filter(|home| home.is_dir())?.join(".local/state")))
}

/// Key in a file; `None` if others may read it or the length is wrong.
fn read(file: &At) -> Option<OwnKey> {
    let opened = file.open(OpenOptions::new().read(true)).ok()?;
    if !is_private(&opened.metadata().ok()?) {
        return None;
    }
    let mut bytes = Vec::new();
    opened.take(LENGTH as u64 + 1).read_to_end(&mut bytes).ok()?;
    bytes.try_into().ok().map(OwnKey)
}

fn make(folder: &At, file: &At) -> Option<()> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).ok()?;
    let mut beside = file_in(folder).ok()?;
    beside.write_all(&bytes).ok()?;
    beside.rename_to(file).ok()
}

#[cfg(unix)]
fn is_private(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(found).trailing_zeros() >= 6
}

#[cfg(not(unix))]
fn is_private(_: &std::fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyed_hash_is_that_of_the_standard() {
        // RFC 4231, test case 1: a shorter key is padded with zeros.
        let mut key = [0; LENGTH];
        key[..20].fill(0x0b);
        let mut hash = OwnKey::of(key).hash();
        hash.update(b"Hi ");
        hash.update(b"There");
        assert_eq!(hash.finish(), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    }

    #[test]
    fn a_key_is_made_once_and_one_that_others_may_read_or_that_is_cut_is_made_anew() {
        let state = tempfile::tempdir().expect("a folder");
        let files = Files::anywhere();
        let first = files.own_key(&state.path().join("deep/state")).expect("a key");
        assert_eq!(files.own_key(&state.path().join("deep/state")), Some(first.clone()));
        let file = state.path().join("deep/state/ragcheck/own-key");
        let bytes = std::fs::read(&file).expect("the key");
        assert_eq!(bytes, first.0);
        std::fs::write(&file, &bytes[1..]).expect("written");
        let second = files.own_key(&state.path().join("deep/state")).expect("a key");
        assert_ne!(second, first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, PermissionsExt};
            let mode = |path: &Path| std::fs::metadata(path).expect("there").mode() & 0o777;
            assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("set");
            assert_ne!(files.own_key(&state.path().join("deep/state")), Some(second));
            assert_eq!(mode(&file), 0o600);
        }
    }

    #[test]
    fn no_key_lies_below_the_project_or_where_nothing_can_be_written() {
        let root = tempfile::tempdir().expect("a folder");
        let files = Files::new(root.path(), &[]).expect("a project");
        assert_eq!(files.own_key(&root.path().join("state")), None);
        assert_eq!(std::fs::read_dir(root.path()).expect("the project").count(), 0);
        std::fs::write(root.path().join("file"), "").expect("written");
        assert_eq!(Files::anywhere().own_key(&root.path().join("file")), None);
    }
}
