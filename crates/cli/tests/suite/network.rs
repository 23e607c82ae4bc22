//! G1 with the network closed: nothing leaves, by any kind of socket.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use ringfence_testkit::Folder;

use super::arena::{Arena, Outside, refused};

/// How many connections wait to be accepted.
fn arrived(listener: &TcpListener) -> usize {
    assert!(listener.set_nonblocking(true).is_ok());
    std::iter::from_fn(|| listener.accept().ok()).count()
}

#[test]
fn g1_tcp_servers_of_the_host_are_out_of_reach() {
    let arena = Arena::new();
    for ip in ["127.0.0.1", "::1"] {
        let server = TcpListener::bind((ip, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let attack = format!("./attack tcp {ip} {port}");
        let error = arena.refuses(&attack, Outside::Anyone);
        assert_eq!(error, "ECONNREFUSED\n", "{ip}");
        refused(
            "fast open",
            arena.inside(&format!("./attack fast-open {ip} {port}")),
        );
        assert_eq!(arrived(&server), 1, "{ip}: only the one from outside");
    }
}

#[test]
fn g1_udp_servers_of_the_host_are_out_of_reach() {
    let arena = Arena::new();
    for ip in ["127.0.0.1", "::1"] {
        let server = UdpSocket::bind((ip, 0)).unwrap();
        server.set_nonblocking(true).unwrap();
        let attack = format!("./attack udp {ip} {}", server.local_addr().unwrap().port());
        arena.outside(&attack).expect_code(0);
        assert_eq!(server.recv(&mut [0; 16]).unwrap(), 4);
        // It may well be sent, to a server of the sandbox that is not there.
        arena.inside(&attack);
        assert!(server.recv(&mut [0; 16]).is_err(), "{ip}");
    }
}

/// What would be other machines. Nothing is sent there from outside, so the
/// proof that the attack works is the test of the host's own servers.
const ELSEWHERE: [&str; 6] = [
    "192.0.2.7",
    "169.254.169.254",
    "10.0.0.1",
    "2001:db8::7",
    "fe80::1",
    "::ffff:192.0.2.7",
];

#[test]
fn g1_other_machines_are_unreachable_and_said_to_be() {
    let arena = Arena::new();
    for ip in ELSEWHERE {
        for kind in ["tcp", "udp", "fast-open"] {
            let attack = format!("./attack {kind} {ip} 443");
            let outcome = refused(&attack, arena.inside_with(&["--no-network"], &attack));
            assert!(
                ["ENETUNREACH\n", "EINVAL\n"].contains(&outcome.stdout.as_str()),
                "{attack}: {}",
                outcome.stdout
            );
        }
    }
    let outcome = arena.inside_with(&["--no-network"], "./attack tcp 192.0.2.7 443");
    assert!(
        outcome.stderr.contains("192.0.2.7:443") && outcome.stderr.contains("network is closed"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn g1_icmp_raw_packet_vsock_and_other_sockets_cannot_be_made() {
    let arena = Arena::new();
    for (what, family, kind, protocol, outside) in [
        ("icmp", "2", 2, 1, Outside::Untried),
        ("icmpv6", "10", 2, 58, Outside::Untried),
        ("raw", "2", 3, 1, Outside::Root),
        ("raw tcp", "2", 3, 6, Outside::Root),
        ("raw v6", "10", 3, 58, Outside::Root),
        ("packet", "17", 3, 0, Outside::Root),
        ("packet datagram", "17", 2, 0, Outside::Root),
        ("vsock", "40", 1, 0, Outside::Untried),
        ("vsock datagram", "40", 2, 0, Outside::Untried),
        (
            "vsock with high bits",
            "0x100000028",
            1,
            0,
            Outside::Untried,
        ),
        ("packet with high bits", "0x100000011", 3, 0, Outside::Root),
        ("uevent", "16", 3, 15, Outside::Anyone),
        ("netfilter", "16", 3, 12, Outside::Untried),
        ("crypto", "38", 5, 0, Outside::Untried),
        ("key", "15", 3, 2, Outside::Untried),
        ("express data path", "44", 3, 0, Outside::Untried),
        ("multipath tcp", "2", 1, 262, Outside::Untried),
        ("sctp", "2", 1, 132, Outside::Untried),
        ("udp lite", "2", 2, 136, Outside::Untried),
    ] {
        let attack = format!("./attack socket {family} {kind} {protocol}");
        let error = arena.refuses(&attack, outside);
        let expected = ["EPERM\n", "EAFNOSUPPORT\n", "EPROTONOSUPPORT\n"];
        assert!(expected.contains(&error.as_str()), "{what}: {error}");
    }
}

#[test]
fn g1_unix_sockets_of_the_host_in_the_working_folder_are_refused() {
    let arena = Arena::new();
    let _server = UnixListener::bind(arena.folder.join("stream")).unwrap();
    let _datagrams = UnixDatagram::bind(arena.folder.join("datagram")).unwrap();
    std::os::unix::fs::symlink("stream", arena.folder.join("link")).unwrap();
    for attack in [
        "./attack unix-connect stream",
        "./attack unix-connect ./stream",
        "./attack unix-connect link",
        "./attack unix-connect $PWD/stream",
        "./attack unix-connect /proc/self/cwd/stream",
        "./attack unix-connect /proc/self/root$PWD/stream",
        "./attack unix-connect datagram 2",
        "./attack unix-send datagram",
    ] {
        arena.refuses(attack, Outside::Anyone);
    }
    let outcome = arena.inside("./attack unix-connect stream");
    let told = outcome.stderr;
    assert!(told.contains("socket from outside this run"), "{told}");
}

#[test]
fn g1_whether_a_socket_of_the_host_is_alive_cannot_be_told() {
    let arena = Arena::new();
    let _server = UnixListener::bind(arena.folder.join("alive")).unwrap();
    drop(UnixListener::bind(arena.folder.join("dead")).unwrap());
    arena.outside("./attack unix-connect alive").expect_code(0);
    arena.outside("! ./attack unix-connect dead").expect_code(0);
    for name in ["alive", "dead"] {
        let attack = format!("./attack unix-connect {name}");
        let error = refused(&attack, arena.inside(&attack)).stdout;
        assert_eq!(error, "ECONNREFUSED\n", "{name}");
    }
}

/// Puts a socket of the host where one of its own was bound, and connects.
const TAKES_THE_NAME: &str = r#"
import os, socket
own = socket.socket(socket.AF_UNIX)
own.bind("own")
own.listen(1)
os.rename("stream", "own")
socket.socket(socket.AF_UNIX).connect("own")
"#;

#[test]
fn g1_a_name_that_was_bound_inside_does_not_lead_to_a_socket_of_the_host() {
    for flags in [None, Some(&[][..]), Some(&["--guard", "sweep"])] {
        let arena = Arena::new();
        arena.folder.write("take.py", TAKES_THE_NAME);
        let server = UnixListener::bind(arena.folder.join("stream")).unwrap();
        server.set_nonblocking(true).unwrap();
        let attack = "python3 take.py";
        let Some(flags) = flags else {
            arena.outside(attack).expect_code(0);
            assert!(server.accept().is_ok());
            continue;
        };
        let outcome = refused(attack, arena.inside_with(flags, attack));
        assert!(outcome.stderr.contains("ConnectionRefused"), "{flags:?}");
        assert!(server.accept().is_err(), "{flags:?}");
    }
}

/// Listens at a path, is connected to, and is gone; then nobody is there.
const LEFT_BEHIND: &str = r#"
import errno, os, socket, sys
for path in map(os.path.expanduser, sys.argv[1:]):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(1)
    socket.socket(socket.AF_UNIX).connect(path)
    os.rename(path, path + "-moved")
    path += "-moved"
    socket.socket(socket.AF_UNIX).connect(path)
    server.close()
    code = socket.socket(socket.AF_UNIX).connect_ex(path)
    print(errno.errorcode.get(code))
"#;

#[test]
fn g11_a_socket_that_nobody_listens_at_any_more_refuses_connections() {
    let (arena, places) = (Arena::new(), "left /tmp/left ~/left");
    arena.folder.write("left.py", LEFT_BEHIND);
    let three = "ECONNREFUSED\n".repeat(3);
    let alike = "HOME=. python3 left.py left ./other ~/third && rm -r *-moved";
    let outside = arena.outside(alike).expect_code(0);
    assert_eq!(outside.stdout, three);
    for flags in [&[][..], &["--guard", "sweep"], &["--disk", "100M"]] {
        let script = format!("python3 left.py {places}");
        let outcome = arena.inside_with(flags, &script).expect_code(0);
        assert_eq!(outcome.stdout, three, "{flags:?}");
        let told = outcome.stderr;
        assert!(!told.contains("refused"), "{flags:?}: {told}");
        // One of an earlier run is as dead, and can be taken away.
        let later = "./attack unix-connect left-moved; rm left-moved";
        let outcome = arena.inside_with(flags, later).expect_code(0);
        assert_eq!(outcome.stdout, "ECONNREFUSED\n", "{flags:?}");
    }
}

#[test]
fn g1_unix_sockets_of_the_host_in_other_visible_folders_are_refused() {
    let (arena, other) = (Arena::new(), Folder::new());
    let _server = UnixListener::bind(other.join("stream")).unwrap();
    let _datagrams = UnixDatagram::bind(other.join("datagram")).unwrap();
    let place = other.text();
    for flag in ["--read", "--write"] {
        for attack in [
            format!("./attack unix-connect {place}/stream"),
            format!("./attack unix-connect {place}/datagram 2"),
            format!("./attack unix-send {place}/datagram"),
            format!("cd {place} && $OLDPWD/attack unix-connect stream"),
        ] {
            arena.outside(&attack).expect_code(0);
            // The socket is in sight, or its absence would be what is tested.
            let script = format!("test -S {place}/stream || exit 99; {attack}");
            let outcome = refused(&attack, arena.inside_with(&[flag, place], &script));
            assert_ne!(outcome.code(), 99);
        }
    }
}

#[test]
fn g1_the_hosts_folder_for_temporary_files_is_not_the_sandboxs() {
    let (arena, other) = (Arena::new(), Folder::new());
    let _server = UnixListener::bind(other.join("stream")).unwrap();
    let path = other.join("stream").display().to_string();
    arena.refuses(&format!("./attack unix-connect {path}"), Outside::Anyone);
}

#[test]
fn g1_abstract_sockets_of_the_host_are_out_of_reach() {
    let arena = Arena::new();
    let name = arena.folder.text().to_owned();
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _server = UnixListener::bind_addr(&address).unwrap();
    let error = arena.refuses(&format!("./attack unix-connect @{name}"), Outside::Anyone);
    assert_eq!(error, "ECONNREFUSED\n");
}

#[test]
fn the_sandboxs_own_sockets_work() {
    let arena = Arena::new();
    for server in [
        "tcp-serve 127.0.0.1",
        "tcp-serve ::1",
        "tcp-serve 127.9.9.9",
        "unix-serve own",
        "unix-serve $PWD/own-too",
        "unix-serve /tmp/own",
        "unix-serve ~/own",
        "unix-serve @own",
    ] {
        arena.inside(&format!("./attack {server}")).expect_code(0);
    }
}
