//! Every TCP connection to another address than loopback ends at the
//! transparent listeners, which the test holds outside.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;

use ringfence_sys::{self as sys, Errno, Families, Family};
use rustix::net::SocketType;

use super::fence::{
    Fence, V6_SWITCH, answer_of, any_address_beside, check_sources_strictly, connect, converse,
    echo, expected_families, failure_to_reach, intercept, reachable, speaks_v6, steal, talk,
};

const SOMEWHERE: &str = "93.184.216.34:443";

#[test]
fn any_address_and_port_arrives_with_its_destination() {
    let destinations = reachable(&[
        "93.184.216.34:22",
        SOMEWHERE,
        "93.184.216.34:8443",
        "93.184.216.34:65535",
        "10.0.0.1:1",
        "169.254.169.254:80",
        "[2001:db8::1]:22",
        "[2001:db8::1]:65535",
        "[fd00::1]:443",
    ]);
    let mut arrived = 0;
    Fence::start(|inside| {
        inside.hand_out(intercept());
        sys::drop_capabilities().unwrap();
        for destination in &destinations {
            assert_eq!(converse(*destination), answer_of(destination));
        }
    })
    .attend(|listener| {
        echo(listener);
        arrived += 1;
    });
    assert_eq!(arrived, destinations.len());
}

#[test]
fn ipv4_in_an_ipv6_socket_arrives_as_ipv4() {
    if !speaks_v6() {
        return eprintln!("skipped: no IPv6 here");
    }
    Fence::start(|inside| {
        inside.hand_out(intercept());
        let disguised = "[::ffff:93.184.216.34]:443".parse().unwrap();
        assert_eq!(converse(disguised), answer_of(&SOMEWHERE.parse().unwrap()));
    })
    .attend(echo);
}

#[test]
fn a_source_port_that_equals_the_destination_port_arrives() {
    let destinations = reachable(&["93.184.216.34:50000", "[2001:db8::1]:50000"]);
    Fence::start(|inside| {
        inside.hand_out(intercept());
        for destination in destinations {
            let source = any_address_beside(&destination, 50_000);
            let socket = steal(SocketType::STREAM, source).unwrap();
            rustix::net::connect(&socket, &destination).unwrap();
            assert_eq!(talk(TcpStream::from(socket)), answer_of(&destination));
        }
    })
    .attend(echo);
}

#[test]
fn strict_checks_of_source_addresses_let_connections_through() {
    Fence::start(|inside| {
        check_sources_strictly();
        inside.hand_out(intercept());
        let destination = SOMEWHERE.parse().unwrap();
        assert_eq!(converse(destination), answer_of(&destination));
    })
    .attend(echo);
}

#[test]
fn servers_inside_are_reached_on_loopback() {
    let addresses = reachable(&["127.0.0.1:0", "127.9.9.9:0", "[::1]:0"]);
    let handed = Fence::start(|inside| {
        inside.hand_out(intercept());
        for address in addresses {
            let server = TcpListener::bind(address).unwrap();
            let address = server.local_addr().unwrap();
            let client = connect(address);
            echo_once(server);
            assert_eq!(talk(client), answer_of(&address));
        }
    })
    .attend(|_| panic!("a loopback connection arrived"));
    assert_eq!(handed.len(), expected_families().each().len());
}

/// Serves the one connection that waits, beside the caller.
fn echo_once(server: TcpListener) {
    std::thread::spawn(move || echo(server.as_fd()));
}

#[test]
fn a_connection_to_the_listener_itself_has_a_loopback_destination() {
    Fence::start(|inside| {
        let listeners = intercept();
        let port = sys::local_port(listeners[0].as_fd()).unwrap();
        inside.hand_out(listeners);
        let itself = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        assert_eq!(converse(itself), answer_of(&itself));
    })
    .attend(echo);
}

