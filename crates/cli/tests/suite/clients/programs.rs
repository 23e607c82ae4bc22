//! Programs and languages with network code of their own.

use std::io::{Read, Write};
use std::net::TcpStream;

use ringfence_testkit::sh;

use super::{Client, Host};

const PAGE: &str = "http://web.example.org/";
const TLS_PAGE: &str = "https://web.example.org/";

/// Checks a program in each way that it can come in, with a page as last word.
fn check(host: &Host, program: &str, cases: &[(&str, &str, &str)]) {
    for (via, words, page) in cases {
        let to = if page.starts_with("https") {
            "web.example.org:443"
        } else {
            "web.example.org:80"
        };
        host.check(&Client {
            via,
            program,
            to,
            script: &format!("{words} {page}"),
        });
    }
}

#[test]
fn wget() {
    let cases = [
        ("http-proxy", "wget -qO-", PAGE),
        ("connect", "wget -qO-", TLS_PAGE),
        ("transparent", "wget -qO- --no-proxy", PAGE),
        ("transparent", "wget -qO- --no-proxy", TLS_PAGE),
    ];
    check(&Host::new(), "wget", &cases);
}

#[test]
fn python() {
    let host = Host::new();
    host.write("fetch.py", include_str!("scripts/fetch.py"));
    let [urllib, requests, socket] =
        ["urllib", "requests", "socket"].map(|how| format!("/usr/bin/python3 fetch.py {how}"));
    let alone = |words: &str| format!("no_proxy='*' NO_PROXY='*' {words}");
    let cases = [
        ("http-proxy", urllib.as_str(), PAGE),
        ("connect", &urllib, TLS_PAGE),
        ("transparent", &alone(&urllib), TLS_PAGE),
        ("http-proxy", &requests, PAGE),
        ("connect", &requests, TLS_PAGE),
        ("transparent", &alone(&requests), PAGE),
        ("transparent", &socket, PAGE),
        ("transparent", &socket, TLS_PAGE),
    ];
    check(&host, "python", &cases);
}

#[test]
fn node() {
    let host = Host::new();
    host.write("fetch.js", include_str!("scripts/fetch.js"));
    let trusted = host.net().ca_file().display().to_string();
    // Newer versions use the proxies when that is set.
    let run = format!("env -u NODE_USE_ENV_PROXY NODE_EXTRA_CA_CERTS={trusted} node fetch.js");
    for how in ["fetch", "http"] {
        let words = format!("{run} {how}");
        let pages = [PAGE, TLS_PAGE].map(|page| ("transparent", words.as_str(), page));
        check(&host, "node", &pages);
    }
}

#[test]
fn java() {
    let host = Host::new();
    host.net().trust_in_java();
    host.write("Fetch.java", include_str!("scripts/Fetch.java"));
    host.online.outside("javac Fetch.java").expect_code(0);
    let alone = "env -u JAVA_TOOL_OPTIONS java Fetch";
    let cases = [
        ("http-proxy", "java Fetch", PAGE),
        ("connect", "java Fetch", TLS_PAGE),
        ("transparent", alone, TLS_PAGE),
        // Over plain HTTP it offers to speak HTTP/2 instead.
        ("transparent", alone, PAGE),
    ];
    check(&host, "java", &cases);
}

/// Set where this test is the client itself.
const CLIENT: &str = "RINGFENCE_TEST_CLIENT";
const THIS_TEST: &str = "suite::clients::programs::rust";

#[test]
fn rust() {
    if std::env::var_os(CLIENT).is_some() {
        return fetch("web.example.org");
    }
    let host = Host::new();
    let copy = format!("cp /proc/{}/exe client", std::process::id());
    // Not on that host, where this process is somebody else's.
    sh(&copy, host.online.arena.folder.path()).expect_code(0);
    host.check(&Client {
        via: "transparent",
        program: "client",
        to: "web.example.org:80",
        script: &format!("{CLIENT}=1 ./client --exact {THIS_TEST}"),
    });
}

fn fetch(host: &str) {
    let mut stream = TcpStream::connect((host, 80)).expect("a connection");
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .expect("a sent request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
