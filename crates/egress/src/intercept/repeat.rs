//! Requests that may be sent twice, because the connection for the first time
//! was closed by its server at the same moment.

use http::{Method, Request};
use http_body::Body;

use super::body::RequestBody;

/// A request without its body, of which it has none.
pub(super) struct Repeat(Request<()>);

impl Repeat {
    /// What to send again, if it does no harm twice.
    pub(super) fn of(request: &Request<RequestBody>) -> Option<Self> {
        let method = request.method();
        let is_harmless = method.is_idempotent() && *method != Method::TRACE;
        if !is_harmless || !request.body().is_end_stream() {
            return None;
        }
        let mut copy = Request::new(());
        copy.method_mut().clone_from(method);
        copy.uri_mut().clone_from(request.uri());
        *copy.version_mut() = request.version();
        copy.headers_mut().clone_from(request.headers());
        copy.extensions_mut().clone_from(request.extensions());
        Some(Self(copy))
    }

    pub(super) fn request(self) -> Request<RequestBody> {
        self.0.map(|()| RequestBody::empty())
    }
}
