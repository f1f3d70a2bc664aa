//! Writing: a file is whole or not there, and what was begun and left lies in one folder.

use super::place::Place;
use super::{FileError, Files};
use cap_std::fs::OpenOptions;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where files are written before they are renamed, below the project.
const TEMPORARY: &str = ".ragcheck/tmp";

/// Makes names of temporary files differ within the process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file under way: it takes its name when it is complete, and leaves nothing when it is dropped before.
#[derive(Debug)]
pub struct NewFile<'f> {
    place: &'f Place,
    path: PathBuf,
    inside: PathBuf,
    temporary: PathBuf,
    out: Option<BufWriter<File>>,
}

impl Files {
    /// Begins a file; [`NewFile::finish`] puts it in its place.
    ///
    /// # Errors
    /// A path that leads outside, or a folder that cannot be written.
    pub fn create(&self, path: &Path) -> Result<NewFile<'_>, FileError> {
        let (place, inside) = self.locate(path)?;
        let of = |error| place.error(path, error);
        if let Some(folder) = inside.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            place.make_folder(path, folder)?;
        }
        place.make_folder(path, Path::new(TEMPORARY))?;
        let ordinal = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = Path::new(TEMPORARY).join(format!("{}-{ordinal}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = place.dir.open_with(&temporary, &options).map_err(of)?.into_std();
        let out = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(NewFile { place, path: path.to_owned(), inside, temporary, out })
    }

    /// Writes a file whole, or leaves what is there.
    ///
    /// # Errors
    /// As [`Files::create`] and [`NewFile::finish`].
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let mut new = self.create(path)?;
        new.write_all(bytes).map_err(|error| FileError::of(path, error))?;
        new.finish()
    }

    /// Opens a file to add to its end; it is made when it is not there.
    ///
    /// # Errors
    /// A path that leads outside, or a file that cannot be written.
    pub fn append(&self, path: &Path) -> Result<File, FileError> {
        let (place, inside) = self.locate(path)?;
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        let file = place.dir.open_with(&inside, &options).map_err(|error| place.error(path, error))?;
        Ok(file.into_std())
    }

    /// Makes a folder, and those above it.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    pub fn create_folder(&self, path: &Path) -> Result<(), FileError> {
        let (place, inside) = self.locate(path)?;
        place.make_folder(path, &inside)
    }

    /// Gives a file or folder another name, within one place.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        let ((source, inside), (target, place_in)) = (self.locate(from)?, self.locate(to)?);
        source.dir.rename(inside, &target.dir, place_in).map_err(|error| target.error(to, error))
    }

    /// Removes a file; one that is not there is no error.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    pub fn remove_file(&self, path: &Path) -> Result<(), FileError> {
        let (place, inside) = self.locate(path)?;
        missing_is_fine(place.dir.remove_file(inside)).map_err(|error| place.error(path, error))
    }

    /// Removes a folder with all that it holds; one that is not there is no error. Symbolic links are removed, never
    /// followed.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    pub fn remove_folder(&self, path: &Path) -> Result<(), FileError> {
        let (place, inside) = self.locate(path)?;
        missing_is_fine(place.dir.remove_dir_all(inside)).map_err(|error| place.error(path, error))
    }

    /// Makes `link` point to `target`, which is relative to the link's folder.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    #[cfg(unix)]
    pub fn link(&self, target: &Path, link: &Path) -> Result<(), FileError> {
        let (place, inside) = self.locate(link)?;
        place.dir.symlink(target, inside).map_err(|error| place.error(link, error))
    }
}

impl NewFile<'_> {
    /// Flushes, gives the file its name, and makes both last.
    ///
    /// # Errors
    /// A full disk, or what else the operating system says; nothing is then left, and what was there stays.
    pub fn finish(mut self) -> Result<(), FileError> {
        let of = |error| self.place.error(&self.path, error);
        let Some(out) = self.out.take() else { return Ok(()) };
        let file = out.into_inner().map_err(|error| of(error.into_error()))?;
        file.sync_all().map_err(of)?;
        self.place.dir.rename(&self.temporary, &self.place.dir, &self.inside).map_err(of)?;
        let folder = self.inside.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Ok(folder) = self.place.dir.open_dir(folder) {
            let _ = folder.into_std_file().sync_all();
        }
        Ok(())
    }
}

impl Write for NewFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(0), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        // After `finish` it has its own name, and there is nothing to remove.
        let _ = self.place.dir.remove_file(&self.temporary);
    }
}

fn missing_is_fine(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
