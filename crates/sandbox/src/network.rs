//! What the rest of the program gets of a sandbox's network: the sockets that
//! everything inside ends at, and word of who connected.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringfence_sys::{Channel, Errno, Received};
use serde::{Deserialize, Serialize};

/// The HTTP proxy's port on the sandbox's loopback.
pub const HTTP_PROXY_PORT: u16 = 3128;
/// The SOCKS proxy's port on the sandbox's loopback.
pub const SOCKS_PROXY_PORT: u16 = 1080;

/// Sockets of the sandbox's network that are served from outside. As long as
/// nobody serves them, nothing leaves.
#[derive(Debug)]
pub struct Inlets {
    /// TCP listeners; the local address of what they accept is where the
    /// client wanted to go.
    pub transparent: Vec<OwnedFd>,
    /// TCP listeners on the sandbox's loopback, for clients that know of a
    /// proxy.
    pub proxies: Vec<OwnedFd>,
    /// UDP sockets for questions to a name server at any address.
    pub names: Vec<OwnedFd>,
    /// Who connected.
    pub callers: Callers,
}

/// A connection that a process inside made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialled {
    /// The client's end of it.
    pub local: SocketAddr,
    /// The process, as the sandbox counts.
    pub pid: u32,
    /// The program it runs.
    pub executable: Option<String>,
    /// Its arguments, each followed by a NUL; `None` if there are too many.
    pub arguments: Option<Vec<u8>>,
}

/// Word of who connected, in the order of the connections.
#[derive(Debug)]
pub struct Callers(pub(crate) Channel);

impl Callers {
    /// Readable when [`Self::next`] has something.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The next one, if there is one.
    pub fn next(&self) -> Result<Option<Dialled>, Errno> {
        match self.0.try_receive()? {
            Received::Message(bytes, _) => Ok(Notice::read(&bytes)),
            Received::Nothing => Ok(None),
            Received::Closed => Err(Errno::PIPE),
        }
    }
}

/// A [`Dialled`] as it travels: a line of JSON, then the arguments.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Notice {
    local: SocketAddr,
    pid: u32,
    executable: Option<String>,
    arguments: bool,
}

impl Notice {
    fn read(bytes: &[u8]) -> Option<Dialled> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let notice: Self = serde_json::from_slice(&bytes[..end]).ok()?;
        Some(Dialled {
            local: notice.local,
            pid: notice.pid,
            executable: notice.executable,
            arguments: notice.arguments.then(|| bytes[end + 1..].to_vec()),
        })
    }
}

impl Dialled {
    /// The message that carries it.
    pub(crate) fn to_message(&self) -> Option<Vec<u8>> {
        let notice = Notice {
            local: self.local,
            pid: self.pid,
            executable: self.executable.clone(),
            arguments: self.arguments.is_some(),
        };
        let mut bytes = serde_json::to_vec(&notice).ok()?;
        bytes.push(b'\n');
        bytes.extend(self.arguments.iter().flatten());
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_caller_arrives_as_it_was() {
        for arguments in [None, Some(b"curl\0-d\0a\nb\0".to_vec())] {
            let dialled = Dialled {
                local: "127.0.0.1:40000".parse().unwrap(),
                pid: 7,
                executable: Some("/usr/bin/cu\nrl".to_owned()),
                arguments,
            };
            assert_eq!(Notice::read(&dialled.to_message().unwrap()), Some(dialled));
        }
        assert_eq!(Notice::read(b"nonsense"), None);
    }
}
