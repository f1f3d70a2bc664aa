//! Nothing outside the places is read or written, however a path is spelled.

use super::{FileError, Files, LockError};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A project beside a folder with something that must stay unread and unchanged.
struct Checkout {
    folder: tempfile::TempDir,
    files: Files,
}

impl Checkout {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("project/prompts")).expect("folders");
        fs::create_dir_all(folder.path().join("elsewhere")).expect("folders");
        fs::write(folder.path().join("elsewhere/secret.txt"), "canary").expect("written");
        fs::write(folder.path().join("project/prompts/system.md"), "be brief").expect("written");
        let files = Files::new(&folder.path().join("project"), &[]).expect("a project");
        Self { folder, files }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("project").join(path)
    }

    fn secret(&self) -> PathBuf {
        self.folder.path().join("elsewhere/secret.txt")
    }
}

fn outside<T: std::fmt::Debug>(got: Result<T, FileError>) -> bool {
    matches!(got, Err(FileError::Outside { .. }))
}

#[test]
fn every_spelling_of_a_way_out_is_refused() {
    let checkout = Checkout::new();
    symlink(checkout.secret(), checkout.at("absolute-link")).expect("a link");
    symlink("../elsewhere/secret.txt", checkout.at("relative-link")).expect("a link");
    symlink("../elsewhere", checkout.at("folder-link")).expect("a link");
    symlink("folder-link", checkout.at("link-to-link")).expect("a link");
    let spelled = [
        "../elsewhere/secret.txt",
        "prompts/../../elsewhere/secret.txt",
        "../../../../../../../../proc/self/environ",
        "absolute-link",
        "relative-link",
        "folder-link/secret.txt",
        "link-to-link/secret.txt",
        "prompts/./../folder-link/secret.txt",
    ];
    for path in spelled {
        let path = checkout.at(path);
        assert!(outside(checkout.files.read(&path)), "read {}", path.display());
        assert!(outside(checkout.files.resolved(&path)), "resolved {}", path.display());
        assert!(!checkout.files.is_file(&path), "seen {}", path.display());
    }
    for path in [Path::new("/proc/self/environ"), Path::new("/etc/passwd"), &checkout.secret()] {
        assert!(outside(checkout.files.read(path)), "{}", path.display());
        assert!(outside(checkout.files.write(path, b"x")), "{}", path.display());
    }
    assert!(outside(checkout.files.entries(&checkout.at("folder-link"))));
    assert_eq!(fs::read_to_string(checkout.secret()).expect("there"), "canary");
}

#[test]
fn nothing_is_written_renamed_or_removed_through_a_link_that_leads_out() {
    let checkout = Checkout::new();
    symlink("../elsewhere", checkout.at("reports")).expect("a link");
    symlink("../elsewhere/new.txt", checkout.at("dangling")).expect("a link");
    assert!(outside(checkout.files.write(&checkout.at("reports/run.json"), b"x")));
    assert!(outside(checkout.files.create_folder(&checkout.at("reports/run"))));
    assert!(outside(checkout.files.remove_file(&checkout.at("reports/secret.txt"))));
    assert!(outside(checkout.files.append(&checkout.at("dangling")).map(|_| ())));
    assert!(outside(checkout.files.resolved(&checkout.at("dangling"))), "SQLite would follow it");
    assert!(outside(checkout.files.rename(&checkout.at("prompts/system.md"), &checkout.at("reports/system.md"))));
    checkout.files.remove_folder(&checkout.at("reports")).expect("the link alone");
    assert!(checkout.at("reports").symlink_metadata().is_err());
    let left: Vec<_> = fs::read_dir(checkout.folder.path().join("elsewhere")).expect("there").collect();
    assert_eq!(left.len(), 1);
    assert_eq!(fs::read_to_string(checkout.secret()).expect("there"), "canary");
}

