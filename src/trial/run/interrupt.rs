//! Signals that end a run in order: Ctrl-C, SIGTERM, and SIGHUP unless the parent process ignored it (`nohup`).

/// Resolves when a signal asks the run to end; returns the reason.
#[cfg(unix)]
pub(crate) async fn interrupted() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let of = |kind: SignalKind, why: &'static str| async move {
        match signal(kind) {
            Ok(mut signal) => {
                signal.recv().await;
                why
            }
            // Without a handler, the signal kills the process anyway.
            Err(_) => std::future::pending().await,
        }
    };
    let hangup = async {
        if ignores_hangup() {
            return std::future::pending().await;
        }
        of(SignalKind::hangup(), "the terminal was closed (SIGHUP)").await
    };
    tokio::select! {
        why = of(SignalKind::interrupt(), "the run was interrupted") => why,
        why = of(SignalKind::terminate(), "the run was asked to end (SIGTERM)") => why,
        why = hangup => why,
    }
}

/// Resolves when a signal asks the run to end; returns the reason.
#[cfg(not(unix))]
pub async fn interrupted() -> &'static str {
    match tokio::signal::ctrl_c().await {
        Ok(()) => "the run was interrupted",
        // Without a handler, the signal kills the process anyway.
        Err(_) => std::future::pending().await,
    }
}

/// Whether SIGHUP (bit 0 of the mask) is ignored; `false` if the file does not exist.
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "the system's word on this process, and no file that anybody names")]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
