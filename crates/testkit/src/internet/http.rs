//! A web server that tells what it was asked, with pages for what a client
//! can meet: downloads, redirects, slowness, upgrades.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use serde_json::json;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::head::{Body, Head};
use super::log::Visit;
use super::place::{METADATA, METADATA6};
use super::raw;

/// What the metadata service gives away.
pub(super) const METADATA_SECRET: &str = "metadata-secret-of-the-test";

/// One connection's view of the server.
pub(super) struct Site {
    pub(super) visit: Visit,
    /// The name in the TLS handshake, if there was one.
    pub(super) sni: Option<String>,
    /// The folder behind `/files/`.
    pub(super) files: PathBuf,
}

/// A page to send.
struct Page {
    status: u16,
    headers: Vec<(&'static str, String)>,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    /// This many bytes of filling.
    Filling(u64),
    /// This many chunks of one line each.
    Chunks(u64),
    /// Bytes whose end is the end of the connection.
    UntilEnd(Vec<u8>),
}

/// Answers requests until the client or a page closes the connection.
pub(super) async fn serve<S>(stream: S, site: &Site) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stream = BufReader::new(stream);
    while let Some(head) = Head::read(&mut stream).await? {
        site.visit.saw(&head.raw);
        if head.says("connection", "upgrade") && head.header("upgrade").is_some() {
            return upgrade(stream, &head, site).await;
        }
        let body = Body::read(&head, &mut stream).await?;
        if body.length > 0 {
            site.visit.hear().add(&body.start);
        }
        let page = site.page(&head, &body).await;
        page.send(&mut stream, &head).await?;
        stream.flush().await?;
        let is_last = matches!(page.content, Content::UntilEnd(_));
        if is_last || head.says("connection", "close") {
            break;
        }
    }
    stream.shutdown().await
}

async fn upgrade<S>(mut stream: S, head: &Head, site: &Site) -> io::Result<()>
where
    S: AsyncBufRead + AsyncWrite + Unpin,
{
    let protocol = head.header("upgrade").unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    raw::echo(stream, &site.visit).await
}

impl Site {
    async fn page(&self, head: &Head, body: &Body) -> Page {
        if [METADATA, METADATA6].contains(&self.visit.to.ip().to_string().as_str()) {
            return Page::text(200, format!("{METADATA_SECRET}\n"));
        }
        let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
        let path = path.trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let number = rest.parse::<u64>();
        match (first, number) {
            ("bytes", Ok(count)) => Page::new(200, Content::Filling(count)),
            ("chunks", Ok(count)) => Page::new(200, Content::Chunks(count)),
            ("until-end", _) => Page::new(200, Content::UntilEnd(b"the end\n".to_vec())),
            ("status", Ok(status)) => {
                Page::text(u16::try_from(status).unwrap_or(500), format!("{status}\n"))
            }
            ("redirect", _) => redirect(query),
            ("slow", number) => {
                let wait = Duration::from_millis(number.unwrap_or(3000));
                tokio::time::sleep(wait).await;
                self.echo(head, body)
            }
            ("files", _) => self.file(rest),
            _ => self.echo(head, body),
        }
    }

    /// What the request was, as JSON.
    fn echo(&self, head: &Head, body: &Body) -> Page {
        let text = json!({
            "method": head.method,
            "target": head.target,
            "host": head.header("host"),
            "headers": head.headers,
            "body_bytes": body.length,
            "body": String::from_utf8_lossy(&body.start),
            "from": self.visit.from,
            "to": self.visit.to,
            "sni": self.sni,
        });
        let mut page = Page::text(200, format!("{text}\n"));
        page.headers = vec![("Content-Type", "application/json".to_owned())];
        page
    }

    fn file(&self, path: &str) -> Page {
        let is_plain = !path.split('/').any(|part| part == "..");
        let mut place = self.files.join(path);
        if place.is_dir() {
            place.push("index.html");
        }
        match std::fs::read(&place) {
            Ok(bytes) if is_plain => {
                let mut page = Page::new(200, Content::Bytes(bytes));
                if place
                    .extension()
                    .is_some_and(|extension| extension == "html")
                {
                    page.headers = vec![("Content-Type", "text/html".to_owned())];
                }
                page
            }
            _ => Page::text(404, "not found\n".to_owned()),
        }
    }
}

fn redirect(query: &str) -> Page {
    let to = query.strip_prefix("to=").unwrap_or_default();
    let to = percent_decode_str(to).decode_utf8_lossy().into_owned();
    let mut page = Page::text(302, String::new());
    page.headers = vec![("Location", to)];
    page
}

impl Page {
    fn new(status: u16, content: Content) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "application/octet-stream".to_owned())],
            content,
        }
    }

    fn text(status: u16, text: String) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "text/plain".to_owned())],
            content: Content::Bytes(text.into_bytes()),
        }
    }

    async fn send(&self, stream: &mut (impl AsyncWrite + Unpin), head: &Head) -> io::Result<()> {
        let framing = match &self.content {
            Content::Bytes(bytes) => format!("Content-Length: {}", bytes.len()),
            Content::Filling(count) => format!("Content-Length: {count}"),
            Content::Chunks(_) => "Transfer-Encoding: chunked".to_owned(),
            Content::UntilEnd(_) => "Connection: close".to_owned(),
        };
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        let lines: Vec<String> = headers.chain([framing]).collect();
        let answer = format!(
            "HTTP/1.1 {} Test\r\n{}\r\n\r\n",
            self.status,
            lines.join("\r\n")
        );
        stream.write_all(answer.as_bytes()).await?;
        if head.method == "HEAD" {
            return Ok(());
        }
        self.content.send(stream).await
    }
}

impl Content {
    async fn send(&self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        match self {
            Self::Bytes(bytes) | Self::UntilEnd(bytes) => stream.write_all(bytes).await,
            Self::Filling(count) => {
                static FILLING: [u8; 64 * 1024] = [b'x'; 64 * 1024];
                let mut left = *count;
                while left > 0 {
                    let some = usize::try_from(left)
                        .unwrap_or(usize::MAX)
                        .min(FILLING.len());
                    stream.write_all(&FILLING[..some]).await?;
                    left -= some as u64;
                }
                Ok(())
            }
            Self::Chunks(count) => {
                for number in 1..=*count {
                    let line = format!("chunk {number}\n");
                    let chunk = format!("{:x}\r\n{line}\r\n", line.len());
                    stream.write_all(chunk.as_bytes()).await?;
                    stream.flush().await?;
                }
                stream.write_all(b"0\r\n\r\n").await
            }
        }
    }
}
