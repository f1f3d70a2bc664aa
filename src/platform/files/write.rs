//! Writing: everything is made, renamed and removed relative to a place's handle, so that a folder which becomes a symbolic
//! link between the check and the write changes nothing outside.

use super::temporary::usual;
use super::{FileError, Files, Last};
use cap_std::fs::OpenOptions;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::place::At;

impl Files {
    /// Makes a new, empty file, or empties the one that is there.
    ///
    /// # Errors
    /// A path that leads outside, something that is no regular file, or a file that cannot be written.
    pub(crate) fn create(&self, path: &Path) -> Result<File, FileError> {
        let file = self.opened(path, OpenOptions::new().write(true).create(true))?;
        // Not when it is opened: a file with another name is refused whole.
        file.set_len(0).map_err(|error| self.error(path, error))?;
        Ok(file)
    }

    /// Opens a file to add to its end; it is made when it is not there.
    ///
    /// # Errors
    /// As [`Files::create`].
    pub(crate) fn append(&self, path: &Path) -> Result<File, FileError> {
        self.opened(path, OpenOptions::new().append(true).create(true))
    }

    /// The same for a file that only its owner may read, from the moment that it is made.
    ///
    /// # Errors
    /// As [`Files::create`].
    pub(crate) fn append_private(&self, path: &Path) -> Result<File, FileError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        self.opened(path, &options)
    }

    /// Opens a file that is only there to be locked, in a folder that is made where it is missing.
    pub(super) fn lock_file(&self, path: &Path) -> Result<File, FileError> {
        self.create_folder(folder_of(path))?;
        self.opened(path, OpenOptions::new().read(true).write(true).create(true))
    }

    /// Makes a folder, and those above it.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    pub(crate) fn create_folder(&self, path: &Path) -> Result<(), FileError> {
        self.at(path, Last::Followed)?.make_folder().map_err(|error| self.error(path, error))
    }

    /// Makes a folder that only its owner may enter, and those above it as usual; one that is there stays as it is.
    ///
    /// # Errors
    /// As [`Files::create_folder`].
    pub(crate) fn create_private_folder(&self, path: &Path) -> Result<(), FileError> {
        let at = self.at(path, Last::Followed)?;
        at.make_private_folder().map_err(|error| self.error(path, error))
    }

    /// Gives a file, a folder or a symbolic link another name.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        let (source, target) = (self.at(from, Last::Itself)?, self.at(to, Last::Itself)?);
        rename(&source, &target).map_err(|error| self.error(to, error))
    }

    /// Removes a file, or a symbolic link itself.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    pub(crate) fn remove_file(&self, path: &Path) -> Result<(), FileError> {
        let at = self.at(path, Last::Itself)?;
        at.dir.remove_file(&at.inside).map_err(|error| self.error(path, error))
    }

    /// Removes a folder with all that it holds; symbolic links are removed, never followed.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    pub(crate) fn remove_folder(&self, path: &Path) -> Result<(), FileError> {
        let at = self.at(path, Last::Itself)?;
        at.dir.remove_dir_all(&at.inside).map_err(|error| self.error(path, error))
    }

    /// Makes `link` point to `target`, which is relative to the link's folder.
    ///
    /// # Errors
    /// A path that leads outside, or what the operating system says.
    #[cfg(unix)]
    pub(crate) fn link(&self, target: &Path, link: &Path) -> Result<(), FileError> {
        let at = self.at(link, Last::Itself)?;
        at.dir.symlink(target, &at.inside).map_err(|error| self.error(link, error))
    }

    /// Makes what was renamed in a folder last; not every system can.
    pub(crate) fn sync_folder(&self, folder: &Path) {
        if let Ok(at) = self.at(folder, Last::Followed) {
            at.sync();
        }
    }

    /// Gives a file of a temporary folder its name; what was there is replaced whole, and its permissions stay.
    ///
    /// # Errors
    /// A path that leads outside, or a file that cannot be written; what was there stays.
    pub(crate) fn move_file(&self, file: &Path, path: &Path) -> Result<(), FileError> {
        let (from, to) = (self.at(file, Last::Itself)?, self.at(path, Last::Itself)?);
        move_to(&from, &to).map_err(|error| self.error(path, error))
    }

    /// Replaces a file whole or not at all. What was typed and is no regular file (a pipe, `/dev/stdout`) is written into;
    /// a pipe of the project is replaced, for who opens it may wait for ever.
    ///
    /// # Errors
    /// A path that leads outside, or a file that cannot be written; what was there stays.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let of = |error| self.error(path, error);
        let at = self.at(path, Last::Followed)?.followed().map_err(of)?;
        if at.typed && at.is_special() {
            return at.open(OpenOptions::new().write(true))?.write_all(bytes).map_err(of);
        }
        let mut file = self.temporary_file(folder_of(path))?;
        file.write_all(bytes).map_err(of)?;
        file.move_to(&at).map_err(of)
    }

    /// Replaces a file whole or not at all, and makes that last: after a crash it is the old one or the new one. The
    /// folder is made where it is missing.
    ///
    /// # Errors
    /// A path that leads outside, or a file that cannot be written; what was there stays.
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

/// Gives a file another name, with the permissions of what was there or the usual ones.
pub(super) fn move_to(from: &At, to: &At) -> io::Result<()> {
    let permissions = to.dir.metadata(&to.inside).map_or_else(|_| usual(), |present| present.permissions());
    from.dir.open(&from.inside)?.set_permissions(permissions)?;
    put(from, to)
}

fn rename(from: &At, to: &At) -> io::Result<()> {
    from.dir.rename(&from.inside, &to.dir, &to.inside)
}

/// Gives a file another name, on another disk too: there it is copied beside its place first.
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

/// The folder of a path.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
