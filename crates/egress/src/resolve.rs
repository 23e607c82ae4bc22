//! Resolving allowed names on the host, the way the host would: its hosts
//! file first, then its name servers.
//!
//! The invariant: for one name exactly that name is asked, as an absolute one.
//! No search list, no other spelling, no target of an alias, nothing that
//! means this machine. Nothing is read or asked before the first name is.

mod answer;
mod cache;
mod client;
mod config;
mod hosts;
mod source;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::{Rc, Weak};
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, RecordType};
use ringfence_policy::{HOST_ALIAS, HostName};
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use answer::{Existence, Found};
use cache::Cache;
use client::Client;
use config::{Config, Families};
use hosts::HostsFile;
use source::{Source, Version};

use crate::names::is_virtual;

/// Longer than that, no client waits.
const TOTAL_TIME: Duration = Duration::from_secs(10);
/// For the addresses of the other family, once there are some of one.
const GRACE: Duration = Duration::from_millis(250);
/// For how long an answer without one of the families is kept.
const KEEP_HALF: Duration = Duration::from_secs(5);
/// More are not tried anyway.
const MOST_ADDRESSES: usize = 16;

/// Why a name has no address.
#[derive(Debug, Error)]
pub(crate) enum ResolveError {
    /// The name servers say so, or it must not be asked for.
    #[error("the name does not exist")]
    NoSuchName,
    /// It exists.
    #[error("the name has no address")]
    NoAddresses,
    /// What the last one did.
    #[error("no name server has an answer: {server} {fault}")]
    ServerFailed {
        /// The name server.
        server: SocketAddr,
        /// What it did.
        fault: ServerFault,
    },
    /// Nobody was asked.
    #[error("the name may not be asked for")]
    Kept,
    /// None of them said anything.
    #[error("no name server answered in time")]
    TimedOut,
    /// Name servers are configured, in a way that cannot be understood.
    #[error("none of the name servers in /etc/resolv.conf can be used")]
    Misconfigured,
}

/// How a name server failed.
#[derive(Debug, Error)]
pub(crate) enum ServerFault {
    /// It said no.
    #[error("answered {0}")]
    Said(ResponseCode),
    /// It could not be reached.
    #[error("cannot be reached: {0}")]
    Unreachable(io::Error),
    /// It cannot be understood.
    #[error("answered what cannot be read")]
    Malformed,
}

/// Resolves names as the host does.
pub(crate) struct Resolver {
    resolv_conf: Source,
    hosts: RefCell<HostsFile>,
    port: u16,
    /// For everything about one name.
    time: Duration,
    servers: RefCell<Option<(Version, Rc<Client>)>>,
    cache: RefCell<Cache>,
    /// Who asks for a name at the moment; others wait for the answer.
    asking: RefCell<HashMap<HostName, Weak<Mutex<()>>>>,
}

impl Resolver {
    /// With the configuration of this host, which is read again whenever it
    /// changes.
    pub(crate) fn system() -> Self {
        Self::new(
            Source::File("/etc/resolv.conf".into()),
            Source::File("/etc/hosts".into()),
            53,
        )
    }

    /// With the given texts of `resolv.conf` and `hosts`, and name servers that
    /// listen on `port`.
    #[cfg(test)]
    pub(crate) fn from_texts(resolv_conf: &str, hosts: &str, port: u16) -> Self {
        Self::new(
            Source::Text(resolv_conf.to_owned()),
            Source::Text(hosts.to_owned()),
            port,
        )
    }

    fn new(resolv_conf: Source, hosts: Source, port: u16) -> Self {
        Self {
            resolv_conf,
            hosts: RefCell::new(HostsFile::new(hosts)),
            port,
            time: TOTAL_TIME,
            servers: RefCell::new(None),
            cache: RefCell::default(),
            asking: RefCell::default(),
        }
    }

    /// The addresses of `name` in the order in which they should be tried, at
    /// least one and at most 16, none of them virtual. They were not judged.
    ///
    /// `may_ask` is called before a question leaves, and can keep it.
    pub(crate) async fn addresses_of(
        &self,
        name: &HostName,
        may_ask: &dyn Fn() -> bool,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        match special(name) {
            Special::Loopback => return in_order(LOOPBACK.to_vec()),
            Special::Nowhere => return Err(ResolveError::NoSuchName),
            Special::Not => {}
        }
        let pinned = self.hosts.borrow_mut().addresses_of(name);
        if !pinned.is_empty() {
            return in_order(pinned);
        }
        let asked = timeout(self.time, self.ask_once(name, may_ask)).await;
        in_order(asked.unwrap_or(Err(ResolveError::TimedOut))?)
    }

    /// Asks, unless somebody else does or has done so.
    async fn ask_once(
        &self,
        name: &HostName,
        may_ask: &dyn Fn() -> bool,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let client = self.client()?;
        let turn = self.turn(name);
        let _mine = turn.lock().await;
        if let Some(known) = self.cache.borrow().get(name, Instant::now()) {
            return known.addresses();
        }
        if !may_ask() {
            return Err(ResolveError::Kept);
        }
        let found = ask_both(&client, name).await?;
        let mut cache = self.cache.borrow_mut();
        cache.put(name, found.clone(), Instant::now());
        found.addresses()
    }

