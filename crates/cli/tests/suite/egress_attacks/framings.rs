//! Requests in the bodies of others, at servers that people use: whatever one
//! of them takes for a request was judged and is in the log.

use ringfence_testkit::{Folder, Started, framings};

use super::{Host, host};

const PYTHON_PORT: u16 = 8001;

/// Leaves every body unread, as handlers do that expect none.
const HANDLER: &str = "import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self):
        with open(sys.argv[1], 'a') as seen:
            seen.write(f'{self.command} {self.path}\\n')
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    do_GET = do_HEAD = do_DELETE = do_OPTIONS = do_POST = do_PUT = do_PATCH = answer
    def log_message(self, *words):
        pass
";

const IN_CLEAR: &str = "
http.server.ThreadingHTTPServer(('0.0.0.0', 8001), Handler).serve_forever()
";

/// With a certificate and its key.
const OVER_TLS: &str = "
class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *words):
        pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server = Server(('0.0.0.0', 8009), Handler)
def accept():
    stream, client = server.socket.accept()
    return context.wrap_socket(stream, server_side=True, do_handshake_on_connect=False), client
server.get_request = accept
server.serve_forever()
";

/// Does not wait for more from a client that has ended.
const NODE: &str = "const fs = require('fs');
require('http').createServer({keepAliveTimeout: 20}, (asked, answer) => {
    fs.appendFileSync(process.argv[1], `${asked.method} ${asked.url}\\n`);
    answer.end('ok');
}).listen(8002, '0.0.0.0');
";

/// Reads what its handler leaves. What it logs of each malformed request would
/// fill the pipe that nobody reads.
const AIOHTTP: &str = "import logging, sys
from aiohttp import web
logging.disable()
async def answer(asked):
    with open(sys.argv[1], 'a') as seen:
        seen.write(f'{asked.method} {asked.raw_path}\\n')
    return web.Response(text='ok')
application = web.Application()
application.router.add_route('*', '/{path:.*}', answer)
web.run_app(application, host='0.0.0.0', port=8004, print=None, access_log=None)
";

const NGINX: &str = "daemon off; master_process off; pid DIR/pid; error_log DIR/errors;
events {}
http {
    map $status $counts { ~^2 1; default 0; }
    log_format seen '$request_method $request_uri';
    access_log DIR/seen seen if=$counts;
    client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
    lingering_close off; keepalive_timeout 50ms;
    server { listen 8003; location / { return 200 ok; } }
}
";

/// A server of the world, and the file in which it notes what it was asked.
pub(super) struct Server {
    port: u16,
    folder: Folder,
    _running: Started,
}

impl Server {
    /// With `SEEN` in its arguments for the file.
    pub(super) fn start(host: &Host, port: u16, program: &str, arguments: &[&str]) -> Self {
        let folder = Folder::new();
        let seen = folder.write("seen", "");
        let path = seen.to_string_lossy();
        let arguments: Vec<String> = arguments
            .iter()
            .map(|one| one.replace("SEEN", &path))
            .collect();
        let running = host.net().program_in_the_world(program).args(arguments);
        let running = running.start();
        let listening = format!(
            "until socat -u OPEN:/dev/null tcp:v4.example.org:{port} 2> /dev/null; \
             do sleep 0.05; done"
        );
        host.online.outside(&listening).expect_code(0);
        Self {
            port,
            folder,
            _running: running,
        }
    }

    fn nginx(host: &Host) -> Self {
        let own = Folder::new();
        let directory = own.path().to_string_lossy().into_owned();
        own.write("nginx.conf", &NGINX.replace("DIR", &directory));
        let configuration = format!("{directory}/nginx.conf");
        let errors = format!("{directory}/errors");
        let server = Self::start(
            host,
            8003,
            "/usr/sbin/nginx",
            &["-p", &directory, "-c", &configuration, "-e", &errors],
        );
        Self {
            folder: own,
            ..server
        }
    }

    /// What it took for a request since the last call.
    pub(super) fn seen(&self) -> Vec<String> {
        let file = self.folder.join("seen");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        // The server has it open.
        std::fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&file)
            .expect("what was seen");
        text.lines().map(str::to_owned).collect()
    }
}

fn servers(host: &Host) -> Vec<Server> {
    vec![
        Server::start(
            host,
            PYTHON_PORT,
            "/usr/bin/python3",
            &["-c", &[HANDLER, IN_CLEAR].concat(), "SEEN"],
        ),
        Server::start(host, 8002, "/usr/bin/node", &["-e", NODE, "SEEN"]),
        Server::nginx(host),
        Server::start(host, 8004, "/usr/bin/python3", &["-c", AIOHTTP, "SEEN"]),
    ]
}

