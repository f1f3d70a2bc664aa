//! Finds the proxy of a run in the environment of an ancestor: ragcheck gave it to the process of the agent.

use super::PROXY;

/// Ancestors that are asked at most.
const MOST: usize = 64;

/// The proxy of the run that an ancestor belongs to.
#[cfg(target_os = "linux")]
pub(super) fn proxy() -> Option<String> {
    use std::io::Read;
    #[expect(clippy::disallowed_methods, reason = "the kernel's files about processes are outside of every project")]
    let read = |pid: u32, file: &str| {
        let mut bytes = Vec::new();
        std::fs::File::open(format!("/proc/{pid}/{file}")).ok()?.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..MOST {
        let environment = read(pid, "environ").unwrap_or_default();
        let found = environment.split(|byte| *byte == 0).find_map(|pair| value(std::str::from_utf8(pair).ok()?));
        if found.is_some() {
            return found;
        }
        // The name of the program stands in brackets and may hold anything.
        let status = String::from_utf8_lossy(&read(pid, "stat")?).into_owned();
        pid = status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    }
    None
}

/// The proxy of the run that an ancestor belongs to.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn proxy() -> Option<String> {
    let told = |pid: u32, what: &[&str]| {
        let output = std::process::Command::new("ps").args(what).arg("-p").arg(pid.to_string()).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..MOST {
        let environment = told(pid, &["eww", "-o", "command="]).unwrap_or_default();
        let found = environment.split_whitespace().find_map(value);
        if found.is_some() {
            return found;
        }
        pid = told(pid, &["-o", "ppid="])?.trim().parse().ok()?;
    }
    None
}

/// No other system shows the environment of a process.
#[cfg(not(unix))]
pub(super) fn proxy() -> Option<String> {
    None
}

/// The address in a pair of an environment.
#[cfg(unix)]
fn value(pair: &str) -> Option<String> {
    let address = pair.strip_prefix(PROXY)?.strip_prefix('=')?;
    (!address.is_empty()).then(|| address.to_owned())
}
