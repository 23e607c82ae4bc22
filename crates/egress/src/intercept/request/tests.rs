//! Requests of clients inside, through TLS that is looked into, to a server
//! that tells what it got.

mod agreement;
mod bodies;
mod credentials;
mod passing;
mod placeholders;
mod scrubbing;
mod websocket;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version};
use hyper::body::Incoming;
use ringfence_policy::{Policy, Resolved};

use crate::exit::Settings;
use crate::intercept::body::LocalBody;
use crate::intercept::testing::{Client, Rig, Shown, inspected, says};
use crate::secret::{Credentials, Placeholder, Secret, SecretError, Vault};
use crate::testing::policy_of;

const SECRET: &str = "s3cret-Value/0123+4567";
const PLACEHOLDER: &str = "rf-0123456789abcdefghijklmnopqrstuv";
const OTHER_PLACEHOLDER: &str = "rf-zyxwvutsrqponmlkjihgfedcba987654";
const A: Shown = Shown::For("a.test");

/// What a server got.
#[derive(Debug, Clone)]
struct Got {
    target: String,
    headers: HeaderMap,
}

/// Gives what it is told to.
struct TestVault {
    values: Mutex<HashMap<&'static str, Result<&'static str, SecretError>>>,
    asked: Mutex<Vec<String>>,
}

impl Vault for TestVault {
    fn secret(&self, service: &str) -> Result<Secret, SecretError> {
        self.asked.lock().unwrap().push(service.to_owned());
        match self.values.lock().unwrap().get(service) {
            Some(Ok(value)) => Ok(Secret::new((*value).to_owned())),
            Some(Err(error)) => Err(error.clone()),
            None => Err(SecretError::Missing("nobody has it".to_owned())),
        }
    }
}

impl TestVault {
    fn holds(&self, service: &'static str, value: &'static str) {
        self.values.lock().unwrap().insert(service, Ok(value));
    }

    fn was_asked(&self) -> bool {
        !self.asked.lock().unwrap().is_empty()
    }
}

/// A sandbox with a credential `forge` for `a.test`, and another, `other`, for
/// a host that is never asked.
struct Stage {
    rig: Rig,
    vault: Arc<TestVault>,
    got: Rc<RefCell<Vec<Got>>>,
}

impl Stage {
    /// With a server that gives bodies back, or else the head of the request.
    async fn new(how: &str) -> Self {
        Self::answering(how, echo).await
    }

    async fn answering(
        how: &str,
        answer: impl Fn(Request<Incoming>) -> Response<LocalBody> + 'static,
    ) -> Self {
        Self::with(|port| policy(port, how), answer).await
    }

    /// Under any policy.
    async fn under(policy: impl Fn(u16) -> Arc<Resolved<Policy>>) -> Self {
        Self::with(policy, echo).await
    }

    async fn with(
        policy: impl Fn(u16) -> Arc<Resolved<Policy>>,
        answer: impl Fn(Request<Incoming>) -> Response<LocalBody> + 'static,
    ) -> Self {
        let vault = Arc::new(TestVault {
            values: Mutex::default(),
            asked: Mutex::default(),
        });
        vault.holds("forge", SECRET);
        let placeholder = |service: &str, text: &str| Placeholder {
            service: service.to_owned(),
            text: text.to_owned(),
        };
        let settings = Settings {
            credentials: Some(Credentials {
                vault: Arc::clone(&vault) as Arc<dyn Vault>,
                placeholders: vec![
                    placeholder("forge", PLACEHOLDER),
                    placeholder("other", OTHER_PLACEHOLDER),
                ],
            }),
            ..Settings::default()
        };
        let got: Rc<RefCell<Vec<Got>>> = Rc::default();
        let told = Rc::clone(&got);
        let answer = move |request: Request<Incoming>| {
            let target = request.uri().path_and_query().unwrap().to_string();
            let headers = request.headers().clone();
            told.borrow_mut().push(Got { target, headers });
            answer(request)
        };
        let rig = Rig::under(policy, settings, Box::new(answer)).await;
        Self { rig, vault, got }
    }

    /// Serves as `a.test`, in all versions of HTTP.
    fn serving(self, alpn: &[&str]) -> Self {
        self.rig.serve(A, alpn);
        self
    }

    async fn client(&self, alpn: &[&str]) -> Client {
        self.rig.client("a.test", alpn).await
    }

    /// A request for `a.test` that `client` can send.
    fn request(&self, client: &Client, path: &str) -> Request<LocalBody> {
        client.request("a.test", self.rig.yard.port, path)
    }

    /// What the server got last.
    fn last(&self) -> Got {
        self.got.borrow().last().unwrap().clone()
    }

    /// Whether the server was asked anything.
    fn is_untouched(&self) -> bool {
        self.got.borrow().is_empty()
    }

    fn refused(&self) -> Vec<String> {
        self.rig.refused()
    }
}

/// Both hosts are looked into; `how` is the rest of the credential's entry.
fn policy(port: u16, how: &str) -> Arc<Resolved<Policy>> {
    let rules = inspected(port).join("\n    - ");
    policy_of(&format!(
        "version: 1\nnetwork:\n  allow:\n    - {rules}\n    - c.test\n\
         credentials:\n  - {{service: forge, env: FORGE_TOKEN, hosts: [a.test], ports: [{port}], {how}}}\n  \
         - {{service: other, env: OTHER_TOKEN, hosts: [c.test], bearer: true}}\n"
    ))
}

/// A body back as it came, or the head as text.
fn echo(request: Request<Incoming>) -> Response<LocalBody> {
    use http_body::Body;
    if !request.body().is_end_stream() {
        let mut response = Response::new(LocalBody::incoming(request.into_body()));
        let kind = http::HeaderValue::from_static("text/plain");
        response.headers_mut().insert("content-type", kind);
        return response;
    }
    let mut text = format!("{} {}\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        text.extend([name.as_str(), ": ", value.to_str().unwrap(), "\n"]);
    }
    let mut response = says(text);
    let kind = http::HeaderValue::from_static("text/plain");
    response.headers_mut().insert("content-type", kind);
    response
}

/// A POST with this body.
fn post(client: &Client, port: u16, path: &str, body: LocalBody) -> Request<LocalBody> {
    let mut request = client.request("a.test", port, path).map(|_| body);
    *request.method_mut() = http::Method::POST;
    request
}

/// The frames of a body, one by one.
fn frames(parts: &[&'static str]) -> LocalBody {
    let parts: std::collections::VecDeque<Bytes> =
        parts.iter().map(|part| Bytes::from(*part)).collect();
    LocalBody::new(Frames(parts))
}

struct Frames(std::collections::VecDeque<Bytes>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = crate::intercept::body::BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let next = self.0.pop_front().map(http_body::Frame::data);
        std::task::Poll::Ready(next.map(Ok))
    }
}

fn is_http2(client: &Client) -> bool {
    client.request("a.test", 1, "/").version() == Version::HTTP_2
}
