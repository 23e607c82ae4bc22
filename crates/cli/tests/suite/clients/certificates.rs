//! Servers that want to know their clients by certificates.

use ringfence_testkit::{Folder, Started};

use super::Host;

const PORT: &str = "8007";

/// An authority, a server's certificate and a client's.
const MAKE: &str = "set -e
    make() { openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key \
             -subj /CN=$1 -out $1.csr 2> /dev/null; }
    sign() { openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
             -extfile $1.ext -out $1.pem 2> /dev/null; }
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key \
            -subj /CN=ca -addext basicConstraints=critical,CA:TRUE -days 2 -out ca.pem 2> /dev/null
    echo subjectAltName=DNS:v4.example.org > server.ext
    echo keyUsage=digitalSignature > client.ext
    for one in server client; do make $one; sign $one; done";

fn server(host: &Host, version: &str) -> Started {
    let folder = Folder::new();
    for name in ["server.pem", "server.key", "ca.pem"] {
        folder.write(name, &host.online.arena.folder.read(name));
    }
    let words = "s_server -cert server.pem -key server.key -CAfile ca.pem -Verify 1 \
                 -verify_return_error -www -quiet -accept";
    let server = host.net().program_in_the_world("/usr/bin/openssl");
    let server = server.args(words.split_whitespace()).args([PORT, version]);
    let server = server.folder(&folder).start();
    let is_up = format!(
        "until socat -u OPEN:/dev/null tcp:v4.example.org:{PORT} 2> /dev/null; do sleep 0.05; done"
    );
    host.online.outside(&is_up).expect_code(0);
    server
}

/// It goes with the client's own where nothing is looked into. Where something
/// is, nobody has it to show, and that is said.
#[test]
fn g5_a_certificate_of_the_client_is_shown_by_the_client_alone() {
    let host = Host::new();
    host.online.outside(MAKE).expect_code(0);
    let ask = format!(
        "curl -sS -m 60 -o page -w '%{{http_code}} ' --cert client.pem --key client.key \
         https://v4.example.org:{PORT}/; grep -o 'wants a certificate' page; :"
    );
    let reason = "upstream-wants-certificate";
    for version in ["-tls1_3", "-tls1_2"] {
        let _server = server(&host, version);
        let plain = ask.replace("--cert client", "--cacert ca.pem --cert client");
        let outside = host.online.outside(&plain).expect_code(0);
        assert_eq!(outside.stdout, "200 ", "{version}");
        let without = plain.replace("--cert client.pem --key client.key", "");
        let outside = host.online.outside(&without).expect_code(0);
        assert_ne!(outside.stdout, "200 ", "{version}");

        let allow = format!("v4.example.org:{PORT}");
        for way in ["", "--noproxy '*' "] {
            let plain = plain.replace("-sS ", &format!("-sS {way}"));
            let run = host.run(&["--allow", &allow], &plain).expect_code(0);
            assert_eq!(run.stdout(), "200 ", "{version} {way}");
        }

        let rule = format!("{{host: v4.example.org, ports: [{PORT}], inspect: true}}");
        let network = format!("{{allow: [{rule}], authorities: [ca.pem]}}");
        let flags = host.policy(&network);
        let headers = ask.replace("-o page", "-i -o page").replace(
            "grep -o 'wants a certificate' page",
            "grep -oi 'x-ringfence-reason: [a-z-]*' page",
        );
        let run = host.run(&flags, &headers).expect_code(0);
        assert_eq!(run.stdout(), format!("502 x-ringfence-reason: {reason}\n"));
        assert_eq!(run.refusals(reason), 1, "{:?}", run.told());
        let stderr = &run.outcome.stderr;
        assert!(
            stderr.contains("no client certificate is shown"),
            "{stderr}"
        );
    }
}
