//! Which Unix sockets are bound in this network namespace.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::{Errno, Result};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLM_F_REQUEST: u16 = 1;
const UDIAG_SHOW_VFS: u32 = 2;
const UDIAG_SHOW_PEER: u32 = 4;
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_PEER: u16 = 2;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;
const DIAG_MESSAGE: usize = 16;

/// A netlink socket to ask with; opened before the system-call filter, which
/// refuses this family.
#[derive(Debug)]
pub struct UnixDiag(OwnedFd);

impl AsFd for UnixDiag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl UnixDiag {
    /// Opens the socket in the caller's network namespace.
    pub fn open() -> Result<Self> {
        rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )
        .map(Self)
    }

    /// Whether a socket of this network namespace is bound to the file with
    /// this status. The inode number alone would not do: a file with any
    /// number can be had by making enough of them on another file system.
    pub fn is_bound_here(&self, file: &rustix::fs::Stat) -> Result<bool> {
        let wanted = kernel_identity(file);
        let request = request(NLM_F_REQUEST_DUMP, 0, UDIAG_SHOW_VFS);
        rustix::net::send(&self.0, &request, SendFlags::empty())?;
        let mut found = false;
        let mut buffer = vec![0u8; 32 * 1024];
        loop {
            let (length, _) =
                rustix::net::recv(self.0.as_fd(), &mut buffer[..], RecvFlags::empty())?;
            for (kind, body) in messages(&buffer[..length]) {
                match kind {
                    NLMSG_DONE => return Ok(found),
                    NLMSG_ERROR => return Err(Errno::IO),
                    _ => found |= bound_file(body) == Some(wanted),
                }
            }
        }
    }

    /// Whether this socket of the network namespace, by its inode number, is
    /// bound to a file of this inode number. The device is not compared: the
    /// kernel tells another one than `stat` for files of an overlay or of a
    /// subvolume, so the caller must know that they lie on one file system.
    pub fn is_bound_to(&self, socket: u32, file: &rustix::fs::Stat) -> Result<bool> {
        let (wanted, _) = kernel_identity(file);
        let bound = self.about(socket, UDIAG_SHOW_VFS, bound_file)?;
        Ok(bound.is_some_and(|(inode, _)| inode == wanted))
    }

    /// The number of the socket that this one of the network namespace, by its
    /// inode number, is connected with, while both are open.
    pub fn peer_of(&self, socket: u32) -> Result<Option<u32>> {
        self.about(socket, UDIAG_SHOW_PEER, peer)
    }

    /// What one socket's `unix_diag_msg` says; `None` where there is none of
    /// this number.
    fn about<T>(
        &self,
        socket: u32,
        show: u32,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let request = request(NLM_F_REQUEST, socket, show);
        rustix::net::send(&self.0, &request, SendFlags::empty())?;
        let mut buffer = [0u8; 4096];
        let (length, _) = rustix::net::recv(self.0.as_fd(), &mut buffer[..], RecvFlags::empty())?;
        let mut found = messages(&buffer[..length]);
        Ok(match found.next() {
            Some((SOCK_DIAG_BY_FAMILY, body)) => read(body),
            _ => None,
        })
    }
}

fn request(flags: u16, socket: u32, show: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    bytes.extend(40u32.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    // struct unix_diag_req: family, protocol, padding, states, inode, show, cookie
    bytes.extend([1, 0, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(socket.to_ne_bytes());
    bytes.extend(show.to_ne_bytes());
    // Whatever its cookie.
    bytes.extend([0xff; 8]);
    bytes
}

/// The `(type, body)` of each netlink message in `bytes`.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    records(bytes, HEADER, |record| {
        let length = u32::from_ne_bytes(record.get(..4)?.try_into().ok()?);
        let kind = u16::from_ne_bytes(record.get(4..6)?.try_into().ok()?);
        Some((usize::try_from(length).ok()?, kind))
    })
}

