//! Sends recorded requests again, `jobs` at a time, and returns answers in the order of the requests.

use crate::plan::Plan;
use crate::transport::HttpResponse;
use crate::trial::{Resend, ResendError, TrialRunner};
use futures_util::StreamExt;
use std::io;

/// Sends all of `requests`, `jobs` at a time.
///
/// # Errors
/// If the runtime cannot be started. The result of each request is at its index in the list.
pub(crate) fn again(
    runner: &TrialRunner,
    plan: &Plan,
    requests: &[Resend],
    jobs: usize,
) -> io::Result<Vec<Result<HttpResponse, ResendError>>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        let sent = futures_util::stream::iter(requests).map(|request| runner.send_again(plan, request));
        sent.buffered(jobs.max(1)).collect().await
    }))
}
