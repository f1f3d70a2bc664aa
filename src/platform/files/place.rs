//! Folders as handles that cannot be left, and locations of paths in them.

use super::{Entry, FileError, Last, without_dots};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open folder.
#[derive(Debug)]
pub(super) struct Place {
    /// Path as given, made absolute.
    given: PathBuf,
    /// Path with symbolic links resolved.
    resolved: PathBuf,
    dir: Arc<Dir>,
    /// Whether it was named on the command line.
    is_named: bool,
}

impl Place {
    pub(super) fn open(folder: &Path, is_named: bool) -> Result<Self, FileError> {
        let of = |error| FileError::of(folder, error);
        let given = without_dots(&std::path::absolute(folder).map_err(of)?);
        let resolved = given.canonicalize().map_err(of)?;
        let dir = Arc::new(Dir::open_ambient_dir(&resolved, ambient_authority()).map_err(of)?);
        Ok(Self { given, resolved, dir, is_named })
    }

    pub(super) fn given(&self) -> &Path {
        &self.given
    }

    /// Location of an absolute path below the place by its spelling.
    pub(super) fn spelled(&self, whole: &Path) -> Option<At> {
        let inside = whole.strip_prefix(&self.given).or_else(|_| whole.strip_prefix(&self.resolved)).ok()?;
        Some(At { is_named: self.is_named, ..At::new(&self.dir, inside, whole) })
    }

    /// Location of a path below the place that has no symbolic links.
    pub(super) fn real(&self, whole: &Path) -> Option<At> {
        let inside = whole.strip_prefix(&self.resolved).ok()?;
        Some(At { is_named: self.is_named, ..At::new(&self.dir, inside, whole) })
    }
}

/// A path outside the places, named on the command line: a single file, or a path that did not exist at the start, with
/// everything created below it.
#[derive(Debug)]
pub(super) struct Named(At);

impl Named {
    /// # Errors
    /// If the parent folder cannot be opened.
    pub(super) fn new(whole: &Path) -> io::Result<Self> {
        At::anywhere(whole).map(Self)
    }

    /// Location of this path, or of a path below it, without symbolic links.
    pub(super) fn real(&self, whole: &Path) -> Option<At> {
        let below = whole.strip_prefix(&self.0.whole).ok()?;
        let itself = below.as_os_str().is_empty();
        let inside = if itself { self.0.inside.clone() } else { self.0.inside.join(below) };
        Some(At { dir: Arc::clone(&self.0.dir), inside, whole: whole.to_owned(), typed: itself, is_named: true })
    }

    /// Location of the parent folder, if this is its path without symbolic links.
    pub(super) fn folder(&self, whole: &Path) -> Option<At> {
        (self.0.whole.parent() == Some(whole)).then(|| self.0.folder())
    }
}

/// A location relative to a folder handle. All operations are relative to the handle, and no symbolic link can lead out
/// of it, even one created a moment before.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) dir: Arc<Dir>,
    /// Path relative to `dir`; `.` for the folder itself.
    pub(super) inside: PathBuf,
    /// The absolute path.
    pub(super) whole: PathBuf,
    /// Whether this exact file was named on the command line, so that a device or a pipe is allowed.
    pub(super) typed: bool,
    /// Whether the place was named on the command line.
    is_named: bool,
}

impl At {
    fn new(dir: &Arc<Dir>, inside: &Path, whole: &Path) -> Self {
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        Self { dir: Arc::clone(dir), inside: inside.to_owned(), whole: whole.to_owned(), typed: false, is_named: false }
    }

    /// Location of an absolute path without symbolic links, without confinement: relative to the nearest existing
    /// parent.
    pub(super) fn anywhere(whole: &Path) -> io::Result<Self> {
        let above = whole.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(whole);
        let dir = Arc::new(Dir::open_ambient_dir(above, ambient_authority())?);
        let inside = whole.strip_prefix(above).unwrap_or(Path::new("."));
        Ok(Self { typed: true, is_named: true, ..Self::new(&dir, inside, whole) })
    }

    /// Folder of a file.
    pub(super) fn folder(&self) -> Self {
        let whole = self.whole.parent().unwrap_or(&self.whole);
        Self::new(&self.dir, self.inside.parent().unwrap_or(Path::new(".")), whole)
    }

    /// An entry in this folder.
    pub(super) fn join(&self, name: &str) -> Self {
        let inside = if self.inside == Path::new(".") { PathBuf::from(name) } else { self.inside.join(name) };
        Self::new(&self.dir, &inside, &self.whole.join(name))
    }

    /// The location after following a symbolic link.
    pub(super) fn followed(mut self) -> io::Result<Self> {
        if self.dir.symlink_metadata(&self.inside).is_ok_and(|found| found.is_symlink()) {
            self.inside = self.dir.canonicalize(&self.inside)?;
        }
        Ok(self)
    }

