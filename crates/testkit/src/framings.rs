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
    all
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
