//! Questions over a connection, each with its length in front (RFC 7766).

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::NameServer;

/// Bounds on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    /// Bytes of one question.
    longest: u16,
    /// Questions, after which the connection is closed.
    questions: usize,
    /// For a whole question to arrive, and for its answer to be taken.
    time: Duration,
}

const LIMITS: Limits = Limits {
    longest: 4096,
    questions: 1 << 16,
    time: Duration::from_secs(10),
};

/// Answers the questions on `stream`, one after the other, until the client
/// ends or goes beyond a limit.
pub(crate) async fn serve_stream(stream: TcpStream, server: &NameServer) {
    // Whatever went wrong, the connection is over.
    let _ = serve(stream, server, LIMITS).await;
}

async fn serve<S>(mut stream: S, server: &NameServer, limits: Limits) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for _ in 0..limits.questions {
        // The time is for the whole of it, so that a byte now and then keeps
        // nothing open.
        let question = timeout(limits.time, question(&mut stream, limits.longest)).await??;
        let Some(answer) = question.and_then(|question| server.answer(&question)) else {
            break;
        };
        timeout(limits.time, write(&mut stream, &answer)).await??;
    }
    timeout(limits.time, stream.shutdown()).await?
}

/// The next question; `None` at the end, and for one that is too long.
async fn question<S>(stream: &mut S, longest: u16) -> io::Result<Option<Vec<u8>>>
where
    S: AsyncRead + Unpin,
{
    let mut length = [0; 2];
    if stream.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut length[1..]).await?;
    let length = u16::from_be_bytes(length);
    if length > longest {
        return Ok(None);
    }
    let mut question = vec![0; usize::from(length)];
    stream.read_exact(&mut question).await?;
    Ok(Some(question))
}

async fn write<S>(stream: &mut S, answer: &[u8]) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes(), answer].concat())
        .await
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};

    use super::*;
    use crate::dns::answer::testing::{ask, name_server, question};

    const FEW: Limits = Limits {
        questions: 3,
        ..LIMITS
    };

    async fn served(stream: DuplexStream, limits: Limits) -> io::Result<()> {
        let (server, _) = name_server();
        serve(stream, &server, limits).await
    }

    /// Everything that comes back for `sent`, and how serving ended.
    async fn exchange(sent: &[u8], limits: Limits) -> (Vec<u8>, io::Result<()>) {
        let (mut client, server) = duplex(256 * 1024);
        client.write_all(sent).await.unwrap();
        client.shutdown().await.unwrap();
        let ended = served(server, limits).await;
        let mut answers = Vec::new();
        client.read_to_end(&mut answers).await.unwrap();
        (answers, ended)
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u16::try_from(message.len()).unwrap();
        [&length.to_be_bytes(), message].concat()
    }

    #[tokio::test]
    async fn several_questions_on_one_connection() {
        let sent = framed(&question("a.example.org", 1)).repeat(2);
        let (answers, ended) = exchange(&sent, FEW).await;
        assert_eq!(answers, framed(&ask("a.example.org", 1)).repeat(2));
        ended.unwrap();
    }

    #[tokio::test]
    async fn many_questions_at_once() {
        let sent = framed(&question("a.example.org", 1)).repeat(1000);
        let (answers, ended) = exchange(&sent, LIMITS).await;
        assert_eq!(answers, framed(&ask("a.example.org", 1)).repeat(1000));
        ended.unwrap();
    }

    #[tokio::test]
    async fn no_more_questions_than_the_limit() {
        let sent = framed(&question("a.example.org", 1)).repeat(9);
        let (answers, ended) = exchange(&sent, FEW).await;
        assert_eq!(answers, framed(&ask("a.example.org", 1)).repeat(3));
        ended.unwrap();
    }

    #[tokio::test]
    async fn what_is_no_question_ends_the_connection() {
        let good = framed(&question("a.example.org", 1));
        let long = framed(&[0; 4097]);
        for first in [&b"\x00\x00"[..], &framed(&[0xff; 12]), &long] {
            let (answers, ended) = exchange(&[first, &good[..]].concat(), FEW).await;
            assert_eq!(answers, [0; 0]);
            ended.unwrap();
        }
        for cut in [1, 2, 20] {
            let (answers, ended) = exchange(&good[..cut], FEW).await;
            assert_eq!(answers, [0; 0]);
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[tokio::test]
    async fn a_slow_client_is_left() {
        let quick = Limits {
            time: Duration::from_millis(20),
            ..FEW
        };
        let (mut client, server) = duplex(64);
        client.write_all(b"\x00").await.unwrap();
        let ended = served(server, quick).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);

        let (mut client, server) = duplex(64);
        let questions = framed(&question("a.example.org", 1));
        let writing = async { client.write_all(&questions.repeat(3)).await };
        let (_, ended) = tokio::join!(writing, served(server, quick));
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