#[test]
fn what_lies_inside_is_read_through_links_and_dots_too() {
    let checkout = Checkout::new();
    symlink("prompts/system.md", checkout.at("link")).expect("a link");
    for path in ["prompts/system.md", "link", "./prompts/../prompts/system.md"] {
        assert_eq!(checkout.files.read_to_string(&checkout.at(path)).expect(path), "be brief");
    }
    let names: Vec<PathBuf> =
        checkout.files.entries(&checkout.at("")).expect("a folder").into_iter().map(|entry| entry.path).collect();
    assert_eq!(names, [checkout.at("link"), checkout.at("prompts")]);
    assert_eq!(
        checkout.files.resolved(&checkout.at("new.sqlite")).expect("its folder").file_name().expect("a name"),
        "new.sqlite"
    );
}

#[test]
fn a_folder_that_the_command_line_allows_is_a_place_of_its_own() {
    let checkout = Checkout::new();
    let allowed = [checkout.folder.path().join("elsewhere")];
    let files = Files::new(&checkout.at(""), &allowed).expect("places");
    assert_eq!(files.read_to_string(&checkout.at("../elsewhere/secret.txt")).expect("allowed"), "canary");
    assert!(outside(files.read(Path::new("/etc/passwd"))));
}

#[test]
fn a_file_named_on_the_command_line_opens_its_folder_but_a_path_of_the_project_stays_confined() {
    let checkout = Checkout::new();
    symlink("../elsewhere", checkout.at("reports")).expect("a link");
    let Checkout { folder, files } = checkout;
    let files = files.with_named(&folder.path().join("project/reports/secret.txt")).expect("confined");
    assert!(outside(files.read(&folder.path().join("project/reports/secret.txt"))));
    let files = files.with_named(&folder.path().join("elsewhere/secret.txt")).expect("named");
    assert_eq!(files.read_to_string(&folder.path().join("elsewhere/secret.txt")).expect("named"), "canary");
}

#[test]
fn devices_pipes_folders_and_huge_files_are_not_read() {
    let checkout = Checkout::new();
    let pipe = checkout.at("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    assert!(matches!(checkout.files.read(&pipe), Err(FileError::NotAFile { .. })), "it would wait for ever");
    assert!(matches!(checkout.files.read(&checkout.at("prompts")), Err(FileError::NotAFile { .. })));
    fs::File::create(checkout.at("huge")).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    assert!(matches!(checkout.files.read(&checkout.at("huge")), Err(FileError::TooLarge { .. })));
    assert!(checkout.files.read(&checkout.at("nothing")).is_err_and(|error| error.is_missing()));
}

#[test]
fn a_file_is_whole_or_as_it_was_and_nothing_is_left_behind() {
    let checkout = Checkout::new();
    let path = checkout.at("reports/run/run.json");
    checkout.files.write(&path, b"one").expect("written");
    let mut half = checkout.files.create(&path).expect("begun");
    half.write_all(b"tw").expect("written");
    drop(half);
    assert_eq!(checkout.files.read(&path).expect("there"), b"one");
    checkout.files.write(&path, b"two").expect("written");
    assert_eq!(checkout.files.read(&path).expect("there"), b"two");
    assert_eq!(fs::read_dir(checkout.at(".ragcheck/tmp")).expect("the folder").count(), 0);
    assert_eq!(fs::read_dir(checkout.at("reports/run")).expect("the folder").count(), 1);
}

#[test]
fn a_recorder_is_alone_and_named_and_a_lock_that_nobody_holds_blocks_nobody() {
    let checkout = Checkout::new();
    let other = Files::new(&checkout.at(""), &[]).expect("a project");
    let recorder = checkout.files.lock("`ragcheck run --mode record` (process 7)").expect("free");
    let Err(LockError::Held { holder }) = other.lock("another") else { panic!("it was given") };
    assert_eq!(holder, "`ragcheck run --mode record` (process 7)");
    drop(recorder);
    assert!(checkout.at(".ragcheck/lock").is_file(), "the file stays, the lock does not");
    other.lock("another").expect("free");
}
