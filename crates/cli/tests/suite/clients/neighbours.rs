//! What is near: the sandbox's own servers, the host's, and what no policy
//! opens: datagrams.

use ringfence_testkit::place::{METADATA, PRIVATE, PUBLIC, PUBLIC6};

use super::{Host, PLAIN_WAYS};

#[test]
fn servers_of_the_sandbox_itself_are_reached_as_ever() {
    let host = Host::new();
    host.write("page", "own\n");
    let script = "
        /usr/bin/python3 -m http.server -b 127.0.0.1 8000 > /dev/null 2>&1 &
        /usr/bin/python3 -m http.server -b ::1 8001 > /dev/null 2>&1 &
        for url in http://localhost:8000 http://127.0.0.1:8000 'http://[::1]:8001'; do
            until curl -s --noproxy '*' $url/ > /dev/null; do sleep 0.05; done
            curl -sSf $url/page && curl -sSf --noproxy '*' $url/page
            /usr/bin/python3 -c \"import urllib.request as u; print(u.urlopen('$url/page').read())\"
        done";
    let run = host
        .run(&["--allow", "web.example.org"], script)
        .expect_code(0);
    assert_eq!(run.stdout(), "own\nown\nb'own\\n'\n".repeat(3));
    assert!(run.told().is_empty(), "{:?}", run.told());
    host.sent_nothing();
}

#[test]
fn servers_of_the_host_are_reached_by_the_ports_that_are_named() {
    let host = Host::new();
    let flags = host.policy("{mode: allowlist, hostPorts: [8080]}");
    let url = "http://host.ringfence.internal:8080/";
    for (way, via) in PLAIN_WAYS {
        let script = format!("curl -sSf {way} {url}");
        let run = host.run(&flags, &script).expect_code(0);
        assert!(
            run.stdout().contains(r#""to":"127.0.0.1:8080""#),
            "{}",
            run.stdout()
        );
        let told = run.told();
        assert_eq!(told.len(), 1, "{told:?}");
        let start = format!("allowed host.ringfence.internal:8080 {via} curl ");
        assert!(told[0].starts_with(&start), "{told:?}");
        assert!(host.net().packets().is_empty());

        let run = host
            .run(&["--allow", "web.example.org"], &script)
            .expect_code(22);
        let told = run.told();
        assert!(
            told.len() == 1 && told[0].starts_with("refused host.ringfence.internal:8080"),
            "{told:?}"
        );
        host.sent_nothing();
    }
}

#[test]
fn a_port_of_the_host_opens_no_other_way_there() {
    let host = Host::new();
    let flags = host.policy("{mode: allowlist, hostPorts: [8080], allow: [loopback.test:8080]}");
    for (script, code) in [
        ("curl -sSf http://host.ringfence.internal:5432/", 22),
        ("curl -sSf --noproxy '*' http://10.77.0.2:8080/", 22),
        ("curl -sSf --noproxy '*' http://[2a0f:ffff:77::2]:8080/", 22),
        ("curl -sSf --noproxy '*' http://loopback.test:8080/", 22),
        ("curl -sSf http://loopback.test:8080/", 22),
        ("curl -sSf --noproxy '' http://localhost:8080/", 22),
        ("curl -sSf --noproxy '' http://127.0.0.1:8080/", 22),
        // There is no such server of the sandbox's own.
        ("curl -sSf http://127.0.0.1:8080/", 7),
    ] {
        let run = host.run(&flags, script).expect_code(code);
        assert!(
            run.told().iter().all(|one| one.starts_with("refused ")),
            "{:?}",
            run.told()
        );
        assert!(host.net().connections().is_empty(), "{script}");
    }
}

/// Sends a datagram twice and waits; a refusal of the first is an error of
/// what comes after it.
const SEND: &str = "import socket, sys
host, port = sys.argv[1:]
kind, _, _, _, place = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
stream = socket.socket(kind, socket.SOCK_DGRAM)
stream.settimeout(60)
try:
    stream.connect(place)
    for _ in range(2):
        stream.send(b'data')
    print(stream.recv(100))
except OSError as error:
    print(type(error).__name__)
";

#[test]
fn g1_datagrams_are_refused_at_once_and_never_leave() {
    let host = Host::new();
    host.write("send.py", SEND);
    let flags = host.policy(
        "{mode: allowlist, allow: [web.example.org, 45.0.0.10, {cidr: 10.0.0.0/8, ports: [443, 123]}]}",
    );
    for place in [
        "web.example.org",
        "other.test",
        PUBLIC,
        PUBLIC6,
        PRIVATE,
        METADATA,
    ] {
        let attack = format!(
            "for port in 443 123 9999 5353; do /usr/bin/python3 send.py {place} $port; done"
        );
        let run = host.run(&flags, &attack).expect_code(0);
        assert_eq!(
            run.stdout(),
            "ConnectionRefusedError\n".repeat(4),
            "{place}"
        );
        host.sent_nothing();
        assert!(host.net().datagrams().is_empty(), "{place}");
    }
    host.online
        .outside(&format!("printf data | socat -u - udp:{PUBLIC}:443"))
        .expect_code(0);
    assert_eq!(host.net().datagrams().len(), 1, "it would have arrived");
}