    /// The name servers as they are configured now.
    fn client(&self) -> Result<Rc<Client>, ResolveError> {
        let version = self.resolv_conf.version();
        let mut servers = self.servers.borrow_mut();
        if let Some((known, client)) = &*servers
            && *known == version
        {
            return Ok(Rc::clone(client));
        }
        // What is missing or unreadable counts as empty, as it does in glibc.
        let text = self.resolv_conf.read().unwrap_or_default();
        let config = Config::parse(&text, self.port).ok_or(ResolveError::Misconfigured)?;
        let client = Rc::new(Client::new(config, self.time));
        *servers = Some((version, Rc::clone(&client)));
        // Another network may know other names.
        self.cache.take();
        Ok(client)
    }

    fn turn(&self, name: &HostName) -> Rc<Mutex<()>> {
        let mut asking = self.asking.borrow_mut();
        if let Some(turn) = asking.get(name).and_then(Weak::upgrade) {
            return turn;
        }
        asking.retain(|_, turn| turn.strong_count() > 0);
        let turn = Rc::new(Mutex::new(()));
        asking.insert(name.clone(), Rc::downgrade(&turn));
        turn
    }
}

/// Names that are never asked for.
enum Special {
    Loopback,
    Nowhere,
    Not,
}

const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::LOCALHOST),
];

fn special(name: &HostName) -> Special {
    let top = name.labels_from_top().next();
    match top {
        _ if name.is_localhost() => Special::Loopback,
        // RFC 6761 and RFC 7686: no name server should ever hear of them.
        Some("invalid" | "onion") => Special::Nowhere,
        // It is the host itself, which only the caller can know how to reach.
        _ if name.as_str() == HOST_ALIAS => Special::Nowhere,
        _ => Special::Not,
    }
}

/// Asks for the addresses of both families at once.
async fn ask_both(client: &Client, name: &HostName) -> Result<Found, ResolveError> {
    let name = Name::from_ascii(format!("{name}.")).map_err(|_| ResolveError::NoSuchName)?;
    let v4 = client.ask(&name, RecordType::A);
    let v6 = client.ask(&name, RecordType::AAAA);
    match client.families() {
        Families::V4Only => v4.await,
        Families::BothInTurn => {
            let v4 = v4.await;
            joined(v4, Some(v6.await))
        }
        Families::Both => {
            tokio::pin!(v4, v6);
            tokio::select! {
                v4 = &mut v4 => joined_in_time(v4, v6).await,
                v6 = &mut v6 => joined_in_time(v6, v4).await,
            }
        }
    }
}

type Asked = Result<Found, ResolveError>;

/// Waits for the other family, but not for long when there are addresses.
async fn joined_in_time(first: Asked, other: impl Future<Output = Asked>) -> Asked {
    let enough = first.as_ref().is_ok_and(Found::has_addresses);
    let other = if enough {
        timeout(GRACE, other).await.ok()
    } else {
        Some(other.await)
    };
    joined(first, other)
}

fn joined(first: Asked, other: Option<Asked>) -> Asked {
    match (first, other) {
        (Ok(first), Some(Ok(other))) => Ok(first.and(other)),
        (Ok(half), Some(Err(_)) | None) | (Err(_), Some(Ok(half))) if half.has_addresses() => {
            Ok(half.kept_for_at_most(KEEP_HALF))
        }
        (Err(error), _) | (_, Some(Err(error))) => Err(error),
        (Ok(first), None) => Ok(first),
    }
}

/// The families alternate, the one that is likely to work first (RFC 8305,
/// section 4). An address that stands for a name inside leads nowhere outside.
fn in_order(mut addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, ResolveError> {
    addresses.retain(|address| !is_virtual(*address));
    if addresses.is_empty() {
        return Err(ResolveError::NoAddresses);
    }
    let has_v4 = addresses.iter().any(IpAddr::is_ipv4);
    let has_v6 = addresses.iter().any(IpAddr::is_ipv6);
    let v6_first = has_v6 && (!has_v4 || reaches_v6());
    Ok(alternated(addresses, v6_first))
}

fn alternated(addresses: Vec<IpAddr>, v6_first: bool) -> Vec<IpAddr> {
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == v6_first);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let pairs = std::iter::from_fn(|| match (first.next(), second.next()) {
        (None, None) => None,
        pair => Some([pair.0, pair.1]),
    });
    pairs.flatten().flatten().take(MOST_ADDRESSES).collect()
}

/// Whether this host has a route to the IPv6 internet. Connecting a socket for
/// datagrams looks the route up and sends nothing.
fn reaches_v6() -> bool {
    let anywhere = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1);
    std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
        .and_then(|socket| socket.connect((anywhere, 53)))
        .is_ok()
}

impl Found {
    fn addresses(self) -> Result<Vec<IpAddr>, ResolveError> {
        match self.existence {
            Existence::No => Err(ResolveError::NoSuchName),
            Existence::Yes if self.addresses.is_empty() => Err(ResolveError::NoAddresses),
            Existence::Yes => Ok(self.addresses),
        }
    }
}

#[cfg(test)]
mod tests;
