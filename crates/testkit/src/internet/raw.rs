//! Servers of plain bytes.

use std::collections::HashMap;
use std::io;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};

use super::head::invalid;
use super::log::Visit;

/// What [`banner`] says first.
const GREETING: &[u8] = b"220 mail.test ESMTP\r\n";

/// Sends back what it gets and, after the client's last byte, how much it was.
pub(super) async fn echo<S>(mut stream: S, visit: &Visit) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut bytes = vec![0; 64 * 1024];
    let mut total = 0;
    let mut said = visit.hear();
    loop {
        let length = stream.read(&mut bytes).await?;
        if length == 0 {
            break;
        }
        said.add(&bytes[..length]);
        total += length;
        stream.write_all(&bytes[..length]).await?;
        stream.flush().await?;
    }
    visit.saw(format!("{total} bytes"));
    stream
        .write_all(format!("\ntotal {total}\n").as_bytes())
        .await?;
    stream.shutdown().await
}

/// Greets before the client says anything, as mail servers do.
pub(super) async fn banner<S>(mut stream: S, visit: &Visit) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(GREETING).await?;
    echo(stream, visit).await
}

/// As much of a Redis server as `redis-cli PING`, `SET` and `GET` need.
pub(super) async fn redis<S>(stream: S, visit: &Visit) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stream = BufReader::new(stream);
    let mut values = HashMap::new();
    while let Some(words) = command(&mut stream).await? {
        visit.saw(words.join(" "));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = match words.as_slice() {
            ["PING" | "ping"] => "+PONG\r\n".to_owned(),
            ["SET" | "set", name, value] => {
                values.insert((*name).to_owned(), (*value).to_owned());
                "+OK\r\n".to_owned()
            }
            ["GET" | "get", name] => match values.get(*name) {
                Some(value) => format!("${}\r\n{value}\r\n", value.len()),
                None => "$-1\r\n".to_owned(),
            },
            _ => "-ERR unknown command\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

/// An array of strings; `None` at the end.
async fn command(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<String>>> {
    let Some(count) = length(stream, '*').await? else {
        return Ok(None);
    };
    let mut words = Vec::new();
    for _ in 0..count {
        let length = length(stream, '$').await?;
        let length = length.ok_or_else(|| invalid("half a command"))?;
        let mut bytes = vec![0; length + 2];
        stream.read_exact(&mut bytes).await?;
        bytes.truncate(length);
        words.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(Some(words))
}

async fn length(stream: &mut (impl AsyncBufRead + Unpin), mark: char) -> io::Result<Option<usize>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let number = line
        .trim_end()
        .strip_prefix(mark)
        .and_then(|text| text.parse().ok());
    number
        .filter(|number| *number < 64 * 1024)
        .map(Some)
        .ok_or_else(|| invalid("no command"))
}
