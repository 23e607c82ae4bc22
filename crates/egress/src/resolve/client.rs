//! Asking the host's name servers one question.
//!
//! As a stub resolver does it (RFC 1035, section 7), in the order and with the
//! patience that `resolv.conf` asks for. Written here because the resolver
//! that comes with the library asks on its own for the targets of aliases, and
//! takes a refusal of the first server for the last word.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout};

use super::answer::Found;
use super::config::{Config, Extensions, Families, Rotation, Transport};
use super::{ResolveError, ServerFault};

/// What a datagram may hold without being cut into pieces on any common path.
const PAYLOAD: u16 = 1232;
/// Some servers send more than they were asked to.
const LONGEST: usize = 4096;
/// For how long a server that kept silent is asked last.
const DISTRUST: Duration = Duration::from_secs(30);

/// The name servers of this host.
pub(super) struct Client {
    servers: Vec<Server>,
    /// For one server to answer: so short that in the time for everything each
    /// server is asked once.
    time: Duration,
    config: Config,
    turn: Cell<usize>,
}

struct Server {
    address: SocketAddr,
    silent: Cell<Option<Instant>>,
}

impl Client {
    pub(super) fn new(config: Config, total: Duration) -> Self {
        let count = u32::try_from(config.servers.len()).unwrap_or(u32::MAX);
        let servers = config.servers.iter().map(|address| Server {
            address: *address,
            silent: Cell::new(None),
        });
        Self {
            servers: servers.collect(),
            time: config.time.min(total / count.max(1)),
            config,
            turn: Cell::new(0),
        }
    }

    pub(super) fn families(&self) -> Families {
        self.config.families
    }

    /// Asks one server after the other until one has an answer, also when that
    /// is that there is nothing.
    pub(super) async fn ask(
        &self,
        name: &Name,
        record_type: RecordType,
    ) -> Result<Found, ResolveError> {
        let question = Query::query(name.clone(), record_type);
        let mut failure = ResolveError::TimedOut;
        for _ in 0..self.config.attempts {
            for server in self.in_turn() {
                match timeout(self.time, self.exchange(server.address, &question)).await {
                    Ok(Ok(answer)) => {
                        server.silent.set(None);
                        match refusal(&answer) {
                            None => return Ok(Found::read(&answer, name, record_type)),
                            Some(code) => failure = failed(server, ServerFault::Said(code)),
                        }
                    }
                    Ok(Err(fault)) => {
                        server.distrust();
                        failure = failed(server, fault);
                    }
                    Err(_) => server.distrust(),
                }
            }
        }
        Err(failure)
    }

    /// All servers, those that kept silent lately behind the others.
    fn in_turn(&self) -> Vec<&Server> {
        let start = match self.config.rotation {
            Rotation::Off => 0,
            Rotation::On => self.turn.replace(self.turn.get().wrapping_add(1)),
        };
        let (behind, front) = self.servers.split_at(start % self.servers.len().max(1));
        let mut servers: Vec<&Server> = front.iter().chain(behind).collect();
        servers.sort_by_key(|server| server.was_silent());
        servers
    }

    /// One question to one server, without extensions where it does not know
    /// them.
    async fn exchange(&self, server: SocketAddr, question: &Query) -> Result<Message, ServerFault> {
        let answer = self.send(server, question, self.config.extensions).await?;
        let code = answer.metadata.response_code;
        let confused = matches!(code, ResponseCode::FormErr | ResponseCode::NotImp);
        if confused && self.config.extensions == Extensions::On {
            return self.send(server, question, Extensions::Off).await;
        }
        Ok(answer)
    }

    async fn send(
        &self,
        server: SocketAddr,
        question: &Query,
        extensions: Extensions,
    ) -> Result<Message, ServerFault> {
        let message = message(question, extensions);
        let bytes = message.to_vec().map_err(|_| ServerFault::Malformed)?;
        if self.config.transport == Transport::Udp {
            let answer = over_udp(server, &message, &bytes).await?;
            if !answer.metadata.truncation {
                return Ok(answer);
            }
        }
        over_tcp(server, &message, &bytes).await
    }
}

impl Server {
    fn distrust(&self) {
        self.silent.set(Some(Instant::now()));
    }

    fn was_silent(&self) -> bool {
        self.silent.get().is_some_and(|at| at.elapsed() < DISTRUST)
    }
}

fn failed(server: &Server, fault: ServerFault) -> ResolveError {
    ResolveError::ServerFailed {
        server: server.address,
        fault,
    }
}

/// A code with which another server may do better.
fn refusal(answer: &Message) -> Option<ResponseCode> {
    let code = answer.metadata.response_code;
    (!matches!(code, ResponseCode::NoError | ResponseCode::NXDomain)).then_some(code)
}

/// The question with a number that nobody can guess.
fn message(question: &Query, extensions: Extensions) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(question.clone());
    if extensions == Extensions::On {
        let mut edns = Edns::new();
        edns.set_version(0).set_max_payload(PAYLOAD);
        message.set_edns(edns);
    }
    message
}

/// The kernel picks a port at random, and lets through what comes from the
/// server only.
async fn over_udp(
    server: SocketAddr,
    question: &Message,
    bytes: &[u8],
) -> Result<Message, ServerFault> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(bytes).await?;
    let mut buffer = vec![0; LONGEST];
    loop {
        let length = socket.recv(&mut buffer).await?;
        let Some(answer) = buffer.get(..length) else {
            continue;
        };
        // Late or forged answers are not worth a failure: the right one may
        // still come.
        if answer.get(..2) == bytes.get(..2) {
            return read(answer, question);
        }
    }
}

async fn over_tcp(
    server: SocketAddr,
    question: &Message,
    bytes: &[u8],
) -> Result<Message, ServerFault> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(bytes.len()).map_err(|_| ServerFault::Malformed)?;
    let framed = [&length.to_be_bytes(), bytes].concat();
    stream.write_all(&framed).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await?;
    read(&answer, question)
}

/// An answer to `question`, and to nothing else.
fn read(bytes: &[u8], question: &Message) -> Result<Message, ServerFault> {
    let answer = Message::from_vec(bytes).map_err(|_| ServerFault::Malformed)?;
    let header = &answer.metadata;
    let fits = header.message_type == MessageType::Response
        && header.id == question.metadata.id
        && header.op_code == question.metadata.op_code
        && answer.queries == question.queries;
    if fits || is_bare_refusal(&answer, question) {
        return Ok(answer);
    }
    Err(ServerFault::Malformed)
}

/// Some servers leave out a question that they did not understand.
fn is_bare_refusal(answer: &Message, question: &Message) -> bool {
    answer.metadata.message_type == MessageType::Response
        && answer.metadata.id == question.metadata.id
        && answer.queries.is_empty()
        && refusal(answer).is_some()
}

impl From<io::Error> for ServerFault {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error)
    }
}
