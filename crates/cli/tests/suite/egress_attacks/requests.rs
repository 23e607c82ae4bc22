//! Requests that name another host than their connection, in whatever form a
//! server would read them.

use super::{Attack, Host, host, refuses, stops};

/// Whatever is said there arrives as it is.
const ECHO: u16 = 5432;
const FLAGS: [&str; 4] = [
    "--allow",
    "web.example.org:5432",
    "--allow",
    "web.example.org:80",
];

/// One attack for each of these; `MARK` is where the other host stands.
fn attacks(port: u16, requests: &[&str]) -> Vec<Attack> {
    let numbered = requests.iter().enumerate();
    let made = numbered.map(|(number, request)| {
        Attack::new(number, port, |mark| {
            let latin = |text: &str| text.chars().map(|one| one as u8).collect();
            let parts = request.split("WAIT").map(|part| part.replace("MARK", mark));
            parts.map(|part| latin(&part)).collect()
        })
    });
    made.collect()
}

#[test]
fn g3_a_request_for_another_host_than_its_connection() {
    let attacks = attacks(
        ECHO,
        &[
            "GET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nhOST: MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: MARK.\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org\r\nHost: MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: MARK\r\nHost: web.example.org\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org, MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org@MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org:5432@MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org%00MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org\0MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org\r\n MARK\r\n\r\n",
            "GET / HTTP/1.1\r\n Host: MARK\r\n\r\n",
            "GET / HTTP/1.1\nHost: MARK\n\n",
            "GET / HTTP/1.1\rHost: MARK\r\r",
            "\r\n\r\nGET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
            " GET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET http://MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
            "GET http://MARK/ HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET HTTP://MARK HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
            "GET http://web.example.org@MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
            "GET https://MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
            "CONNECT MARK:443 HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
            "connect MARK:443 HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nMARK",
            "GET / HTTP/2.0\r\nHost: MARK\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.example.org\r\nConnection: Upgrade, HTTP2-Settings\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: MARK\r\n\r\n",
        ],
    );
    refuses(&host(), &FLAGS, &attacks);
}

#[test]
fn g3_a_request_that_only_some_servers_take_for_one() {
    let attacks = attacks(
        ECHO,
        &[
            // nginx: the first version of HTTP, with a host in the URL.
            "GET http://MARK/\r\n",
            "GET  http://MARK/\r\n",
            "GET http://MARK/\n",
            // Node: the first version with headers, and other protocols.
            "GET /\r\nHost: MARK\r\n\r\n",
            "POST /\r\nHost: MARK\r\nContent-Length: 0\r\n\r\n",
            "M-SEARCH /\r\nHost: MARK\r\n\r\n",
            "OPTIONS *\r\nHost: MARK\r\n\r\n",
            "GET *\r\nHost: MARK\r\n\r\n",
            "CONNECT MARK:443\r\nHost: MARK\r\n\r\n",
            "OPTIONS / RTSP/1.0\r\nHost: MARK\r\n\r\n",
            "SOURCE / ICE/1.0\r\nHost: MARK\r\n\r\n",
            // Python: other blanks.
            "\x0bGET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET\x0b/ HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET\x0c/ HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET\r/ HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET\x1c/ HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET\u{85}/ HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "GET\u{a0}/\u{a0}HTTP/1.1\r\nHost: MARK\r\n\r\n",
            // Servers behind a balancer.
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
            "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x01\x02\x03\x04\0\x01\0\x02\
             GET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
        ],
    );
    refuses(&host(), &FLAGS, &attacks);
}

/// A server in Python's own library on port 8000.
const PYTHON: &str = "import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'for ' + self.headers.get('Host', '-').encode() + b'.')
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(('0.0.0.0', 8000), Handler).serve_forever()
";

/// Says something to that server and prints the answer.
const ASK: &str = r"import socket, sys
stream = socket.create_connection(('v4.example.org', 8000), 60)
stream.sendall(b'GET\x0b/ HTTP/1.1\r\nHost: marked.test\r\n\r\n')
stream.shutdown(socket.SHUT_WR)
try:
    said = b''
    while more := stream.recv(4096):
        said += more
    print(said)
except OSError as error:
    print(type(error).__name__)
";

#[test]
fn g3_a_real_server_that_reads_more_than_we_do() {
    let host = host();
    let server = host.net().program_in_the_world("/usr/bin/python3");
    let _server = server.args(["-c", PYTHON]).start();
    host.write("ask.py", ASK);
    let listening = "until curl -s http://v4.example.org:8000/ > /dev/null; do sleep 0.05; done";
    host.online.outside(listening).expect_code(0);
    let ask = "/usr/bin/python3 ask.py";
    let said = host.online.outside(ask).expect_code(0).stdout;
    assert!(said.contains("for marked.test."), "{said}");
    let run = host
        .run(&["--allow", "v4.example.org:8000"], ask)
        .expect_code(0);
    assert!(!run.stdout().contains("marked.test"), "{}", run.stdout());
}

