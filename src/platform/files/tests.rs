//! Nothing outside the places is read or written, for any spelling of a path.

use super::{FileError, Files, LockError};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A project beside a folder with a file that must stay unread and unchanged.
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

fn of_git<T: std::fmt::Debug>(got: Result<T, FileError>) -> bool {
    matches!(got, Err(FileError::Repository { .. }))
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
        assert!(outside(checkout.files.read_to_string(&path)), "read {}", path.display());
        assert!(outside(checkout.files.resolved(&path)), "resolved {}", path.display());
        assert!(outside(checkout.files.metadata(&path)), "seen {}", path.display());
    }
    for path in [Path::new("/proc/self/environ"), Path::new("/etc/passwd"), &checkout.secret()] {
        assert!(outside(checkout.files.read_to_string(path)), "{}", path.display());
        assert!(outside(checkout.files.write(path, b"x")), "{}", path.display());
    }
    assert!(outside(checkout.files.entries(&checkout.at("folder-link"))));
    assert_eq!(fs::read_to_string(checkout.secret()).expect("there"), "canary");
}

#[test]
fn nothing_at_or_below_a_repositorys_own_folder_is_opened_listed_or_written_by_any_spelling_or_link() {
    let checkout = Checkout::new();
    for folder in [".git/hooks", "vendor", "docs.git"] {
        fs::create_dir_all(checkout.at(folder)).expect("folders");
    }
    for file in [".git/config", "vendor/.git", "docs.git/a.md", ".gitignore"] {
        fs::write(checkout.at(file), "canary").expect("written");
    }
    for (target, link) in
        [("../.git/config", "prompts/link.md"), (".git", "folder"), ("folder/config", "again.md"), ("vendor/.git", "v")]
    {
        symlink(target, checkout.at(link)).expect("a link");
    }
    let files = &checkout.files;
    let spelled = [
        ".git/config", "prompts/../.git/config", ".GIT/config", "GIT~1/config", "vendor/.git", "prompts/link.md",
        "folder/config", "again.md", "v", ".git/not-there", "folder/hooks/not-there",
    ];
    for path in spelled.map(|path| checkout.at(path)) {
        assert!(of_git(files.read_to_string(&path)), "read {}", path.display());
        assert!(of_git(files.resolved(&path)), "resolved {}", path.display());
        assert!(of_git(files.write(&path, b"x")), "written {}", path.display());
    }
    assert!(of_git(files.entries(&checkout.at("folder"))) && of_git(files.entries(&checkout.at(".git"))));
    assert!(files.entries(&checkout.at("")).expect("a folder").iter().all(|entry| !entry.path.ends_with(".git")));
    assert_eq!(fs::read_to_string(checkout.at(".git/config")).expect("there"), "canary");
    for path in ["docs.git/a.md", ".gitignore"] {
        assert_eq!(files.read_to_string(&checkout.at(path)).expect(path), "canary");
    }
    files.remove_folder(&checkout.at("folder")).expect("the link alone");
    let allowed = Files::new(&checkout.at(""), &[checkout.at(".git")]).expect("places");
    assert_eq!(allowed.read_to_string(&checkout.at(".git/config")).expect("named on the command line"), "canary");
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
fn a_file_with_a_second_name_is_replaced_but_never_read_changed_or_emptied_unless_its_folder_is_allowed() {
    let checkout = Checkout::new();
    let linked = checkout.at("prompts/linked.md");
    fs::hard_link(checkout.secret(), &linked).expect("a link");
    let refused = |got: Result<(), FileError>| matches!(got, Err(FileError::Linked { .. }));
    assert!(refused(checkout.files.read_to_string(&linked).map(|_| ())));
    assert!(refused(checkout.files.append(&linked).map(|_| ())));
    assert!(refused(checkout.files.create(&linked).map(|_| ())), "it would be emptied");
    assert!(refused(checkout.files.resolved(&linked).map(|_| ())), "SQLite would open it");
    assert_eq!(fs::read_to_string(checkout.secret()).expect("there"), "canary");
    // The project's own folder may be allowed: a checkout copied by links.
    let allowed = Files::new(&checkout.at(""), &[checkout.at("")]).expect("places");
    assert_eq!(allowed.read_to_string(&linked).expect("allowed"), "canary");
    checkout.files.write(&linked, b"new").expect("another file takes its place");
    assert_eq!(checkout.files.read_to_string(&linked).expect("it has one name"), "new");
    assert_eq!(fs::read_to_string(checkout.secret()).expect("there"), "canary");
}

#[test]
fn a_folder_that_the_command_line_allows_is_a_place_of_its_own() {
    let checkout = Checkout::new();
    let allowed = [checkout.folder.path().join("elsewhere")];
    let files = Files::new(&checkout.at(""), &allowed).expect("places");
    assert_eq!(files.read_to_string(&checkout.at("../elsewhere/secret.txt")).expect("allowed"), "canary");
    assert!(outside(files.read_to_string(Path::new("/etc/passwd"))));
}

#[test]
fn a_file_named_on_the_command_line_is_opened_alone_and_a_path_of_the_project_stays_confined() {
    let checkout = Checkout::new();
    symlink("../elsewhere", checkout.at("reports")).expect("a link");
    let Checkout { folder, files } = checkout;
    let at = |path: &str| folder.path().join(path);
    fs::write(at("elsewhere/other.txt"), "canary").expect("written");
    let files = files.with_named(&at("project/reports/secret.txt")).expect("confined");
    assert!(outside(files.read_to_string(&at("project/reports/secret.txt"))));
    let files = files.with_named(&at("elsewhere/secret.txt")).expect("named");
    assert_eq!(files.read_to_string(&at("elsewhere/secret.txt")).expect("named"), "canary");
    files.write(&at("elsewhere/secret.txt"), b"new").expect("named");
    files.replace(&at("elsewhere/secret.txt"), b"newer").expect("named");
    assert_eq!(fs::read_to_string(at("elsewhere/secret.txt")).expect("there"), "newer");
    assert!(outside(files.read_to_string(&at("elsewhere/other.txt"))));
    assert!(outside(files.write(&at("elsewhere/other.txt"), b"x")));
    assert!(outside(files.remove_file(&at("elsewhere/other.txt"))));
    assert_eq!(fs::read_dir(at("elsewhere")).expect("there").count(), 2, "nothing temporary is left");
}

#[test]
fn a_folder_named_on_the_command_line_that_is_not_there_yet_is_made_with_all_that_is_below_it() {
    let checkout = Checkout::new();
    let Checkout { folder, files } = checkout;
    let at = |path: &str| folder.path().join(path);
    let files = files.with_named(&at("elsewhere/new/pages")).expect("named");
    files.replace(&at("elsewhere/new/pages/one/index.html"), b"page").expect("below it");
    assert_eq!(fs::read_to_string(at("elsewhere/new/pages/one/index.html")).expect("there"), "page");
    assert!(outside(files.write(&at("elsewhere/new/index.html"), b"x")), "beside it");
    symlink(at("elsewhere/secret.txt"), at("elsewhere/new/pages/link")).expect("a link");
    assert!(outside(files.write(&at("elsewhere/new/pages/link"), b"x")), "a link out of it");
}

#[test]
fn a_program_that_does_not_confine_itself_opens_makes_and_removes_what_it_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |path: &str| folder.path().join(path);
    let files = Files::anywhere();
    files.replace(&at("a/b/one.txt"), b"one").expect("made");
    symlink("a/b/one.txt", at("link")).expect("a link");
    files.write(&at("link"), b"two").expect("the file that the link names");
    assert!(at("link").symlink_metadata().expect("there").is_symlink());
    assert_eq!(files.read_to_string(&at("a/b/one.txt")).expect("there"), "two");
    files.rename(&at("link"), &at("a/other")).expect("the link itself");
    files.remove_file(&at("a/other")).expect("the link itself");
    files.append(&at("a/b/one.txt")).expect("opened").write_all(b"!").expect("written");
    assert_eq!(files.read_to_string(&at("a/b/one.txt")).expect("there"), "two!");
    files.remove_folder(&at("a")).expect("removed");
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0, "nothing is left");
}

