//! The servers of the small internet, asked by the clients that people use.

use ringfence_testkit::place::port::{BANNER, ECHO, PROXY, PROXY_WITH_PASSWORD, REDIS, SSH};
use ringfence_testkit::place::{PRIVATE, PUBLIC};
use ringfence_testkit::{Folder, Internet, Service};

/// Runs a script with `set -e` on the host and returns what it printed.
#[track_caller]
fn works(net: &Internet, folder: &Folder, script: &str) -> String {
    let outcome = net.sh(&format!("set -e\n{script}"), folder);
    assert_eq!(outcome.code(), 0, "`{script}`: {outcome:?}");
    outcome.stdout
}

#[test]
fn a_web_server_has_pages_for_every_case() {
    let (net, folder) = (Internet::start(), Folder::new());
    let site = "https://web.example.org";
    for (script, shown) in [
        (
            format!("curl -sS {site}/bytes/1000000 | wc -c"),
            "1000000\n",
        ),
        (
            format!("curl -sS {site}/chunks/3"),
            "chunk 1\nchunk 2\nchunk 3\n",
        ),
        (format!("curl -sS {site}/until-end"), "the end\n"),
        (
            format!("curl -sS -o x -w '%{{http_code}}' {site}/status/418"),
            "418",
        ),
        (
            format!("curl -sSI {site}/bytes/5 | grep -i length | tr -d '\\r'"),
            "Content-Length: 5\n",
        ),
        (
            format!("curl -sS -L '{site}/redirect?to=https%3A%2F%2Fother.test%2Fstatus%2F200'"),
            "200\n",
        ),
        (
            format!("curl -sS {site}/slow/50 | grep -o '\"target\":\"/slow/50\"'"),
            "\"target\":\"/slow/50\"\n",
        ),
        // One connection for both.
        (
            format!("curl -sS -w '%{{num_connects}} ' {site}/status/200 {site}/status/201"),
            "200\n1 201\n0 ",
        ),
    ] {
        assert_eq!(works(&net, &folder, &script), shown, "{script}");
    }
}

