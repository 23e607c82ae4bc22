//! WebSocket (RFC 6455): greets with what came as `Authorization`, then sends
//! every message back.

use std::io;

use bytes::Bytes;
use data_encoding::BASE64;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::answer::{Answer, text, whole};
use crate::internet::head::invalid;
use crate::internet::log::Visit;

/// What the protocol appends to a client's key.
const SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const LONGEST: u64 = 1024 * 1024;
const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// Agrees, and talks from then on.
pub(super) fn answer(request: &mut Request<Incoming>, visit: Visit) -> Answer {
    let Some(key) = request.headers().get("sec-websocket-key").cloned() else {
        return text(StatusCode::BAD_REQUEST, "no key");
    };
    let greeting = request.headers().get(AUTHORIZATION).cloned();
    let upgraded = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let greeting = greeting.unwrap_or_else(|| HeaderValue::from_static("-"));
        if let Ok(stream) = upgraded.await
            && let Err(error) = talk(TokioIo::new(stream), greeting.as_bytes(), &visit).await
        {
            visit.saw(format!("error: {error}"));
        }
    });
    let mut answer = whole(StatusCode::SWITCHING_PROTOCOLS, "text/plain", Bytes::new());
    *answer.headers_mut() = agreement(&key);
    answer
}

fn agreement(key: &HeaderValue) -> HeaderMap {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(SUFFIX);
    let accepted = BASE64.encode(&hash.finalize());
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let accepted = HeaderValue::from_str(&accepted).expect("letters");
    headers.insert("sec-websocket-accept", accepted);
    headers
}

async fn talk<S>(mut stream: S, greeting: &[u8], visit: &Visit) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    send(&mut stream, TEXT, greeting).await?;
    loop {
        let (kind, payload) = receive(&mut stream).await?;
        visit.saw(String::from_utf8_lossy(&payload));
        match kind {
            CLOSE => return send(&mut stream, CLOSE, &payload).await,
            PING => send(&mut stream, PONG, &payload).await?,
            kind => send(&mut stream, kind, &payload).await?,
        }
    }
}

/// One frame: its kind and its content without the mask.
async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).await?;
    let length = match head[1] & 0x7f {
        126 => u64::from(stream.read_u16().await?),
        127 => stream.read_u64().await?,
        short => u64::from(short),
    };
    if head[1] & 0x80 == 0 || length > LONGEST {
        return Err(invalid("no frame of a client"));
    }
    let mut mask = [0; 4];
    stream.read_exact(&mut mask).await?;
    let mut payload = vec![0; usize::try_from(length).unwrap_or(0)];
    stream.read_exact(&mut payload).await?;
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok((head[0] & 0xf, payload))
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), kind: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = vec![0x80 | kind];
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => frame.push(length.to_le_bytes()[0]),
        Ok(length) => {
            frame.push(126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    stream.write_all(&frame).await?;
    stream.flush().await
}
