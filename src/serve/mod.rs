//! A chat service: users talk to a flow over HTTP, with the settings that a scenario tests.
//!
//! | question | file |
//! |---|---|
//! | What is served, with which settings? | `served` |
//! | How is one question answered? | `service` |
//! | Which paths exist, and what is refused before a handler runs? | `routes`, `admission` |
//! | Which documents can be downloaded, and what about their source stays hidden? | `gateway` |
//! | What do requests and replies look like? | `api`, `openapi` |
//! | Which conversations exist, who may continue one, and how do they survive a kill? | `sessions` |
//! | Where is a turn resumed after the service was killed? | `under_way` |
//! | What does the caller see while waiting? | `status` |
//! | What is logged and counted? | `event_log`, `counters` |
//!
//! An answer is sent after its session is on disk. The state folder of the service contains:
//!
//! | file | holds |
//! |---|---|
//! | `sessions/ID.json` | one conversation (`sessions`) |
//! | `under-way/ID.json` | its running turn, for flows that store one (`under_way`) |
//! | `keywords.sqlite` | learned entries, unless the project declares another file (`keyword_index`) |
//! | `lock` | nothing: locked by the one service that uses the folder |
//! | `events.jsonl` | every event of every turn with its session, redacted; a line is one JSON object |
//! | `events.1.jsonl` | older events, once the log has reached its size limit (`event_log`) |

mod admission;
mod api;
mod counters;
mod event_log;
mod gateway;
mod openapi;
mod routes;
mod served;
mod service;
mod sessions;
mod status;
mod under_way;

pub(crate) use routes::routes;
pub(crate) use served::Served;
pub(crate) use service::{Service, ServiceOptions};

use axum::serve::ListenerExt;
use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time for callers to read the last replies after the service is stopped and no question is being answered.
const LAST_REPLIES: Duration = Duration::from_secs(5);

/// Serves on `listener` until `stop` resolves; then finishes running requests and accepts no new ones. A client that
/// never finishes its request, or never reads, does not delay the stop.
///
/// # Errors
/// If the listener fails.
pub(crate) async fn serve(
    service: Arc<Service>,
    listener: tokio::net::TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (asked, stopping) = tokio::sync::oneshot::channel();
    let told = async move {
        stop.await;
        let _ = asked.send(());
    };
    // Parts of a streamed answer go out as they come, not when the one before is acknowledged.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let serving = axum::serve(listener, routes(Arc::clone(&service))).with_graceful_shutdown(told).into_future();
    let given_up = async {
        if stopping.await.is_err() {
            return std::future::pending().await;
        }
        loop {
            service.clock.sleep(LAST_REPLIES).await;
            if service.is_idle() {
                return Ok(());
            }
        }
    };
    tokio::select! {
        done = serving => done,
        done = given_up => done,
    }
}

/// Checks whether a service may listen at `address` without a token.
///
/// # Errors
/// [`NotAlone`] for an address that other machines can reach.
pub(crate) fn may_listen(address: SocketAddr, has_token: bool) -> Result<(), NotAlone> {
    if address.ip().is_loopback() || has_token { Ok(()) } else { Err(NotAlone(address)) }
}

/// A service without a token at an address that other machines can reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("other machines reach {0}: name a variable that holds a token with --token-env NAME, or listen on 127.0.0.1")]
pub(crate) struct NotAlone(SocketAddr);
