//! No server ever sees a request that the log does not have, however a body is
//! framed and however the server reads it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use ringfence_testkit::{Framing, framings};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::intercept::testing::{H1, Rig, Shown};
use crate::limits::Limits;
use crate::speech::is_token;
use crate::testing::{Yard, here, run, send};

/// What is in order is served.
const MOST_ARE_SERVED: usize = 400;

/// What becomes of bodies at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// All of them are left where they are, as if they were requests.
    None,
    /// Those of requests that have some by nature are read.
    OfPosts,
    /// Each is read as it is framed, and what is malformed ends the connection.
    All,
}

const READINGS: [Reading; 3] = [Reading::None, Reading::OfPosts, Reading::All];

/// Method and path of all that a server took for a request.
type Seen = Rc<RefCell<Vec<(String, String)>>>;

/// Serves one connection as `reading` says.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, reading: Reading, seen: Seen) {
    let mut inbox = Vec::new();
    loop {
        // Empty lines before a request are skipped, as most servers do.
        while inbox.starts_with(b"\r\n") {
            inbox.drain(..2);
        }
        let Some(end) = inbox.windows(4).position(|part| part == b"\r\n\r\n") else {
            match stream.read_buf(&mut inbox).await {
                Ok(1..) => continue,
                _ => return,
            }
        };
        let head: Vec<u8> = inbox.drain(..end + 4).collect();
        let head = String::from_utf8(head).unwrap();
        let mut words = head.lines().next().unwrap_or_default().split(' ');
        let (Some(method), Some(path), Some("HTTP/1.1")) =
            (words.next(), words.next(), words.next())
        else {
            return;
        };
        // What begins otherwise is another protocol, for us as for servers.
        if !method.bytes().all(is_token) {
            return;
        }
        seen.borrow_mut().push((method.to_owned(), path.to_owned()));
        let is_read = match reading {
            Reading::None => false,
            Reading::OfPosts => ["POST", "PUT", "PATCH"].contains(&method),
            Reading::All => true,
        };
        let expects = value(&head, "expect").is_some();
        // Python says so whether its handler reads or not.
        if expects
            && stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await
                .is_err()
        {
            return;
        }
        if is_read && !skip_body(&head, &mut stream, &mut inbox).await {
            return;
        }
        let body = if method == "HEAD" { "" } else { "ok" };
        let said = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{body}");
        if stream.write_all(said.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        // As Python does it: the first one counts, and only the very word.
        if value(&head, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            return;
        }
    }
}

fn value<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(own, _)| own.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

/// Reads the body away; false if there is none that could be read.
async fn skip_body<S: AsyncRead + Unpin>(head: &str, stream: &mut S, inbox: &mut Vec<u8>) -> bool {
    if value(head, "transfer-encoding").is_some() {
        loop {
            let Some(size) = line(stream, inbox).await else {
                return false;
            };
            let Ok(size) = usize::from_str_radix(&size, 16) else {
                return false;
            };
            if !skip(stream, inbox, size + 2).await {
                return false;
            }
            if size == 0 {
                return true;
            }
        }
    }
    match value(head, "content-length").map(str::parse) {
        Some(Ok(length)) => skip(stream, inbox, length).await,
        Some(Err(_)) => false,
        None => true,
    }
}

async fn line<S: AsyncRead + Unpin>(stream: &mut S, inbox: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = inbox.windows(2).position(|part| part == b"\r\n") {
            let line: Vec<u8> = inbox.drain(..end + 2).collect();
            return String::from_utf8(line[..end].to_vec()).ok();
        }
        if !matches!(stream.read_buf(inbox).await, Ok(1..)) {
            return None;
        }
    }
}

async fn skip<S: AsyncRead + Unpin>(stream: &mut S, inbox: &mut Vec<u8>, count: usize) -> bool {
    while inbox.len() < count {
        if !matches!(stream.read_buf(inbox).await, Ok(1..)) {
            return false;
        }
    }
    inbox.drain(..count);
    true
}

/// Serves everybody who comes to the yard, in clear.
fn serve(yard: &Rc<Yard>, reading: Reading) -> Seen {
    let seen = Seen::default();
    let (yard, told) = (Rc::clone(yard), Rc::clone(&seen));
    tokio::task::spawn_local(async move {
        loop {
            let stream = yard.accept().await;
            tokio::task::spawn_local(answer(stream, reading, Rc::clone(&told)));
        }
    });
    seen
}

