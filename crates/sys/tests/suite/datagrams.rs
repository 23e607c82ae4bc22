//! Datagrams to any address are received outside the namespace and answered
//! from the address that was asked.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use ringfence_sys::{self as sys, Errno, Family};
use rustix::net::SocketType;

use super::fence::{Fence, any_address_beside, check_sources_strictly, reachable, steal};

/// Both sockets of port 53.
fn open_sockets() -> Vec<OwnedFd> {
    let families = sys::bring_anyip_up().unwrap().each().iter();
    families
        .map(|family| sys::datagram_socket(*family, 53).unwrap())
        .collect()
}

/// Answers a datagram with the address it was sent to.
fn answer(socket: BorrowedFd<'_>) {
    let mut buffer = [0; 512];
    let asked = sys::receive_datagram(socket, &mut buffer).unwrap();
    assert_eq!(&buffer[..asked.length], b"question");
    assert!(!asked.truncated);
    let text = asked.destination.to_string();
    sys::send_datagram(socket, text.as_bytes(), asked.source, asked.destination).unwrap();
}

/// A socket that hears `server` alone.
fn client_of(server: SocketAddr) -> UdpSocket {
    let client = UdpSocket::bind(any_address_beside(&server, 0)).unwrap();
    client.connect(server).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    client
}

/// Sends a question and reads the address in the answer.
fn ask(server: SocketAddr) -> Result<IpAddr, ErrorKind> {
    let client = client_of(server);
    client.send(b"question").unwrap();
    let mut buffer = [0; 512];
    let length = client.recv(&mut buffer).map_err(|error| error.kind())?;
    let text = std::str::from_utf8(&buffer[..length]).unwrap();
    Ok(text.parse().unwrap())
}

#[test]
fn any_address_answers_on_port_53() {
    let servers = reachable(&[
        "9.9.9.9:53",
        "127.0.0.1:53",
        "127.0.0.53:53",
        "10.1.2.3:53",
        "[2620:fe::fe]:53",
        "[::1]:53",
    ]);
    let sockets = Fence::start(|inside| {
        inside.hand_out(open_sockets());
        sys::drop_capabilities().unwrap();
        for server in &servers {
            assert_eq!(ask(*server), Ok(server.ip()));
        }
    })
    .attend(answer);
    for socket in sockets {
        let nothing = sys::receive_datagram(socket.as_fd(), &mut [0; 512]);
        assert_eq!(nothing, Err(Errno::AGAIN));
    }
}

#[test]
fn other_ports_refuse_at_once() {
    let servers = reachable(&["93.184.216.34:443", "[2001:db8::1]:443"]);
    Fence::start(|inside| {
        inside.hand_out(open_sockets());
        for server in &servers {
            assert_eq!(ask(*server), Err(ErrorKind::ConnectionRefused));
        }
    })
    .attend(answer);
}

#[test]
fn strict_checks_of_source_addresses_let_answers_and_refusals_through() {
    Fence::start(|inside| {
        check_sources_strictly();
        inside.hand_out(open_sockets());
        let [answering, refusing]: [SocketAddr; 2] =
            ["9.9.9.9:53", "9.9.9.9:443"].map(|text| text.parse().unwrap());
        assert_eq!(ask(answering), Ok(answering.ip()));
        assert_eq!(ask(refusing), Err(ErrorKind::ConnectionRefused));
    })
    .attend(answer);
}

#[test]
fn a_datagram_longer_than_the_buffer_is_said_to_be_cut() {
    let mut seen = None;
    Fence::start(|inside| {
        inside.hand_out(open_sockets());
        let client = client_of("9.9.9.9:53".parse().unwrap());
        client.send(&[7; 600]).unwrap();
        client.send(&[]).unwrap();
    })
    .attend(|socket| {
        let datagram = sys::receive_datagram(socket, &mut [0; 512]).unwrap();
        seen.get_or_insert(datagram);
    });
    let datagram = seen.unwrap();
    assert_eq!((datagram.length, datagram.truncated), (512, true));
}

#[test]
fn an_answer_from_the_other_family_is_an_error() {
    Fence::start(|inside| {
        inside.hand_out(open_sockets());
        let client = client_of("9.9.9.9:53".parse().unwrap());
        client.send(b"question").unwrap();
    })
    .attend(|socket| {
        let asked = sys::receive_datagram(socket, &mut [0; 512]).unwrap();
        let from = "2001:db8::1".parse().unwrap();
        let sent = sys::send_datagram(socket, b"answer", asked.source, from);
        assert_eq!(sent, Err(Errno::INVAL));
    });
}

#[test]
fn port_53_cannot_be_shared_or_shadowed() {
    let addresses = reachable(&["0.0.0.0:53", "1.2.3.4:53", "127.0.0.1:53", "[::]:53"]);
    Fence::start(|inside| {
        let sockets = open_sockets();
        let port = sys::local_port(sockets[0].as_fd());
        assert_eq!(port, Ok(53));
        inside.hand_out(sockets);
        for address in &addresses {
            let stolen = steal(SocketType::DGRAM, *address);
            assert_eq!(stolen.err(), Some(Errno::ADDRINUSE), "{address}");
        }
    })
    .attend(answer);
}

#[test]
fn a_free_low_port_needs_a_capability() {
    Fence::start(|inside| {
        inside.hand_out(vec![]);
        sys::bring_anyip_up().unwrap();
        sys::drop_capabilities().unwrap();
        for address in reachable(&["1.2.3.4:53", "[2001:db8::1]:53"]) {
            let bound = steal(SocketType::DGRAM, address);
            assert_eq!(bound.err(), Some(Errno::ACCESS), "{address}");
        }
        let socket = sys::datagram_socket(Family::V4, 53);
        assert_eq!(socket.err(), Some(Errno::ACCESS));
    })
    .attend(answer);
}
