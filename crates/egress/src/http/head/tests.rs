use super::*;

/// What a test compares of a request.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    method: String,
    path: String,
    host: Option<String>,
    framing: Framing,
    persistence: Persistence,
}

fn read(head: &str) -> Result<Seen, BadRequest> {
    let mut room = header_room();
    let request = parse(head.as_bytes(), &mut room)?;
    let path = request.path();
    Ok(Seen {
        method: request.method.to_owned(),
        path: format!("{}{}", path.slash, path.path),
        host: request.host.map(str::to_owned),
        framing: request.framing,
        persistence: request.persistence(),
    })
}

fn failure(head: &str) -> BadRequest {
    read(head).expect_err(head)
}

/// A POST with these further header lines.
fn with(lines: &str) -> String {
    format!("POST /x HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n\r\n")
}

#[test]
fn plain_requests() {
    let seen = read("GET /a?b=c HTTP/1.1\r\nHost: A.test:80\r\nX: \tv \r\n\r\n").unwrap();
    assert_eq!(seen.method, "GET");
    assert_eq!(seen.path, "/a?b=c");
    assert_eq!(seen.host.as_deref(), Some("A.test:80"));
    assert_eq!(seen.framing, Framing::Empty);
    assert_eq!(seen.persistence, Persistence::Keep);
    for (lines, want) in [
        ("Content-Length: 0", Framing::Empty),
        ("content-length:42", Framing::Length(42)),
        ("Transfer-Encoding: chunked", Framing::Chunked),
        ("TRANSFER-ENCODING:\tchunked ", Framing::Chunked),
    ] {
        assert_eq!(read(&with(lines)).unwrap().framing, want, "{lines}");
    }
    assert_eq!(read("GET / HTTP/1.0\r\n\r\n").unwrap().host, None);
    assert_eq!(read(&with("Expect: 100-Continue")).unwrap().method, "POST");
}