    /// This location, unless it is at or below a `.git` of its place, by its spelling or through symbolic links.
    pub(super) fn outside_git(self, path: &Path, last: Last) -> Result<Self, FileError> {
        let has_git = |path: &Path| path.iter().any(is_git);
        // What does not exist yet is where its folder is.
        let above = self.inside.ancestors().skip(usize::from(last == Last::Itself));
        let real = above.filter(|above| *above != Path::new(".")).find_map(|above| self.dir.canonicalize(above).ok());
        let is_in_git = has_git(&self.inside) || real.is_some_and(|real| has_git(&real));
        if is_in_git { Err(FileError::Repository { path: path.to_owned() }) } else { Ok(self) }
    }

    /// Whether there is something other than a regular file.
    pub(super) fn is_special(&self) -> bool {
        self.dir.metadata(&self.inside).is_ok_and(|found| !found.is_file())
    }

    /// Opens a file. Devices and pipes are refused unless named on the command line: opening a pipe waits for its other
    /// end.
    pub(super) fn open(&self, options: &OpenOptions) -> Result<File, FileError> {
        if !self.typed && self.is_special() {
            return Err(FileError::NotAFile { path: self.whole.clone() });
        }
        let of = |error| FileError::of(&self.whole, error);
        let file = self.dir.open_with(&self.inside, options).map_err(of)?.into_std();
        if !self.is_named && links(&file.metadata().map_err(of)?) > 1 {
            return Err(FileError::Linked { path: self.whole.clone() });
        }
        Ok(file)
    }

    /// Whether there is a project file with a second hard link.
    pub(super) fn is_linked(&self) -> bool {
        let file = || self.dir.open(&self.inside).and_then(|file| file.into_std().metadata()).ok();
        !self.is_named && !self.is_special() && file().is_some_and(|found| links(&found) > 1)
    }

    /// Creates a folder and its parents. Existing entries are checked first: for a link that leads outside, the system
    /// call only reports that the path exists.
    pub(super) fn make_folder(&self) -> io::Result<()> {
        match self.dir.metadata(&self.inside) {
            Ok(found) if found.is_dir() => Ok(()),
            Err(error) if leads_out(&error) => Err(error),
            _ => self.dir.create_dir_all(&self.inside),
        }
    }

    /// Creates a folder that only its owner may enter, and its parents as usual; an existing folder is unchanged.
    pub(super) fn make_private_folder(&self) -> io::Result<()> {
        self.folder().make_folder()?;
        let mut builder = cap_std::fs::DirBuilder::new();
        #[cfg(unix)]
        cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match self.dir.create_dir_with(&self.inside, &builder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.make_folder(),
            other => other,
        }
    }

    /// Entries of the folder, with paths below `folder`.
    pub(super) fn entries(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        for entry in self.dir.read_dir(&self.inside)? {
            let entry = entry?;
            if is_git(&entry.file_name()) {
                continue;
            }
            found.push(Entry { path: folder.join(entry.file_name()), is_folder: entry.file_type()?.is_dir() });
        }
        found.sort();
        Ok(found)
    }

    /// Syncs renames in a folder to disk; not every system allows opening a folder.
    pub(super) fn sync(&self) {
        if let Ok(folder) = self.dir.open(&self.inside) {
            let _ = folder.into_std().sync_all();
        }
    }
}

/// Whether a name is that of a repository's folder, or of the file that leads to it; some systems ignore case, and Windows
/// has a short name for it.
fn is_git(name: &OsStr) -> bool {
    [".git", "git~1"].iter().any(|git| name.eq_ignore_ascii_case(git))
}

/// Number of hard links of a file; folders have several by nature.
#[cfg(unix)]
fn links(found: &std::fs::Metadata) -> u64 {
    if found.is_file() { std::os::unix::fs::MetadataExt::nlink(found) } else { 1 }
}

#[cfg(not(unix))]
fn links(_: &std::fs::Metadata) -> u64 {
    1
}

/// Whether an error means leaving the place: `cap-std` then reports "permission denied" without a code.
pub(super) fn leads_out(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// A path without symbolic links, `.` and `..`; a part that does not exist yet stays as written.
///
/// # Errors
/// If it is a dangling symbolic link, which opening would follow, or on an error of the operating system.
pub(super) fn real(path: &Path) -> io::Result<PathBuf> {
    let whole = without_dots(&std::path::absolute(path)?);
    let mut rest = Vec::new();
    let mut known = whole.as_path();
    loop {
        match known.canonicalize() {
            Ok(found) => return Ok(rest.iter().rev().fold(found, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match known.symlink_metadata() {
                    Ok(found) if found.is_symlink() => {
                        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "a symbolic link to nothing"));
                    }
                    // Another process created it meanwhile.
                    Ok(_) => continue,
                    Err(_) => {}
                }
                let (Some(name), Some(parent)) = (known.file_name(), known.parent()) else { return Err(error) };
                rest.push(name.to_owned());
                known = parent;
            }
            Err(error) => return Err(error),
        }
    }
}
