//! The two network namespaces of a small internet, and the processes that
//! hold them: sockets are made by those, and used by the test itself. They
//! end when the test does, because their channel to it closes.

use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendFlags, SocketFlags, SocketType,
};
use serde::Deserialize;
use serde_json::json;

use super::place;
use crate::{is_root, own_ids};

const HELPER: &str = include_str!("namespaces.py");

/// The namespaces; gone when dropped.
#[derive(Debug)]
pub(super) struct Namespaces {
    helper: Child,
    processes: Processes,
    /// Makes sockets of the host; dropped before the wait for the helper.
    host: Option<Sockets>,
    world: Sockets,
}

/// The processes that hold the namespaces.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Processes {
    host: u32,
    world: u32,
    /// Where (mapped) root is an ordinary user again.
    user: Option<u32>,
}

/// In which network a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Host,
    World,
}

/// Makes sockets in one of the network namespaces.
#[derive(Debug, Clone)]
pub(super) struct Sockets(Arc<Mutex<OwnedFd>>);

impl Namespaces {
    /// Makes them; `binds` are files and folders with the places they cover.
    pub(super) fn start(folder: &Path, binds: &[(PathBuf, &Path)]) -> Self {
        let host = folder.join("host.ip");
        let world = folder.join("world.ip");
        std::fs::write(&host, place::host_script()).expect("a written file");
        std::fs::write(&world, place::world_script()).expect("a written file");
        let settings = json!({
            "binds": binds,
            "cable": place::CABLE,
            "host": host,
            "world": world,
            "switches": place::SWITCHES,
            "ids": (!is_root()).then(own_ids),
        });
        let (ours, theirs) = channel();
        let mut helper = helper(&settings.to_string(), theirs);
        let Some((message, Some(world))) = receive(&ours) else {
            panic!("no internet: {}", last_words(&mut helper));
        };
        Self {
            helper,
            processes: serde_json::from_str(&message).expect("the helper's processes"),
            host: Some(Sockets::new(ours)),
            world: Sockets::new(world),
        }
    }

    pub(super) fn sockets(&self, side: Side) -> &Sockets {
        match (side, &self.host) {
            (Side::Host, Some(host)) => host,
            _ => &self.world,
        }
    }

    /// The start of a command line that enters the namespaces as the user who
    /// runs the test.
    pub(super) fn entrance(&self, side: Side) -> String {
        let Processes { host, world, user } = self.processes;
        let net = if side == Side::Host { host } else { world };
        let places = format!("--net=/proc/{net}/ns/net --mount=/proc/{host}/ns/mnt");
        match user {
            None => format!("nsenter {places} --"),
            // First as the owner of the namespaces, then as an ordinary user.
            Some(user) => format!(
                "nsenter --preserve-credentials --user=/proc/{host}/ns/user {places} -- \
                 nsenter --preserve-credentials --user=/proc/{user}/ns/user --"
            ),
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Without its channel the helper ends what still runs, then itself.
        self.host = None;
        let _ = self.helper.wait();
    }
}

fn helper(settings: &str, channel: OwnedFd) -> Child {
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args(["--net", "--mount", "--", "/usr/bin/python3", "-I", "-S"])
        .args(["-c", HELPER, settings])
        .stdin(channel)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().expect("a started helper")
}

fn last_words(helper: &mut Child) -> String {
    let mut words = String::new();
    if let Some(mut stderr) = helper.stderr.take() {
        let _ = stderr.read_to_string(&mut words);
    }
    let _ = helper.wait();
    words
}

fn channel() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .expect("a pair of sockets")
}

/// A message and the descriptor with it; `None` when the other end is gone.
fn receive(channel: &OwnedFd) -> Option<(String, Option<OwnedFd>)> {
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = rustix::net::recvmsg(channel, &mut slices, &mut ancillary, flags).ok()?;
    let mut descriptors = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten();
    let descriptor = descriptors.next();
    let text = String::from_utf8_lossy(&bytes[..got.bytes]).into_owned();
    (got.bytes > 0).then_some((text, descriptor))
}

impl Sockets {
    fn new(channel: OwnedFd) -> Self {
        Self(Arc::new(Mutex::new(channel)))
    }

    /// A listening TCP socket; at `::` it takes IPv4 too.
    pub(super) fn listen(&self, address: &str, port: u16) -> TcpListener {
        self.make(&format!("listen {address} {port}")).into()
    }

    /// A bound UDP socket.
    pub(super) fn datagrams(&self, address: &str, port: u16) -> UdpSocket {
        self.make(&format!("datagrams {address} {port}")).into()
    }

    /// A TCP socket to dial an address of IP version 4 or 6 with.
    pub(super) fn dial(&self, version: u8) -> TcpStream {
        self.make(&format!("dial {version}")).into()
    }

    /// A socket that receives what arrives at a network device, and does not
    /// block.
    pub(super) fn capture(&self, device: &str, version: u8) -> UdpSocket {
        let socket: UdpSocket = self.make(&format!("capture {device} {version}")).into();
        let made = socket.set_nonblocking(true);
        made.expect("a socket that does not block");
        socket
    }

    fn make(&self, request: &str) -> OwnedFd {
        let channel = self.0.lock().expect("a channel that works");
        let slices = [IoSlice::new(request.as_bytes())];
        let mut nothing = SendAncillaryBuffer::default();
        rustix::net::sendmsg(&*channel, &slices, &mut nothing, SendFlags::NOSIGNAL)
            .expect("a helper that listens");
        match receive(&channel) {
            Some((_, Some(socket))) => socket,
            Some((error, None)) => panic!("{request}: {error}"),
            None => panic!("{request}: the helper is gone"),
        }
    }
}
