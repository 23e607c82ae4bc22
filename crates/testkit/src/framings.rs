//! Requests with bodies, framed in every way that two readers could split.
//!
//! Each holds another request where a body is: a server that looks for its next
//! request there finds one that nobody may have judged.

/// How the length of a body is told. `N` stands for the true one.
const LENGTHS: &[&str] = &[
    "",
    "Content-Length: N\r\n",
    "content-length:N\r\n",
    "CONTENT-LENGTH:\t N \r\n",
    "Content-Length: 00N\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: +N\r\n",
    "Content-Length: N, N\r\n",
    "Content-Length: N\r\nContent-Length: N\r\n",
    "Content-Length: N\r\nContent-Length: 0\r\n",
    "Content-Length : N\r\n",
    "Content_Length: N\r\n",
    "X: y\r\n Content-Length: N\r\n",
    "Transfer-Encoding: chunked\r\n",
    "transfer-encoding:chunked\r\n",
    "Transfer-Encoding: Chunked\r\n",
    "Transfer-Encoding: chunked \r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: identity\r\nContent-Length: N\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: N\r\n",
    "Content-Length: N\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
];

const METHODS: &[&str] = &[
    "GET", "HEAD", "DELETE", "OPTIONS", "POST", "PUT", "PATCH", "X-ODD",
];

/// What else may change how long a connection lasts or when a body is read.
const OTHERS: &[&str] = &[
    "",
    "Expect: 100-continue\r\n",
    "Connection: keep-alive\r\n",
    "Connection: close, TE\r\n",
    "Connection: keep-alive\r\nConnection: close\r\n",
    "connection:\tClose\r\n",
];

/// What comes before the hidden request, within the body.
const LEADS: &[&str] = &["", "\r\n", "\r\n\r\n", "x=y\r\n"];

/// Requests that are odd in other ways. `FIRST` and `HOST` stand for what is
/// asked for, `HIDDEN` for the hidden request, `{N}` for its length, `CHUNK` for
/// it as a chunk, and `LONG` for many letters.
const ODD: &[&str] = &[
    // Lines that are folded, or end otherwise.
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length:\r\n {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nX: y\r\n\tContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\n Content-Length: {N}\r\nHost: HOST\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\nHost: HOST\nContent-Length: {N}\n\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nX: y\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\rContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nX: y\rContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N}\r\n\rHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nX\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\n: y\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nX: \0\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length\0: {N}\r\n\r\nHIDDEN",
    "POST FIRST\0 HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nX: LONG\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    // Lengths.
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N}.0\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: -{N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0x{N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N} {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: \"{N}\"\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: \x0b{N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N}_0\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0, {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    // Codings.
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked, identity\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: identity, chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked, chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: , chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked;q=1\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: \x0bchunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\x0c\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: \"chunked\"\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding:\r\n chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding : chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer_Encoding: chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTE: chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.0\r\nHost: HOST\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\nCHUNK",
    // Chunks.
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n1;x=\"\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n1;LONG\r\na\r\n0\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n1;\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n1\rHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naHIDDEN",
    // Versions.
    "GET FIRST\r\nHIDDEN",
    "GET FIRST HTTP/0.9\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.0\r\nHost: HOST\r\nConnection: keep-alive\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.0\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.2\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/01.1\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1 \r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST http/1.1\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1 HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\n\r\nHIDDEN",
    // What a header says of others.
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: close, host\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: content-length\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\nCHUNK",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: \"content-length\"\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nProxy-Connection: content-length\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nKeep-Alive: timeout=5, max=1\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nExpect: 200-ok\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Encoding: chunked\r\n\r\nCHUNK",
    // Other protocols.
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "GET FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nHIDDEN",
    "GET FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nHIDDEN",
    "GET FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "POST FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "GET FIRST HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\nHIDDEN",
    // What is no request, first.
    "junk\r\nHIDDEN",
    "two words\r\nHIDDEN",
    "{}\r\nHIDDEN",
    "\0\r\nHIDDEN",
    "\0HIDDEN",
    "\x01\x02HIDDEN",
    "\u{feff}HIDDEN",
    "get FIRST\r\nHIDDEN",
    "get FIRST\nHIDDEN",
    "GET FIRST\rHIDDEN",
    "GET\r\nHIDDEN",
    "FIRST\r\nHIDDEN",
    ": x\r\nHIDDEN",
    "HTTP/1.1 200 OK\r\n\r\nHIDDEN",
    "LONG\r\nHIDDEN",
    "*1\r\n$4\r\nPING\r\nHIDDEN",
    // Several at once.
    "GET FIRST HTTP/1.1\r\nHost: HOST\r\n\r\nHIDDEN",
    "GET FIRST HTTP/1.1\r\nHost: HOST\r\n\r\n\r\nHIDDEN",
    "GET FIRST HTTP/1.1\r\nHost: HOST\r\n\r\n\x0bHIDDEN",
    "GET FIRST HTTP/1.1\r\nHost: HOST\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\nHIDDEN",
    "\r\nGET FIRST HTTP/1.1\r\nHost: HOST\r\n\r\nHIDDEN",
    "HEAD FIRST HTTP/1.1\r\nHost: HOST\r\n\r\nHIDDEN",
    "head FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "CONNECT HOST HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
    "TRACE FIRST HTTP/1.1\r\nHost: HOST\r\nContent-Length: {N}\r\n\r\nHIDDEN",
];

/// More than the line of a chunk may have.
const LONG: usize = 3000;

/// One client's words on one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framing {
    /// What is said.
    pub bytes: Vec<u8>,
    /// The path of the first request.
    pub first: String,
    /// The path of the request in its body, which is for another host.
    pub hidden: String,
}