#[test]
fn a_long_transfer_goes_both_ways_and_ends_one_way_first() {
    const BLOCKS: usize = 512;
    let destinations = reachable(&[SOMEWHERE, "[2001:db8::1]:443"]);
    Fence::start(|inside| {
        inside.hand_out(intercept());
        let block: Vec<u8> = (0..=255).cycle().take(128 * 1024).collect();
        for destination in destinations {
            let mut reader = connect(destination);
            let mut writer = reader.try_clone().unwrap();
            let sent = block.clone();
            let sending = std::thread::spawn(move || {
                (0..BLOCKS).for_each(|_| writer.write_all(&sent).unwrap());
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut line = vec![0; format!("{destination}\n").len()];
            reader.read_exact(&mut line).unwrap();
            let mut got = vec![0; block.len()];
            for _ in 0..BLOCKS {
                reader.read_exact(&mut got).unwrap();
                assert!(got == block, "bytes changed on the way");
            }
            sending.join().unwrap();
            let mut rest = String::new();
            reader.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "goodbye");
        }
    })
    .attend(echo);
}

#[test]
fn many_connections_wait_at_once() {
    const MANY: u16 = 500;
    let mut arrived = 0;
    Fence::start(|inside| {
        inside.hand_out(intercept());
        let destinations: Vec<SocketAddr> = (0..MANY)
            .map(|index| SocketAddr::from(([203, 0, 113, 9], 20_000 + index)))
            .collect();
        let streams: Vec<_> = destinations.iter().map(|to| connect(*to)).collect();
        for (stream, destination) in streams.into_iter().zip(&destinations) {
            assert_eq!(talk(stream), answer_of(destination));
        }
    })
    .attend(|listener| {
        echo(listener);
        arrived += 1;
    });
    assert_eq!(arrived, MANY);
}

#[test]
fn nothing_inside_can_listen_in_the_listeners_place() {
    Fence::start(|inside| {
        let listeners = intercept();
        let port = sys::local_port(listeners[0].as_fd()).unwrap();
        inside.hand_out(listeners);
        for address in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST] {
            let stolen = steal(SocketType::STREAM, (address, port).into());
            assert_eq!(stolen.err(), Some(Errno::ADDRINUSE));
        }
        // A listener at the destination is possible, but nothing gets there.
        let destination = "93.184.216.34:8443".parse().unwrap();
        let shadow = steal(SocketType::STREAM, destination).unwrap();
        rustix::net::listen(&shadow, 16).unwrap();
        assert_eq!(converse(destination), answer_of(&destination));
    })
    .attend(echo);
}

#[test]
fn ipv6_that_is_switched_off_is_noticed_and_does_without() {
    if !speaks_v6() {
        return eprintln!("skipped: no IPv6 here");
    }
    Fence::start(|inside| {
        std::fs::write(V6_SWITCH, "1").unwrap();
        assert_eq!(sys::bring_anyip_up(), Ok(Families::V4Only));
        let listener = sys::transparent_listener(Family::V4).unwrap();
        let port = sys::local_port(listener.as_fd()).unwrap();
        sys::intercept_tcp(port, None).unwrap();
        inside.hand_out(vec![listener]);
        assert!(failure_to_reach("[2001:db8::1]:443".parse().unwrap()).is_some());
        let destination = SOMEWHERE.parse().unwrap();
        assert_eq!(converse(destination), answer_of(&destination));
    })
    .attend(echo);
}

#[test]
fn a_refused_rule_set_changes_nothing() {
    Fence::start(|inside| {
        inside.hand_out(intercept());
        assert_eq!(sys::intercept_tcp(9, Some(9)), Err(Errno::EXIST));
        let destination = SOMEWHERE.parse().unwrap();
        assert_eq!(converse(destination), answer_of(&destination));
    })
    .attend(echo);
}

#[test]
fn without_capabilities_nothing_can_be_changed() {
    Fence::start(|inside| {
        inside.hand_out(vec![]);
        sys::drop_capabilities().unwrap();
        assert_eq!(sys::bring_anyip_up(), Err(Errno::PERM));
        assert_eq!(sys::intercept_tcp(9, Some(9)), Err(Errno::PERM));
        let listener = sys::transparent_listener(Family::V4);
        assert_eq!(listener.err(), Some(Errno::PERM));
    })
    .attend(|_| ());
}
