//! Transports that bind values in requests and put today's values into responses.

use super::{Vars, replaced, slots};
use crate::platform::clock::BoxFuture;
use crate::platform::lock::lock;
use crate::transport::{HttpRequest, HttpResponse, Service, Transport, TransportError, raw};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Binds requests on their way to `inner`, and puts today's values back into what comes from there.
pub(crate) struct Bound {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) vars: Arc<Vars>,
}

impl Transport for Bound {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let as_before = self.vars.recognised(request.service.as_str(), (&request.path, &request.body));
            let declared = matches!(request.service, Service::Declared(_));
            let bound = self.vars.bind(&request.body);
            let path = if declared { self.vars.bind_path(&request.path) } else { request.path };
            let (path, body) = as_before.unwrap_or((path, bound));
            let body = body.into();
            let response = self.inner.send(HttpRequest { path, body, ..request }).await?;
            let body = self.vars.put_back(&response.body, &self.vars.recorded);
            self.vars.replayed.store(true, Ordering::SeqCst);
            Ok(HttpResponse { body, ..response })
        })
    }
}

/// Puts today's values into the answers of a recording that is held.
pub(crate) struct Renewed {
    pub(crate) inner: Arc<dyn Transport>,
    /// The values in the answers of `inner`.
    pub(crate) recorded: BTreeMap<String, Vec<String>>,
    pub(crate) vars: Arc<Vars>,
}

impl Transport for Renewed {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let response = self.inner.send(request).await?;
            let body = self.vars.put_back(&response.body, &self.recorded);
            Ok(HttpResponse { body, ..response })
        })
    }
}

/// Gives bound requests their values again, on their way to a live service.
pub(crate) struct Unbound {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) vars: Arc<Vars>,
}

impl Transport for Unbound {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let body = self.vars.unbind(&request.body);
            let path = replaced(&request.path, &slots(&lock(&self.vars.generated))).into_owned();
            // A value of the recording that the agent said again is today's to a live service.
            let kind = raw::content_type(&request.headers);
            let sent = request.sent.filter(|sent| raw::packed(sent, kind) == body);
            self.inner.send(HttpRequest { path, body: body.into(), sent, ..request }).await
        })
    }
}