/// The inode and device of a file, both as `struct unix_diag_vfs` gives them.
fn kernel_identity(file: &rustix::fs::Stat) -> (u32, u32) {
    let (major, minor) = (
        rustix::fs::major(file.st_dev),
        rustix::fs::minor(file.st_dev),
    );
    let inode = u32::try_from(file.st_ino & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    (inode, (major << 20) | minor)
}

/// The file that a `unix_diag_msg` says its socket is bound to.
fn bound_file(body: &[u8]) -> Option<(u32, u32)> {
    let vfs = attribute(body, UNIX_DIAG_VFS)?;
    let inode = u32::from_ne_bytes(vfs.get(..4)?.try_into().ok()?);
    let device = u32::from_ne_bytes(vfs.get(4..8)?.try_into().ok()?);
    Some((inode, device))
}

/// The socket that a `unix_diag_msg` says its own is connected with.
fn peer(body: &[u8]) -> Option<u32> {
    let number = attribute(body, UNIX_DIAG_PEER)?.get(..4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(number)).filter(|number| *number != 0)
}

/// An attribute of a `unix_diag_msg`.
fn attribute(body: &[u8], wanted: u16) -> Option<&[u8]> {
    let attributes = body.get(DIAG_MESSAGE..)?;
    let (_, found) = records(attributes, 4, |record| {
        let length = u16::from_ne_bytes(record.get(..2)?.try_into().ok()?);
        let kind = u16::from_ne_bytes(record.get(2..4)?.try_into().ok()?);
        Some((usize::from(length), kind))
    })
    .find(|(kind, _)| *kind == wanted)?;
    Some(found)
}

/// Walks length-prefixed, 4-byte-aligned records whose header is `header`
/// bytes long.
fn records(
    mut bytes: &[u8],
    header: usize,
    head: impl Fn(&[u8]) -> Option<(usize, u16)>,
) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = head(bytes)?;
        let body = bytes.get(header..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn tells_a_bound_socket_from_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, other) = (folder.path().join("s"), folder.path().join("o"));
        let _listener = UnixListener::bind(&socket).unwrap();
        std::fs::write(&other, "").unwrap();
        let diag = UnixDiag::open().unwrap();
        assert!(
            diag.is_bound_here(&rustix::fs::stat(&socket).unwrap())
                .unwrap()
        );
        assert!(
            !diag
                .is_bound_here(&rustix::fs::stat(&other).unwrap())
                .unwrap()
        );
    }

    #[test]
    fn tells_which_file_a_socket_is_bound_to() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let (socket, other) = (folder.path().join("s"), folder.path().join("o"));
        let listener = UnixListener::bind(&socket).unwrap();
        std::fs::write(&other, "").unwrap();
        let copy = listener.as_fd().try_clone_to_owned().unwrap();
        let number = u32::try_from(std::fs::File::from(copy).metadata().unwrap().ino()).unwrap();
        let diag = UnixDiag::open().unwrap();
        let is_bound = |path: &std::path::Path| {
            let file = rustix::fs::stat(path).unwrap();
            diag.is_bound_to(number, &file).unwrap()
        };
        assert!(is_bound(&socket) && !is_bound(&other));
        drop(listener);
        assert!(!is_bound(&socket));
    }

    #[test]
    fn tells_which_socket_another_is_connected_with() {
        use std::os::unix::fs::MetadataExt;
        use std::os::unix::net::UnixStream;
        let number = |socket: &UnixStream| {
            let copy = socket.as_fd().try_clone_to_owned().unwrap();
            u32::try_from(std::fs::File::from(copy).metadata().unwrap().ino()).unwrap()
        };
        let (one, other) = UnixStream::pair().unwrap();
        let diag = UnixDiag::open().unwrap();
        assert_eq!(diag.peer_of(number(&one)).unwrap(), Some(number(&other)));
        drop(other);
        assert_eq!(diag.peer_of(number(&one)).unwrap(), None);
        let gone = number(&one);
        drop(one);
        assert_eq!(diag.peer_of(gone).unwrap(), None);
        assert!(!diag.is_bound_here(&rustix::fs::stat("/").unwrap()).unwrap());
    }

    #[test]
    fn cut_off_answers_are_no_match() {
        assert_eq!(messages(&[9, 0, 0]).count(), 0);
        assert_eq!(messages(&[200, 0, 0, 0, 1, 0, 0, 0]).count(), 0);
        assert_eq!(bound_file(&[0; 18]), None);
    }
}
