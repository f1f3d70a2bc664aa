//! Writing: all operations are relative to a place's handle, so a folder that becomes a symbolic link between check and
//! write changes nothing outside.

use super::temporary::usual;
use super::{FileError, Files, Last};
use cap_std::fs::OpenOptions;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::place::At;

impl Files {
    /// Creates an empty file, or truncates an existing one.
    ///
    /// # Errors
    /// If the path leads outside, is not a regular file or cannot be written.
    pub(crate) fn create(&self, path: &Path) -> Result<File, FileError> {
        let file = self.opened(path, OpenOptions::new().write(true).create(true))?;
        // Not truncated while opening: a hard-linked file is refused unchanged.
        file.set_len(0).map_err(|error| self.error(path, error))?;
        Ok(file)
    }

    /// Opens a file for appending; creates it if missing.
    pub(crate) fn append(&self, path: &Path) -> Result<File, FileError> {
        self.opened(path, OpenOptions::new().append(true).create(true))
    }

    /// Like [`Files::append`], but only the owner may read the file from its creation on.
    pub(crate) fn append_private(&self, path: &Path) -> Result<File, FileError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        self.opened(path, &options)
    }

    /// Opens a lock file, and creates its folder if missing.
    pub(super) fn lock_file(&self, path: &Path) -> Result<File, FileError> {
        self.create_folder(folder_of(path))?;
        self.opened(path, OpenOptions::new().read(true).write(true).create(true))
    }

    /// Creates a folder and its parents.
    ///
    /// # Errors
    /// If the path leads outside, or on an error of the operating system.
    pub(crate) fn create_folder(&self, path: &Path) -> Result<(), FileError> {
        self.at(path, Last::Followed)?.make_folder().map_err(|error| self.error(path, error))
    }

    /// Creates a folder that only its owner may enter, and its parents as usual; an existing folder is unchanged.
    pub(crate) fn create_private_folder(&self, path: &Path) -> Result<(), FileError> {
        let at = self.at(path, Last::Followed)?;
        at.make_private_folder().map_err(|error| self.error(path, error))
    }

    /// Renames a file, a folder or a symbolic link.
    ///
    /// # Errors
    /// If a path leads outside, or on an error of the operating system.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        let (source, target) = (self.at(from, Last::Itself)?, self.at(to, Last::Itself)?);
        rename(&source, &target).map_err(|error| self.error(to, error))
    }

    /// Removes a file, or a symbolic link without following it.
    ///
    /// # Errors
    /// If the path leads outside, or on an error of the operating system.
    pub(crate) fn remove_file(&self, path: &Path) -> Result<(), FileError> {
        let at = self.at(path, Last::Itself)?;
        at.dir.remove_file(&at.inside).map_err(|error| self.error(path, error))
    }

    /// Removes a folder with its contents; symbolic links are removed, never followed.
    ///
    /// # Errors
    /// If the path leads outside, or on an error of the operating system.
    pub(crate) fn remove_folder(&self, path: &Path) -> Result<(), FileError> {
        let at = self.at(path, Last::Itself)?;
        at.dir.remove_dir_all(&at.inside).map_err(|error| self.error(path, error))
    }

    /// Creates the symbolic link `link` to `target`, which is relative to the link's folder.
    ///
    /// # Errors
    /// If the path leads outside, or on an error of the operating system.
    #[cfg(unix)]
    pub(crate) fn link(&self, target: &Path, link: &Path) -> Result<(), FileError> {
        let at = self.at(link, Last::Itself)?;
        at.dir.symlink(target, &at.inside).map_err(|error| self.error(link, error))
    }

    /// Syncs renames in a folder to disk; not every system can.
    pub(crate) fn sync_folder(&self, folder: &Path) {
        if let Ok(at) = self.at(folder, Last::Followed) {
            at.sync();
        }
    }

    /// Renames a file of a temporary folder to `path`; replaces an existing file atomically and keeps its permissions.
    ///
    /// # Errors
    /// If the path leads outside or cannot be written; an existing file is then unchanged.
    pub(crate) fn move_file(&self, file: &Path, path: &Path) -> Result<(), FileError> {
        let (from, to) = (self.at(file, Last::Itself)?, self.at(path, Last::Itself)?);
        move_to(&from, &to).map_err(|error| self.error(path, error))
    }

    /// Replaces a file atomically. A special file named on the command line (a pipe, `/dev/stdout`) is written to; a
    /// pipe in the project is replaced, because opening it could block forever.
    ///
    /// # Errors
    /// If the path leads outside or cannot be written; an existing file is then unchanged.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        self.write_by(path, |out| out.write_all(bytes))
    }

    /// Like [`Files::write`], for a text that is written in pieces.
    ///
    /// # Errors
    /// As [`Files::write`], and errors of `write`.
    pub(crate) fn write_by(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let of = |error| self.error(path, error);
        let at = self.at(path, Last::Followed)?.followed().map_err(of)?;
        if at.typed && at.is_special() {
            return write(&mut at.open(OpenOptions::new().write(true))?).map_err(of);
        }
        let mut file = self.temporary_file(folder_of(path))?;
        write(&mut file).map_err(of)?;
        file.move_to(&at).map_err(of)
    }

    /// Replaces a file atomically and syncs it to disk: after a crash, it has the old or the new content. Creates the
    /// folder if missing.
    ///
    /// # Errors
    /// If the path leads outside or cannot be written; an existing file is then unchanged.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let of = |error| self.error(path, error);
        let at = self.at(path, Last::Itself)?;
        at.folder().make_folder().map_err(of)?;
        let mut file = self.temporary_file(folder_of(path))?;
        file.write_all(bytes).and_then(|()| file.sync()).and_then(|()| file.move_to(&at)).map_err(of)?;
        at.folder().sync();
        Ok(())
    }
}

/// Renames a file, with the permissions of the replaced file or the default ones.
pub(super) fn move_to(from: &At, to: &At) -> io::Result<()> {
    let permissions = match to.dir.metadata(&to.inside) {
        Ok(present) => present.permissions(),
        Err(_) => usual(from)?,
    };
    from.dir.open(&from.inside)?.set_permissions(permissions)?;
    put(from, to)
}

fn rename(from: &At, to: &At) -> io::Result<()> {
    from.dir.rename(&from.inside, &to.dir, &to.inside)
}

/// Renames a file; across disks, copies it beside its final path first.
pub(super) fn put(from: &At, to: &At) -> io::Result<()> {
    match rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let mut file = from.dir.open(&from.inside)?;
            let mut beside = super::temporary::file_in(&to.folder())?;
            io::copy(&mut file, &mut beside)?;
            beside.sync()?;
            beside.set_permissions(file.metadata()?.permissions())?;
            beside.rename_to(to)?;
            from.dir.remove_file(&from.inside)
        }
        other => other,
    }
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