/// Swaps a folder with a symbolic link that leads outside, back and forth, while `write` runs, until it has been
/// refused and has succeeded often.
fn while_a_folder_is_exchanged(folder: &str, write: impl Fn(&Checkout) -> Result<(), FileError>) {
    const OFTEN: usize = 50;
    let checkout = Checkout::new();
    let (inside, aside) = (checkout.at(folder), checkout.at("aside"));
    fs::create_dir_all(&inside).expect("a folder");
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(&inside, &aside).expect("put aside");
                // The writer may create the folder in between.
                while symlink(checkout.folder.path().join("elsewhere"), &inside).is_err() {
                    let _ = fs::remove_dir_all(&inside);
                }
                fs::remove_file(&inside).expect("the link");
                while fs::rename(&aside, &inside).is_err() {
                    let _ = fs::remove_dir_all(&inside);
                }
            }
        });
        let (mut written, mut refused, mut tries) = (0, 0, 0_u32);
        let begun = std::time::Instant::now();
        while (written < OFTEN || refused < OFTEN) && begun.elapsed().as_secs() < 60 {
            match write(&checkout) {
                Ok(()) => written += 1,
                Err(FileError::Outside { .. }) => refused += 1,
                // The folder is missing, or is being swapped.
                Err(_) => {}
            }
            tries += 1;
            // A writer that never rests can make the folder anew as often as it is put aside.
            if tries % 10 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(written > 0 && refused > 0, "{written} written, {refused} refused: nothing was tried");
    });
    let left: Vec<_> = fs::read_dir(checkout.folder.path().join("elsewhere")).expect("there").collect();
    assert_eq!(left.len(), 1, "{folder}: {left:?}");
    assert_eq!(fs::read_to_string(checkout.secret()).expect("there"), "canary", "{folder}");
}