/// Reads to the end, whatever comes.
async fn hear_out(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

/// Everything that was seen is in the log, as often as it was seen, and of
/// what a policy refuses nothing was.
#[track_caller]
fn all_known(seen: &Seen, yard: &Yard, what: &str) {
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    for request in yard.allowed() {
        *known.entry(request).or_default() += 1;
    }
    let seen = seen.borrow();
    let unknown = seen.iter().filter(|request| {
        let left = known.get_mut(*request).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_none()
    });
    let unknown: Vec<_> = unknown.collect();
    assert!(unknown.is_empty(), "{what}: {unknown:?}");
    let hidden: Vec<_> = seen
        .iter()
        .filter(|(_, path)| path.starts_with("/hidden"))
        .collect();
    assert!(hidden.is_empty(), "{what}: {hidden:?}");
}

/// The hosts of the tests, and only some paths of them.
fn by_path(port: u16) -> Vec<String> {
    vec![
        format!("{{host: a.test, ports: [{port}], paths: [\"/open/**\"]}}"),
        here(port),
    ]
}

fn by_name(port: u16) -> Vec<String> {
    vec![format!("a.test:{port}"), here(port)]
}

#[test]
fn g1_g7_no_server_in_clear_sees_what_is_not_in_the_log() {
    for rules in [by_name, by_path] {
        for reading in READINGS {
            run(async {
                let yard = Rc::new(Yard::new(rules).await);
                let seen = serve(&yard, reading);
                for Framing { bytes, .. } in framings("a.test", "") {
                    hear_out(yard.dialled_saying("a.test", &bytes).await).await;
                }
                all_known(&seen, &yard, &format!("{reading:?}"));
                assert!(seen.borrow().len() > MOST_ARE_SERVED);
            });
        }
    }
}

#[test]
fn g1_g7_no_server_behind_the_proxy_sees_what_is_not_in_the_log() {
    for rules in [by_name, by_path] {
        for reading in READINGS {
            run(async {
                let yard = Rc::new(Yard::new(rules).await);
                let seen = serve(&yard, reading);
                let host = format!("a.test:{}", yard.port);
                for Framing { bytes, .. } in framings(&host, &format!("http://{host}")) {
                    let mut client = yard.proxied().await;
                    send(&mut client, bytes).await;
                    hear_out(client).await;
                }
                all_known(&seen, &yard, &format!("{reading:?}"));
                assert!(seen.borrow().len() > MOST_ARE_SERVED);
            });
        }
    }
}

#[test]
fn g1_g7_no_server_that_is_looked_into_sees_what_is_not_in_the_log() {
    let says_nothing = |_| unreachable!("this test has a server of its own");
    for reading in READINGS {
        run(async {
            let rig = Rig::with(by_path, Limits::default(), Box::new(says_nothing)).await;
            let rig = Rc::new(rig);
            let seen = serve_tls(&rig, reading);
            let connector = rig.connector(H1);
            let host = format!("a.test:{}", rig.yard.port);
            // Handshakes take their time; in steps that meet every row.
            for Framing { bytes, .. } in framings(&host, "").into_iter().step_by(7) {
                let mut client = rig.shake(&connector, "a.test").await.unwrap();
                client.write_all(&bytes).await.unwrap();
                hear_out(client).await;
            }
            all_known(&seen, &rig.yard, &format!("{reading:?}"));
            assert!(seen.borrow().len() > MOST_ARE_SERVED / 7);
        });
    }
}

/// The same over TLS.
fn serve_tls(rig: &Rc<Rig>, reading: Reading) -> Seen {
    let seen = Seen::default();
    let acceptor = rig.acceptor(Shown::For("a.test"), H1);
    let (rig, told) = (Rc::clone(rig), Rc::clone(&seen));
    tokio::task::spawn_local(async move {
        loop {
            let stream = rig.yard.accept().await;
            let (acceptor, told) = (acceptor.clone(), Rc::clone(&told));
            tokio::task::spawn_local(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    answer(stream, reading, told).await;
                }
            });
        }
    });
    seen
}
