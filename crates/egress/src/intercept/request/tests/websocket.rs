//! WebSocket through TLS that is looked into.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::client::TlsStream as ClientStream;
use tokio_rustls::server::TlsStream as ServerStream;

use super::passing::read_head;
use super::*;
use crate::intercept::testing::H1;
use crate::testing::run;

const ASKS: &str = "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
const AGREES: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
const MASK: [u8; 4] = [0x5a, 0x01, 0xc3, 0x77];

/// Both ends of a WebSocket, and what the server was asked with.
async fn opened(stage: &Stage) -> (ClientStream<TcpStream>, ServerStream<TcpStream>, String) {
    let acceptor = TlsAcceptor::from(Arc::new(stage.rig.server_config(A, H1)));
    let server = async {
        let stream = stage.rig.yard.accept().await;
        let mut stream = acceptor.accept(stream).await.unwrap();
        let head = read_head(&mut stream).await;
        stream.write_all(AGREES.as_bytes()).await.unwrap();
        (stream, head)
    };
    let client = async {
        let connector = stage.rig.connector(H1);
        let mut stream = stage.rig.shake(&connector, "a.test").await.unwrap();
        stream.write_all(ASKS.as_bytes()).await.unwrap();
        let answer = read_head(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
        assert!(
            answer.to_lowercase().contains("sec-websocket-accept"),
            "{answer}"
        );
        stream
    };
    let ((server, head), client) = tokio::join!(server, client);
    (client, server, head)
}

/// A text frame as clients send them.
fn masked(fin: bool, opcode: u8, payload: &str) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    assert!(length < 126);
    let mut frame = vec![u8::from(fin) << 7 | opcode, 0x80 | length];
    frame.extend(MASK);
    let key = MASK.iter().cycle();
    frame.extend(payload.bytes().zip(key).map(|(byte, key)| byte ^ key));
    frame
}

fn plain(fin: bool, opcode: u8, payload: &str) -> Vec<u8> {
    let mut frame = vec![
        u8::from(fin) << 7 | opcode,
        u8::try_from(payload.len()).unwrap(),
    ];
    frame.extend(payload.bytes());
    frame
}

/// Reads one message of a server; its parts put together.
async fn message(stream: &mut ClientStream<TcpStream>) -> String {
    let mut text = Vec::new();
    loop {
        let first = stream.read_u8().await.unwrap();
        let length = stream.read_u8().await.unwrap();
        let mut part = vec![0; length.into()];
        stream.read_exact(&mut part).await.unwrap();
        text.extend(part);
        if first & 0x80 != 0 {
            return String::from_utf8(text).unwrap();
        }
    }
}

#[test]
fn g5_messages_pass_with_the_credential_on_the_request() {
    run(async {
        let stage = Stage::new("bearer: true").await;
        let (mut client, mut server, head) = opened(&stage).await;
        assert!(head.contains(&format!("Bearer {SECRET}")), "{head}");
        assert!(!head.contains("permessage-deflate"), "{head}");
        let frame = masked(true, 1, "hello");
        client.write_all(&frame).await.unwrap();
        let mut got = vec![0; frame.len()];
        server.read_exact(&mut got).await.unwrap();
        assert_eq!(got, frame);
        server
            .write_all(&plain(true, 1, "hello back"))
            .await
            .unwrap();
        assert_eq!(message(&mut client).await, "hello back");
        drop(client);
        let mut rest = Vec::new();
        let _ = server.read_to_end(&mut rest).await;
        assert!(rest.is_empty());
    });
}

#[test]
fn g5_a_secret_in_a_message_is_hidden() {
    run(async {
        let stage = Stage::new("bearer: true").await;
        let (mut client, mut server, _) = opened(&stage).await;
        let whole = plain(true, 1, &format!("told {SECRET}!"));
        server.write_all(&whole).await.unwrap();
        assert_eq!(message(&mut client).await, format!("told {PLACEHOLDER}!"));
        for part in [
            plain(false, 1, &SECRET[..9]),
            plain(false, 0, &SECRET[9..12]),
            plain(true, 0, &SECRET[12..]),
        ] {
            server.write_all(&part).await.unwrap();
            server.flush().await.unwrap();
        }
        assert_eq!(message(&mut client).await, PLACEHOLDER);
    });
}

#[test]
fn g5_a_placeholder_in_a_message_cuts_the_connection() {
    run(async {
        let stage = Stage::new("bearer: true").await;
        let (mut client, mut server, _) = opened(&stage).await;
        for part in [
            masked(false, 1, "rf-zyxwvutsrqponm"),
            masked(true, 9, "ping"),
            masked(true, 0, "lkjihgfedcba987654"),
        ] {
            client.write_all(&part).await.unwrap();
        }
        let mut got = Vec::new();
        let _ = server.read_to_end(&mut got).await;
        let last = masked(true, 0, "lkjihgfedcba987654");
        assert!(!got.ends_with(&last));
        assert_eq!(stage.refused(), ["placeholder-elsewhere"]);
    });
}

#[test]
fn g5_other_protocols_are_not_switched_to() {
    run(async {
        for other in ["h2c", "foo"] {
            let stage = Stage::new("bearer: true").await.serving(H1);
            let connector = stage.rig.connector(H1);
            let mut stream = stage.rig.shake(&connector, "a.test").await.unwrap();
            let asks = format!(
                "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: {other}\r\n\r\n"
            );
            stream.write_all(asks.as_bytes()).await.unwrap();
            let answer = read_head(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
            assert!(stage.is_untouched());
        }
    });
}
