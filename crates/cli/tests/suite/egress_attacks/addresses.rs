//! Private, loopback and metadata addresses and the host's own, in every
//! spelling, under a policy that is open to the world.

use ringfence_testkit::place::{HOST, HOST6, METADATA, PRIVATE};

use super::{Attack, Host, hex, host, stops};

/// Every spelling that some program reads as an address nobody may reach.
const SPELLINGS: &[&str] = &[
    "10.1.2.3",
    "10.66051",
    "10.1.515",
    "167838211",
    "0x0a010203",
    "0xa.0x1.0x2.0x3",
    "012.1.2.3",
    "012.01.02.03",
    "01200401003",
    "10.1.2.3.",
    "[::ffff:10.1.2.3]",
    "[::ffff:a01:203]",
    "[::10.1.2.3]",
    "[64:ff9b::10.1.2.3]",
    "[64:ff9b:1::10.1.2.3]",
    "[2002:a01:203::1]",
    "[2001:0:a01:203::1]",
    "[fe80::5efe:a01:203]",
    "[fd00:1234::5]",
    "127.0.0.1",
    "127.1",
    "127.0.0.2",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "00",
    "0x0",
    "[::]",
    "[::1]",
    "[::ffff:0:0]",
    "[::ffff:127.0.0.1]",
    "[0:0:0:0:0:ffff:7f00:1]",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "[::ffff:a9fe:a9fe]",
    "[fd00:ec2::254]",
    "100.64.0.9",
    "192.168.7.7",
    "203.0.113.10",
    "198.18.0.1",
    "198.18.0.77",
    "[fd72:6966:656e:6365::1]",
    "[fd72:6966:656e:6365::77]",
    "10.77.0.2",
    "0xa4d0002",
    "[2a0f:ffff:77::2]",
    "255.255.255.255",
    "224.0.0.1",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fe80::1%lo]",
    "[ff02::1]",
    "loopback.test",
    "private.test",
    "metadata.test",
];

const PORTS: [u16; 2] = [8080, 5432];

fn attack(way: &'static str, host: String, port: u16) -> Attack {
    Attack {
        way,
        host,
        port,
        says: vec![b"GET /marked HTTP/1.0\r\n\r\n".to_vec()],
        mark: "marked".to_owned(),
    }
}

/// Everything but questions about names that an open policy lets pass.
#[track_caller]
fn reached_nothing(host: &Host) {
    let packets = host.net().packets();
    let beyond: Vec<_> = packets
        .iter()
        .filter(|one| !one.ends_with("192.168.7.53:53"))
        .collect();
    assert!(beyond.is_empty(), "{beyond:?}");
    assert!(
        host.net().connections().is_empty(),
        "{:?}",
        host.net().connections()
    );
}

#[test]
fn g1_no_spelling_of_an_address_gets_past_the_proxies() {
    let host = host();
    for url in [
        "http://167838211:8080/",
        "http://0x7f.1:8080/",
        "http://0177.0.0.1:8080/",
        "http://[::ffff:10.1.2.3]:8080/",
        "http://0:8080/",
    ] {
        host.online
            .outside(&format!("curl -sSf {url} > /dev/null"))
            .expect_code(0);
    }
    let flags = host.policy("{mode: open}");
    let mut all = Vec::new();
    for spelling in SPELLINGS {
        for port in PORTS {
            let bare = spelling.trim_matches(['[', ']']);
            all.push(attack("connect", (*spelling).to_owned(), port));
            all.push(attack("socks", hex(spelling.as_bytes()), port));
            all.push(attack("socks", hex(bare.as_bytes()), port));
            all.push(Attack {
                port: 3128,
                says: vec![
                    format!("GET http://{spelling}:{port}/marked HTTP/1.1\r\nHost: {spelling}:{port}\r\n\r\n")
                        .into_bytes(),
                ],
                ..attack("direct", "127.0.0.1".to_owned(), port)
            });
        }
    }
    stops(&host, &flags, &all);
    reached_nothing(&host);
}

