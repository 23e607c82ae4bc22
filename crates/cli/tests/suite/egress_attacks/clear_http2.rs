//! HTTP/2 in clear with a server that sends its settings as soon as somebody
//! comes: no request over it passes without being judged and recorded.

use ringfence_testkit::wait_until;

use super::framings::Server;
use super::{Attack, Host, SAY, hex, host, prepare};

const PORT: u16 = 8005;

const NODE: &str = "const fs = require('fs');
require('http2').createServer((asked, answer) => {
    fs.appendFileSync(process.argv[1], `${asked.authority} ${asked.url}\\n`);
    answer.end('ok');
}).on('sessionError', () => {}).listen(8005, '0.0.0.0');
";

fn frame(kind: u8, flags: u8, stream: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("a short frame");
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], content].concat()
}

/// A field of HPACK's static table with a value of its own.
fn field(index: u8, value: &str) -> Vec<u8> {
    let length = u8::try_from(value.len()).expect("a short value");
    [&[index, length], value.as_bytes()].concat()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Settings, and two requests.
fn requests(authority: &str, number: usize) -> Vec<u8> {
    let request = |stream: u8| {
        // GET and http stand in the table whole.
        let path = format!("/{number}/{stream}");
        let fields = [&[0x82, 0x86][..], &field(4, &path), &field(1, authority)].concat();
        frame(1, 5, stream, &fields)
    };
    [frame(4, 0, 0, &[]), request(1), request(3)].concat()
}

/// What is said in the beginning; without words, until the server has said
/// something.
fn attack(number: usize, authority: &str) -> Attack {
    let all = [PREFACE, &requests(authority, number)].concat();
    let (first, rest) = all.split_at(5);
    let says = match number % 4 {
        0 => vec![all],
        1 => vec![vec![], all],
        2 => vec![first.to_vec(), vec![], rest.to_vec()],
        _ => vec![vec![], first.to_vec(), rest.to_vec()],
    };
    Attack {
        host: "v4.example.org".to_owned(),
        ..Attack::new(number, PORT, |_| says)
    }
}

fn server(host: &Host) -> Server {
    Server::start(host, PORT, "/usr/bin/node", &["-e", NODE, "SEEN"])
}

#[test]
fn g1_g7_http2_in_clear_is_refused_though_the_server_speaks_first() {
    let host = host();
    let server = server(&host);
    for authority in ["v4.example.org:8005", "other.test"] {
        let mut attacks: Vec<_> = (0..20).map(|number| attack(number, authority)).collect();
        prepare(&host, &attacks);
        server.seen();
        host.online.outside(SAY).expect_code(0);
        let mut seen = Vec::new();
        let all_arrive = wait_until(|| {
            seen.extend(server.seen());
            seen.len() == 40
        });
        assert!(all_arrive, "outside: {seen:?}");

        for way in ["direct", "connect", "socks"] {
            for attack in &mut attacks {
                attack.way = way;
                if way == "socks" {
                    attack.host = hex(b"v4.example.org");
                }
            }
            prepare(&host, &attacks);
            let run = host.run(&["--allow", "v4.example.org:8005"], SAY);
            let run = run.expect_code(0);
            assert_eq!(server.seen(), Vec::<String>::new(), "{way}");
            let refused = ["http-version", "late-request", "malformed-request"];
            let refused: u64 = refused.into_iter().map(|why| run.refusals(why)).sum();
            assert_eq!(refused, 20, "{way}: {:?}", run.told());
        }
    }
}
