//! Doors for the fuzz targets.

use super::body::{Body, Framing};
use super::head::{self, Form, header_room};
use super::next_head::request_in;
use super::response::{self, Asked};
use super::rewrite;
use super::scan::{HeadScan, LineEnds};

/// What was read of a request's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// How many bytes it has.
    pub length: usize,
    /// The method.
    pub method: String,
    /// The path, in origin form.
    pub path: String,
    /// The value of `Host`.
    pub host: Option<String>,
    /// The end of the body, as text.
    pub framing: String,
    /// The head as a server is to see it, where the request is for a proxy.
    pub rewritten: Option<Vec<u8>>,
}

/// Reads the head of a request.
pub fn request(bytes: &[u8]) -> Option<Head> {
    let mut scan = HeadScan::new(LineEnds::Strict);
    let length = request_in(&mut scan, bytes).ok()??;
    let mut room = header_room();
    let request = head::parse(&bytes[..length], &mut room).ok()?;
    let path = request.path();
    let rewritten = match request.form {
        Form::Absolute { authority, .. } => {
            let mut to = Vec::new();
            rewrite::to_origin(&request, authority, &mut to);
            Some(to)
        }
        _ => None,
    };
    Some(Head {
        length,
        method: request.method.to_owned(),
        path: [path.slash, path.path].concat(),
        host: request.host.map(str::to_owned),
        framing: format!("{:?}", request.framing),
        rewritten,
    })
}

/// Reads the head of a response; the end of its body as text.
pub fn response(bytes: &[u8]) -> Option<String> {
    let length = HeadScan::new(LineEnds::Lenient).find(bytes).ok()??;
    let response = response::parse(&bytes[..length], &mut header_room(), Asked::Other).ok()?;
    Some(format!("{:?}", response.framing))
}

/// How many of the bytes belong to a chunked body, and whether it is done;
/// `None` if it is malformed.
pub fn body_end<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<(usize, bool)> {
    let mut body = Body::new(Framing::Chunked);
    let mut total = 0;
    for piece in pieces {
        let taken = body.take(piece).ok()?;
        total += taken;
        if taken < piece.len() {
            break;
        }
    }
    Some((total, body.is_done()))
}