/// Every framing, for requests to `host`; with `url` before each path but the
/// hidden one, as a proxy is asked.
#[must_use]
pub fn framings(host: &str, url: &str) -> Vec<Framing> {
    let mut all = Vec::new();
    for method in METHODS {
        for length in LENGTHS {
            for other in OTHERS {
                all.push(framing(all.len(), (method, length, other), host, url));
            }
        }
    }
    for odd in ODD {
        all.push(odd_framing(all.len(), odd, host, url));
    }
    all
}

fn odd_framing(number: usize, odd: &str, host: &str, url: &str) -> Framing {
    let first = format!("/open/{number}");
    let hidden = format!("/hidden/{number}");
    let inner = format!("GET {hidden} HTTP/1.1\r\nHost: other.test\r\n\r\n");
    let chunk = format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len());
    let text = odd
        .replace("{N}", &inner.len().to_string())
        .replace("FIRST", &format!("{url}{first}"))
        .replace("HOST", host)
        .replace("LONG", &"a".repeat(LONG))
        .replace("CHUNK", &chunk)
        .replace("HIDDEN", &inner);
    Framing {
        bytes: text.into_bytes(),
        first,
        hidden,
    }
}

fn framing(
    number: usize,
    (method, length, other): (&str, &str, &str),
    host: &str,
    url: &str,
) -> Framing {
    let first = format!("/open/{number}");
    let hidden = format!("/hidden/{number}");
    let lead = LEADS[number % LEADS.len()];
    let inner = ["GET", "POST"][number / 2 % 2];
    let inner =
        format!("{lead}{inner} {hidden} HTTP/1.1\r\nHost: other.test\r\nContent-Length: 0\r\n\r\n");
    let is_chunked = length.to_ascii_lowercase().contains("chunked");
    let body = if is_chunked {
        format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len())
    } else {
        inner
    };
    let length = length.replace('N', &body.len().to_string());
    let next = match number % 3 {
        0 => format!("GET {url}/open/next-{number} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        _ => String::new(),
    };
    let head = format!("{method} {url}{first} HTTP/1.1\r\nHost: {host}\r\n{other}{length}\r\n");
    Framing {
        bytes: [head, body, next].concat().into_bytes(),
        first,
        hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_many_and_each_has_its_own_paths() {
        let all = framings("a.test", "");
        assert!(all.len() > 1000, "{}", all.len());
        let mut paths: Vec<&str> = all.iter().map(|one| one.hidden.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), all.len());
    }
}
