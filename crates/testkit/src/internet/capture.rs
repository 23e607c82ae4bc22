//! What arrives from the host, packet by packet: everything but TCP segments
//! of connections that are open already.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::namespaces::Sockets;

/// The packets so far.
#[derive(Debug, Clone)]
pub(super) struct Capture(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// For IPv4 and IPv6. They are packet sockets; to receive, that is alike.
    sockets: [UdpSocket; 2],
    packets: Mutex<Vec<Packet>>,
}

/// A packet, as far as it is of interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) protocol: u8,
    /// With port 0 where the protocol has none.
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

impl Capture {
    pub(super) fn start(world: &Sockets) -> Self {
        Self(Arc::new(Inner {
            sockets: [world.capture("wan", 4), world.capture("wan", 6)],
            packets: Mutex::default(),
        }))
    }

    /// Takes packets as they come, so that none is lost for want of space.
    pub(super) async fn run(self) -> io::Result<()> {
        let four = tokio::net::UdpSocket::from_std(self.0.sockets[0].try_clone()?)?;
        let six = tokio::net::UdpSocket::from_std(self.0.sockets[1].try_clone()?)?;
        loop {
            tokio::select! {
                arrived = four.readable() => arrived?,
                arrived = six.readable() => arrived?,
            }
            let mut packets = self.lock();
            for socket in [&four, &six] {
                take_all(&mut packets, |bytes| socket.try_recv(bytes));
            }
        }
    }

    /// Everything that has arrived by now.
    pub(super) fn packets(&self) -> Vec<Packet> {
        let mut packets = self.lock();
        for socket in &self.0.sockets {
            take_all(&mut packets, |bytes| socket.recv(bytes));
        }
        packets.clone()
    }

    pub(super) fn clear(&self) {
        self.packets();
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Packet>> {
        self.0
            .packets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives until nothing more is there.
fn take_all(packets: &mut Vec<Packet>, receive: impl Fn(&mut [u8]) -> io::Result<usize>) {
    let mut bytes = [0_u8; 256];
    while let Ok(length) = receive(&mut bytes) {
        packets.extend(parse(&bytes[..length]));
    }
}

impl std::fmt::Display for Packet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.protocol {
            TCP => write!(formatter, "tcp {}", self.to),
            UDP => write!(formatter, "udp {}", self.to),
            ICMP | ICMP6 => write!(formatter, "icmp {}", self.to.ip()),
            other => write!(formatter, "protocol {other} {}", self.to.ip()),
        }
    }
}

/// `None` for what the kernel sends on its own to find its neighbours.
fn parse(bytes: &[u8]) -> Option<Packet> {
    let (protocol, from, to, rest) = match bytes.first()? >> 4 {
        4 => {
            let address = |at: usize| {
                let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
                Some(IpAddr::from(Ipv4Addr::from(octets)))
            };
            let header = usize::from(bytes[0] & 0xf) * 4;
            (
                *bytes.get(9)?,
                address(12)?,
                address(16)?,
                bytes.get(header..)?,
            )
        }
        6 => {
            let address = |at: usize| {
                let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
                Some(IpAddr::from(Ipv6Addr::from(octets)))
            };
            (*bytes.get(6)?, address(8)?, address(24)?, bytes.get(40..)?)
        }
        _ => return None,
    };
    let is_neighbourly = match protocol {
        // Solicitations and advertisements of routers and neighbours.
        ICMP6 => matches!(rest.first(), Some(133..=137 | 143)),
        // Options before a report of multicast listeners.
        0 => to.is_multicast(),
        _ => false,
    };
    let port = |at: usize| match (protocol, rest.get(at..at + 2)) {
        (TCP | UDP, Some(bytes)) => u16::from_be_bytes([bytes[0], bytes[1]]),
        _ => 0,
    };
    (!is_neighbourly).then(|| Packet {
        protocol,
        from: SocketAddr::new(from, port(0)),
        to: SocketAddr::new(to, port(2)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_told_by_protocol_and_destination() {
        let mut datagram = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, UDP, 0, 0];
        datagram.extend([10, 77, 0, 2, 45, 0, 0, 10, 0x12, 0x34, 1, 0xbb, 0, 8, 0, 0]);
        let packet = parse(&datagram).unwrap();
        assert_eq!(packet.to_string(), "udp 45.0.0.10:443");
        assert_eq!(packet.from.to_string(), "10.77.0.2:4660");
        datagram[9] = ICMP;
        assert_eq!(parse(&datagram).unwrap().to_string(), "icmp 45.0.0.10");
        datagram[9] = 132;
        assert_eq!(
            parse(&datagram).unwrap().to_string(),
            "protocol 132 45.0.0.10"
        );
    }

    #[test]
    fn neighbours_looking_for_each_other_do_not_count() {
        let mut solicitation = vec![0x60, 0, 0, 0, 0, 8, ICMP6, 255];
        solicitation.extend([0xfe; 32]);
        solicitation.push(135);
        assert_eq!(parse(&solicitation), None);
        *solicitation.last_mut().unwrap() = 128;
        assert!(parse(&solicitation).is_some());
    }

    #[test]
    fn a_cut_packet_is_no_packet() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[0x45, 0]), None);
        assert_eq!(parse(&[0x60, 0, 0]), None);
    }
}
