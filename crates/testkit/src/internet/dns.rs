//! The resolver: answers from the zone over UDP and TCP, and keeps a record
//! of every question before it answers.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hickory_proto::op::{Edns, Message, Metadata, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::zone::{Answer, Content, LONGEST_CHAIN, OverUdp, Zone, canonical};

/// How a question came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In a datagram.
    Udp,
    /// Over a connection.
    Tcp,
}

/// One question to the resolver.
#[derive(Debug, Clone)]
pub struct Query {
    /// The name in lower case, without a dot at its end.
    pub name: String,
    /// The kind of record, such as `AAAA`.
    pub kind: String,
    /// How it came.
    pub transport: Transport,
    /// Which resolver was asked.
    pub to: IpAddr,
    /// When it came.
    pub at: Instant,
}

impl fmt::Display for Query {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.name, self.kind)
    }
}

/// The resolver; its clones are the same one.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    pub(super) zone: Zone,
    log: Arc<Mutex<Vec<Query>>>,
}

/// The start of a datagram that is no question: it is sent back, and what was
/// sent before it has arrived by then.
pub(super) const MARK: &[u8] = b"mark ";

impl Resolver {
    pub(super) fn new(zone: Zone) -> Self {
        Self {
            zone,
            log: Arc::default(),
        }
    }

    pub(super) fn queries(&self) -> Vec<Query> {
        self.lock().clone()
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    pub(super) async fn serve_udp(self, socket: UdpSocket) -> io::Result<()> {
        let socket = Arc::new(socket);
        let to = socket.local_addr()?.ip();
        let mut bytes = vec![0; 65_535];
        loop {
            // An error here tells of a client that did not wait for its answer.
            let Ok((length, from)) = socket.recv_from(&mut bytes).await else {
                continue;
            };
            if bytes[..length].starts_with(MARK) {
                // The other servers first take what is waiting for them.
                tokio::task::yield_now().await;
                let _ = socket.send_to(&bytes[..length], from).await;
            } else if let Some(question) = self.read(&bytes[..length], Transport::Udp, to) {
                let (resolver, socket) = (self.clone(), Arc::clone(&socket));
                tokio::spawn(async move { resolver.answer_udp(&question, &socket, from).await });
            }
        }
    }

    pub(super) async fn serve_tcp(self, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            let resolver = self.clone();
            tokio::spawn(async move { resolver.answer_tcp(stream).await });
        }
    }

    async fn answer_udp(&self, question: &Message, socket: &UdpSocket, from: SocketAddr) {
        let Some((reply, over_udp)) = self.reply(question).await else {
            return;
        };
        let bytes = reply.to_vec().unwrap_or_default();
        let is_long = bytes.len() > usize::from(question.max_payload());
        let bytes = if is_long || over_udp == OverUdp::Truncated {
            reply.truncate().to_vec().unwrap_or_default()
        } else {
            bytes
        };
        let _ = socket.send_to(&bytes, from).await;
    }

    async fn answer_tcp(&self, mut stream: TcpStream) -> io::Result<()> {
        let to = stream.local_addr()?.ip().to_canonical();
        loop {
            let length = usize::from(stream.read_u16().await?);
            let mut bytes = vec![0; length];
            stream.read_exact(&mut bytes).await?;
            let Some(question) = self.read(&bytes, Transport::Tcp, to) else {
                return Ok(());
            };
            let Some((reply, _)) = self.reply(&question).await else {
                continue;
            };
            let bytes = reply.to_vec().unwrap_or_default();
            let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
            stream.write_all(&length.to_be_bytes()).await?;
            stream.write_all(&bytes).await?;
        }
    }

    /// Reads a question and keeps a record of it.
    fn read(&self, bytes: &[u8], transport: Transport, to: IpAddr) -> Option<Message> {
        let question = Message::from_vec(bytes).ok()?;
        for query in &question.queries {
            self.lock().push(Query {
                name: canonical(&query.name().to_ascii()),
                kind: query.query_type().to_string(),
                transport,
                to,
                at: Instant::now(),
            });
        }
        Some(question)
    }

    /// The answer, when its time has come.
    async fn reply(&self, question: &Message) -> Option<(Message, OverUdp)> {
        let query = question.queries.first()?;
        let (name, kind) = (query.name().clone(), query.query_type());
        let answer = self.zone.answer(&name.to_ascii(), kind);
        tokio::time::sleep(answer.delay).await;
        let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
        reply.metadata = Metadata::response_from_request(&question.metadata);
        reply.metadata.recursion_available = true;
        reply.add_query(query.clone());
        if question.edns.is_some() {
            reply.set_edns(Edns::new());
        }
        let over_udp = answer.over_udp;
        reply.metadata.response_code = self.fill(&mut reply, name, kind, answer)?;
        Some((reply, over_udp))
    }

    /// Adds the records of an answer, through all aliases; `None` for silence.
    fn fill(
        &self,
        reply: &mut Message,
        mut name: Name,
        kind: RecordType,
        mut answer: Answer,
    ) -> Option<ResponseCode> {
        for _ in 0..LONGEST_CHAIN {
            match answer.content {
                Content::Addresses(addresses) => {
                    let data = addresses.into_iter().filter_map(|one| record_of(one, kind));
                    reply.add_answers(
                        data.map(|data| Record::from_rdata(name.clone(), answer.ttl, data)),
                    );
                    return Some(ResponseCode::NoError);
                }
                Content::Alias(target) => {
                    let target = Name::from_ascii(format!("{target}.")).ok()?;
                    let data = RData::CNAME(CNAME(target.clone()));
                    reply.add_answer(Record::from_rdata(name, answer.ttl, data));
                    answer = self.zone.answer(&target.to_ascii(), kind);
                    name = target;
                }
                Content::NoSuchName => return Some(ResponseCode::NXDomain),
                Content::ServerFailure => return Some(ResponseCode::ServFail),
                Content::Silence => return None,
            }
        }
        Some(ResponseCode::ServFail)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Query>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn record_of(address: IpAddr, kind: RecordType) -> Option<RData> {
    match (address, kind) {
        (IpAddr::V4(four), RecordType::A) => Some(RData::A(A(four))),
        (IpAddr::V6(six), RecordType::AAAA) => Some(RData::AAAA(AAAA(six))),
        _ => None,
    }
}
