//! Sends the requests of `object_store` with the HTTP client of live transports: its certificates, proxies and version of HTTP.

use crate::transport::client_builder;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// Replies up to this size are received before they count, so that a lost connection repeats the request.
const WHOLE: u64 = 1 << 20;
/// Maximum size of a reply that does not say how long it is.
const LONGEST: usize = 32 << 20;
const CONNECT: Duration = Duration::from_secs(10);
/// A connection that sends nothing for so long is lost.
const SILENCE: Duration = Duration::from_secs(30);

/// Makes clients for an address on this machine, or elsewhere.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) is_local: bool,
}

#[derive(Debug)]
struct Client(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let builder = client_builder(self.is_local, false).connect_timeout(CONNECT).read_timeout(SILENCE);
        let failed = |why| object_store::Error::Generic { store: "S3", source: Box::new(why) };
        Ok(HttpClient::new(Client(builder.build().map_err(failed)?)))
    }
}

impl HttpService for Client {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.exchange(request))
    }
}

impl Client {
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string();
        let url = reqwest::Url::parse(&url).map_err(|why| HttpError::new(HttpErrorKind::Unknown, why))?;
        let mut sent = reqwest::Request::new(parts.method, url);
        *sent.headers_mut() = parts.headers;
        *sent.body_mut() = Some(reqwest::Body::wrap(body));
        let response = self.0.execute(sent).await.map_err(lost)?;
        let is_short = response.content_length().is_none_or(|length| length <= WHOLE);
        let (parts, body) = hyper::Response::<reqwest::Body>::from(response).into_parts();
        let body = if is_short { received(body).await?.into() } else { HttpResponseBody::new(body.map_err(lost)) };
        Ok(HttpResponse::from_parts(parts, body))
    }
}

async fn received(mut body: reqwest::Body) -> Result<Bytes, HttpError> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(lost)?.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > LONGEST {
            let why = std::io::Error::other("a reply of more than 32 MiB that does not say its length");
            return Err(HttpError::new(HttpErrorKind::Decode, why));
        }
    }
    Ok(bytes.freeze())
}

/// A request whose reply was lost is sent again, whatever it was: contents are named by their digest, and a manifest is only
/// written over the one that was read.
fn lost(error: reqwest::Error) -> HttpError {
    let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
    HttpError::new(kind, error.without_url())
}
