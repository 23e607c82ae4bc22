//! Reading HTTP/1.1 requests as they are, for servers that tell what they got.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 128;
/// How much of a body is kept; the rest is only counted.
const KEPT: usize = 64 * 1024;

/// The head of a request.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// Exactly as it came.
    pub(super) raw: String,
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
}

/// The body of a request.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) length: u64,
    pub(super) start: Vec<u8>,
}

pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Head {
    /// The next one; `None` when the client has no more.
    pub(super) async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Self>> {
        let mut raw = Vec::new();
        loop {
            let start = raw.len();
            let mut limited = (&mut *stream).take((LONGEST_HEAD - start) as u64);
            if limited.read_until(b'\n', &mut raw).await? == 0 {
                return match start {
                    0 => Ok(None),
                    _ => Err(invalid("a head without an end")),
                };
            }
            if matches!(&raw[start..], b"\r\n" | b"\n") {
                break;
            }
        }
        Self::parse(&raw).map(Some)
    }

    fn parse(raw: &[u8]) -> io::Result<Self> {
        let mut space = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut space);
        let parsed = request.parse(raw).map_err(|_| invalid("no HTTP request"))?;
        if parsed.is_partial() {
            return Err(invalid("half an HTTP request"));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Self {
            raw: text(raw),
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            headers: request
                .headers
                .iter()
                .map(|header| (header.name.to_owned(), text(header.value)))
                .collect(),
        })
    }

    /// The first header called `name`, in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a header contains a word, in any case.
    pub(super) fn says(&self, name: &str, word: &str) -> bool {
        self.header(name)
            .is_some_and(|value| value.to_ascii_lowercase().contains(word))
    }
}

impl Body {
    /// Reads it to its end, however it is framed.
    pub(super) async fn read(
        head: &Head,
        stream: &mut (impl AsyncBufRead + AsyncWrite + Unpin),
    ) -> io::Result<Self> {
        if head.says("expect", "100-continue") {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
            stream.flush().await?;
        }
        let mut body = Self::default();
        if head.says("transfer-encoding", "chunked") {
            while body.take_chunk(stream).await? {}
        } else if let Some(length) = head.header("content-length") {
            let length = length.trim().parse().map_err(|_| invalid("no length"))?;
            body.take(stream, length).await?;
        }
        Ok(body)
    }

    /// False after the last one, whose trailers are skipped.
    async fn take_chunk(&mut self, stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<bool> {
        let line = line(stream).await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(digits, 16).map_err(|_| invalid("no chunk"))?;
        if length == 0 {
            while !self::line(stream).await?.is_empty() {}
            return Ok(false);
        }
        self.take(stream, length).await?;
        match self::line(stream).await?.as_str() {
            "" => Ok(true),
            _ => Err(invalid("a chunk without an end")),
        }
    }

    async fn take(
        &mut self,
        stream: &mut (impl AsyncBufRead + Unpin),
        length: u64,
    ) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            let bytes = stream.fill_buf().await?;
            let some = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if some == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let kept = some.min(KEPT.saturating_sub(self.start.len()));
            self.start.extend_from_slice(&bytes[..kept]);
            stream.consume(some);
            left -= some as u64;
        }
        self.length += length;
        Ok(())
    }
}

async fn line(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut bytes = Vec::new();
    stream.take(1024).read_until(b'\n', &mut bytes).await?;
    if !bytes.ends_with(b"\n") {
        return Err(invalid("a line without an end"));
    }
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
