//! Connecting and binding sockets.
//!
//! The network namespace keeps packets in; what it does not cover is a Unix
//! socket of the host that lies in a visible folder. Only those bound by
//! processes of this sandbox may be connected to.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;

use ringfence_sys::seccomp::Answer;
use ringfence_sys::{self as sys, Errno};
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::net::{AddressFamily, SocketAddrUnix};

use super::caller::{Caller, Spot, as_descriptor};
use super::{Broker, Done, Outcome, value};
use crate::view::FileId;
use crate::wire::{Operation, Refusal, RefusalKind};

/// The largest socket address (`struct sockaddr_storage`).
const LARGEST_ADDRESS: u64 = 128;

/// An address as the caller gave it.
enum Address {
    /// A path.
    Path(Vec<u8>),
    /// A name in the sandbox's own abstract space, or none at all.
    OwnName(SocketAddrUnix),
    /// An internet address.
    Internet(SocketAddr),
    /// Anything else: the kernel says what is wrong with it.
    Other(Vec<u8>),
}

impl Address {
    /// Whether a socket that is bound to it may get a port of the internet: the
    /// kernel takes no family at all for the older one.
    fn may_take_a_port(&self) -> bool {
        match self {
            Self::Internet(_) => true,
            Self::Other(bytes) => bytes.starts_with(&[0, 0]),
            Self::Path(_) | Self::OwnName(_) => false,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", String::from_utf8_lossy(path)),
            Self::OwnName(name) => match name.abstract_name() {
                Some(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
                None => f.write_str("no name"),
            },
            Self::Internet(address) => write!(f, "{address}"),
            Self::Other(bytes) => {
                let family = bytes.get(..2).and_then(|bytes| bytes.try_into().ok());
                write!(f, "family {}", family.map_or(0, u16::from_ne_bytes))
            }
        }
    }
}

impl Broker<'_> {
    pub(super) fn connect(
        &mut self,
        caller: &Caller<'_>,
        number: u64,
        address: u64,
        length: u64,
    ) -> Outcome {
        let (socket, address) = self.socket_and_address(caller, number, (address, length))?;
        match address {
            Address::Path(path) => {
                let place = self.own_socket(caller, &path)?;
                let link = format!("/proc/self/fd/{}", place.as_raw_fd());
                let target = SocketAddrUnix::new(link.as_str())?;
                self.peers.connects(&socket, caller.process()?)?;
                self.connect_slowly(caller, socket, move |socket| {
                    let connected = rustix::net::connect(socket, &target);
                    drop(place);
                    connected
                })
            }
            Address::OwnName(name) => {
                self.peers.connects(&socket, caller.process()?)?;
                self.connect_slowly(caller, socket, move |socket| {
                    rustix::net::connect(socket, &name)
                })
            }
            Address::Internet(_) if self.is_offline() => Ok(Done::Offline),
            Address::Internet(address) => {
                let outbox = self.workers.outbox();
                let word = self.word_of(caller, &socket, address)?;
                self.connect_slowly(caller, socket, move |socket| {
                    let connected = rustix::net::connect(socket, &address);
                    if let Some(word) = word
                        && matches!(connected, Ok(()) | Err(Errno::INPROGRESS))
                    {
                        word.send(socket);
                    }
                    if let Err(errno) = connected
                        && let Some(refusal) = network_refusal(address, errno)
                    {
                        outbox
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(refusal);
                    }
                    connected
                })
            }
            Address::Other(bytes) => self.connect_slowly(caller, socket, move |socket| {
                sys::connect_raw(socket.as_fd(), &bytes)
            }),
        }
    }

    fn connect_slowly(
        &mut self,
        caller: &Caller<'_>,
        socket: OwnedFd,
        connect: impl FnOnce(&OwnedFd) -> Result<(), Errno> + Send + 'static,
    ) -> Outcome {
        // Whether it blocks is a flag that code inside can change at any time,
        // and the init must never wait for it.
        let may_wait =
            rustix::net::sockopt::socket_type(&socket)? != rustix::net::SocketType::DGRAM;
        let operation = move || connect(&socket).map(|()| Answer::Value(0));
        if may_wait {
            self.workers.run(&self.listener, caller, operation)?;
            return Ok(Done::Later);
        }
        operation().map(Done::Now)
    }