#[test]
fn what_is_asked_for() {
    let line = |line: &str| read(&format!("{line} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    for (request, path) in [
        ("GET /", "/"),
        ("GET //b.test/x", "//b.test/x"),
        ("GET http://a.test", "/"),
        ("GET HTTP://a.test/x?y", "/x?y"),
        ("GET http://a.test?y/z", "/?y/z"),
        ("OPTIONS *", "*"),
        ("OPTIONS http://a.test", "*"),
        ("OPTIONS http://a.test/", "/"),
    ] {
        assert_eq!(line(request).unwrap().path, path, "{request}");
    }
    for (request, want) in [
        ("GET *", BadRequest::Target),
        ("GET a.test", BadRequest::Target),
        ("GET a.test:80", BadRequest::Target),
        ("GET /#f", BadRequest::Target),
        ("GET http://a.test/#f", BadRequest::Target),
        ("GET http:/a.test/", BadRequest::Target),
        ("GET https://a.test/", BadRequest::Scheme),
        ("GET ftp://a.test/", BadRequest::Scheme),
        ("GET  /", BadRequest::Malformed),
        ("GET / x", BadRequest::Version),
        ("GET\t/", BadRequest::Malformed),
        ("GET /\0", BadRequest::Malformed),
        ("G(T /", BadRequest::Malformed),
        ("head /", BadRequest::Malformed),
        ("Connect a.test:80", BadRequest::Malformed),
        (" GET /", BadRequest::Malformed),
        ("\r\nGET /", BadRequest::Malformed),
    ] {
        assert_eq!(line(request), Err(want), "{request:?}");
    }
    let form = |head: &str| {
        parse(head.as_bytes(), &mut header_room()).map(|r| r.form == Form::Authority("a.test:443"))
    };
    assert_eq!(form("CONNECT a.test:443 HTTP/1.1\r\n\r\n"), Ok(true));
    assert_eq!(
        form("CONNECT a.test:443 HTTP/1.0\r\nHost: a.test:443\r\n\r\n"),
        Ok(true)
    );
}

#[test]
fn other_versions_are_refused() {
    for version in [
        "HTTP/2.0",
        "HTTP/1.2",
        "HTTP/0.9",
        "http/1.1",
        "HTTP/1.1 ",
        "HTTP/11",
        "HTTP/1",
    ] {
        let head = format!("GET / {version}\r\nHost: a.test\r\n\r\n");
        assert!(
            matches!(failure(&head), BadRequest::Version | BadRequest::Malformed),
            "{version}"
        );
    }
    assert_eq!(failure("PRI * HTTP/2.0\r\n\r\n"), BadRequest::Version);
    assert_eq!(failure("GET /\r\n\r\n"), BadRequest::Malformed);
}

/// Each shape has been used to make two servers disagree about where a request
/// ends or begins.
#[test]
fn g1_smuggling_by_length_and_coding() {
    for (lines, want) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            BadRequest::Length,
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 0",
            BadRequest::Length,
        ),
        ("Content-Length: 5\r\nContent-Length: 5", BadRequest::Length),
        ("Content-Length: 5\r\nContent-Length: 6", BadRequest::Length),
        ("Content-Length: 5, 5", BadRequest::Length),
        ("Content-Length: +5", BadRequest::Length),
        ("Content-Length: -5", BadRequest::Length),
        ("Content-Length: 0x5", BadRequest::Length),
        ("Content-Length: 5x", BadRequest::Length),
        ("Content-Length: 5 5", BadRequest::Length),
        ("Content-Length: \"5\"", BadRequest::Length),
        ("Content-Length:", BadRequest::Length),
        ("Content-Length: 99999999999999999999", BadRequest::Length),
        ("Content_Length: 5", BadRequest::Length),
        ("content_length: 5\r\nContent-Length: 5", BadRequest::Length),
        ("Transfer_Encoding: chunked", BadRequest::Length),
        ("Transfer-Encoding: Chunked", BadRequest::Coding),
        ("Transfer-Encoding: xchunked", BadRequest::Coding),
        ("Transfer-Encoding: chunked, chunked", BadRequest::Coding),
        ("Transfer-Encoding: gzip, chunked", BadRequest::Coding),
        ("Transfer-Encoding: chunked, identity", BadRequest::Coding),
        ("Transfer-Encoding: identity", BadRequest::Coding),
        ("Transfer-Encoding: \"chunked\"", BadRequest::Coding),
        ("Transfer-Encoding: chunked;x=y", BadRequest::Coding),
        ("Transfer-Encoding: chunk", BadRequest::Coding),
        ("Transfer-Encoding:", BadRequest::Coding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            BadRequest::Coding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
            BadRequest::Coding,
        ),
        ("Transfer-Encoding:\u{b}chunked", BadRequest::Malformed),
        ("Transfer-Encoding: chunked\u{b}", BadRequest::Malformed),
        ("Transfer-Encoding : chunked", BadRequest::Malformed),
        ("Transfer-Encoding\t: chunked", BadRequest::Malformed),
        ("Transfer-Encoding\r\n : chunked", BadRequest::Malformed),
        ("Transfer-Encoding:\r\n chunked", BadRequest::Malformed),
        (" Transfer-Encoding: chunked", BadRequest::Malformed),
        ("X: y\r\n Transfer-Encoding: chunked", BadRequest::Malformed),
        ("X: y\rTransfer-Encoding: chunked", BadRequest::Malformed),
        (
            "X: y\0\r\nTransfer-Encoding: chunked",
            BadRequest::Malformed,
        ),
        (
            "Content-Length: 5\r\nExpect: 100-continue, x",
            BadRequest::Expectation,
        ),
        ("Expect: 200-ok", BadRequest::Expectation),
    ] {
        assert_eq!(failure(&with(lines)), want, "{lines:?}");
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(failure(old), BadRequest::Length);
}

#[test]
fn g1_smuggling_by_bodies_where_none_belong() {
    for head in [
        "CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n",
    ] {
        assert_eq!(failure(head), BadRequest::Body, "{head}");
    }
}

#[test]
fn g3_two_hosts_or_none() {
    for (head, want) in [
        ("GET / HTTP/1.1\r\n\r\n", BadRequest::Host),
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
            BadRequest::Host,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\nhOST: b.test\r\n\r\n",
            BadRequest::Host,
        ),
        (
            "GET / HTTP/1.0\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
            BadRequest::Host,
        ),
        (
            "CONNECT a.test:1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            BadRequest::Host,
        ),
        (
            "GET / HTTP/1.1\r\nHost : a.test\r\n\r\n",
            BadRequest::Malformed,
        ),
        (
            "GET / HTTP/1.1\r\n Host: a.test\r\n\r\n",
            BadRequest::Malformed,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\n b.test\r\n\r\n",
            BadRequest::Malformed,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.test\rHost: b.test\r\n\r\n",
            BadRequest::Malformed,
        ),
        (
            "GET / HTTP/1.1\r\nX Host: a.test\r\n\r\n",
            BadRequest::Malformed,
        ),
        ("GET / HTTP/1.1\r\nHost\r\n\r\n", BadRequest::Malformed),
        ("GET / HTTP/1.1\r\n: a.test\r\n\r\n", BadRequest::Malformed),
    ] {
        assert_eq!(failure(head), want, "{head:?}");
    }
    let bytes = b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n";
    assert_eq!(
        parse(bytes, &mut header_room()).unwrap_err(),
        BadRequest::Authority
    );
}

