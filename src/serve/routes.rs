//! The paths of the service, and the layers in front of them.
//!
//! | path | what |
//! |---|---|
//! | `POST /api/chat/query` | one question; `Accept: text/event-stream` streams status events |
//! | `GET /api/chat/sessions/ID/artifacts/FILE` | a file in an answer of the session; `?version=N`, else the newest |
//! | `GET /gateway/download/RESOURCE/f/FIELD/FILE` | a document that an answer links to, see [`gateway`] |
//! | `GET /health` | whether the service is up; needs no token |
//! | `GET /metrics` | counters |
//! | `GET /openapi.json` | the OpenAPI document |
//! | `POST /api/test/reset` | removes all sessions, if the service is an agent under test |

use super::api::{ApiError, Body, QueryRequest};
use super::service::Service;
use super::status::StreamEvent;
use super::{admission, gateway, openapi};
use crate::platform::secrets;
use axum::error_handling::HandleErrorLayer;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{BoxError, Json, Router};
use futures_util::stream::{self, Stream};
use serde_json::{Value, json};
use std::any::Any;
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

/// Time for a request beyond the longest turn: reading it, and storing its session.
const BEYOND_TURN: Duration = Duration::from_secs(30);

type Shared = Arc<Service>;

pub(crate) fn routes(service: Shared) -> Router {
    let longest = service.served.turn_limit() + BEYOND_TURN;
    let limits = ServiceBuilder::new().layer(HandleErrorLayer::new(turned_away)).timeout(longest);
    let mut api = Router::new().route("/api/chat/query", post(query)).layer(limits);
    api = api.route("/api/chat/sessions/{session}/artifacts/{file}", get(artifact));
    if service.has_gateway() {
        let limits = ServiceBuilder::new().layer(HandleErrorLayer::new(turned_away)).timeout(longest);
        let links = format!("{}{{*link}}", gateway::PREFIX);
        api = api.merge(Router::new().route(&links, get(gateway::download)).layer(limits));
    }
    if service.options.test_target {
        api = api.route("/api/test/reset", post(reset));
    }
    api.route("/metrics", get(metrics))
        .route("/openapi.json", get(document))
        .layer(middleware::from_fn_with_state(Arc::clone(&service), admission::whole))
        .layer(middleware::from_fn_with_state(Arc::clone(&service), admission::token))
        .route("/health", get(health))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&service), admission::origin))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(DefaultBodyLimit::max(admission::LONGEST_BODY))
        .layer(middleware::from_fn_with_state(Arc::clone(&service), counted))
        .with_state(service)
}

async fn counted(State(service): State<Shared>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    service.counters.answered(response.status().as_u16());
    response
}

async fn query(
    State(service): State<Shared>,
    headers: HeaderMap,
    body: Result<Json<Body>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(Body(body)) = body.map_err(unreadable)?;
    let request = QueryRequest::read(body)?;
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream") {
        return Ok(Sse::new(event_stream(service, request)).keep_alive(KeepAlive::default()).into_response());
    }
    answered(service, request).await
}

fn unreadable(rejection: JsonRejection) -> ApiError {
    let because = |why: &dyn Error| why.source().map(ToString::to_string);
    let (what, why) = match &rejection {
        JsonRejection::JsonDataError(why) => ("the body cannot be read: ", because(why)),
        JsonRejection::JsonSyntaxError(why) => ("the body is not JSON: ", because(why)),
        other => return ApiError::new(other.status(), "invalid_request", other.body_text()),
    };
    let message = format!("{what}{}", why.unwrap_or_else(|| rejection.body_text()));
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_request", message)
}

/// Answers one question. The turn is a separate task: a caller that disconnects finds the answer in the session.
#[expect(clippy::disallowed_methods, reason = "a turn whose asker hung up is finished all the same")]
async fn answered(service: Shared, request: QueryRequest) -> Result<Response, ApiError> {
    match tokio::spawn(async move { service.answer(&request, None).await }).await {
        Ok(reply) => Ok(Json(secrets::clean_value(reply?)).into_response()),
        Err(failed) => Ok(panicked(Box::new(failed))),
    }
}

/// Streams the events of one question. The turn is a separate task: a caller that disconnects finds the answer in the
/// session.
#[expect(clippy::disallowed_methods, reason = "a turn whose listener left is finished all the same")]
fn event_stream(service: Shared, request: QueryRequest) -> impl Stream<Item = Result<Event, Infallible>> {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<StreamEvent>();
    tokio::spawn(async move {
        let last = match service.answer(&request, Some(sender.clone())).await {
            Ok(reply) => ("answer", secrets::clean_value(reply)),
            Err(error) => ("error", error.body()),
        };
        let _ = sender.send(last);
    });
    stream::unfold(receiver, |mut receiver: UnboundedReceiver<StreamEvent>| async move {
        let (name, data) = receiver.recv().await?;
        Some((Ok(Event::default().event(name).data(data.to_string())), receiver))
    })
}

async fn artifact(
    State(service): State<Shared>,
    Path((session, file)): Path<(String, String)>,
    uri: Uri,
) -> Result<impl IntoResponse, ApiError> {
    let asked = uri.query().into_iter().flat_map(|query| query.split('&')).find_map(|one| one.strip_prefix("version="));
    let version = asked
        .map(str::parse::<u32>)
        .transpose()
        .map_err(|_| ApiError::new(StatusCode::BAD_REQUEST, "invalid_request", "`version` is a whole number"))?;
    let artifact = service.artifact(&session, &file, version)?;
    // File names consist of letters, digits and a few signs: the project's check ensures that.
    let name: String = artifact.filename.chars().filter(|letter| letter.is_ascii_graphic() && *letter != '"').collect();
    let headers = [
        (header::CONTENT_TYPE, format!("{}; charset=utf-8", artifact.mime_type)),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, secrets::clean(&artifact.content).into_owned()))
}

async fn health(State(service): State<Shared>) -> Json<Value> {
    Json(json!({"status": "ok", "flow": service.flow(), "version": env!("CARGO_PKG_VERSION")}))
}

async fn metrics(State(service): State<Shared>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], service.metrics())
}

async fn document(State(service): State<Shared>) -> Json<Value> {
    Json(openapi::document(&service.options, service.has_gateway()))
}

async fn reset(State(service): State<Shared>) -> Result<Json<Value>, ApiError> {
    service.reset()?;
    Ok(Json(json!({"reset": true})))
}

async fn unknown(request: Request) -> ApiError {
    let path = secrets::beginning(request.uri().path(), 100);
    let message = format!("nothing is served at {path}; see GET /openapi.json");
    ApiError::new(StatusCode::NOT_FOUND, "unknown_path", message)
}

async fn wrong_method(request: Request) -> ApiError {
    let message = format!("{} is not served here; see GET /openapi.json", request.method());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message)
}

async fn turned_away(error: BoxError) -> ApiError {
    if error.is::<tower::timeout::error::Elapsed>() {
        return ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "The request took too long.");
    }
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
}

fn panicked(_: Box<dyn Any + Send>) -> Response {
    let message = "This is a bug in ragcheck; the service continues.";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message).into_response()
}