#[test]
fn g3_a_kept_connection_that_changes_its_host() {
    let first = "GET /bytes/3 HTTP/1.1\r\nHost: web.example.org\r\n\r\n";
    let tails = [
        "GET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
        "WAITGET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
        "GET http://MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET http://MARK/\r\n",
        "GET /\r\nHost: MARK\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
        "\x0bGET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
        "CONNECT MARK:443 HTTP/1.1\r\nHost: MARK\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nMARK",
        "MARK",
    ];
    let requests: Vec<String> = tails.iter().map(|tail| format!("{first}{tail}")).collect();
    let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
    let host = host();
    refuses(&host, &FLAGS, &attacks(ECHO, &requests[..1]));
    // A real server, which answers the first one.
    let mut all = attacks(80, &requests);
    stops(&host, &FLAGS, &all);
    for way in ["connect", "socks"] {
        for attack in &mut all {
            attack.way = way;
            if way == "socks" {
                attack.host = super::hex(attack.host.as_bytes());
            }
        }
        stops(&host, &FLAGS, &all);
    }
}

/// A request with a body that ends in two ways; what comes after one of the
/// ends is a request for another host.
const SMUGGLED: &[&str] = &[
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nNEXT",
    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nNEXT",
    "Content-Length: 0\r\nContent-Length: 5\r\n\r\nNEXT",
    "Content-Length: 0, 5\r\n\r\nNEXT",
    "Content-Length: +0\r\n\r\nNEXT",
    "Content-Length: 0x0\r\n\r\nNEXT",
    "Content-Length:\r\n\r\nNEXT",
    "Content-Length: 00000000000000000000\r\n\r\nNEXT",
    "Content-Length: 18446744073709551616\r\n\r\nNEXT",
    "Content_Length: 1000\r\n\r\nNEXT",
    "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\nNEXT",
    "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nNEXT",
    "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\nNEXT",
    "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\nNEXT",
    "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\nNEXT",
    "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\nNEXT",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\nNEXT",
    "Transfer_Encoding: chunked\r\nContent-Length: 1000\r\n\r\n0\r\n\r\nNEXT",
    "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nNEXT",
    "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nNEXT",
    "X:\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nNEXT",
    "Transfer-Encoding: chunked\r\n\r\n0\r\nNEXT",
    "Transfer-Encoding: chunked\r\n\r\n0\n\nNEXT",
    "Transfer-Encoding: chunked\r\n\r\n00000000000000000\r\n\r\nNEXT",
    "Transfer-Encoding: chunked\r\n\r\n1;\nNEXT\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n2\r\nabNEXT",
    "Transfer-Encoding: chunked\r\n\r\n2\r\nab\nNEXT",
    "Transfer-Encoding: chunked\r\n\r\n-1\r\nNEXT",
    "Transfer-Encoding: chunked\r\n\r\n0\r\nHost: MARK\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: MARK\r\n\r\n",
    "Connection: Host\r\n\r\nNEXT",
    "Connection: Content-Length\r\nContent-Length: 9\r\n\r\nNEXT",
    "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\nNEXT",
    "Expect: MARK\r\n\r\n",
    "\r\nNEXT",
];

#[test]
fn g1_no_request_hides_in_another() {
    let next = "GET / HTTP/1.1\r\nHost: MARK\r\n\r\n";
    let request = |rest: &&str| {
        let first = "POST /status/200 HTTP/1.1\r\nHost: web.example.org\r\n";
        format!("{first}{}", rest.replace("NEXT", next))
    };
    let requests: Vec<String> = SMUGGLED.iter().map(request).collect();
    let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
    let host = host();
    refuses(&host, &FLAGS, &attacks(ECHO, &requests));
    stops(&host, &FLAGS, &attacks(80, &requests));
}

/// Requests to the proxy itself. There is none outside to try them on; that
/// these hosts answer is what the proof outside is for.
#[test]
fn g3_a_proxy_request_that_names_two_hosts() {
    let host = host();
    let requests = [
        "GET http://web.example.org/ HTTP/1.1\r\nHost: MARK\r\n\r\n",
        "GET http://MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET http://web.example.org/ HTTP/1.1\r\nHost: web.example.org\r\nHost: MARK\r\n\r\n",
        "GET http://web.example.org@MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET http://MARK\\@web.example.org/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET http://MARK#@web.example.org/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET http://web.example.org:80@MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET http:/MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET ftp://MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET //MARK/ HTTP/1.1\r\nHost: web.example.org\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
        "CONNECT web.example.org:80 HTTP/1.1\r\nHost: MARK:80\r\n\r\n",
        "CONNECT MARK:80 HTTP/1.1\r\nHost: web.example.org:80\r\n\r\n",
        "CONNECT web.example.org:80@MARK:80 HTTP/1.1\r\n\r\n",
        "CONNECT web.example.org:80 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: MARK\r\n\r\n",
        "CONNECT web.example.org:80 HTTP/1.1\r\n\r\nWAITGET http://MARK/\r\n",
        "CONNECT web.example.org:80 HTTP/1.1\r\nContent-Length: 4\r\n\r\nMARK",
    ];
    let mut attacks = attacks(3128, &requests);
    for attack in &mut attacks {
        attack.host = "127.0.0.1".to_owned();
        host.net().zone().set(&attack.mark, "45.0.0.10");
        outside_is_served(&host, &attack.mark);
    }
    stops(&host, &FLAGS, &attacks);
}

fn outside_is_served(host: &Host, name: &str) {
    let script = format!("curl -sSf http://{name}/ > /dev/null");
    host.online.outside(&script).expect_code(0);
}