    /// The caller's socket, which must be of its own network, and an address.
    fn socket_and_address(
        &mut self,
        caller: &Caller<'_>,
        number: u64,
        (address, length): (u64, u64),
    ) -> Result<(OwnedFd, Address), Errno> {
        let address = read_address(caller, address, length)?;
        self.subject.says(address.to_string());
        let socket = caller.open_file(as_descriptor(number))?;
        self.own_network(&socket)?;
        Ok((socket, address))
    }

    /// A socket of another network, handed in by somebody, stays as it is.
    fn own_network(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        let is_foreign = match (sys::namespace_of(socket.as_fd()), self.network) {
            (Ok(its), Some(own)) => its != own,
            // A kernel that cannot tell.
            (Err(Errno::NOPROTOOPT), _) | (_, None) => false,
            (Err(errno), _) => return Err(errno),
        };
        if !is_foreign {
            return Ok(());
        }
        self.note(Refusal::new(
            RefusalKind::Socket,
            Operation::Connect,
            "a socket that was handed in",
            "socket of the host",
        ));
        Err(Errno::ACCESS)
    }

    /// The socket at `path`, if one of this sandbox is bound to it.
    ///
    /// Else the answer is that nobody listens there, whoever does outside: that is true of this
    /// network, tells nothing about the host's, and lets programs take away what they left behind.
    fn own_socket(&mut self, caller: &Caller<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
        let path = OsStr::from_bytes(path);
        let place = caller.open_existing(path)?;
        let status = rustix::fs::fstat(&place)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        let bound = self.bound.socket_of(FileId::of_stat(&status));
        if self.is_bound_still(&status, bound)? {
            return Ok(place);
        }
        if bound.is_none() {
            let subject = path.to_string_lossy();
            self.note(Refusal::new(
                RefusalKind::Socket,
                Operation::Connect,
                &subject,
                "socket from outside this run",
            ));
        }
        Err(Errno::CONNREFUSED)
    }

    /// Whether a socket of this sandbox is bound to the file; `bound` is the
    /// one that was.
    fn is_bound_still(&self, file: &Stat, bound: Option<u32>) -> Result<bool, Errno> {
        if let Some(socket) = bound
            && self.sockets.is_bound_to(socket, file)?
        {
            return Ok(true);
        }
        self.sockets.is_bound_here(file)
    }

    pub(super) fn bind(
        &mut self,
        caller: &Caller<'_>,
        number: u64,
        address: u64,
        length: u64,
    ) -> Outcome {
        let (socket, address) = self.socket_and_address(caller, number, (address, length))?;
        if self.is_offline() && address.may_take_a_port() {
            return Ok(Done::Offline);
        }
        match address {
            Address::Path(path) => self.bind_path(caller, &socket, &path)?,
            Address::OwnName(name) => rustix::net::bind(&socket, &name)?,
            Address::Internet(address) => rustix::net::bind(&socket, &address)?,
            Address::Other(bytes) => sys::bind_raw(socket.as_fd(), &bytes)?,
        }
        value(0)
    }

    fn bind_path(
        &mut self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        path: &[u8],
    ) -> Result<(), Errno> {
        let binding = match caller.binding(OsStr::from_bytes(path)) {
            Err(Errno::BUSY) => return Err(Errno::ADDRINUSE),
            other => other?,
        };
        let spot = &binding.spot;
        // What is recorded is the name that is made, not how it was written.
        self.subject.clear();
        self.judge(Operation::Bind, spot)?;
        self.disk.admit_name()?;
        binding.bind(socket, caller.umask()?)?;
        self.disk.made_name(&spot.folder);
        // Another sandbox may have moved something on the way.
        self.settle(Operation::Bind, spot, || {
            let _ = rustix::fs::unlinkat(&spot.folder, &spot.name, AtFlags::empty());
        })?;
        self.remember_bound(socket, spot)
    }

    /// Remembers the file that was just bound, if it still has its name:
    /// another sandbox may have put its own there. Both lie in one directory,
    /// so on one file system.
    fn remember_bound(&mut self, socket: &OwnedFd, spot: &Spot) -> Result<(), Errno> {
        let number = u32::try_from(rustix::fs::fstat(socket)?.st_ino);
        if let (Ok(number), Ok(Some(file))) = (number, spot.status())
            && self.sockets.is_bound_to(number, &file)?
        {
            self.bound.remember(FileId::of_stat(&file), number);
        }
        Ok(())
    }
}

