//! For tests: a client behind an exit, and servers under the test's control.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringfence_audit::{ConnectionId, Decided, Protocol, Recorder, RunId, Verdict, Via};
use ringfence_policy::{
    LayerKind, Origin, PathContext, Policy, Resolved, Target, read_yaml, resolve,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::attempt::Attempt;
use crate::carry::carry;
use crate::exit::{Exit, Settings};
use crate::inbox::Inbox;
use crate::proxy;
use crate::resolve::Resolver;

/// Every name of a test is this machine.
const HOSTS: &str = "127.0.0.1 a.test b.test www.a.test evil.test";

/// Runs a test on one thread; one that hangs fails.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let limit = Duration::from_secs(30);
        tokio::time::timeout(limit, test)
            .await
            .expect("the test hangs");
    });
}

/// A policy that allows `rules`, and this machine's address behind them.
pub(crate) fn policy(rules: &[String]) -> Arc<Resolved<Policy>> {
    let entries = rules.join("\n    - ");
    policy_of(&format!(
        "version: 1\nnetwork:\n  allow:\n    - {entries}\n"
    ))
}

/// A policy from its text.
pub(crate) fn policy_of(text: &str) -> Arc<Resolved<Policy>> {
    let context = PathContext {
        home: "/home/u".into(),
        base: "/srv".into(),
    };
    let layer = read_yaml(text, &Origin::new(LayerKind::Policy, "test"), &context).unwrap();
    Arc::new(resolve(vec![layer], None).unwrap())
}

/// An exit, and a server that is reached through it.
pub(crate) struct Yard {
    pub(crate) exit: Rc<Exit>,
    pub(crate) server: TcpListener,
    pub(crate) port: u16,
    decided: Arc<Mutex<Vec<Decided>>>,
}

impl Yard {
    /// With rules that may name the server's port.
    pub(crate) async fn new(rules: impl Fn(u16) -> Vec<String>) -> Self {
        Self::with(rules, Settings::default()).await
    }

    /// With `a.test` and `b.test` allowed.
    pub(crate) async fn open() -> Self {
        Self::new(|port| {
            vec![
                format!("a.test:{port}"),
                format!("b.test:{port}"),
                here(port),
            ]
        })
        .await
    }

    pub(crate) async fn with(rules: impl Fn(u16) -> Vec<String>, settings: Settings) -> Self {
        Self::under(|port| policy(&rules(port)), settings).await
    }

