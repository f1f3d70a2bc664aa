//! A mark in the environment of a process, which what it starts inherits: by it, those are found that left the process
//! group for a session of their own. Where there is no /proc, none is found.

use tokio::process::Command;

/// Variable that marks a process and what it starts, with a value for each.
#[cfg(target_os = "linux")]
const VARIABLE: &str = "RAGCHECK_PROCESS";

/// The mark of one process.
#[derive(Debug)]
pub(in crate::trial::external) struct Mark {
    #[cfg(target_os = "linux")]
    value: String,
}

impl Mark {
    /// A mark that no other process has, set in the environment of that command.
    #[cfg(target_os = "linux")]
    pub(in crate::trial::external) fn on(command: &mut Command) -> Self {
        use std::hash::{BuildHasher, RandomState};
        let value = format!("{}-{:x}", std::process::id(), RandomState::new().hash_one(0));
        command.env(VARIABLE, &value);
        Self { value }
    }

    /// Nothing: there is no /proc.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::trial::external) fn on(_command: &mut Command) -> Self {
        Self {}
    }

    /// Kills the processes of this user that have the mark. One that starts others meanwhile is looked for again.
    #[cfg(target_os = "linux")]
    #[expect(clippy::disallowed_methods, reason = "processes are listed below /proc, and no path comes from a project")]
    pub(in crate::trial::external) fn kill(&self) {
        let entry = format!("{VARIABLE}={}", self.value);
        for _ in 0..3 {
            let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
            let marked = processes.filter_map(|process| {
                let id = process.file_name().to_str()?.parse::<i32>().ok()?;
                // That of another user, or of a process that has ended, cannot be read.
                let environment = std::fs::read(process.path().join("environ")).ok()?;
                environment.split(|byte| *byte == 0).any(|one| one == entry.as_bytes()).then_some(id)
            });
            let killed = marked
                .filter_map(rustix::process::Pid::from_raw)
                .filter(|id| rustix::process::kill_process(*id, rustix::process::Signal::KILL).is_ok());
            if killed.count() == 0 {
                return;
            }
        }
    }

    /// Nothing: there is no /proc.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "elsewhere it has a value")]
    pub(in crate::trial::external) fn kill(&self) {}
}
