//! What a release has: archives with checksums, and the packages of other languages. The workflow's steps are calls of
//! `.ci/release`, which run here with the binary of the tests.

use crate::program::program;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const TARGET: &str = "x86_64-unknown-linux-musl";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn done(command: &mut Command) -> Output {
    let output = command.output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    output
}

fn release(arguments: &[&str]) {
    done(Command::new(root().join(".ci/release")).args(arguments));
}

#[cfg(unix)]
#[test]
fn an_archive_has_the_binary_that_runs_and_the_licences_and_its_checksum_shows_a_changed_byte() {
    let out = tempfile::tempdir().expect("a folder");
    let folder = out.path().to_str().expect("UTF-8");
    release(&["archive", program(), TARGET, folder]);
    release(&["sums", folder]);
    let name = format!("ragcheck-{}-{TARGET}", env!("CARGO_PKG_VERSION"));
    let archive = out.path().join(format!("{name}.tar.gz"));
    let check = |what: &str| {
        let output = Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(out.path()).output();
        let output = output.expect("it runs");
        (output.status.success(), format!("{what}: {}", String::from_utf8_lossy(&output.stdout)))
    };
    let (whole, told) = check("whole");
    assert!(whole, "{told}");
    let sums = fs::read_to_string(out.path().join("SHA256SUMS")).expect("checksums");
    assert_eq!(sums.lines().count(), 1, "{sums}");

    done(Command::new("tar").arg("-xzf").arg(&archive).current_dir(out.path()));
    let unpacked = out.path().join(&name);
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
        assert!(unpacked.join(file).is_file(), "{file}");
    }
    let version = done(Command::new(unpacked.join("ragcheck")).arg("--version")).stdout;
    assert_eq!(String::from_utf8_lossy(&version).trim(), format!("ragcheck {}", env!("CARGO_PKG_VERSION")));

    let mut bytes = fs::read(&archive).expect("the archive");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&archive, bytes).expect("written");
    let (whole, told) = check("changed");
    assert!(!whole, "{told}");
}

#[cfg(unix)]
#[test]
#[ignore = "needs node and npm"]
fn needs_node_the_npm_packages_start_the_binary_of_the_platform_and_end_as_it_does() {
    let out = tempfile::tempdir().expect("a folder");
    let folder = out.path().to_str().expect("UTF-8");
    release(&["npm", program(), TARGET, folder]);
    release(&["npm-launcher", folder]);
    // As npm would install them; the packages of other platforms are not there.
    let modules = out.path().join("project/node_modules");
    let version = env!("CARGO_PKG_VERSION");
    for name in ["ragcheck-harness", "ragcheck-harness-linux-x64"] {
        let package = modules.join(name);
        fs::create_dir_all(&package).expect("a folder");
        let archive = out.path().join(format!("{name}-{version}.tgz"));
        done(Command::new("tar").arg("-xzf").arg(archive).args(["--strip-components", "1"]).current_dir(&package));
    }
    let launcher = modules.join("ragcheck-harness/bin/ragcheck.js");
    let run = |arguments: &[&str]| Command::new("node").arg(&launcher).args(arguments).output().expect("node");
    let told = run(&["--version"]);
    assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), format!("ragcheck {version}"));
    assert_eq!(told.status.code(), Some(0));
    assert_eq!(run(&["no-such-command"]).status.code(), Some(2));
    // A signal to the launcher ends the binary, and the launcher after it.
    run(&["init", folder]);
    let mut simulator = Command::new("node");
    simulator.arg(&launcher).args(["simulate", "simulator/behaviour.yaml", "--port", "0"]).current_dir(&out);
    let mut simulator = simulator.stderr(Stdio::piped()).spawn().expect("node");
    let mut said = BufReader::new(simulator.stderr.take().expect("a pipe"));
    said.read_line(&mut String::new()).expect("a line");
    done(Command::new("kill").args(["-INT", &simulator.id().to_string()]));
    assert_eq!(simulator.wait().expect("it ends").code(), Some(0));
    assert_eq!(said.read_line(&mut String::new()).expect("the end"), 0, "the binary holds the pipe until it ends");
    fs::remove_dir_all(modules.join("ragcheck-harness-linux-x64")).expect("it was there");
    let without = run(&["--version"]);
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("ragcheck-harness-linux-x64 is not installed"));
}

/// Every file of a folder of text, and its path.
fn texts(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            texts(&path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            found.push((path, text));
        }
    }
}

#[test]
fn no_page_leads_to_the_other_project_of_that_name_on_pypi() {
    let mut found = Vec::new();
    for folder in ["docs", "examples", "src/cli/starter"] {
        texts(&root().join(folder), &mut found);
    }
    found.extend(["README.md", "CONTRIBUTING.md"].map(|name| {
        let path = root().join(name);
        (path.clone(), fs::read_to_string(path).expect(name))
    }));
    let wrong = regex::Regex::new(r"(?:pip|pipx|uv|uvx)(?: \w+)? ragcheck(?:$|[^-\w])").expect("compiles");
    assert!(wrong.is_match("pip install ragcheck") && !wrong.is_match("pip install ragcheck-harness"));
    for (path, text) in &found {
        assert!(!text.lines().any(|line| wrong.is_match(line)), "{}", path.display());
    }
    assert!(found.iter().any(|(_, text)| text.contains("pip install ragcheck-harness")));
}

#[test]
fn every_target_of_the_workflow_has_a_package_of_npm_and_the_versions_are_one() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect(name);
    let (workflow, script, package) =
        (read(".github/workflows/release.yml"), read(".ci/release"), read("packaging/npm/package.json"));
    let targets = regex::Regex::new(r"\{target: ([\w-]+),").expect("compiles");
    let targets: Vec<&str> = targets.captures_iter(&workflow).map(|found| found.extract::<1>().1[0]).collect();
    assert_eq!(targets.len(), 5, "{targets:?}");
    let package: serde_json::Value = serde_json::from_str(&package).expect("JSON");
    let optional = package["optionalDependencies"].as_object().expect("packages");
    for target in targets {
        let line = script.lines().find(|line| line.trim().starts_with(&format!("{target}) echo")));
        let line = line.unwrap_or_else(|| panic!("{target}"));
        let platform = line.split('"').nth(1).expect("a platform").replace(' ', "-");
        assert_eq!(optional[&format!("ragcheck-harness-{platform}")], package["version"], "{target}");
    }
    // The script puts the version of Cargo.toml in its place.
    assert_eq!(package["version"], "0.0.0");
    assert!(read("pyproject.toml").contains("dynamic = [\"version\"]"));
}