#[test]
fn g1_g7_no_server_sees_a_request_that_is_not_in_the_log() {
    let host = host();
    host.write("say_all.py", include_str!("scripts/say_all.py"));
    for server in servers(&host) {
        let port = server.port;
        let all = framings(&format!("v4.example.org:{port}"), "");
        let said: Vec<String> = all
            .iter()
            .map(|one| String::from_utf8(one.bytes.clone()).unwrap())
            .collect();
        host.write("said.json", &serde_json::Value::from(said).to_string());
        let say = format!("/usr/bin/python3 say_all.py {port}");
        server.seen();
        host.online.outside(&say).expect_code(0);
        let hidden = |seen: &[String]| seen.iter().filter(|one| one.contains("/hidden/")).count();
        let outside = server.seen();
        assert!(!outside.is_empty(), "{port}");
        // Bodies are left where they are by this one.
        if port == PYTHON_PORT {
            assert!(hidden(&outside) > 100, "{outside:?}");
        }

        let rule = format!("{{host: v4.example.org, ports: [{port}], paths: [/open/**]}}");
        let flags = host.policy(&format!("{{allow: [{rule}]}}"));
        let run = host.run(&flags, &say).expect_code(0);
        let seen = server.seen();
        // Of many that are alike the log has a number.
        let (asked, known) = (seen.len() as u64, run.admissions());
        assert!(asked <= known, "{port}: {asked} of {known}");
        let others: Vec<_> = seen.iter().filter(|one| !one.contains(" /open/")).collect();
        assert!(others.is_empty(), "{port}: {others:?}");
        assert!(seen.len() > 50, "{port}: {}", seen.len());

        // Without rules for single requests the host is held all the same.
        let allow = format!("v4.example.org:{port}");
        let run = host.run(&["--allow", &allow], &say).expect_code(0);
        let seen = server.seen();
        assert!(seen.len() as u64 <= run.admissions(), "{port}");
        assert_eq!(hidden(&seen), 0, "{port}");
        assert!(seen.len() > 50, "{port}: {}", seen.len());
    }
}

/// Where TLS is looked into, whatever a server takes for a request was judged
/// and recorded as well.
#[test]
fn g1_g7_no_server_behind_tls_sees_a_request_that_is_not_in_the_log() {
    let host = host();
    host.write("say_all.py", include_str!("scripts/say_all.py"));
    let make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
                -subj /CN=v4.example.org -addext subjectAltName=DNS:v4.example.org \
                -addext basicConstraints=critical,CA:FALSE -keyout own.key -out own.pem 2> /dev/null";
    host.online.outside(make).expect_code(0);
    let own = ["own.pem", "own.key"].map(|name| host.online.arena.folder.join(name));
    let [certificate, key] = own.map(|path| path.to_string_lossy().into_owned());
    let program = [HANDLER, OVER_TLS].concat();
    let words = ["-c", &program, "SEEN", &certificate, &key];
    let server = Server::start(&host, 8009, "/usr/bin/python3", &words);
    let all = framings("v4.example.org:8009", "");
    let said = all.iter().map(|one| String::from_utf8_lossy(&one.bytes));
    let said: Vec<_> = said.map(String::from).collect();
    host.write("said.json", &serde_json::Value::from(said).to_string());
    let say = "/usr/bin/python3 say_all.py 8009 tls";
    server.seen();
    let outside = format!("SSL_CERT_FILE=own.pem {say}");
    host.online.outside(&outside).expect_code(0);
    let hidden = |seen: &[String]| seen.iter().filter(|one| one.contains("/hidden/")).count();
    assert!(hidden(&server.seen()) > 100);
    for only in ["paths: [/open/**]", "inspect: true"] {
        let rule = format!("{{host: v4.example.org, ports: [8009], {only}}}");
        let flags = host.policy(&format!("{{allow: [{rule}], authorities: [own.pem]}}"));
        let run = host.run(&flags, say).expect_code(0);
        let seen = server.seen();
        let (asked, known) = (seen.len() as u64, run.admissions());
        assert!(asked <= known, "{only}: {asked} of {known}");
        let others: Vec<_> = seen.iter().filter(|one| !one.contains(" /open/")).collect();
        assert!(others.is_empty(), "{only}: {others:?}");
        assert!(seen.len() > 50, "{only}: {}", seen.len());
    }
}
