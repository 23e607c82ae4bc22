//! All servers of a small internet, on a thread of their own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::capture::{Capture, Packet};
use super::dns::{MARK, Resolver};
use super::log::Log;
use super::namespaces::{Namespaces, Side};
use super::place::{self, port};
use super::server::{self, Service, Shared};
use crate::wait_until;

/// A UDP datagram that reached a port where they are kept.
#[derive(Debug, Clone)]
pub struct Datagram {
    /// Who sent it.
    pub from: SocketAddr,
    /// Where it went.
    pub to: SocketAddr,
    /// What was in it.
    pub text: String,
}

/// The servers; stopped when dropped.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) resolver: Resolver,
    pub(super) log: Log,
    capture: Capture,
    sinks: Vec<UdpSocket>,
    datagrams: Mutex<Vec<Datagram>>,
    markers: [Marker; 2],
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Servers {
    pub(super) fn start(namespaces: &Namespaces, shared: Shared, capture: Capture) -> Self {
        let world = namespaces.sockets(Side::World);
        let resolver = Resolver::new(shared.zone.clone());
        let log = shared.log.clone();
        let tasks = Tasks {
            tcp: listeners(namespaces),
            dns: world.listen("::", 53),
            udp: [
                place::NAMESERVER,
                place::PUBLIC_NAMESERVER,
                place::PUBLIC_NAMESERVER6,
            ]
            .map(|address| nonblocking(world.datagrams(address, 53))),
            shared,
            resolver: resolver.clone(),
            capture: capture.clone(),
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || tasks.run(stopped));
        let places = place::DATAGRAMS_AT
            .iter()
            .flat_map(|address| port::DATAGRAMS.map(|port| (*address, port)));
        Self {
            resolver,
            log,
            capture,
            sinks: places
                .map(|(address, port)| nonblocking(world.datagrams(address, port)))
                .collect(),
            datagrams: Mutex::default(),
            markers: [
                Marker::new(namespaces, place::HOST, place::NAMESERVER),
                Marker::new(namespaces, place::HOST6, place::PUBLIC_NAMESERVER6),
            ],
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Waits until everything that the host has sent by now has arrived.
    pub(super) fn settle(&self) {
        for marker in &self.markers {
            marker.send();
        }
    }

    pub(super) fn packets(&self) -> Vec<Packet> {
        let own: Vec<_> = self.markers.iter().map(Marker::address).collect();
        let mut packets = self.capture.packets();
        packets.retain(|packet| !own.contains(&packet.from));
        packets
    }

    pub(super) fn datagrams(&self) -> Vec<Datagram> {
        let mut datagrams = self
            .datagrams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for sink in &self.sinks {
            let to = sink.local_addr().expect("its own address");
            let mut bytes = [0; 2048];
            while let Ok((length, from)) = sink.recv_from(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                datagrams.push(Datagram { from, to, text });
            }
        }
        datagrams.clone()
    }

    pub(super) fn forget(&self) {
        self.resolver.clear();
        self.log.clear();
        self.capture.clear();
        self.datagrams();
        let mut datagrams = self
            .datagrams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        datagrams.clear();
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends datagrams from the host that come back from a resolver. They keep
/// their order, so whatever was sent before has arrived then; and they are not
/// counted as sent.
#[derive(Debug)]
struct Marker {
    socket: UdpSocket,
    to: SocketAddr,
    sent: Mutex<u64>,
}

impl Marker {
    fn new(namespaces: &Namespaces, from: &str, to: &str) -> Self {
        let socket = namespaces.sockets(Side::Host).datagrams(from, 0);
        let timeout = socket.set_read_timeout(Some(Duration::from_millis(20)));
        timeout.expect("a bound on the wait");
        Self {
            socket,
            to: SocketAddr::new(to.parse().expect("an address"), 53),
            sent: Mutex::default(),
        }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("its own address")
    }

    /// Sends one until it comes back.
    fn send(&self) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        *sent += 1;
        let mark = [MARK, &sent.to_be_bytes()].concat();
        let mut answer = [0; 64];
        let is_back = wait_until(|| {
            // The first ones may find no way yet.
            let _ = self.socket.send_to(&mark, self.to);
            let length = self.socket.recv(&mut answer).unwrap_or(0);
            answer[..length] == mark
        });
        assert!(is_back, "the resolver does not answer");
    }
}

/// What the servers' thread runs.
struct Tasks {
    tcp: Vec<(Service, std::net::TcpListener)>,
    dns: std::net::TcpListener,
    udp: [UdpSocket; 3],
    shared: Shared,
    resolver: Resolver,
    capture: Capture,
}

impl Tasks {
    fn run(self, stopped: oneshot::Receiver<()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        self.spawn(&runtime);
        // An error says the same: the other end is gone.
        let _ = runtime.block_on(stopped);
        runtime.shutdown_background();
    }

    fn spawn(self, runtime: &Runtime) {
        let _inside = runtime.enter();
        for (service, listener) in self.tcp {
            runtime.spawn(self.shared.clone().serve(service, listening(listener)));
        }
        for socket in self.udp {
            let socket = tokio::net::UdpSocket::from_std(socket).expect("a socket to wait for");
            runtime.spawn(self.resolver.clone().serve_udp(socket));
        }
        runtime.spawn(self.resolver.serve_tcp(listening(self.dns)));
        runtime.spawn(self.capture.run());
    }
}

fn listeners(namespaces: &Namespaces) -> Vec<(Service, std::net::TcpListener)> {
    let sides = [(Side::Host, server::HOST), (Side::World, server::WORLD)];
    let listen = |(side, services): (Side, &'static [(u16, Service)])| {
        let sockets = namespaces.sockets(side).clone();
        let listen =
            move |(port, service): &(u16, Service)| (*service, sockets.listen("::", *port));
        services.iter().map(listen)
    };
    sides.into_iter().flat_map(listen).collect()
}

fn listening(listener: std::net::TcpListener) -> TcpListener {
    listener
        .set_nonblocking(true)
        .expect("a socket that does not block");
    TcpListener::from_std(listener).expect("a socket to wait for")
}

fn nonblocking(socket: UdpSocket) -> UdpSocket {
    socket
        .set_nonblocking(true)
        .expect("a socket that does not block");
    socket
}