    /// Under any policy.
    pub(crate) async fn under(
        policy: impl Fn(u16) -> Arc<Resolved<Policy>>,
        settings: Settings,
    ) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let decided: Arc<Mutex<Vec<Decided>>> = Arc::default();
        let told = Arc::clone(&decided);
        let recorder = Recorder::new(None, RunId::from_bits(1), None).observed_by(Some(Box::new(
            move |decided: &Decided| told.lock().unwrap().push(decided.clone()),
        )));
        let resolver = Resolver::from_texts("", HOSTS, 1);
        let exit = Exit::new(policy(port), Arc::new(recorder), resolver, settings);
        Self {
            exit: Rc::new(exit),
            server,
            port,
            decided,
        }
    }

    /// A client of the loopback proxy.
    pub(crate) async fn proxied(&self) -> TcpStream {
        let (client, inside) = pair().await;
        let exit = Rc::clone(&self.exit);
        tokio::task::spawn_local(proxy::serve(inside, ConnectionId(1), None, exit));
        client
    }

    /// A client that knows of no proxy and dialled `host`.
    pub(crate) async fn dialled(&self, host: &str) -> TcpStream {
        let (client, inside) = pair().await;
        let attempt = self.attempt(host);
        let exit = Rc::clone(&self.exit);
        tokio::task::spawn_local(carry(inside, Inbox::default(), attempt, exit));
        client
    }

    /// The same, when it has already said this.
    pub(crate) async fn dialled_saying(&self, host: &str, bytes: &[u8]) -> TcpStream {
        let (mut client, inside) = pair().await;
        send(&mut client, bytes).await;
        let attempt = self.attempt(host);
        let exit = Rc::clone(&self.exit);
        tokio::task::spawn_local(carry(inside, Inbox::default(), attempt, exit));
        client
    }

    fn attempt(&self, host: &str) -> Attempt {
        Attempt {
            connection: ConnectionId(1),
            via: Via::Transparent,
            process: None,
            target: Target::parse(host).unwrap(),
            port: self.port,
            spoken: Protocol::Tcp,
            http: None,
        }
    }

    /// A client that has a tunnel to `host`, and the server's end of it.
    pub(crate) async fn tunnelled(&self, host: &str) -> (TcpStream, TcpStream) {
        let mut client = self.proxied().await;
        send(
            &mut client,
            &format!("CONNECT {host}:{} HTTP/1.1\r\n\r\n", self.port),
        )
        .await;
        let server = self.accept().await;
        let answer = head(&mut client).await;
        assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\n");
        (client, server)
    }

    pub(crate) async fn accept(&self) -> TcpStream {
        self.server.accept().await.unwrap().0
    }

    /// Whether somebody has connected to the server and not been accepted.
    pub(crate) fn is_waited_for(&self) -> bool {
        rustix::net::accept(&self.server).is_ok()
    }

    /// Host and reason of everything that was refused.
    pub(crate) fn refused(&self) -> Vec<(String, String)> {
        let decided = self.decided.lock().unwrap();
        let refused = decided.iter().filter(|one| one.verdict == Verdict::Refused);
        refused
            .map(|one| {
                let host = one.host.as_ref().map(ToString::to_string);
                let address = one.address.map(|address| address.to_string());
                (host.or(address).unwrap_or_default(), one.reason.to_string())
            })
            .collect()
    }

    /// What was attached to everything that was allowed.
    pub(crate) fn credentials(&self) -> Vec<Option<String>> {
        let decided = self.decided.lock().unwrap();
        let allowed = decided.iter().filter(|one| one.verdict == Verdict::Allowed);
        let requests = allowed.filter(|one| one.method.is_some());
        let text = |one: &Decided| one.credential.as_ref().map(ToString::to_string);
        requests.map(text).collect()
    }

    /// Method and path of everything that was allowed.
    pub(crate) fn allowed(&self) -> Vec<(String, String)> {
        let decided = self.decided.lock().unwrap();
        let allowed = decided.iter().filter(|one| one.verdict == Verdict::Allowed);
        let text = |text: Option<String>| text.unwrap_or_default();
        allowed
            .map(|one| {
                let method = one.method.as_ref().map(ToString::to_string);
                let path = one.path.as_ref().map(ToString::to_string);
                (text(method), text(path))
            })
            .collect()
    }
}

/// The rule that opens this machine's own address.
pub(crate) fn here(port: u16) -> String {
    format!("{{cidr: 127.0.0.1/32, ports: [{port}]}}")
}

/// Two ends of one connection.
pub(crate) async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (inside, _) = listener.accept().await.unwrap();
    (client, inside)
}

pub(crate) async fn send(stream: &mut TcpStream, text: impl AsRef<[u8]>) {
    stream.write_all(text.as_ref()).await.unwrap();
}

/// Reads exactly `text`.
pub(crate) async fn expect(stream: &mut TcpStream, text: impl AsRef<[u8]>) {
    let mut found = vec![0; text.as_ref().len()];
    let read = stream.read_exact(&mut found).await;
    let shown = String::from_utf8_lossy(&found);
    read.unwrap_or_else(|error| panic!("{error} at {shown:?}"));
    assert_eq!(shown, String::from_utf8_lossy(text.as_ref()));
}

/// Reads up to an empty line.
pub(crate) async fn head(stream: &mut TcpStream) -> String {
    let mut found = Vec::new();
    while !found.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await;
        let shown = String::from_utf8_lossy(&found).into_owned();
        found.push(byte.unwrap_or_else(|error| panic!("{error} after {shown:?}")));
    }
    String::from_utf8(found).unwrap()
}

/// Reads to the end of the connection.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut found = Vec::new();
    stream.read_to_end(&mut found).await.unwrap();
    String::from_utf8_lossy(&found).into_owned()
}

/// Whether the connection ends without another byte, by a reset or not.
pub(crate) async fn is_over(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0]).await, Ok(0) | Err(_))
}
