//! Folders that files are opened in, as handles that cannot be left, and where a path leads from one of them.

use super::{Entry, FileError, without_dots};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder, open.
#[derive(Debug)]
pub(super) struct Place {
    /// As it was given, made absolute.
    given: PathBuf,
    /// With symbolic links resolved.
    resolved: PathBuf,
    dir: Arc<Dir>,
    /// Whether whoever started the program named it.
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

    /// Where an absolute path leads that is below the place by its spelling.
    pub(super) fn spelled(&self, whole: &Path) -> Option<At> {
        let inside = whole.strip_prefix(&self.given).or_else(|_| whole.strip_prefix(&self.resolved)).ok()?;
        Some(At { is_named: self.is_named, ..At::new(&self.dir, inside, whole) })
    }

    /// Where a path without symbolic links leads that is below the place.
    pub(super) fn real(&self, whole: &Path) -> Option<At> {
        let inside = whole.strip_prefix(&self.resolved).ok()?;
        Some(At { is_named: self.is_named, ..At::new(&self.dir, inside, whole) })
    }
}

/// What the command line names outside of the places: a file alone, or something that was not there at the start, with
/// all that comes to be below it.
#[derive(Debug)]
pub(super) struct Named(At);

impl Named {
    /// # Errors
    /// When the folder that it is in, or would be in, cannot be opened.
    pub(super) fn new(whole: &Path) -> io::Result<Self> {
        At::anywhere(whole).map(Self)
    }

    /// Where a path without symbolic links leads that is this or below it.
    pub(super) fn real(&self, whole: &Path) -> Option<At> {
        let below = whole.strip_prefix(&self.0.whole).ok()?;
        let itself = below.as_os_str().is_empty();
        let inside = if itself { self.0.inside.clone() } else { self.0.inside.join(below) };
        Some(At { dir: Arc::clone(&self.0.dir), inside, whole: whole.to_owned(), typed: itself, is_named: true })
    }

    /// The folder that it is in, where that is this path without symbolic links.
    pub(super) fn folder(&self, whole: &Path) -> Option<At> {
        (self.0.whole.parent() == Some(whole)).then(|| self.0.folder())
    }
}

/// Where a path leads: everything is opened, made, renamed and removed relative to the folder's handle, which no symbolic
/// link on the way can leave, also one that is put there a moment before.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) dir: Arc<Dir>,
    /// From `dir`; `.` for the folder itself.
    pub(super) inside: PathBuf,
    /// The absolute path.
    pub(super) whole: PathBuf,
    /// Whether whoever started the program named this very file, so that a device or a pipe is meant.
    pub(super) typed: bool,
    /// Whether whoever started the program named the place.
    is_named: bool,
}

impl At {
    fn new(dir: &Arc<Dir>, inside: &Path, whole: &Path) -> Self {
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        Self { dir: Arc::clone(dir), inside: inside.to_owned(), whole: whole.to_owned(), typed: false, is_named: false }
    }

    /// Where an absolute path without symbolic links leads, for one who may open every file: from the nearest folder above
    /// it that is there.
    pub(super) fn anywhere(whole: &Path) -> io::Result<Self> {
        let above = whole.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(whole);
        let dir = Arc::new(Dir::open_ambient_dir(above, ambient_authority())?);
        let inside = whole.strip_prefix(above).unwrap_or(Path::new("."));
        Ok(Self { typed: true, is_named: true, ..Self::new(&dir, inside, whole) })
    }

    /// The folder of a file.
    pub(super) fn folder(&self) -> Self {
        let whole = self.whole.parent().unwrap_or(&self.whole);
        Self::new(&self.dir, self.inside.parent().unwrap_or(Path::new(".")), whole)
    }

    /// Something in this folder.
    pub(super) fn join(&self, name: &str) -> Self {
        let inside = if self.inside == Path::new(".") { PathBuf::from(name) } else { self.inside.join(name) };
        Self::new(&self.dir, &inside, &self.whole.join(name))
    }

    /// The same, where a symbolic link inside stands for what it points to.
    pub(super) fn followed(mut self) -> io::Result<Self> {
        if self.dir.symlink_metadata(&self.inside).is_ok_and(|found| found.is_symlink()) {
            self.inside = self.dir.canonicalize(&self.inside)?;
        }
        Ok(self)
    }

    /// Whether something other than a regular file is there.
    pub(super) fn is_special(&self) -> bool {
        self.dir.metadata(&self.inside).is_ok_and(|found| !found.is_file())
    }

    /// Opens a file, but no device and no pipe, unless it was named itself: opening a pipe waits for its other end.
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

    /// Whether a file of the project is there that has another name.
    pub(super) fn is_linked(&self) -> bool {
        let file = || self.dir.open(&self.inside).and_then(|file| file.into_std().metadata()).ok();
        !self.is_named && !self.is_special() && file().is_some_and(|found| links(&found) > 1)
    }

    /// Makes a folder and those above it. What is there is looked at first: where a link leads out, the system call that
    /// makes a folder says no more than that something is there.
    pub(super) fn make_folder(&self) -> io::Result<()> {
        match self.dir.metadata(&self.inside) {
            Ok(found) if found.is_dir() => Ok(()),
            Err(error) if leads_out(&error) => Err(error),
            _ => self.dir.create_dir_all(&self.inside),
        }
    }

    /// Makes a folder that only its owner may enter, and those above it as usual; one that is there stays as it is.
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

    /// What stands in a folder, which is shown as `folder`.
    pub(super) fn entries(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        for entry in self.dir.read_dir(&self.inside)? {
            let entry = entry?;
            found.push(Entry { path: folder.join(entry.file_name()), is_folder: entry.file_type()?.is_dir() });
        }
        found.sort();
        Ok(found)
    }

    /// Makes what was renamed in a folder last; not every system lets one open a folder.
    pub(super) fn sync(&self) {
        if let Ok(folder) = self.dir.open(&self.inside) {
            let _ = folder.into_std().sync_all();
        }
    }
}

/// How many names a file has; folders have several by themselves.
#[cfg(unix)]
fn links(found: &std::fs::Metadata) -> u64 {
    if found.is_file() { std::os::unix::fs::MetadataExt::nlink(found) } else { 1 }
}

#[cfg(not(unix))]
fn links(_: &std::fs::Metadata) -> u64 {
    1
}

/// What an error of a directory handle means: `cap-std` reports a way out as "permission denied" without a number.
pub(super) fn leads_out(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// A path without symbolic links, `.` and `..`; the part that does not exist yet as it is written.
///
/// # Errors
/// A symbolic link to nothing, which whoever opens it would follow, or what the operating system says.
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
                    // Another process made it since.
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