#[test]
fn a_web_server_counts_what_is_sent() {
    let (net, folder) = (Internet::start(), Folder::new());
    folder.write("upload", &"x".repeat(3_000_000));
    for how in ["", "-H 'Transfer-Encoding: chunked'"] {
        let script = format!("curl -sS {how} -T upload http://web.example.org/");
        let shown = works(&net, &folder, &script);
        assert!(shown.contains(r#""body_bytes":3000000"#), "{how}");
    }
}

#[test]
fn a_web_server_switches_protocols() {
    let (net, folder) = (Internet::start(), Folder::new());
    let script = format!(
        "printf 'GET / HTTP/1.1\\r\\nHost: web.example.org\\r\\nConnection: Upgrade\\r\\n\
         Upgrade: websocket\\r\\n\\r\\nhello' | socat -t 5 - tcp:{PUBLIC}:80"
    );
    let shown = works(&net, &folder, &script);
    assert!(shown.starts_with("HTTP/1.1 101 "), "{shown}");
    assert!(shown.ends_with("\r\n\r\nhello\ntotal 5\n"), "{shown}");
}

#[test]
fn raw_servers_echo_greet_and_know_when_the_client_is_done() {
    let (net, folder) = (Internet::start(), Folder::new());
    let talk = |port: u16| {
        let script = format!("printf hello | socat -t 5 - tcp:{PUBLIC}:{port}");
        works(&net, &folder, &script)
    };
    assert_eq!(talk(ECHO), "hello\ntotal 5\n");
    assert_eq!(talk(BANNER), "220 mail.test ESMTP\r\nhello\ntotal 5\n");
    let services: Vec<Service> = net.connections().iter().map(|one| one.service).collect();
    assert_eq!(services, [Service::Echo, Service::Banner]);
    assert_eq!(net.connections()[0].saw, ["hello", "5 bytes"]);
}

#[test]
fn redis_keeps_values_for_a_connection() {
    let (net, folder) = (Internet::start(), Folder::new());
    let script = format!("printf 'PING\\nSET a b\\nGET a\\n' | redis-cli -h {PRIVATE} -p {REDIS}");
    assert_eq!(works(&net, &folder, &script), "PONG\nOK\nb\n");
    assert!(net.saw("SET a b"));
}

#[test]
fn a_proxy_tunnels_and_forwards() {
    let (net, folder) = (Internet::start(), Folder::new());
    let proxy = format!("curl -sS -x http://{PRIVATE}:{PROXY}");
    let shown = works(&net, &folder, &format!("{proxy} https://api.example.org/"));
    assert!(shown.contains(r#""sni":"api.example.org""#), "{shown}");
    let shown = works(
        &net,
        &folder,
        &format!("{proxy} -d body http://api.example.org/x"),
    );
    assert!(shown.contains(r#"["Via","1.1 proxy.test"]"#), "{shown}");
    assert!(shown.contains(r#""body":"body""#), "{shown}");
    let proxied = net
        .connections()
        .into_iter()
        .filter(|one| one.service == Service::Proxy);
    let heads: Vec<String> = proxied.map(|one| one.saw[0].clone()).collect();
    assert!(
        heads[0].starts_with("CONNECT api.example.org:443 "),
        "{heads:?}"
    );
    assert!(
        heads[1].starts_with("POST http://api.example.org/x "),
        "{heads:?}"
    );
    // The host asked for no name: the proxy does that.
    assert!(net.dns_queries().is_empty());
}

#[test]
fn a_proxy_with_a_password_refuses_those_without() {
    let (net, folder) = (Internet::start(), Folder::new());
    let proxy = format!("{PRIVATE}:{PROXY_WITH_PASSWORD}");
    for url in ["http://api.example.org/", "https://api.example.org/"] {
        let code =
            format!("curl -s -o x -w '%{{http_code}}%{{http_connect}}' -x http://{proxy} {url}");
        let shown = net.sh(&code, &folder).stdout;
        assert!(shown.contains("407"), "{url}: {shown}");
        let script = format!("curl -sS -x http://user:password@{proxy} {url}");
        assert!(works(&net, &folder, &script).contains("api.example.org"));
    }
}

#[test]
fn usual_clients_trust_the_test_authority() {
    let (net, folder) = (Internet::start(), Folder::new());
    // Not the one of a version manager, which has modules of its own.
    let python = "/usr/bin/python3 -c";
    for script in [
        "wget -qO- https://web.example.org/".to_owned(),
        format!(
            "{python} 'from urllib.request import *; print(urlopen(\"https://web.example.org/\").read())'"
        ),
        format!(
            "{python} 'import requests; print(requests.get(\"https://web.example.org/\").text)'"
        ),
        format!(
            "NODE_EXTRA_CA_CERTS={} node -e \
             'fetch(\"https://web.example.org/\").then(r => r.text()).then(console.log)'",
            net.ca_file().display()
        ),
    ] {
        let shown = works(&net, &folder, &script);
        assert!(
            shown.contains(r#""sni":"web.example.org""#),
            "{script}: {shown}"
        );
    }
    assert!(
        net.sh(
            "curl -sS --cacert /dev/null https://web.example.org/",
            &folder
        )
        .code()
            != 0
    );
}

#[test]
fn java_trusts_the_test_authority_when_asked_to() {
    let (net, folder) = (Internet::start(), Folder::new());
    net.trust_in_java();
    let source = r"
        import java.net.URI;
        public class Get {
            public static void main(String[] arguments) throws Exception {
                var stream = URI.create(arguments[0]).toURL().openStream();
                System.out.print(new String(stream.readAllBytes()));
            }
        }";
    folder.write("Get.java", source);
    let shown = works(&net, &folder, "java Get.java https://web.example.org/");
    assert!(shown.contains(r#""sni":"web.example.org""#), "{shown}");
}

/// A bare repository at `place` with one commit.
const REPOSITORY: &str = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
    export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
    git init -q -b main work
    echo one > work/file
    git -C work add file
    git -C work commit -qm first
    git clone -q --bare work \"$place\"
    git -C \"$place\" update-server-info";

#[test]
fn git_clones_over_https_and_over_ssh() {
    let (net, folder) = (Internet::start(), Folder::new());
    let place = net.files().join("repository.git");
    works(
        &net,
        &folder,
        &format!("place={}\n{REPOSITORY}", place.display()),
    );
    let script = "git clone -q https://web.example.org/files/repository.git a; cat a/file";
    assert_eq!(works(&net, &folder, script), "one\n");

    let ssh = net.ssh();
    let known = format!("web.example.org {}", ssh.server_key());
    let known = folder.write("known_hosts", &known);
    let command = format!(
        "ssh -F none -i {} -p {SSH} -o IdentitiesOnly=yes -o BatchMode=yes -o UserKnownHostsFile={}",
        ssh.client_key().display(),
        known.display()
    );
    let script = format!(
        "GIT_SSH_COMMAND='{command}' git clone -q \"ssh://$(id -un)@web.example.org{}\" b; cat b/file",
        place.display()
    );
    assert_eq!(works(&net, &folder, &script), "one\n");
    let services: Vec<Service> = net.connections().iter().map(|one| one.service).collect();
    assert!(services.contains(&Service::Ssh), "{services:?}");
}

#[test]
fn a_program_elsewhere_in_the_world_can_be_reached() {
    let net = Internet::start();
    let listen = ["-u", "tcp-listen:9100,reuseaddr", "stdout"];
    let server = net.program_in_the_world("socat").args(listen).start();
    let send = format!("until echo hello | socat -u - tcp:{PUBLIC}:9100; do :; done");
    net.sh(&send, "/").expect_code(0);
    assert_eq!(server.finish().expect_code(0).stdout, "hello\n");
}