#[test]
fn g1_a_connection_header_cannot_have_framing_removed() {
    for name in [
        "content-length",
        "Transfer-Encoding",
        "close, host",
        "x,\tExpect",
    ] {
        assert_eq!(
            failure(&with(&format!("Connection: {name}"))),
            BadRequest::Connection,
            "{name}"
        );
    }
}

#[test]
fn g1_only_upgrades_that_hide_no_requests() {
    let upgrade = |lines: &str| {
        let head = with(lines);
        parse(head.as_bytes(), &mut header_room()).map(|request| request.upgrade)
    };
    for (lines, want) in [
        (
            "Upgrade: websocket\r\nConnection: keep-alive, Upgrade",
            Ok(Upgrade::WebSocket),
        ),
        (
            "Connection: upgrade\r\nUpgrade: WebSocket",
            Ok(Upgrade::WebSocket),
        ),
        ("Connection: upgrade\r\nUpgrade: tcp", Ok(Upgrade::Other)),
        (
            "Connection: upgrade\r\nUpgrade: SPDY/3.1",
            Ok(Upgrade::Other),
        ),
        (
            "Connection: upgrade\r\nUpgrade: websocket, tcp",
            Ok(Upgrade::Other),
        ),
        ("Upgrade: websocket", Ok(Upgrade::No)),
        ("Connection: upgrade", Ok(Upgrade::No)),
        ("Connection: upgrade\r\nUpgrade: h2c", Ok(Upgrade::Dropped)),
        ("Connection: upgrade\r\nUpgrade: H2C", Ok(Upgrade::Dropped)),
        ("Upgrade: h2c", Ok(Upgrade::Dropped)),
        (
            "Connection: upgrade\r\nUpgrade: websocket, h2c",
            Err(BadRequest::Upgrade),
        ),
        (
            "Connection: upgrade\r\nUpgrade: HTTP/2.0",
            Err(BadRequest::Upgrade),
        ),
        (
            "Connection: upgrade\r\nUpgrade: TLS/1.2",
            Err(BadRequest::Upgrade),
        ),
        ("Connection: upgrade\r\nUpgrade: ", Err(BadRequest::Upgrade)),
        (
            "Upgrade: websocket\r\nUpgrade: h2c",
            Err(BadRequest::Upgrade),
        ),
        ("HTTP2-Settings: AAMAAABkAAQAAP__", Ok(Upgrade::Dropped)),
        (
            "Connection: upgrade\r\nUpgrade: websocket\r\nHTTP2-Settings: AA",
            Err(BadRequest::Upgrade),
        ),
    ] {
        assert_eq!(upgrade(lines), want, "{lines:?}");
    }
    let old = "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert_eq!(failure(old), BadRequest::Upgrade);
}

#[test]
fn overrides_are_noticed() {
    let overrides = |lines: &str| {
        let head = with(lines);
        parse(head.as_bytes(), &mut header_room())
            .unwrap()
            .overrides
    };
    for name in OVERRIDES {
        assert!(overrides(&format!("{name}: DELETE")), "{name}");
        assert!(
            overrides(&format!("{}: x", name.to_uppercase().replace('-', "_"))),
            "{name}"
        );
    }
    assert!(!overrides("X-Request-Id: 1"));
}

#[test]
fn heads_have_limits() {
    let lines = "A: b\r\n".repeat(MOST_HEADERS - 1);
    assert!(read(&format!("GET / HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n")).is_ok());
    assert_eq!(
        failure(&format!(
            "GET / HTTP/1.1\r\nHost: a.test\r\n{lines}A: b\r\n\r\n"
        )),
        BadRequest::ManyHeaders
    );
    assert_eq!(
        failure("GET / HTTP/1.1\r\nHost: a.test\r\n"),
        BadRequest::Malformed
    );
    assert_eq!(failure(""), BadRequest::Malformed);
    assert_eq!(failure("GET / HTTP/1.0\r\n\r\nmore"), BadRequest::Malformed);
}

#[test]
fn every_failure_has_a_status_of_its_kind() {
    for (error, status) in [
        (BadRequest::Malformed, 400),
        (BadRequest::TwoHosts, 400),
        (BadRequest::LongLine, 414),
        (BadRequest::LongHead, 431),
        (BadRequest::ManyHeaders, 431),
        (BadRequest::Coding, 501),
        (BadRequest::Version, 505),
    ] {
        assert_eq!(error.status(), status, "{error:?}");
    }
}
