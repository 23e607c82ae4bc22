//! Waiting for the head of the next message.

use std::io;
use std::time::Duration;

use super::head::{self, BadRequest, LONGEST_HEAD, LONGEST_LINE};
use super::peer::{Incoming, Peer};
use super::response::BadResponse;
use super::scan::{HeadScan, LineEnds};
use crate::relay::Clock;

/// Why no request comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRequest {
    /// The client has ended, or its connection broke.
    Ended,
    /// Something else came first, while the client was quiet.
    Interrupted,
    /// The client did not finish the head in time.
    Late,
    /// What came is none.
    Bad(BadRequest),
}

/// Why no response comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoResponse {
    /// The server ended or broke off before the first byte.
    Silent,
    /// The server broke off within a head.
    Ended,
    /// What came is none.
    Bad(BadResponse),
}

/// The length of the request's head in the inbox, if it is all there.
pub(crate) fn request_in(scan: &mut HeadScan, bytes: &[u8]) -> Result<Option<usize>, BadRequest> {
    let found = scan.find(bytes).map_err(|_| BadRequest::LineEnd)?;
    if scan.first_line().unwrap_or(bytes.len()) > LONGEST_LINE {
        return Err(BadRequest::LongLine);
    }
    match (found, scan.first_line()) {
        (Some(length), _) if length > LONGEST_HEAD => return Err(BadRequest::LongHead),
        (None, _) if bytes.len() >= LONGEST_HEAD => return Err(BadRequest::LongHead),
        // What is malformed is told at once, not when its head should have
        // ended: there may be no more of it.
        (None, Some(line)) => head::check_line(&bytes[..line])?,
        _ => {}
    }
    Ok(found)
}

/// The length of the next request's head, once that is in the client's inbox.
///
/// `interrupt` may end the wait as long as nothing came. A head that is begun
/// must be complete in `time`.
pub(crate) async fn request(
    client: &mut Peer,
    time: Duration,
    clock: &Clock,
    interrupt: impl Future<Output = ()>,
) -> Result<usize, NoRequest> {
    let mut scan = HeadScan::new(LineEnds::Strict);
    if client.inbox.is_empty() {
        tokio::select! {
            biased;
            read = client.fill() => came(&read, clock)?,
            () = interrupt => return Err(NoRequest::Interrupted),
        }
    }
    if let Some(length) = request_in(&mut scan, &client.inbox).map_err(NoRequest::Bad)? {
        return Ok(length);
    }
    let rest = rest_of_request(client, &mut scan, clock);
    tokio::time::timeout(time, rest)
        .await
        .unwrap_or(Err(NoRequest::Late))
}

async fn rest_of_request(
    client: &mut Peer,
    scan: &mut HeadScan,
    clock: &Clock,
) -> Result<usize, NoRequest> {
    loop {
        came(&client.fill().await, clock)?;
        if let Some(length) = request_in(scan, &client.inbox).map_err(NoRequest::Bad)? {
            return Ok(length);
        }
    }
}

fn came(read: &io::Result<usize>, clock: &Clock) -> Result<(), NoRequest> {
    match read {
        Ok(0) | Err(_) => Err(NoRequest::Ended),
        Ok(_) => {
            clock.touch();
            Ok(())
        }
    }
}

/// Reads until the response's head is in the inbox.
pub(crate) async fn response(from: &mut Incoming<'_>, clock: &Clock) -> Result<usize, NoResponse> {
    let mut scan = HeadScan::new(LineEnds::Lenient);
    loop {
        match scan.find(from.inbox) {
            Ok(Some(length)) if length <= LONGEST_HEAD => return Ok(length),
            Ok(None) if from.inbox.len() < LONGEST_HEAD => {}
            _ => return Err(NoResponse::Bad(BadResponse::LongHead)),
        }
        match from.fill().await {
            Ok(0) | Err(_) if from.inbox.is_empty() => return Err(NoResponse::Silent),
            Ok(0) | Err(_) => return Err(NoResponse::Ended),
            Ok(_) => clock.touch(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(bytes: &[u8]) -> Result<Option<usize>, BadRequest> {
        request_in(&mut HeadScan::new(LineEnds::Strict), bytes)
    }

    #[test]
    fn heads_have_limits() {
        let line = format!("GET /{} HTTP/1.1\r\n", "x".repeat(LONGEST_LINE));
        assert_eq!(find(line.as_bytes()), Err(BadRequest::LongLine));
        assert_eq!(find(&line.as_bytes()[..LONGEST_LINE]), Ok(None));
        assert_eq!(
            find(&line.as_bytes()[..=LONGEST_LINE]),
            Err(BadRequest::LongLine)
        );
        let headers = format!("GET / HTTP/1.1\r\n{}", "X: y\r\n".repeat(LONGEST_HEAD / 6));
        assert_eq!(find(headers.as_bytes()), Err(BadRequest::LongHead));
        assert_eq!(
            find(format!("{headers}\r\n").as_bytes()),
            Err(BadRequest::LongHead)
        );
        assert_eq!(find(b"GET / HTTP/1.1\n"), Err(BadRequest::LineEnd));
        assert_eq!(find(b"GET /\r\n"), Err(BadRequest::Malformed));
        assert_eq!(find(b"GET / HTTP/2.0\r\nA"), Err(BadRequest::Version));
        assert_eq!(find(b"GET x HTTP/1.1\r\nA"), Err(BadRequest::Target));
        assert_eq!(find(b"GET / HTTP/1.1\r\nA"), Ok(None));
        assert_eq!(find(b"GET / HTTP/1.1\r\n\r\n"), Ok(Some(18)));
    }
}