fn read_address(caller: &Caller<'_>, address: u64, length: u64) -> Result<Address, Errno> {
    // The kernel takes the length as an `int`.
    let length = length & 0xffff_ffff;
    if !(2..=LARGEST_ADDRESS).contains(&length) {
        return Err(Errno::INVAL);
    }
    let bytes = caller.bytes(address, usize::try_from(length).map_err(|_| Errno::INVAL)?)?;
    parse_address(bytes)
}

fn parse_address(bytes: Vec<u8>) -> Result<Address, Errno> {
    let family = AddressFamily::from_raw(u16::from_ne_bytes([bytes[0], bytes[1]]));
    match family {
        AddressFamily::UNIX if bytes.len() > 110 => Err(Errno::INVAL),
        AddressFamily::UNIX => match &bytes[2..] {
            [] => Ok(Address::OwnName(SocketAddrUnix::new_unnamed())),
            [0, name @ ..] => Ok(Address::OwnName(SocketAddrUnix::new_abstract_name(name)?)),
            path => {
                let end = path
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap_or(path.len());
                Ok(Address::Path(path[..end].to_vec()))
            }
        },
        AddressFamily::INET if bytes.len() >= 16 => {
            let ip: [u8; 4] = bytes[4..8].try_into().map_err(|_| Errno::INVAL)?;
            Ok(Address::Internet(SocketAddr::new(
                IpAddr::from(ip),
                port(&bytes),
            )))
        }
        // Without the scope it is as long as in RFC 2133, which the kernel takes.
        AddressFamily::INET6 if bytes.len() >= 24 => {
            let ip: [u8; 16] = bytes[8..24].try_into().map_err(|_| Errno::INVAL)?;
            let flow = u32::from_be_bytes(bytes[4..8].try_into().map_err(|_| Errno::INVAL)?);
            let scope = bytes.get(24..28).map_or(Ok([0; 4]), TryInto::try_into);
            let scope = u32::from_ne_bytes(scope.map_err(|_| Errno::INVAL)?);
            Ok(Address::Internet(
                std::net::SocketAddrV6::new(ip.into(), port(&bytes), flow, scope).into(),
            ))
        }
        _ => Ok(Address::Other(bytes)),
    }
}

fn port(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[2], bytes[3]])
}

/// What the closed network answers is a refusal; what a server of the sandbox
/// answers is not.
fn network_refusal(address: SocketAddr, errno: Errno) -> Option<Refusal> {
    let closed = matches!(
        errno,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN
    );
    (closed && !address.ip().is_loopback()).then(|| {
        Refusal::new(
            RefusalKind::Network,
            Operation::Connect,
            &address.to_string(),
            "network is closed",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(rest: &[u8]) -> Result<Address, Errno> {
        let mut bytes = 1u16.to_ne_bytes().to_vec();
        bytes.extend_from_slice(rest);
        parse_address(bytes)
    }

    #[test]
    fn unix_addresses_end_at_the_first_nul() {
        assert!(matches!(unix(b"/a\0/b"), Ok(Address::Path(path)) if path == b"/a"));
        assert!(matches!(unix(b"\0name"), Ok(Address::OwnName(_))));
        assert!(matches!(unix(b""), Ok(Address::OwnName(_))));
        assert!(matches!(unix(&[b'a'; 120]), Err(Errno::INVAL)));
    }

    #[test]
    fn internet_addresses_are_read_in_network_order() {
        let mut bytes = 2u16.to_ne_bytes().to_vec();
        bytes.extend([0x01, 0xbb, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(
            matches!(parse_address(bytes), Ok(Address::Internet(a)) if a.to_string() == "192.0.2.7:443")
        );
    }

    #[test]
    fn short_addresses_are_left_to_the_kernel() {
        let bytes = 2u16.to_ne_bytes().to_vec();
        assert!(matches!(parse_address(bytes), Ok(Address::Other(_))));
    }

    #[test]
    fn only_the_closed_network_is_a_refusal() {
        let outside = "192.0.2.7:443".parse().unwrap();
        assert!(network_refusal(outside, Errno::NETUNREACH).is_some());
        assert!(network_refusal(outside, Errno::CONNREFUSED).is_none());
        assert!(network_refusal("127.0.0.1:1".parse().unwrap(), Errno::NETUNREACH).is_none());
    }
}