#[test]
fn g1_no_address_gets_past_the_interception() {
    let host = host();
    let flags = host.policy("{mode: open}");
    let mut all = Vec::new();
    for address in [
        PRIVATE,
        METADATA,
        HOST,
        HOST6,
        "100.64.0.9",
        "192.168.7.7",
        "203.0.113.10",
        "198.18.0.1",
        "198.18.0.2",
        "198.18.77.77",
        "198.19.255.255",
        "0.0.0.0",
        "127.0.0.1",
        "127.0.0.2",
        "255.255.255.255",
        "::1",
        "::",
        "fd00:1234::5",
        "fd00:ec2::254",
        "64:ff9b::a01:203",
        "64:ff9b::7f00:1",
        "2002:a01:203::1",
        "2002:7f00:1::1",
        "::ffff:10.1.2.3",
        "::10.1.2.3",
        "::ffff:127.0.0.1",
        "fd72:6966:656e:6365::1",
        "fd72:6966:656e:6365::ffff:ffff",
    ] {
        for port in PORTS {
            all.push(attack("direct", address.to_owned(), port));
            let way = if address.contains(':') {
                "socks6"
            } else {
                "socks4"
            };
            all.push(attack(way, address.to_owned(), port));
        }
    }
    for spelling in ["::ffff:10.1.2.3", "10.1.2.3", "127.0.0.1", HOST] {
        let curl =
            format!("curl -sSf 'http://[{spelling}]:8080/' || curl -sSf 'http://{spelling}:8080/'");
        host.online.outside(&curl).expect_code(0);
    }
    stops(&host, &flags, &all);
    reached_nothing(&host);
}

/// Finds the port of the listener that all connections end at, and dials it.
const OWN_LISTENER: &str = "import socket
socket.socket().bind(('127.0.0.1', 0))  # the network is served from now on
ports = set()
for name in ('tcp', 'tcp6'):
    for line in open('/proc/net/' + name).read().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        if state == '0A':
            ports.add(int(local.rsplit(':')[-1], 16))
assert ports, 'cannot try'
for port in ports - {3128, 1080}:
    for host in ('127.0.0.1', '127.0.0.2', '127.9.9.9', '::1', '0.0.0.0', '::', '::ffff:127.0.0.1'):
        try:
            stream = socket.create_connection((host, port), 60)
            stream.sendall(b'GET / HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n')
            assert not stream.recv(100), (host, port)
        except OSError:
            pass
print(len(ports))
";

#[test]
fn g1_the_listener_itself_leads_nowhere() {
    let host = host();
    host.write("own.py", OWN_LISTENER);
    let flags = host.policy("{mode: open}");
    let run = host.run(&flags, "/usr/bin/python3 own.py").expect_code(0);
    assert_ne!(run.stdout(), "0\n");
    reached_nothing(&host);
}

/// Takes the places of the name server and the proxies for itself.
const SHADOWS: &str = "import socket
places = [(kind, address, port)
    for kind, port in ((socket.SOCK_DGRAM, 53), (socket.SOCK_STREAM, 3128), (socket.SOCK_STREAM, 1080))
    for address in ('198.18.0.1', '127.0.0.1', '0.0.0.0', '8.8.8.8')]
for kind, address, port in places:
    if kind == socket.SOCK_STREAM and address not in ('127.0.0.1', '0.0.0.0'):
        continue
    for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        stream = socket.socket(socket.AF_INET, kind)
        if option:
            stream.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            stream.bind((address, port))
            if kind == socket.SOCK_STREAM:
                stream.listen()
            print('bound', address, port)
        except OSError:
            pass
for level, option in ((socket.SOL_IP, 19), (socket.IPPROTO_IPV6, 75), (socket.SOL_SOCKET, 36)):
    stream = socket.socket(socket.AF_INET6 if level == socket.IPPROTO_IPV6 else socket.AF_INET)
    try:
        stream.setsockopt(level, option, 1)
        print('set', level, option)
    except OSError:
        pass
";

#[test]
fn g1_nothing_inside_takes_the_place_of_a_listener() {
    let host = host();
    host.write("shadows.py", SHADOWS);
    let run = host.run(
        &["--allow", "web.example.org"],
        "/usr/bin/python3 shadows.py",
    );
    assert_eq!(run.expect_code(0).stdout(), "");
}

/// A client that resolves names by itself and gives the address to a proxy.
#[test]
fn a_virtual_address_means_its_name_to_the_proxies_too() {
    let host = host();
    for script in [
        "curl -sSf --socks5 127.0.0.1:1080 http://web.example.org/ > /dev/null",
        "address=$(getent ahostsv4 web.example.org | head -1 | cut -d' ' -f1); \
         curl -sSf --proxytunnel --proxy http://127.0.0.1:3128 --connect-to ::$address: \
         http://web.example.org/ > /dev/null",
    ] {
        host.run(&["--allow", "web.example.org"], script)
            .expect_code(0);
        host.run(&["--allow", "api.example.org"], script);
        host.sent_nothing();
    }
}