#[test]
fn a_folder_that_becomes_a_symbolic_link_between_check_and_write_changes_nothing_outside() {
    let secret = |checkout: &Checkout| checkout.at("reports/secret.txt");
    while_a_folder_is_exchanged("reports", |checkout| checkout.files.replace(&secret(checkout), b"x"));
    while_a_folder_is_exchanged("reports", |checkout| checkout.files.write(&secret(checkout), b"x"));
    while_a_folder_is_exchanged("reports", |checkout| {
        let mut file = checkout.files.append(&secret(checkout))?;
        file.write_all(b"x").map_err(|error| FileError::of(&secret(checkout), error))
    });
    while_a_folder_is_exchanged("reports", |checkout| {
        checkout.files.create_folder(&checkout.at("reports/new"))?;
        checkout.files.remove_folder(&checkout.at("reports/new"))
    });
    while_a_folder_is_exchanged("reports", |checkout| {
        checkout.files.create(&secret(checkout))?;
        checkout.files.remove_file(&secret(checkout))
    });
    while_a_folder_is_exchanged("reports", |checkout| {
        let _ = checkout.files.remove_file(&checkout.at("reports/link"));
        checkout.files.link(Path::new("secret.txt"), &checkout.at("reports/link"))?;
        checkout.files.rename(&checkout.at("reports/link"), &secret(checkout))
    });
    while_a_folder_is_exchanged(".ragcheck/tmp", |checkout| checkout.files.write(&checkout.at("run.json"), b"x"));
}

#[test]
fn devices_pipes_folders_and_huge_files_are_not_read() {
    let checkout = Checkout::new();
    let pipe = checkout.at("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    assert!(matches!(checkout.files.read_to_string(&pipe), Err(FileError::NotAFile { .. })), "it would wait for ever");
    assert!(matches!(checkout.files.read_to_string(&checkout.at("prompts")), Err(FileError::NotAFile { .. })));
    fs::File::create(checkout.at("huge")).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    assert!(matches!(checkout.files.read_to_string(&checkout.at("huge")), Err(FileError::TooLarge { .. })));
    assert!(checkout.files.read_to_string(&checkout.at("nothing")).is_err_and(|error| error.is_missing()));
}

#[test]
fn a_file_is_whole_or_as_it_was_and_nothing_is_left_behind() {
    let checkout = Checkout::new();
    let path = checkout.at("reports/run/run.json");
    checkout.files.replace(&path, b"one").expect("written");
    let mut half = checkout.files.temporary_file(&checkout.at("reports/run")).expect("begun");
    half.write_all(b"tw").expect("written");
    drop(half);
    assert_eq!(checkout.files.read_to_string(&path).expect("there"), "one");
    checkout.files.write(&path, b"two").expect("written");
    assert_eq!(checkout.files.read_to_string(&path).expect("there"), "two");
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
    // A process that another test starts shares the lock between its fork and its exec.
    let begun = std::time::Instant::now();
    let free = loop {
        match other.lock("another") {
            Err(LockError::Held { .. }) if begun.elapsed().as_secs() < 10 => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            free => break free,
        }
    };
    free.expect("free");
}
